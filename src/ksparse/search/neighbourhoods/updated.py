"""Convex quadratics over a polyhedron: gains on a factorisation that is kept up to date.

Under equations the gains are the gains themselves. Under signs, bounds, floors and inequality rows they are those of the constraints that
are active now, each entering variable within its own bounds; after a move the active constraints follow (`working_set`). A move that costs
more by that than it gained is taken back by who made it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ksparse.numerics.qp import PULL
from ksparse.search.candidate import Candidate
from ksparse.search.gains import add_gains, bounded_gains, drop_losses, swap_gains, swap_terms
from ksparse.search.neighbourhoods.base import DependentError, Move, Swap, Trust, Undo
from ksparse.search.neighbourhoods.basis import Basis, Snapshot
from ksparse.search.neighbourhoods.pairs import pair_moves
from ksparse.search.neighbourhoods.working_set import BlockedError, WorkingSet
from ksparse.search.problem import SupportProblem
from ksparse.util.arrays import Vector, largest_places


class Updated:
    """A support on the move, every change one product with k rows of H."""

    monotone, compared = True, 1

    def __init__(self, problem: SupportProblem, room: int) -> None:
        self.problem, pieces = problem, problem.pieces
        assert pieces.model is not None
        assert pieces.linear is not None
        self.basis, self.constant = Basis(pieces.model, pieces.linear, room), pieces.model.constant
        self.entering, self.walked, self.rules = pieces.settings.entering, pieces.settings.walked, pieces.rules
        self.shut, self.promise = np.flatnonzero(~pieces.allowed), np.inf
        self.low, self.high = pieces.linear.above(pieces.floor)
        self.floored = pieces.floored
        self.forced = np.zeros(pieces.n, dtype=bool)
        self.forced[pieces.forced] = True
        self.spare = not (pieces.linear.f.size or pieces.linear.h.size or self.forced.any())  # any variable may leave
        self.working = WorkingSet(self.basis, pieces.linear, self.low, self.high, self.forced)
        self.bounded = self.working.bounded
        ways = ((np.greater, self.high <= 0), (np.less, self.low >= 0))  # who may not go up, and who may not go down
        self.closed = [(beyond, closed) for beyond, closed in ways if closed.any()]
        self.endless, self.pull = pieces.loss.least == -np.inf, float(np.abs(pieces.model.r).max(initial=0.0))
        self.trust = Trust.GUESS if self.bounded or pieces.linear.h.size else Trust.EXACT  # signs alone are seen to by who enters
        self.walks = problem.walks

    @property
    def changes(self) -> int:
        return self.working.changes

    @property
    def support(self) -> Vector:
        return self.basis.support

    @property
    def size(self) -> int:
        return self.basis.size - self.basis.active + self.basis.held.size

    @property
    def value(self) -> float:
        return self.basis.value + self.constant

    @property
    def key(self) -> int:
        return self.basis.key

    @property
    def room(self) -> int:
        return self.basis.room

    def stand_at(self, candidate: Candidate) -> None:
        support = np.asarray(candidate.support, dtype=np.intp)
        places = (candidate.x != 0) & ((candidate.x == self.low[support]) | (candidate.x == self.high[support]))
        held, rows = support[places], np.flatnonzero(candidate.row_price > 0)
        warm = (held.size or rows.size) and self.basis.stand_on(support, held, candidate.x[places], rows)
        if not warm and not self.basis.stand_on(support):
            raise DependentError
        try:
            self.working.obey()
        except BlockedError as error:
            raise DependentError from error

    def jump(self, support: Vector) -> bool:
        self.working.changes += support.size
        if support.size > self.room:
            return False
        try:
            if self.basis.stand_on(support):
                self.working.obey()
                return True
            found = self.problem.evaluate(support)  # too nearly dependent, unless constraints hold some of it
            if found is not None:
                self.stand_at(found)
        except (BlockedError, DependentError):
            return False
        return found is not None

    def adds(self, least: float, most: int, shut: Vector | None = None) -> Iterator[Move]:
        self.basis.wanted = most
        gains = self._add_gains()
        if shut is not None:
            gains[shut] = 0.0
        while True:
            i = int(gains.argmax())
            if gains[i] <= least:
                return
            yield Move((), (i,))
            gains[i] = 0.0

    def _add_gains(self, within: bool = True) -> Vector:
        """By how much each variable would lower φ; 0 for those of the support and those that may not enter, or not with their sign.

        `within` its bounds, or without them: no swap gains more than its entering variable would alone without bounds.
        """
        basis = self.basis
        if self.bounded and within:
            gains = bounded_gains(basis.s, basis.h, basis.dependence_tol, self.low, self.high)
        else:
            gains = add_gains(
                basis.s, basis.h, basis.dependence_tol
            )  # where i adds nothing new s_i is rounding, or the proof finds the ray
            for beyond, closed in self.closed:
                np.putmask(gains, closed & beyond(basis.s, 0.0), 0.0)
        gains[basis.support] = 0.0  # their h and s are 0 but for rounding
        if self.shut.size:
            gains[self.shut] = 0.0
        return gains

    def _losses(self) -> tuple[Vector, Vector]:
        """The variables of the support and what each costs to leave; ∞ where an equation needs it, or the user."""
        basis, free = self.basis, self.basis.free
        variables = basis.element[free]
        losses = drop_losses(basis.x[free], basis.kappa[free], self._needed(free))
        if basis.held.size:
            variables, at = np.concatenate([variables, basis.held]), basis.level
            held = at * (basis.s[basis.held] + 0.5 * at * basis.h[basis.held])
            losses = np.concatenate([losses, np.where(self.forced[basis.held], np.inf, held)])
        return variables, losses

    def _needed(self, free: Vector | slice) -> Vector | None:
        """Which free variables the equations need, or the user; None where there are none to need any."""
        if self.spare:
            return None
        return np.asarray(self.working.decided(free) | self.forced[self.basis.element[free]])

    def drops(self) -> Iterator[Move]:
        variables, losses = self._losses()
        while losses.size:
            j = int(losses.argmin())
            if not losses[j] < np.inf:
                return
            yield Move((int(variables[j]),), ())
            losses[j] = np.inf

    def moves(self, least: float, full: bool) -> Iterator[Move]:
        """The best swap, and the next best where that was taken back: its entering variable is out; above a floor drops before them."""
        if self.floored:
            variables, losses = self._losses()
            for j in np.argsort(losses, kind="stable"):
                if not losses[j] < -least or self.support.size < 2:
                    break
                yield Move((int(variables[j]),), ())
        banned: list[int] = []
        exchanges = self.rules.exchanges(self.support.copy(), self.problem.asked)
        while True:
            alone = self._add_gains(within=False)
            exchanges.bar(alone)
            if banned:
                alone[banned] = 0.0
            count = min(self.entering, int(np.count_nonzero(alone > least)))
            if not count or not self.support.size:
                return
            entering = largest_places(alone, count)
            variables, gains = self._swap_gains(entering)
            if not gains.size:  # all of the support is forced in, and held at 0
                return
            exchanges.forbid(gains, variables, entering, -np.inf)
            tried = len(banned)
            while True:  # what was taken back has left the others' gains as they were
                j, i = divmod(int(gains.argmax()), count)
                if not gains[j, i] > least:
                    break
                yield Move((int(variables[j]),), (int(entering[i]),))
                banned.append(int(entering[i]))
                gains[:, i] = -np.inf
            if len(banned) == tried:
                return

    def pairs(self, least: float) -> Iterator[Move]:
        if not self.floored:
            return
        outside = np.isfinite(self.low) & (self.low > 0)
        outside[self.shut] = outside[self.support] = False
        leaving = ~self.forced[self.basis.held]
        yield from pair_moves(self.basis, self.working, np.flatnonzero(outside), leaving, self.entering, least)

    def get_ready(self, changes: int) -> None:
        """All columns of H: a walk asks for many, with others that are likely; each costs a third of that in a matrix times itself."""
        model = self.basis.model
        if model.n <= 3 * changes and model.n**2 * 8 <= model.memory:
            model.fetch(np.arange(model.n))

    def swap(self, shut: Vector, kept: Vector, aspired: float = np.inf) -> Swap | None:
        alone, out = self._add_gains(within=False), np.flatnonzero(shut)
        alone[out[alone[out] <= aspired]] = 0.0  # no swap gains more than its entering variable would alone
        entering = self._promising(alone)
        variables, gains = self._swap_gains(entering)
        if not gains.size:
            return None
        best = int(gains.argmax())
        if not gains.item(best) > aspired:  # then none of those that are barred is
            gains[kept[variables]] = -np.inf
            gains[:, shut[entering]] = -np.inf
            best = int(gains.argmax())
        gain, (j, i) = gains.item(best), divmod(best, entering.size)
        return Swap(Move((variables.item(j),), (entering.item(i),)), gain) if gain > -np.inf else None

    def _promising(self, alone: Vector) -> Vector:
        """About as many variables as a step looks at, those that promise most: as much as it took last time, if that fits."""
        entering = np.flatnonzero(alone >= self.promise)
        if not self.walked <= 2 * entering.size <= 4 * self.walked:
            count = min(self.walked, int(np.count_nonzero(alone)))
            entering = largest_places(alone, count) if count else entering[:0]
            self.promise = float(alone[entering].min(initial=np.inf))
        return entering

    def _swap_gains(self, entering: Vector) -> tuple[Vector, Vector]:
        """The variables of the support (rows), and what it gains to swap them for others (columns), those within their own bounds.

        None of the others may lie in the span of the support.
        """
        basis, free = self.basis, self.basis.free
        p = basis.e + basis.size
        W = basis.inverse[basis.free_rows, :p] @ basis.B[:p, entering]
        s, h = basis.s[entering], basis.h[entering]
        variables, needed = basis.element[free], self._needed(free)
        if not self.bounded:
            gains, pull = swap_gains(basis.x[free], basis.kappa[free], W, s, h, needed)
            for beyond, closed in self.closed:
                np.putmask(gains, closed[entering] & beyond(pull, 0.0), -np.inf)
            return variables, gains
        low, high, least = self.low[entering], self.high[entering], basis.dependence_tol[entering]
        pull, curvature, losses = swap_terms(basis.x[free], basis.kappa[free], W, s, h, needed)
        gains = bounded_gains(pull, curvature, least, low, high) - losses[:, None]
        if basis.held.size:
            held, at = basis.held, basis.level
            pull = s + at[:, None] * basis.coupling(held, entering)
            costs = np.where(self.forced[held], np.inf, at * (basis.s[held] + 0.5 * at * basis.h[held]))
            gains = np.vstack([gains, bounded_gains(pull, np.broadcast_to(h, pull.shape), least, low, high) - costs[:, None]])
            variables = np.concatenate([variables, held])
        return variables, gains

    def apply(self, move: Move) -> Undo | None:
        exactly = self.trust is Trust.EXACT and not self.rules.any  # under rules others may enter after a move, before it is taken back
        return self._apply_exactly(move) if exactly else self._apply_within_bounds(move)

    def _apply_exactly(self, move: Move) -> Undo:
        """Under signs at most: a swap is taken back by a swap, and what an add or a drop brings is known before."""
        after = None
        try:
            self._make(move)
            if move.leaving and move.entering and self.working.broken:
                after = self.basis.snapshot()  # signs make others leave: back to before that
            self.working.obey()
        except BlockedError as error:
            raise DependentError from error
        return lambda: self._swap_back(move, after)

    def _apply_within_bounds(self, move: Move) -> Undo | None:
        if not self.working.fits(move.leaving, move.entering):
            self.working.changes += 2  # what the look costs
            return None
        before = self.basis.snapshot()
        try:
            self._make(move)
            self.working.obey()
        except BlockedError:
            self.basis.restore(before)
            return None
        return lambda: self.basis.restore(before)

    def _swap_back(self, move: Move, after: Snapshot | None) -> None:
        (leaving,), (entering,) = move.leaving, move.entering
        if after is not None:
            self.basis.restore(after)
        self.basis.swap(self.working.place(entering), leaving)
        self.working.after_update(2)

    def _make(self, move: Move) -> None:
        if len(move.leaving) == len(move.entering) == 1 and self.working.is_free(move.leaving[0]):
            place = self.working.place(move.leaving[0])
            if not self.working.is_decided(place):
                self.basis.swap(place, move.entering[0])
                self.working.after_update(2)
                return
        for i in move.entering:  # first: they may free those that leave
            self.working.enter(i)
        for i in move.leaving:
            self.working.let_go(i)

    def kick(self, leaving: Vector, rng: np.random.Generator) -> bool:
        """What an equation needs leaves too, where a random other can take its part: else a support of two would never lose both."""
        try:
            for i in (int(i) for i in leaving):
                if i in self.support:
                    self._kick(i, leaving, rng)
            self.working.obey()
        except BlockedError:
            return False
        return True

    def _kick(self, i: int, leaving: Vector, rng: np.random.Generator) -> None:
        """One variable leaves, with a random other in its part where an equation needs it; a forced one stays."""
        basis = self.basis
        if self.working.is_free(i) and self.working.is_decided(self.working.place(i)):
            free = basis.h > basis.dependence_tol
            free[np.concatenate([self.shut, self.support, leaving])] = False
            free &= self.rules.enterable(np.setdiff1d(self.support, [i]), self.problem.asked)
            others = np.flatnonzero(free)
            if others.size and basis.size < self.room:
                self.working.enter(int(rng.choice(others)))
            if self.working.is_decided(self.working.place(i)):
                return
        if not self.forced[i]:
            self.working.let_go(i)

    def mark(self) -> Snapshot:
        return self.basis.snapshot()

    def back_to(self, mark: Snapshot) -> None:
        self.basis.restore(mark)

    def worth(self) -> tuple[float, float]:
        return float(self._losses()[1].min(initial=np.inf)), np.inf if self._unheld() else float(self._add_gains().max(initial=0.0))

    def _unheld(self) -> bool:
        """Whether a variable that is pulled adds no curvature, where φ may fall for ever: some support has no end then."""
        basis = self.basis
        pulled = (basis.h <= basis.dependence_tol) & (np.abs(basis.s) > PULL * self.pull)
        pulled &= ((basis.s > 0) & np.isposinf(self.high)) | ((basis.s < 0) & np.isneginf(self.low))
        pulled[np.concatenate([self.shut, basis.support])] = False
        return self.endless and bool(pulled.any())
