"""The two front doors."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ksparse.arrays import Array, namespace
from ksparse.auto import AutoReport, solve_auto
from ksparse.checks import check_indices, check_integer, check_number, check_vector
from ksparse.drive import Stopping, drive
from ksparse.errors import InfeasibleError, MissingPieceError
from ksparse.judge import ENDED_EARLY, best_of, judge_auto, judge_penalized, judge_sparse
from ksparse.losses import Custom, Loss
from ksparse.methods import APDCA, GIST, IHT, L1DCA, L1PDCA, MIPDCA, PDCA, Method, NmAPG, PDCAe
from ksparse.penalties import BigM, Cardinality, Penalty, TopK1, TopK2
from ksparse.problem import Problem
from ksparse.result import Result, Status
from ksparse.sets import ConvexSet, WholeSpace, require_length, require_sparse_member
from ksparse.steps import Backtracking, FixedStep, StepRule, check_rule
from ksparse.support.rounding import round_to_sparse, take_as_sparse
from ksparse.support.task import Task

EXACT_PENALTY = (L1PDCA, L1DCA, MIPDCA)  # their answers are k-sparse by themselves, for weights that are large enough
RHO_GRID = tuple(10.0**i for i in range(-4, 5))  # the paper's
N_RESTARTS = 4  # perturbed restarts of "auto" unless told otherwise
START_TOL = 1e-4  # relative change of F at which a first-order start of "auto" has done its part
START_ITERATIONS = 300

METHODS: dict[str, Callable[[StepRule], Method]] = {
    "pdca": PDCA,
    "apdca": APDCA,
    "pdcae": lambda rule: PDCAe(),  # its step is 1/L by definition
    "gist": GIST,
    "nmapg": NmAPG,
    "iht": IHT,
    "l1pdca": L1PDCA,
    "l1dca": lambda rule: L1DCA(),
    "mipdca": lambda rule: MIPDCA(),
}


def minimize_penalized(
    loss: Loss,
    penalty: Penalty,
    *,
    C: ConvexSet | None = None,
    method: str | Method = "apdca",
    step: str | StepRule = "backtracking",
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
    x0 : the start, moved into C; default 0, or 1/n in every entry where 0 is stationary for φ.
    tol, stop : stop when F changes by less than tol relative to itself (stop="objective"), or x by less than
        tol·max(1, ‖x‖) (stop="step"); default: the rule the paper uses with the method.
    patience : how many such small changes in a row it takes; default 2 for pdca and gist, whose Barzilai–Borwein steps may
        stand still once by accident, 1 for the others.
    tol_residual : also stop at this relative stationarity residual; 0 for never.
    max_iter, max_time, callback, verbose : limits (seconds), scipy-style callback, progress table.
    """
    started = time.perf_counter()
    if not isinstance(penalty, Penalty):
        raise TypeError(f"penalty must be a ksparse penalty, got {type(penalty).__name__}")
    loss, C, start = _prepare(loss, C, x0)
    chosen = resolve_method(method, step)
    stopping = Stopping(tol, tol_residual, max_iter, max_time, stop, patience)
    problem = Problem(loss, penalty, C, None if start is None else start.shape[0])
    run = drive(chosen, problem, _first_point(problem) if start is None else start, stopping, callback=callback, verbose=verbose)
    return judge_penalized(problem, run, chosen, time.perf_counter() - started)


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
    x0: Any = None,
    forced_in: Any = (),
    forced_out: Any = (),
    min_nonzero: float = 0.0,
    n_restarts: int | None = None,
    n_jobs: int | None = None,
    random_state: int | np.random.Generator | None = None,
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
    x0 : a start. "auto" always searches from its support too, so the answer is never worse than a feasible k-sparse x0. The paper's
        methods start there, moved into C; default 1/n in every entry.
    forced_in, forced_out, min_nonzero : for "auto": variables that keep a seat or get none, and the least size of a nonzero.
    n_restarts, n_jobs, random_state : for "auto": perturbed restarts after the starts, threads to run them in, their seed. The same seed
        gives the same answer, whatever n_jobs; None is a seed like any other.
    step, tol, max_iter, max_time, callback, verbose : as in `minimize_penalized`, the limits for all weights or starts together.
    """
    started = time.perf_counter()
    loss, C, start = _prepare(loss, C, x0)
    n = _length(loss, C, start)
    k = check_integer(k, "k", 1, n)
    C = C.for_length(n)
    require_sparse_member(C, n, k)
    stopping = Stopping(tol=tol, max_iter=max_iter, max_time=max_time)
    if isinstance(method, str) and method == "auto":
        task = _task(loss, C, n, k, forced_in, forced_out, min_nonzero, np.inf if max_time is None else started + max_time)
        usual = 0 if task.component else N_RESTARTS  # a component's starts are many random ones already
        n_restarts = usual if n_restarts is None else check_integer(n_restarts, "n_restarts", 0)
        weights = None if isinstance(rho, str) and rho == "auto" else _weights(rho)
        return _auto(task, loss, C, start, stopping, n_restarts, n_jobs, _seed(random_state), weights, callback, verbose, started)
    _refuse_for_papers_methods(forced_in=forced_in, forced_out=forced_out, min_nonzero=min_nonzero, n_restarts=n_restarts)
    chosen = resolve_method(method, step)
    grid: Sequence[float | None] = [None] if isinstance(chosen, IHT) else _weights(rho)  # IHT has no penalty
    return _penalised_grid(loss, C, n, k, grid, chosen, start, stopping, callback, verbose, started)


def _penalised_grid(
    loss: Loss, C: ConvexSet, n: int, k: int, weights: Sequence[float | None], method: Method, start: Array | None,
    stopping: Stopping, callback: Callable[..., Any] | None, verbose: int, started: float,
) -> Result:  # fmt: skip
    """The paper's way: the penalised problem for each weight, rounded, the best answer."""
    results: list[Result] = []
    deadline = np.inf if stopping.max_time is None else started + stopping.max_time
    for weight in weights:
        left = None if stopping.max_time is None else max(0.0, deadline - time.perf_counter())
        problem = _sparse_problem(method, loss, C, n, k, weight)
        begin = problem.zeros() + 1.0 / n if start is None else start
        run = drive(method, problem, begin, replace(stopping, max_time=left), callback=callback, verbose=verbose)
        rounding = take_as_sparse if isinstance(method, EXACT_PENALTY) else round_to_sparse
        rounded = partial(rounding, loss, C, run.x, k, deadline)
        results.append(judge_sparse(loss, C, k, weight, run, method.name, rounded, problem.products, time.perf_counter() - started))
        if results[-1].status in ENDED_EARLY or results[-1].status is Status.UNBOUNDED:
            break
    return best_of(results, time.perf_counter() - started)


def _sparse_problem(method: Method, loss: Loss, C: ConvexSet, n: int, k: int, weight: float | None) -> Problem:
    """The penalised problem that a method is for."""
    if weight is None:
        return Problem(loss, Cardinality(k, C), n=n)
    if isinstance(method, MIPDCA):
        return Problem(loss, BigM(weight, k), C, n)
    return Problem(loss, TopK1(weight, k) if isinstance(method, EXACT_PENALTY) else TopK2(weight, k), C, n)


def _task(loss: Loss, C: ConvexSet, n: int, k: int, forced_in: Any, forced_out: Any, min_nonzero: float, deadline: float) -> Task:
    """The search that the arguments describe, after a look at whether they can be met."""
    inside, outside = check_indices(forced_in, "forced_in"), check_indices(forced_out, "forced_out")
    for indices, name in ((inside, "forced_in"), (outside, "forced_out")):
        if indices.size and indices[-1] >= n:
            raise ValueError(f"{name} must be below the number of variables {n}, got {indices[-1]}")
    both = np.intersect1d(inside, outside)
    if both.size:
        raise ValueError(f"forced_in and forced_out must not share a variable, both hold {both[0]}")
    floor = check_number(min_nonzero, "min_nonzero", at_least=0)
    task = Task(loss, C, n, k, forced_in=inside, forced_out=outside, floor=floor, deadline=deadline)
    if floor and (task.linear is None or task.model is None or not task.convex):
        raise MissingPieceError(f"min_nonzero needs a convex quadratic loss and a polyhedral set, not {type(loss).__name__} on {C}")
    if task.forced.size > k:
        raise InfeasibleError(f"{task.forced.size} variables are forced in, more than k = {k}")
    clash = np.intersect1d(task.forced, outside)
    if clash.size:
        raise InfeasibleError(f"forced_out holds variable {clash[0]}, whose bounds exclude 0")
    return task


def _auto(
    task: Task, loss: Loss, C: ConvexSet, start: Array | None, stopping: Stopping, n_restarts: int, n_jobs: int | None,
    seed: int | None, weights: list[float] | None, callback: Callable[..., Any] | None, verbose: int, started: float,
) -> Result:  # fmt: skip
    """The search over supports, told to the callback and the table as it goes."""
    problem = Problem(loss, TopK2(1.0, task.k), C, task.n)
    kind = problem.zeros()
    first_order = Stopping(tol=max(stopping.tol, START_TOL), max_iter=min(stopping.max_iter, START_ITERATIONS), max_time=stopping.max_time)
    with AutoReport(verbose, callback) as report:
        report.banner(problem)
        progress, status = solve_auto(
            task, loss, C, x0=start, begin=kind + 1.0 / task.n if start is None else start, n_restarts=n_restarts, n_jobs=n_jobs,
            random_state=seed, weights=weights, stopping=first_order, tell=lambda progress: report.tell(progress, task.n),
        )  # fmt: skip
        result = judge_auto(loss, C, task, progress, status, kind, time.perf_counter() - started)
        report.footer(result)
    return result


def _seed(random_state: int | np.random.Generator | None) -> int | None:
    if random_state is None:
        return 0
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    return check_integer(random_state, "random_state", 0)


def _refuse_for_papers_methods(**given: Any) -> None:
    for name, value in given.items():
        if value is not None and (np.size(value) > 0 if np.ndim(value) else value != 0):
            raise ValueError(f"{name} needs method='auto'; the paper's methods do not know it")


def resolve_method(method: str | Method, step: str | StepRule) -> Method:
    """A method object from its name and its step rule."""
    rules: dict[str, StepRule] = {"backtracking": Backtracking(), "fixed": FixedStep()}
    if isinstance(step, str):
        if step not in rules:
            raise ValueError(f"step must be one of {', '.join(rules)} or a step rule, got {step!r}")
        step = rules[step]
    check_rule(step)
    if isinstance(method, str):
        if method not in METHODS:
            raise ValueError(f"method must be one of auto (in minimize), {', '.join(METHODS)} or a method object, got {method!r}")
        return METHODS[method](step)
    if isinstance(method, type):
        raise TypeError(f"method must be a name or an object, got the class {method.__name__}: write {method.__name__}()")
    if not (hasattr(method, "init") and hasattr(method, "step")):
        raise TypeError(f"method must be a name or an object with init and step, got {type(method).__name__}")
    return method


def _prepare(loss: Loss, C: ConvexSet | None, x0: Any) -> tuple[Loss, ConvexSet, Array | None]:
    """The pieces checked, and x0 as a vector of the loss's kind."""
    if not isinstance(loss, Loss):
        raise TypeError(f"loss must be a ksparse loss, got {type(loss).__name__}")
    C = WholeSpace() if C is None else C
    if not isinstance(C, ConvexSet):
        raise TypeError(f"C must be a ksparse set, got {type(C).__name__}")
    n = loss.n or C.n
    if x0 is None:
        if isinstance(loss, Custom) and n is not None:
            loss = loss.for_vectors_like(np.zeros(n))
        return loss, C, None
    if isinstance(loss, Custom):
        start = check_vector(x0, "x0", n) + 0.0  # a copy, here and below: the answer never shares memory with x0
        return loss.for_vectors_like(start), C, start
    return loss, C, check_vector(x0, "x0", n, kind=loss.kind) + 0.0


def _length(loss: Loss, C: ConvexSet, start: Array | None) -> int:
    n = loss.n or C.n or (None if start is None else start.shape[0])
    if n is None:
        raise ValueError("the number of variables is not known: give x0, or n to the loss")
    require_length(C, int(n))
    return int(n)


def _weights(rho: str | float | Sequence[float]) -> list[float]:
    """The weights to try."""
    if isinstance(rho, str):
        if rho != "auto":
            raise ValueError(f"rho must be 'auto', a number > 0 or a sequence of them, got {rho!r}")
        return list(RHO_GRID)
    if np.ndim(rho) == 0:
        return [check_number(rho, "rho", above=0)]
    weights = [check_number(weight, "rho", above=0) for weight in rho]  # type: ignore[union-attr]
    if not weights:
        raise ValueError("rho must hold at least one weight, got an empty sequence")
    return weights
