"""Sparse principal components: max xᵀVx over ‖x‖ ≤ r on a support, V seen through its rows on the support only.

The value on S is λ_max(V_SS). After dropping j and taking i a Rayleigh quotient bounds it from below: that of the best point in
span{x without j, e_i}, a 2 × 2 eigenproblem in closed form, for all pairs at once. The best few are confirmed by an eigensolve.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ksparse.search.neighbourhoods.base import Move
from ksparse.search.neighbourhoods.solved import Solved, falling
from ksparse.search.problem import SupportProblem
from ksparse.util.arrays import Vector, norm

COMPARED = 8  # highest-ranked moves that are made, to take the best of them


class Rayleigh(Solved):
    """Moves ranked by the Rayleigh quotient after them; gains are differences of explained variance."""

    monotone = True

    def __init__(self, problem: SupportProblem) -> None:
        super().__init__(problem)
        self.compared = COMPARED

    def _rows(self) -> Vector:
        """V[support, :]."""
        model = self.problem.model
        assert model is not None
        return -0.5 * model.rows(self.at.support)

    def _diagonal(self) -> Vector:
        model = self.problem.model
        assert model is not None
        return -0.5 * model.diagonal

    def add_ranks(self) -> Vector:
        """What the best point in span{x, e_i} explains beyond x; where x is 0, the variance of i."""
        problem, diagonal = self.problem, self._diagonal()
        gains = diagonal.copy()
        if self.at.x.any():
            unit = self.at.x / norm(self.at.x)
            V = self._rows()
            value = float(unit @ V[:, self.at.support] @ unit)
            gains = larger_eigenvalue(np.full(problem.n, value), unit @ V, diagonal) - value
        gains = np.where(problem.allowed, np.maximum(gains, 1e-300), 0.0)  # any will do: there is room for it
        gains[self.at.support] = 0.0
        return gains

    def drop_ranks(self) -> Vector:
        return np.where(self.movable, np.square(self.at.x), np.inf)

    def moves(self, least: float, full: bool) -> Iterator[Move]:
        entering = self.problem.inactive(self.at)
        if not self.at.x.any() or not entering.size:
            return
        support = self.at.support
        for place in falling(self._quotients(entering).ravel(), -np.inf):
            j, i = divmod(place, entering.size)
            yield Move((int(support[j]),), (int(entering[i]),))

    def _quotients(self, entering: Vector) -> Vector:
        """For every swap the Rayleigh quotient after it; −∞ for forced variables."""
        V, unit, support = self._rows(), self.at.x / norm(self.at.x), self.at.support
        Vx = unit @ V
        rest = np.maximum(1.0 - unit**2, 1e-300)  # ‖x without j‖²
        a = (unit @ Vx[support] - 2.0 * unit * Vx[support] + unit**2 * np.diag(V[:, support])) / rest
        b = (Vx[entering] - unit[:, None] * V[:, entering]) / np.sqrt(rest)[:, None]
        table = larger_eigenvalue(a[:, None], b, self._diagonal()[entering])
        table[~self.movable] = -np.inf
        return table


def larger_eigenvalue(a: Vector, b: Vector, c: Vector) -> Vector:
    """λ_max of [[a, b], [b, c]], entry by entry."""
    half = 0.5 * (a - c)
    return np.asarray(0.5 * (a + c) + np.sqrt(half * half + b * b))
