"""Continuation in the penalty weight: first a λ so large that hardly anything enters, then a fourth of it, and so on to the one asked for.

With a large λ x has few nonzeros and a few steps suffice; each answer is a good start for the next λ, so that the last one, from 0 the slow
one, begins near its end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ksparse.errors import MissingPieceError
from ksparse.firstorder.drive import Run, Stopping, drive
from ksparse.firstorder.methods import Method
from ksparse.firstorder.problem import Point, Problem
from ksparse.penalties import Penalty
from ksparse.result import Trace
from ksparse.util.arrays import Array, namespace

RATIO = 4.0  # from one λ to the next
ROUGH = 3e-4  # relative change of F at which a λ on the way has done its part


def require_continuation(problem: Problem) -> float:
    """The penalty's λ, if there is one that holds x at 0."""
    if problem.penalty.lam is None:
        name = type(problem.penalty).__name__
        raise MissingPieceError(
            f"continuation needs a penalty with λ‖x‖₁ in it, so that a large λ keeps x at 0; {name} has none: leave it out"
        )
    return problem.penalty.lam


def continued(method: Method, problem: Problem, x0: Array, stopping: Stopping, callback: Callable[..., Any] | None, verbose: int) -> Run:
    """The run for the problem's own λ, after those for larger ones; limits and counts are those of all together."""
    lam, penalty, at = require_continuation(problem), problem.penalty, problem.enter(x0)
    problem.measure_scale(at)
    steps, seconds = 0, 0.0
    for larger in _on_the_way(lam, penalty, at):
        rough = problem.with_penalty(penalty.with_lam(larger))
        left = _left(stopping, steps, seconds)
        run = drive(method, rough, at, replace(left, tol=max(stopping.tol, ROUGH)), callback=callback, verbose=verbose)
        at, steps, seconds = run.point, steps + run.nit, seconds + float(run.trace.elapsed[-1])
        if run.status.early:
            return replace(run, point=problem.adopt(at), nit=steps)
    run = drive(method, problem, problem.adopt(at), _left(stopping, steps, seconds), callback=callback, verbose=verbose)
    return replace(run, nit=steps + run.nit, trace=_later(run.trace, seconds))


def _on_the_way(lam: float, penalty: Penalty, at: Point) -> list[float]:
    """Values of λ above the penalty's own, the largest first."""
    zero = 0.0 * at if bool(namespace(at.x).any(at.x != 0)) else at  # ∇φ(0), with no product for its image
    most = float(penalty.weight_max(zero.gradient))
    weights: list[float] = []
    while lam * RATIO ** (len(weights) + 1) < most:
        weights.append(lam * RATIO ** (len(weights) + 1))
    return weights[::-1]


def _left(stopping: Stopping, steps: int, seconds: float) -> Stopping:
    limit = None if stopping.max_time is None else max(0.0, stopping.max_time - seconds)
    return replace(stopping, max_iter=max(0, stopping.max_iter - steps), max_time=limit)


def _later(trace: Trace, seconds: float) -> Trace:
    return replace(trace, elapsed=trace.elapsed + seconds)
