"""Local search over supports, on any neighbourhood; the batch search has descents of its own.

It fills the support with what gains most, then takes the first improving move until none is left. Where it has been at a support before, on
the same way, it knows the end and stops. Nothing is proved here: that is left to `proof`; what is tried where a descent has ended is in
`perturb`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

import numpy as np

from ksparse.search.candidate import Candidate
from ksparse.search.neighbourhoods import HEURISTIC_TRIALS, DependentError, Move, Neighbourhood, RankQuality
from ksparse.search.problem import SupportProblem
from ksparse.util.arrays import Vector

RULES_WORK = 4  # times as much work if variables require others, and swaps of whole blocks are tried in turn
PAIRED_BLOCKS = (4, 12)  # blocks that leave and variables that enter, paired with each other (benchmarks/rules.py)


class LocalSearch:
    """A support on the move, and where it has been."""

    def __init__(
        self, problem: SupportProblem, neighbourhood: Neighbourhood, most: int, aside: float = math.inf
    ) -> None:
        self.problem, self.hood, self.most, self.aside = problem, neighbourhood, most, aside
        self.rules = problem.rules
        self.k = min(problem.k, problem.asked)
        settings = problem.settings
        self.depth = max(3, int(settings.depth * self.k))  # ways by other k go as far
        self.dear = (
            not problem.can.has_multipliers
        )  # C only projects: every move takes a first-order method, and no descent may go on for ever
        self.tries = min(
            settings.tried,
            HEURISTIC_TRIALS if neighbourhood.trust is RankQuality.HEURISTIC or self.dear else settings.tried,
        )
        if self.rules.brings is not None:
            self.most *= RULES_WORK
        self.strict = self.rules.strict and self.rules.brings is not None  # one by one is not as they enter
        self.swaps = self.penalty = 0
        self._visited: set[tuple[str, int]] = set()

    @property
    def tiny(self) -> float:
        """A gain below this is rounding."""
        return self.problem.gain_tol(self.hood.value)

    @property
    def size(self) -> int:
        """How many variables the support has; under rules how many it counts with all that it needs."""
        return self.rules.count(self.hood)

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
        if self.hood.value <= self.problem.loss.least + self.tiny:
            return True
        if self.hood.trust is not RankQuality.EXACT or self.rules.any or self.size < self.k:
            return False
        least, most = self.hood.min_loss_and_max_gain()
        clear = self.problem.settings.clear
        return least >= clear * most and most <= abs(self.hood.value) / clear

    def mark_visited(self, way: str) -> bool:
        """Mark this support as seen on this way; return whether it had been before."""
        mark = (way, self.hood.key)
        known = mark in self._visited
        self._visited.add(mark)
        return known

    def attempt(self, way: Callable[[], bool], best: float) -> bool:
        """Whether a way leads to a better value than `best`; if not it is taken back."""
        before = self.hood.snapshot()
        try:
            if way() and self.hood.value < best - self.tiny:
                return True
        except DependentError:
            self.penalty += self.k
        self.hood.restore(before)
        return False

    def fill(self, k: int, shut: Vector | None = None, *, fresh: bool = False) -> bool:
        """Let enter what gains most until there are k or nothing gains; those in `shut` stay out.

        With `fresh` only while that leads to supports that are not known; False where it does not.
        """
        for _ in range(3 * self.problem.k):  # under signs those that enter may push others out: not for ever
            room = k - self.size
            if room <= 0 and not self.rules.any:  # under rules others may have their place already
                break
            if self.problem.expired or not self._first(self.adds(max(room, 1), shut), sure=self.hood.monotone):
                break
            if fresh and self.mark_visited("fill"):
                return False
        return True

    def complete(self) -> bool:
        """Where nonzeros must obey by themselves, let enter who is missing, of some the best; False where that cannot be."""
        rules = self.rules
        if not rules.strict:
            return True
        while (missing := rules.required_additions(self.hood.support, self.k) & self.problem.allowed).any():
            ranked = [move.entering[0] for move in self.hood.ranked_adds(0.0, 1, ~missing)]
            ranked += [int(i) for i in np.flatnonzero(missing) if i not in ranked]
            tried: list[tuple[float, int]] = []
            for i in ranked[:HEURISTIC_TRIALS]:
                undo = self.hood.apply(Move((), (i,)))
                if undo is not None:
                    tried.append((self.hood.value, i))
                    undo()
            if (
                not tried
                or self.hood.apply(Move((), (min(tried)[1],))) is None
                or min(tried)[1] not in self.hood.support
            ):
                return False
        return rules.allows(self.hood.support, self.k)

    def reduce(self, k: int) -> bool:
        """Let those leave that cost least, until k are left; False where that leads to a known support, or none can be spared."""
        while self.size > k:
            if not self._first(self.drops(), sure=True):
                return False
            if self.mark_visited("reduce"):
                return False
        return True

    def descend(self) -> bool:
        """Fill, then move while that gains; False where that leads to a known support."""
        self.fill(self.k)
        if not self.complete() or self.mark_visited("descend"):
            return False
        while not self.problem.expired and not (self.dear and self.spent):
            if not self._first(self.moves(), refill=True):
                break
            self.swaps += 1
            if self.mark_visited("descend"):
                return False
        return True

    def pair(self) -> bool:
        """Swap two for two, and descend; False where none gains, or leads to a known support."""
        return self._first(self._allowed(self.hood.ranked_pair_swaps(self.tiny)), refill=True) and self.descend()

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
            # signs made others leave, or rules let others in
            if refill and not self.strict and (self.rules.any or self.size < size):
                self.fill(self.k)
            improved = self.hood.value < before - max(tiny, move.min_gain) if not refill or self.complete() else False
            if sure or (improved and self.hood.compared <= 1):
                return True
            if improved and (best is None or self.hood.value < best[0]):
                best = self.hood.value, move
            undo()
        return best is not None and self.hood.apply(best[1]) is not None

    def adds(self, most: int, shut: Vector | None = None, k: int | None = None) -> Iterator[Move]:
        """The neighbourhood's, without those whom rules keep out of a support of k."""
        return self.hood.ranked_adds(self.tiny, most, self.rules.barred(self.hood, self.k if k is None else k, shut))

    def drops(self) -> Iterator[Move]:
        """The neighbourhood's; under rules all who need a variable leave with it, ranked by the dearest of them."""
        if self.rules.brings is None:
            return self.hood.ranked_drops()
        return (Move(block, ()) for block in self._blocks())

    def moves(self) -> Iterator[Move]:
        """The neighbourhood's that rules allow; then whole blocks for one variable, which what it needs may follow."""
        moves = self._allowed(self.hood.ranked_moves(self.tiny, not self.rules.any and self.size >= self.k))
        if self.rules.brings is None:
            return moves
        return chain(moves, self.drops() if self.strict else (), self._block_moves())

    def _allowed(self, moves: Iterator[Move]) -> Iterator[Move]:
        """Return the moves that the rules allow."""
        if not self.rules.any:
            return moves
        return (move for move in moves if self.rules.is_extendable(_after(self.hood.support, move), self.k))

    def _blocks(self) -> list[tuple[int, ...]]:
        """Members that leave together, those first whose dearest one costs least."""
        support = self.hood.support.copy()
        rank = {move.leaving[0]: place for place, move in enumerate(self.hood.ranked_drops())}
        blocks = {tuple(sorted(int(i) for i in block)) for block in self.rules.blocks(support)}
        ranked = [(max(rank[i] for i in block), block) for block in blocks if all(i in rank for i in block)]
        return [block for _, block in sorted(ranked)]

    def _block_moves(self) -> Iterator[Move]:
        """For each promising variable as many blocks as must leave for it, from the cheapest on, or from one after that."""
        support, blocks = self.hood.support.copy(), self._blocks()
        out, into = PAIRED_BLOCKS
        shut = np.zeros(self.problem.n, dtype=bool)
        entering: list[int] = []
        gaining = (move.entering[0] for move in self.hood.ranked_adds(0.0, 1))
        others = np.setdiff1d(np.flatnonzero(self.problem.allowed), support).tolist() if self.strict else []
        for i in chain(gaining, others):  # above a floor none need gain by itself
            if not shut[i]:
                entering.append(i)
                shut[self.rules.closure(np.array([i]))] = True  # of those that come together the first stands for all
            if len(entering) == into:
                break
        if self.strict:
            yield from self._allowed(Move((), (i,)) for i in entering)
        ways = sorted((a + b, a, i) for a in range(min(out, len(blocks))) for b, i in enumerate(entering))
        for _, begin, i in ways:
            gone: set[int] = set()
            needed = set(self.rules.closure(np.array([i])).tolist())
            for block in blocks[begin:]:
                if needed.isdisjoint(block):
                    gone.update(block)
                    move = Move(tuple(sorted(gone)), (i,))
                    if self.rules.is_extendable(_after(support, move), self.k):
                        yield move
                        break


def _after(support: Vector, move: Move) -> Vector:
    """A support after a move."""
    return np.append(support[~np.isin(support, move.leaving)], move.entering).astype(np.intp)


def descended(search: LocalSearch, start: Candidate, judge: SupportProblem | None = None) -> Candidate:
    """A candidate improved by moves; itself where its neighbourhood cannot stand on it. The search is left where it ended.

    What it is worth the `judge` says where the search is on a model of its φ.
    """
    try:
        search.hood.move_to(start)
        search.descend()
    except DependentError:
        return start
    return solved(search, start, judge)


def solved(search: LocalSearch, best: Candidate, judge: SupportProblem | None = None) -> Candidate:
    """The support that the search stands on, solved exactly, if it is better."""
    problem = judge or search.problem
    found = problem.evaluate(search.hood.support.copy(), best)
    return best if found is None or found.value >= best.value or not problem.allows(found.support) else found
