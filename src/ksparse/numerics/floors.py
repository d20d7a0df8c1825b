"""A convex quadratic where every variable is at least so far from 0."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ksparse.errors import InfeasibleError, UndecidedError
from ksparse.numerics.bound import Noise, shortfall
from ksparse.numerics.constraints import Linear
from ksparse.numerics.qp import Active, Objective, Solution, feasible_point, solve_qp
from ksparse.util.arrays import Vector

BRANCHES = 200  # choices of signs that are tried


@dataclass(frozen=True)
class Floored:
    """The best point above a floor, the polyhedron of the signs it has, and a lower bound over all choices of signs."""

    found: Solution
    linear: Linear
    lower_bound: float


def above_floor(
    objective: Objective, linear: Linear, floor: Vector, guess: Active | None, noise: Noise | None = None
) -> Floored:
    """The minimum with every variable at least its `floor` in size.

    `lower_bound` is −∞ unless asked for by the `noise` that proving it takes.

    A variable with room on both sides of 0 may take either: branch and bound on those that the minimum without their floor leaves short.
    """
    lower, upper = linear.above(floor)
    best: Floored | None = None
    value_of_best, lowest, undecided = np.inf, np.inf, False
    stack = [Linear(lower, upper, linear.G, linear.h, linear.E, linear.f)]
    for _ in range(BRANCHES):
        node = stack.pop() if stack else None
        if node is None:
            break
        if node.provably_empty:
            continue
        try:
            found = solve_qp(objective, node, guess)
        except InfeasibleError as error:
            undecided |= isinstance(error, UndecidedError)
            continue
        value = objective.value(found.x)
        short = np.flatnonzero((np.abs(found.x) < floor) & (node.lower < 0) & (node.upper > 0))
        if value < value_of_best and short.size:
            i = int(short[np.argmax(floor[short] - np.abs(found.x[short]))])
            sides = [_bounded(node, i, node.lower[i], -floor[i]), _bounded(node, i, floor[i], node.upper[i])]
            stack += sides if found.x[i] >= 0 else sides[::-1]  # the nearer side first, from the end
            continue
        if noise is not None:
            lowest = min(
                lowest, value - shortfall(objective, node, found.x, found.equation_price, found.row_price, noise)
            )
        if value < value_of_best:
            best, value_of_best = Floored(found, node, -np.inf), value
    undecided |= bool(stack)
    if best is None:
        raise (
            UndecidedError("no choice of signs could be settled")
            if undecided
            else InfeasibleError("no point is that large throughout")
        )
    return Floored(best.found, best.linear, -np.inf if undecided or noise is None else lowest)


def feasible_above_floor(linear: Linear, floor: Vector) -> Vector | None:
    """A point with every variable at least its `floor` in size, by linear programs on either side of 0; None where none is found."""
    lower, upper = linear.above(floor)
    stack = [Linear(lower, upper, linear.G, linear.h, linear.E, linear.f)]
    for _ in range(BRANCHES):
        node = stack.pop() if stack else None
        if node is None:
            break
        if node.provably_empty:
            continue
        try:
            x = feasible_point(node)
        except InfeasibleError:
            continue
        short = np.flatnonzero((np.abs(x) < floor) & (node.lower < 0) & (node.upper > 0))
        if not short.size:
            return x
        i = int(short[0])
        sides = [_bounded(node, i, node.lower[i], -floor[i]), _bounded(node, i, floor[i], node.upper[i])]
        stack += sides if x[i] >= 0 else sides[::-1]
    return None


def _bounded(linear: Linear, i: int, low: float, high: float) -> Linear:
    """The polyhedron with other bounds on one variable."""
    lower, upper = linear.lower.copy(), linear.upper.copy()
    lower[i], upper[i] = low, high
    return Linear(lower, upper, linear.G, linear.h, linear.E, linear.f)
