"""The two front doors."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ksparse.arrays import Array, finite, indices_of, namespace
from ksparse.checks import check_integer, check_number, check_vector
from ksparse.drive import Run, Stopping, drive
from ksparse.losses import Custom, Loss
from ksparse.methods import APDCA, GIST, IHT, PDCA, Method, NmAPG, PDCAe
from ksparse.penalties import Cardinality, Penalty, TopK2
from ksparse.problem import Problem
from ksparse.result import Result, Status
from ksparse.sets import ConvexSet, WholeSpace, require_length, require_sparse_member
from ksparse.steps import Backtracking, FixedStep, StepRule
from ksparse.support.rounding import cut_to_sparse, round_to_sparse

RHO_GRID = tuple(10.0**i for i in range(-4, 5))  # the paper's
STATIONARY = 1e-6  # a recomputed relative residual below this is called stationary
ACCEPTED = 1e-2  # one above this is no success, however little F changed

METHODS: dict[str, Callable[[StepRule], Method]] = {
    "pdca": PDCA,
    "apdca": APDCA,
    "pdcae": lambda rule: PDCAe(),  # its step is 1/L by definition
    "gist": GIST,
    "nmapg": NmAPG,
    "iht": IHT,
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
    if start is None:
        start = problem.zeros()
        if not bool(namespace(start).any(loss.gradient_at(start, loss.image(start)) != 0)):
            start = start + 1.0 / problem.n
    run = drive(chosen, problem, start, stopping, callback=callback, verbose=verbose)
    return _judge_penalized(problem, run, chosen, time.perf_counter() - started)


def minimize(
    loss: Loss,
    k: int,
    C: ConvexSet | None = None,
    *,
    method: str | Method = "apdca",
    rho: str | float | Sequence[float] = "auto",
    step: str | StepRule = "backtracking",
    x0: Any = None,
    tol: float = 1e-5,
    max_iter: int = 10_000,
    max_time: float | None = None,
    callback: Callable[..., Any] | None = None,
    verbose: int = 0,
) -> Result:
    """A k-sparse point of C with small φ: the paper's ℓ2-penalised methods, rounded and re-solved on the support.

    loss, k, C : φ, the number of nonzeros allowed, and a set (default: the whole space).
    method : "apdca", "pdca", "pdcae", "gist", "nmapg" on φ + ρ(‖x‖² − |||x|||²_{k,2}), "iht" on the constraint itself, or a method object.
    rho : the penalty weight, a sequence of weights, or "auto" for the paper's grid 10⁻⁴…10⁴; of several the best answer is returned.
    x0 : the start, moved into C; default 1/n in every entry.
    step, tol, max_iter, max_time, callback, verbose : as in `minimize_penalized`, the limits for all weights together.
    """
    started = time.perf_counter()
    loss, C, start = _prepare(loss, C, x0)
    n = _length(loss, C, start)
    k = check_integer(k, "k", 1, n)
    require_sparse_member(C, n, k)
    chosen = resolve_method(method, step)
    weights = _weights(rho, chosen)
    stopping = Stopping(tol=tol, max_iter=max_iter, max_time=max_time)
    results: list[Result] = []
    for weight in weights:
        left = None if max_time is None else max(0.0, max_time - (time.perf_counter() - started))
        penalty = Cardinality(k, C.for_length(n)) if weight is None else TopK2(weight, k)
        problem = Problem(loss, penalty, WholeSpace() if weight is None else C, n)
        begin = problem.zeros() + 1.0 / n if start is None else start
        run = drive(chosen, problem, begin, replace(stopping, max_time=left), callback=callback, verbose=verbose)
        results.append(_judge_sparse(problem, C, k, weight, run, chosen, time.perf_counter() - started))
        if run.status in (Status.TIME_LIMIT, Status.CALLBACK_STOP, Status.INTERRUPTED):
            break
    return _best(results, time.perf_counter() - started)


def resolve_method(method: str | Method, step: str | StepRule) -> Method:
    """A method object from its name and its step rule."""
    rules: dict[str, StepRule] = {"backtracking": Backtracking(), "fixed": FixedStep()}
    if isinstance(step, str):
        if step not in rules:
            raise ValueError(f"step must be one of {', '.join(rules)} or a step rule, got {step!r}")
        step = rules[step]
    if isinstance(method, str):
        if method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(METHODS)} or a method object, got {method!r}")
        return METHODS[method](step)
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
        start = check_vector(x0, "x0", n)
        return loss.for_vectors_like(start), C, start
    return loss, C, check_vector(x0, "x0", n, kind=loss.kind)


def _length(loss: Loss, C: ConvexSet, start: Array | None) -> int:
    n = loss.n or C.n or (None if start is None else start.shape[0])
    if n is None:
        raise ValueError("the number of variables is not known: give x0, or n to the loss")
    require_length(C, int(n))
    return int(n)


def _weights(rho: str | float | Sequence[float], method: Method) -> list[float | None]:
    """The weights to try; None alone for IHT, which has no penalty."""
    if isinstance(method, IHT):
        return [None]
    if isinstance(rho, str):
        if rho != "auto":
            raise ValueError(f"rho must be 'auto', a number > 0 or a sequence of them, got {rho!r}")
        return list(RHO_GRID)
    if np.ndim(rho) == 0:
        return [check_number(rho, "rho", above=0)]
    weights: list[float | None] = [check_number(weight, "rho", above=0) for weight in rho]  # type: ignore[union-attr]
    if not weights:
        raise ValueError("rho must hold at least one weight, got an empty sequence")
    return weights


def _judge_penalized(problem: Problem, run: Run, method: Method, elapsed: float) -> Result:
    """The result, every value of it recomputed from x and the raw data."""
    spent = problem.products
    counts = (spent.values, spent.gradients)
    judge = Problem(problem.loss, problem.penalty, problem.C, problem.n)
    point = judge.point(run.x)
    seen = judge.whole if method.name in ("gist", "nmapg") else judge
    residual = seen.residual(point, run.l)
    return _result(
        run, x=run.x, fun=judge.F(point), C=problem.C, k=None, rho=None, residual=residual, counts=counts, method=method, elapsed=elapsed
    )


def _judge_sparse(problem: Problem, C: ConvexSet, k: int, rho: float | None, run: Run, method: Method, elapsed: float) -> Result:
    """Round, re-solve, and recompute every value from x and the raw data."""
    C = C.for_length(problem.n)
    counts = (problem.products.values, problem.products.gradients)
    x, residual = run.x, math.inf
    if run.status is Status.UNBOUNDED:
        x = cut_to_sparse(C, x, k)  # nothing to re-solve: the problem on the support is unbounded too
    else:
        x, polished = round_to_sparse(problem.loss, C, x, k)
        residual = polished.residual
    fun = problem.loss.value(x)
    return _result(run, x=x, fun=fun, C=C, k=k, rho=rho, residual=residual, counts=counts, method=method, elapsed=elapsed)


def _result(
    run: Run, *, x: Array, fun: float, C: ConvexSet, k: int | None, rho: float | None, residual: float,
    counts: tuple[int, int], method: Method, elapsed: float,
) -> Result:  # fmt: skip
    maxcv = C.violation(x)
    support = indices_of(x != 0)
    status = Status.STATIONARY if run.status is Status.SETTLED and residual <= STATIONARY else run.status
    feasible = C.contains(x) and (k is None or support.size <= k)
    sound = math.isfinite(fun) and finite(x) and residual <= ACCEPTED
    return Result(
        x=x,
        fun=fun,
        success=bool(status.good and feasible and sound),
        status=status,
        message=status.message,
        nit=run.nit,
        nfev=counts[0],
        njev=counts[1],
        maxcv=maxcv,
        support=support,
        k=k,
        elapsed=elapsed,
        method=method.name,
        rho=rho,
        residual=residual,
        trace=run.trace,
    )


def _best(results: list[Result], elapsed: float) -> Result:
    """The best answer of several weights, k-sparse and feasible ones first, with a row for each."""
    outcomes = [
        {"rho": r.rho, "fun": r.fun, "nonzeros": int(r.support.size), "maxcv": r.maxcv, "status": r.status, "nit": r.nit} for r in results
    ]
    best = min(results, key=lambda r: (not r.success, r.fun))
    return Result(**{**best.__dict__, "elapsed": elapsed, "outcomes": outcomes})
