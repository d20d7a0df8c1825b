"""Local search over supports: the only descent there is, on any neighbourhood.

It fills the support with what gains most, then takes the first improving move until none is left. Where it has been at a support before, on
the same way, it knows the end and stops. Nothing is proved here: that is left to `proof`; what is tried where a descent has ended is in
`perturb`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from ksparse.base.arrays import Vector
from ksparse.search.candidate import Candidate
from ksparse.search.neighbourhoods.base import DependentError, Move, Neighbourhood, Trust
from ksparse.search.problem import SupportProblem


class LocalSearch:
    """A support on the move, and where it has been."""

    def __init__(self, problem: SupportProblem, neighbourhood: Neighbourhood, most: int, aside: float = math.inf) -> None:
        self.problem, self.k, self.hood, self.most, self.aside = problem, problem.k, neighbourhood, most, aside
        settings = problem.pieces.settings
        self.depth = max(3, int(settings.depth * self.k))  # ways by other k go as far
        self.dear = not problem.pieces.priced  # C only projects: every move takes a first-order method, and no descent may go on for ever
        self.tries = settings.guessed if neighbourhood.trust is Trust.GUESS or self.dear else settings.tried
        self.swaps = self.penalty = 0
        self._visited: set[tuple[str, int]] = set()

    @property
    def tiny(self) -> float:
        """A gain below this is rounding."""
        return self.problem.pieces.tolerance(self.hood.value)

    @property
    def size(self) -> int:
        """How many variables the support has."""
        return self.hood.size

    @property
    def changes(self) -> int:
        """The work done; a way that ends among dependent variables counts as many changes as the support has."""
        return self.hood.changes + self.penalty

    @property
    def spent(self) -> bool:
        """Whether the search has done its part, or its time is up."""
        return self.changes >= self.most or self.problem.expired

    @property
    def clear(self) -> bool:
        """Whether no variable is in doubt: each would cost far more to lose than any other could bring, and that is little altogether.

        The second where a good fit is near: there all gains are small beside the losses, and all supports in doubt. A perfect fit is not.
        """
        if self.hood.value <= self.problem.pieces.loss.least + self.tiny:
            return True
        if self.hood.trust is not Trust.EXACT or self.size < self.k:
            return False
        least, most = self.hood.worth()
        clear = self.problem.pieces.settings.clear
        return least >= clear * most and most <= abs(self.hood.value) / clear

    def visited(self, way: str) -> bool:
        """Whether the search has been at this support before on the same way; from now on it has."""
        mark = (way, self.hood.key)
        known = mark in self._visited
        self._visited.add(mark)
        return known

    def attempt(self, way: Callable[[], bool], best: float) -> bool:
        """Whether a way leads to a better value than `best`; if not it is taken back."""
        before = self.hood.mark()
        try:
            if way() and self.hood.value < best - self.tiny:
                return True
        except DependentError:
            self.penalty += self.k
        self.hood.back_to(before)
        return False

    def fill(self, k: int, shut: Vector | None = None, *, fresh: bool = False) -> bool:
        """Let enter what gains most until there are k or nothing gains; those in `shut` stay out.

        With `fresh` only while that leads to supports that are not known; False where it does not.
        """
        for _ in range(3 * k):  # under signs those that enter may push others out: not for ever
            room = k - self.size
            if room <= 0 or self.problem.expired or not self._first(self.hood.adds(self.tiny, room, shut), sure=self.hood.monotone):
                break
            if fresh and self.visited("fill"):
                return False
        return True

    def reduce(self, k: int) -> bool:
        """Let those leave that cost least, until k are left; False where that leads to a known support, or none can be spared."""
        while self.size > k:
            if not self._first(self.hood.drops(), sure=True):
                return False
            if self.visited("reduce"):
                return False
        return True

    def descend(self) -> bool:
        """Fill, then move while that gains; False where that leads to a known support."""
        self.fill(self.k)
        if self.visited("descend"):
            return False
        while not self.problem.expired and not (self.dear and self.spent):
            if not self._first(self.hood.moves(self.tiny, self.size >= self.k), refill=True):
                break
            self.swaps += 1
            if self.visited("descend"):
                return False
        return True

    def _first(self, moves: Iterable[Move], *, sure: bool = False, refill: bool = False) -> bool:
        """Make the first move that improves, or with `sure` the first that can be made; those in vain are taken back.

        Where ranks say little of the gains, several are made, and the best of them again.
        """
        before, tiny = self.hood.value, 0.0 if sure else self.tiny
        best: tuple[float, Move] | None = None
        for tried, move in enumerate(moves):
            if tried >= (self.tries if best is None else self.hood.compared) or self.problem.expired:
                break
            size, undo = self.size, self.hood.apply(move)
            if undo is None:
                continue
            if refill and self.size < size:  # signs made others leave
                self.fill(self.k)
            improved = self.hood.value < before - max(tiny, move.needed)
            if sure or (improved and self.hood.compared <= 1):
                return True
            if improved and (best is None or self.hood.value < best[0]):
                best = self.hood.value, move
            undo()
        return best is not None and self.hood.apply(best[1]) is not None


def descended(search: LocalSearch, start: Candidate) -> Candidate:
    """A candidate improved by moves; itself where its neighbourhood cannot stand on it. The search is left where it ended."""
    try:
        search.hood.stand_at(start)
        search.descend()
    except DependentError:
        return start
    return solved(search, start)


def solved(search: LocalSearch, best: Candidate) -> Candidate:
    """The support that the search stands on, solved exactly, if it is better."""
    found = search.problem.evaluate(search.hood.support.copy(), best)
    return best if found is None or found.value >= best.value else found
