"""A − UVᵀ with few columns in U and few rows of V that are not 0: what is left of data after projections along sparse directions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ksparse.base.arrays import Vector
from ksparse.linalg.designs.base import Design, Work
from ksparse.linalg.matrix import dense


class Less(Design):
    """The data stay as they are; only columns where V is not 0 differ from theirs."""

    def __init__(self, inner: Design, U: Vector, V: Vector) -> None:
        super().__init__(inner.shape, np.dtype(np.float64))
        self.inner, self.U, self.V = inner, U, V
        self._count = inner._count
        self._changed = np.flatnonzero(V.any(axis=1))

    def check(self, name: str) -> None:
        """What it was made of is checked."""

    def each(self, work: Work) -> list[Any]:
        U, V = self.U, self.V
        return self.inner.each(lambda block, rows: work(dense(block) - U[rows] @ V.T, rows))

    def __matmul__(self, x: Any) -> Any:
        return np.asarray(self.inner @ x - self.U @ (self.V.T @ x))

    def pull(self, r: Any) -> Any:
        return np.asarray(self.inner.pull(r) - self.V @ (self.U.T @ r))

    def squares(self, w: Vector | None) -> Vector:
        """The columns that differ are summed anew: a difference of sums would leave rounding of what is gone."""
        found = np.array(self.inner.squares(w))
        cut = self.columns(self._changed)
        found[self._changed] = np.einsum("ij,ij->j", cut, cut) if w is None else np.einsum("ij,ij,i->j", cut, cut, w)
        return found

    def gram(self, support: Vector, w: Vector | None) -> Vector:
        cut = self.columns(support)
        return np.asarray(self.pull(cut if w is None else w[:, None] * cut).T)

    def columns(self, support: Vector) -> Vector:
        return np.asarray(dense(self.inner.columns(support)) - self.U @ self.V[support].T)

    @property
    def cancelled(self) -> float:
        return self.inner.cancelled

    def magnitude(self) -> float:
        return self.inner.magnitude()

    def less(self, u: Vector, v: Vector) -> Less:
        return Less(self.inner, np.column_stack([self.U, u]), np.column_stack([self.V, v]))
