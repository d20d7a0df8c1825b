"""All k along one path: search each k from the solution for the larger k, reduced, and for the smaller k, grown.

A few k are solved as `minimize` does. All k share one cache of supports.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ksparse.certify.prove import GapRequest
from ksparse.errors import InfeasibleError, UnboundedError
from ksparse.firstorder.problem import Stopping
from ksparse.losses import Loss
from ksparse.result import Result, Status
from ksparse.search.candidate import Candidate, Incumbent, SearchOutcome
from ksparse.search.enumeration import describe_constraints, enumerate_supports
from ksparse.search.explore import (
    STOPS,
    SearchOptions,
    fallback_point,
    final_status,
    local_search,
    prove_or_improve,
    stop_status,
)
from ksparse.search.problem import SupportProblem
from ksparse.search.settings import SearchSettings
from ksparse.search.strategy import choose_strategy, without_updates
from ksparse.sets import ConvexSet
from ksparse.solve.judge import UNPROVED, judge_search
from ksparse.solve.minimize import certify, make_gap_request, make_plan, make_search
from ksparse.solve.request import Request, check_request, solve_scope, support_problem
from ksparse.util import display
from ksparse.util.arrays import Vector
from ksparse.util.checks import check_integer
from ksparse.util.progress import NULL_BAR, Bar, VerboseLogging, as_scipy_callback, bar, logger
from ksparse.util.resources import one_thread

if TYPE_CHECKING:
    import pandas as pd

ROUNDS = 3  # maximum number of times down and up the path


@dataclass(frozen=True)
class KPath:
    """The solutions for several k, ascending; the objective never increases with k. What `k_path` returns.

    Attributes
    ----------
    results : list of Result
        One per k; `path[k]` is that of k.

    Examples
    --------
    >>> import numpy as np
    >>> import ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 20))
    >>> b = A[:, :3] @ [1.0, -2.0, 1.5] + 0.1 * rng.standard_normal(60)
    >>> path = ks.k_path(ks.LeastSquares(A, b), [1, 2, 3])
    >>> path[3].support.tolist(), len(path)
    ([0, 1, 2], 3)
    """

    results: list[Result]

    @property
    def ks(self) -> Vector:
        """The values of k."""
        return np.array([result.k for result in self.results])

    @property
    def objective(self) -> Vector:
        """φ at each solution."""
        return np.array([result.fun for result in self.results])

    @property
    def x(self) -> Vector:
        """The solutions, one per row."""
        return np.array([np.asarray(result.x) for result in self.results])

    @property
    def supports(self) -> list[Vector]:
        """The nonzeros of each solution."""
        return [result.support for result in self.results]

    @property
    def entered(self) -> list[Vector]:
        """The variables of each solution that were not in the one before."""
        return [np.setdiff1d(now, before) for before, now in self._pairs()]

    @property
    def left(self) -> list[Vector]:
        """The variables of the solution before that are not in this one."""
        return [np.setdiff1d(before, now) for before, now in self._pairs()]

    def _pairs(self) -> list[tuple[Vector, Vector]]:
        return list(pairwise([np.zeros(0, dtype=np.intp), *self.supports]))

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, k: int) -> Result:
        """Return the result for at most k nonzeros."""
        for result in self.results:
            if result.k == k:
                return result
        raise KeyError(f"k = {k} is not on the path, which has {', '.join(map(str, self.ks))}")

    def _rows(self) -> list[tuple[str, ...]]:
        def listed(variables: Vector) -> str:
            return ", ".join(map(str, variables[:8])) + (", ..." if variables.size > 8 else "")

        rows = zip(self.results, self.entered, self.left, strict=True)
        return [(str(one.k), f"{one.fun:.8g}", one.status.name, listed(new), listed(old)) for one, new, old in rows]

    def __repr__(self) -> str:
        lines = [f"{'k':>5} {'objective':>16} {'status':>17}  enters"]
        for k, fun, status, entered, left in self._rows():
            lines.append(f"{k:>5} {fun:>16} {status:>17}  {entered}" + (f"  without {left}" if left else ""))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return the HTML for a notebook: the objective against k, and a line per k."""
        ks, objective, chart = self.ks.astype(float).tolist(), self.objective, ""
        if np.isfinite(objective).all():
            chart = display.curve(ks, objective.tolist(), "objective against k")
        table = display.grid(("k", "objective", "status", "enters", "leaves"), self._rows())
        return f'<div class="ksparse-path">{chart}{table}</div>'

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row per k."""
        import pandas as pd

        columns = {"k": self.ks, "objective": self.objective, "nonzeros": [s.size for s in self.supports]}
        columns |= {"status": [r.status.name for r in self.results], "entered": self.entered, "left": self.left}
        return pd.DataFrame(columns)


def k_path(
    loss: Loss,
    ks: Iterable[int],
    C: ConvexSet | None = None,
    *,
    x0: Any = None,
    forced_in: Any = (),
    forced_out: Any = (),
    min_nonzero: Any = 0.0,
    groups: Any = None,
    group_limits: Any = None,
    requires: Any = None,
    effort: int | None = None,
    n_jobs: int | None = None,
    random_state: int | np.random.Generator | None = None,
    gap: float | None = None,
    max_nodes: int | None = None,
    tol: float = 1e-5,
    max_iter: int = 10_000,
    max_time: float | None = None,
    settings: SearchSettings | None = None,
    callback: Callable[..., Any] | None = None,
    verbose: int = 0,
    progress: bool = False,
) -> KPath:
    """Minimise φ over the points of C with at most k nonzeros, for every k of `ks`.

    The largest k, and a few smaller ones, each half of the last, are solved as `minimize` does. Then every k is
    searched from the solution for the larger k, without its least useful variables, and from that for the smaller k,
    which has room for another. A solution for a smaller k is also one for k, so that the objective never increases with
    k.

    Parameters
    ----------
    loss : Loss
        φ.
    ks : iterable of int
        The maximum numbers of nonzeros.
    C : ConvexSet or None, default=None
        The set; None for the whole space.
    x0 : array-like or None, default=None
        A start; its support is searched from too.
    forced_in, forced_out : array-like of int, default=()
        Variables that are always, or never, in the support.
    min_nonzero : float or array-like, default=0.0
        Minimum absolute value of a nonzero, one number or one per variable.
    groups : array-like or None, default=None
        A label for each variable: variables of one label enter the support together or not at all, and k counts groups.
    group_limits : tuple or None, default=None
        (labels, {label: (min, max)}): limits on the number of selected variables per label, None for no maximum; with
        `groups`, of groups.
    requires : dict or None, default=None
        {child: parents}, in indices: a variable is in the support only with its parents. Variables of a support may be
        0, and count all the same.
    effort : int or None, default=None
        Number of independent searches; the best result is returned. None: one.
    n_jobs : int or None, default=None
        Number of threads.
    random_state : int, numpy.random.Generator or None, default=None
        Seed of the search. Results do not depend on `n_jobs`.
    gap : float or None, default=None
        Target optimality gap (0.01 for 1 %) of a branch and bound after the search; None to skip it. `lower_bound`,
        `gap` and `nodes` of the results say how far it came; if no bound is available, the message says why.
    max_nodes : int or None, default=None
        Maximum number of branch-and-bound nodes for each k.
    tol : float, default=1e-5
        Relative change at which first-order runs end.
    max_iter : int, default=10000
        Maximum number of first-order iterations, of all k together.
    max_time : float or None, default=None
        Time limit in seconds for the whole path.
    settings : SearchSettings or None, default=None
        Advanced search settings.
    callback : callable or None, default=None
        Called as in `scipy.optimize.minimize`; raise StopIteration to stop.
    verbose : int, default=0
        Whether to print a line per k.
    progress : bool, default=False
        Whether to show progress bars, as `show_progress` does.

    Returns
    -------
    KPath
        The solutions, ascending in k.

    Raises
    ------
    InfeasibleError
        If C holds no point with at most k nonzeros; the message says why.

    Examples
    --------
    >>> import numpy as np
    >>> import ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 20))
    >>> b = A[:, :3] @ [1.0, -2.0, 1.5] + 0.1 * rng.standard_normal(60)
    >>> path = ks.k_path(ks.LeastSquares(A, b), range(1, 5))
    >>> [entered.tolist() for entered in path.entered[:3]]
    [[1], [2], [0]]
    >>> bool((np.diff(path.objective) <= 0).all())
    True
    """
    if not isinstance(ks, Iterable) or isinstance(ks, str):
        raise TypeError(f"ks must hold the numbers of nonzeros to solve for, such as range(1, 11), got {ks!r}")
    sizes = sorted({check_integer(k, "ks", 1) for k in ks})
    if not sizes:
        raise ValueError("ks must hold at least one k, got none")
    request = check_request(  # that C has a point for the least k
        loss, sizes[0], C, x0, Stopping(tol=tol, max_iter=max_iter, max_time=max_time), callback, verbose,
        rules=(groups, group_limits, requires), by_entries=gap is not None or bool(np.any(min_nonzero)), name="ks",
    )  # fmt: skip
    top = replace(request, k=check_integer(sizes[-1], "ks", 1, int(request.rules.weight.sum())))
    problem = support_problem(request, forced_in, forced_out, min_nonzero, settings, most=top.k)
    plan = make_plan(1 if effort is None else check_integer(effort, "effort", 1), n_jobs, random_state)
    solver = PathSolver(top, problem, sizes, plan, make_gap_request(gap, max_nodes, plan.n_jobs))
    with solve_scope(top.loss, top.deadline, progress), VerboseLogging(verbose):
        solver.run()
        results = solver.judged()
        if verbose:
            for result in results:
                logger.info("%s", f"k = {result.k:>5} {result.fun:>16.9e} {result.message}")
    return KPath(results)


class PathSolver:
    """The path while it is solved: the incumbent for every k, all with one cache of supports."""

    def __init__(
        self, request: Request, problem: SupportProblem, sizes: list[int], plan: SearchOptions, gap: GapRequest | None
    ) -> None:
        self.request, self.problem, self.sizes, self.plan, self.gap_request = request, problem, sizes, plan, gap
        self.problems = {k: problem.with_changes(k=k) for k in sizes}
        self.incumbents = {k: Incumbent() for k in sizes}
        self.seconds = dict.fromkeys(sizes, 0.0)
        self.last_start: dict[tuple[int, str], Candidate | None] = {}  # neighbour's candidate that k was searched from
        self.status = dict.fromkeys(sizes, Status.STATIONARY)
        self.certificates = dict.fromkeys(sizes, UNPROVED)
        self.callback = as_scipy_callback(request.callback)
        self.bar: Bar = NULL_BAR

    def run(self) -> None:
        """Solve some k as `minimize` does; then go down by reducing and up by growing, while that helps."""
        sizes, full = self.sizes, [self.sizes[-1]]
        while full[-1] > sizes[0]:  # the largest k, the largest that is at most half of it, and so on
            full.append(max((k for k in sizes if 2 * k <= full[-1]), default=sizes[0]))
        if self.problem.columns_on_demand:  # moves are not ranked then, so neighbours do not help
            full = sizes
        proofs = (1 if self.gap_request is None else 2) * len(sizes)
        down = list(zip(sizes[-2::-1], sizes[:0:-1], strict=True))
        try:
            with bar("path", float(len(full) + 2 * ROUNDS * len(down) + proofs)) as self.bar:
                if self.request.interrupted:
                    raise KeyboardInterrupt
                for k in full:
                    self._search_fully(k)
                for _ in range(ROUNDS):
                    before = self._values()
                    for k, above in down:
                        if self.incumbents[k].best is not None or self.status[above] is not Status.UNBOUNDED:
                            self._search(k, "reduced", above)
                        if self.incumbents[k].best is None:
                            self._search_fully(k)
                    for below, k in pairwise(sizes):
                        self._search(k, "grown", below)
                    if self._values() == before:
                        break
                self._prove_swap_optimality()
                self._certify()
        except STOPS as stop:
            status = stop_status(stop)
            self.status = {k: was if was is Status.OPTIMAL else status for k, was in self.status.items()}
            self._ensure_point(sizes[-1], None)
        for k, above in down:  # a limit or an interrupt may have left a k without a point
            self._ensure_point(k, self.incumbents[above].best)

    def _ensure_point(self, k: int, at: Candidate | None) -> None:
        if self.incumbents[k].best is None:
            begin = self.request.beginning if at is None else at.full(self.problem.n)
            self.incumbents[k].best = fallback_point(self.problems[k], begin)

    def _count(self, k: int) -> None:
        """Show that one more search or proof begins."""
        self.bar.update(self.bar.done + 1, f"k = {k}")

    def _values(self) -> list[float]:
        return [np.inf if incumbent.best is None else incumbent.best.value for incumbent in self.incumbents.values()]

    def _notify(self, incumbent: Incumbent, searches: int) -> None:
        best = incumbent.found
        self.callback(lambda: best.full(self.problem.n), best.value, searches, np.nan, self.request.elapsed)

    def _take(self, k: int, name: str, found: SearchOutcome) -> None:
        """Record where a search for one k ended, and call the callback."""
        self.incumbents[k].record(name, found, self.request.elapsed)
        self._notify(self.incumbents[k], sum(len(incumbent.records) for incumbent in self.incumbents.values()))

    def _search_fully(self, k: int) -> None:
        """Search one k from all starts."""
        self._count(k)
        began, request = time.perf_counter(), replace(self.request, k=k)
        problem, plan = self.problems[k], self.plan
        search = make_search(request, problem, plan, lambda found: self._notify(found, len(found.records)))
        self.incumbents[k] = search.incumbent
        self.status[k] = search.run()
        self.seconds[k] += time.perf_counter() - began
        if self.status[k] in (Status.INTERRUPTED, Status.CALLBACK_STOP):
            raise KeyboardInterrupt if self.status[k] is Status.INTERRUPTED else StopIteration

    def _search(self, k: int, name: str, neighbour: int) -> None:
        """Search one k locally from its neighbour's candidate, unless it was searched from there before."""
        self._count(k)
        began, problem, incumbent = time.perf_counter(), self.problems[k], self.incumbents[k]
        at, known = self.incumbents[neighbour].best, self.last_start.get((k, name))
        if (at is not None and known is at) or self.status[k] in (Status.OPTIMAL, Status.UNBOUNDED):
            return
        self.last_start[k, name] = at
        try:
            if incumbent.best is None and enumerate_supports(problem, incumbent, began):
                self.status[k] = Status.OPTIMAL if incumbent.proved else Status.STATIONARY
            elif (candidate := drop_to_k(at, problem) if name == "reduced" else at) is not None:
                with one_thread():
                    self._take(k, name, local_search(problem, choose_strategy(problem), candidate))
        except UnboundedError:
            self.status[k] = Status.UNBOUNDED
        self.seconds[k] += time.perf_counter() - began

    def _prove_swap_optimality(self) -> None:
        """Check all swaps of each solution that was found by descent only."""
        for k in self.sizes:
            self._count(k)
            problem, incumbent, best = self.problems[k], self.incumbents[k], self.incumbents[k].best
            if best is None or incumbent.proved or self.status[k] not in (Status.STATIONARY, Status.SWAP_OPTIMAL):
                continue
            self.status[k] = Status.STATIONARY  # an earlier solution's proof does not hold for this one
            if not problem.expired and (problem.can.gains_are_bounds or problem.can.spectral):
                began = time.perf_counter()
                try:
                    self._take(k, "all moves", prove_or_improve(problem, best))
                except UnboundedError:
                    self.status[k] = Status.UNBOUNDED
                self.seconds[k] += time.perf_counter() - began

    def _certify(self) -> None:
        """Bound each k if requested or enumerated; a better point found for one k is a point for the next k too."""
        below: Candidate | None = None
        for k in self.sizes:
            self._count(k)
            problem, incumbent = self.problems[k], self.incumbents[k]
            if below is not None and incumbent.best is not None and below.value < incumbent.best.value:
                incumbent.best, incumbent.proved = below, False
            began, status = time.perf_counter(), final_status(problem, incumbent, self.status[k])
            self.certificates[k] = certify(problem, incumbent, status, self.gap_request)
            self.seconds[k] += time.perf_counter() - began
            if self.certificates[k].status is Status.INTERRUPTED:
                raise KeyboardInterrupt
            below = incumbent.best

    def judged(self) -> list[Result]:
        """Return every result, re-solved on the raw data; replace one that rounding puts above a smaller k."""
        results: list[Result] = []
        below: Candidate | None = None
        for k in self.sizes:
            problem, incumbent, certificate = self.problems[k], self.incumbents[k], self.certificates[k]
            if incumbent.best is None:
                where = f"{describe_constraints(problem)} was found in C = {self.request.C}"
                raise InfeasibleError(f"no feasible point {where} (infeasibility is not proved)")
            began, status = time.perf_counter(), final_status(problem, incumbent, self.status[k])
            request = replace(self.request, k=k, started=began - self.seconds[k])
            result = judge_search(request, problem, incumbent, status, certificate)
            if results and result.fun > results[-1].fun:
                # swap-optimality was proved for the support that is replaced
                status = Status.STATIONARY if status is Status.SWAP_OPTIMAL else status
                incumbent = replace(incumbent, best=below, proved=status is Status.OPTIMAL)
                result = judge_search(request, problem, incumbent, status, certificate)
            else:
                below = incumbent.best
            results.append(result)
        return results


def drop_to_k(at: Candidate | None, problem: SupportProblem) -> Candidate | None:
    """Return a candidate without the variables that cost least, until k are left; None if C has no point then."""
    if at is None or problem.allows(at.support):
        return at
    search = without_updates(problem).search(problem)
    search.neighbourhood.move_to(at)
    search.drop_down_to(search.k)
    return search.neighbourhood.snapshot() if problem.allows(search.neighbourhood.support) else None
