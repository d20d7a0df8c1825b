"""Rows of H that stay on a device, seen from the host as a NumPy array is: what is made of them comes back, few times n numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import array_api_compat as compat
import numpy as np

from ksparse.base.arrays import Array, Vector, column_dots, namespace, to_numpy

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
