"""Minimise a loss with at most k nonzeros, or with a penalty, over a convex set."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ksparse.certify.prove import Certificate, GapRequest, Notify, TreeProgress, branch_and_bound
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
from ksparse.search.explore import SearchOptions, SupportSearch, fallback_point
from ksparse.search.problem import SupportProblem
from ksparse.search.settings import SearchSettings
from ksparse.search.starts import START_STEPS, START_TOL
from ksparse.search.strategy import choose_strategy
from ksparse.sets import ConvexSet
from ksparse.solve.judge import gap_between, judge_given, judge_penalized, judge_search
from ksparse.solve.penalty_grid import resolve_method, resolve_rule, resolve_weights, solve_on_grid
from ksparse.solve.request import Request, check_pieces, check_request, check_user_pieces, solve_scope, support_problem
from ksparse.util.arrays import namespace
from ksparse.util.checks import check_integer, check_n_jobs, check_number, check_piece
from ksparse.util.progress import VerboseLogging, as_scipy_callback, bar, logger

SECONDS_PER_LINE = 1.0  # between two lines on a tree


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
    """Compute a stationary point of F = φ + g over C, by one of the paper's first-order methods.

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
        Solve for larger λ first, each a quarter of the last, from one solution to the next: far fewer steps for small
        λ. For penalties with a term λ‖x‖₁ (all but `TopK2`). The trace is that of the last λ.
    x0 : array-like or None, default=None
        The start, moved into C; None for 0, or 1/n in every entry if 0 is stationary for φ.
    tol : float, default=1e-5
        Stop when F changes by less than tol relative to itself, or x by less than tol·max(1, ‖x‖), see `stop`.
    tol_residual : float, default=0.0
        Also stop at this relative stationarity residual; 0 for never.
    stop : {"objective", "step"} or None, default=None
        Which change tol applies to; None for the rule that the paper uses with the method.
    patience : int or None, default=None
        Number of consecutive small changes at which to stop; None for 2 with pdca and gist, whose Barzilai–Borwein
        steps may change little once by accident, and 1 with the others.
    max_iter : int, default=10000
        Maximum number of iterations.
    max_time : float or None, default=None
        Time limit in seconds; the best point so far is returned.
    callback : callable or None, default=None
        Called as in `scipy.optimize.minimize`; raise StopIteration to stop.
    verbose : int, default=0
        Whether to print a table of the iterations.
    progress : bool, default=False
        Whether to show progress bars, as `show_progress` does.

    Returns
    -------
    Result
        The point; its `fun` is φ + g.

    Raises
    ------
    MissingPieceError
        If the method needs a property that the loss, set or penalty does not have.

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
    chosen, stopping = resolve_method(method, step), Stopping(tol, tol_residual, max_iter, max_time, stop, patience)
    problem = Problem(loss, penalty, C, None if start is None else start.shape[0])
    before = loss.evaluations or (0, 0)
    check_user_pieces(loss, problem.C, problem.zeros(), start)
    with solve_scope(loss, np.inf if max_time is None else started + max_time, progress):
        begin = problem.zeros() if start is None else start
        xp = namespace(begin)
        if start is None and not (problem.C.contains(begin) and bool(xp.any(problem.point(begin).gradient != 0))):
            begin = begin + 1.0 / problem.n  # 0 is not in C, or already stationary for φ
        if continuation:
            run = continued(chosen, problem, begin, stopping, callback, verbose)
        else:
            run = drive(chosen, problem, begin, stopping, callback=callback, verbose=verbose)
        return judge_penalized(problem, run, chosen, time.perf_counter() - started, before)


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
    """Minimise φ(x) over the x in C with at most k nonzeros.

    Parameters
    ----------
    loss : Loss
        φ.
    k : int
        Maximum number of nonzeros, 0 for x = 0. For a loss with several coefficients per feature (`MultiResponse`,
        `Multinomial`) the number of features, as in forced_in and forced_out.
    C : ConvexSet or None, default=None
        The set; None for the whole space.
    method : str or Method, default="auto"
        "auto": local search by swaps of variables from several starts. Or one of the paper's first-order methods:
        "apdca", "pdca", "pdcae", "gist", "nmapg" on the top-(k,2) penalty, rounded and re-solved on the support; "iht"
        on the constraint itself; "l1pdca", "l1dca" on the top-(k,1) penalty and "mipdca" on relaxed indicators, not
        rounded if k-sparse (the last two need ksparse[baselines]); or a method object with its own parameters.
    rho : float, sequence of float or "auto", default="auto"
        For the paper's methods the penalty weight, or several, of which the best solution is returned; "auto" for the
        paper's grid, 1e-4 to 1e4. For method="auto" the weights of its penalised starts; "auto" chooses them from the
        data.
    step : str or step rule, default="backtracking"
        For the paper's methods: "backtracking", "fixed" (1/L), or a rule such as `FixedStep`.
    continuation : bool, default=False
        For the paper's methods: start each weight at the solution of the one before, instead of at x0.
    x0 : array-like or None, default=None
        A start. "auto" also searches from its support, so that the result is never worse than a feasible k-sparse x0.
        The paper's methods start there, moved into C; None for 1/n in every entry.
    forced_in, forced_out : array-like of int, default=()
        Variables that are always, or never, in the support. Only with "auto".
    min_nonzero : float or array-like, default=0.0
        Minimum absolute value of a nonzero, one number or one per variable. Only with "auto".
    groups : array-like or None, default=None
        A label for each variable: variables of one label enter the support together or not at all, and k counts groups.
        Only with "auto".
    group_limits : tuple or None, default=None
        (labels, {label: (min, max)}): limits on the number of selected variables per label, None for no maximum; with
        `groups`, of groups. Only with "auto".
    requires : dict or None, default=None
        {child: parents}, in indices: a variable is in the support only with its parents. Variables of a support may be
        0, and count all the same. Only with "auto".
    effort : int or None, default=None
        Number of independent searches; the best result is returned. 0: a quick search, about twice the work of its
        first descent and no proof. None: one, or more within `max_time`. Only with "auto".
    n_jobs : int or None, default=None
        Number of threads.
    random_state : int, numpy.random.Generator or None, default=None
        Seed of the search. Results do not depend on `n_jobs`.
    gap : float or None, default=None
        Target optimality gap (0.01 for 1 %) of a branch and bound after the search; None to skip it. `lower_bound`,
        `gap` and `nodes` of the result say how far it came; if no bound is available, the message says why. Only with
        "auto".
    max_nodes : int or None, default=None
        Maximum number of branch-and-bound nodes. Only with "auto".
    settings : SearchSettings or None, default=None
        Advanced search settings. Only with "auto".
    tol : float, default=1e-5
        Relative change at which first-order runs end.
    max_iter : int, default=10000
        Maximum number of first-order iterations, of all weights or starts together.
    max_time : float or None, default=None
        Time limit in seconds; the best feasible point so far is returned.
    callback : callable or None, default=None
        Called as in `scipy.optimize.minimize`; raise StopIteration to stop.
    verbose : int, default=0
        Whether to print a table of the search.
    progress : bool, default=False
        Whether to show progress bars, as `show_progress` does.

    Returns
    -------
    Result
        The solution, with every value recomputed from x and the raw data.

    Raises
    ------
    InfeasibleError
        If C holds no point with at most k nonzeros; the message says why.
    MissingPieceError
        If a method needs a property that the loss, set or penalty does not have.

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
    request = check_request(
        loss, k, C, x0, Stopping(tol=tol, max_iter=max_iter, max_time=max_time), callback, verbose,
        rules=(groups, group_limits, requires), by_entries=gap is not None or bool(np.any(min_nonzero)), least=0,
    )  # fmt: skip
    with solve_scope(request.loss, request.deadline, progress):
        if isinstance(method, str) and method == "auto":
            if not isinstance(step, str) or step != "backtracking":
                resolve_rule(step)  # not used, but checked
            problem = support_problem(request, forced_in, forced_out, min_nonzero, settings)
            plan = make_plan(effort, n_jobs, random_state, rho)
            gap_request = make_gap_request(gap, max_nodes, plan.n_jobs)
            if gap_request is not None and plan.effort is None:
                plan = replace(plan, effort=1)
            return search_supports(request, problem, plan, gap_request) if request.k else _zero(request, "auto")
        if request.loss.per_feature > 1:
            name = type(request.loss).__name__
            raise MissingPieceError(f"{name} needs method='auto': the paper's methods count entries, not features")
        only_auto = {
            "forced_in": np.size(forced_in) > 0, "forced_out": np.size(forced_out) > 0,
            "min_nonzero": bool(np.any(min_nonzero)), "effort": effort, "settings": settings, "gap": gap,
            "max_nodes": max_nodes, "groups": groups, "group_limits": group_limits, "requires": requires,
        }  # fmt: skip
        for name, value in only_auto.items():
            if value is not None and value is not False:
                raise ValueError(f"{name} is only supported with method='auto'")
        chosen = resolve_method(method, step)
        return solve_on_grid(request, chosen, rho, continuation) if request.k else _zero(request, chosen.name)


def _zero(request: Request, method: str) -> Result:
    """Return the result for k = 0, where 0 is the only candidate."""
    if not request.C.contains(request.zeros):
        raise InfeasibleError(f"C = {request.C} holds no point with at most k = 0 nonzeros")
    return judge_given(request.loss, request.C, 0, np.zeros(request.n), Status.OPTIMAL, request.elapsed, method=method)


def one_search(options: dict[str, Any]) -> dict[str, Any]:
    """Return options for one of several calls that share a time limit: one search unless effort is given."""
    return options if options.get("effort") is not None else options | {"effort": 1}


def make_plan(effort: int | None, n_jobs: int | None, random_state: Any, rho: Any = "auto") -> SearchOptions:
    """Check the arguments of a search."""
    if isinstance(random_state, np.random.Generator):
        seed = int(random_state.integers(2**63))
    else:
        seed = 0 if random_state is None else check_integer(random_state, "random_state", 0)
    effort = None if effort is None else check_integer(effort, "effort", 0)
    weights = None if isinstance(rho, str) and rho == "auto" else resolve_weights(rho)
    return SearchOptions(effort=effort, n_jobs=check_n_jobs(n_jobs), seed=seed, weights=weights)


def make_gap_request(gap: float | None, max_nodes: int | None, n_jobs: int | None) -> GapRequest | None:
    """Check the arguments of a branch and bound."""
    if gap is None:
        if max_nodes is not None:
            raise ValueError("max_nodes requires gap, for example gap=0.01")
        return None
    max_nodes = None if max_nodes is None else check_integer(max_nodes, "max_nodes", 1)
    return GapRequest(check_number(gap, "gap", at_least=0.0), max_nodes, n_jobs)


def make_search(
    request: Request, problem: SupportProblem, plan: SearchOptions, notify: Callable[[Incumbent], None]
) -> SupportSearch:
    """Return the search for a request."""
    given = request.stopping
    rough = replace(given, tol=max(given.tol, START_TOL), max_iter=min(given.max_iter, START_STEPS))
    return SupportSearch(problem, request.loss, request.x0, request.beginning, rough, plan, request.started, notify)


def search_supports(
    request: Request, problem: SupportProblem, plan: SearchOptions, gap_request: GapRequest | None = None
) -> Result:
    """Return the best point that the search finds, with a lower bound if one is requested."""
    reporter = SearchReporter(request, problem)
    search = make_search(request, problem, plan, reporter.log_stage)
    try:
        with reporter:
            status = search.run()
            best = search.incumbent
            certificate = certify(problem, best, status, gap_request, lambda tree: reporter.log_tree(tree, best))
            result = judge_search(request, problem, best, status, certificate)
            if reporter.verbose:
                found = f"{result.fun:.9e} with {result.support.size} nonzeros, {result.elapsed:.2f} s"
                logger.info("%s", f"{result.message}: {found}")
        return result
    except KeyboardInterrupt:  # before the search began or after it ended; the search catches its own
        search.incumbent.best = search.incumbent.best or fallback_point(problem, request.beginning)
        if search.incumbent.best is None:
            raise
        return judge_search(request, problem, search.incumbent, Status.INTERRUPTED)


def certify(
    problem: SupportProblem, incumbent: Incumbent, status: Status, gap_request: GapRequest | None,
    notify: Notify = lambda tree: None,
) -> Certificate:  # fmt: skip
    """Return a lower bound by enumeration, or by branch and bound if requested and the search was not stopped."""
    if status is Status.OPTIMAL:
        return Certificate(incumbent.bound, 0, Status.OPTIMAL)
    if gap_request is None or not status.good or incumbent.best is None:
        return Certificate()
    aim, first = gap_request.gap, math.inf
    with bar("proof", 1.0) as one:

        def update(tree: TreeProgress) -> None:
            nonlocal first
            gap = gap_between(tree.best, tree.bound)
            first = gap if math.isinf(first) else first
            one.update(
                _closed_fraction(gap, first, aim), f"gap {100 * gap:.3g} %, {tree.nodes} nodes, {tree.open} open"
            )
            notify(tree)

        return branch_and_bound(problem, incumbent, gap_request, update)


def _closed_fraction(gap: float, first: float, aim: float) -> float:
    """Return how much of the way from the first gap to the aim is done, by its logarithm, as trees close it."""
    if not 0.0 < gap < first < math.inf:
        return 0.0 if gap else 1.0
    return math.log(first / gap) / math.log(first / aim) if aim else 1.0 - gap / first


class SearchReporter(VerboseLogging):
    """Log of the stages of a search, if verbose, and calls of the callback."""

    def __init__(self, request: Request, problem: SupportProblem) -> None:
        super().__init__(request.verbose)
        self.request, self.problem = request, problem
        self._callback, self._last_line = as_scipy_callback(request.callback), -math.inf

    def __enter__(self) -> SearchReporter:
        request = self.request
        if request.interrupted:
            raise KeyboardInterrupt
        super().__enter__()
        if self.verbose:
            name, of = type(request.loss).__name__, "features" if request.by_rows else "variables"
            count = request.n // request.loss.per_feature
            logger.info("ksparse auto: %s over %s, at most %d of %d %s", name, request.C, request.k, count, of)
            logger.info("search: %s", choose_strategy(self.problem).name)
            logger.info("%s", f"{'stage':<28} {'found':>16} {'best':>16} {'swaps':>6} {'proved':>7} {'time':>8}")
        return self

    def log_stage(self, incumbent: Incumbent) -> None:
        """Report the last stage of the search."""
        row, best = incumbent.records[-1], incumbent.found
        if self.verbose:
            values = f"{row['start']:<28} {row['fun']:>16.9e} {best.value:>16.9e} {row['swaps']:>6}"
            logger.info("%s", f"{values} {'yes' if row['proved'] else 'no':>7} {row['elapsed']:>7.2f}s")
        self._callback(lambda: best.full(self.problem.n), best.value, len(incumbent.records), np.nan, row["elapsed"])

    def log_tree(self, tree: TreeProgress, incumbent: Incumbent) -> None:
        """Report the state of the tree: to the log about once in a second, to the callback in every round."""
        best, elapsed, gap = incumbent.found, self.request.elapsed, gap_between(tree.best, tree.bound)
        if self.verbose and (elapsed - self._last_line >= SECONDS_PER_LINE or tree.nodes == 1):
            self._last_line = elapsed
            nodes = f"{tree.nodes} node{'' if tree.nodes == 1 else 's'}, {tree.open} open"
            values = f"best {tree.best:.9e}, bound {tree.bound:.9e}, gap {100 * gap:.3g} %, {elapsed:.1f} s"
            logger.info("%s", f"branch and bound: {nodes}, {values}")
        more = {"nodes": tree.nodes, "open": tree.open, "lower_bound": tree.bound, "gap": gap}
        self._callback(lambda: best.full(self.request.n), best.value, tree.nodes, np.nan, elapsed, **more)
