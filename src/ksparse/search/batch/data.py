"""The data that a batch shares: A, its Gram matrix once, and what a block of right-hand sides asks of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ksparse.base.arrays import Vector
from ksparse.linalg.designs import design_of
from ksparse.search.batch.problem import BatchProblem, Best
from ksparse.search.settings import SearchSettings

REFINED = 2  # steps from the residual of the raw data: each takes off what arithmetic on the Gram matrix left of the one before


@dataclass(frozen=True)
class BatchData:
    """½ Σ wᵢ((Ax)ᵢ − bᵢ)² + ½ Σ ρⱼxⱼ² over signs: the columns that may be used, turned so that a sign is always x ≥ 0."""

    A: Any  # float64, dense or scipy.sparse
    weight: Vector | None  # w
    ridge: Vector  # one ρ per column
    columns: Vector  # which of the user's each of ours is
    turn: Vector  # −1 for those whose coefficient may not be positive
    size: Vector  # the root of the Gram matrix's diagonal
    problem: BatchProblem

    @classmethod
    def of(
        cls, A: Any, weight: Vector | None, ridge: Vector, lower: Vector, upper: Vector, k: int, settings: SearchSettings
    ) -> BatchData | None:
        """The shared data; None where no column may be used. `lower` and `upper` are 0 or infinite."""
        design = design_of(A)
        columns = np.flatnonzero((lower < upper) & (design.squares(weight) > 0))
        if not columns.size:
            return None
        turn, ridge = np.where(upper[columns] == 0, -1.0, 1.0), ridge[columns]
        gram = design.gram(columns, weight)[:, columns] + np.diag(ridge)
        size = np.sqrt(np.diag(gram))
        gram = gram * np.outer(turn / size, turn / size)
        np.fill_diagonal(gram, 1.0)
        signed = (lower[columns] == 0) | (upper[columns] == 0)
        return cls(
            design.columns(columns), weight, ridge, columns, turn, size, BatchProblem.of(gram, signed, min(k, columns.size), settings)
        )

    def weighted(self, B: Vector) -> Vector:
        """Rows times w."""
        return B if self.weight is None else self.weight[:, None] * B

    def pulls(self, B: Vector) -> tuple[Vector, Vector]:
        """r = Aᵀb of each right-hand side, one per row with a 0 for each empty seat, and ½‖b‖²."""
        B = np.asarray(B, dtype=np.float64)
        R, weighted = np.zeros((B.shape[1], len(self.problem.G))), self.weighted(B)
        R[:, : len(self.size)] = (self.A.T @ weighted).T * (self.turn / self.size)
        return R, 0.5 * np.einsum("it,it->t", B, weighted)

    def refined(self, B: Vector, best: Best) -> tuple[Vector, Vector]:
        """The x of each right-hand side (one per row, by seats) and its stationarity residual, both from the raw data."""
        problem, B, S = self.problem, np.asarray(B, dtype=np.float64), best.support
        n, full = problem.n, np.minimum(best.support, problem.n - 1)
        held = problem.n > S
        unit = self.turn[full] / self.size[full]  # from the search's units to the user's
        M = np.linalg.inv(problem.G[S[:, :, None], S[:, None, :]])
        x = np.where(held, best.x, 0.0)
        for step in range(REFINED + 1):
            X = np.zeros((n, len(S)))
            rows, seats = np.nonzero(held)
            X[full[rows, seats], rows] = (x * unit)[rows, seats]
            slope = self.A.T @ self.weighted(B - self.A @ X) - self.ridge[:, None] * X
            pull = np.where(held, np.take_along_axis(slope.T, full, axis=1) * unit, 0.0)
            if step < REFINED:
                x = x + np.einsum("bst,bt->bs", M, pull)
                held = held & ~(problem.signed[S] & (x <= 0.0))  # a sign that rounding alone gave
                x = np.where(held, x, 0.0)
        scale = np.linalg.norm(np.where(held, np.take_along_axis((self.A.T @ self.weighted(B)).T, full, axis=1) * unit, 0.0), axis=1)
        return x * unit, np.linalg.norm(pull, axis=1) / np.where(scale > 0, scale, 1.0)
