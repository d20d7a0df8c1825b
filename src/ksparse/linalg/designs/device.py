"""A dense array on a GPU, or of another array library: products there, in blocks of rows in double precision; k·n numbers come back."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import array_api_compat as compat
import numpy as np

from ksparse.base.arrays import Array, Vector, namespace, on_device, to_numpy
from ksparse.linalg.designs.base import BLOCK, Design, Seen, Work

LONG = 2**14  # columns from which k rows of AᵀDA are dearer to read on the host than to reach on the device
WIDER = 16  # times as many entries in a block as on a host


class Device(Design):
    """For vectors on the host, in double precision."""

    def __init__(self, array: Array) -> None:
        super().__init__(array.shape, np.dtype(np.float64))
        self.array = array
        self.height = max(1, WIDER * BLOCK // self.shape[1])

    def each(self, work: Work) -> list[Any]:
        self.count()
        xp, m = namespace(self.array), self.shape[0]
        slices = [slice(begin, min(begin + self.height, m)) for begin in range(0, m, self.height)]
        return [work(xp.astype(self.array[rows, :], xp.float64), rows) for rows in slices]

    def _there(self, x: Any) -> Array:
        return namespace(self.array).asarray(np.ascontiguousarray(x), device=compat.device(self.array))

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
        found: Seen = self.total(lambda block, rows: Seen(to_numpy(xp.sum(block * block, axis=0)), float(xp.max(xp.abs(block)))))
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
        xp, chosen = namespace(self.array), self._there(support)
        cut = xp.take(self.array, chosen, axis=1)
        return Device(cut) if self.shape[0] * support.size >= BLOCK else np.asarray(to_numpy(cut), dtype=np.float64)

    def dense(self) -> Vector:
        return np.asarray(to_numpy(self.array), dtype=np.float64)
