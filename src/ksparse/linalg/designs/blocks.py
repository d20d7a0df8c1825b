"""Rows that are read block by block: from single-precision arrays, files mapped into memory, HDF5, zarr, or anything with row slices."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

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
        self.count()
        m = self.shape[0]
        slices = [slice(begin, min(begin + self.height, m)) for begin in range(0, m, self.height)]
        if isinstance(self.source, np.ndarray) and not isinstance(self.source, np.memmap):
            return [work(self._read(rows), rows) for rows in slices]
        found: list[Any] = []
        with ThreadPoolExecutor(1, thread_name_prefix="ksparse-read") as reader:
            ahead: Future[Any] = reader.submit(self._read, slices[0])
            for i, rows in enumerate(slices):
                block = ahead.result()
                if i + 1 < len(slices):
                    ahead = reader.submit(self._read, slices[i + 1])
                found.append(work(block, rows))
        return found

    def total(self, work: Work) -> Any:
        """Added up as they come: what a block gives may be k·n numbers."""
        sums: list[Any] = []

        def add(block: Any, rows: slice) -> None:
            part = work(block, rows)
            sums[:] = [sums[0] + part] if sums else [part]

        self.each(add)
        return sums[0]

    def _read(self, rows: slice) -> Any:
        return np.asarray(self.source[rows], dtype=np.float64)
