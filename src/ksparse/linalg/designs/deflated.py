"""V = ZᵀZ − Σ λᵢvᵢvᵢᵀ: what Hotelling's deflations leave of a covariance matrix, which is formed nowhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from ksparse.base.arrays import Matrix, Vector
from ksparse.linalg.designs.base import Design, Work


class Deflated(Design):
    """Symmetric, n × n. Each product is a pass over Z and back."""

    def __init__(self, factor: Design, values: Vector, taken: Vector) -> None:
        n = factor.shape[1]
        super().__init__((n, n), np.dtype(np.float64))
        self.factor, self.values, self.taken = factor, values, taken  # Z, λ, and v as rows
        self._count = factor._count

    def check(self, name: str) -> None:
        """What it was made of is checked."""

    def each(self, work: Work) -> list[Any]:
        """One block, by all of its columns."""
        return [work(self.dense(), slice(0, self.shape[0]))]

    def __matmul__(self, x: Any) -> Any:
        return np.asarray(self.factor.pull(self.factor @ x) - self.taken.T @ (self.values * (self.taken @ x).T).T)

    def pull(self, r: Any) -> Vector:
        return np.asarray(self @ r)

    def times(self, X: Vector) -> Vector:
        return np.asarray(self.factor.pulls(self.factor.times(X)) - (X @ self.taken.T * self.values) @ self.taken)

    def columns(self, support: Vector) -> Matrix:
        return np.asarray((self.factor.gram(support, None) - (self.taken[:, support].T * self.values) @ self.taken).T)

    def diagonal(self) -> Vector:
        return np.asarray(self.factor.squares(None) - self.values @ np.square(self.taken))
