"""Data matrices made of others without a copy: centred and scaled, some rows, low-rank difference, deflated."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from ksparse.data import design_of
from ksparse.data.design import ByColumns, Design, Work, block_square_sums, move_to
from ksparse.data.products import dense
from ksparse.data.sparse import CentredSparse, centred_squares
from ksparse.util.arrays import Array, Matrix, Vector, is_array, namespace, to_numpy


class Shifted(Design):
    """(A − 1μᵀ)·diag(scale) + 1·fillᵀ, with a last column of ones if `ones`."""

    def __init__(
        self, inner: Design, mean: Vector, scale: Vector, ones: bool = False, fill: Vector | None = None
    ) -> None:
        super().__init__((inner.shape[0], inner.shape[1] + ones), np.dtype(np.float64))
        self.inner, self.mean, self.scale, self.ones, self.fill = inner, mean, scale, ones, fill
        self._count = inner._count

    @property
    def device_array(self) -> Array | None:
        return self.inner.device_array

    def each(self, work: Work) -> list[Any]:
        return self.inner.each(self._on_shifted(work))

    def total(self, work: Work) -> Any:
        return self.inner.total(self._on_shifted(work))

    def _on_shifted(self, work: Work) -> Work:
        given = self.mean, self.scale, self.fill  # not self: workers get no more than they need
        ones, placed = self.ones, [None if one is None else self._placed(one) for one in given]

        def shifted(block: Any, rows: slice) -> Any:
            mean, scale, fill = (move_to(block, one) for one in placed)
            block = (block - mean) * scale
            if fill is not None:
                block = block + fill
            if ones:
                xp = namespace(block)
                block = xp.concat([block, xp.ones_like(block[:, :1])], axis=1)
            return work(block, rows)

        return shifted

    def columns(self, support: Vector) -> Any:
        if self.device_array is None:
            return super().columns(support)
        ones = np.asarray(support) == self.inner.shape[1]
        own = np.where(ones, 0, support)  # a column of ones is 0 times another one, and 1
        cut, fill = self.inner.columns(own), ones.astype(float)
        few = Shifted(design_of(cut), self.mean[own], np.where(ones, 0.0, self.scale[own]), fill=fill)
        return few.dense() if few.device_array is None else few

    def dense(self) -> Vector:
        if self.device_array is None:
            return super().dense()
        return np.concatenate([to_numpy(block) for block in self.each(lambda block, rows: block)])

    def shifted(self, mean: Vector, size: Vector) -> Shifted:
        if mean.any() or self.ones:
            return Shifted(self, mean, 1.0 / size)
        return Shifted(self.inner, self.mean, self.scale / size)

    def with_ones(self) -> Shifted:
        return Shifted(self.inner, self.mean, self.scale, ones=True)

    def __getitem__(self, chosen: Any) -> Shifted:
        return Shifted(self.inner[chosen], self.mean, self.scale, self.ones)


class Subset(Design):
    """The rows of a design selected by a mask."""

    def __init__(self, inner: Design, mask: Vector) -> None:
        super().__init__((int(mask.sum()), inner.shape[1]), inner.dtype)
        self.inner, self._mask, self._places = inner, mask, np.concatenate([[0], np.cumsum(mask)])
        self._count = inner._count

    @classmethod
    def of(cls, inner: Design, chosen: Any) -> Subset:
        """Return the rows of a mask, or of increasing indices."""
        chosen = np.asarray(chosen)
        if chosen.dtype == bool:
            return cls(inner, chosen)
        if (np.diff(chosen) <= 0).any():
            raise ValueError("rows of data read by blocks can only be taken in their order: use folds that keep it")
        mask = np.zeros(inner.shape[0], dtype=bool)
        mask[chosen] = True
        return cls(inner, mask)

    def each(self, work: Work) -> list[Any]:
        return self.inner.each(self._on_chosen(work))

    def total(self, work: Work) -> Any:
        return self.inner.total(self._on_chosen(work))

    def _on_chosen(self, work: Work) -> Work:
        mask, places = self._mask, self._places

        def chosen(block: Any, rows: slice) -> Any:
            return work(block[move_to(block, mask[rows])], slice(int(places[rows.start]), int(places[rows.stop])))

        return chosen


class LowRankDifference(ByColumns):
    """A − UVᵀ without a copy of A; only columns with a nonzero row of V differ from those of A."""

    def __init__(self, inner: Design, U: Vector, V: Vector) -> None:
        super().__init__(inner.shape, np.dtype(np.float64))
        self.inner, self.U, self.V = inner, U, V
        self._count = inner._count
        self._changed = np.flatnonzero(V.any(axis=1))

    def each(self, work: Work) -> list[Any]:
        U, V = self.U, self.V
        return self.inner.each(lambda block, rows: work(to_numpy(block) - U[rows] @ V.T, rows))

    def __matmul__(self, x: Any) -> Any:
        return np.asarray(self.inner @ x - self.U @ (self.V.T @ x))

    def adjoint_product(self, r: Any) -> Any:
        return np.asarray(self.inner.adjoint_product(r) - self.V @ (self.U.T @ r))

    def column_square_sums(self, w: Vector | None) -> Vector:
        """Sum the columns that differ again: a difference of sums would keep the rounding of what was subtracted."""
        found = np.array(self.inner.column_square_sums(w))
        found[self._changed] = block_square_sums(self.columns(self._changed), w)
        return found

    def columns(self, support: Vector) -> Vector:
        return np.asarray(dense(self.inner.columns(support)) - self.U @ self.V[support].T)

    @property
    def centring_growth(self) -> float:  # type: ignore[override]
        """That of the inner design."""
        return self.inner.centring_growth

    def magnitude_scale(self) -> float:
        return self.inner.magnitude_scale()

    def minus_outer(self, u: Vector, v: Vector) -> LowRankDifference:
        return LowRankDifference(self.inner, np.column_stack([self.U, u]), np.column_stack([self.V, v]))


class Deflated(ByColumns):
    """ZᵀZ − Σ λvvᵀ, n × n, for a factor Z; each product is a pass over Z and back."""

    def __init__(self, factor: Design, values: Vector, taken: Vector) -> None:
        n = factor.shape[1]
        super().__init__((n, n), np.dtype(np.float64))
        self.factor, self.values, self.taken = factor, values, taken  # Z, λ, and v as rows
        self._count = factor._count

    def __matmul__(self, x: Any) -> Any:
        Zx = self.factor @ x
        return np.asarray(self.factor.adjoint_product(Zx) - self.taken.T @ (self.values * (self.taken @ x).T).T)

    def adjoint_product(self, r: Any) -> Vector:
        return np.asarray(self @ r)

    def times(self, X: Vector) -> Vector:
        ZX = self.factor.times(X)
        return np.asarray(self.factor.adjoint_products(ZX) - (X @ self.taken.T * self.values) @ self.taken)

    def columns(self, support: Vector) -> Matrix:
        return np.asarray((self.factor.gram(support, None) - (self.taken[:, support].T * self.values) @ self.taken).T)

    def diagonal(self) -> Vector:
        return np.asarray(self.factor.column_square_sums(None) - self.values @ np.square(self.taken))


def standardize(X: Matrix, name: str, *, scale: bool) -> tuple[Matrix, Array]:
    """Return Z with ZᵀZ the sample covariance of X, or its correlation matrix, and the column means.

    A constant column has no correlation: its column of Z is 0.
    """
    m = X.shape[0]
    if m < 2:
        raise ValueError(f"{name} must have at least 2 rows to have a variance, got {m}")
    if scipy.sparse.issparse(X):
        mean = np.asarray(X.T @ np.ones(m) / m, dtype=X.dtype)  # SciPy's mean sums single precision as such
        variance = centred_squares(X, mean) / m
        rounding = (10 * float(np.finfo(X.dtype).eps)) ** 2
        variance[variance <= rounding * mean.astype(np.float64) ** 2] = 0.0  # a constant column: only rounding is left
        inside = variance > 0
        factor = np.where(inside, (m - 1) ** -0.5, 0.0)
        if scale:
            factor[inside] = (variance[inside] * m) ** -0.5
        return CentredSparse(X, mean, factor.astype(X.dtype)), mean
    if not is_array(X):
        raise TypeError(f"{name} must be a dense array or a scipy.sparse matrix: an operator does not show its columns")
    xp = namespace(X)
    mean = xp.mean(X, axis=0)
    Z = X - mean
    top = xp.max(xp.abs(Z), axis=0)  # so that squares neither overflow nor vanish
    safe = xp.where(top > 0, top, xp.ones_like(top))
    size = top * xp.sqrt(xp.sum((Z / safe) ** 2, axis=0))
    level = float(m) ** 0.5 * xp.abs(mean)
    constant = size <= 10 * float(xp.finfo(X.dtype).eps) * level  # what is left of a constant column is rounding
    divisor = xp.where(constant, xp.ones_like(size), size) if scale else float(m - 1) ** 0.5
    return xp.where(constant, xp.zeros_like(Z), Z / divisor), mean
