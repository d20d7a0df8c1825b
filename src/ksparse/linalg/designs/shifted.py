"""Columns centred and scaled, and a column of ones beside them, block by block as they are read: no copy of the data is made."""

from __future__ import annotations

from typing import Any

import numpy as np

from ksparse.base.arrays import Vector
from ksparse.linalg.designs.base import Design, Work


class Shifted(Design):
    """(A − 1μᵀ)·diag(scale), with a last column of ones where `ones` says so."""

    def __init__(self, inner: Design, mean: Vector, scale: Vector, ones: bool = False) -> None:
        super().__init__((inner.shape[0], inner.shape[1] + ones), np.dtype(np.float64))
        self.inner, self.mean, self.scale, self.ones = inner, mean, scale, ones
        self._count = inner._count

    def each(self, work: Work) -> list[Any]:
        return self.inner.each(self._on_shifted(work))

    def total(self, work: Work) -> Any:
        return self.inner.total(self._on_shifted(work))

    def _on_shifted(self, work: Work) -> Work:
        mean, scale, ones = self.mean, self.scale, self.ones  # not self: workers get no more than they need

        def shifted(block: Any, rows: slice) -> Any:
            block = (block - mean) * scale
            return work(np.column_stack([block, np.ones(len(block))]) if ones else block, rows)

        return shifted

    def shifted(self, mean: Vector, size: Vector) -> Design:
        """In one step, where only the scale is another."""
        return super().shifted(mean, size) if mean.any() or self.ones else Shifted(self.inner, self.mean, self.scale / size)

    def with_ones(self) -> Shifted:
        return Shifted(self.inner, self.mean, self.scale, ones=True)
