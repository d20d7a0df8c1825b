"""The common part of neighbourhoods whose moves are solved on the new support, one by one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

import numpy as np

from ksparse.search.candidate import Candidate
from ksparse.search.neighbourhoods.base import Move, Swap, Trust, Undo
from ksparse.search.problem import SupportProblem
from ksparse.util.arrays import Vector

CHUNK = 256  # moves sorted at a time


class Solved:
    """Stands at a candidate; a move is an evaluation of the support it leads to."""

    trust, monotone, walks, compared = Trust.GUESS, False, False, 1

    def __init__(self, problem: SupportProblem) -> None:
        self.problem, self.changes = problem, 0
        self.at = Candidate.without_multipliers(np.zeros(0, dtype=np.intp), np.zeros(0), np.inf)

    @property
    def support(self) -> Vector:
        return self.at.support

    @property
    def size(self) -> int:
        return int(self.at.support.size)

    @property
    def value(self) -> float:
        return self.at.value

    @property
    def key(self) -> int:
        return hash(self.at.support.tobytes())

    @property
    def room(self) -> int:
        return int(self.problem.allowed.sum())

    def stand_at(self, candidate: Candidate) -> None:
        self.at = candidate

    def jump(self, support: Vector) -> bool:
        found = self.problem.evaluate(support)
        self.changes += support.size
        if found is not None:
            self.at = found
        return found is not None

    def apply(self, move: Move) -> Undo | None:
        kept = np.setdiff1d(self.at.support, move.leaving) if move.leaving else self.at.support
        found = self.problem.evaluate(np.append(kept, move.entering).astype(np.intp), self.at)
        self.changes += move.changes
        if found is None:
            return None
        before, self.at = self.at, found
        return lambda: self.back_to(before)

    def kick(self, leaving: Vector, rng: np.random.Generator) -> bool:
        """Where C has no point without them, others take their places at random."""
        gone = tuple(int(i) for i in leaving)
        if self.apply(Move(gone, ())) is not None:
            return True
        others = self.problem.inactive(self.at)
        entering = rng.choice(others, min(leaving.size, others.size), replace=False)
        kept = self.problem.trim_to_rules(np.append(np.setdiff1d(self.at.support, leaving), entering))
        entering = np.setdiff1d(kept, self.at.support)
        return self.apply(Move(gone, tuple(int(i) for i in entering))) is not None

    def mark(self) -> Candidate:
        return self.at

    def back_to(self, mark: Candidate) -> None:
        self.at = mark

    @property
    def movable(self) -> Vector:
        """Which variables of the support may leave."""
        return ~np.isin(self.at.support, self.problem.forced)

    @abstractmethod
    def add_ranks(self) -> Vector:
        """What each variable promises to gain by entering; of those that may not, nothing."""

    @abstractmethod
    def drop_ranks(self) -> Vector:
        """What each variable of the support promises to cost by leaving; ∞ where it may not."""

    def adds(self, least: float, most: int, shut: Vector | None = None) -> Iterator[Move]:
        ranks = self.add_ranks()
        if shut is not None:
            ranks[shut] = 0.0
        yield from (Move((), (i,)) for i in falling(ranks, least))

    def drops(self) -> Iterator[Move]:
        ranks = self.drop_ranks()
        yield from (Move((int(self.at.support[j]),), ()) for j in falling(-ranks, -np.inf))

    @abstractmethod
    def moves(self, least: float, full: bool) -> Iterator[Move]:
        """Swaps, and what else fits the set, by falling rank above `least`."""

    def pairs(self, least: float) -> Iterator[Move]:
        yield from ()

    def get_ready(self, changes: int) -> None:
        pass

    def swap(self, shut: Vector, kept: Vector, aspired: float = np.inf) -> Swap | None:
        return None

    def worth(self) -> tuple[float, float]:
        return float(self.drop_ranks().min(initial=np.inf)), float(self.add_ranks().max(initial=0.0))


def falling(ranks: Vector, least: float) -> Iterator[int]:
    """The places of the ranks above `least`, largest first, sorted a chunk at a time."""
    left = np.flatnonzero(ranks > least)
    while left.size:
        if left.size > CHUNK:
            split = np.argpartition(-ranks[left], CHUNK)
            chunk, left = left[split[:CHUNK]], left[split[CHUNK:]]
        else:
            chunk, left = left, left[:0]
        yield from (int(place) for place in chunk[np.argsort(-ranks[chunk], kind="stable")])
