"""A dask array: chunks of rows stay on their threads or on the workers of a cluster; each pass is one `compute`."""

from __future__ import annotations

import operator
import warnings
from importlib import import_module
from typing import Any

import array_api_compat as compat
import numpy as np

from ksparse.data.design import Design, Work
from ksparse.util.arrays import Array, Vector, is_array, namespace, to_numpy
from ksparse.util.progress import bar

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
        return (
            Beside(UFUNCS[ufunc](*(self._there(one) for one in given)))
            if known
            else ufunc(*(brought(one) for one in given))
        )

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
        there = (
            here.astype(np.float64, copy=False) if here.dtype.kind == "f" else here
        )  # indices and masks stay what they are
        return namespace(self.array).asarray(there, device=compat.device(self.array))


def brought(found: Any) -> Vector | Any:
    """What comes of some work, on the host."""
    return to_numpy(found.array) if isinstance(found, Beside) else found


class DaskRows(Design):
    """A dask array of numbers, in chunks of whole rows."""

    def __init__(self, array: Any, name: str) -> None:
        if any(np.isnan(length) for lengths in array.chunks for length in lengths):
            raise ValueError(f"{name} has chunks of unknown size: call compute_chunk_sizes() on it first")
        if len(array.chunks[1]) > 1:
            warnings.warn(f"{name} is chunked by columns too: it is rechunked to whole rows", stacklevel=2)
            array = array.rechunk({1: -1})
        super().__init__(array.shape, np.dtype(array.dtype))
        self.array = array

    def _tasks(self, work: Work) -> list[Any]:
        self.count()
        lengths = self.array.chunks[0]
        blocks, ends = self.array.to_delayed().ravel(), np.cumsum(lengths)
        on_block = _dask().delayed(_on_block, pure=False)
        return [
            on_block(work, block, int(end) - length, int(end))
            for block, end, length in zip(blocks, ends, lengths, strict=True)
        ]

    def each(self, work: Work) -> list[Any]:
        with bar("a pass over the cluster's data"):
            return list(_dask().compute(*self._tasks(work)))

    def total(self, work: Work) -> Any:
        """Added up two by two where the parts are: one comes back."""
        add, parts = _dask().delayed(_add, pure=False), self._tasks(work)
        while len(parts) > 1:
            parts = [
                add(*pair) if len(pair) == 2 else pair[0]
                for pair in (parts[i : i + 2] for i in range(0, len(parts), 2))
            ]
        with bar("a pass over the cluster's data"):
            return _dask().compute(parts[0])[0]


def _dask() -> Any:
    return import_module("dask")


def _on_block(work: Work, block: Any, begin: int, end: int) -> Any:
    """Where the block lies: of PyTorch or CuPy on a worker's device."""
    foreign = is_array(block) and not isinstance(block, np.ndarray)
    return brought(work(Beside.doubled(block) if foreign else np.asarray(block, dtype=np.float64), slice(begin, end)))


def _add(one: Any, other: Any) -> Any:
    return one + other
