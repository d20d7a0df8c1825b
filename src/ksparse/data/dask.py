"""A dask array: chunks of rows stay on their threads or on the workers of a cluster; each pass is one `compute`."""

from __future__ import annotations

import operator
import warnings
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np

from ksparse.data.design import Design, Work
from ksparse.util.arrays import is_array, namespace, to_numpy
from ksparse.util.progress import bar


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
        self.record_pass()
        ends = np.cumsum([0, *self.array.chunks[0]]).tolist()
        blocks, on_block = self.array.to_delayed().ravel(), _dask().delayed(_on_block, pure=False)
        return [on_block(work, block, slice(*rows)) for block, rows in zip(blocks, pairwise(ends), strict=True)]

    def each(self, work: Work) -> list[Any]:
        with bar("a pass over the cluster's data"):
            return list(_dask().compute(*self._tasks(work)))

    def total(self, work: Work) -> Any:
        """Add the results in pairs on the workers, so that only the sum is sent back."""
        add, parts = _dask().delayed(operator.add, pure=False), self._tasks(work)
        while len(parts) > 1:
            pairs = (parts[i : i + 2] for i in range(0, len(parts), 2))
            parts = [add(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
        with bar("a pass over the cluster's data"):
            return _dask().compute(parts[0])[0]


def _dask() -> Any:
    return import_module("dask")


def _on_block(work: Work, block: Any, rows: slice) -> Any:
    """Return the work on a block, computed on the worker's device if the block is there, as a host array."""
    if isinstance(block, np.ndarray) or not is_array(block):
        return work(np.asarray(block, dtype=np.float64), rows)
    xp = namespace(block)
    found = work(xp.astype(block, xp.float64, copy=False), rows)
    return to_numpy(found) if is_array(found) else found
