"""Minimum sizes of nonzeros, and a convex quadratic where every variable has its minimum size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ksparse.errors import InfeasibleError, UndecidedError
from ksparse.numerics.bound import Noise, suboptimality_bound
from ksparse.numerics.constraints import Linear, most_nonzeros
from ksparse.numerics.qp import Guess, Objective, Solution, feasible_point, solve_qp
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
        return _bounds_above(linear, self.size) if self.any else (linear.lower, linear.upper)

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

    def solve(self, objective: Objective, linear: Linear, support: Vector, guess: Guess) -> Solution:
        """Return the minimum over the polyhedron of a support; `guess` is an active set to start from."""
        if not self.any:
            return solve_qp(objective, linear, guess)
        return self._branch(objective, linear, support, guess, None)[0]

    def lower_bound(self, objective: Objective, linear: Linear, support: Vector, guess: Guess, noise: Noise) -> float:
        """Return a proved lower bound of the minimum on a support, −∞ if not every choice of signs is settled."""
        return self._branch(objective, linear, support, guess, noise)[1]

    def _branch(
        self, objective: Objective, linear: Linear, support: Vector, guess: Guess, noise: Noise | None
    ) -> tuple[Solution, float]:
        """Return the minimum, and with `noise` a lower bound, by branch and bound on signs.

        A variable with room on both sides of 0 may take either sign: branch on those that are smaller than their floor.
        """
        size, best, value_of_best = self.size[support], None, np.inf
        lowest, undecided = np.inf if noise is not None else -np.inf, False
        stack = [Linear(*_bounds_above(linear, size), linear.G, linear.h, linear.E, linear.f)]
        for node in _popped(stack):
            try:
                found = None if node.provably_empty else solve_qp(objective, node, guess)
            except InfeasibleError as error:
                found, undecided = None, undecided or isinstance(error, UndecidedError)
            if found is None:
                continue
            value, short = objective.value(found.x), _short(node, found.x, size)
            if value < value_of_best and short.size:
                stack += _sides(node, found.x, size, int(short[np.argmax(size[short] - np.abs(found.x[short]))]))
                continue
            if noise is not None:
                equations, rows = found.equation_multipliers, found.row_multipliers
                gap = suboptimality_bound(objective, node, found.x, equations, rows, noise)
                lowest = min(lowest, value - gap)
            if value < value_of_best:
                best, value_of_best = found, value
        undecided |= bool(stack)
        if best is None:
            unsettled = UndecidedError("no choice of signs could be settled")
            raise unsettled if undecided else InfeasibleError("no point is that large throughout")
        return best, -np.inf if undecided else lowest

    def feasible(self, linear: Linear, support: Vector) -> Vector | None:
        """Return a point of a support with every variable at its floor or above, by linear programs, or None."""
        size = self.size[support]
        stack = [Linear(*_bounds_above(linear, size), linear.G, linear.h, linear.E, linear.f)]
        for node in _popped(stack):
            try:
                if node.provably_empty:
                    continue
                x = feasible_point(node)
            except InfeasibleError:
                continue
            short = _short(node, x, size)
            if not short.size:
                return x
            stack += _sides(node, x, size, int(short[0]))
        return None

    def with_signs_of(self, linear: Linear, support: Vector, x: Vector) -> Linear:
        """Return the polyhedron of a support where each variable keeps the sign that it has in x, and its size."""
        size = self.size[support]
        low = np.where(x > 0, np.maximum(linear.lower, size), linear.lower)
        high = np.where(x < 0, np.minimum(linear.upper, -size), linear.upper)
        return Linear(low, high, linear.G, linear.h, linear.E, linear.f)


def _popped(stack: list[Linear]) -> Iterator[Linear]:
    """Yield polyhedra from the top of a stack, to which more may be added, at most BRANCHES of them."""
    for _ in range(BRANCHES):
        if stack:
            yield stack.pop()


def _bounds_above(linear: Linear, floor: Vector) -> tuple[Vector, Vector]:
    lower = np.where(linear.lower >= 0, np.maximum(linear.lower, floor), linear.lower)
    return lower, np.where((linear.upper <= 0) & (linear.lower < 0), np.minimum(linear.upper, -floor), linear.upper)


def _short(node: Linear, x: Vector, size: Vector) -> Vector:
    """Return the variables that are smaller than their size and may take either sign."""
    return np.flatnonzero((np.abs(x) < size) & (node.lower < 0) & (node.upper > 0))


def _sides(node: Linear, x: Vector, size: Vector, i: int) -> list[Linear]:
    """Return the polyhedra where variable i is negative, or positive, and as large as its size; the nearer one last."""
    lower, upper = node.lower.copy(), node.upper.copy()
    upper[i], lower[i] = -size[i], size[i]
    sides = [replace(node, upper=upper), replace(node, lower=lower)]
    return sides if x[i] >= 0 else sides[::-1]
