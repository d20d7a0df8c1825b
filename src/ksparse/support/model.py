"""The second-order model of φ that ranks changes of the support: ½xᵀHx − rᵀx + constant, H seen by its columns only.

For a quadratic φ the model is φ itself, one for the whole search, and its columns are remembered. For other smooth losses it is
taken anew at each polished point.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import scipy.sparse

from ksparse.arrays import is_array, to_float64
from ksparse.deadline import OutOfTimeError, time_left
from ksparse.losses import DataFit, LeastSquares, Loss, QuadraticForm
from ksparse.losses.matrix import columns, dense
from ksparse.losses.standardize import Centred, centred_squares
from ksparse.sets.base import Vector
from ksparse.support.bound import Noise, rounding_of
from ksparse.threads import all_threads, in_threads

MEMORY = 2**28  # bytes of remembered columns
LARGE = 2**27  # multiplications from which a product gains by several threads: they then wait in a loop, for some time
COLUMNS = 4096  # of an operator, which hides them: more are not asked for one by one
AHEAD = 16  # columns fetched at a time: a pass over the data costs the same for some


class Model:
    """½xᵀHx − rᵀx + constant."""

    def __init__(
        self, n: int, r: Vector, diagonal: Vector, constant: float, take_rows: Callable[[Vector], Vector], noise: Noise | None = None
    ) -> None:
        self.n, self.r, self.diagonal, self.constant = n, r, diagonal, constant
        self.noise = Noise() if noise is None else noise
        self._take = take_rows
        self._rows: Vector = np.empty((0, n))  # H[:, j] as rows, for the j seen so far
        self._place = np.full(n, -1)  # where column j is remembered
        self._used = 0
        self._lock = threading.Lock()  # restarts may run in threads

    def rows(self, support: Vector) -> Vector:
        """H[support, :]: remembered columns, the missing ones by one pass over the data."""
        with self._lock:
            places = self._places(support)  # first: it may grow the store
            return np.asarray(self._rows[places])

    def block(self, support: Vector) -> Vector:
        """H[support, support]."""
        with self._lock:
            places = self._places(support)
            return np.asarray(self._rows[np.ix_(places, support)])

    def knows(self, i: int) -> bool:
        """Whether column i is remembered."""
        return bool(self._place[i] >= 0)

    @property
    def known(self) -> Vector:
        """Which columns are remembered."""
        return np.asarray(self._place >= 0)

    @property
    def ahead(self) -> int:
        """How many columns to fetch where one is missing."""
        return max(1, min(AHEAD, MEMORY // (32 * self.n)))

    def row(self, i: int) -> Vector:
        """H[i, :], not to be changed."""
        with self._lock:
            place = self._place[i]
            return np.asarray(self._rows[place if place >= 0 else self._places(np.array([i]))[0]])

    def fetch(self, support: Vector) -> None:
        """Remember columns, the missing ones by one pass over the data."""
        with self._lock:
            self._places(support)

    def _places(self, support: Vector) -> Vector:
        missing = support[self._place[support] < 0]
        if missing.size:
            self._remember(missing, support)
        return np.asarray(self._place[support])

    def _remember(self, missing: Vector, support: Vector) -> None:
        if (self._used + missing.size) * self.n * 8 > MEMORY and self._used:
            self._place[:] = -1  # forget all but the present support
            self._used = 0
            missing = support
        needed = self._used + missing.size
        if needed > self._rows.shape[0]:
            grown = np.empty((max(needed, min(2 * self._rows.shape[0], MEMORY // (8 * self.n))), self.n))
            grown[: self._used] = self._rows[: self._used]
            self._rows = grown
        self._rows[self._used : needed] = self._take(missing)
        self._place[missing] = np.arange(self._used, needed)
        self._used = needed


def opaque(A: Any) -> bool:
    """Whether a matrix is an operator with so many columns that one product for each is too dear."""
    shown = is_array(A) or scipy.sparse.issparse(A) or isinstance(A, Centred)
    return not shown and A.shape[1] > COLUMNS


def quadratic_model(loss: Loss) -> Model | None:
    """φ itself as a model, where it is quadratic and shows its columns."""
    if isinstance(loss, LeastSquares):
        if opaque(loss.A):
            return None
        A, w = to_float64(loss.A), None if loss.weight is None else to_float64(loss.weight)
        b = to_float64(loss.b)
        weighted = b if w is None else w * b
        ridge = None if loss.ridge is None else to_float64(loss.ridge)
        constant = 0.5 * float(b @ weighted)
        rounding = rounding_of(A.shape[0])  # of AᵀDA and AᵀDb, beside the lengths of what is multiplied
        noise = Noise(rounding, rounding * float(np.sqrt(2.0 * constant)), convex=True)
        r = np.asarray(A.T @ weighted)
        return Model(_length(loss), r, _diagonal(A, w, ridge), constant, lambda S: _gram(A, w, S, ridge), noise)
    if isinstance(loss, QuadraticForm):
        M, factor = to_float64(loss.matrix), 2.0 * loss.a
        r = np.zeros(_length(loss)) if loss.c is None else -to_float64(loss.c)
        if loss.factored:
            noise = Noise(rounding_of(M.shape[0]) * (1.0 + 2.0 * _cancelled(M)), convex=factor > 0)
            return Model(_length(loss), r, factor * _diagonal(M, None), 0.0, lambda S: factor * _gram(M, None, S), noise)
        diagonal = factor * (np.diag(M) if is_array(M) else _matrix_diagonal(M))
        return Model(_length(loss), r, diagonal, 0.0, lambda S: factor * dense(columns(M, S)).T)  # H is symmetric
    return None


def model_at(loss: DataFit, x: Vector) -> Model:
    """The second-order model of a data-fit loss at x: H = AᵀDA with D the terms' h″ (Huber: of its majorant)."""
    A = to_float64(loss.A)
    image = A @ x
    bend = loss._weighted(loss.bend(image))
    value, gradient = loss.value_at(x, image), loss.gradient_at(x, image)
    ridge = None if loss.ridge is None else to_float64(loss.ridge)
    Hx = np.asarray(A.T @ (bend * image)) + (0.0 if ridge is None else ridge * x)
    constant = value - float(gradient @ x) + 0.5 * float(x @ Hx)
    return Model(_length(loss), Hx - gradient, _diagonal(A, bend, ridge), constant, lambda S: _gram(A, bend, S, ridge))


def _length(loss: Loss) -> int:
    assert loss.n is not None  # losses with data know it
    return loss.n


def _gram(A: Any, w: Vector | None, support: Vector, ridge: Vector | None = None) -> Vector:
    """(AᵀDA)[support, :], with the ridge on its diagonal: one pass over A."""
    found = _product(A, w, columns(A, support))
    if ridge is not None:
        found[np.arange(support.size), support] += ridge[support]
    return found


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


def _diagonal(A: Any, w: Vector | None, ridge: Vector | None = None) -> Vector:
    """The diagonal of AᵀDA, plus the ridge; an operator, which hides its columns, is asked for them in blocks."""
    if ridge is not None:
        return _diagonal(A, w) + ridge
    if isinstance(A, Centred):
        return _centred_diagonal(A)
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


def _centred_diagonal(Z: Centred) -> Vector:
    return np.asarray(Z.scale.astype(np.float64) ** 2 * centred_squares(Z.X, Z.mean))


def _cancelled(M: Any) -> float:
    """How much longer columns were before their means were taken off, at most: their rounding is of that size."""
    if not isinstance(M, Centred):
        return 0.0
    squares = centred_squares(M.X, M.mean)
    seen = squares > 0
    whole = squares + M.X.shape[0] * M.mean.astype(np.float64) ** 2
    return float(np.sqrt((whole[seen] / squares[seen]).max(initial=1.0)))


def _matrix_diagonal(M: Any) -> Vector:
    """The diagonal of a square sparse matrix or operator."""
    if scipy.sparse.issparse(M):
        return np.asarray(M.diagonal())
    return np.concatenate([columns(M, block)[block, np.arange(block.size)] for block in _blocks(M.shape[1])])


def _blocks(n: int) -> Iterator[Vector]:
    """Some columns of an operator at a time, one product each; `OutOfTimeError` where the time is up in between."""
    for block in np.array_split(np.arange(n), max(1, n // 64)):
        if time_left() <= 0:
            raise OutOfTimeError
        yield block
