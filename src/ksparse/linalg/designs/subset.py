"""Some rows of a design, in their order: the folds of a cross-validation. Each pass reads all rows, and uses those."""

from __future__ import annotations

from typing import Any

import numpy as np

from ksparse.base.arrays import Vector
from ksparse.linalg.designs.base import Design, Work


class Subset(Design):
    """The rows of a design where a mask holds."""

    def __init__(self, inner: Design, mask: Vector) -> None:
        super().__init__((int(mask.sum()), inner.shape[1]), inner.dtype)
        self.inner, self._mask, self._places = inner, mask, np.concatenate([[0], np.cumsum(mask)])
        self._count = inner._count

    @classmethod
    def of(cls, inner: Design, chosen: Any) -> Subset:
        """By a mask, or by the numbers of rows, which must rise."""
        chosen = np.asarray(chosen)
        if chosen.dtype == bool:
            return cls(inner, chosen)
        if (np.diff(chosen) <= 0).any():
            raise ValueError("rows of data that are read by blocks can only be taken in their order: use folds that keep it")
        mask = np.zeros(inner.shape[0], dtype=bool)
        mask[chosen] = True
        return cls(inner, mask)

    def each(self, work: Work) -> list[Any]:
        return self.inner.each(self._on_chosen(work))

    def total(self, work: Work) -> Any:
        return self.inner.total(self._on_chosen(work))

    def _on_chosen(self, work: Work) -> Work:
        mask, places = self._mask, self._places
        return lambda block, rows: work(block[mask[rows]], slice(int(places[rows.start]), int(places[rows.stop])))
