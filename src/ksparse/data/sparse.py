"""scipy.sparse matrices, used without a dense copy; a centred one is the same sparse matrix and one more product."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from ksparse.data.design import BLOCK, ByColumns, Design, Work
from ksparse.util.arrays import Vector, copy_with, to_float64

GRAM_ENTRIES = 2**22  # entries of AᵀDA that are made dense at once


class Sparse(Design):
    """A CSR or CSC matrix."""

    entries_in_memory, can_centre = True, False
    pass_is_costly = False  # it reads the nonzeros only

    def __init__(self, matrix: Any) -> None:
        super().__init__(matrix.shape, matrix.dtype)
        self.matrix = matrix

    @property
    def unwrapped(self) -> Any:
        return self.matrix

    def as_float64(self) -> Sparse:
        return copy_with(self, matrix=to_float64(self.matrix), dtype=np.dtype(np.float64))

    @property
    def rows_per_request(self) -> int:
        return max(1, GRAM_ENTRIES // self.shape[1])

    def each(self, work: Work) -> list[Any]:
        """Return the work on blocks of rows that are made dense."""
        self.record_pass()
        rows, height, m = self.matrix.tocsr(), max(1, BLOCK // self.shape[1]), self.shape[0]
        slices = [slice(begin, min(begin + height, m)) for begin in range(0, m, height)]
        return [work(rows[one].toarray().astype(np.float64, copy=False), one) for one in slices]

    def __matmul__(self, x: Any) -> Any:
        self.record_pass()
        return self.matrix @ x

    def adjoint_product(self, r: Any) -> Any:
        self.record_pass()
        return self.matrix.T @ r

    def column_square_sums(self, w: Vector | None) -> Vector:
        self.record_pass()
        squares = self.matrix.multiply(self.matrix)
        return np.asarray(squares.sum(axis=0) if w is None else squares.T @ w).ravel()

    def gram(self, support: Vector, w: Vector | None) -> Vector:
        self.record_pass()
        cut = self.matrix[:, support]
        weighted = cut if w is None else scipy.sparse.diags_array(w) @ cut
        return np.asarray((weighted.T @ self.matrix).toarray())

    def columns(self, support: Vector) -> Any:
        """Return A[:, support], sparse."""
        return self.matrix[:, support]

    def dense(self) -> Vector:
        return np.asarray(self.matrix.toarray())

    def diagonal(self) -> Vector:
        return np.asarray(self.matrix.diagonal())

    def asymmetry(self) -> tuple[float, float]:
        return float(abs(self.matrix - self.matrix.T).max()), float(abs(self.matrix).max())

    def magnitude_scale(self) -> float:
        return float(np.abs(self.matrix.data).max(initial=0.0))

    def moments(self, share: Vector, centre: bool) -> tuple[Vector, Vector]:
        """Return means of 0 and the root mean squares around 0, so that zeros stay zeros; 1 for an empty column."""
        top = np.asarray(abs(self.matrix).max(axis=0).toarray(), dtype=float).ravel()
        top = np.where(top > 0, top, 1.0)  # so that squares neither overflow nor vanish
        near = self.matrix @ scipy.sparse.diags_array(1.0 / top)
        square = np.asarray(near.multiply(near).T @ share, dtype=float).ravel()
        return np.zeros(self.shape[1]), np.where(square > 0, top * np.sqrt(square), 1.0)

    def shifted(self, mean: Vector, size: Vector) -> Any:
        if mean.any():
            return CentredSparse(self.matrix, mean, 1.0 / size)
        return self.matrix @ scipy.sparse.diags_array(1.0 / size)

    def with_ones(self) -> Any:
        return scipy.sparse.hstack([self.matrix, np.ones((self.shape[0], 1))], format="csc")

    def __getitem__(self, chosen: Any) -> Any:
        return self.matrix.tocsr()[chosen]


class CentredSparse(ByColumns):
    """(X − 1μᵀ)·diag(s) for a sparse X, which stays sparse; `gram` from columns keeps the digits of the means."""

    pass_is_costly = False

    def __init__(self, X: Any, mean: Vector, scale: Vector) -> None:
        super().__init__(X.shape, X.dtype)
        self.X, self.mean, self.scale = X, mean, scale

    def as_float64(self) -> CentredSparse:
        """Return the data for vectors in double precision, whose products with a single-precision X are double."""
        mean, scale = self.mean.astype(np.float64), self.scale.astype(np.float64)
        return copy_with(self, mean=mean, scale=scale, dtype=np.dtype(np.float64))

    def each(self, work: Work) -> list[Any]:
        """Return the work on blocks of rows that are made dense."""
        self.record_pass()
        return Sparse(self.X).each(lambda block, rows: work((block - self.mean) * self.scale, rows))

    def __matmul__(self, x: Any) -> Any:
        self.record_pass()
        scaled = (self.scale * x.T).T
        return np.asarray(self.X @ scaled - self.mean @ scaled)

    def adjoint_product(self, r: Any) -> Any:
        self.record_pass()
        return np.asarray((self.scale * (self.X.T @ r).T - self.scale * np.multiply.outer(r.sum(axis=0), self.mean)).T)

    def column_square_sums(self, w: Vector | None) -> Vector:
        if w is not None:
            return super().column_square_sums(w)
        self.record_pass()
        return np.asarray(self.scale.astype(np.float64) ** 2 * centred_squares(self.X, self.mean))

    def columns(self, support: Vector) -> Vector:
        self.record_pass()
        return np.asarray((self.X[:, support].toarray() - self.mean[support]) * self.scale[support])

    @property
    def centring_growth(self) -> float:  # type: ignore[override]
        """Computed from the columns."""
        squares = centred_squares(self.X, self.mean)
        seen = squares > 0
        whole = squares + self.X.shape[0] * self.mean.astype(np.float64) ** 2
        return float(np.sqrt((whole[seen] / squares[seen]).max(initial=1.0)))

    def magnitude_scale(self) -> float:
        return float(np.abs(self.X.data).max(initial=0.0)) * float(np.abs(self.scale).max())

    def shifted(self, mean: Vector, size: Vector) -> Any:
        """Return centred columns with another scale as one sparse matrix."""
        return super().shifted(mean, size) if mean.any() else CentredSparse(self.X, self.mean, self.scale / size)


def centred_squares(X: Any, mean: Vector) -> Vector:
    """Return Σᵢ (Xᵢⱼ − μⱼ)² for each column, by entries: a difference of two sums would lose the digits of the mean."""
    table, mean = X.tocsc(), mean.astype(np.float64)
    stored = np.diff(table.indptr)
    column = np.repeat(np.arange(table.shape[1]), stored)
    squares = np.bincount(column, (table.data.astype(np.float64) - mean[column]) ** 2, minlength=table.shape[1])
    return np.asarray(squares + (table.shape[0] - stored) * mean**2)
