"""A data matrix, wherever it is stored: the few products from which everything else is computed.

    A @ x, A.T @ r              Ax, Aᵀr
    column_square_sums(w)       the diagonal of AᵀDA, D = diag(w)
    gram(S, w)                  the rows S of AᵀDA
    columns(S)                  A[:, S]

Here each is one pass over the data: a sum over blocks of rows, or one result per block, in double precision whatever
the precision of the data. Results have k·n or m·k numbers; blocks stay where they are, and may be arrays on a GPU. A
kind of data for which there is a faster way overrides these methods, in a file of its own. `data/__init__.py`
recognises the kind.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from functools import cached_property, reduce
from typing import Any, Self

import array_api_compat as compat
import numpy as np

from ksparse.util.arrays import Array, Vector, column_dots, namespace, to_numpy
from ksparse.util.resources import require_time

BLOCK = 2**22  # entries of a block
KEPT = 2**21  # entries of columns that are remembered
CONSTANT = 10.0  # rounding units of its mean: a column that varies by less is constant

Work = Callable[[Any, slice], Any]  # a function of a float64 block and the slice of its rows


class Design(ABC):
    """m × n numbers, read by blocks of rows. `dtype` is that of the vectors in products.

    `ksparse.blocks` returns one for files; losses and estimators make one of other data that are read by blocks. Your
    own subclass implements `each`.

    Parameters
    ----------
    shape : tuple of int
        m and n.
    dtype : numpy.dtype
        That of the data; vectors are in single precision if the data are, else in double.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> A = ks.blocks(np.arange(6.0).reshape(3, 2), height=2)
    >>> A.shape, A @ np.ones(2), A.passes
    ((3, 2), array([1., 5., 9.]), 1)
    """

    entries_in_memory = False  # whether the entries can be read without a pass
    can_centre = True  # whether columns can be centred at no cost; those of a sparse matrix cannot
    pass_is_costly = True  # whether rows of AᵀDA take a pass over m·n numbers
    # largest ratio of a column's norm before centring to that after it, 0 if unknown: rounding grows by it
    centring_growth: float = 0.0

    def __init__(self, shape: Any, dtype: np.dtype[Any]) -> None:
        self.shape = int(shape[0]), int(shape[1])
        self.dtype = dtype if dtype in (np.dtype(np.float32), np.dtype(np.float64)) else np.dtype(np.float64)
        self._count = [0]  # shared with copies, like the remembered columns
        self._remembered: dict[int, Vector] = {}

    @property
    def passes(self) -> int:
        """Number of passes over the data so far."""
        return self._count[0]

    def record_pass(self) -> None:
        """Count one more pass."""
        self._count[0] += 1

    @property
    def unwrapped(self) -> Any:
        """What a loss multiplies by: the array or sparse matrix itself if there is one."""
        return self

    @property
    def kind(self) -> Array:
        """An empty vector with the namespace, dtype and device of products."""
        return np.zeros(0, dtype=self.dtype)

    def hides_columns(self, weighted: bool) -> bool:
        """Return whether diag(AᵀDA), or diag(AᵀA) if not `weighted`, takes one product for each of too many columns."""
        return False

    @property
    def rows_per_request(self) -> int:
        """Number of rows of AᵀDA to request at once: all if each request is a pass."""
        return self.shape[1]

    @property
    def device_array(self) -> Array | None:
        """The array on a device that holds the data, if there is one."""
        return None

    def check(self, name: str) -> None:
        """Refuse data of which no loss can be computed, by a first pass."""
        if 0 in self.shape:
            raise ValueError(f"{name} must be a nonempty matrix, got shape {self.shape}")
        largest, most = self.column_stats.largest, 1e150 if self.dtype == np.float64 else 1e15
        if np.isnan(largest):
            raise ValueError(f"{name} must not contain NaN")
        if np.isinf(largest):
            raise ValueError(f"{name} must be finite, but contains inf")
        if largest > most:
            raise ValueError(f"absolute values in {name} must not exceed {most:g}, got {largest:g}: rescale the data")

    @abstractmethod
    def each(self, work: Work) -> list[Any]:
        """Return `work(block, rows)` for each block, in the order of the rows: one pass."""

    def total(self, work: Work) -> Any:
        """Return the sum of `work(block, rows)` over all blocks: one pass."""
        return reduce(operator.iadd, self.each(work))

    def as_float64(self) -> Self:
        """Return the data for vectors in double precision."""
        if self.dtype == np.float64:
            return self
        converted = copy(self)  # with what earlier passes found, and the same count of passes
        converted.dtype = np.dtype(np.float64)
        return converted

    @property
    def T(self) -> Adjoint:
        """Aᵀ, for products."""
        return Adjoint(self)

    def _placed(self, x: Vector) -> Array:
        """Return a host array on the device of the data, if they are on one."""
        return x if self.device_array is None else move_to(self.device_array, x)

    def __matmul__(self, x: Any) -> Any:
        x = np.asarray(x)
        chosen, known = np.flatnonzero(x) if x.ndim == 1 else None, self._remembered
        if chosen is not None and known.keys() >= set(chosen[: len(known) + 1].tolist()):  # no pass
            return (self.columns(chosen) @ x[chosen]).astype(self.dtype, copy=False)
        x = self._placed(x)
        products = self.each(lambda block, rows: block @ move_to(block, x))
        return np.concatenate([to_numpy(part) for part in products]).astype(self.dtype, copy=False)

    def adjoint_product(self, r: Any) -> Any:
        """Return Aᵀr."""
        r = np.asarray(r)
        found = to_numpy(self.total(lambda block, rows: block.T @ move_to(block, r[rows])))
        return found.astype(self.dtype, copy=False)

    def column_square_sums(self, w: Vector | None) -> Vector:
        """Return Σᵢ wᵢAᵢⱼ² for each column j."""
        if w is not None:
            return to_numpy(self.total(lambda block, rows: block_square_sums(block, w[rows])))
        if "column_stats" in vars(self):  # known from the first pass
            return self.column_stats.squares
        return to_numpy(self.total(lambda block, rows: block_square_sums(block)))

    def column_norms(self) -> Vector:
        """Return ‖A[:, j]‖ for each column j, or an estimate to rank by."""
        return np.sqrt(self.column_square_sums(None))

    def gram(self, support: Vector, w: Vector | None) -> Vector:
        """Return (AᵀDA)[support, :]."""
        return to_numpy(self.gram_in_place(support, w))

    def gram_in_place(self, support: Vector, w: Vector | None) -> Array:
        """Return (AᵀDA)[support, :] on the device of the data."""
        support = self._placed(support)

        def part(block: Array, rows: slice) -> Array:
            require_time()  # a search can do without these rows
            cut = take_columns(block, support)
            return (cut if w is None else move_to(block, w[rows])[:, None] * cut).T @ block

        return self.total(part)

    def columns(self, support: Vector) -> Any:
        """Return A[:, support] in double precision, in memory; some columns are remembered."""
        names, known = np.asarray(support).tolist(), self._remembered
        missing = [j for j in names if j not in known]
        if missing and (len(known) + len(missing)) * self.shape[0] > KEPT:  # start again
            known.clear()
            missing = names
        if missing:
            wanted = np.array(missing)
            fetched = np.concatenate(self.each(lambda block, rows: take_columns(block, wanted)))
            if len(missing) * self.shape[0] > KEPT:
                return fetched
            known.update(zip(missing, fetched.T.copy(), strict=True))
        return np.array([known[j] for j in names]).reshape(len(names), self.shape[0]).T

    def dense(self) -> Vector:
        """Return a small matrix as a NumPy array."""
        return np.asarray(self.columns(np.arange(self.shape[1])))

    def times(self, X: Vector) -> Vector:
        """Return Ax for the rows x of X."""
        return np.asarray((self @ X.T).T)

    def adjoint_products(self, R: Vector) -> Vector:
        """Return Aᵀr for the rows r of R."""
        return np.asarray(self.adjoint_product(R.T).T)

    def diagonal(self) -> Vector:
        """Return the diagonal of a square matrix."""
        return np.concatenate([self.columns(part)[part, np.arange(part.size)] for part in column_chunks(self.shape[1])])

    def asymmetry(self) -> tuple[float, float]:
        """Return how far a square matrix is from symmetric, and its size; by random vectors if entries are unknown."""
        u, v = np.random.default_rng(0).standard_normal((2, self.shape[1]))
        Qu, Qv = self @ u, self @ v
        return abs(float(v @ Qu - u @ Qv)), float(np.linalg.norm(Qu) * np.linalg.norm(v))

    def magnitude_scale(self) -> float:
        """Return the size of the entries, for a choice of units: max |Aᵢⱼ| of what is stored, no bound on |Aᵢⱼ|."""
        return self.column_stats.largest

    def moments(self, share: Vector, centre: bool) -> tuple[Vector, Vector]:
        """Return the weighted means of the columns, or 0, and the root mean squares around them, in two passes.

        A second pass keeps the digits of the deviations. A constant column, whose deviations are rounding, has 0.
        """
        mean = np.zeros(self.shape[1])
        if centre:
            mean = to_numpy(self.total(lambda block, rows: move_to(block, share[rows]) @ block))
        at = self._placed(mean)

        def squares(block: Array, rows: slice) -> Array:
            apart = block - move_to(block, at)
            return move_to(block, share[rows]) @ (apart * apart)

        root = np.sqrt(to_numpy(self.total(squares)))
        return mean, np.where(root <= CONSTANT * np.finfo(np.float64).eps * np.abs(mean), 0.0, root)

    def shifted(self, mean: Vector, size: Vector) -> Any:
        """Return (A − 1·meanᵀ)·diag(1/size); a column of size ∞ becomes 0."""
        from ksparse.data.derived import Shifted  # itself a design

        return Shifted(self, mean, 1.0 / size)

    def minus_outer(self, u: Vector, v: Vector) -> Any:
        """Return A − uvᵀ, for a v with few nonzeros."""
        from ksparse.data.derived import LowRankDifference

        return LowRankDifference(self, u[:, None], v[:, None])

    def with_ones(self) -> Any:
        """Return the data with a column of ones appended."""
        from ksparse.data.derived import Shifted

        return Shifted(self, np.zeros(self.shape[1]), np.ones(self.shape[1]), ones=True)

    def __getitem__(self, chosen: Any) -> Any:
        """Return some rows, by a mask or by increasing indices."""
        from ksparse.data.derived import Subset

        return Subset.of(self, chosen)

    @cached_property
    def column_stats(self) -> ColumnStats:
        """Sums of squares and the largest entry, from a first pass."""
        found: ColumnStats = self.total(lambda block, rows: ColumnStats.of(block))
        return found


class ByColumns(Design):
    """A matrix whose products and columns are cheap, and whose entries need no check."""

    def check(self, name: str) -> None:
        """Accept: the entries have been checked, or are not accessible."""

    def each(self, work: Work) -> list[Any]:
        """Return the work on one block, which has all rows."""
        return [work(self.dense(), slice(0, self.shape[0]))]

    def gram(self, support: Vector, w: Vector | None) -> Vector:
        cut = self.columns(support)
        return np.asarray(self.adjoint_product(cut if w is None else w[:, None] * cut).T)


def move_to(block: Array, x: Any) -> Any:
    """Return a host array on the device of a block: floats in double precision, indices and masks as they are."""
    if isinstance(block, np.ndarray) or not isinstance(x, np.ndarray):
        return x
    host = np.array(x, dtype=np.float64 if x.dtype.kind == "f" else x.dtype)  # a copy: PyTorch refuses read-only memory
    return namespace(block).asarray(host, device=compat.device(block))


def take_columns(block: Array, support: Any) -> Array:
    """Return some columns of a block."""
    if isinstance(block, np.ndarray):
        return block[:, support]
    return namespace(block).take(block, move_to(block, support), axis=1)


def block_square_sums(block: Array, w: Vector | None = None) -> Array:
    """Return Σᵢ wᵢaᵢⱼ² for each column j of a block."""
    if w is None:
        return column_dots(block, block)
    if isinstance(block, np.ndarray):
        return np.einsum("ij,ij,i->j", block, block, w)
    return column_dots(block, block * move_to(block, w)[:, None])


def column_chunks(n: int) -> Iterator[Vector]:
    """Yield the indices of n columns in chunks, for one product per column; raise `OutOfTimeError` between."""
    for part in np.array_split(np.arange(n), max(1, n // 64)):
        require_time()
        yield part


class ColumnStats:
    """Sums of squares of columns, and the largest absolute entry: NaN if an entry is NaN, ∞ if one is infinite."""

    def __init__(self, squares: Vector, largest: float) -> None:
        self.squares, self.largest = squares, largest

    @classmethod
    def of(cls, block: Any) -> ColumnStats:
        """Return those of a block."""
        xp = namespace(block)
        with np.errstate(over="ignore", invalid="ignore"):
            largest = max(float(xp.max(block)), -float(xp.min(block))) if block.shape[0] else 0.0
            return cls(to_numpy(column_dots(block, block)), largest)

    def __add__(self, other: ColumnStats) -> ColumnStats:
        largest = np.nan if np.isnan(self.largest + other.largest) else max(self.largest, other.largest)
        return ColumnStats(self.squares + other.squares, largest)


class Adjoint:
    """Aᵀ of a design, for products."""

    def __init__(self, design: Design) -> None:
        self.T = design
        self.shape, self.dtype = design.shape[::-1], design.dtype

    def __matmul__(self, r: Any) -> Any:
        return self.T.adjoint_product(r)
