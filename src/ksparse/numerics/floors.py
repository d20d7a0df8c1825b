"""Minimum sizes of nonzeros, and a convex quadratic where every variable has its minimum size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ksparse.errors import InfeasibleError, UndecidedError
from ksparse.numerics.bound import Noise, suboptimality_bound
from ksparse.numerics.constraints import Linear, most_nonzeros
from ksparse.numerics.qp import Active, Objective, Solution, feasible_point, solve_qp
from ksparse.util.arrays import Vector

BRANCHES = 200  # choices of signs that are tried
ROUNDED = 1e-9  # relative: a floor that exceeds a bound by less is equal to it


@dataclass(frozen=True, eq=False)
class Floors:
    """The minimum size of each variable where it is not 0."""

    size: Vector
    any: bool  # whether some size is above 0

    @classmethod
    def of(cls, size: Vector | float, n: int) -> Floors:
        """Return the floors of n variables, one size for all or one for each."""
        sizes = np.broadcast_to(np.asarray(size, dtype=float), n)
        return cls(sizes, bool(sizes.any()))

    def within(self, linear: Linear) -> Floors:
        """Return the floors, those that exceed a bound by no more than rounding lowered to the size of that bound."""
        size = self.size
        for bound in (np.abs(linear.lower), np.abs(linear.upper)) if self.any else ():
            size = np.where((bound < size) & (size * (1.0 - ROUNDED) <= bound), bound, size)
        return Floors(size, self.any)

    def bounds(self, linear: Linear) -> tuple[Vector, Vector]:
        """Return the bounds of variables that are not 0; one with room on both sides of 0 keeps its own."""
        if not self.any:
            return linear.lower, linear.upper
        return _bounds_above(linear, self.size)

    def two_sided(self, linear: Linear, allowed: Vector) -> bool:
        """Return whether an allowed variable with a floor may lie on either side of 0."""
        return self.any and bool((allowed & (self.size > 0) & (linear.lower < 0) & (linear.upper > 0)).any())

    def room(self, linear: Linear | None, forced: Vector, allowed: Vector) -> int:
        """Return how many nonzeros a point can have among the allowed variables, at least 1; forced ones may be 0."""
        if not self.any or linear is None:
            return max(1, int(allowed.sum()))
        low, high = self.bounds(linear)
        low[forced] = np.minimum(low[forced], 0.0)
        return max(1, int(forced.size), most_nonzeros(linear, low, high, allowed))

    def solve(self, objective: Objective, linear: Linear, support: Vector, guess: Active | None) -> Solution:
        """Return the minimum over the polyhedron of a support; `guess` is an active set to start from."""
        if not self.any:
            return solve_qp(objective, linear, guess)
        return above_floor(objective, linear, self.size[support], guess).found

    def with_signs_of(self, linear: Linear, support: Vector, x: Vector) -> Linear:
        """Return the polyhedron of a support where each variable keeps the sign that it has in x, and its size."""
        size = self.size[support]
        low = np.where(x > 0, np.maximum(linear.lower, size), linear.lower)
        high = np.where(x < 0, np.minimum(linear.upper, -size), linear.upper)
        return Linear(low, high, linear.G, linear.h, linear.E, linear.f)


def _bounds_above(linear: Linear, floor: Vector) -> tuple[Vector, Vector]:
    lower = np.where(linear.lower >= 0, np.maximum(linear.lower, floor), linear.lower)
    return lower, np.where((linear.upper <= 0) & (linear.lower < 0), np.minimum(linear.upper, -floor), linear.upper)


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
    lower, upper = _bounds_above(linear, floor)
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
                lowest,
                value
                - suboptimality_bound(
                    objective, node, found.x, found.equation_multipliers, found.row_multipliers, noise
                ),
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
    lower, upper = _bounds_above(linear, floor)
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
