"""The best point over C on a support, and a lower bound of φ there: by a quadratic program, an eigenvector, or a local method."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ksparse.data.model import QuadraticModel
from ksparse.losses.row_sparse import RowProblem
from ksparse.numerics.bound import EPS, rounding_of, suboptimality_bound
from ksparse.numerics.eigen import leading_eigenvector
from ksparse.numerics.floors import above_floor
from ksparse.numerics.nonconvex import best_on_faces
from ksparse.numerics.qp import Objective, Solution
from ksparse.search.candidate import Candidate
from ksparse.search.polish import (
    PolishEffort,
    best_point,
    minimize_quadratic,
    restricted_problem,
    settled_by_projection,
)
from ksparse.util.arrays import Vector, largest_safe_entry, norm

DIRECTIONS = 4  # of negative curvature along which a nonconvex quadratic is started
NEWTON_STEPS, FIRST_ORDER_STEPS, RESIDUAL = 25, 400, 1e-6  # limits and accuracy of a value that is only compared

if TYPE_CHECKING:
    from ksparse.search.problem import SupportProblem

SAME = 1e-9  # of a point's size: two that are so near lead to the same place


class Evaluator(Protocol):
    """One way to answer for a support."""

    direct: bool  # whether it is a direct solve, cheap and exact

    def solve(self, support: Vector, hint: Candidate | None) -> Candidate | None:
        """The best point on a nonempty sorted support; `hint` is one of a neighbouring support.

        None or `InfeasibleError` where C has no point there, `UndecidedError` where arithmetic cannot tell, `UnboundedError`.
        """

    def distinct(self, support: Vector) -> Vector:
        """The support without variables that are another one once more, where that is seen."""

    def lower_bound(self, support: Vector, found: Candidate) -> float:
        """What φ over C on the support is proved not to fall below; −∞ where nothing is proved."""


class QPEvaluator:
    """The optimum on a support to rounding, its multipliers, and a bound that knows its own rounding."""

    direct = True

    def __init__(self, problem: SupportProblem, model: QuadraticModel) -> None:
        self.problem, self.model = problem, model
        self._latest: tuple[bytes, Objective] = (b"", Objective(np.zeros((0, 0)), np.zeros(0)))

    def solve(self, support: Vector, hint: Candidate | None) -> Candidate | None:
        problem = self.problem
        if problem.linear is None:
            objective = self._objective(support)
            answer = problem.C.restrict(support).minimize_quadratic(objective.H, objective.c, np.zeros(support.size))
            if answer is None:
                return LocalEvaluator(problem).solve(support, hint)
            return self._candidate(objective, support, answer)
        linear = problem.linear.on(support)
        if linear is None:
            return None
        objective, guess = self._objective(support), None if hint is None else hint.active_on(support, linear)
        return self._candidate(objective, support, problem.floors.solve(objective, linear, support, guess))

    def _candidate(self, objective: Objective, support: Vector, found: Solution) -> Candidate:
        value, rounding = self._value(objective, support, found.x)
        return Candidate.of(support, found, value, rounding, self.problem.forced)

    def _objective(self, support: Vector) -> Objective:
        """φ on a support: by the model's H, or from the data where variables are so nearly dependent that H has lost it."""
        key, known = support.tobytes(), self._latest
        if known[0] == key:
            return known[1]
        objective = Objective(self.model.block(support), -self.model.r[support])
        if self.problem.loss.squares() is not None and not objective.well_conditioned:
            root = self.problem.loss.restrict(support).root()
            objective = objective if root is None else Objective.of_squares(*root)
        self._latest = key, objective  # who asked for the value asks for the bound next
        return objective

    def _value(self, objective: Objective, support: Vector, x: Vector) -> tuple[float, float]:
        """φ at x by the model, or by the loss itself where the model's sum is rounding, with its rounding.

        The model's terms cancel where variables are dependent, or the fit is near.
        """
        model, loss = self.model, self.problem.loss
        k, noise, unit = x.size, model.noise, float(np.sqrt(np.abs(model.diagonal[support])) @ np.abs(x))
        value = objective.value(x) + model.constant
        rounding = rounding_of(k) * (objective.terms(x) + abs(model.constant)) + unit * (
            0.5 * noise.entry_error * unit + noise.linear_error
        )
        if rounding <= self.problem.gain_tol(value) or loss.squares() is None:
            return value, rounding
        whole = np.zeros(self.problem.n)
        whole[support] = x
        value = loss.value(whole)
        off = rounding_of(k) * (unit + math.sqrt(2.0 * model.constant))  # of the residual's length
        return value, off * (math.sqrt(2.0 * abs(value)) + 0.5 * off)

    def lower_bound(self, support: Vector, found: Candidate) -> float:
        objective, x, noise = self._objective(support), found.full(self.problem.n)[support], self.model.noise
        linear = None if self.problem.linear is None else self.problem.linear.on(support)
        if linear is None:
            priced = replace(Solution.without_multipliers(x), shift=found.shift, radius=found.radius)
            bound = found.value - self.problem.C.restrict(support).shortfall(objective.H, objective.c, priced, noise)
        elif self.problem.floors.any:
            lowest = above_floor(
                objective, linear, self.problem.floors.size[support], found.active_on(support, linear), noise
            ).lower_bound
            bound = found.value + min(0.0, lowest - objective.value(x))
        else:
            bound = found.value - suboptimality_bound(
                objective, linear, x, found.equation_multipliers, found.row_multipliers, noise
            )
        return max(bound - found.rounding, self.problem.loss.least)

    def distinct(self, support: Vector) -> Vector:
        """The support without variables that are another one once more, to φ and to C: what they do, the other can do alone."""
        linear = self.problem.linear
        if linear is None or self.problem.floors.any:
            return support
        first = support[self.problem.loss.first_duplicates(support)]
        same = np.isin(linear.lower[support], (0.0, -np.inf)) & np.isin(linear.upper[support], (0.0, np.inf))
        same &= (linear.lower[first] == linear.lower[support]) & (linear.upper[first] == linear.upper[support])
        for M in (linear.E, linear.G):
            same &= (M[:, first] == M[:, support]).all(axis=0)
        return np.asarray(support[~same | (first == support)])


class EigenvalueEvaluator:
    """constant − λ_max(V_SS)·radius²."""

    direct = True

    def __init__(self, model: QuadraticModel, radius: float) -> None:
        self.model, self.radius = model, radius

    def solve(self, support: Vector, hint: Candidate | None) -> Candidate:
        start = None if hint is None else hint.full(self.model.n)[support]
        value, x = leading_eigenvector(-0.5 * self.model.block(support), start)
        if value <= 0:  # no variance: 0 is as good as anything
            return Candidate.without_multipliers(support, np.zeros(support.size), self.model.constant)
        x = x * (
            self.radius if x[np.argmax(np.abs(x))] > 0 else -self.radius
        )  # the sign is free: the largest entry is positive
        return Candidate.without_multipliers(support, x, self.model.constant - value * self.radius**2)

    def distinct(self, support: Vector) -> Vector:
        return support

    def lower_bound(self, support: Vector, found: Candidate) -> float:
        V = -0.5 * self.model.block(support)
        blur = (8.0 * EPS + self.model.noise.entry_error) * support.size * float(np.abs(V).max())
        return self.model.constant - max(0.0, float(np.linalg.eigvalsh(V)[-1]) + blur) * self.radius**2


class RowEvaluator:
    """The best X on a support; a candidate's x is then a matrix, one row per member."""

    def __init__(self, wide: RowProblem, least: float) -> None:
        self.wide, self.least, self.direct = wide, least, wide.exact

    def solve(self, support: Vector, hint: Candidate | None) -> Candidate | None:
        begin = None
        if hint is not None and hint.x.ndim == 2:  # of a row that was not there 0
            begin = np.zeros((support.size, self.wide.width))
            kept = np.isin(support, hint.support)
            begin[kept] = hint.x[np.isin(hint.support, support)]
        found = self.wide.solve(support, begin)
        if not np.isfinite(found.value):
            return None
        return Candidate(support, found.X, found.value, np.zeros(support.size), np.zeros(0), rounding=found.rounding)

    def distinct(self, support: Vector) -> Vector:
        return support

    def lower_bound(self, support: Vector, found: Candidate) -> float:
        return max(found.value - found.rounding - self.wide.shortfall(support, found.x), self.least)


class LocalEvaluator:
    """A stationary point on a support; of a quadratic that is not convex, on few variables, the best one."""

    direct = False

    def __init__(self, problem: SupportProblem) -> None:
        self.problem = problem

    def solve(self, support: Vector, hint: Candidate | None) -> Candidate | None:
        problem, k = self.problem, support.size
        rows = 0 if problem.linear is None else problem.linear.h.size
        if problem.linear is not None and problem.linear.on(support) is None:
            return None
        begins = [np.zeros(k) if hint is None else hint.full(problem.n)[support]]
        if (
            not problem.can.treated_as_convex
        ):  # 0 may be stationary, and there may be several minima: a few starts near 0 and further out, the best
            signs = np.ones(k), -np.ones(k), np.where(np.arange(k) % 2, -1.0, 1.0)
            begins += [size * sign for size in sorted({1.0 / k, 1.0}) for sign in signs]
        if problem.model is not None:
            objective = Objective(problem.model.block(support), -problem.model.r[support])
            begins += [] if problem.can.treated_as_convex else _ways_down(objective, DIRECTIONS)
            best = self._of_quadratic(objective, support, begins)
            if best is not None:
                value = self._value(problem.model, objective, support, best)
                return Candidate.of(support, Solution.without_multipliers(best, rows), value, 0.0, problem.forced)
        restricted = restricted_problem(problem.loss, problem.C, support)
        work = PolishEffort(NEWTON_STEPS, FIRST_ORDER_STEPS, RESIDUAL, by_value=True)
        found = min((best_point(restricted, x, problem.deadline, work) for x in begins), key=restricted.F)
        return Candidate.of(
            support, Solution.without_multipliers(found.x, rows), restricted.F(found), 0.0, problem.forced
        )

    def _of_quadratic(self, objective: Objective, support: Vector, begins: list[Vector]) -> Vector | None:
        """The best point of a quadratic for which C has no direct solve, on the model alone; None where that takes a polish."""
        problem = self.problem
        on_faces = None if problem.can.treated_as_convex else self._on_all_faces(objective, support)
        if problem.linear is not None and (
            problem.can.treated_as_convex or on_faces is not None
        ):  # where the faces are all that there is
            return on_faces
        C = problem.C.restrict(support).like(begins[0])  # for one run: it may remember where it projected last
        best = minimize_quadratic(objective, C, begins[0]) if on_faces is None else None
        if best is not None and problem.can.treated_as_convex:
            return best
        known = [point for point in (on_faces, best) if point is not None]
        points = _distinct([*(C.project(begin) for begin in begins), *known])
        settled = settled_by_projection(objective, C, points, FIRST_ORDER_STEPS, RESIDUAL, problem.deadline)
        candidates: list[Vector] = [settled, *known]
        return min(candidates, key=objective.value)

    def _value(self, model: QuadraticModel, objective: Objective, support: Vector, x: Vector) -> float:
        """φ at x: by the loss itself where it is a sum of squares, of which the model's terms may leave rounding."""
        if self.problem.loss.squares() is None:
            return objective.value(x) + model.constant
        whole = np.zeros(self.problem.n)
        whole[support] = x
        return self.problem.loss.value(whole)

    def _on_all_faces(self, objective: Objective, support: Vector) -> Vector | None:
        """The least value of a quadratic that is not convex, where C has few faces."""
        if self.problem.linear is not None:
            linear = self.problem.linear.on(support)
            return None if linear is None else best_on_faces(objective.H, objective.c, linear)
        return self.problem.C.restrict(support).minimize_on_faces(objective.H, objective.c)

    def distinct(self, support: Vector) -> Vector:
        return support

    def lower_bound(self, support: Vector, found: Candidate) -> float:
        return -np.inf


def _distinct(points: list[Vector]) -> list[Vector]:
    """Each point once: a cone takes half of all directions to 0."""
    found: list[Vector] = []
    for point in points:
        if not any(np.abs(point - other).max() <= SAME * np.abs(point).max() for other in found):
            found.append(point)
    return found


def _ways_down(objective: Objective, most: int) -> list[Vector]:
    """Points on both sides along the directions of most negative curvature, as far out as it takes to outweigh the slope.

    Points that are chosen without a look at H may all lie where it is flat, or in the valley of 0.
    """
    bends, vectors = np.linalg.eigh(objective.H)
    down = np.flatnonzero(bends < -1e-12 * np.abs(bends).max())[:most]
    reach = np.clip(2.0 * norm(objective.c) / np.abs(bends[down]), 1.0, largest_safe_entry(bends))
    return [side * far * vectors[:, i] for i, far in zip(down, reach, strict=True) for side in (1.0, -1.0)]
