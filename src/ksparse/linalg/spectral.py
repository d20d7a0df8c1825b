"""A quadratic over a set that only projects: the spectral projected gradient, on H itself.

On a small support most of a step of the general methods is bookkeeping: of points, images, line searches. Here a step is one projection
and one product with H. The step length is Barzilai and Borwein's, which copes with curvatures far apart; the line search is that of Birgin,
Martínez and Raydan, where a quadratic tells the best point of a segment by a formula.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ksparse.base.arrays import Vector, farthest, norm

WINDOW = 10  # a step may rise to the worst of so many values before: spectral steps are good because they are not monotone
DESCENT = 1e-4  # of the slope: what a full step must gain over that worst
SPAN = 1e6  # steps reach from 1/(SPAN·L) to SPAN/L
RUNAWAY = 1e20  # entries this much larger than the start's: nothing holds x
FAR = (1e3, 1e6, 1e9)  # times the size of x: a way that goes down to there is taken to have no end
GLANCE = 64  # steps between two looks at the clock


@dataclass(frozen=True)
class Ended:
    """Where the steps led."""

    x: Vector
    before: Vector  # where they were halfway, to tell a drift by
    settled: bool  # whether the residual is within the target


def minimize_by_projection(
    H: Vector, c: Vector, project: Callable[[Vector], Vector], x: Vector, steps: int, target: float, deadline: float = math.inf
) -> Ended:
    """A stationary point of ½xᵀHx + cᵀx over C, for convex H the minimum, from a point x of C.

    It has L‖x − P_C(x − g/L)‖ ≤ target·max(‖c‖, ‖g‖), g = Hx + c and L = ‖H‖, unless the steps are spent, the time is up or x runs away.
    """
    g = H @ x + c
    # where H is flat its slope is to lead about as far as x is large, not to the end of the numbers
    L = max(float(np.abs(np.linalg.eigvalsh(H)).max(initial=0.0)), 1e-3 * norm(g) / max(1.0, norm(x)), 1e-300)
    half, far, pull = x, RUNAWAY * max(1.0, float(np.abs(x).max(initial=0.0))), norm(c)
    value = 0.5 * float(x @ (g + c))
    recent, length = [value], 1.0 / L
    for step in range(steps):
        if step == steps // 2:
            half = x
        d = project(x - length * g) - x
        goal = target * max(pull, norm(g))
        if norm(d) <= goal * length and L * norm(project(x - g / L) - x) <= goal:
            return Ended(x, half, True)
        if (step % GLANCE == 0 and time.perf_counter() >= deadline) or not float(np.abs(x).max()) <= far:
            break
        Hd, slope = H @ d, float(g @ d)
        bend = float(d @ Hd)
        t = 1.0
        if value + slope + 0.5 * bend > max(recent) + DESCENT * slope and bend > 0:
            t = min(1.0, -slope / bend)
        x, g, value = x + t * d, g + t * Hd, value + t * slope + 0.5 * t * t * bend
        if step % GLANCE == 0:  # sums of steps gather rounding
            g = H @ x + c
        recent = [*recent[1 - WINDOW :], value]
        length = min(max(float(d @ d) / bend, 1.0 / (SPAN * L)), SPAN / L) if bend > 0 else SPAN / L
    return Ended(x, half, False)


def falls_for_ever(H: Vector, c: Vector, project: Callable[[Vector], Vector], ended: Ended) -> bool:
    """Whether the quadratic keeps falling at the rate of the last half of the steps as far as can be seen."""

    def value(x: Vector) -> float:
        return 0.5 * float(x @ (H @ x)) + float(c @ x)

    x, d = ended.x, ended.x - ended.before
    drop = value(ended.before) - value(x)
    if not np.isfinite(x).all() or not drop > 1e-12 * abs(value(x)):  # what overflowed says nothing
        return False
    if float(d @ (H @ d)) > 1e-12 * float(np.abs(H).max()) * float(d @ d):  # curvature turns it sooner or later
        return False
    reach = max(1.0, norm(x)) / norm(d)  # far beside x and beside 1: where steps are tiny, so is a million of them
    ends = [(factor * reach, x + factor * reach * d) for factor in FAR]
    last = x + (farthest(x) / norm(d)) * d  # a bounded C, however large, does not reach so far
    held = any(norm(project(end) - end) > 0.1 * norm(end) for end in (*(end for _, end in ends), last))
    return not held and all(value(project(end)) <= value(x) - 0.5 * steps * drop for steps, end in ends)
