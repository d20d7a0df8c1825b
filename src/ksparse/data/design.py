"""A data matrix, wherever it lies: the few products that everything else is made of, and what can be known of it besides.

    A @ x, A.T @ r              Ax, Aᵀr
    squares(w)                  the diagonal of AᵀDA, D = diag(w)
    gram(S, w)                  the rows S of AᵀDA
    columns(S)                  A[:, S]

Here each is one pass over the data, a sum over blocks of rows or one block's answer after the other's, in double precision whatever the
data are in. What comes back has k·n or m·k numbers; the blocks stay where they are. Kinds of data that do one of them better do it their
own way, each in its own file: nobody else asks of what kind the data are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from functools import cached_property
from typing import Any, Self

import numpy as np

from ksparse.util.arrays import Array, Vector
from ksparse.util.resources import OutOfTimeError, time_left

BLOCK = 2**22  # entries of a block


KEPT = 2**21  # entries of columns that are remembered


CONSTANT = 10.0  # roundings of its mean: a column that varies by no more is constant


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
        self._remembered: dict[int, Vector] = {}  # that were asked for, likewise

    @property
    def passes(self) -> int:
        """How often the data have been read."""
        return self._count[0]

    def count(self) -> None:
        """Another pass."""
        self._count[0] += 1

    @property
    def given(self) -> Any:
        """What a loss multiplies by: the array or sparse matrix itself, for those that are one."""
        return self

    @property
    def kind(self) -> Array:
        """An empty vector of the namespace, dtype and device that products have."""
        return np.zeros(0, dtype=self.dtype)

    @property
    def shown(self) -> bool:
        """Whether its entries are in memory to be looked at."""
        return False

    def hides(self, weighted: bool) -> bool:
        """Whether the diagonal of AᵀDA, or if not `weighted` that of AᵀA, takes a product for each of too many columns to ask for all."""
        return False

    @property
    def centres(self) -> bool:
        """Whether its columns can lose their means and be none the dearer for it: those of a sparse matrix can not."""
        return True

    @property
    def dear(self) -> bool:
        """Whether rows of AᵀDA take a pass over m·n numbers."""
        return True

    @property
    def together(self) -> int:
        """Rows of AᵀDA that should be asked for at once: as many as are wanted where each time is a pass."""
        return self.shape[1]

    @property
    def cancelled(self) -> float:
        """The largest ratio of a column's length before to that after its mean was taken off, where a sum shows it; else 0.

        Rounding of products is larger by that ratio.
        """
        return 0.0

    @property
    def beside(self) -> Array | None:
        """The data, where they lie on a device and rows of AᵀDA are so long that they should stay beside them."""
        return None

    def gram_there(self, support: Vector, w: Vector | None) -> Array:
        """(AᵀDA)[support, :] beside the data, where they have a `beside`."""
        raise NotImplementedError

    def check(self, name: str) -> None:
        """Refuse what no loss can be computed of, by a first pass."""
        if 0 in self.shape:
            raise ValueError(f"{name} must be a nonempty matrix, got shape {self.shape}")
        largest, most = self.seen.largest, 1e150 if self.dtype == np.float64 else 1e15
        if np.isnan(largest):
            raise ValueError(f"{name} must not contain NaN")
        if np.isinf(largest):
            raise ValueError(f"{name} must be finite, but contains inf")
        if largest > most:
            raise ValueError(f"absolute values in {name} must not exceed {most:g}, got {largest:g}: rescale the data")

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
        chosen = np.flatnonzero(x) if x.ndim == 1 else None
        if chosen is not None and self._remembered.keys() >= set(
            chosen[: len(self._remembered) + 1].tolist()
        ):  # no pass
            return (self.columns(chosen) @ x[chosen]).astype(self.dtype, copy=False)
        return np.concatenate(self.each(lambda block, rows: block @ x)).astype(self.dtype, copy=False)

    def pull(self, r: Any) -> Any:
        """Aᵀr."""
        r = np.asarray(r)
        return np.asarray(self.total(lambda block, rows: block.T @ r[rows])).astype(self.dtype, copy=False)

    def squares(self, w: Vector | None) -> Vector:
        """Σᵢ wᵢAᵢⱼ²."""
        if w is not None:
            return np.asarray(self.total(lambda block, rows: np.einsum("ij,ij,i->j", block, block, w[rows])))
        if "seen" in vars(self):  # the first pass has shown it
            return self.seen.squares
        return np.asarray(self.total(lambda block, rows: np.einsum("ij,ij->j", block, block)))

    def lengths(self) -> Vector:
        """√Σᵢ Aᵢⱼ² for each column, or an estimate of it, to rank by."""
        return np.sqrt(self.squares(None))

    def gram(self, support: Vector, w: Vector | None) -> Vector:
        """(AᵀDA)[support, :]."""

        def part(block: Vector, rows: slice) -> Vector:
            if time_left() <= 0:  # a search can do without, where its time is up
                raise OutOfTimeError
            cut = block[:, support]
            return (cut if w is None else w[rows, None] * cut).T @ block

        return np.asarray(self.total(part))

    def columns(self, support: Vector) -> Any:
        """A[:, support] in double precision, in memory; some are remembered, a few vectors beside what a pass costs."""
        names, known = np.asarray(support).tolist(), self._remembered
        missing = [j for j in names if j not in known]
        if missing and (len(known) + len(missing)) * self.shape[0] > KEPT:  # begin anew
            known.clear()
            missing = names
        if missing:
            fetched = np.concatenate(self.each(lambda block, rows: block[:, missing]))
            if len(missing) * self.shape[0] > KEPT:
                return fetched
            known.update(zip(missing, fetched.T.copy(), strict=True))
        return np.array([known[j] for j in names]).reshape(len(names), self.shape[0]).T

    def dense(self) -> Vector:
        """All of it as a NumPy array, for what is small."""
        return np.asarray(self.columns(np.arange(self.shape[1])))

    def times(self, X: Vector) -> Vector:
        """Ax for the rows x of X."""
        return np.asarray((self @ X.T).T)

    def pulls(self, R: Vector) -> Vector:
        """Aᵀr for the rows r of R."""
        return np.asarray(self.pull(R.T).T)

    def diagonal(self) -> Vector:
        """Of a square one."""
        return np.concatenate([self.columns(part)[part, np.arange(part.size)] for part in in_parts(self.shape[1])])

    def asymmetry(self) -> tuple[float, float]:
        """How far a square one is from symmetric, and its size: by two random vectors where it does not show its entries."""
        u, v = np.random.default_rng(0).standard_normal((2, self.shape[1]))
        Qu, Qv = self @ u, self @ v
        return abs(float(v @ Qu - u @ Qv)), float(np.linalg.norm(Qu) * np.linalg.norm(v))

    def magnitude(self) -> float:
        """The size of the entries, for a choice of units: max |Aᵢⱼ| of what is stored, without what is taken off it. No bound on |Aᵢⱼ|."""
        return self.seen.largest

    def moments(self, share: Vector, centre: bool) -> tuple[Vector, Vector]:
        """The means of the columns, 0 where they are not to be centred, and the roots of the mean squares around them, by rows' shares.

        Two passes, for the digits of the second. Of a constant column nothing is left but rounding: its root is 0.
        """
        mean = np.asarray(self.total(lambda block, rows: share[rows] @ block)) if centre else np.zeros(self.shape[1])
        root = np.sqrt(np.asarray(self.total(lambda block, rows: share[rows] @ np.square(block - mean))))
        return mean, np.where(root <= CONSTANT * np.finfo(np.float64).eps * np.abs(mean), 0.0, root)

    def shifted(self, mean: Vector, size: Vector) -> Any:
        """(A − 1·meanᵀ)·diag(1/size), a column of size ∞ as 0."""
        from ksparse.data.derived import Shifted  # which is a design itself

        return Shifted(self, mean, 1.0 / size)

    def less(self, u: Vector, v: Vector) -> Any:
        """A − uvᵀ, v with few entries."""
        from ksparse.data.derived import Less

        return Less(self, u[:, None], v[:, None])

    def with_ones(self) -> Any:
        """The same with a last column of ones."""
        from ksparse.data.derived import Shifted

        return Shifted(self, np.zeros(self.shape[1]), np.ones(self.shape[1]), ones=True)

    def __getitem__(self, chosen: Any) -> Design:
        """Some rows, by a mask or by their numbers in order."""
        from ksparse.data.derived import Subset

        return Subset.of(self, chosen)

    @cached_property
    def seen(self) -> Seen:
        """What a first pass shows."""
        found: Seen = self.total(lambda block, rows: Seen.of(block))
        return found


def in_parts(n: int) -> Iterator[Vector]:
    """Some columns at a time, where each is a product; `OutOfTimeError` where the time is up in between."""
    for part in np.array_split(np.arange(n), max(1, n // 64)):
        if time_left() <= 0:
            raise OutOfTimeError
        yield part


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
