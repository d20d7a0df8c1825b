"""A block of rows on a device with NumPy's face: what work is done with blocks of a design is done where the block lies."""

from __future__ import annotations

import operator
from typing import Any

import array_api_compat as compat
import numpy as np

from ksparse.base.arrays import Array, Vector, namespace, to_numpy

UFUNCS = {np.add: operator.add, np.subtract: operator.sub, np.multiply: operator.mul, np.matmul: operator.matmul}


class Beside:
    """A matrix or vector there, in double precision.

    The host's vectors that meet it go there, and sums over rows come back; it comes back itself for what it does not know.
    """

    def __init__(self, array: Array) -> None:
        self.array = array

    @classmethod
    def doubled(cls, block: Array) -> Beside:
        """A block, whatever it is in."""
        xp = namespace(block)
        return cls(xp.astype(block, xp.float64, copy=False))

    @property
    def T(self) -> Beside:
        return Beside(self.array.T)

    def __len__(self) -> int:
        return int(self.array.shape[0])

    def __getitem__(self, key: Any) -> Beside:
        parts = key if isinstance(key, tuple) else (key,)
        return Beside(self.array[tuple(part if isinstance(part, slice) else self._there(part) for part in parts)])

    def max(self) -> float:
        """The largest entry."""
        return float(namespace(self.array).max(self.array))

    def min(self) -> float:
        """The least entry."""
        return float(namespace(self.array).min(self.array))

    def __add__(self, other: Any) -> Beside:
        return Beside(self.array + self._there(other))

    def __sub__(self, other: Any) -> Beside:
        return Beside(self.array - self._there(other))

    def __mul__(self, other: Any) -> Beside:
        return Beside(self.array * self._there(other))

    def __matmul__(self, other: Any) -> Beside:
        return Beside(self.array @ self._there(other))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Vector:
        """On the host, for work that knows nothing of devices."""
        return np.asarray(to_numpy(self.array), dtype=dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *given: Any, **options: Any) -> Any:
        """The host's vectors on the left."""
        if method != "__call__" or options:
            return NotImplemented
        if ufunc is np.square:
            return Beside(self.array * self.array)
        known = ufunc in UFUNCS
        return Beside(UFUNCS[ufunc](*(self._there(one) for one in given))) if known else ufunc(*(brought(one) for one in given))

    def __array_function__(self, function: Any, types: Any, given: Any, options: Any) -> Any:
        xp = namespace(self.array)
        if function is np.einsum and not options:
            return to_numpy(xp.einsum(given[0], *(self._there(one) for one in given[1:])))
        if function is np.column_stack and not options:
            parts = [self._there(one) for one in given[0]]
            return Beside(xp.concat([part if part.ndim == 2 else part[:, None] for part in parts], axis=1))
        return function(*(brought(one) for one in given), **options)

    def _there(self, one: Any) -> Any:
        if isinstance(one, Beside):
            return one.array
        if isinstance(one, float | int):
            return one
        here = np.array(one)  # a copy: PyTorch refuses read-only memory
        there = here.astype(np.float64, copy=False) if here.dtype.kind == "f" else here  # indices and masks stay what they are
        return namespace(self.array).asarray(there, device=compat.device(self.array))


def brought(found: Any) -> Vector | Any:
    """What comes of some work, on the host."""
    return to_numpy(found.array) if isinstance(found, Beside) else found
