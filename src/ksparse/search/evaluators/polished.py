"""Any φ over any C on a support: Newton's method or first-order ones, which prove nothing."""

from __future__ import annotations

import numpy as np

from ksparse.data.model import QuadraticModel
from ksparse.numerics.nonconvex import best_on_faces
from ksparse.numerics.qp import Objective, Solution
from ksparse.search.candidate import Candidate
from ksparse.search.pieces import Pieces
from ksparse.search.polish import Work, best_point, restricted_problem
from ksparse.search.quadratic import minimize_quadratic, settled_by_projection
from ksparse.util.arrays import Vector, largest_safe_entry, norm

SAME = 1e-9  # of a point's size: two that are so near lead to the same place


class Polished:
    """A stationary point on a support; of a quadratic that is not convex, on few variables, the best one."""

    direct = False

    def __init__(self, pieces: Pieces) -> None:
        self.pieces = pieces

    def solve(self, support: Vector, hint: Candidate | None) -> Candidate | None:
        pieces, k = self.pieces, support.size
        if pieces.linear is not None and pieces.linear.on(support) is None:
            return None
        begins = [np.zeros(k) if hint is None else hint.full(pieces.n)[support]]
        if (
            not pieces.treated_as_convex
        ):  # 0 may be stationary, and there may be several minima: a few starts near 0 and further out, the best
            signs = np.ones(k), -np.ones(k), np.where(np.arange(k) % 2, -1.0, 1.0)
            begins += [size * sign for size in sorted({1.0 / k, 1.0}) for sign in signs]
        if pieces.model is not None:
            objective = Objective(pieces.model.block(support), -pieces.model.r[support])
            begins += [] if pieces.treated_as_convex else _ways_down(objective, pieces.settings.directions)
            best = self._of_quadratic(objective, support, begins)
            if best is not None:
                value = self._value(pieces.model, objective, support, best)
                return Candidate.of(support, Solution.unpriced(best, pieces.rows), value, 0.0, pieces.forced)
        problem, settings = restricted_problem(pieces.loss, pieces.C, support), pieces.settings
        work = Work(settings.value_newton, settings.value_steps, settings.value_residual, by_value=True)
        found = min((best_point(problem, x, pieces.deadline, work) for x in begins), key=problem.F)
        return Candidate.of(support, Solution.unpriced(found.x, pieces.rows), problem.F(found), 0.0, pieces.forced)

    def _of_quadratic(self, objective: Objective, support: Vector, begins: list[Vector]) -> Vector | None:
        """The best point of a quadratic for which C has no direct solve, on the model alone; None where that takes a polish."""
        pieces, settings = self.pieces, self.pieces.settings
        on_faces = None if pieces.treated_as_convex else self._on_all_faces(objective, support)
        if pieces.linear is not None and (
            pieces.treated_as_convex or on_faces is not None
        ):  # where the faces are all that there is
            return on_faces
        C = pieces.C.restrict(support).like(begins[0])  # for one run: it may remember where it projected last
        best = minimize_quadratic(objective, C, begins[0]) if on_faces is None else None
        if best is not None and pieces.treated_as_convex:
            return best
        known = [point for point in (on_faces, best) if point is not None]
        points = _distinct([*(C.project(begin) for begin in begins), *known])
        settled = settled_by_projection(
            objective, C, points, settings.value_steps, settings.value_residual, pieces.deadline
        )
        candidates: list[Vector] = [settled, *known]
        return min(candidates, key=objective.value)

    def _value(self, model: QuadraticModel, objective: Objective, support: Vector, x: Vector) -> float:
        """φ at x: by the loss itself where it is a sum of squares, of which the model's terms may leave rounding."""
        if self.pieces.loss.squares() is None:
            return objective.value(x) + model.constant
        whole = np.zeros(self.pieces.n)
        whole[support] = x
        return self.pieces.loss.value(whole)

    def _on_all_faces(self, objective: Objective, support: Vector) -> Vector | None:
        """The least value of a quadratic that is not convex, where C has few faces."""
        if self.pieces.linear is not None:
            linear = self.pieces.linear.on(support)
            return None if linear is None else best_on_faces(objective.H, objective.c, linear)
        return self.pieces.C.restrict(support).minimize_on_faces(objective.H, objective.c)

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
