"""A convex quadratic on a support of a polyhedron, or of a set that gives multipliers: one small quadratic program, with its proof."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ksparse.data.model import QuadraticModel
from ksparse.numerics.bound import rounding_of, shortfall
from ksparse.numerics.constraints import Linear
from ksparse.numerics.floors import above_floor
from ksparse.numerics.qp import Objective, Solution, solve_qp
from ksparse.search.candidate import Candidate
from ksparse.search.evaluators.polished import Polished
from ksparse.search.pieces import Pieces
from ksparse.util.arrays import Vector


class Exact:
    """The optimum on a support to rounding, its multipliers, and a bound that knows its own rounding."""

    direct = True

    def __init__(self, pieces: Pieces, model: QuadraticModel) -> None:
        self.pieces, self.model = pieces, model
        self._latest: tuple[bytes, Objective] = (b"", Objective(np.zeros((0, 0)), np.zeros(0)))

    def solve(self, support: Vector, hint: Candidate | None) -> Candidate | None:
        pieces = self.pieces
        if pieces.linear is None:
            objective = self._objective(support)
            answer = pieces.C.restrict(support).minimize_quadratic(objective.H, objective.c, np.zeros(support.size))
            if answer is None:
                return Polished(pieces).solve(support, hint)
            return self._candidate(objective, support, answer)
        linear = pieces.linear.on(support)
        if linear is None:
            return None
        objective, guess = self._objective(support), None if hint is None else hint.active_on(support, linear)
        found = (
            above_floor(objective, linear, pieces.floor[support], guess).found
            if pieces.floored
            else solve_qp(objective, linear, guess)
        )
        return self._candidate(objective, support, found)

    def _candidate(self, objective: Objective, support: Vector, found: Solution) -> Candidate:
        value, rounding = self._value(objective, support, found.x)
        return Candidate.of(support, found, value, rounding, self.pieces.forced)

    def _objective(self, support: Vector) -> Objective:
        """φ on a support: by the model's H, or from the data where variables are so nearly dependent that H has lost it."""
        key, known = support.tobytes(), self._latest
        if known[0] == key:
            return known[1]
        objective = Objective(self.model.block(support), -self.model.r[support])
        if self.pieces.loss.squares() is not None and not objective.well_conditioned:
            root = self.pieces.loss.restrict(support).root()
            objective = objective if root is None else Objective.of_squares(*root)
        self._latest = key, objective  # who asked for the value asks for the bound next
        return objective

    def _value(self, objective: Objective, support: Vector, x: Vector) -> tuple[float, float]:
        """φ at x by the model, or by the loss itself where the model's sum is rounding, with its rounding.

        The model's terms cancel where variables are dependent, or the fit is near.
        """
        model, loss = self.model, self.pieces.loss
        k, noise, unit = x.size, model.noise, float(np.sqrt(np.abs(model.diagonal[support])) @ np.abs(x))
        value = objective.value(x) + model.constant
        rounding = rounding_of(k) * (objective.terms(x) + abs(model.constant)) + unit * (
            0.5 * noise.entry_error * unit + noise.linear_error
        )
        if rounding <= self.pieces.tolerance(value) or loss.squares() is None:
            return value, rounding
        whole = np.zeros(self.pieces.n)
        whole[support] = x
        value = loss.value(whole)
        off = rounding_of(k) * (unit + math.sqrt(2.0 * model.constant))  # of the residual's length
        return value, off * (math.sqrt(2.0 * abs(value)) + 0.5 * off)

    def lower_bound(self, support: Vector, found: Candidate) -> float:
        objective, x, noise = self._objective(support), found.full(self.pieces.n)[support], self.model.noise
        linear = None if self.pieces.linear is None else self.pieces.linear.on(support)
        if linear is None:
            priced = replace(Solution.unpriced(x), shift=found.shift, radius=found.radius)
            bound = found.value - self.pieces.C.restrict(support).shortfall(objective.H, objective.c, priced, noise)
        elif self.pieces.floored:
            lowest = above_floor(
                objective, linear, self.pieces.floor[support], found.active_on(support, linear), noise
            ).lower_bound
            bound = found.value + min(0.0, lowest - objective.value(x))
        else:
            bound = found.value - shortfall(objective, linear, x, found.equation_price, found.row_price, noise)
        return max(bound - found.rounding, self.pieces.loss.least)

    def distinct(self, support: Vector) -> Vector:
        """The support without variables that are another one once more, to φ and to C: what they do, the other can do alone."""
        linear: Linear | None = self.pieces.linear
        if linear is None or self.pieces.floored:
            return support
        first = support[self.pieces.loss.first_duplicates(support)]
        same = np.isin(linear.lower[support], (0.0, -np.inf)) & np.isin(linear.upper[support], (0.0, np.inf))
        same &= (linear.lower[first] == linear.lower[support]) & (linear.upper[first] == linear.upper[support])
        for M in (linear.E, linear.G):
            same &= (M[:, first] == M[:, support]).all(axis=0)
        return np.asarray(support[~same | (first == support)])
