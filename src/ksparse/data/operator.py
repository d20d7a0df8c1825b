"""Linear operators, known by A @ x and A.T @ r: scipy's LinearOperator, pylops, or your own. A product is a pass."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from ksparse.data.design import ByColumns, block_square_sums, column_chunks
from ksparse.util.arrays import Vector
from ksparse.util.checks import check_adjoint, check_callable, check_matrix, check_vector

MANY = 4096  # columns: if there are more, not all are computed one by one
MEMORY = 2**28  # bytes of columns that are remembered
PROBES = 32  # random products that estimate the norms of columns, each to a quarter of its square


class Operator(ByColumns):
    """An operator with optional knowledge of the user: `diagonal` of AᵀA, and `columns`, a function of indices."""

    def __init__(
        self, operator: Any, diagonal: Vector | None = None, columns: Callable[[Vector], Any] | None = None
    ) -> None:
        dtype = getattr(operator, "dtype", None)
        super().__init__(operator.shape, np.dtype(np.float32 if dtype == np.float32 else np.float64))
        self.operator, self._diagonal, self._columns = operator, diagonal, columns
        self._known: dict[int, Vector] = {}  # columns computed so far

    @cached_property
    def _adjoint(self) -> Any:
        return self.operator.T  # on first use: a symmetric operator may lack it

    def hides_columns(self, weighted: bool) -> bool:
        return self.shape[1] > MANY and (weighted or self._diagonal is None)

    def __matmul__(self, x: Any) -> Any:
        return self._products(self.operator, x, self.shape[0])

    def adjoint_product(self, r: Any) -> Any:
        return self._products(self._adjoint, r, self.shape[1])

    def _products(self, operator: Any, x: Any, length: int) -> Any:
        if x.ndim == 1:
            self.record_pass()
            return np.asarray(operator @ x)
        out = np.empty((length, x.shape[1]))
        for j, column in enumerate(x.T):
            self.record_pass()
            out[:, j] = operator @ np.ascontiguousarray(column)
        return out

    def column_square_sums(self, w: Vector | None) -> Vector:
        if w is None and self._diagonal is not None:
            return self._diagonal
        return np.concatenate([block_square_sums(self.columns(part), w) for part in column_chunks(self.shape[1])])

    def column_norms(self) -> Vector:
        """Return the norms, or estimates: for normal g, the entries of Aᵀg have the mean square Σᵢ Aᵢⱼ²."""
        if self._diagonal is not None:
            return np.sqrt(self._diagonal)
        rng, squares = np.random.default_rng(0), np.zeros(self.shape[1])
        for _ in range(PROBES):
            squares += np.square(self.adjoint_product(rng.standard_normal(self.shape[0])))
        return np.asarray(np.sqrt(squares / PROBES))

    def columns(self, support: Vector) -> Vector:
        """Return A[:, support] by the user's function, or by one product for each column that is not remembered."""
        if self._columns is not None:
            self.record_pass()
            return np.asarray(self._columns(support), dtype=self.dtype)
        unit = np.zeros(self.shape[1], dtype=self.dtype)
        out = np.empty((self.shape[0], support.size), dtype=unit.dtype)
        for j, i in enumerate(int(i) for i in support):
            if i not in self._known:
                unit[i] = 1.0
                column = self @ unit
                unit[i] = 0.0
                if len(self._known) >= max(1, MEMORY // (8 * self.shape[0])):
                    self._known.clear()
                self._known[i] = column
            out[:, j] = self._known[i]
        return out

    def moments(self, share: Vector, centre: bool) -> tuple[Vector, Vector]:
        raise TypeError("X must be a dense array or a scipy.sparse matrix: an operator does not show its columns")


def operator(A: Any, *, diagonal: Any = None, columns: Callable[[Any], Any] | None = None) -> Operator:
    """Return a data matrix that is known by its products, and by what else is given.

    Parameters
    ----------
    A : object
        Any object with shape, A @ x and A.T @ r (scipy's LinearOperator, pylops, your own).
    diagonal : array-like or None, default=None
        The diagonal of AᵀA, Σᵢ Aᵢⱼ² for each column j. With it a search ranks all swaps and proves results as for a
        matrix in memory. Without it, and with more than 4096 columns, hard thresholding selects some columns, and the
        search is among these.
    columns : callable or None, default=None
        A function of an array of indices S that returns A[:, S]; without it each column is a product.

    Returns
    -------
    Design
        Data for losses.

    Raises
    ------
    ValueError, TypeError
        If A lacks a product, its two products are not adjoint to each other, or `diagonal` or `columns` does not fit
        its shape.

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
