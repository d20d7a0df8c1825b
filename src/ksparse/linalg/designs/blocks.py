"""Rows that are read block by block: from single-precision arrays, files mapped into memory, HDF5, zarr, or anything with row slices."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import zip_longest
from typing import Any

import numpy as np

from ksparse.base.arrays import Vector
from ksparse.base.progress import NOWHERE, Bar, bar
from ksparse.base.threads import in_threads
from ksparse.linalg.designs.base import BLOCK, Design, Work

FEWEST = 4  # rows, however long: each time a vector of their length is added up
BESIDE = 2**19  # entries that are turned to double precision at a time: they stay beside the processor while they are used


class Blocks(Design):
    """An object with `shape`, `dtype` and row slices. A block is read while the last one is multiplied: two of them are held at a time.

    `work` gets some rows of it in double precision, which the next ones take the place of: what it returns must not be part of them.
    """

    def __init__(self, source: Any, height: int | None = None, tell: Callable[[int, float], None] | None = None) -> None:
        super().__init__(source.shape, np.dtype(source.dtype))
        self.source, self._tell = source, tell
        chunks = getattr(source, "chunks", None)  # of h5py and zarr: whole ones, or each would be read more than once
        tall = int(chunks[0]) if isinstance(chunks, tuple) and isinstance(chunks[0], int) else 1
        self._in_memory = isinstance(source, np.ndarray) and not isinstance(source, np.memmap)
        height = height or max(FEWEST, BLOCK // max(1, self.shape[1]))
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
        if not self._in_memory:
            with bar(f"pass {self.passes} over the data", 1.0) as read:
                return [collect(self._doubled(self._ahead(slices), read))]
        return in_threads(lambda part: collect(self._doubled((self.source[rows], rows) for rows in slices[part])), len(slices))

    def _doubled(self, blocks: Iterable[tuple[Any, slice]], read: Bar = NOWHERE) -> Iterator[tuple[Any, slice]]:
        """Some rows of each block at a time in double precision, all in the same place."""
        few = min(self.height, max(FEWEST, BESIDE // self.shape[1]))
        place = np.empty((few, self.shape[1]))
        for block, rows in blocks:
            for begin in range(0, len(block), few):
                part = block[begin : begin + few]
                np.copyto(place[: len(part)], part)
                yield place[: len(part)], slice(rows.start + begin, rows.start + begin + len(part))
            read.at(rows.stop / self.shape[0])
            if self._tell is not None:
                self._tell(self.passes, rows.stop / self.shape[0])

    def _ahead(self, slices: list[slice]) -> Iterator[tuple[Any, slice]]:
        """Each block, the next one being read meanwhile."""
        mapped = isinstance(self.source, np.memmap)  # copied here, or the file would be read where it is multiplied
        tall = slices[0].stop
        places = [np.empty((tall, self.shape[1]), self.source.dtype) if mapped else None for _ in range(2)]
        with ThreadPoolExecutor(1, thread_name_prefix="ksparse-read") as reader:
            ahead: Future[Any] = reader.submit(self._read, slices[0], places[0])
            for number, (rows, following) in enumerate(zip_longest(slices, slices[1:]), start=1):
                block = ahead.result()
                if following is not None:
                    ahead = reader.submit(self._read, following, places[number % 2])
                yield block, rows

    def _read(self, rows: slice, place: Vector | None) -> Any:
        """Return these rows of the source, in `place` if it is given: memory that is used again stays as little as it is."""
        if place is None:
            return np.asarray(self.source[rows])
        block = place[: rows.stop - rows.start]
        np.copyto(block, self.source[rows])
        return block


def _sum(parts: Iterable[Any]) -> Any:
    return functools.reduce(operator.iadd, parts)
