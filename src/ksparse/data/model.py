"""A quadratic ½xᵀHx − rᵀx + constant for the search over supports, with H known by its columns.

`Gram` is a·AᵀDA + diag(ρ), `Symmetric` a·M. H is never formed, and columns are remembered. Any object with the methods
of `Curvature` can be H. For a quadratic φ the model is φ itself, one for the whole search. For other smooth losses it
is the second-order model, computed again at each polished point.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from ksparse.data import Design, design_of, in_double
from ksparse.data.device import LONG, TABLE_PART, DeviceTable
from ksparse.data.products import dense
from ksparse.numerics.bound import Noise, rounding_of
from ksparse.util.arrays import Array, Matrix, Vector, column_dots, on_device, to_float64, to_numpy

CACHED = 2**20  # entries of data that stay in the processor's cache
PREFETCH = 16  # columns fetched at a time: a pass over the data costs the same for a few
MEMORY = 2**28  # bytes of remembered columns, by default
LONG_ROW = 2**20  # bytes of a row from which all memory is reserved at once: the system provides it when it is used


class Curvature(Protocol):
    """H, symmetric."""

    def diagonal(self) -> Vector:
        """Return the diagonal."""

    def rows(self, support: Vector) -> Vector:
        """Return H[support, :], float64, by one pass over the data."""

    def times(self, X: Vector) -> Vector:
        """Return Hx for each row x of X."""


@dataclass(frozen=True)
class Gram:
    """H = a·AᵀDA + diag(ρ), D = diag(weight)."""

    A: Matrix
    weight: Vector | None = None
    ridge: Vector | None = None  # ρ
    a: float = 1.0
    single_use: bool = False  # the curvature at one point, of which few columns are needed
    returns_new_rows: ClassVar[bool] = True  # `rows` returns memory that nothing else refers to

    @cached_property
    def design(self) -> Design:
        """A as a design."""
        return design_of(self.A)

    @property
    def form(self) -> tuple[Matrix, float] | None:
        """Z and a if H = a·ZᵀZ."""
        return (self.A, self.a) if self.weight is None and self.ridge is None else None

    @property
    def prefetch_size(self) -> int:
        """Columns to fetch in one pass: one if the model is used once and the data fit the cache, else several."""
        in_cache = self.design.entries_in_memory and self.A.shape[0] * self.A.shape[1] < CACHED
        return 1 if self.single_use and in_cache else PREFETCH

    @property
    def rows_per_request(self) -> int:
        """Number of rows to request at once."""
        return self.design.rows_per_request

    @property
    def device_array(self) -> Array | None:
        """The data if they are on a device and rows of H are so long that they should stay there."""
        data = self.design.device_array
        return data if data is not None and on_device(data) and self.A.shape[1] >= LONG else None

    def diagonal(self) -> Vector:
        squares = self.a * self.design.column_square_sums(self.weight)
        return squares if self.ridge is None else squares + self.ridge

    def rows(self, support: Vector) -> Any:
        on_host = self.device_array is None
        found = (self.design.gram if on_host else self.design.gram_in_place)(support, self.weight)
        if self.a != 1.0:
            found *= self.a
        table = found if on_host else DeviceTable(found)
        if self.ridge is not None:
            index, moved = placed(table)
            found[index(np.arange(support.size)), index(support)] += moved(self.ridge[support])
        return table

    def times(self, X: Vector) -> Vector:
        image = self.design.times(X)
        product = self.a * self.design.adjoint_products(image if self.weight is None else self.weight * image)
        return product if self.ridge is None else product + self.ridge * X


@dataclass(frozen=True)
class Symmetric:
    """H = a·M."""

    M: Matrix
    a: float = 1.0

    @cached_property
    def design(self) -> Design:
        """M as a design."""
        return design_of(self.M)

    def diagonal(self) -> Vector:
        return np.asarray(self.a * self.design.diagonal())

    def rows(self, support: Vector) -> Vector:
        return np.asarray(self.a * dense(self.design.columns(support)).T)

    def times(self, X: Vector) -> Vector:
        return self.a * self.design.times(X)


class QuadraticModel:
    """``½xᵀHx − rᵀx + constant``, with H known by its columns: the result of `Loss.quadratic` and `Loss.model_at`.

    `of_matrix`, `of_factor`, `of_squares` and `at` make one without an H of your own.

    Parameters
    ----------
    H : object
        With `diagonal()`, `rows(support)` and `times(X)`.
    r : array
        The linear term.
    constant : float, default=0.0
        The constant term.
    sign : int, default=0
        +1 if H is positive semidefinite by its form (a Gram matrix; no eigenvalue was computed), −1 if −H is, else 0.
    noise : Noise or None, default=None
        Bounds on the rounding errors of H and r; None for those of sums of n terms.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> model = ks.QuadraticModel.of_matrix(np.diag([1.0, 2.0]), c=np.array([-1.0, 0.0]))
    >>> model.n, model.r
    (2, array([ 1., -0.]))
    """

    def __init__(
        self, H: Curvature, r: Vector, constant: float = 0.0, *, sign: int = 0, noise: Noise | None = None
    ) -> None:
        self.H, self.r, self.constant, self.sign = H, r, constant, sign
        self.n, self.diagonal = r.size, H.diagonal()
        self.noise = self._unknown_noise() if noise is None else noise
        self._rows = self.table(0)  # the remembered columns of H, as rows
        self._place = np.full(self.n, -1)  # row of column j in `_rows`
        self._used = 0
        self.memory = MEMORY
        self._lock = threading.Lock()  # restarts may run in threads

    @classmethod
    def of_squares(cls, A: Matrix, b: Any, weight: Any = None, ridge: Any = None) -> QuadraticModel:
        """Return ½ Σ wᵢ((Ax)ᵢ − bᵢ)² + ½ Σ ρⱼxⱼ²."""
        A, b = in_double(A), to_float64(b)
        w, ridge = (None if part is None else to_float64(part) for part in (weight, ridge))
        weighted = b if w is None else w * b
        constant = 0.5 * float(b @ weighted)
        rounding = rounding_of(A.shape[0])  # of AᵀDA and AᵀDb, relative to the norms of the factors
        noise = Noise(rounding, rounding * math.sqrt(2.0 * constant), is_gram=True)
        return cls(Gram(A, w, ridge), np.asarray(A.T @ weighted), constant, sign=1, noise=noise)

    @classmethod
    def of_factor(cls, Z: Matrix, a: float, c: Any = None, constant: float = 0.0) -> QuadraticModel:
        """Return (a/2)‖Zx‖² + cᵀx + constant."""
        Z = to_float64(Z)
        noise = Noise(rounding_of(Z.shape[0]) * (1.0 + 2.0 * design_of(Z).centring_growth), is_gram=a > 0)
        return cls(Gram(Z, a=a), _negated(c, Z.shape[1]), constant, sign=1 if a > 0 else -1, noise=noise)

    @classmethod
    def of_matrix(
        cls, M: Matrix, a: float = 1.0, c: Any = None, constant: float = 0.0, *, sign: int = 0
    ) -> QuadraticModel:
        """Return (a/2)·xᵀMx + cᵀx + constant, M symmetric."""
        noise = Noise(is_gram=sign > 0)  # M is the data: there is no rounding
        return cls(Symmetric(to_float64(M), a), _negated(c, M.shape[1]), constant, sign=sign, noise=noise)

    @classmethod
    def at(cls, H: Curvature, x: Vector, Hx: Vector, value: float, gradient: Vector) -> QuadraticModel:
        """Return the second-order model of a function at x, from its curvature, value and gradient there."""
        return cls(H, Hx - gradient, value - float(gradient @ x) + 0.5 * float(x @ Hx))

    def _unknown_noise(self) -> Noise:
        """Return the noise of H and r of unknown origin: that of sums of n terms, relative to their own sizes."""
        rounding, unit = rounding_of(self.n), np.sqrt(np.abs(self.diagonal))
        held = unit > 0
        largest = float((np.abs(self.r[held]) / unit[held]).max(initial=0.0))
        return Noise(rounding, rounding * largest, is_gram=self.sign > 0)

    @property
    def finite(self) -> bool:
        """Whether the diagonal and r are finite."""
        return bool(np.isfinite(self.diagonal).all() and np.isfinite(self.r).all())

    def rows(self, support: Vector) -> Vector:
        """Return H[support, :]: remembered columns, and the missing ones by one pass over the data."""
        return np.asarray(self.rows_in_place(support))

    def rows_in_place(self, support: Vector) -> Any:
        """Return H[support, :] where it lies: on the device for long rows of data on a device."""
        with self._lock:
            places = self._places(support)  # first: it may grow the store
            return self._rows[places]

    def table(self, height: int) -> Any:
        """Return memory for rows of H where they lie."""
        data = getattr(self.H, "device_array", None)
        return np.empty((height, self.n)) if data is None else DeviceTable.empty(height, self.n, data)

    def block(self, support: Vector) -> Vector:
        """Return H[support, support]."""
        with self._lock:
            places = self._places(support)
            return np.asarray(self._rows[np.ix_(places, support)])

    @property
    def known(self) -> Vector:
        """Mask of the remembered columns."""
        return np.asarray(self._place >= 0)

    @property
    def prefetch_size(self) -> int:
        """How many columns to fetch if one is missing."""
        return max(1, min(getattr(self.H, "prefetch_size", PREFETCH), self.memory // (32 * self.n)))

    def row(self, i: int, also: Callable[[int], Vector] | None = None) -> Any:
        """Return H[i, :] where it lies, not to be changed; a missing row is fetched with the columns `also(i)`."""
        if also is not None and self._place[i] < 0:
            self.prefetch(also(i))
        with self._lock:
            place = self._place[i] if self._place[i] >= 0 else self._places(np.array([i]))[0]  # may grow the store
            return self._rows[place]

    def prefetch(self, support: Vector) -> None:
        """Remember columns, the missing ones by one pass over the data."""
        with self._lock:
            self._places(support)

    def _places(self, support: Vector) -> Vector:
        missing = support[self._place[support] < 0]
        if missing.size:
            self._remember(missing, support)
        return np.asarray(self._place[support])

    def _remember(self, missing: Vector, support: Vector) -> None:
        if (self._used + missing.size) * self.n * 8 > self.memory and self._used:
            self._forget()  # all but the present support
            missing = support
        if 2 * missing.size > self.n and self.n * self.n * 8 <= self.memory:
            self._forget()
            missing = np.arange(self.n)  # all of them: the product of a matrix with itself costs half of another one
        at_once = getattr(self.H, "rows_per_request", missing.size)
        if missing.size == self.n <= at_once:
            rows = self.H.rows(missing)
            if not isinstance(rows, DeviceTable):  # copied unless nothing else refers to it
                new = getattr(self.H, "returns_new_rows", False)
                rows = (np.asarray if new else np.array)(rows, dtype=float, order="C")
            self._rows = rows
        else:
            self._grow(self._used + missing.size)
            for begin in range(0, missing.size, at_once):
                part = missing[begin : begin + at_once]
                self._rows[self._used + begin : self._used + begin + part.size] = self.H.rows(part)
        self._place[missing] = self._used + np.arange(missing.size)
        self._used += missing.size

    def _grow(self, needed: int) -> None:
        """Make room for `needed` rows."""
        if needed > self._rows.shape[0]:
            most = self.memory // (8 * self.n)
            lazy = 8 * self.n >= LONG_ROW and isinstance(self._rows, np.ndarray)  # a device provides memory at once
            grown = self.table(max(needed, most if lazy else min(2 * self._rows.shape[0], most)))
            grown[: self._used] = self._rows[: self._used]
            self._rows = grown

    def _forget(self) -> None:
        """Start with an empty store; rows of the old one may still be in use."""
        self._place[:] = -1
        self._used, self._rows = 0, self.table(0)


def _negated(c: Any, n: int) -> Vector:
    return np.zeros(n) if c is None else -to_float64(c)


def placed(table: Any) -> tuple[Callable[[Any], Array], Callable[[Any], Array]]:
    """Return the functions that move indices or masks, and numbers, to a table's device."""
    return (table.device_index, table.to_device) if isinstance(table, DeviceTable) else (np.asarray, np.asarray)


def array_of(table: Any) -> tuple[Array, int | None]:
    """Return the array of a table, and how many entries to compute at a time: None on the host, where they fit."""
    return (table.array, TABLE_PART) if isinstance(table, DeviceTable) else (table, None)


def schur_row(row: Any, w: Vector, B: Any) -> Vector:
    """Return row − wᵀB."""
    if not isinstance(B, DeviceTable):
        return np.asarray(row - w @ B)
    return to_numpy(B.to_device(row) - B.to_device(w) @ B.array)


def products_with_row(row: Any, unit: float, V: Vector, B: Any) -> Vector:
    """Return VB for a V of two rows, with unit·row added to the second."""
    if not isinstance(B, DeviceTable):
        products: Vector = V @ B
        products[1] += unit * row
        return products
    found = B.to_device(V) @ B.array
    found[1, :] += unit * B.to_device(row)
    return to_numpy(found)


def quadratic_forms(M: Vector, B: Any) -> Vector:
    """Return bᵀMb for each column b of B."""
    if not isinstance(B, DeviceTable):
        return np.asarray(column_dots(B, M @ B))
    return to_numpy(column_dots(B.array, B.to_device(M) @ B.array))
