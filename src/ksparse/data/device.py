"""A dense array on a GPU or of another array library, and rows of H that stay on the device.

Products are computed on the device, in blocks of rows in double precision; k·n numbers are copied to the host.
"""

from __future__ import annotations

from typing import Any

import array_api_compat as compat
import numpy as np

from ksparse.data.design import BLOCK, Design, Work, move_to
from ksparse.util.arrays import Array, Vector, namespace, to_numpy

TABLE_PART = 2**24  # entries of a table that are computed at a time
LONG = 2**14  # columns from which copying k rows of AᵀDA to the host costs more than reaching them on the device
WIDER = 16  # entries of a block, relative to those of a block on the host


class DeviceTable:
    """A table, or one of its rows, in double precision on a device.

    Rows chosen by a slice, an index or an array of indices stay on the device. Single entries, some columns, and
    products from the left are copied to the host.
    """

    __array_ufunc__ = None  # NumPy arrays leave products with a table to the table

    def __init__(self, array: Array) -> None:
        self.array = array

    @classmethod
    def empty(cls, rows: int, n: int, like: Array) -> DeviceTable:
        """Return an uninitialised table on the device of an array."""
        xp = namespace(like)
        return cls(xp.empty((rows, n), dtype=xp.float64, device=compat.device(like)))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape, as of an array."""
        return tuple(self.array.shape)

    def __len__(self) -> int:
        return int(self.array.shape[0])

    def __array__(self, dtype: Any = None, copy: Any = None) -> Vector:
        return np.asarray(to_numpy(self.array), dtype=dtype)

    def device_index(self, places: Any) -> Array:
        """Return indices or a mask on the device."""
        return move_to(self.array, np.asarray(places))

    def to_device(self, value: Any) -> Array:
        """Return numbers, of the host or of another table, on the device."""
        return value.array if isinstance(value, DeviceTable) else move_to(self.array, np.asarray(value, np.float64))

    def _rows(self, key: Any) -> Array:
        if isinstance(key, np.ndarray):
            return namespace(self.array).take(self.array, self.device_index(key), axis=0)
        return self.array[key if isinstance(key, slice) else int(key)]

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, tuple):
            return DeviceTable(self._rows(key))
        rows, columns = (np.ravel(part) if isinstance(part, np.ndarray) else part for part in key)
        chosen = self._rows(rows)
        if isinstance(columns, np.ndarray):
            return to_numpy(namespace(chosen).take(chosen, self.device_index(columns), axis=chosen.ndim - 1))
        return to_numpy(chosen[..., columns if isinstance(columns, slice) else int(columns)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.array[self.device_index(key) if isinstance(key, np.ndarray) else key] = self.to_device(value)

    def __rmatmul__(self, left: Any) -> Vector:
        return to_numpy(self.to_device(left) @ self.array)


class Device(Design):
    """An array on a device, for vectors on the host in double precision."""

    def __init__(self, array: Array) -> None:
        super().__init__(array.shape, np.dtype(np.float64))
        self.array = array
        self.height = max(1, WIDER * BLOCK // max(1, self.shape[1]))

    @property
    def device_array(self) -> Array:
        return self.array

    def each(self, work: Work) -> list[Any]:
        self.record_pass()
        xp, m = namespace(self.array), self.shape[0]
        slices = [slice(begin, min(begin + self.height, m)) for begin in range(0, m, self.height)]
        return [work(xp.astype(self.array[rows, :], xp.float64, copy=False), rows) for rows in slices]

    def __getitem__(self, chosen: Any) -> Device:
        """Return a copy of some rows on the device, by a mask or by indices in any order."""
        rows = self._placed(np.arange(self.shape[0])[np.asarray(chosen)])
        return Device(namespace(self.array).take(self.array, rows, axis=0))

    def columns(self, support: Vector) -> Any:
        """Return A[:, support], on the device if it is large: fits on a support need few numbers of it."""
        few = Device(namespace(self.array).take(self.array, self._placed(np.asarray(support)), axis=1))
        few._count = self._count
        return few if self.shape[0] * few.shape[1] >= BLOCK else few.dense()

    def dense(self) -> Vector:
        return np.asarray(to_numpy(self.array), dtype=np.float64)
