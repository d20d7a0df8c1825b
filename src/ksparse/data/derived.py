"""Data matrices made of others without a copy: centred and scaled, some rows, a low-rank difference, deflated, standardised."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from ksparse.data.design import Design, Work
from ksparse.data.products import dense
from ksparse.data.sparse import CentredSparse, centred_squares
from ksparse.util.arrays import Array, Matrix, Vector, is_array, namespace


class Shifted(Design):
    """(A − 1μᵀ)·diag(scale), with a last column of ones where `ones` says so."""

    def __init__(self, inner: Design, mean: Vector, scale: Vector, ones: bool = False) -> None:
        super().__init__((inner.shape[0], inner.shape[1] + ones), np.dtype(np.float64))
        self.inner, self.mean, self.scale, self.ones = inner, mean, scale, ones
        self._count = inner._count

    def each(self, work: Work) -> list[Any]:
        return self.inner.each(self._on_shifted(work))

    def total(self, work: Work) -> Any:
        return self.inner.total(self._on_shifted(work))

    def _on_shifted(self, work: Work) -> Work:
        mean, scale, ones = self.mean, self.scale, self.ones  # not self: workers get no more than they need

        def shifted(block: Any, rows: slice) -> Any:
            block = (block - mean) * scale
            return work(np.column_stack([block, np.ones(len(block))]) if ones else block, rows)

        return shifted

    def shifted(self, mean: Vector, size: Vector) -> Design:
        """In one step, where only the scale is another."""
        return (
            super().shifted(mean, size)
            if mean.any() or self.ones
            else Shifted(self.inner, self.mean, self.scale / size)
        )

    def with_ones(self) -> Shifted:
        return Shifted(self.inner, self.mean, self.scale, ones=True)


class Subset(Design):
    """The rows of a design where a mask holds."""

    def __init__(self, inner: Design, mask: Vector) -> None:
        super().__init__((int(mask.sum()), inner.shape[1]), inner.dtype)
        self.inner, self._mask, self._places = inner, mask, np.concatenate([[0], np.cumsum(mask)])
        self._count = inner._count

    @classmethod
    def of(cls, inner: Design, chosen: Any) -> Subset:
        """By a mask, or by the numbers of rows, which must rise."""
        chosen = np.asarray(chosen)
        if chosen.dtype == bool:
            return cls(inner, chosen)
        if (np.diff(chosen) <= 0).any():
            raise ValueError(
                "rows of data that are read by blocks can only be taken in their order: use folds that keep it"
            )
        mask = np.zeros(inner.shape[0], dtype=bool)
        mask[chosen] = True
        return cls(inner, mask)

    def each(self, work: Work) -> list[Any]:
        return self.inner.each(self._on_chosen(work))

    def total(self, work: Work) -> Any:
        return self.inner.total(self._on_chosen(work))

    def _on_chosen(self, work: Work) -> Work:
        mask, places = self._mask, self._places
        return lambda block, rows: work(block[mask[rows]], slice(int(places[rows.start]), int(places[rows.stop])))


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


def standardize(X: Matrix, name: str, *, scale: bool) -> tuple[Matrix, Array]:
    """Z with ZᵀZ the sample covariance of X, or its correlation matrix, and the column means.

    A constant column has no correlation: its column of Z is 0.
    """
    m = X.shape[0]
    if m < 2:
        raise ValueError(f"{name} must have at least 2 rows to have a variance, got {m}")
    if scipy.sparse.issparse(X):
        mean = np.asarray(
            X.T @ np.ones(m) / m, dtype=X.dtype
        )  # SciPy's own divides first, and sums single precision as such
        variance = centred_squares(X, mean) / m
        rounding = (10 * float(np.finfo(X.dtype).eps)) ** 2
        variance[variance <= rounding * mean.astype(np.float64) ** 2] = (
            0.0  # what is left of a constant column is rounding
        )
        factor = _inverse_root(variance * m) if scale else np.where(variance > 0, (m - 1) ** -0.5, 0.0)
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


def _inverse_root(variance: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    out = np.zeros_like(variance)
    positive = variance > 0
    out[positive] = variance[positive] ** -0.5
    return out
