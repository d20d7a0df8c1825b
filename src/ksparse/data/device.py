"""A dense array on a GPU or of another array library, and rows of H that stay on the device.

Products are computed there, in blocks of rows in double precision; k·n numbers come back.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import array_api_compat as compat
import numpy as np

from ksparse.data.design import BLOCK, CONSTANT, Design, Seen, Work
from ksparse.util.arrays import Array, Vector, column_dots, namespace, on_device, to_numpy

TOGETHER = 2**24  # entries that are made of a table at a time


class Far:
    """A table, or a row of one, of double precision on a device.

    Rows of it, by a slice, by their numbers or by one of those, lie there too; single entries and some columns come to the host, and so do
    products from the left.
    """

    __array_ufunc__ = None  # NumPy arrays leave their products with it to it

    def __init__(self, there: Array) -> None:
        self.there = there

    @classmethod
    def empty(cls, rows: int, n: int, beside: Array) -> Far:
        """A table beside data."""
        xp = namespace(beside)
        return cls(xp.empty((rows, n), dtype=xp.float64, device=compat.device(beside)))

    @property
    def shape(self) -> tuple[int, ...]:
        """As of an array."""
        return tuple(self.there.shape)

    def __len__(self) -> int:
        return int(self.there.shape[0])

    def __array__(self, dtype: Any = None, copy: Any = None) -> Vector:
        return np.asarray(to_numpy(self.there), dtype=dtype)

    def index(self, places: Any) -> Array:
        """Numbers of rows or columns, there."""
        return namespace(self.there).asarray(np.array(places), device=compat.device(self.there))

    def _rows(self, key: Any) -> Array:
        if isinstance(key, np.ndarray):
            return namespace(self.there).take(self.there, self.index(key), axis=0)
        return self.there[key if isinstance(key, slice) else int(key)]

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, tuple):
            return Far(self._rows(key))
        rows, columns = (np.ravel(part) if isinstance(part, np.ndarray) else part for part in key)
        chosen = self._rows(rows)
        if isinstance(columns, np.ndarray):
            return to_numpy(namespace(chosen).take(chosen, self.index(columns), axis=chosen.ndim - 1))
        return to_numpy(chosen[..., columns if isinstance(columns, slice) else int(columns)])

    def __setitem__(self, key: Any, value: Any) -> None:
        value = value.there if isinstance(value, Far) else self.given(value)
        self.there[self.index(key) if isinstance(key, np.ndarray) else key] = value

    def given(self, value: Any) -> Array:
        """Numbers of the host, there."""
        xp = namespace(self.there)
        return xp.asarray(np.array(value, dtype=np.float64), device=compat.device(self.there))

    def __rmatmul__(self, left: Any) -> Vector:
        return to_numpy(self.given(left) @ self.there)


def bare(table: Any) -> Array:
    """The array itself, wherever it lies."""
    return table.there if isinstance(table, Far) else table


def placed(table: Any) -> tuple[Callable[[Any], Array], Callable[[Any], Array]]:
    """What puts indices or masks, and numbers, where a table lies."""
    return (table.index, table.given) if isinstance(table, Far) else (np.asarray, np.asarray)


def room_for(table: Any) -> int | None:
    """Entries that are made of a table at a time on a device; None on the host, where they should stay beside the processor."""
    return TOGETHER if isinstance(table, Far) else None


def rest(row: Any, w: Vector, B: Any) -> Vector:
    """row − wᵀB."""
    if not isinstance(B, Far):
        return np.asarray(row - w @ B)
    return to_numpy(_there(row, B) - B.given(w) @ B.there)


def both(row: Any, unit: float, V: Vector, B: Any) -> Vector:
    """VB for two rows V, with unit·row added to the second."""
    if not isinstance(B, Far):
        products: Vector = V @ B
        products[1] += unit * row
        return products
    found = B.given(V) @ B.there
    found[1, :] += unit * _there(row, B)
    return to_numpy(found)


def forms(M: Vector, B: Any) -> Vector:
    """bᵀMb for the columns b of B."""
    if not isinstance(B, Far):
        return np.asarray(column_dots(B, M @ B))
    return to_numpy(column_dots(B.there, B.given(M) @ B.there))


def _there(row: Any, B: Far) -> Array:
    return row.there if isinstance(row, Far) else B.given(row)


LONG = 2**14  # columns from which k rows of AᵀDA are dearer to read on the host than to reach on the device


WIDER = 16  # times as many entries in a block as on a host


class Device(Design):
    """For vectors on the host, in double precision.

    Columns may be centred and scaled, and have one of ones beside them: block by block, as `Shifted` does it on the host.
    """

    def __init__(
        self,
        array: Array,
        mean: Vector | None = None,
        scale: Vector | None = None,
        ones: bool = False,
        fill: Vector | None = None,
    ) -> None:
        super().__init__((array.shape[0], array.shape[1] + ones), np.dtype(np.float64))
        self.array, self.mean, self.scale, self.ones, self.fill = (
            array,
            mean,
            scale,
            ones,
            fill,
        )  # `fill` is added in the end
        self.height = max(1, WIDER * BLOCK // self.shape[1])

    def each(self, work: Work) -> list[Any]:
        self.count()
        m, shifted = self.shape[0], self._shift()
        slices = [slice(begin, min(begin + self.height, m)) for begin in range(0, m, self.height)]
        return [work(shifted(self.array[rows, :]), rows) for rows in slices]

    def _shift(self) -> Callable[[Array], Array]:
        """What makes rows of the array rows of the design, in double precision."""
        xp = namespace(self.array)
        mean, scale, fill = (None if one is None else self._there(one) for one in (self.mean, self.scale, self.fill))

        def shifted(rows: Array) -> Array:
            block = xp.astype(rows, xp.float64)
            block = block if mean is None else block - mean
            block = block if scale is None else block * scale
            block = block if fill is None else block + fill
            return xp.concat([block, xp.ones_like(block[:, :1])], axis=1) if self.ones else block

        return shifted

    def shifted(self, mean: Vector, size: Vector) -> Any:
        if self.ones or self.fill is not None:
            return super().shifted(mean, size)
        old = 1.0 if self.scale is None else self.scale
        moved = mean / old if self.mean is None else self.mean + mean / old
        return self._twin(moved if mean.any() or self.mean is not None else None, old / size, ones=False)

    def with_ones(self) -> Any:
        return self._twin(self.mean, self.scale, ones=True)

    def __getitem__(self, chosen: Any) -> Any:
        """Some rows, by a mask or by their numbers: a copy beside the others."""
        rows = namespace(self.array).take(self.array, self._there(np.arange(self.shape[0])[np.asarray(chosen)]), axis=0)
        return Device(rows, self.mean, self.scale, self.ones, self.fill)

    def _twin(self, mean: Vector | None, scale: Vector | None, ones: bool) -> Device:
        twin = Device(self.array, mean, scale, ones)
        twin._count = self._count
        return twin

    def moments(self, share: Vector, centre: bool) -> tuple[Vector, Vector]:
        there = self._there(share)
        mean = self.pull(share) if centre else np.zeros(self.shape[1])
        at = self._there(mean)
        root = np.sqrt(to_numpy(self.total(lambda block, rows: there[rows] @ (block - at) ** 2)))
        return mean, np.where(root <= CONSTANT * np.finfo(np.float64).eps * np.abs(mean), 0.0, root)

    def _there(self, x: Any) -> Array:
        return namespace(self.array).asarray(np.array(x), device=compat.device(self.array))

    def __matmul__(self, x: Any) -> Any:
        x = self._there(x)
        return np.concatenate([to_numpy(part) for part in self.each(lambda block, rows: block @ x)])

    def pull(self, r: Any) -> Any:
        r = self._there(r)
        return to_numpy(self.total(lambda block, rows: block.T @ r[rows]))

    def squares(self, w: Vector | None) -> Vector:
        if w is None:
            return self.seen.squares
        xp, there = namespace(self.array), self._there(w)
        return to_numpy(self.total(lambda block, rows: xp.sum(block * block * there[rows][:, None], axis=0)))

    @cached_property
    def seen(self) -> Seen:
        xp = namespace(self.array)
        found: Seen = self.total(
            lambda block, rows: Seen(to_numpy(xp.sum(block * block, axis=0)), float(xp.max(xp.abs(block))))
        )
        return found

    @property
    def beside(self) -> Array | None:
        return self.array if on_device(self.array) and self.shape[1] >= LONG else None

    def gram(self, support: Vector, w: Vector | None) -> Vector:
        return to_numpy(self.gram_there(support, w))

    def gram_there(self, support: Vector, w: Vector | None) -> Array:
        xp, chosen = namespace(self.array), self._there(support)
        there = None if w is None else self._there(w)

        def part(block: Array, rows: slice) -> Array:
            cut = xp.take(block, chosen, axis=1)
            return (cut if there is None else there[rows][:, None] * cut).T @ block

        return self.total(part)

    def columns(self, support: Vector) -> Any:
        """In memory where they are few, else there as well: what a support is solved by is a few numbers for each pair of them."""
        n, one = self.array.shape[1], np.asarray(support) == self.array.shape[1]
        own, ones = np.where(one, n - 1, support), bool(one.any())
        cut = namespace(self.array).take(self.array, self._there(own), axis=1)
        mean, scale = (None if part is None else part[own] for part in (self.mean, self.scale))
        if ones:  # 0 times a column, and 1
            scale = np.where(one, 0.0, 1.0 if scale is None else scale)
        few = Device(cut, mean, scale, fill=one.astype(float) if ones else None)
        few._count = self._count
        return few if self.shape[0] * support.size >= BLOCK else few.dense()

    def dense(self) -> Vector:
        return np.asarray(to_numpy(self._shift()(self.array)))
