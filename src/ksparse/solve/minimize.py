"""Minimise a loss under a cardinality constraint or a penalty, over a convex set."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ksparse.certify.prove import Certificate, Progress, Wanted, prove
from ksparse.errors import InfeasibleError, MissingPieceError
from ksparse.firstorder.continuation import continued
from ksparse.firstorder.loop import drive
from ksparse.firstorder.methods import Method
from ksparse.firstorder.problem import Problem, Stopping
from ksparse.firstorder.steps import StepRule
from ksparse.losses import Loss
from ksparse.penalties import Penalty
from ksparse.result import Result, Status
from ksparse.search.candidate import Incumbent
from ksparse.search.explore import Exploration, Plan, fallback_point
from ksparse.search.problem import SupportProblem
from ksparse.search.settings import SearchSettings
from ksparse.search.starts import START_STEPS, START_TOL
from ksparse.search.strategy import choose_strategy
from ksparse.sets import ConvexSet
from ksparse.solve.judge import gap_between, judge_given, judge_penalized, judge_search
from ksparse.solve.penalty_grid import resolve_method, resolve_rule, resolve_weights, solve_on_grid
from ksparse.solve.request import Request, check_pieces, check_request, fitting_threads, support_problem, try_out
from ksparse.util.arrays import Array, namespace
from ksparse.util.checks import check_integer, check_n_jobs, check_number, check_piece
from ksparse.util.evaluations import counting
from ksparse.util.progress import Bar, VerboseLogging, as_scipy_callback, bar, logger, show_progress
from ksparse.util.resources import deadline_scope

SHOWN = 1.0  # seconds between two lines of a tree


def minimize_penalized(
    loss: Loss,
    penalty: Penalty,
    *,
    C: ConvexSet | None = None,
    method: str | Method = "apdca",
    step: str | StepRule = "backtracking",
    continuation: bool = False,
    x0: Any = None,
    tol: float = 1e-5,
    tol_residual: float = 0.0,
    stop: str | None = None,
    patience: int | None = None,
    max_iter: int = 10_000,
    max_time: float | None = None,
    callback: Callable[..., Any] | None = None,
    verbose: int = 0,
    progress: bool = False,
) -> Result:
    """A stationary point of F = φ + g over C, by one of the paper's first-order methods.

    Parameters
    ----------
    loss : Loss
        φ.
    penalty : Penalty
        g = g₁ − g₂.
    C : ConvexSet or None, default=None
        The set; None for the whole space.
    method : str or Method, default="apdca"
        "pdca", "apdca", "pdcae", "gist", "nmapg", or a method object with its own parameters.
    step : str or step rule, default="backtracking"
        "backtracking", "fixed" (1/L), or a rule such as `FixedStep`; pdcae always steps 1/L.
    continuation : bool, default=False
        Solve for larger λ first, each a fourth of the last, from one answer to the next: far fewer steps where λ is
        small. For penalties with λ‖x‖₁ in them (all but `TopK2`). The trace is that of the last λ.
    x0 : array-like or None, default=None
        The start, moved into C; None for 0, or 1/n in every entry where 0 is stationary for φ.
    tol : float, default=1e-5
        Stop when F changes by less than tol relative to itself, or x by less than tol·max(1, ‖x‖), see `stop`.
    tol_residual : float, default=0.0
        Also stop at this relative stationarity residual; 0 for never.
    stop : {"objective", "step"} or None, default=None
        Which change tol is for; None for the rule that the paper uses with the method.
    patience : int or None, default=None
        How many such small changes in a row it takes; None for 2 with pdca and gist, whose Barzilai–Borwein steps may
        stand still once by accident, and 1 with the others.
    max_iter : int, default=10000
        Iterations at most.
    max_time : float or None, default=None
        Seconds; the best point so far is returned.
    callback : callable or None, default=None
        Called as scipy calls one: with `intermediate_result` if that is its parameter's name, else with x.
        StopIteration ends the run.
    verbose : int, default=0
        Whether to print a table of the search.
    progress : bool, default=False
        Whether to show bars while it runs, as `show_progress` does.

    Returns
    -------
    Result
        The point; its `fun` is φ + g.

    Raises
    ------
    ValueError, TypeError
        If an argument is not what it must be; the message names it.
    MissingPieceError
        If the method needs something that the loss, set or penalty does not have.

    See Also
    --------
    minimize : At most k nonzeros instead of a penalty.
    weight_max : The weight from which on 0 is stationary.

    Examples
    --------
    >>> import numpy as np
    >>> import ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 20))
    >>> b = A[:, :3] @ [1.0, -2.0, 1.5] + 0.1 * rng.standard_normal(60)
    >>> ks.minimize_penalized(ks.LeastSquares(A, b), ks.MCP(lam=10.0, theta=0.1)).support
    array([0, 1, 2])
    """
    started = time.perf_counter()
    check_piece(penalty, Penalty, "penalty")
    loss, C, start = check_pieces(loss, C, x0)
    chosen = resolve_method(method, step)
    stopping = Stopping(tol, tol_residual, max_iter, max_time, stop, patience)
    problem = Problem(loss, penalty, C, None if start is None else start.shape[0])
    before = loss.evaluations or (0, 0)
    try_out(loss, problem.C, problem.n, start)
    deadline = np.inf if max_time is None else started + max_time
    quiet = np.errstate(over="ignore", invalid="ignore")  # as in `minimize`
    with show_progress(progress), deadline_scope(deadline), fitting_threads(loss), counting(), quiet:
        begin = _first_point(problem) if start is None else start
        if continuation:
            run = continued(chosen, problem, begin, stopping, callback, verbose)
        else:
            run = drive(chosen, problem, begin, stopping, callback=callback, verbose=verbose)
        return judge_penalized(problem, run, chosen, time.perf_counter() - started, before)


def _first_point(problem: Problem) -> Array:
    """0, or 1/n in every entry where 0 is not in C or already stationary for φ."""
    zero = problem.zeros()
    if problem.C.contains(zero) and bool(namespace(zero).any(problem.point(zero).gradient != 0)):
        return zero
    return zero + 1.0 / problem.n


def minimize(
    loss: Loss,
    k: int,
    C: ConvexSet | None = None,
    *,
    method: str | Method = "auto",
    rho: str | float | Sequence[float] = "auto",
    step: str | StepRule = "backtracking",
    continuation: bool = False,
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
    settings: SearchSettings | None = None,
    tol: float = 1e-5,
    max_iter: int = 10_000,
    max_time: float | None = None,
    callback: Callable[..., Any] | None = None,
    verbose: int = 0,
    progress: bool = False,
) -> Result:
    """The best k-sparse point of C that we can find: min φ(x) s.t. ‖x‖₀ ≤ k, x ∈ C.

    Parameters
    ----------
    loss : Loss
        φ.
    k : int
        Nonzeros allowed, 0 for x = 0; of a loss with several coefficients per feature (`MultiResponse`, `Multinomial`)
        features, as in forced_in and forced_out.
    C : ConvexSet or None, default=None
        The set; None for the whole space.
    method : str or Method, default="auto"
        "auto", our best: starts of several kinds, each improved by exchanging variables until none helps. Or one of the
        paper's methods: "apdca", "pdca", "pdcae", "gist", "nmapg" on the top-(k,2) penalty, rounded and solved anew on
        the support; "iht" on the constraint itself; "l1pdca", "l1dca" on the top-(k,1) penalty and "mipdca" on relaxed
        indicators, taken as they are where k-sparse (the last two need ksparse[baselines]); or a method object with its
        own parameters.
    rho : float, sequence of float or "auto", default="auto"
        For the paper's methods the penalty weight, or several; "auto" for the paper's grid, 1e-4 to 1e4. Of several the
        best answer is returned. For method="auto" the weights of its penalised starts; "auto" takes them from the data.
    step : str or step rule, default="backtracking"
        For the paper's methods: "backtracking", "fixed" (1/L), or a rule such as `FixedStep`.
    continuation : bool, default=False
        For the paper's methods: start each weight where the one before ended, instead of at x0.
    x0 : array-like or None, default=None
        A start. "auto" always searches from its support too, so that the answer is never worse than a feasible k-sparse
        x0. The paper's methods start there, moved into C; None for 1/n in every entry.
    forced_in, forced_out : array-like of int, default=()
        Variables that are always, or never, in the support. For "auto".
    min_nonzero : float or array-like, default=0.0
        Least size of a nonzero, one number or one per variable. For "auto".
    groups : array-like or None, default=None
        A label for each variable: those of one label enter the support together or not at all, and k counts such
        groups. For "auto".
    group_limits : tuple or None, default=None
        (labels, {label: (least, most)}): a label for each variable, and how many of a label must and may be in the
        support; None for no most. With `groups` it counts groups. For "auto".
    requires : dict or None, default=None
        {child: parents}, in indices: a variable is in the support only with its parents. Members of a support may be 0,
        and count all the same. For "auto".
    effort : int or None, default=None
        Whole searches, from other seeds, of which the best counts; more is never worse. None for one, or with max_time
        as many as bring something in the time. For "auto".
    n_jobs : int or None, default=None
        Threads to run searches, and to bound a tree's nodes, in.
    random_state : int, numpy.random.Generator or None, default=None
        Seed of the first search; the same seed gives the same answer, whatever n_jobs.
    gap : float or None, default=None
        Go on after the search until it is proved that no k-sparse point is better than the answer by more than this
        share of the value (0.01 for 1 %). `lower_bound`, `gap` and `nodes` of the result say how far that came,
        whatever stopped it; where no bound can be had its message says why. For "auto".
    max_nodes : int or None, default=None
        Nodes of the tree at most. For "auto".
    settings : SearchSettings or None, default=None
        The numbers that steer the search, where the defaults will not do. For "auto".
    tol : float, default=1e-5
        Relative change at which first-order runs end.
    max_iter : int, default=10000
        Iterations at most, of all weights or starts together.
    max_time : float or None, default=None
        Seconds; the best feasible point so far is returned.
    callback : callable or None, default=None
        Called as scipy calls one: with `intermediate_result` if that is its parameter's name, else with x.
        StopIteration ends the run.
    verbose : int, default=0
        Whether to print a table of the search.
    progress : bool, default=False
        Whether to show bars while it runs, as `show_progress` does.

    Returns
    -------
    Result
        The answer, every value in it recomputed from x and the raw data.

    Raises
    ------
    ValueError, TypeError
        If an argument is not what it must be; the message names it. Nothing has been computed by then.
    InfeasibleError
        If C holds no point with at most k nonzeros; the message says why.
    MissingPieceError
        If a method needs something that the loss, set or penalty does not have.

    See Also
    --------
    k_path : Every k along one path.
    near_optimal : Every support that is nearly as good.
    minimize_penalized : A penalty instead of k.

    Examples
    --------
    >>> import numpy as np
    >>> import ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 20))
    >>> b = A[:, :3] @ [1.0, -2.0, 1.5] + 0.1 * rng.standard_normal(60)
    >>> result = ks.minimize(ks.LeastSquares(A, b), k=3, C=ks.Nonnegative([0, 2]))
    >>> result.support
    array([0, 1, 2])
    >>> result.message
    'proved optimal'
    """
    stopping, rules = Stopping(tol=tol, max_iter=max_iter, max_time=max_time), (groups, group_limits, requires)
    by_entries = gap is not None or bool(np.any(min_nonzero))
    request = check_request(loss, k, C, x0, stopping, callback, verbose, "k", *rules, by_entries=by_entries, least=0)
    # arithmetic that overflows is seen by what it leaves: values that are not finite are refused where they arise
    quiet = np.errstate(over="ignore", invalid="ignore")
    with show_progress(progress), deadline_scope(request.deadline), fitting_threads(request.loss), counting(), quiet:
        if isinstance(method, str) and method == "auto":
            resolve_rule(step)  # not used, but not wrong either
            problem = support_problem(request, forced_in, forced_out, min_nonzero, settings)
            plan = make_plan(effort, n_jobs, random_state, rho)
            wanted = make_wanted(gap, max_nodes, plan.n_jobs)
            if request.k == 0:
                return _zero(request)
            return solve_by_search(
                request, problem, plan if wanted is None else replace(plan, effort=plan.effort or 1), wanted
            )
        if request.loss.per_feature > 1:
            raise MissingPieceError(
                f"{type(request.loss).__name__} needs method='auto': the paper's methods count entries, not features"
            )
        _refuse_for_papers_methods(
            forced_in=forced_in, forced_out=forced_out, min_nonzero=min_nonzero, effort=effort, settings=settings,
            gap=None if gap is None else True, max_nodes=max_nodes, groups=groups is not None or None,
            group_limits=group_limits is not None or None, requires=requires is not None or None,
        )  # fmt: skip
        chosen = resolve_method(method, step)
        return solve_on_grid(request, chosen, rho, continuation) if request.k else _zero(request)


def _zero(request: Request) -> Result:
    """Return the answer for k = 0: no other point has so few nonzeros."""
    if not request.C.contains(request.kind):
        raise InfeasibleError(f"C = {request.C} holds no point with at most k = 0 nonzeros")
    return judge_given(request.loss, request.C, 0, np.zeros(request.n), Status.OPTIMAL, request.elapsed, method="auto")


def _refuse_for_papers_methods(**given: Any) -> None:
    for name, value in given.items():
        if value is not None and (np.size(value) > 0 if np.ndim(value) else value != 0):
            raise ValueError(f"{name} needs method='auto'; the paper's methods do not know it")


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
    stopping = request.stopping
    rough = replace(stopping, tol=max(stopping.tol, START_TOL), max_iter=min(stopping.max_iter, START_STEPS))
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
        row, best = incumbent.records[-1], incumbent.found
        if self.verbose:
            proved = "yes" if row["proved"] else "no"
            logger.info(
                "%s",
                f"{row['start']:<28} {row['fun']:>16.9e} {best.value:>16.9e} {row['swaps']:>6} {proved:>7} {row['elapsed']:>7.2f}s",
            )
        self._callback(lambda: best.full(n), best.value, len(incumbent.records), np.nan, row["elapsed"])

    def show(self, progress: Progress, incumbent: Incumbent, request: Request) -> None:
        """Where the tree stands, about once in a second; the callback hears of every round."""
        best, elapsed = incumbent.found, request.elapsed
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
