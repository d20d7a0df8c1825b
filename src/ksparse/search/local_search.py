"""Local search over supports: add the variables that gain most, then make improving moves until none is left.

Visited supports are stored, and a descent stops at one. Nothing is proved here. `perturbation` continues where a
descent ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice

import numpy as np

from ksparse.search.candidate import Candidate
from ksparse.search.neighbourhoods import HEURISTIC_TRIALS, DependentError, Move, Neighbourhood, RankQuality
from ksparse.search.problem import SupportProblem
from ksparse.util.arrays import Vector

RULES_WORK = 4  # factor of the work limit if variables require others: then swaps of whole blocks are tried too
PAIRED_BLOCKS = (4, 12)  # blocks that leave and variables that enter, paired with each other (benchmarks/rules.py)


class LocalSearch:
    """The current support of a search, the work done, and the supports visited."""

    def __init__(
        self, problem: SupportProblem, neighbourhood: Neighbourhood, work_limit: int, start_work: float = math.inf
    ) -> None:
        self.problem, self.neighbourhood = problem, neighbourhood
        self.work_limit, self.start_work = work_limit, start_work
        self.rules, self.k = problem.rules, min(problem.k, problem.asked)
        self.depth = max(3, int(problem.settings.depth * self.k))  # of an oscillation in k
        self.moves_need_solver = not problem.can.has_multipliers  # each move runs a first-order method
        heuristic = neighbourhood.trust is RankQuality.HEURISTIC or self.moves_need_solver
        self.trials = min(problem.settings.tried, HEURISTIC_TRIALS if heuristic else problem.settings.tried)
        if self.rules.brings is not None:
            self.work_limit *= RULES_WORK
        # rules that nonzeros must satisfy by themselves hold after a move, not while variables enter one by one
        self.strict = self.rules.strict and self.rules.brings is not None
        self.swaps = self.wasted = 0
        self._visited: set[tuple[str, int]] = set()

    @property
    def gain_tol(self) -> float:
        """The gain below which a difference of values is rounding."""
        return self.problem.gain_tol(self.neighbourhood.value)

    @property
    def size(self) -> int:
        """The size of the support as the rules count it."""
        return self.rules.min_cardinality(self.neighbourhood.support)

    @property
    def work(self) -> int:
        """Changes of the support so far; an attempt that ends among dependent variables counts as k."""
        return self.neighbourhood.changes + self.wasted

    @property
    def exhausted(self) -> bool:
        """Whether the work or the time is used up."""
        return self.work >= self.work_limit or self.problem.expired

    @property
    def support_is_unambiguous(self) -> bool:
        """Whether each variable is worth far more than any other would gain, and this gain is small relative to φ.

        Near a perfect fit all gains are small compared with the losses, so that supports are in doubt although the
        first condition holds. A perfect fit itself is unambiguous.
        """
        if self.neighbourhood.value <= self.problem.loss.least + self.gain_tol:
            return True
        if self.neighbourhood.trust is not RankQuality.EXACT or self.rules.any or self.size < self.k:
            return False
        min_loss, max_gain = self.neighbourhood.min_loss_and_max_gain()
        clear = self.problem.settings.clear
        return min_loss >= clear * max_gain and max_gain <= abs(self.neighbourhood.value) / clear

    def mark_visited(self, phase: str) -> bool:
        """Mark this support as visited in a phase of the search; return whether it had been before."""
        mark = (phase, self.neighbourhood.key)
        known = mark in self._visited
        self._visited.add(mark)
        return known

    def attempt(self, change: Callable[[], bool], best: float) -> bool:
        """Return whether a change leads to a better value than `best`; undo it if not."""
        before = self.neighbourhood.snapshot()
        try:
            if change() and self.neighbourhood.value < best - self.gain_tol:
                return True
        except DependentError:
            self.wasted += self.k
        self.neighbourhood.restore(before)
        return False

    def add_up_to(self, k: int, tabu: Vector | None = None, *, fresh: bool = False) -> bool:
        """Add the variable that gains most, except those of `tabu`, until the size is k or none gains.

        With `fresh`, stop at a visited support and return False.
        """
        for _ in range(3 * self.problem.k):  # a limit, since under signs an entering variable may push others out
            room = k - self.size
            if room <= 0 and not self.rules.any:  # under rules variables may enter without a larger size
                break
            if self.problem.expired or not self._first(self.adds(max(room, 1), tabu), sure=self.neighbourhood.monotone):
                break
            if fresh and self.mark_visited("add"):
                return False
        return True

    def drop_down_to(self, k: int) -> bool:
        """Drop the variable that costs least until k are left; False if none can leave, or at a visited support."""
        while self.size > k:
            if not self._first(self.drops(), sure=True) or self.mark_visited("drop"):
                return False
        return True

    def satisfy_rules(self) -> bool:
        """Add variables that the rules require, the best if there is a choice; return whether that is possible."""
        rules = self.rules
        if not rules.strict:
            return True
        while (missing := rules.required_additions(self.neighbourhood.support, self.k) & self.problem.allowed).any():
            ranked = [move.entering[0] for move in self.neighbourhood.ranked_adds(0.0, 1, ~missing)]
            ranked += [int(i) for i in np.flatnonzero(missing) if i not in ranked]
            tried: list[tuple[float, int]] = []
            for i in ranked[:HEURISTIC_TRIALS]:
                undo = self.neighbourhood.apply(Move((), (i,)))
                if undo is not None:
                    tried.append((self.neighbourhood.value, i))
                    undo()
            if not tried:
                return False
            best = min(tried)[1]
            if self.neighbourhood.apply(Move((), (best,))) is None or best not in self.neighbourhood.support:
                return False
        return rules.allows(self.neighbourhood.support, self.k)

    def descend(self) -> bool:
        """Add up to k variables, then move while that gains; False at a visited support or if the rules fail."""
        self.add_up_to(self.k)
        if not self.satisfy_rules() or self.mark_visited("descend"):
            return False
        while not self.problem.expired and not (self.moves_need_solver and self.exhausted):
            if not self._first(self._moves(), refill=True):
                break
            self.swaps += 1
            if self.mark_visited("descend"):
                return False
        return True

    def swap_pairs(self) -> bool:
        """Make the first pair swap that gains, and descend; False if none gains, or at a visited support."""
        pairs = self._allowed(self.neighbourhood.ranked_pair_swaps(self.gain_tol))
        return self._first(pairs, refill=True) and self.descend()

    def _first(self, moves: Iterable[Move], *, sure: bool = False, refill: bool = False) -> bool:
        """Make the first move that improves, or with `sure` the first that is possible; undo all others."""
        before, tol = self.neighbourhood.value, 0.0 if sure else self.gain_tol
        for move in islice(moves, self.trials):
            if self.problem.expired:
                break
            size, undo = self.size, self.neighbourhood.apply(move)
            if undo is None:
                continue
            # signs may have made other variables leave, or rules let others enter
            if refill and not self.strict and (self.rules.any or self.size < size):
                self.add_up_to(self.k)
            goal = before - max(tol, move.min_gain)
            if ((not refill or self.satisfy_rules()) and self.neighbourhood.value < goal) or sure:
                return True
            undo()
        return False

    def adds(self, expected: int, tabu: Vector | None = None, k: int | None = None) -> Iterator[Move]:
        """Yield ranked adds that the rules allow in a support of at most k."""
        barred = self.rules.barred(self.neighbourhood.support, self.k if k is None else k, tabu)
        return self.neighbourhood.ranked_adds(self.gain_tol, expected, barred)

    def drops(self) -> Iterator[Move]:
        """Yield ranked drops; if variables require others, drops of blocks that leave together."""
        if self.rules.brings is None:
            return self.neighbourhood.ranked_drops()
        return (Move(block, ()) for block in self._blocks())

    def _moves(self) -> Iterator[Move]:
        """Yield ranked moves that the rules allow; then, if variables require others, moves of whole blocks."""
        full = not self.rules.any and self.size >= self.k
        moves = self._allowed(self.neighbourhood.ranked_moves(self.gain_tol, full))
        if self.rules.brings is None:
            return moves
        return chain(moves, self.drops() if self.strict else (), self._block_moves())

    def _allowed(self, moves: Iterator[Move]) -> Iterator[Move]:
        """Yield the moves that the rules allow."""
        if not self.rules.any:
            return moves
        return (move for move in moves if self.rules.is_extendable(_after(self.neighbourhood.support, move), self.k))

    def _blocks(self) -> list[tuple[int, ...]]:
        """Return the sets of variables that leave together, ranked by their most costly variable."""
        support = self.neighbourhood.support.copy()
        rank = {move.leaving[0]: place for place, move in enumerate(self.neighbourhood.ranked_drops())}
        blocks = {tuple(sorted(int(i) for i in block)) for block in self.rules.blocks(support)}
        ranked = [(max(rank[i] for i in block), block) for block in blocks if all(i in rank for i in block)]
        return [block for _, block in sorted(ranked)]

    def _block_moves(self) -> Iterator[Move]:
        """Yield moves in which a promising variable enters and as many of the cheapest blocks leave as it needs.

        Later moves keep the cheapest block, then the two cheapest, and so on.
        """
        support, blocks, (out, into) = self.neighbourhood.support.copy(), self._blocks(), PAIRED_BLOCKS
        covered = np.zeros(self.problem.n, dtype=bool)
        entering: list[int] = []
        gaining = (move.entering[0] for move in self.neighbourhood.ranked_adds(0.0, 1))
        # with a minimum size no variable need gain by itself
        others = self.problem.inactive(support).tolist() if self.strict else []
        for i in chain(gaining, others):
            if not covered[i]:
                entering.append(i)
                covered[self.rules.closure(np.array([i]))] = True  # the first of a group stands for all
            if len(entering) == into:
                break
        if self.strict:
            yield from self._allowed(Move((), (i,)) for i in entering)
        pairs = sorted((a + b, a, i) for a in range(min(out, len(blocks))) for b, i in enumerate(entering))
        for _, begin, i in pairs:
            leaving: set[int] = set()
            required = set(self.rules.closure(np.array([i])).tolist())
            for block in blocks[begin:]:
                if required.isdisjoint(block):
                    leaving.update(block)
                    move = Move(tuple(sorted(leaving)), (i,))
                    if self.rules.is_extendable(_after(support, move), self.k):
                        yield move
                        break


def _after(support: Vector, move: Move) -> Vector:
    """Return a support after a move."""
    return np.append(support[~np.isin(support, move.leaving)], move.entering).astype(np.intp)


def descend_from(search: LocalSearch, start: Candidate, judge: SupportProblem | None = None) -> Candidate:
    """Return a candidate improved by moves, or itself if its variables are dependent; leave the search where it ended.

    `judge` evaluates the result if the search runs on a model of its loss.
    """
    try:
        search.neighbourhood.move_to(start)
        search.descend()
    except DependentError:
        return start
    return evaluate_if_better(search, start, judge)


def evaluate_if_better(search: LocalSearch, best: Candidate, judge: SupportProblem | None = None) -> Candidate:
    """Evaluate the current support exactly; return it if it is better than `best`, else `best`."""
    problem = judge or search.problem
    found = problem.evaluate(search.neighbourhood.support.copy(), best)
    return best if found is None or found.value >= best.value or not problem.allows(found.support) else found
