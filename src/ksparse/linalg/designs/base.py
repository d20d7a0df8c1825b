"""A data matrix that is reached by blocks of its rows, wherever they lie: the few products that everything else is made of.

    A @ x, A.T @ r              Ax, Aᵀr
    squares(w)                  the diagonal of AᵀDA, D = diag(w)
    gram(S, w)                  the rows S of AᵀDA
    columns(S)                  A[:, S]

Each is one pass over the data, a sum over blocks or one block's answer after the other's, in double precision whatever the data are in.
What comes back has k·n or m·k numbers; the blocks stay where they are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from functools import cached_property
from typing import Any, Self

import numpy as np

from ksparse.base.arrays import Vector
from ksparse.base.deadline import OutOfTimeError, time_left

BLOCK = 2**22  # entries of a block
Work = Callable[[Any, slice], Any]  # of a block, float64, and of which rows it is


class Design(ABC):
    """m × n numbers that are reached by blocks of rows. `dtype` is that of the vectors that go in and come out.

    `ksparse.blocks` makes one of files; losses and estimators make one of what is read by blocks by themselves. Your own writes `each`.

    Parameters
    ----------
    shape : tuple of int
        m and n.
    dtype : numpy.dtype
        Of the data; vectors are in single precision where they are, else in double.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> A = ks.blocks(np.arange(6.0).reshape(3, 2), height=2)
    >>> A.shape, A @ np.ones(2), A.passes
    ((3, 2), array([1., 5., 9.]), 1)
    """

    def __init__(self, shape: Any, dtype: np.dtype[Any]) -> None:
        self.shape = int(shape[0]), int(shape[1])
        self.dtype = dtype if dtype in (np.dtype(np.float32), np.dtype(np.float64)) else np.dtype(np.float64)
        self._count = [0]  # shared by copies

    @property
    def passes(self) -> int:
        """How often the data have been read."""
        return self._count[0]

    def count(self) -> None:
        """Another pass."""
        self._count[0] += 1

    @abstractmethod
    def each(self, work: Work) -> list[Any]:
        """What `work` makes of each block, in the order of the rows: one pass."""

    def total(self, work: Work) -> Any:
        """The sum of what `work` makes of each block: one pass."""
        return sum(self.each(work))

    def as_float64(self) -> Self:
        """The same for vectors in double precision."""
        if self.dtype == np.float64:
            return self
        twin = copy(self)  # with what a first pass has shown, and the same count of passes
        twin.dtype = np.dtype(np.float64)
        return twin

    @property
    def T(self) -> Adjoint:
        """Aᵀ, for products."""
        return Adjoint(self)

    def __matmul__(self, x: Any) -> Any:
        x = np.asarray(x)
        return np.concatenate(self.each(lambda block, rows: block @ x)).astype(self.dtype, copy=False)

    def pull(self, r: Any) -> Any:
        """Aᵀr."""
        r = np.asarray(r)
        return np.asarray(self.total(lambda block, rows: block.T @ r[rows])).astype(self.dtype, copy=False)

    def squares(self, w: Vector | None) -> Vector:
        """Σᵢ wᵢAᵢⱼ²."""
        if w is None:
            return self.seen.squares
        return np.asarray(self.total(lambda block, rows: np.einsum("ij,ij,i->j", block, block, w[rows])))

    def gram(self, support: Vector, w: Vector | None) -> Vector:
        """(AᵀDA)[support, :]."""

        def part(block: Vector, rows: slice) -> Vector:
            if time_left() <= 0:  # a search can do without, where its time is up
                raise OutOfTimeError
            cut = block[:, support]
            return (cut if w is None else w[rows, None] * cut).T @ block

        return np.asarray(self.total(part))

    def columns(self, support: Vector) -> Any:
        """A[:, support] in double precision, in memory."""
        return np.concatenate(self.each(lambda block, rows: block[:, support]))

    def __getitem__(self, chosen: Any) -> Design:
        """Some rows, by a mask or by their numbers in order."""
        from ksparse.linalg.designs.subset import Subset  # which is a design itself

        return Subset.of(self, chosen)

    @cached_property
    def seen(self) -> Seen:
        """What a first pass shows."""
        found: Seen = self.total(lambda block, rows: Seen.of(block))
        return found


class Seen:
    """Of some rows: the sums of squares of their columns, and the largest entry; NaN where one is, ∞ where one is not finite."""

    def __init__(self, squares: Vector, largest: float) -> None:
        self.squares, self.largest = squares, largest

    @classmethod
    def of(cls, block: Any) -> Seen:
        """A block's."""
        with np.errstate(over="ignore", invalid="ignore"):
            largest = max(float(block.max()), -float(block.min())) if len(block) else 0.0
            return cls(np.einsum("ij,ij->j", block, block), largest)

    def __add__(self, other: Seen) -> Seen:
        largest = np.nan if np.isnan(self.largest + other.largest) else max(self.largest, other.largest)
        return Seen(self.squares + other.squares, largest)

    def __radd__(self, other: int) -> Seen:
        return self  # sums begin with 0


class Adjoint:
    """Aᵀ of a design."""

    def __init__(self, design: Design) -> None:
        self.T = design
        self.shape, self.dtype = design.shape[::-1], design.dtype

    def __matmul__(self, r: Any) -> Any:
        return self.T.pull(r)


def check_seen(design: Design, name: str, most: float) -> None:
    """Refuse what no loss can be computed of, after the first pass."""
    largest = design.seen.largest
    if np.isnan(largest):
        raise ValueError(f"{name} must not contain NaN")
    if np.isinf(largest):
        raise ValueError(f"{name} must be finite, but contains inf")
    if largest > most:
        raise ValueError(f"{name} must hold numbers of at most {most:g} in size, got {largest:g}: use other units")
