"""A quadratic ½xᵀHx − rᵀx + constant for the search over supports, with H seen by its diagonal and some columns at a time.

`Gram` is a·AᵀDA + diag(ρ), `Symmetric` a·M; H is never formed, and columns that were seen are remembered. Any object with the same three
methods can take their place. For a quadratic φ the model is φ itself, one for the whole search. For other smooth losses it is the
second-order model, taken anew at each polished point.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from ksparse.data import Design, design_of, in_double
from ksparse.data.device import Far
from ksparse.data.products import dense
from ksparse.numerics.bound import Noise, rounding_of
from ksparse.util.arrays import Array, Matrix, Vector, to_float64

CACHED = 2**20  # entries of data that stay beside the processor


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
    fleeting: bool = False  # the curvature at one point: soon it is another, and few columns are asked for
    fresh: ClassVar[bool] = True  # rows are made anew whenever they are asked for

    @cached_property
    def design(self) -> Design:
        """A, as it is asked."""
        return design_of(self.A)

    @property
    def form(self) -> tuple[Matrix, float] | None:
        """Z and a with H = a·ZᵀZ, where it has no more to it."""
        return (self.A, self.a) if self.weight is None and self.ridge is None else None

    @property
    def ahead(self) -> int:
        """Columns to fetch in one pass: one where the model is used once and the data are small enough for the cache, else several."""
        beside = self.design.shown and self.A.shape[0] * self.A.shape[1] < CACHED
        return 1 if self.fleeting and beside else 16

    @property
    def together(self) -> int:
        """Rows that should be asked for at once."""
        return self.design.together

    @property
    def beside(self) -> Array | None:
        """Data on a device, beside which rows stay that are long."""
        return self.design.beside

    def diagonal(self) -> Vector:
        squares = self.a * self.design.squares(self.weight)
        return squares if self.ridge is None else squares + self.ridge

    def rows(self, support: Vector) -> Any:
        if self.beside is not None:
            return self._rows_there(support)
        found = self.design.gram(support, self.weight)
        if self.a != 1.0:
            found *= self.a
        if self.ridge is not None:
            found[np.arange(support.size), support] += self.ridge[support]
        return found

    def _rows_there(self, support: Vector) -> Far:
        found = Far(self.a * self.design.gram_there(support, self.weight))
        if self.ridge is not None:
            found.there[found.index(np.arange(support.size)), found.index(support)] += found.given(self.ridge[support])
        return found

    def times(self, X: Vector) -> Vector:
        image = self.design.times(X)
        product = self.a * self.design.pulls(image if self.weight is None else self.weight * image)
        return product if self.ridge is None else product + self.ridge * X


@dataclass(frozen=True)
class Symmetric:
    """H = a·M."""

    M: Matrix
    a: float = 1.0

    @cached_property
    def design(self) -> Design:
        """M, as it is asked."""
        return design_of(self.M)

    def diagonal(self) -> Vector:
        return np.asarray(self.a * self.design.diagonal())

    def rows(self, support: Vector) -> Vector:
        return np.asarray(self.a * dense(self.design.columns(support)).T)

    def times(self, X: Vector) -> Vector:
        return self.a * self.design.times(X)


MEMORY = 2**28  # bytes of remembered columns, where nobody says


LONG = 2**20  # bytes of a row: room for all is then asked for at once, which costs nothing until they come


AHEAD = 16  # columns fetched at a time: a pass over the data costs the same for some


class QuadraticModel:
    """``½xᵀHx − rᵀx + constant``, H by its columns: what `Loss.quadratic` and `Loss.model_at` give.

    `of_matrix`, `of_factor`, `of_squares` and `at` make one without an H of your own.

    Parameters
    ----------
    H : object
        With `diagonal()`, `rows(support)` and `times(X)`.
    r : array
        The linear part.
    constant : float, default=0.0
        What is added.
    sign : int, default=0
        +1 where H is positive semidefinite by its form (a Gram matrix; no eigenvalue was computed), −1 where −H is so, else 0.
    noise : Noise or None, default=None
        What rounding left of H and r; None for sums of n terms.

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
        self._rows = self.table(0)  # H[:, j] as rows, for the j seen so far
        self._place = np.full(self.n, -1)  # where column j is remembered
        self._used = 0
        self.memory = MEMORY
        self._lock = threading.Lock()  # restarts may run in threads

    @classmethod
    def of_squares(cls, A: Matrix, b: Any, weight: Any = None, ridge: Any = None) -> QuadraticModel:
        """½ Σ wᵢ((Ax)ᵢ − bᵢ)² + ½ Σ ρⱼxⱼ²."""
        A, b = in_double(A), to_float64(b)
        w, ridge = (None if part is None else to_float64(part) for part in (weight, ridge))
        weighted = b if w is None else w * b
        constant = 0.5 * float(b @ weighted)
        rounding = rounding_of(A.shape[0])  # of AᵀDA and AᵀDb, beside the lengths of what is multiplied
        noise = Noise(rounding, rounding * math.sqrt(2.0 * constant), convex=True)
        return cls(Gram(A, w, ridge), np.asarray(A.T @ weighted), constant, sign=1, noise=noise)

    @classmethod
    def of_factor(cls, Z: Matrix, a: float, c: Any = None, constant: float = 0.0) -> QuadraticModel:
        """(a/2)‖Zx‖² + cᵀx + constant."""
        Z = to_float64(Z)
        noise = Noise(rounding_of(Z.shape[0]) * (1.0 + 2.0 * design_of(Z).cancelled), convex=a > 0)
        return cls(Gram(Z, a=a), _negated(c, Z.shape[1]), constant, sign=1 if a > 0 else -1, noise=noise)

    @classmethod
    def of_matrix(
        cls, M: Matrix, a: float = 1.0, c: Any = None, constant: float = 0.0, *, sign: int = 0
    ) -> QuadraticModel:
        """(a/2)·xᵀMx + cᵀx + constant, M symmetric."""
        return cls(
            Symmetric(to_float64(M), a), _negated(c, M.shape[1]), constant, sign=sign, noise=Noise(convex=sign > 0)
        )  # M is the data

    @classmethod
    def at(cls, H: Curvature, x: Vector, Hx: Vector, value: float, gradient: Vector) -> QuadraticModel:
        """The second-order model of a function at x, from its curvature, value and gradient there."""
        return cls(H, Hx - gradient, value - float(gradient @ x) + 0.5 * float(x @ Hx))

    def _unknown_noise(self) -> Noise:
        """Of an H and r that somebody computed, and that we know nothing of: sums of n terms, beside their own sizes."""
        rounding, unit = rounding_of(self.n), np.sqrt(np.abs(self.diagonal))
        held = unit > 0
        return Noise(
            rounding, rounding * float((np.abs(self.r[held]) / unit[held]).max(initial=0.0)), convex=self.sign > 0
        )

    @property
    def finite(self) -> bool:
        """Whether nothing in it overflows."""
        return bool(np.isfinite(self.diagonal).all() and np.isfinite(self.r).all())

    def rows(self, support: Vector) -> Vector:
        """H[support, :]: remembered columns, the missing ones by one pass over the data."""
        with self._lock:
            places = self._places(support)  # first: it may grow the store
            return np.asarray(self._rows[places])

    def rows_there(self, support: Vector) -> Any:
        """The same where they lie: on the device where the data are there, and long."""
        with self._lock:
            places = self._places(support)
            return self._rows[places]

    def table(self, height: int) -> Any:
        """Room for rows where they lie."""
        beside = getattr(self.H, "beside", None)
        return np.empty((height, self.n)) if beside is None else Far.empty(height, self.n, beside)

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
        return max(1, min(getattr(self.H, "ahead", AHEAD), self.memory // (32 * self.n)))

    def row(self, i: int) -> Any:
        """H[i, :] where it lies, not to be changed."""
        with self._lock:
            place = (
                self._place[i] if self._place[i] >= 0 else self._places(np.array([i]))[0]
            )  # first: it may grow the store
            return self._rows[place]

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
        if (self._used + missing.size) * self.n * 8 > self.memory and self._used:
            self._forget()  # all but the present support
            missing = support
        if 2 * missing.size > self.n and self.n * self.n * 8 <= self.memory:
            self._forget()
            missing = np.arange(self.n)  # all of them: a matrix times itself costs half of what two cost
        together = getattr(self.H, "together", missing.size)
        if missing.size == self.n <= together:
            rows = self.H.rows(missing)
            if not isinstance(rows, Far):
                whose = (
                    np.asarray if getattr(self.H, "fresh", False) else np.array
                )  # no copy more of what is large, and nobody else's
                rows = whose(rows, dtype=float, order="C")
            self._rows = rows
        else:
            self._grow(self._used + missing.size)
            for begin in range(0, missing.size, together):
                part = missing[begin : begin + together]
                self._rows[self._used + begin : self._used + begin + part.size] = self.H.rows(part)
        self._place[missing] = self._used + np.arange(missing.size)
        self._used += missing.size

    def _grow(self, needed: int) -> None:
        """Room for so many rows."""
        if needed > self._rows.shape[0]:
            most = self.memory // (8 * self.n)
            at_once = 8 * self.n >= LONG and isinstance(self._rows, np.ndarray)  # a device takes what is asked for
            grown = self.table(max(needed, most if at_once else min(2 * self._rows.shape[0], most)))
            grown[: self._used] = self._rows[: self._used]
            self._rows = grown

    def _forget(self) -> None:
        """Begin anew, in a store of its own: others may still read rows of the old one."""
        self._place[:] = -1
        self._used, self._rows = 0, self.table(0)


def _negated(c: Any, n: int) -> Vector:
    return np.zeros(n) if c is None else -to_float64(c)
