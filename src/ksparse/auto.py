"""method="auto": cheap diverse starts, search over supports from each, perturbed restarts, the best of all."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ksparse.arrays import Array, to_float64
from ksparse.callback import as_scipy_callback
from ksparse.drive import Stopping
from ksparse.errors import InfeasibleError, UnboundedError
from ksparse.losses import Loss
from ksparse.problem import Problem
from ksparse.report import Lines, logger
from ksparse.result import Result, Status
from ksparse.sets import ConvexSet
from ksparse.sets.base import Vector
from ksparse.support.component import prove_component, search_component
from ksparse.support.generic import search_generic
from ksparse.support.search import Found, search
from ksparse.support.starts import Start, all_supports, feasible_candidate, kicked, seats, starts
from ksparse.support.task import Candidate, Task

ROUND = 8  # restarts perturb the best of the round before: a fixed number, so that the answer does not depend on n_jobs


@dataclass
class Progress:
    """The best so far and how it came about."""

    best: Candidate | None = None
    proved: bool = False
    swaps: int = 0
    searches: int = 0
    iterations: int = 0
    products: int = 0
    rows: list[dict[str, Any]] = field(default_factory=list)  # one per start

    def take(self, name: str, found: Found, elapsed: float) -> None:
        """Note where a search ended, and keep it if it is better."""
        self.searches += 1
        self.swaps += found.swaps
        if self.best is None or found.best.value < self.best.value or self.best is found.best:
            self.best, self.proved = found.best, found.proved
        elif found.best.value == self.best.value and np.array_equal(found.best.support, self.best.support):
            self.proved |= found.proved
        self.rows.append({"start": name, "fun": found.best.value, "swaps": found.swaps, "proved": found.proved, "elapsed": elapsed})


def local_search(task: Task, candidate: Candidate) -> Found:
    """The search that fits the task."""
    if task.component:
        return search_component(task, candidate)
    if task.ranks:
        return search(task, candidate)
    return search_generic(task, candidate)


def solve_auto(
    task: Task,
    loss: Loss,
    C: ConvexSet,
    *,
    x0: Array | None,
    begin: Array,
    n_restarts: int,
    n_jobs: int | None,
    random_state: int | None,
    weights: list[float] | None,
    stopping: Stopping,
    tell: Callable[[Progress], None],
) -> tuple[Progress, Status]:
    """The best support the search finds, and why it ended."""
    progress, status = Progress(), Status.STATIONARY
    started = time.perf_counter()
    try:
        if _enumerate(task, progress, started):
            tell(progress)
            return progress, Status.OPTIMAL if task.certifying or task.component else Status.STATIONARY
        seeds = np.random.SeedSequence(random_state)
        rng = np.random.default_rng(seeds.spawn(1)[0])
        for start in starts(task, loss, task.C, x0, begin, rng, stopping, weights):
            progress.iterations += start.iterations
            progress.products += start.products
            candidate = feasible_candidate(task, start)
            if candidate is not None:
                progress.take(start.name, local_search(task, candidate), time.perf_counter() - started)
                tell(progress)
            if task.expired and progress.best is not None:
                return progress, Status.TIME_LIMIT
        _restart(task, progress, n_restarts, n_jobs, seeds, started, tell)
    except StopIteration:
        status = Status.CALLBACK_STOP
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
        progress.best = progress.best or _some_point(task, begin)
    except UnboundedError:  # on one support, so altogether
        status = Status.UNBOUNDED
        progress.best = progress.best or _some_point(task, begin)
    if progress.best is None:
        raise InfeasibleError(f"no point of C = {C} with at most k = {task.k} nonzeros was found that meets every constraint")
    if status is Status.STATIONARY and task.expired:
        status = Status.TIME_LIMIT
    if status is Status.STATIONARY and task.component:
        progress.proved = prove_component(task, progress.best)
    if status is Status.STATIONARY and progress.proved:
        status = Status.SWAP_OPTIMAL
    return progress, status


def _some_point(task: Task, begin: Array) -> Candidate | None:
    """A k-sparse point of C near the start, not re-solved."""
    support = seats(task, to_float64(begin))
    if support is None:
        return None
    x = task.C.restrict(support).project(to_float64(begin)[support])
    full = np.zeros(task.n)
    full[support] = x
    return Candidate(support, x, task.loss.value(full), np.zeros(support.size), np.zeros(0))


def _enumerate(task: Task, progress: Progress, started: float) -> bool:
    """Try every support where they are few; False where they are many, or the time ran out."""
    supports = all_supports(task)
    if supports is None:
        return False
    for support in supports:
        candidate = task.evaluate(support)
        if candidate is not None and (progress.best is None or candidate.value < progress.best.value):
            progress.best = candidate
        if task.expired:
            return False
    if progress.best is None:
        raise InfeasibleError(f"C = {task.C} holds no point with at most k = {task.k} nonzeros: every support was tried")
    found = Found(progress.best, 0, task.certifying or task.component)
    progress.take("enumeration", found, time.perf_counter() - started)
    return True


def _restart(
    task: Task,
    progress: Progress,
    count: int,
    n_jobs: int | None,
    seeds: np.random.SeedSequence,
    started: float,
    tell: Callable[[Progress], None],
) -> None:
    """Rounds of perturbed restarts from the best so far."""
    for first in range(0, count, ROUND):
        if task.expired or progress.best is None:
            return
        supports = [kicked(task, progress.best.support, np.random.default_rng(seed)) for seed in seeds.spawn(min(ROUND, count - first))]
        for found in _searches(task, supports, n_jobs):
            if found is not None:
                progress.take("restart", found, time.perf_counter() - started)
                tell(progress)


def _searches(task: Task, supports: list[Vector], n_jobs: int | None) -> list[Found | None]:
    def one(support: Vector) -> Found | None:
        own = task.with_own_memory()
        candidate = feasible_candidate(own, Start("restart", support))
        return None if candidate is None or task.expired else local_search(own, candidate)

    if n_jobs in (None, 1):
        return [one(support) for support in supports]
    from joblib import Parallel, delayed

    found: list[Found | None] = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(one)(support) for support in supports)
    return found


class AutoReport(Lines):
    """Prints the starts of a search and tells the callback; silent for verbose = 0."""

    def __init__(self, verbose: int, callback: Callable[..., Any] | None) -> None:
        super().__init__(verbose)
        self._callback = as_scipy_callback(callback)

    def banner(self, problem: Problem) -> None:
        """What is solved, and the head of the table."""
        if self.verbose:
            k = getattr(problem.penalty, "k", problem.n)
            logger.info("ksparse auto: %s over %s, at most %d of %d variables", type(problem.loss).__name__, problem.C, k, problem.n)
            logger.info("%s", f"{'start':<28} {'found':>16} {'best':>16} {'swaps':>6} {'proved':>7} {'time':>8}")

    def tell(self, progress: Progress, n: int) -> None:
        """One start, to the table and to the callback."""
        row, best = progress.rows[-1], progress.best
        assert best is not None
        if self.verbose:
            proved = "yes" if row["proved"] else "no"
            logger.info(
                "%s", f"{row['start']:<28} {row['fun']:>16.9e} {best.value:>16.9e} {row['swaps']:>6} {proved:>7} {row['elapsed']:>7.2f}s"
            )
        self._callback(lambda: best.full(n), best.value, progress.searches, np.nan, row["elapsed"])

    def footer(self, result: Result) -> None:
        """How it ended."""
        if self.verbose:
            logger.info("%s", f"{result.message}: {result.fun:.9e} with {result.support.size} nonzeros, {result.elapsed:.2f} s")
