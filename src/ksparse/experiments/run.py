"""Jobs, and the loop that does them: each instance is made once, each finished job is saved at once."""

from __future__ import annotations

import json
import os
import platform
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

import ksparse
from ksparse.datasets import MissingDataError
from ksparse.experiments.paper import figures
from ksparse.experiments.row import Row
from ksparse.losses import Loss
from ksparse.result import Result, Status, Trace
from ksparse.sets import ConvexSet
from ksparse.solve.minimize import minimize
from ksparse.solve.penalty_grid import resolve_method
from ksparse.util.files import sweep, write_atomically

PACKAGES = ("ksparse", "numpy", "scipy", "scikit-learn", "piqp", "clarabel", "pandas", "matplotlib")


def environment() -> dict[str, str]:
    """What a reader needs to judge the times."""
    threads = sorted({f"{pool['internal_api']} {pool['num_threads']}" for pool in threadpool_info()})
    found = {
        "processor": _processor(),
        "cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or "unknown"),
        "memory": _memory(),
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
        "linear algebra threads": ", ".join(threads) or "unknown",
    }
    return found | {package: _version(package) for package in PACKAGES}


@cache
def machine() -> str:
    """The same in one line, to stand beside a time."""
    found = environment()
    words = [found["processor"], f"{found['cores']} cores", f"threads: {found['linear algebra threads']}"]
    return ", ".join([*words, *(f"{package} {found[package]}" for package in ("ksparse", "numpy", "scipy"))])


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _memory() -> str:
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"
    except (AttributeError, ValueError, OSError):
        return "unknown"


class Store:
    """The folder `rows` of a run."""

    def __init__(self, out: Path) -> None:
        self.folder = out / "rows"
        self.folder.mkdir(parents=True, exist_ok=True)
        sweep(self.folder)

    def path(self, job: Job) -> Path:
        name = f"{job.table} {job.instance} seed {job.seed} run {job.repetition} {job.method}"
        return self.folder / (re.sub(r"[^\w.-]+", "_", name) + ".json")

    def get(self, job: Job, limit: float) -> Row | None:
        """The row of a job that was done before under the same settings, unless a shorter limit had cut it off."""
        try:
            stored = json.loads(self.path(job).read_text(encoding="utf-8"))
            if stored["settings"] != json.loads(json.dumps(job.settings)) or (
                stored["limited"] and stored["limit"] < limit
            ):
                return None
            return _with_paper(Row.from_json(stored["row"]))
        except FileNotFoundError:
            return None
        except (
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
        ):  # a file of another version, or not ours: do the job again
            return None

    def rows(self, table: str) -> list[Row]:
        """All rows of a table that lie here, whatever the settings of the run that made them."""
        found = []
        for path in sorted(self.folder.glob("*.json")):
            try:
                row = _with_paper(Row.from_json(json.loads(path.read_text(encoding="utf-8"))["row"]))
            except (OSError, ValueError, KeyError, TypeError, AttributeError):
                continue
            if row.table == table:
                found.append(row)
        return found

    def put(self, job: Job, limit: float, row: Row) -> None:
        stored = {"settings": job.settings, "limit": limit, "limited": row.limited, "row": row.to_json()}
        write_atomically(self.path(job), json.dumps(stored))


def _with_paper(row: Row) -> Row:
    """The row beside the paper's figures, which are looked up and not stored."""
    return replace(row, paper=figures(row.table, row.instance, row.method))


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
    jobs: Iterable[Job],
    *,
    out: str | Path | None = None,
    limit: float = LIMIT,
    force: bool = False,
    watch: Watch | None = None,
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
    if (
        result.method == "auto" or not resolve_method(result.method, "backtracking").exact
    ):  # the others are always rounded
        return ""
    chosen = [entry for entry in result.outcomes if entry.get("rho") == result.rho]
    return "" if all(entry["k_sparse"] for entry in chosen) else ROUNDED


def _weights(result: Result) -> list[dict[str, Any]]:
    """One entry per weight of the grid."""
    entries = [row for row in result.outcomes if row.get("rho") is not None]
    return [
        {key: value.name if isinstance(value, Status) else value for key, value in entry.items()} for entry in entries
    ]


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
        chosen = (
            {"effort": 1} if method == "auto" else options
        )  # the weights are those of the paper's methods; the limit is one
        start = None if x0 is None else x0()
        began = time.perf_counter()
        result = minimize(
            problem.loss(), problem.k, problem.C, method=METHODS[method], x0=start, max_time=limit, **chosen
        )
        seconds = time.perf_counter() - began
        own = [
            entry["elapsed"] for entry in result.outcomes if result.rho is not None and entry.get("rho") == result.rho
        ]
        return Answer(result, own[0] if own else seconds, seconds)

    return Job(table, instance, seed, repetition, method, load, solve, {"version": ksparse.__version__, **options})
