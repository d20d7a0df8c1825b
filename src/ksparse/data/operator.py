"""A matrix that shows nothing but its products, A @ x and A.T @ r: scipy's LinearOperator, pylops, one's own. Each product is a pass."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from ksparse.data.design import Design, Work, in_parts
from ksparse.util.arrays import Vector
from ksparse.util.checks import check_adjoint, check_callable, check_matrix, check_vector

MANY = 4096  # columns: more are not asked for one by one


MEMORY = 2**28  # bytes of columns that are remembered


PROBES = 32  # random products that the lengths of columns are estimated by, each to a quarter of its square


class Operator(Design):
    """Products, and what the user knows besides: `diagonal` of AᵀA, and `columns`, a function of indices."""

    def __init__(
        self, operator: Any, diagonal: Vector | None = None, columns: Callable[[Vector], Any] | None = None
    ) -> None:
        dtype = getattr(operator, "dtype", None)
        super().__init__(operator.shape, np.dtype(np.float32 if dtype == np.float32 else np.float64))
        self.operator, self._diagonal, self._columns = operator, diagonal, columns
        self._known: dict[int, Vector] = {}  # columns that were asked for

    @cached_property
    def _adjoint(self) -> Any:
        return self.operator.T  # a symmetric one may do without

    def check(self, name: str) -> None:
        """It does not show its numbers; what can be seen was looked at when it was made."""

    def each(self, work: Work) -> list[Any]:
        """One block, by all of its columns."""
        return [work(self.dense(), slice(0, self.shape[0]))]

    def hides(self, weighted: bool) -> bool:
        return self.shape[1] > MANY and (weighted or self._diagonal is None)

    def __matmul__(self, x: Any) -> Any:
        return self._products(self.operator, x, self.shape[0])

    def pull(self, r: Any) -> Any:
        return self._products(self._adjoint, r, self.shape[1])

    def _products(self, operator: Any, x: Any, length: int) -> Any:
        if x.ndim == 1:
            self.count()
            return np.asarray(operator @ x)
        out = np.empty((length, x.shape[1]))
        for j, column in enumerate(x.T):
            self.count()
            out[:, j] = operator @ np.ascontiguousarray(column)
        return out

    def squares(self, w: Vector | None) -> Vector:
        if w is None and self._diagonal is not None:
            return self._diagonal
        found = []
        for part in in_parts(self.shape[1]):
            cut = self.columns(part)
            found.append(np.einsum("ij,ij->j", cut, cut) if w is None else np.einsum("ij,ij,i->j", cut, cut, w))
        return np.concatenate(found)

    def lengths(self) -> Vector:
        """Estimated where nothing is known: the entries of Aᵀg have the squares Σᵢ Aᵢⱼ² on average over normal g."""
        if self._diagonal is not None:
            return np.sqrt(self._diagonal)
        rng, squares = np.random.default_rng(0), np.zeros(self.shape[1])
        for _ in range(PROBES):
            squares += np.square(self.pull(rng.standard_normal(self.shape[0])))
        return np.asarray(np.sqrt(squares / PROBES))

    def gram(self, support: Vector, w: Vector | None) -> Vector:
        cut = self.columns(support)
        return np.asarray(self.pull(cut if w is None else w[:, None] * cut).T)

    def columns(self, support: Vector) -> Vector:
        """One product each, where the user gives no other way."""
        if self._columns is not None:
            self.count()
            return np.asarray(self._columns(support), dtype=self.dtype)
        unit = np.zeros(self.shape[1], dtype=self.dtype)
        out = np.empty((self.shape[0], support.size), dtype=unit.dtype)
        for j, i in enumerate(int(i) for i in support):
            if i not in self._known:
                unit[i] = 1.0
                self._remember(i, self @ unit)
                unit[i] = 0.0
            out[:, j] = self._known[i]
        return out

    def _remember(self, i: int, column: Vector) -> None:
        """What a product gave: searches come back to the same columns."""
        if len(self._known) >= max(1, MEMORY // (8 * self.shape[0])):
            self._known.clear()
        self._known[i] = column

    def moments(self, share: Vector, centre: bool) -> tuple[Vector, Vector]:
        raise TypeError("X must be a dense array or a scipy.sparse matrix: an operator does not show its columns")


def operator(A: Any, *, diagonal: Any = None, columns: Callable[[Any], Any] | None = None) -> Operator:
    """A data matrix that is known by its products, with what more is known of it.

    Parameters
    ----------
    A : object
        Any with shape, A @ x and A.T @ r (scipy's LinearOperator, pylops, your own).
    diagonal : array-like or None, default=None
        Of AᵀA, Σᵢ Aᵢⱼ² for each column: with it a search ranks all exchanges and proves as for a matrix in memory. Without, where A has
        more than 4096 columns, hard thresholding leads to some of them, and the search is among those.
    columns : callable or None, default=None
        A function of an array of indices S that gives A[:, S]; without it each column is a product.

    Returns
    -------
    Design
        To be given to losses as data.

    Raises
    ------
    ValueError, TypeError
        If A lacks a product, its two products are not each other's adjoint, or what is said of it does not fit its shape.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> from scipy.sparse.linalg import aslinearoperator
    >>> rng = np.random.default_rng(0)
    >>> dense = rng.standard_normal((60, 20))
    >>> A = ks.operator(aslinearoperator(dense), diagonal=(dense**2).sum(axis=0))
    >>> ks.minimize(ks.LeastSquares(A, dense[:, 4] - dense[:, 7]), 2).support
    array([4, 7])
    """
    matrix = check_matrix(A, "A")
    check_adjoint(matrix, "A")
    if diagonal is not None:
        diagonal = np.asarray(check_vector(diagonal, "diagonal", int(matrix.shape[1]), kind=np.zeros(0)))
        if diagonal.min() < 0:
            raise ValueError(f"diagonal must be >= 0, as sums of squares are, got {diagonal.min():g}")
    if columns is not None:
        check_callable(columns, "columns")
        shape = np.shape(columns(np.arange(1)))
        if shape != (matrix.shape[0], 1):
            raise ValueError(f"columns(S) must have shape (m, len(S)), here ({matrix.shape[0]}, 1), got {shape}")
    return Operator(matrix, diagonal, columns)
