"""H of a quadratic, seen by its diagonal and by some of its columns at a time; it is formed nowhere.

`Gram` is a·AᵀDA + diag(ρ), `Symmetric` a·M. Whatever has the same three methods will do in their place: a user's own H is asked alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse

from ksparse.base.arrays import Matrix, Vector, is_array
from ksparse.base.deadline import OutOfTimeError, time_left
from ksparse.base.threads import all_threads, in_threads
from ksparse.linalg.designs import Adjoint, Design
from ksparse.linalg.matrix import columns, dense
from ksparse.linalg.standardize import Centred, centred_squares

LARGE = 2**27  # multiplications from which a product gains by several threads: they then wait in a loop, for some time
CACHED = 2**20  # entries of data that stay beside the processor
COLUMNS = 4096  # of an operator, which hides them: more are not asked for one by one


class Curvature(Protocol):
    """H, symmetric."""

    def diagonal(self) -> Vector:
        """The diagonal."""

    def rows(self, support: Vector) -> Vector:
        """H[support, :], float64: one pass over the data."""

    def times(self, X: Vector) -> Vector:
        """HX for vectors that are the rows of X."""


@dataclass(frozen=True)
class Gram:
    """H = a·AᵀDA + diag(ρ), D = diag(weight)."""

    A: Matrix
    weight: Vector | None = None
    ridge: Vector | None = None  # ρ
    a: float = 1.0

    @property
    def form(self) -> tuple[Matrix, float] | None:
        """Z and a with H = a·ZᵀZ, where it has no more to it."""
        return (self.A, self.a) if self.weight is None and self.ridge is None else None

    @property
    def ahead(self) -> int:
        """Columns that a pass should bring: data beside the processor is read again for nothing, other data for as much as several cost."""
        return 4 if self.weight is not None and self.A.shape[0] * self.A.shape[1] < CACHED else 16

    def diagonal(self) -> Vector:
        squares = self.a * _diagonal(self.A, self.weight)
        return squares if self.ridge is None else squares + self.ridge

    def rows(self, support: Vector) -> Vector:
        found = self.A.gram(support, self.weight) if isinstance(self.A, Design) else _product(self.A, self.weight, columns(self.A, support))
        if self.a != 1.0:
            found *= self.a
        if self.ridge is not None:
            found[np.arange(support.size), support] += self.ridge[support]
        return found

    def times(self, X: Vector) -> Vector:
        image = _each(self.A, X)
        product = self.a * _each(self.A.T, image if self.weight is None else self.weight * image)
        return product if self.ridge is None else product + self.ridge * X


@dataclass(frozen=True)
class Symmetric:
    """H = a·M."""

    M: Matrix
    a: float = 1.0

    def diagonal(self) -> Vector:
        if is_array(self.M):
            return np.asarray(self.a * np.diag(self.M))
        if scipy.sparse.issparse(self.M):
            return np.asarray(self.a * self.M.diagonal())
        blocks = [columns(self.M, block)[block, np.arange(block.size)] for block in _blocks(self.M.shape[1])]
        return np.asarray(self.a * np.concatenate(blocks))

    def rows(self, support: Vector) -> Vector:
        return np.asarray(self.a * dense(columns(self.M, support)).T)

    def times(self, X: Vector) -> Vector:
        return self.a * _each(self.M, X)


def opaque(A: Matrix) -> bool:
    """Whether a matrix is an operator with so many columns that one product for each is too dear."""
    shown = is_array(A) or scipy.sparse.issparse(A) or isinstance(A, Centred | Design)
    return not shown and A.shape[1] > COLUMNS


def cancelled(A: Matrix) -> float:
    """How much longer columns were before their means were taken off, at most: their rounding is of that size."""
    if not isinstance(A, Centred):
        return 0.0
    squares = centred_squares(A.X, A.mean)
    seen = squares > 0
    whole = squares + A.X.shape[0] * A.mean.astype(np.float64) ** 2
    return float(np.sqrt((whole[seen] / squares[seen]).max(initial=1.0)))


def _each(M: Any, X: Vector) -> Vector:
    """Mx for the rows x of X."""
    if isinstance(M, np.ndarray):
        return np.asarray(X @ M.T)
    return (M @ X.T).T if isinstance(M, Design | Adjoint) else np.array([M @ x for x in X])


def _product(A: Any, w: Vector | None, cut: Any) -> Vector:
    """cutᵀDA."""
    if scipy.sparse.issparse(cut):
        weighted = cut if w is None else scipy.sparse.diags_array(w) @ cut
        return np.asarray((weighted.T @ A).toarray())
    cut = dense(cut)
    weighted = cut if w is None else w[:, None] * cut
    if is_array(A) or scipy.sparse.issparse(A):
        with all_threads() if weighted.size * A.shape[1] >= LARGE else nullcontext():
            return np.asarray(weighted.T @ A)
    return np.array([A.T @ column for column in weighted.T])


def _diagonal(A: Any, w: Vector | None) -> Vector:
    """The diagonal of AᵀDA; an operator, which hides its columns, is asked for them in blocks."""
    if isinstance(A, Design):
        return A.squares(w)
    if isinstance(A, Centred):
        return np.asarray(A.scale.astype(np.float64) ** 2 * centred_squares(A.X, A.mean))
    if scipy.sparse.issparse(A):
        squares = A.multiply(A)
        return np.asarray(squares.sum(axis=0) if w is None else squares.T @ w).ravel()
    if is_array(A):
        return _squared_columns(A, w)
    return np.concatenate([_diagonal(columns(A, block), w) for block in _blocks(A.shape[1])])


def _squared_columns(A: Vector, w: Vector | None) -> Vector:
    """Σᵢ wᵢAᵢⱼ² for each column, the rows shared out to threads where there are many."""

    def part(rows: slice) -> Vector:
        block = A[rows]
        return np.asarray(np.einsum("ij,ij->j", block, block) if w is None else np.einsum("ij,ij,i->j", block, block, w[rows]))

    return np.asarray(sum(in_threads(part, A.shape[0])) if A.nbytes >= 2**24 else part(slice(None)))


def _blocks(n: int) -> Iterator[Vector]:
    """Some columns of an operator at a time, one product each; `OutOfTimeError` where the time is up in between."""
    for block in np.array_split(np.arange(n), max(1, n // 64)):
        if time_left() <= 0:
            raise OutOfTimeError
        yield block
