"""Rows of a matrix: gains summed over its columns, on one factorisation for all of them.

Where the columns share one H the gains are exact. For other losses they are those of a second-order model at the best X, and a guess.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ksparse.losses.row_sparse import Gains, RowProblem
from ksparse.numerics.kkt_inverse import parts
from ksparse.search.candidate import Candidate
from ksparse.search.neighbourhoods.base import Move, Trust
from ksparse.search.neighbourhoods.solved import Solved, falling
from ksparse.search.problem import SupportProblem
from ksparse.util.arrays import Vector


class Rowwise(Solved):
    """Moves of whole rows, ranked by their gain and solved."""

    def __init__(self, problem: SupportProblem, wide: RowProblem) -> None:
        super().__init__(problem)
        self.wide, self.trust = wide, Trust.EXACT if wide.exact else Trust.GUESS
        self._known: tuple[Candidate, Gains] | None = None

    def _gains(self) -> Gains:
        """At where it stands, made once."""
        if self._known is None or self._known[0] is not self.at:
            self._known = self.at, self.wide.gains(self.at.support, self.at.x)
        return self._known[1]

    def add_ranks(self) -> Vector:
        gains = np.where(self.problem.allowed, self._gains().adds(), 0.0)
        gains[self.at.support] = 0.0
        return gains

    def drop_ranks(self) -> Vector:
        return np.where(self.movable, self._gains().drops(), np.inf)

    def moves(self, least: float, full: bool) -> Iterator[Move]:
        support, entering = self.at.support, self.problem.inactive(self.at)
        if not (support.size and entering.size):
            return
        adds = self.add_ranks()[entering]
        if (
            self.trust is Trust.GUESS
        ):  # its ranks order the moves, but exclude none; of those that hardly pull none is looked at
            least, best = -np.inf, np.argsort(-adds, kind="stable")[: self.problem.settings.entering]
            entering, adds = entering[best], adds[best]
        tables = [self._gains().swaps(entering[part]) for part in parts(entering.size, support.size)]
        table = np.hstack(tables)
        table[~self.movable] = -np.inf
        ranks = np.concatenate([np.full(adds.size, -np.inf) if full else adds, table.ravel()])
        for place in falling(ranks, least):
            j, i = divmod(place - adds.size, entering.size)
            yield (
                Move((), (int(entering[place]),))
                if place < adds.size
                else Move((int(support[j]),), (int(entering[i]),))
            )
