"""method="auto": the search over supports, told to the callback and the table as it goes, and judged."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ksparse.certify.prove import Certificate, Progress, Wanted, prove
from ksparse.result import Result, Status
from ksparse.search.explore import Exploration, Plan, fallback_point
from ksparse.search.incumbent import Incumbent
from ksparse.search.problem import SupportProblem
from ksparse.search.strategy import choose_strategy
from ksparse.solve.judge import gap_between, judge_search
from ksparse.solve.penalty_grid import resolve_weights
from ksparse.solve.request import Request
from ksparse.util.checks import check_integer, check_n_jobs, check_number
from ksparse.util.progress import Bar, VerboseLogging, as_scipy_callback, bar, logger

SHOWN = 1.0  # seconds between two lines of a tree


def one_search(options: dict[str, Any]) -> dict[str, Any]:
    """Options of `minimize` for one of several calls that share a time limit: one search each, unless more effort is asked for."""
    return options if options.get("effort") is not None else options | {"effort": 1}


def make_plan(effort: int | None, n_jobs: int | None, random_state: Any, rho: str | float | Sequence[float]) -> Plan:
    """The plan that the arguments describe."""
    return Plan(
        effort=None if effort is None else check_integer(effort, "effort", 1),
        n_jobs=check_n_jobs(n_jobs),
        seed=_seed(random_state),
        weights=None if isinstance(rho, str) and rho == "auto" else resolve_weights(rho),
    )


def _seed(random_state: int | np.random.Generator | None) -> int:
    if random_state is None:
        return 0
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    return check_integer(random_state, "random_state", 0)


def exploration(
    request: Request, problem: SupportProblem, plan: Plan, tell: Callable[[Incumbent], None]
) -> Exploration:
    """The search that a request asks for."""
    settings, stopping = problem.pieces.settings, request.stopping
    rough = replace(
        stopping, tol=max(stopping.tol, settings.start_tol), max_iter=min(stopping.max_iter, settings.start_steps)
    )
    return Exploration(problem, request.loss, request.x0, request.beginning, rough, plan, request.started, tell)


def make_wanted(gap: float | None, max_nodes: int | None, n_jobs: int | None) -> Wanted | None:
    """The proof that the arguments ask for."""
    if gap is None:
        if max_nodes is not None:
            raise ValueError("max_nodes needs gap, such as gap=0.01: without one no tree is grown")
        return None
    most = None if max_nodes is None else check_integer(max_nodes, "max_nodes", 1)
    return Wanted(check_number(gap, "gap", at_least=0.0), most, n_jobs)


def solve_by_search(request: Request, problem: SupportProblem, plan: Plan, wanted: Wanted | None = None) -> Result:
    """The best k-sparse point that the search finds, and how good it is at least, where that is wanted."""
    report = Report(request.verbose, request.callback)
    search = exploration(request, problem, plan, lambda incumbent: report.tell(incumbent, problem.n))
    try:
        if request.interrupted:
            raise KeyboardInterrupt
        with report:
            report.banner(request, problem)
            status = search.run()
            certificate = certified(
                problem,
                search.incumbent,
                status,
                wanted,
                lambda progress: report.show(progress, search.incumbent, request),
            )
            result = judge_search(request, problem, search.incumbent, status, certificate)
            report.footer(result)
        return result
    except KeyboardInterrupt:  # outside of what takes one itself: before the search began, or after it ended
        search.incumbent.best = search.incumbent.best or fallback_point(problem, request.beginning)
        if search.incumbent.best is None:
            raise
        return judge_search(request, problem, search.incumbent, Status.INTERRUPTED)


def certified(
    problem: SupportProblem,
    incumbent: Incumbent,
    status: Status,
    wanted: Wanted | None,
    tell: Callable[[Progress], None],
) -> Certificate:
    """What is proved of a search's answer: by enumeration, or by a tree where one is wanted and the search was not stopped."""
    if status is Status.OPTIMAL:
        return Certificate(incumbent.bound, 0, Status.OPTIMAL)
    if wanted is None or not status.good or incumbent.best is None:
        return Certificate()
    with bar("proof", 1.0) as one:
        closing = Closing(one, wanted.gap)

        def told(progress: Progress) -> None:
            closing.at(progress)
            tell(progress)

        return prove(problem, incumbent, wanted, told)


class Closing:
    """A bar of how far the gap is closed, from the first that was known to the one that is wanted; by its logarithm, as trees close it."""

    def __init__(self, shown: Bar, aim: float) -> None:
        self._bar, self._aim, self._first = shown, aim, math.inf

    def at(self, progress: Progress) -> None:
        """Where the tree stands now."""
        gap = gap_between(progress.best, progress.bound)
        self._first = gap if math.isinf(self._first) else self._first
        self._bar.update(self._share(gap), f"gap {100 * gap:.3g} %, {progress.nodes} nodes, {progress.open} open")

    def _share(self, gap: float) -> float:
        if not 0.0 < gap < self._first < math.inf:
            return 0.0 if gap else 1.0
        return (
            1.0 - gap / self._first
            if self._aim == 0.0
            else math.log(self._first / gap) / math.log(self._first / self._aim)
        )


def tree_line(nodes: int, open_: int, best: float, bound: float, gap: float, elapsed: float) -> str:
    """Where a tree stands."""
    return (
        f"tree: {nodes} nodes, {open_} open, best {best:.9e}, bound {bound:.9e}, gap {100 * gap:.3g} %, {elapsed:.1f} s"
    )


class Report(VerboseLogging):
    """Prints the stages of a search and tells the callback; silent for verbose = 0."""

    def __init__(self, verbose: int, callback: Callable[..., Any] | None) -> None:
        super().__init__(verbose)
        self._callback = as_scipy_callback(callback)
        self._shown = -math.inf

    def banner(self, request: Request, problem: SupportProblem) -> None:
        """What is solved and how, and the head of the table."""
        if self.verbose:
            name, of = type(request.loss).__name__, "features" if request.by_rows else "variables"
            count = request.n // request.loss.per_feature
            logger.info("ksparse auto: %s over %s, at most %d of %d %s", name, request.C, request.k, count, of)
            logger.info("search: %s", choose_strategy(problem).name)
            logger.info("%s", f"{'stage':<28} {'found':>16} {'best':>16} {'swaps':>6} {'proved':>7} {'time':>8}")

    def tell(self, incumbent: Incumbent, n: int) -> None:
        """Report one stage of the search in the table and to the callback."""
        row, best = incumbent.rows[-1], incumbent.best
        assert best is not None
        if self.verbose:
            proved = "yes" if row["proved"] else "no"
            logger.info(
                "%s",
                f"{row['start']:<28} {row['fun']:>16.9e} {best.value:>16.9e} {row['swaps']:>6} {proved:>7} {row['elapsed']:>7.2f}s",
            )
        self._callback(lambda: best.full(n), best.value, incumbent.searches, np.nan, row["elapsed"])

    def show(self, progress: Progress, incumbent: Incumbent, request: Request) -> None:
        """Where the tree stands, about once in a second; the callback hears of every round."""
        best, elapsed = incumbent.best, request.elapsed
        assert best is not None
        gap = gap_between(progress.best, progress.bound)
        if self.verbose and (elapsed - self._shown >= SHOWN or progress.nodes == 1):
            self._shown = elapsed
            logger.info("%s", tree_line(progress.nodes, progress.open, progress.best, progress.bound, gap, elapsed))
        self._callback(
            lambda: best.full(request.n), best.value, progress.nodes, np.nan, elapsed,
            nodes=progress.nodes, open=progress.open, lower_bound=progress.bound, gap=gap,
        )  # fmt: skip

    def footer(self, result: Result) -> None:
        """How it ended."""
        if self.verbose:
            logger.info(
                "%s", f"{result.message}: {result.fun:.9e} with {result.support.size} nonzeros, {result.elapsed:.2f} s"
            )
