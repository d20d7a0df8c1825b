"""Jobs, and the loop that does them: each instance is made once, each finished job is saved at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import ksparse
from ksparse.datasets import MissingDataError
from ksparse.experiments.environment import machine
from ksparse.experiments.paper import figures
from ksparse.experiments.row import Row
from ksparse.experiments.store import Store
from ksparse.losses import Loss
from ksparse.result import Result, Status, Trace
from ksparse.sets import ConvexSet
from ksparse.solve.minimize import minimize
from ksparse.solve.penalty_grid import resolve_method

LIMIT = 300.0  # seconds per method and instance
ROUNDED = "no weight gave at most k nonzeros by itself: the k largest kept and re-solved"
TRACE_POINTS = 400  # kept of a trace
METHODS = {
    "l2-PDCA": "pdca",
    "l2-APDCA": "apdca",
    "l1-DCA": "l1dca",
    "MIP-DCA": "mipdca",
    "auto": "auto",
}  # of Tables 3–5, in the paper's order


@dataclass(frozen=True)
class Instance:
    """A problem, and a hand that judges its answers from the raw data."""

    loss: Callable[[], Loss]  # a fresh one per method: what a loss remembers, such as L, must not serve the next
    C: ConvexSet
    k: int
    value: Callable[[Any], float]
    mean_return: Callable[[Any], float] = lambda x: float("nan")


@dataclass(frozen=True)
class Answer:
    """What a method gave, and how its time is counted."""

    result: Result
    time: float
    time_all: float
    time_lipschitz: float = float("nan")


Solve = Callable[[Instance, float], Answer]  # under a limit in seconds


@dataclass(frozen=True)
class Job:
    """One method on one instance: one row."""

    table: str
    instance: str
    seed: int
    repetition: int
    method: str
    load: Callable[[], Instance]
    solve: Solve
    settings: dict[str, Any] = field(default_factory=dict)  # what else the row depends on

    def row(self, **values: Any) -> Row:
        """The row of this job."""
        paper = figures(self.table, self.instance, self.method)
        return Row(self.table, self.instance, self.seed, self.repetition, self.method, paper=paper, **values)


Watch = Callable[[Job, "Row | None"], None]  # told of each job when it begins (None), and of its row when it is there


def run(
    jobs: Iterable[Job], *, out: str | Path | None = None, limit: float = LIMIT, force: bool = False, watch: Watch | None = None
) -> list[Row]:
    """Do the jobs in order; with a folder `out` what was done before is taken from there, unless `force`."""
    store, tell = None if out is None else Store(Path(out)), watch or (lambda job, row: None)
    rows: list[Row] = []
    shelf: dict[tuple[str, str, int], Instance] = {}
    for job in jobs:
        tell(job, None)
        row = None if store is None or force else store.get(job, limit)
        if row is None:
            row = _do(job, shelf, limit)
            if store is not None and row.status:  # one that could not be tried is tried again next time
                store.put(job, limit, row)
        rows.append(row)
        tell(job, row)
    return rows


def _do(job: Job, shelf: dict[tuple[str, str, int], Instance], limit: float) -> Row:
    key = (job.table, job.instance, job.seed)
    try:
        if key not in shelf:
            shelf.clear()  # the last instance may be large
            shelf[key] = job.load()
        instance = shelf[key]
        answer = job.solve(instance, limit)
    except (MissingDataError, ImportError) as error:
        return job.row(note=f"left out: {error}")
    result = answer.result
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    x = np.asarray(result.x)
    return job.row(
        k=instance.k,
        rho=float("nan") if result.rho is None else result.rho,
        cardinality=int(np.count_nonzero(x)),
        objective=instance.value(x),
        mean_return=instance.mean_return(x),
        time=answer.time,
        iterations=result.nit,
        time_all=answer.time_all,
        time_lipschitz=answer.time_lipschitz,
        violation=instance.C.violation(x),
        status=result.status.name,
        note=_note(result, limit),
        limit=limit,
        machine=machine(),
        details={"trace": _thin(result.trace), "weights": _weights(result)},
    )


def _note(result: Result, limit: float) -> str:
    if result.status is Status.TIME_LIMIT:
        done = f" after {len(result.outcomes)} weights" if result.rho is not None else ""
        return f"limit of {limit:g} s reached{done}: the best so far"
    if not result.status.good:
        return result.message
    if result.method == "auto" or not resolve_method(result.method, "backtracking").exact:  # the others are always rounded
        return ""
    chosen = [entry for entry in result.outcomes if entry.get("rho") == result.rho]
    return "" if all(entry["k_sparse"] for entry in chosen) else ROUNDED


def _weights(result: Result) -> list[dict[str, Any]]:
    """One entry per weight of the grid."""
    entries = [row for row in result.outcomes if row.get("rho") is not None]
    return [{key: value.name if isinstance(value, Status) else value for key, value in entry.items()} for entry in entries]


def _thin(trace: Trace) -> dict[str, list[float]]:
    """At most TRACE_POINTS of the trace, with the first and the last."""
    kept = np.unique(np.linspace(0, max(len(trace) - 1, 0), min(len(trace), TRACE_POINTS)).astype(int))
    return {"iteration": kept.tolist(), "F": trace.F[kept].tolist(), "elapsed": trace.elapsed[kept].tolist()}


def sparse_job(
    table: str,
    instance: str,
    load: Callable[[], Instance],
    method: str,
    *,
    seed: int = 0,
    repetition: int = 0,
    x0: Callable[[], Any] | None = None,
    **options: Any,
) -> Job:
    """A job of Tables 3–5: `minimize` by one of METHODS, with the paper's grid of weights unless rho is given."""
    if method not in METHODS:
        raise ValueError(f"methods must be among {', '.join(METHODS)}, got {method!r}")

    def solve(problem: Instance, limit: float) -> Answer:
        chosen = {"effort": 1} if method == "auto" else options  # the weights are those of the paper's methods; the limit is one
        start = None if x0 is None else x0()
        began = time.perf_counter()
        result = minimize(problem.loss(), problem.k, problem.C, method=METHODS[method], x0=start, max_time=limit, **chosen)
        seconds = time.perf_counter() - began
        own = [entry["elapsed"] for entry in result.outcomes if result.rho is not None and entry.get("rho") == result.rho]
        return Answer(result, own[0] if own else seconds, seconds)

    return Job(table, instance, seed, repetition, method, load, solve, {"version": ksparse.__version__, **options})
