"""The best point over C on a support, and a lower bound: by a quadratic program, an eigenvector or a local method."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ksparse.data.model import QuadraticModel
from ksparse.losses.row_sparse import RowProblem
from ksparse.numerics.bound import EPS, rounding_of, suboptimality_bound
from ksparse.numerics.eigen import leading_eigenvector
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
from ksparse.util.arrays import Vector, embed, largest_safe_entry, norm

DIRECTIONS = 4  # of negative curvature along which a nonconvex quadratic is started
NEWTON_STEPS, FIRST_ORDER_STEPS, RESIDUAL = 25, 400, 1e-6  # limits and accuracy of a value that is only compared

if TYPE_CHECKING:
    from ksparse.search.problem import SupportProblem

SAME = 1e-9  # of a point's size: two points that near are one start


class Evaluator(ABC):
    """The best point on a support, and a lower bound of φ there."""

    direct = False  # whether evaluating is a direct solve, cheap and exact

    @abstractmethod
    def solve(self, support: Vector, hint: Candidate | None) -> Candidate | None:
        """Return the best point on a nonempty sorted support; `hint` is one of a neighbouring support.

        None or `InfeasibleError` if C has no point there, `UndecidedError` if arithmetic cannot tell, `UnboundedError`.
        """

    def without_duplicates(self, support: Vector) -> Vector:
        """Return the support without variables that are known to duplicate another."""
        return support

    def lower_bound(self, support: Vector, found: Candidate) -> float:
        """Return a proved lower bound of φ over C on the support, −∞ if there is none."""
        return -np.inf


@dataclass(frozen=True)
class QPEvaluator(Evaluator):
    """A convex quadratic over a set with multipliers: the optimum to rounding, and a bound with its rounding."""

    problem: SupportProblem
    model: QuadraticModel
    direct = True

    def solve(self, support: Vector, hint: Candidate | None) -> Candidate | None:
        problem, found = self.problem, None
        if problem.linear is None:
            objective = self._objective(support)
            found = problem.C.restrict(support).minimize_quadratic(objective.H, objective.c, np.zeros(support.size))
            if found is None:
                return LocalEvaluator(problem).solve(support, hint)
        else:
            linear = problem.linear.on(support)
            if linear is None:
                return None
            objective, guess = self._objective(support), None if hint is None else hint.active_on(support, linear)
            found = problem.floors.solve(objective, linear, support, guess)
        return Candidate.of(support, found, *self._value(objective, support, found.x), problem.forced)

    def _objective(self, support: Vector) -> Objective:
        """Return φ on a support: by the model's H, or from the data if nearly dependent variables make H inaccurate."""
        key, cache = support.tobytes(), self.problem.cache
        if cache.latest is None or cache.latest[0] != key:
            objective = Objective(self.model.block(support), -self.model.r[support])
            if self.problem.loss.squares() is not None and not objective.well_conditioned:
                root = self.problem.loss.restrict(support).root()
                objective = objective if root is None else Objective.of_squares(*root)
            cache.latest = key, objective
        return cache.latest[1]

    def _value(self, objective: Objective, support: Vector, x: Vector) -> tuple[float, float]:
        """Return φ at x by the model, or by the loss where the model's terms cancel, with its rounding.

        They cancel where variables are dependent, or the fit is nearly perfect.
        """
        model, loss, noise = self.model, self.problem.loss, self.model.noise
        unit = float(np.sqrt(np.abs(model.diagonal[support])) @ np.abs(x))
        value = objective.value(x) + model.constant
        rounding = rounding_of(x.size) * (objective.terms(x) + abs(model.constant))
        rounding += unit * (0.5 * noise.entry_error * unit + noise.linear_error)
        if rounding <= self.problem.gain_tol(value) or loss.squares() is None:
            return value, rounding
        value = loss.value(embed(x, support, self.problem.n))
        off = rounding_of(x.size) * (unit + math.sqrt(2.0 * model.constant))  # of the residual's length
        return value, off * (math.sqrt(2.0 * abs(value)) + 0.5 * off)

    def lower_bound(self, support: Vector, found: Candidate) -> float:
        problem, noise = self.problem, self.model.noise
        objective, x = self._objective(support), found.full(problem.n)[support]
        linear = None if problem.linear is None else problem.linear.on(support)
        if linear is None:
            at = replace(Solution.without_multipliers(x), shift=found.shift, radius=found.radius)
            gap = problem.C.restrict(support).shortfall(objective.H, objective.c, at, noise)
        elif problem.floors.any:
            lowest = problem.floors.lower_bound(objective, linear, support, found.active_on(support, linear), noise)
            gap = max(0.0, objective.value(x) - lowest)
        else:
            equations, rows = found.equation_multipliers, found.row_multipliers
            gap = suboptimality_bound(objective, linear, x, equations, rows, noise)
        return max(found.value - gap - found.rounding, problem.loss.least)

    def without_duplicates(self, support: Vector) -> Vector:
        """Return the support without variables that duplicate another in φ and in C: one can do alone what both do."""
        linear = self.problem.linear
        if linear is None or self.problem.floors.any:
            return support
        first = support[self.problem.loss.first_duplicates(support)]
        same = np.isin(linear.lower[support], (0.0, -np.inf)) & np.isin(linear.upper[support], (0.0, np.inf))
        same &= (linear.lower[first] == linear.lower[support]) & (linear.upper[first] == linear.upper[support])
        for M in (linear.E, linear.G):
            same &= (M[:, first] == M[:, support]).all(axis=0)
        return np.asarray(support[~same | (first == support)])


@dataclass(frozen=True)
class EigenvalueEvaluator(Evaluator):
    """−xᵀVx on a ball: the leading eigenvector of V_SS, of value constant − λ_max(V_SS)·radius²."""

    model: QuadraticModel
    radius: float
    direct = True

    def solve(self, support: Vector, hint: Candidate | None) -> Candidate:
        start = None if hint is None else hint.full(self.model.n)[support]
        value, x = leading_eigenvector(-0.5 * self.model.block(support), start)
        if value <= 0:  # no variance: 0 is as good as any point
            return Candidate.without_multipliers(support, np.zeros(support.size), self.model.constant)
        sign = 1.0 if x[np.argmax(np.abs(x))] > 0 else -1.0  # the sign is free: the largest entry is positive
        value = self.model.constant - value * self.radius**2
        return Candidate.without_multipliers(support, sign * self.radius * x, value)

    def lower_bound(self, support: Vector, found: Candidate) -> float:
        V = -0.5 * self.model.block(support)
        rounding = (8.0 * EPS + self.model.noise.entry_error) * support.size * float(np.abs(V).max())
        return self.model.constant - max(0.0, float(np.linalg.eigvalsh(V)[-1]) + rounding) * self.radius**2


class RowEvaluator(Evaluator):
    """φ of a matrix on some of its rows; a candidate's x is a matrix, one row per member of the support."""

    def __init__(self, rows: RowProblem, least: float) -> None:
        self.rows, self.least, self.direct = rows, least, rows.exact

    def solve(self, support: Vector, hint: Candidate | None) -> Candidate | None:
        begin = None
        if hint is not None and hint.x.ndim == 2:  # 0 for new rows
            begin = np.zeros((support.size, self.rows.width))
            begin[np.isin(support, hint.support)] = hint.x[np.isin(hint.support, support)]
        found = self.rows.solve(support, begin)
        if not np.isfinite(found.value):
            return None
        return Candidate(support, found.X, found.value, np.zeros(support.size), np.zeros(0), rounding=found.rounding)

    def lower_bound(self, support: Vector, found: Candidate) -> float:
        return max(found.value - found.rounding - self.rows.shortfall(support, found.x), self.least)


@dataclass(frozen=True)
class LocalEvaluator(Evaluator):
    """A stationary point of any φ over any C; of a quadratic that is not convex, on few variables, the best point."""

    problem: SupportProblem

    def solve(self, support: Vector, hint: Candidate | None) -> Candidate | None:
        problem, k = self.problem, support.size
        if problem.linear is not None and problem.linear.on(support) is None:
            return None
        begins = [np.zeros(k) if hint is None else hint.full(problem.n)[support]]
        # 0 may be stationary, and there may be several minima: a few starts near 0 and further out
        if not problem.can.treated_as_convex:
            signs = np.ones(k), -np.ones(k), np.where(np.arange(k) % 2, -1.0, 1.0)
            begins += [size * sign for size in sorted({1.0 / k, 1.0}) for sign in signs]
        x = None
        if problem.model is not None:
            objective = Objective(problem.model.block(support), -problem.model.r[support])
            begins += [] if problem.can.treated_as_convex else _points_of_negative_curvature(objective, DIRECTIONS)
            x = self._of_quadratic(objective, support, begins)
        if x is not None and problem.model is not None:
            value = objective.value(x) + problem.model.constant
            if problem.loss.squares() is not None:  # the model's terms may cancel
                value = problem.loss.value(embed(x, support, problem.n))
        else:
            restricted = restricted_problem(problem.loss, problem.C, support)
            work = PolishEffort(NEWTON_STEPS, FIRST_ORDER_STEPS, RESIDUAL, by_value=True)
            found = min((best_point(restricted, x, problem.deadline, work) for x in begins), key=restricted.F)
            x, value = found.x, restricted.F(found)
        rows = 0 if problem.linear is None else problem.linear.h.size
        return Candidate.of(support, Solution.without_multipliers(x, rows), value, 0.0, problem.forced)

    def _of_quadratic(self, objective: Objective, support: Vector, begins: list[Vector]) -> Vector | None:
        """Return the best point of a quadratic over C without a direct solve; None if that takes a polish."""
        problem, convex = self.problem, self.problem.can.treated_as_convex
        on_faces = None if convex else self._on_all_faces(objective, support)
        if problem.linear is not None and (convex or on_faces is not None):  # the faces are all that there is
            return on_faces
        C = problem.C.restrict(support).like(begins[0])  # for one run: it may remember where it projected last
        best = minimize_quadratic(objective, C, begins[0]) if on_faces is None else None
        if best is not None and convex:
            return best
        known: list[Vector] = [point for point in (on_faces, best) if point is not None]
        points = _distinct([*(C.project(begin) for begin in begins), *known])
        settled = settled_by_projection(objective, C, points, FIRST_ORDER_STEPS, RESIDUAL, problem.deadline)
        return min([settled, *known], key=objective.value)

    def _on_all_faces(self, objective: Objective, support: Vector) -> Vector | None:
        """Return the least point of a quadratic that is not convex, if C has few faces."""
        if self.problem.linear is not None:
            linear = self.problem.linear.on(support)
            return None if linear is None else best_on_faces(objective.H, objective.c, linear)
        return self.problem.C.restrict(support).minimize_on_faces(objective.H, objective.c)


def _distinct(points: list[Vector]) -> list[Vector]:
    """Return each point once: a cone projects half of all directions to 0."""
    found: list[Vector] = []
    for point in points:
        if not any(np.abs(point - other).max() <= SAME * np.abs(point).max() for other in found):
            found.append(point)
    return found


def _points_of_negative_curvature(objective: Objective, most: int) -> list[Vector]:
    """Return points on both sides along the directions of most negative curvature, far enough to outweigh the slope.

    Points chosen without H may all lie where it is flat, or in the valley of 0.
    """
    curvature, vectors = np.linalg.eigh(objective.H)
    down = np.flatnonzero(curvature < -1e-12 * np.abs(curvature).max())[:most]
    reach = np.clip(2.0 * norm(objective.c) / np.abs(curvature[down]), 1.0, largest_safe_entry(curvature))
    return [side * far * vectors[:, i] for i, far in zip(down, reach, strict=True) for side in (1.0, -1.0)]
