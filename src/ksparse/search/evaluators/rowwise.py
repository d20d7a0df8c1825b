"""φ of a matrix on some of its rows: the matrix itself knows the best X there."""

from __future__ import annotations

import numpy as np

from ksparse.losses.row_sparse import RowProblem
from ksparse.search.candidate import Candidate
from ksparse.util.arrays import Vector


class Rowwise:
    """The best X on a support; a candidate's x is then a matrix, one row per member."""

    def __init__(self, wide: RowProblem, least: float) -> None:
        self.wide, self.least, self.direct = wide, least, wide.exact

    def solve(self, support: Vector, hint: Candidate | None) -> Candidate | None:
        begin = None
        if hint is not None and hint.x.ndim == 2:  # of a row that was not there 0
            begin = np.zeros((support.size, self.wide.width))
            kept = np.isin(support, hint.support)
            begin[kept] = hint.x[np.isin(hint.support, support)]
        found = self.wide.solve(support, begin)
        if not np.isfinite(found.value):
            return None
        return Candidate(support, found.X, found.value, np.zeros(support.size), np.zeros(0), rounding=found.rounding)

    def distinct(self, support: Vector) -> Vector:
        return support

    def lower_bound(self, support: Vector, found: Candidate) -> float:
        return max(found.value - found.rounding - self.wide.shortfall(support, found.x), self.least)
