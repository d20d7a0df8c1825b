"""Jobs of the experiments, and the loop that runs them: each instance is loaded once, each row is saved when done."""

from __future__ import annotations

import json
import os
import platform
import re
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

import ksparse
from ksparse.datasets import MissingDataError
from ksparse.experiments.row import Row
from ksparse.losses import Loss
from ksparse.result import Result, Status, Trace
from ksparse.sets import ConvexSet
from ksparse.solve.minimize import minimize
from ksparse.solve.penalty_grid import resolve_method
from ksparse.util.files import sweep, write_atomically

PACKAGES = ("ksparse", "numpy", "scipy", "scikit-learn", "piqp", "clarabel", "pandas", "matplotlib")


def environment() -> dict[str, str]:
    """Return the facts about machine and software that times depend on."""
    threads = sorted({f"{pool['internal_api']} {pool['num_threads']}" for pool in threadpool_info()})
    found = {
        "processor": _processor(),
        "cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or "unknown"),
        "memory": _memory(),
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
        "linear algebra threads": ", ".join(threads) or "unknown",
    }
    installed = {package.name: package.version for package in distributions()}
    return found | {package: installed.get(package, "not installed") for package in PACKAGES}


@cache
def machine() -> str:
    """Return the machine and the main packages in one line."""
    found = environment()
    words = [found["processor"], f"{found['cores']} cores", f"threads: {found['linear algebra threads']}"]
    return ", ".join([*words, *(f"{package} {found[package]}" for package in ("ksparse", "numpy", "scipy"))])


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    text = info.read_text(encoding="utf-8", errors="replace") if info.exists() else ""
    found = re.search(r"^model name.*?:(.*)$", text, re.MULTILINE)
    return found[1].strip() if found else platform.processor() or platform.machine()


def _memory() -> str:
    with suppress(AttributeError, ValueError, OSError):
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"
    return "unknown"


class Store:
    """Finished rows as JSON files in the folder `rows` of a run."""

    def __init__(self, out: Path) -> None:
        self.folder = out / "rows"
        self.folder.mkdir(parents=True, exist_ok=True)
        sweep(self.folder)

    def path(self, job: Job) -> Path:
        name = f"{job.table} {job.instance} seed {job.seed} run {job.repetition} {job.method}"
        return self.folder / (re.sub(r"[^\w.-]+", "_", name) + ".json")

    def get(self, job: Job, limit: float) -> Row | None:
        """Return the stored row of a job with the same settings, unless a shorter time limit stopped it."""
        stored = _read(self.path(job))
        if stored is None or stored["settings"] != json.loads(json.dumps(job.settings)):
            return None
        return None if stored["limited"] and stored["limit"] < limit else stored["row"]

    def rows(self, table: str) -> list[Row]:
        """Return all stored rows of a table, whatever their settings."""
        found = [_read(path) for path in sorted(self.folder.glob("*.json"))]
        return [stored["row"] for stored in found if stored is not None and stored["row"].table == table]

    def put(self, job: Job, limit: float, row: Row) -> None:
        stored = {"settings": job.settings, "limit": limit, "limited": row.limited, "row": row.to_json()}
        write_atomically(self.path(job), json.dumps(stored))


def _read(path: Path) -> dict[str, Any] | None:
    """Return a stored row with its settings and limit, or None if the file is missing or of another version."""
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        stored = json.loads(path.read_text(encoding="utf-8"))
        return {key: stored[key] for key in ("settings", "limited", "limit")} | {"row": Row.from_json(stored["row"])}
    return None


Out = str | Path | None  # folder of a run
LIMIT = 300.0  # seconds per method and instance
ROUNDED = "in runs where no ρ gave at most k nonzeros, the k largest entries were kept and φ minimised again on them"
TRACE_POINTS = 400  # stored per trace
# methods of Tables 3-5, in the order of the paper
METHODS = {"l2-PDCA": "pdca", "l2-APDCA": "apdca", "l1-DCA": "l1dca", "MIP-DCA": "mipdca", "auto": "auto"}


@dataclass(frozen=True)
class Instance:
    """A problem, and functions that evaluate its solutions on the raw data."""

    loss: Callable[[], Loss]  # a new loss per method: cached values such as L must not speed up the next method
    C: ConvexSet
    k: int
    value: Callable[[Any], float]
    mean_return: Callable[[Any], float] = lambda x: float("nan")


@dataclass(frozen=True)
class Answer:
    """Result of a method, with its times in seconds."""

    result: Result
    time: float
    time_all: float
    time_lipschitz: float = float("nan")


Solve = Callable[[Instance, float], Answer]  # with a time limit in seconds


@dataclass(frozen=True)
class Job:
    """One method on one instance, which gives one row."""

    table: str
    instance: str
    seed: int
    repetition: int
    method: str
    load: Callable[[], Instance]
    solve: Solve
    settings: dict[str, Any] = field(default_factory=dict)  # all else that the row depends on

    def row(self, **values: Any) -> Row:
        """Return the row of this job."""
        return Row(self.table, self.instance, self.seed, self.repetition, self.method, **values)


Watch = Callable[[Job, "Row | None"], None]  # called when a job begins (with None) and when it ends


def run(
    jobs: Iterable[Job], *, out: Out = None, limit: float = LIMIT, force: bool = False, watch: Watch | None = None
) -> list[Row]:
    """Run the jobs in order; rows stored in the folder `out` are reused unless `force`."""
    store, tell = None if out is None else Store(Path(out)), watch or (lambda job, row: None)
    rows: list[Row] = []
    cache: dict[tuple[str, str, int], Instance] = {}
    for job in jobs:
        tell(job, None)
        row = None if store is None or force else store.get(job, limit)
        if row is None:
            row = _run(job, cache, limit)
            if store is not None and row.status:  # jobs without data are tried again next time
                store.put(job, limit, row)
        rows.append(row)
        tell(job, row)
    return rows


def _run(job: Job, cache: dict[tuple[str, str, int], Instance], limit: float) -> Row:
    key = (job.table, job.instance, job.seed)
    try:
        if key not in cache:
            cache.clear()  # the last instance may be large
            cache[key] = job.load()
        instance = cache[key]
        answer = job.solve(instance, limit)
    except (MissingDataError, ImportError) as error:
        return job.row(note=f"left out: {error}")
    result = answer.result
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    x = np.asarray(result.x)
    return job.row(
        k=instance.k, rho=float("nan") if result.rho is None else result.rho, cardinality=int(np.count_nonzero(x)),
        objective=instance.value(x), mean_return=instance.mean_return(x), time=answer.time, iterations=result.nit,
        time_all=answer.time_all, time_lipschitz=answer.time_lipschitz, violation=instance.C.violation(x),
        status=result.status.name, note=_note(result, limit), limit=limit, machine=machine(),
        details={"trace": _thin(result.trace), "weights": _weights(result)},
    )  # fmt: skip


def _note(result: Result, limit: float) -> str:
    if result.status is Status.TIME_LIMIT:
        done = f" after {len(result.outcomes)} weights" if result.rho is not None else ""
        return f"time limit of {limit:g} s reached{done} (best solution found so far)"
    if not result.status.good:
        return result.message
    if result.method == "auto" or not resolve_method(result.method, "backtracking").exact:
        return ""  # other methods always round
    chosen = [entry for entry in result.outcomes if entry.get("rho") == result.rho]
    return "" if all(entry["k_sparse"] for entry in chosen) else ROUNDED


def _weights(result: Result) -> list[dict[str, Any]]:
    """Return one entry per weight of the grid."""
    tried = [entry for entry in result.outcomes if entry.get("rho") is not None]
    return [{key: v.name if isinstance(v, Status) else v for key, v in entry.items()} for entry in tried]


def _thin(trace: Trace) -> dict[str, list[float]]:
    """Return at most TRACE_POINTS points of the trace, with the first and the last."""
    kept = np.unique(np.linspace(0, max(len(trace) - 1, 0), min(len(trace), TRACE_POINTS)).astype(int))
    return {"iteration": kept.tolist(), "F": trace.F[kept].tolist(), "elapsed": trace.elapsed[kept].tolist()}


def sparse_job(
    table: str, instance: str, load: Callable[[], Instance], method: str, *, seed: int = 0, repetition: int = 0,
    x0: Callable[[], Any] | None = None, **options: Any,
) -> Job:  # fmt: skip
    """Return a job of Tables 3-5: `minimize` by one of METHODS, on the paper's grid of weights unless rho is given."""
    if method not in METHODS:
        raise ValueError(f"methods must be among {', '.join(METHODS)}, got {method!r}")

    def solve(problem: Instance, limit: float) -> Answer:
        chosen = {"effort": 1} if method == "auto" else options  # auto has no weights
        start, name = None if x0 is None else x0(), METHODS[method]
        began = time.perf_counter()
        result = minimize(problem.loss(), problem.k, problem.C, method=name, x0=start, max_time=limit, **chosen)
        seconds = time.perf_counter() - began
        tried = result.outcomes if result.rho is not None else []
        own = (entry["elapsed"] for entry in tried if entry.get("rho") == result.rho)
        return Answer(result, next(own, seconds), seconds)

    return Job(table, instance, seed, repetition, method, load, solve, {"version": ksparse.__version__, **options})
