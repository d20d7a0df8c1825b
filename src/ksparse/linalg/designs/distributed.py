"""A dask array: the chunks of rows stay where they are, on threads or on the workers of a cluster; each pass is one `compute`."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import numpy as np

from ksparse.base.arrays import is_array
from ksparse.base.progress import bar
from ksparse.linalg.designs.base import Design, Work
from ksparse.linalg.designs.beside import Beside, brought


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
        return [on_block(work, block, int(end) - length, int(end)) for block, end, length in zip(blocks, ends, lengths, strict=True)]

    def each(self, work: Work) -> list[Any]:
        with bar("a pass over the cluster's data"):
            return list(_dask().compute(*self._tasks(work)))

    def total(self, work: Work) -> Any:
        """Added up two by two where the parts are: one comes back."""
        add, parts = _dask().delayed(_add, pure=False), self._tasks(work)
        while len(parts) > 1:
            parts = [add(*pair) if len(pair) == 2 else pair[0] for pair in (parts[i : i + 2] for i in range(0, len(parts), 2))]
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
