"""Continuation in the penalty weight λ: solve for a large λ first, then divide λ by 4 until it is the given one.

With a large λ, x has few nonzeros and a few steps suffice. Each solution is a good start for the next λ, and the last
run, which would be the slow one from 0, begins near its end.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ksparse.errors import MissingPieceError
from ksparse.firstorder.loop import Run, drive
from ksparse.firstorder.methods import Method
from ksparse.firstorder.problem import Point, Problem, Stopping
from ksparse.losses import Loss
from ksparse.penalties import Penalty
from ksparse.util.arrays import Array, namespace

RATIO = 4.0  # of two consecutive λ
ROUGH_TOL = 3e-4  # relative change of F at which the run for a larger λ stops


def weight_max(loss: Loss, penalty: Penalty) -> float:
    """Return the smallest weight (λ or ρ) of this kind of penalty at which 0 is stationary.

    With a larger weight, every method started at 0 stays there. The weight of `penalty` itself plays no role.

    Parameters
    ----------
    loss : Loss
        φ.
    penalty : Penalty
        A penalty of the kind in question.

    Returns
    -------
    float
        The weight; inf if no weight suffices (`TopK2` is flat at 0).

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> ks.weight_max(ks.LeastSquares(np.eye(3), [3.0, -4.0, 1.0]), ks.L1(1.0))
    4.0
    """
    zero = Problem(loss, penalty, n=loss.n).zeros()
    return float(np.float64(penalty.weight_max(loss.gradient(zero))))


def continued(
    method: Method, problem: Problem, x0: Array, stopping: Stopping, callback: Callable[..., Any] | None, verbose: int
) -> Run:
    """Return the run for the problem's λ, started from runs for larger λ; limits and counts are totals of all runs."""
    penalty, lam = problem.penalty, problem.penalty.lam
    if lam is None:
        needed = "a penalty with λ‖x‖₁ in it, so that a large λ keeps x at 0"
        raise MissingPieceError(f"continuation needs {needed}; {type(penalty).__name__} has none")
    point = problem.project_to_domain(x0)
    problem.measure_scale(point)
    steps, seconds = 0, 0.0
    for larger in _larger_weights(lam, penalty, point):
        rough = problem.with_penalty(penalty.with_lam(larger))
        left = replace(_remaining(stopping, steps, seconds), tol=max(stopping.tol, ROUGH_TOL))
        run = drive(method, rough, point, left, callback=callback, verbose=verbose)
        point, steps, seconds = run.point, steps + run.nit, seconds + float(run.trace.elapsed[-1])
        if run.status.early:
            return replace(run, point=problem.point_from(point), nit=steps)
    left, point = _remaining(stopping, steps, seconds), problem.point_from(point)
    run = drive(method, problem, point, left, callback=callback, verbose=verbose)
    return replace(run, nit=steps + run.nit, trace=replace(run.trace, elapsed=run.trace.elapsed + seconds))


def _larger_weights(lam: float, penalty: Penalty, point: Point) -> list[float]:
    """Return λ·RATIO, λ·RATIO², … below the weight that keeps x at 0, the largest first."""
    zero = 0.0 * point if bool(namespace(point.x).any(point.x != 0)) else point  # ∇φ(0), with no product for its image
    limit = float(penalty.weight_max(zero.gradient))
    weights = itertools.takewhile(lambda weight: weight < limit, (lam * RATIO**i for i in itertools.count(1)))
    return list(weights)[::-1]


def _remaining(stopping: Stopping, steps: int, seconds: float) -> Stopping:
    limit = None if stopping.max_time is None else max(0.0, stopping.max_time - seconds)
    return replace(stopping, max_iter=max(0, stopping.max_iter - steps), max_time=limit)
