"""Rows that are read block by block: from single-precision arrays, files mapped into memory, HDF5, zarr, or anything with row slices."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import zip_longest
from typing import Any

import numpy as np

from ksparse.base.threads import in_threads, one_thread
from ksparse.linalg.designs.base import BLOCK, Design, Work


class Blocks(Design):
    """An object with `shape`, `dtype` and row slices. A block is read while the last one is multiplied: two of them are held at a time."""

    def __init__(self, source: Any, height: int | None = None) -> None:
        super().__init__(source.shape, np.dtype(source.dtype))
        self.source = source
        chunks = getattr(source, "chunks", None)  # of h5py and zarr: whole ones, or each would be read more than once
        tall = int(chunks[0]) if isinstance(chunks, tuple) and isinstance(chunks[0], int) else 1
        height = height or max(1, BLOCK // max(1, self.shape[1]))
        self.height = max(tall, height - height % tall)

    def each(self, work: Work) -> list[Any]:
        return [one for part in self._run(lambda blocks: [work(*block) for block in blocks]) for one in part]

    def total(self, work: Work) -> Any:
        """Added up as they come: what a block gives may be k·n numbers."""
        return _sum(self._run(lambda blocks: _sum(work(*block) for block in blocks)))

    def _run(self, collect: Callable[[Iterator[tuple[Any, slice]]], Any]) -> list[Any]:
        """One pass: what is collected of all blocks, or in memory, where each thread has some of them, by each."""
        self.count()
        m = self.shape[0]
        slices = [slice(begin, min(begin + self.height, m)) for begin in range(0, m, self.height)]
        if not isinstance(self.source, np.ndarray) or isinstance(self.source, np.memmap):
            return [collect(self._ahead(slices))]
        with one_thread():  # ours are enough
            return in_threads(lambda part: collect((self._read(rows), rows) for rows in slices[part]), len(slices))

    def _ahead(self, slices: list[slice]) -> Iterator[tuple[Any, slice]]:
        """Each block, the next one being read meanwhile."""
        with ThreadPoolExecutor(1, thread_name_prefix="ksparse-read") as reader:
            ahead: Future[Any] = reader.submit(self._read, slices[0])
            for rows, following in zip_longest(slices, slices[1:]):
                block = ahead.result()
                if following is not None:
                    ahead = reader.submit(self._read, following)
                yield block, rows

    def _read(self, rows: slice) -> Any:
        return np.asarray(self.source[rows], dtype=np.float64)


def _sum(parts: Iterable[Any]) -> Any:
    return functools.reduce(operator.add, parts)
