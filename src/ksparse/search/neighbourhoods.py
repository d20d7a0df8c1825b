"""Supports one add, drop or swap away from the present one, with the moves ranked by their gains.

The classes here solve the problem on the support after each move. They differ in how they rank the moves:

- `SecondOrderNeighbourhood`, for convex losses with a second-order model: gains from one KKT inverse at the present
  optimum. Under equations alone they are exact. With inequalities the model carries the multipliers, and by weak
  duality its gains are upper bounds. For a loss that is not quadratic the model holds only near the point, so that
  its ranks exclude no move.
- `RowNeighbourhood`, for rows of a matrix: gains summed over its columns. They are exact if the columns share one H,
  and otherwise those of a second-order model.
- `GradientNeighbourhood`, for losses without a model: entering variables by the size of their reduced gradient,
  leaving ones by the size of their entry.

`active_set` and `principal_components` have two more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from ksparse.losses.row_sparse import Gains, RowProblem
from ksparse.numerics.kkt_inverse import PART, KKTInverse, parts
from ksparse.numerics.qp import shortest
from ksparse.search.candidate import NONE, Candidate
from ksparse.search.problem import SupportProblem
from ksparse.util.arrays import Vector

CHUNK = 256  # moves sorted at a time
HEURISTIC_TRIALS = 12  # moves evaluated per step if their ranks are heuristic
PAIRED = (4, 6)  # leaving and entering variables that are paired if only gradients rank them
T = TypeVar("T")


class RankQuality(Enum):
    """How the rank of a move relates to its gain."""

    EXACT = "the gain"
    UPPER_BOUND = "an upper bound of the gain"
    HEURISTIC = "correlated with the gain, without a guarantee"


class Move(NamedTuple):
    """Variables that leave a support and variables that enter it."""

    leaving: tuple[int, ...]
    entering: tuple[int, ...]
    min_gain: float = 0.0  # several swaps at once are taken only if they gain as much as the best one alone


class ScoredMove(NamedTuple):
    """A move and its gain."""

    move: Move
    gain: float


Undo = Callable[[], None]


class DependentError(Exception):
    """The variables of a support are dependent, or nearly so: the KKT inverse cannot be trusted."""


class Walks(Protocol):
    """The part of a neighbourhood for walks, which make the best swap even if it does not gain."""

    def prefetch(self, changes: int) -> None:
        """Read at once what a walk of so many changes will need, if that is cheaper."""

    def best_swap(self, tabu: Vector, locked: Vector, aspiration: float = np.inf) -> ScoredMove | None:
        """Return the best swap among the variables with the largest gains alone; None if there is none.

        Variables of the mask `tabu` stay out and those of `locked` in, unless a swap gains more than `aspiration`.
        """


class Neighbourhood(ABC):
    """A support with its best point, the moves away from it, and changes of it that can be undone."""

    trust: RankQuality
    monotone: bool = False  # whether a variable that enters by its rank never makes φ worse, and stays
    max_size: int  # of a support between k-sparse ones
    support: Vector  # in any order
    size: int  # the number of variables in it
    value: float  # the best value of φ on it
    key: int  # a hash of it that does not depend on its order
    changes: int  # variables that entered or left so far: the work done

    @abstractmethod
    def move_to(self, candidate: Candidate) -> None:
        """Move to a candidate; `DependentError` if its variables are too nearly dependent."""

    @abstractmethod
    def move_to_support(self, support: Vector) -> bool:
        """Move to a support with unknown best point; False if C has no point there, or its variables are dependent."""

    @abstractmethod
    def ranked_adds(self, min_gain: float, expected: int, tabu: Vector | None = None) -> Iterator[Move]:
        """Yield adds by falling rank above `min_gain`, except of `tabu` variables; about `expected` will enter."""

    @abstractmethod
    def ranked_drops(self) -> Iterator[Move]:
        """Yield drops by rising loss."""

    @abstractmethod
    def ranked_moves(self, min_gain: float, full: bool) -> Iterator[Move]:
        """Yield swaps and other possible moves by falling rank above `min_gain`; no adds if the support is `full`."""

    def ranked_pair_swaps(self, min_gain: float) -> Iterator[Move]:
        """Yield swaps of two for two, for sets where single swaps lead nowhere, by falling rank above `min_gain`."""
        yield from ()

    @abstractmethod
    def apply(self, move: Move) -> Undo | None:
        """Make a move, and return its undo, whatever enters since; None, and no change, if C has no point there."""

    @abstractmethod
    def remove_many(self, leaving: Vector, rng: np.random.Generator) -> bool:
        """Remove several variables at once, as far as they can be; False if C has no point then."""

    def walks(self) -> Walks | None:
        """Return the part for walks, if the gains of swaps are exact."""
        return None

    @abstractmethod
    def snapshot(self) -> Any:
        """Return the state, for `restore`."""

    @abstractmethod
    def restore(self, saved: Any) -> None:
        """Return to a snapshot."""

    @abstractmethod
    def min_loss_and_max_gain(self) -> tuple[float, float]:
        """Return the least loss of a drop and the largest gain of an add."""


class EvaluatingNeighbourhood(Neighbourhood):
    """A candidate whose moves are evaluations of the supports that they lead to."""

    trust = RankQuality.HEURISTIC

    def __init__(self, problem: SupportProblem) -> None:
        self.problem, self.changes, self.max_size = problem, 0, int(problem.allowed.sum())
        self.restore(Candidate.without_multipliers(NONE, np.zeros(0), np.inf))
        self._known: tuple[Candidate, Any] = self.at, None

    def restore(self, saved: Candidate) -> None:
        self.at, self.support, self.size, self.value = saved, saved.support, int(saved.support.size), saved.value
        self.key = hash(saved.support.tobytes())

    def snapshot(self) -> Candidate:
        return self.at

    def move_to(self, candidate: Candidate) -> None:
        self.restore(candidate)

    def move_to_support(self, support: Vector) -> bool:
        found = self.problem.evaluate(support)
        self.changes += support.size
        if found is not None:
            self.restore(found)
        return found is not None

    def apply(self, move: Move) -> Undo | None:
        kept = np.setdiff1d(self.support, move.leaving) if move.leaving else self.support
        found = self.problem.evaluate(np.append(kept, move.entering).astype(np.intp), self.at)
        self.changes += len(move.leaving) + len(move.entering)
        if found is None:
            return None
        before = self.at
        self.restore(found)
        return lambda: self.restore(before)

    def remove_many(self, leaving: Vector, rng: np.random.Generator) -> bool:
        """Remove several variables at once; if C has no point without them, others enter at random."""
        gone = tuple(int(i) for i in leaving)
        if self.apply(Move(gone, ())) is not None:
            return True
        others = self.problem.inactive(self.support)
        entering = rng.choice(others, min(leaving.size, others.size), replace=False)
        kept = self.problem.trim_to_rules(np.append(np.setdiff1d(self.support, leaving), entering))
        entering = np.setdiff1d(kept, self.support)
        return self.apply(Move(gone, tuple(int(i) for i in entering))) is not None

    @property
    def movable(self) -> Vector:
        """Mask of the variables of the support that may leave."""
        return ~np.isin(self.support, self.problem.forced)

    def at_point(self, make: Callable[[], T]) -> T:
        """Return what `make` returns, computed once for each candidate."""
        if self._known[0] is not self.at or self._known[1] is None:
            self._known = self.at, make()
        found: T = self._known[1]
        return found

    @abstractmethod
    def add_ranks(self) -> Vector:
        """Return the rank of each variable to enter, 0 if it may not."""

    @abstractmethod
    def drop_ranks(self) -> Vector:
        """Return the rank of each variable of the support to leave, as a loss, ∞ if it may not."""

    def ranked_adds(self, min_gain: float, expected: int, tabu: Vector | None = None) -> Iterator[Move]:
        ranks = self.add_ranks()
        if tabu is not None:
            ranks[tabu] = 0.0
        yield from (Move((), (i,)) for i in indices_by_rank(ranks, min_gain))

    def ranked_drops(self) -> Iterator[Move]:
        yield from (Move((int(self.support[j]),), ()) for j in indices_by_rank(-self.drop_ranks(), -np.inf))

    def min_loss_and_max_gain(self) -> tuple[float, float]:
        return float(self.drop_ranks().min(initial=np.inf)), float(self.add_ranks().max(initial=0.0))


def indices_by_rank(ranks: Vector, min_gain: float) -> Iterator[int]:
    """Yield the indices of the ranks above `min_gain`, largest first, sorted a chunk at a time."""
    left = np.flatnonzero(ranks > min_gain)
    while left.size:
        chunk, left = left, left[:0]
        if chunk.size > CHUNK:
            split = np.argpartition(-ranks[chunk], CHUNK)
            chunk, left = chunk[split[:CHUNK]], chunk[split[CHUNK:]]
        yield from (int(place) for place in chunk[np.argsort(-ranks[chunk], kind="stable")])


class SecondOrderNeighbourhood(EvaluatingNeighbourhood):
    """Moves ranked by their gains on the second-order model."""

    def __init__(self, problem: SupportProblem) -> None:
        super().__init__(problem)
        self.trust = RankQuality.UPPER_BOUND if problem.can.gains_are_bounds else RankQuality.HEURISTIC

    def _inverse(self) -> tuple[KKTInverse, Vector] | None:
        """Return the KKT inverse with the multipliers in r, and the terms of the bounds; None if there is no model."""

        def make() -> tuple[KKTInverse, Vector] | None:
            problem, at, linear = self.problem, self.at, self.problem.linear
            model = problem.can.model_at(at.full(problem.n))
            if model is None:
                return None
            r, _ = at.slopes_with_multipliers(model, problem.linear)
            E, f = (np.zeros((0, problem.n)), np.zeros(0)) if linear is None else (linear.E, linear.f)
            own = at.bound_multipliers * at.x  # a multiplier is paid only at the bound, where x is the bound
            return KKTInverse.of(model.rows(at.support), at.support, E, f, r, model.diagonal, at.shift), own

        return self.at_point(make)

    def add_ranks(self) -> Vector:
        problem, linear, found = self.problem, self.problem.linear, self._inverse()
        if found is None:
            return np.zeros(problem.n)
        gains = np.where(problem.allowed, found[0].adds(), 0.0)
        gains[self.support] = 0.0
        if linear is not None:  # a variable that would get the sign its bounds forbid stays at 0 and gains nothing
            s = found[0].s
            gains[((linear.lower >= 0) & (s <= 0)) | ((linear.upper <= 0) & (s >= 0))] = 0.0
        return gains

    def drop_ranks(self) -> Vector:
        found = self._inverse()
        losses = np.abs(self.at.x) if found is None else found[0].drops() - found[1]
        return np.where(self.movable, losses, np.inf)

    def ranked_moves(self, min_gain: float, full: bool) -> Iterator[Move]:
        found, problem, support = self._inverse(), self.problem, self.support
        entering = problem.inactive(self.support)
        if found is None or not (support.size and entering.size):
            return
        # the model does not hold the constraints that hold x, or is φ near x only: its ranks exclude no move
        if not problem.can.has_multipliers or self.trust is RankQuality.HEURISTIC:
            min_gain = -np.inf
        leaving, coming, swaps = self._swaps(*found, entering, min_gain)
        yield from _several(swaps, support[leaving], coming, min_gain, most=max(1, support.size // 8))
        drops = -self.drop_ranks() if problem.floors.any and support.size > 1 else np.full(support.size, -np.inf)
        adds = np.full(entering.size, -np.inf) if full else self.add_ranks()[entering]
        for place in indices_by_rank(np.concatenate([adds, drops, swaps]), min_gain):
            if place < adds.size:
                yield Move((), (int(entering[place]),))
            elif place < adds.size + drops.size:
                yield Move((int(support[place - adds.size]),), ())
            else:
                at = place - adds.size - drops.size
                yield Move((int(support[leaving[at]]),), (int(coming[at]),))

    def _swaps(
        self, found: KKTInverse, own: Vector, entering: Vector, min_gain: float
    ) -> tuple[Vector, Vector, Vector]:
        """Return the places that leave, the variables that enter, and the gains, of swaps above `min_gain`.

        The table is made for some entering variables at a time. If too many swaps are left, the best of them are kept.
        """
        leaving, coming, gains = NONE, NONE, np.zeros(0)
        for part in parts(entering.size, found.k):
            table = self._swap_ranks(found, own, entering[part])
            rows, columns = np.nonzero(table > min_gain)
            leaving, coming = np.append(leaving, rows), np.append(coming, entering[part][columns])
            gains = np.append(gains, table[rows, columns])
            if gains.size > 2 * PART:
                best = np.argpartition(-gains, PART)[:PART]
                leaving, coming, gains = leaving[best], coming[best], gains[best]
        order = np.lexsort((coming, leaving))  # equal gains in the order of the whole table
        return leaving[order], coming[order], gains[order]

    def _swap_ranks(self, found: KKTInverse, own: Vector, entering: Vector) -> Vector:
        """Return the table of swap gains; −∞ for forced variables, and if the entering one would get a wrong sign."""
        table, pull = found.swaps(entering)
        table += own[:, None]
        table[~self.movable] = -np.inf
        linear = self.problem.linear
        if linear is not None:
            up, down = linear.lower[entering] >= 0, linear.upper[entering] <= 0
            table[(up & (pull <= 0)) | (down & ~up & (pull >= 0))] = -np.inf
        return table


def _several(gains: Vector, leaving: Vector, entering: Vector, min_gain: float, most: int) -> Iterator[Move]:
    """Yield the best swap and others of at least half its gain that share no variable, as one move."""
    best = float(gains.max(initial=-np.inf))
    if not best > min_gain or most < 2:
        return
    near = np.flatnonzero(gains >= max(0.5 * best, min_gain))
    gone: list[int] = []
    coming: list[int] = []
    for at in near[np.argsort(-gains[near], kind="stable")]:
        j, i = int(leaving[at]), int(entering[at])
        if j not in gone and i not in coming:
            gone.append(j)
            coming.append(i)
            if len(gone) == most:
                break
    if len(gone) > 1:
        yield Move(tuple(gone), tuple(coming), min_gain=0.999 * best if np.isfinite(best) else 0.0)


class RowNeighbourhood(EvaluatingNeighbourhood):
    """Moves of whole rows of a matrix, ranked by their gains."""

    def __init__(self, problem: SupportProblem, rows: RowProblem) -> None:
        super().__init__(problem)
        self.rows, self.trust = rows, RankQuality.EXACT if rows.exact else RankQuality.HEURISTIC

    def _gains(self) -> Gains:
        return self.at_point(lambda: self.rows.gains(self.support, self.at.x))

    def add_ranks(self) -> Vector:
        gains = np.where(self.problem.allowed, self._gains().adds(), 0.0)
        gains[self.support] = 0.0
        return gains

    def drop_ranks(self) -> Vector:
        return np.where(self.movable, self._gains().drops(), np.inf)

    def ranked_moves(self, min_gain: float, full: bool) -> Iterator[Move]:
        support, entering = self.support, self.problem.inactive(self.support)
        if not (support.size and entering.size):
            return
        adds = self.add_ranks()[entering]
        # the ranks exclude no move, but only the variables of large gain are tried
        if self.trust is RankQuality.HEURISTIC:
            min_gain, best = -np.inf, np.argsort(-adds, kind="stable")[: self.problem.settings.entering]
            entering, adds = entering[best], adds[best]
        table = np.hstack([self._gains().swaps(entering[part]) for part in parts(entering.size, support.size)])
        table[~self.movable] = -np.inf
        ranks = np.concatenate([np.full(adds.size, -np.inf) if full else adds, table.ravel()])
        for place in indices_by_rank(ranks, min_gain):
            if place < adds.size:
                yield Move((), (int(entering[place]),))
            else:
                j, i = divmod(place - adds.size, entering.size)
                yield Move((int(support[j]),), (int(entering[i]),))


class GradientNeighbourhood(EvaluatingNeighbourhood):
    """Moves ranked by slopes and sizes; the most promising pairs are tried."""

    def add_ranks(self) -> Vector:
        slopes = np.where(self.problem.allowed, np.abs(self.reduced_gradient()), 0.0)
        slopes[self.support] = 0.0
        return slopes

    def drop_ranks(self) -> Vector:
        return np.where(self.movable, np.abs(self.at.x), np.inf)

    def ranked_moves(self, min_gain: float, full: bool) -> Iterator[Move]:
        ranks, (out, into) = self.add_ranks(), PAIRED
        inactive, rules = self.problem.inactive(self.support), self.problem.rules
        if rules.any:  # where few exchanges are allowed any member may be the one to leave
            inactive, out = rules.exchanges(self.support, self.problem.asked).enterable(inactive), self.size
        entering = inactive[np.argsort(-ranks[inactive], kind="stable")][:into]
        leaving = [move.leaving for move, _ in zip(self.ranked_drops(), range(out), strict=False)]
        pairs = sorted((a + b, a, b) for a in range(len(leaving)) for b in range(entering.size))
        yield from (Move(leaving[a], (int(entering[b]),)) for _, a, b in pairs)

    def reduced_gradient(self) -> Vector:
        """Return ∇φ less the part that the equations of C account for, with their multipliers on the support."""
        problem, at = self.problem, self.at
        gradient = np.asarray(problem.loss.gradient(at.full(problem.n)))
        if problem.linear is None or not problem.linear.f.size or not at.support.size:
            return gradient
        E = problem.linear.E
        multipliers = shortest(E[:, at.support].T, gradient[at.support])
        return np.asarray(gradient - E.T @ multipliers)
