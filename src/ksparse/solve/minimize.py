"""The two front doors."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ksparse.base.arrays import Array, namespace
from ksparse.base.checks import check_piece
from ksparse.base.deadline import until
from ksparse.firstorder.continuation import continued
from ksparse.firstorder.drive import Stopping, drive
from ksparse.firstorder.methods import Method
from ksparse.firstorder.problem import Problem
from ksparse.firstorder.steps import StepRule
from ksparse.losses import Loss
from ksparse.penalties import Penalty
from ksparse.result import Result
from ksparse.search.settings import SearchSettings
from ksparse.sets import ConvexSet
from ksparse.solve.by_search import make_plan, make_wanted, solve_by_search
from ksparse.solve.judge import judge_penalized
from ksparse.solve.penalty_grid import resolve_method, resolve_rule, solve_on_grid
from ksparse.solve.request import check_pieces, check_request, fitting_threads, support_problem, try_out


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
) -> Result:
    """A stationary point of F = φ + g over C, by one of the paper's first-order methods.

    loss, penalty, C : φ, the DC penalty g, and a set (default: the whole space).
    method : "pdca", "apdca", "pdcae", "gist", "nmapg", or a method object with its own parameters.
    step : "backtracking", "fixed" (1/L), or a step rule; pdcae always steps 1/L.
    continuation : solve for larger λ first, each a fourth of the last, from one answer to the next: far fewer steps where λ is small. For
        penalties with λ‖x‖₁ in them (all but TopK2). The trace is that of the last λ.
    x0 : the start, moved into C; default 0, or 1/n in every entry where 0 is stationary for φ.
    tol, stop : stop when F changes by less than tol relative to itself (stop="objective"), or x by less than
        tol·max(1, ‖x‖) (stop="step"); default: the rule the paper uses with the method.
    patience : how many such small changes in a row it takes; default 2 for pdca and gist, whose Barzilai–Borwein steps may
        stand still once by accident, 1 for the others.
    tol_residual : also stop at this relative stationarity residual; 0 for never.
    max_iter, max_time, callback, verbose : limits (seconds), scipy-style callback, progress table.
    """
    started = time.perf_counter()
    check_piece(penalty, Penalty, "penalty", "penalty")
    loss, C, start = check_pieces(loss, C, x0)
    chosen = resolve_method(method, step)
    stopping = Stopping(tol, tol_residual, max_iter, max_time, stop, patience)
    problem = Problem(loss, penalty, C, None if start is None else start.shape[0])
    before = loss.evaluations or (0, 0)
    try_out(loss, problem.C, problem.n, start)
    deadline = np.inf if max_time is None else started + max_time
    with until(deadline), fitting_threads(loss), np.errstate(over="ignore", invalid="ignore"):  # as in `minimize`
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
    effort: int | None = None,
    n_restarts: int | None = None,
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
) -> Result:
    """The best k-sparse point of C that we can find: min φ(x) s.t. ‖x‖₀ ≤ k, x ∈ C.

    loss, k, C : φ, the number of nonzeros allowed, and a set (default: the whole space).
    method : "auto", our best: starts of several kinds, each improved by exchanging variables until none helps. Or one of the
        paper's methods: "apdca", "pdca", "pdcae", "gist", "nmapg" on φ + ρ(‖x‖² − |||x|||²_{k,2}), rounded and re-solved on the
        support; "iht" on the constraint itself; "l1pdca", "l1dca" on φ + ρ(‖x‖₁ − |||x|||_{k,1}) and "mipdca" on relaxed indicators,
        taken as they are where k-sparse (the last two need ksparse[baselines]); or a method object.
    rho : for the paper's methods the penalty weight, a sequence of weights, or "auto" for the paper's grid 10⁻⁴…10⁴; of several the
        best answer is returned. For method="auto" the weights of its penalised starts; "auto" takes them from the data.
    continuation : for the paper's methods: start each weight where the one before ended, instead of at x0.
    x0 : a start. "auto" always searches from its support too, so the answer is never worse than a feasible k-sparse x0. The paper's
        methods start there, moved into C; default 1/n in every entry.
    forced_in, forced_out, min_nonzero : for "auto": variables that are always or never in the support, and the least size of a nonzero,
        one number or one per variable.
    effort, n_jobs, random_state : for "auto": how many whole searches, from other seeds, of which the best counts, threads to run them and
        to bound a tree's nodes in, and the first one's seed. More effort is never worse; the same seed gives the same answer, whatever
        n_jobs. By default it is one, or with max_time as many as bring something in the time. n_restarts is the older name: eight are one
        more unit of effort.
    gap, max_nodes : for "auto": go on after the search until it is proved that no k-sparse point is better than the answer by more than
        gap·|φ| (0.01 for 1 %), or that many nodes have been looked at. `lower_bound`, `gap` and `nodes` of the result say how far that
        came, whatever stopped it; where no bound can be had its message says why.
    settings : for "auto": the numbers that steer its search, where its defaults will not do.
    step, tol, max_iter, max_time, callback, verbose : as in `minimize_penalized`, the limits for all weights or starts together.
    """
    request = check_request(loss, k, C, x0, Stopping(tol=tol, max_iter=max_iter, max_time=max_time), callback, verbose)
    # arithmetic that overflows is seen by what it leaves: values that are not finite are refused where they arise
    with until(request.deadline), fitting_threads(request.loss), np.errstate(over="ignore", invalid="ignore"):
        if isinstance(method, str) and method == "auto":
            resolve_rule(step)  # not used, but not wrong either
            problem = support_problem(request, forced_in, forced_out, min_nonzero, settings)
            plan = make_plan(effort, n_restarts, n_jobs, random_state, rho)
            wanted = make_wanted(gap, max_nodes, plan.n_jobs)
            return solve_by_search(request, problem, plan if wanted is None else replace(plan, effort=plan.effort or 1), wanted)
        _refuse_for_papers_methods(
            forced_in=forced_in, forced_out=forced_out, min_nonzero=min_nonzero, effort=effort, n_restarts=n_restarts, settings=settings,
            gap=None if gap is None else True, max_nodes=max_nodes,
        )  # fmt: skip
        return solve_on_grid(request, resolve_method(method, step), rho, continuation)


def _refuse_for_papers_methods(**given: Any) -> None:
    for name, value in given.items():
        if value is not None and (np.size(value) > 0 if np.ndim(value) else value != 0):
            raise ValueError(f"{name} needs method='auto'; the paper's methods do not know it")
