"""Any φ over any C on a support: Newton's method or first-order ones, which prove nothing."""

from __future__ import annotations

import numpy as np

from ksparse.base.arrays import Vector
from ksparse.linalg.active_set import Solution
from ksparse.linalg.faces import best_on_faces
from ksparse.linalg.objective import Objective
from ksparse.search.candidate import Candidate
from ksparse.search.pieces import Pieces
from ksparse.search.polish import polish


class Polished:
    """A stationary point on a support; of a quadratic that is not convex, on few variables, the best one."""

    direct = False

    def __init__(self, pieces: Pieces) -> None:
        self.pieces = pieces

    def solve(self, support: Vector, hint: Candidate | None) -> Candidate | None:
        pieces, k = self.pieces, support.size
        rows = 0 if pieces.linear is None else pieces.linear.h.size
        if pieces.linear is not None and pieces.linear.on(support) is None:
            return None
        if not pieces.convex and pieces.model is not None:
            objective = Objective(pieces.model.block(support), -pieces.model.r[support])
            best = self._on_all_faces(objective, support)
            if best is not None:
                value = objective.value(best) + pieces.model.constant
                return Candidate.of(support, Solution.unpriced(best, rows), value, 0.0, pieces.forced)
        begins = [np.zeros(k) if hint is None else hint.full(pieces.n)[support]]
        if not pieces.convex:  # 0 may be stationary, and there may be several minima: a few starts, the best
            even = np.full(k, 1.0 / k)
            begins += [even, -even, np.where(np.arange(k) % 2, -even, even)]
        settings = pieces.settings
        found = min(
            (polish(pieces.loss, pieces.C, support, x, pieces.deadline, settings.value_steps, settings.value_residual) for x in begins),
            key=lambda polished: polished.value,
        )
        return Candidate.of(support, Solution.unpriced(found.z, rows), found.value, 0.0, pieces.forced)

    def _on_all_faces(self, objective: Objective, support: Vector) -> Vector | None:
        """The least value of a quadratic that is not convex, where C has few faces."""
        if self.pieces.linear is not None:
            linear = self.pieces.linear.on(support)
            return None if linear is None else best_on_faces(objective.H, objective.c, linear)
        return self.pieces.C.restrict(support).minimize_on_faces(objective.H, objective.c)

    def lower_bound(self, support: Vector, found: Candidate) -> float:
        return -np.inf
