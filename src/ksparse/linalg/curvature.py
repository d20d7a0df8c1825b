"""H of a quadratic, seen by its diagonal and by some of its columns at a time; it is formed nowhere.

`Gram` is a·AᵀDA + diag(ρ), `Symmetric` a·M. Whatever has the same three methods will do in their place: a user's own H is asked alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from ksparse.base.arrays import Array, Matrix, Vector
from ksparse.linalg.designs import Design, design_of
from ksparse.linalg.far import Far
from ksparse.linalg.matrix import dense

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
