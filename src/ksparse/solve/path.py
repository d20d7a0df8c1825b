"""All k along one path: search each k from its neighbours, reduced from the larger k and grown from the smaller one.

A few k are solved as `minimize` does. All k share one cache of supports.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ksparse.certify.prove import Wanted
from ksparse.errors import InfeasibleError, UnboundedError
from ksparse.firstorder.problem import Stopping
from ksparse.losses import Loss
from ksparse.result import Result, Status
from ksparse.search.again import local_search
from ksparse.search.candidate import Candidate, Incumbent, SearchOutcome
from ksparse.search.enumeration import asked, try_all
from ksparse.search.explore import Plan, conclude, fallback_point, settle
from ksparse.search.problem import SupportProblem
from ksparse.search.settings import SearchSettings
from ksparse.search.strategy import choose_strategy, without_updates
from ksparse.sets import ConvexSet
from ksparse.solve.judge import NOTHING, judge_search
from ksparse.solve.minimize import certified, exploration, make_plan, make_wanted
from ksparse.solve.request import Request, check_request, fitting_threads, support_problem
from ksparse.util import display
from ksparse.util.arrays import Vector
from ksparse.util.checks import check_integer
from ksparse.util.evaluations import counting
from ksparse.util.progress import NULL_BAR, Bar, VerboseLogging, as_scipy_callback, bar, logger, show_progress
from ksparse.util.resources import OutOfTimeError, deadline_scope, one_thread

if TYPE_CHECKING:
    import pandas as pd

ROUNDS = 3  # times down and up the path at most


@dataclass(frozen=True)
class KPath:
    """The answers for every k asked for, ascending; the objective never rises with k. What `k_path` returns.

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
        """The numbers of nonzeros allowed."""
        return np.array([result.k for result in self.results])

    @property
    def objective(self) -> Vector:
        """φ at each answer."""
        return np.array([result.fun for result in self.results])

    @property
    def x(self) -> Vector:
        """The answers, one per row."""
        return np.array([np.asarray(result.x) for result in self.results])

    @property
    def supports(self) -> list[Vector]:
        """The nonzeros of each answer."""
        return [result.support for result in self.results]

    @property
    def entered(self) -> list[Vector]:
        """The variables that are in an answer and were not in the one before."""
        return [np.setdiff1d(now, before) for before, now in self._pairs()]

    @property
    def left(self) -> list[Vector]:
        """The variables that were in the answer before and are not in this one."""
        return [np.setdiff1d(before, now) for before, now in self._pairs()]

    def _pairs(self) -> list[tuple[Vector, Vector]]:
        supports = self.supports
        return list(zip([np.zeros(0, dtype=np.intp), *supports], supports, strict=False))

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, k: int) -> Result:
        """The answer for at most k nonzeros."""
        for result in self.results:
            if result.k == k:
                return result
        raise KeyError(f"k = {k} is not on the path, which has {', '.join(map(str, self.ks))}")

    def _rows(self) -> list[tuple[str, ...]]:
        def listed(members: Vector) -> str:
            return ", ".join(map(str, members[:8])) + (", ..." if members.size > 8 else "")

        triples = zip(self.results, self.entered, self.left, strict=True)
        return [
            (str(r.k), f"{r.fun:.8g}", r.status.name, listed(entered), listed(left)) for r, entered, left in triples
        ]

    def __repr__(self) -> str:
        lines = [
            f"{k:>5} {fun:>16} {status:>17}  {entered}" + (f"  without {left}" if left else "")
            for k, fun, status, entered, left in self._rows()
        ]
        return "\n".join([f"{'k':>5} {'objective':>16} {'status':>17}  enters", *lines])

    def _repr_html_(self) -> str:
        """What a notebook shows: the objective against k, and a line per k."""
        objective = [float(value) for value in self.objective]
        chart = (
            display.curve([float(k) for k in self.ks], objective, "objective against k")
            if np.isfinite(objective).all()
            else ""
        )
        return f'<div class="ksparse-path">{chart}{display.grid(("k", "objective", "status", "enters", "leaves"), self._rows())}</div>'

    def to_frame(self) -> pd.DataFrame:
        """One row per k."""
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
    """The best point of C with at most k nonzeros, for every k of `ks`.

    The largest k, and a few below, each half of the last, are solved as `minimize` does. Then every k is searched from
    the answer above, less its least useful variables, and from the answer below, which has room for another. An answer
    below is also one for k, so that the objective never rises with k.

    Parameters
    ----------
    loss : Loss
        φ.
    ks : iterable of int
        The numbers of nonzeros allowed.
    C : ConvexSet or None, default=None
        The set; None for the whole space.
    x0 : array-like or None, default=None
        A start; its support is searched from too.
    forced_in, forced_out : array-like of int, default=()
        Variables that are always, or never, in the support.
    min_nonzero : float or array-like, default=0.0
        Least size of a nonzero, one number or one per variable.
    groups : array-like or None, default=None
        A label for each variable: those of one label enter the support together or not at all, and k counts such
        groups.
    group_limits : tuple or None, default=None
        (labels, {label: (least, most)}): a label for each variable, and how many of a label must and may be in the
        support; None for no most. With `groups` it counts groups.
    requires : dict or None, default=None
        {child: parents}, in indices: a variable is in the support only with its parents. Members of a support may be 0,
        and count all the same.
    effort : int or None, default=None
        Whole searches, from other seeds, of which the best counts; more is never worse. None for one, or with max_time
        as many as bring something in the time.
    n_jobs : int or None, default=None
        Threads to run searches, and to bound a tree's nodes, in.
    random_state : int, numpy.random.Generator or None, default=None
        Seed of the first search; the same seed gives the same answer, whatever n_jobs.
    gap : float or None, default=None
        Go on after the search until it is proved that no k-sparse point is better than the answer by more than this
        share of the value (0.01 for 1 %). `lower_bound`, `gap` and `nodes` of the result say how far that came,
        whatever stopped it; where no bound can be had its message says why.
    max_nodes : int or None, default=None
        Nodes of the tree at most.
    tol : float, default=1e-5
        Relative change at which first-order runs end.
    max_iter : int, default=10000
        Iterations at most, of all k together.
    max_time : float or None, default=None
        Seconds for the whole path.
    settings : SearchSettings or None, default=None
        The numbers that steer the search, where the defaults will not do.
    callback : callable or None, default=None
        Called as scipy calls one: with `intermediate_result` if that is its parameter's name, else with x.
        StopIteration ends the run.
    verbose : int, default=0
        Whether to print a table of the search.
    progress : bool, default=False
        Whether to show bars while it runs, as `show_progress` does.

    Returns
    -------
    KPath
        The answers, ascending in k.

    Raises
    ------
    ValueError, TypeError
        If an argument is not what it must be; the message names it. Nothing has been computed by then.
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
    sizes, by_entries = _sizes(ks), gap is not None or bool(np.any(min_nonzero))
    stopping = Stopping(tol=tol, max_iter=max_iter, max_time=max_time)
    # asks whether C has a point for the least k
    request = check_request(
        loss, sizes[0], C, x0, stopping, callback, verbose, "ks", groups, group_limits, requires, by_entries=by_entries
    )
    top = replace(request, k=check_integer(sizes[-1], "ks", 1, request.members))
    problem = support_problem(request, forced_in, forced_out, min_nonzero, settings, most=top.k)
    plan = make_plan(1 if effort is None else effort, n_jobs, random_state, "auto")
    walk = Walk(top, problem, sizes, plan, make_wanted(gap, max_nodes, plan.n_jobs))
    quiet = np.errstate(over="ignore", invalid="ignore")
    with (
        show_progress(progress),
        VerboseLogging(verbose),
        deadline_scope(top.deadline),
        fitting_threads(top.loss),
        counting(),
        quiet,
    ):
        walk.go()
        results = walk.judged()
        if verbose:
            for result in results:
                logger.info("%s", f"k = {result.k:>5} {result.fun:>16.9e} {result.message}")
    return KPath(results)


def _sizes(ks: Iterable[int]) -> list[int]:
    if not isinstance(ks, Iterable) or isinstance(ks, str):
        raise TypeError(f"ks must hold the numbers of nonzeros to solve for, such as range(1, 11), got {ks!r}")
    sizes = sorted({check_integer(k, "ks", 1) for k in ks})
    if not sizes:
        raise ValueError("ks must hold at least one k, got none")
    return sizes


class Walk:
    """The path while it is made: the best candidate for every k, all with one memory of supports."""

    def __init__(
        self, request: Request, problem: SupportProblem, sizes: list[int], plan: Plan, wanted: Wanted | None = None
    ) -> None:
        self.request, self.sizes, self.plan, self.wanted = request, sizes, plan, wanted
        self.problems, self.n = {k: problem.but(k=k) for k in sizes}, problem.n
        self.incumbents = {k: Incumbent() for k in sizes}
        self.spent = dict.fromkeys(sizes, 0.0)
        self.begun: dict[tuple[int, str], Candidate] = {}  # whose answer each k was last searched from
        self.status = dict.fromkeys(sizes, Status.STATIONARY)
        self.certificates = dict.fromkeys(sizes, NOTHING)
        self.tell = as_scipy_callback(request.callback)
        self.bar: Bar = NULL_BAR

    def go(self) -> None:
        """Some k as `minimize` does them; then down by reducing and up by growing, while that helps."""
        with bar("path", float(self._most())) as self.bar:
            self._go()

    def _most(self) -> int:
        """Searches and proofs at most: rounds that bring nothing are left out."""
        rounds = ROUNDS
        return (
            len(_landmarks(self.sizes))
            + 2 * rounds * (len(self.sizes) - 1)
            + (1 if self.wanted is None else 2) * len(self.sizes)
        )

    def _count(self, k: int) -> None:
        """One more of them begins."""
        self.bar.update(self.bar.done + 1, f"k = {k}")

    def _go(self) -> None:
        try:
            if self.request.interrupted:
                raise KeyboardInterrupt
            hidden = self.problems[self.sizes[0]].can.columns_on_demand  # then a walk has no exchanges to rank
            for k in self.sizes if hidden else _landmarks(self.sizes):
                self._full(k)
            for _ in range(ROUNDS):
                before = self._values()
                for k, above in zip(self.sizes[-2::-1], self.sizes[:0:-1], strict=True):
                    self._down(k, above)
                for below, k in pairwise(self.sizes):
                    self._search(k, "grown", below, self._best)
                if self._values() == before:
                    break
            self._prove()
            self._certify()
        except StopIteration:
            self._end(Status.CALLBACK_STOP)
        except KeyboardInterrupt:
            self._end(Status.INTERRUPTED)
        except OutOfTimeError:
            self._end(Status.TIME_LIMIT)
        for k, above in zip(
            self.sizes[-2::-1], self.sizes[:0:-1], strict=True
        ):  # where a limit or an interrupt left a gap
            if self.incumbents[k].best is None:
                best = self.incumbents[above].best
                begin = self.request.beginning if best is None else best.full(self.n)
                self.incumbents[k].best = fallback_point(self.problems[k], begin)

    def _end(self, status: Status) -> None:
        """All were stopped; what was proved before is proved."""
        self.status = {k: was if was is Status.OPTIMAL else status for k, was in self.status.items()}
        top = self.incumbents[self.sizes[-1]]
        top.best = top.best or fallback_point(self.problems[self.sizes[-1]], self.request.beginning)

    def _prove(self) -> None:
        """Where the walk only descended, a look at all exchanges of each answer."""
        for k in self.sizes:
            self._count(k)
            problem, incumbent = self.problems[k], self.incumbents[k]
            if (
                incumbent.best is None
                or incumbent.proved
                or self.status[k] not in (Status.STATIONARY, Status.SWAP_OPTIMAL)
            ):
                continue
            self.status[k] = Status.STATIONARY  # what was proved of an earlier answer is not of this one
            if not problem.expired and (problem.can.gains_are_bounds or problem.can.spectral):
                began = time.perf_counter()
                try:
                    self._take(k, "all exchanges", settle(problem, incumbent.best))
                except UnboundedError:
                    self.status[k] = Status.UNBOUNDED
                self.spent[k] += time.perf_counter() - began

    def _certify(self) -> None:
        """A bound for each k, where one is wanted or all supports were tried; what a tree finds for one k is an answer for the next."""
        for below, k in zip([0, *self.sizes], self.sizes, strict=False):
            self._count(k)
            problem, incumbent, better = (
                self.problems[k],
                self.incumbents[k],
                self.incumbents[below].best if below else None,
            )
            if better is not None and incumbent.best is not None and better.value < incumbent.best.value:
                incumbent.best, incumbent.proved = better, False
            began, status = time.perf_counter(), conclude(problem, incumbent, self.status[k])
            self.certificates[k] = certified(problem, incumbent, status, self.wanted, lambda _: None)
            self.spent[k] += time.perf_counter() - began
            if self.certificates[k].status is Status.INTERRUPTED:
                raise KeyboardInterrupt

    def _take(self, k: int, name: str, found: SearchOutcome) -> None:
        """Note where a search for one k ended, and tell the callback."""
        incumbent = self.incumbents[k]
        incumbent.record(name, found, self.request.elapsed)
        best = incumbent.found
        searches = sum(len(other.records) for other in self.incumbents.values())
        self.tell(lambda: best.full(self.n), best.value, searches, np.nan, self.request.elapsed)

    def _best(self, k: int) -> Candidate | None:
        return self.incumbents[k].best

    def _values(self) -> list[float]:
        return [np.inf if incumbent.best is None else incumbent.best.value for incumbent in self.incumbents.values()]

    def _full(self, k: int) -> None:
        """One k with all its starts."""
        self._count(k)
        began = time.perf_counter()
        request = replace(self.request, k=k)
        search = exploration(request, self.problems[k], self.plan, self._told)
        self.incumbents[k] = search.incumbent
        self.status[k] = search.run()
        self.spent[k] += time.perf_counter() - began
        if self.status[k] is Status.INTERRUPTED:
            raise KeyboardInterrupt
        if self.status[k] is Status.CALLBACK_STOP:
            raise StopIteration

    def _told(self, incumbent: Incumbent) -> None:
        best = incumbent.found
        self.tell(lambda: best.full(self.n), best.value, len(incumbent.records), np.nan, self.request.elapsed)

    def _down(self, k: int, above: int) -> None:
        """One k from the one above; where nothing of that fits, or that has no optimum to begin from, with all starts."""
        if self.incumbents[k].best is not None or self.status[above] is not Status.UNBOUNDED:
            self._search(k, "reduced", above, lambda above: reduced(self._best(above), self.problems[k]))
        if self.incumbents[k].best is None:
            self._full(k)

    def _search(self, k: int, name: str, neighbour: int, start: Callable[[int], Candidate | None]) -> None:
        """A local search for one k from its neighbour's answer, unless it has begun there before."""
        self._count(k)
        began, problem, incumbent, best = (
            time.perf_counter(),
            self.problems[k],
            self.incumbents[k],
            self._best(neighbour),
        )
        if self.status[k] in (Status.OPTIMAL, Status.UNBOUNDED) or (
            best is not None and self.begun.get((k, name)) is best
        ):
            return
        if best is not None:
            self.begun[k, name] = best
        try:
            if incumbent.best is None and try_all(problem, incumbent, began):
                self.status[k] = Status.OPTIMAL if incumbent.proved else Status.STATIONARY
            else:
                candidate = start(neighbour)
                if candidate is not None:
                    with one_thread():
                        self._take(k, name, local_search(problem, choose_strategy(problem), candidate))
        except UnboundedError:
            self.status[k] = Status.UNBOUNDED
        self.spent[k] += time.perf_counter() - began

    def judged(self) -> list[Result]:
        """Every answer re-solved on the raw data; one that came out above its neighbour below by a rounding takes its place."""
        results: list[Result] = []
        below: Candidate | None = None
        for k in self.sizes:
            problem, incumbent = self.problems[k], self.incumbents[k]
            if incumbent.best is None:
                raise InfeasibleError(
                    f"no point of C = {self.request.C} {asked(problem)} was found that meets every constraint"
                )
            began = time.perf_counter()
            status = conclude(problem, incumbent, self.status[k])
            request = replace(self.request, k=k, started=began - self.spent[k])
            result = judge_search(request, problem, incumbent, status, self.certificates[k])
            if (
                results and result.fun > results[-1].fun
            ):  # what was proved of this support's neighbours is not of the other's
                kept = Status.STATIONARY if status is Status.SWAP_OPTIMAL else status
                result = judge_search(
                    request,
                    problem,
                    replace(incumbent, best=below, proved=status is Status.OPTIMAL),
                    kept,
                    self.certificates[k],
                )
            else:
                below = incumbent.best
            results.append(result)
        return results


def reduced(at: Candidate | None, problem: SupportProblem) -> Candidate | None:
    """A candidate without what costs least, until k variables are left; None where C has no point then."""
    if at is None or problem.allows(at.support):
        return at
    search = without_updates(problem).search(problem)
    search.hood.move_to(at)
    search.reduce(search.k)
    return search.hood.snapshot() if problem.allows(search.hood.support) else None


def _landmarks(sizes: list[int]) -> list[int]:
    """The largest k, the largest that is at most half of it, and so on."""
    found = [sizes[-1]]
    while found[-1] > sizes[0]:
        found.append(max((k for k in sizes if 2 * k <= found[-1]), default=sizes[0]))
    return found
