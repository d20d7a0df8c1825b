"""Convex quadratics over a polyhedron: gains on a factorisation that is kept up to date.

Under equations the gains are the gains themselves. Under signs, bounds, floors and inequality rows they are those of the constraints that
are active now, each entering variable within its own bounds; after a move the active constraints follow (`_obey`): a variable beyond a
bound is held there, and at 0 leaves the support, a row that is broken holds as an equation, and what is held by a multiplier of the wrong
sign is let go. A move that costs more by that than it gained is taken back by who made it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ksparse.base.arrays import Vector
from ksparse.linalg.active_set import PULL
from ksparse.linalg.scaling import unit_scales
from ksparse.search.candidate import Candidate
from ksparse.search.gains import add_gains, bounded_gains, drop_losses, swap_gains, swap_terms
from ksparse.search.neighbourhoods.base import DependentError, Move, Trust, Undo
from ksparse.search.neighbourhoods.basis import NONE, REFRESH, Basis, Snapshot
from ksparse.search.problem import SupportProblem

KEPT = 1e-8  # of an equation's terms: broken by more, a factorisation is made anew
BROKEN = 1e-11  # of the size of x: beyond a bound by less is rounding
NEEDED = 1e-9  # κ·H_jj up to this: the equations alone decide x_j


class BlockedError(Exception):
    """No point of C has this support, as far as is seen."""


class Updated:
    """A support on the move, every change one product with k rows of H."""

    monotone, compared = True, 1

    def __init__(self, problem: SupportProblem, room: int) -> None:
        pieces = problem.pieces
        assert pieces.model is not None
        assert pieces.linear is not None
        self.basis, self.constant = Basis(pieces.model, pieces.linear, room), pieces.model.constant
        self.entering = pieces.settings.entering
        self.shut = np.flatnonzero(~pieces.allowed)
        self.low, self.high = pieces.linear.above(pieces.floor)
        self.signed = bool((np.isfinite(self.low) | np.isfinite(self.high)).any())
        self.bounded = bool(((self.low != 0) & np.isfinite(self.low) | (self.high != 0) & np.isfinite(self.high)).any())
        self.floored = pieces.floored
        self.held = self.signed or bool(pieces.linear.h.size)
        self.forced = np.zeros(pieces.n, dtype=bool)
        self.forced[pieces.forced] = True
        self.bend = unit_scales(pieces.model.diagonal) ** 2  # one without curvature is needed no more than the others for that
        self.endless, self.pull = pieces.loss.least == -np.inf, float(np.abs(pieces.model.r).max(initial=0.0))
        self.changes = 0
        self.trust = Trust.GUESS if self.bounded or pieces.linear.h.size else Trust.EXACT  # signs alone are seen to by who enters
        self.right, self.f = pieces.linear.h, pieces.linear.f
        self.least, self.from_, self.to = pieces.linear.reach(self.low, self.high)  # of the rows

    @property
    def support(self) -> Vector:
        return self.basis.support

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
        bound = np.union1d(candidate.at_lower, candidate.at_upper)
        places = np.isin(support, bound) & (candidate.x != 0) & np.isin(candidate.x, (self.low[support], self.high[support]))
        held, rows = support[places], np.flatnonzero(candidate.row_price > 0)
        warm = (held.size or rows.size) and self.basis.stand_on(support, held, candidate.x[places], rows)
        if not warm and not self.basis.stand_on(support):
            raise DependentError
        try:
            self._obey()
        except BlockedError as error:
            raise DependentError from error

    def jump(self, support: Vector) -> bool:
        self.changes += support.size
        if support.size > self.room or not self.basis.stand_on(support):
            return False
        try:
            self._obey()
        except BlockedError:
            return False
        return True

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
            gains = bounded_gains(basis.s, basis.h, basis.dependent, self.low, self.high)
        else:
            gains = add_gains(basis.s, basis.h, basis.dependent)  # where i adds nothing new s_i is rounding, or the proof finds the ray
            if self.signed:
                gains[(self.low >= 0) & (basis.s < 0) | (self.high <= 0) & (basis.s > 0)] = 0.0
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

    def _needed(self, free: Vector) -> Vector:
        """Which free variables the equations need, or the user."""
        return np.asarray(self._decided(free) | self.forced[self.basis.element[free]])

    def _decided(self, free: Vector) -> Vector:
        """Which free variables the equations alone decide."""
        return np.asarray(self.basis.kappa[free] * self.bend[self.basis.element[free]] <= NEEDED)

    def drops(self) -> Iterator[Move]:
        variables, losses = self._losses()
        for j in np.argsort(losses, kind="stable"):
            if not np.isfinite(losses[j]):
                return
            yield Move((int(variables[j]),), ())

    def moves(self, least: float, full: bool) -> Iterator[Move]:
        """The best swap, and the next best where that was taken back: its entering variable is out; above a floor drops before them."""
        if self.floored:
            variables, losses = self._losses()
            for j in np.argsort(losses, kind="stable"):
                if not losses[j] < -least or self.support.size < 2:
                    break
                yield Move((int(variables[j]),), ())
        banned: list[int] = []
        while True:
            alone = self._add_gains(within=False)
            alone[banned] = 0.0
            count = min(self.entering, int(np.count_nonzero(alone > least)))
            if not count or not self.support.size:
                return
            entering = np.argpartition(-alone, count - 1)[:count]
            variables, gains = self._swap_gains(entering)
            j, i = divmod(int(gains.argmax()), count)
            if not gains[j, i] > least:
                return
            yield Move((int(variables[j]),), (int(entering[i]),))
            banned.append(int(entering[i]))

    def _swap_gains(self, entering: Vector) -> tuple[Vector, Vector]:
        """The variables of the support (rows), and what it gains to swap them for others (columns), those within their own bounds."""
        basis, free = self.basis, self.basis.free
        p, low, high = basis.e + basis.size, self.low[entering], self.high[entering]
        W = basis.inverse[basis.e + free, :p] @ basis.B[:p, entering]
        s, h, least = basis.s[entering], basis.h[entering], basis.dependent[entering]
        variables, needed = basis.element[free], self._needed(free)
        if not self.bounded:
            gains, pull = swap_gains(basis.x[free], basis.kappa[free], W, s, h, least, needed)
            if self.signed:
                gains[(low == 0) & (pull < 0) | (high == 0) & (pull > 0)] = -np.inf
            return variables, gains
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
        if not self._fits(move):
            return None
        before = self.basis.snapshot()
        try:
            self._make(move)
            self._obey()
        except BlockedError:
            self.basis.restore(before)
            return None
        return lambda: self.basis.restore(before)

    def _fits(self, move: Move) -> bool:
        """Whether each row alone can be met within the bounds once a move is made: a cheap look before the work."""
        if not self.bounded:
            return True
        kept = self.support[~np.isin(self.support, move.leaving)] if move.leaving else self.support
        support = np.append(kept, move.entering).astype(np.intp)
        slack = 1e-9 * (1.0 + np.abs(self.right)), 1e-9 * (1.0 + np.abs(self.f))
        return bool(
            (self.least[:, support].sum(axis=1) <= self.right + slack[0]).all()
            and (self.from_[:, support].sum(axis=1) <= self.f + slack[1]).all()
            and (self.to[:, support].sum(axis=1) >= self.f - slack[1]).all()
        )

    def _make(self, move: Move) -> None:
        if len(move.leaving) == len(move.entering) == 1 and self._is_free(move.leaving[0]):
            place = self._place(move.leaving[0])
            if not self._decided(np.array([place]))[0]:
                self.basis.swap(place, move.entering[0])
                self._count(2)
                return
        for i in move.entering:  # first: they may free those that leave
            self._enter(i)
        for i in move.leaving:
            self._let_go(i)

    def _enter(self, i: int) -> None:
        if self.basis.size == self.basis.room or self.basis.h[i] <= self.basis.dependent[i]:
            raise BlockedError
        self.basis.add(i)
        self._count(1)

    def kick(self, leaving: Vector, rng: np.random.Generator) -> bool:
        """What an equation needs leaves too, where a random other can take its part: else a support of two would never lose both."""
        try:
            for i in (int(i) for i in leaving):
                if i in self.support:
                    self._kick(i, leaving, rng)
            self._obey()
        except BlockedError:
            return False
        return True

    def _kick(self, i: int, leaving: Vector, rng: np.random.Generator) -> None:
        """One variable leaves, with a random other in its part where an equation needs it; a forced one stays."""
        basis = self.basis
        if self._is_free(i) and self._decided(np.array([self._place(i)]))[0]:
            free = basis.h > basis.dependent
            free[np.concatenate([self.shut, self.support, leaving])] = False
            others = np.flatnonzero(free)
            if others.size and basis.size < self.room:
                self._enter(int(rng.choice(others)))
            if self._decided(np.array([self._place(i)]))[0]:
                return
        if not self.forced[i]:
            self._let_go(i)

    def _is_free(self, i: int) -> bool:
        return not self.basis.held.size or not (self.basis.held == i).any()

    def _let_go(self, i: int) -> None:
        """A variable leaves the support."""
        if self._is_free(i):
            self._hold(i, None)
        else:
            self.basis.leave(i)
            self._count(1)

    def _hold(self, i: int, level: float | None) -> None:
        """Hold a free variable at a level, or let it leave the support (None).

        Where the equations alone decide it, something else is let go for it.
        """
        if self._decided(np.array([self._place(i)]))[0]:
            unit = np.zeros(self.basis.e + self.basis.size)
            unit[self.basis.e + self._place(i)] = 1.0
            self._free_another(unit, np.zeros(self.basis.held.size), float(np.sign((level or 0.0) - unit[self.basis.e :] @ self.basis.x)))
            if self._decided(np.array([self._place(i)]))[0]:
                raise BlockedError
        self.basis.drop(self._place(i), level)
        self._count(1)

    def _place(self, i: int) -> int:
        return int(np.flatnonzero(self.basis.element == i)[0])

    def _count(self, changes: int) -> None:
        self.changes += changes
        if self.basis.changes >= REFRESH and not self.basis.refresh():
            raise DependentError

    def _obey(self) -> None:
        """Let the active constraints follow: what is broken most holds, what is held against its will is let go, until all is right."""
        if not self.held:
            return
        for _ in range(4 * self.basis.size + 4 * self.basis.held.size + 8):
            if not (self._hold_worst() or self._release_worst()):
                self.basis.leave_at_zero(self.forced)
                if self._keeps_equations() or (self.basis.refresh() and self._keeps_equations()):
                    return
                break
        raise BlockedError

    def _keeps_equations(self) -> bool:
        """Whether updates through nearly dependent constraints have left the equations whole."""
        basis, free = self.basis, self.basis.free
        support, x = basis.support, np.concatenate([basis.x[free], basis.level])
        E = basis.B[: basis.e, support]
        return bool((np.abs(E @ x - basis.f) <= KEPT * (np.abs(E) @ np.abs(x) + np.abs(basis.f))).all())

    def _hold_worst(self) -> bool:
        """Hold the constraint that is broken worst: the more that costs, the more it strains the others."""
        basis, free = self.basis, self.basis.free
        variables, x = basis.element[free], basis.x[free]
        target = np.clip(x, self.low[variables], self.high[variables])
        off = np.abs(x - target)
        beyond = off > BROKEN * max(float(np.abs(x).max(initial=0.0)), float(np.abs(basis.level).max(initial=0.0)))
        row, row_cost, slack = self._worst_row()
        if not beyond.any() and row is None:
            return False
        stiff = self._decided(free)
        cost = np.where(beyond, np.where(stiff, np.inf, off**2 / np.where(stiff, 1.0, basis.kappa[free])), 0.0)
        at = int(cost.argmax()) if cost.size else 0
        if row is not None and not (cost.size and cost[at] >= row_cost):
            self._activate(row, slack)
            return True
        i, level = int(variables[at]), float(target[at])
        self._hold(i, level)
        return True

    def _activate(self, row: int, slack: float) -> None:
        """Let a row hold as an equation; where those that hold decide it, something else is let go for it."""
        if not self.basis.activate(row, slack):
            self._free_another(self.basis.column(row), self.basis.G[row, self.basis.held], -1.0)
            if not self.basis.activate(row, self._slack()[0][row]):
                raise BlockedError
        self._count(1)

    def _slack(self) -> tuple[Vector, Vector]:
        """What is left of every row of G, and the size of its terms."""
        basis, free = self.basis, self.basis.free
        support, x = basis.support, np.concatenate([basis.x[free], basis.level])
        return basis.right - basis.G[:, support] @ x, np.abs(basis.G[:, support]) @ np.abs(x) + np.abs(basis.right)

    def _worst_row(self) -> tuple[int | None, float, float]:
        """The inactive row of G that is broken worst, what it costs to hold it, and its slack."""
        basis = self.basis
        if not basis.right.size:
            return None, 0.0, 0.0
        slack, terms = self._slack()
        slack[~basis.element[basis.element < 0]] = 0.0
        rows = np.flatnonzero(slack < -BROKEN * terms)
        if not rows.size:
            return None, 0.0, 0.0
        curvature = basis.row_curvature(rows)
        cost = np.where(curvature > 1e-300, slack[rows] ** 2 / np.maximum(curvature, 1e-300), np.inf)
        worst = int(cost.argmax())
        return int(rows[worst]), float(cost[worst]), float(slack[rows[worst]])

    def _free_another(self, a: Vector, of_held: Vector, towards: float) -> None:
        """Let something go that is held and would move aᵀu + of_heldᵀlevel, which all that is held decides, at the least cost."""
        basis = self.basis
        p, rows = basis.e + basis.size, np.flatnonzero(basis.element < 0)
        way = np.where(basis.level == self.low[basis.held], 1.0, -1.0)  # where a held variable may go
        along = a @ basis.inverse[:p, :p]
        by_variables = towards * way * (of_held - along @ basis.B[:p, basis.held])
        by_variables[basis.h[basis.held] <= basis.dependent[basis.held]] = 0.0
        rate = np.concatenate([by_variables, -towards * along[basis.e + rows]])
        price = np.concatenate([-way * basis.s[basis.held], basis.x[rows]])
        moving = rate > 1e-9 * float(np.abs(rate).max(initial=0.0))
        if not moving.any():
            raise BlockedError
        best = int(np.where(moving, np.maximum(price, 0.0) / np.where(moving, rate, 1.0), np.inf).argmin())
        if best < basis.held.size:
            basis.add(int(basis.held[best]))
        else:
            basis.drop(int(rows[best - basis.held.size]))
        self._count(1)

    def _release_worst(self) -> bool:
        """Let the constraint go that gains most by it: a variable pulled away from its bound, a row whose multiplier is below 0."""
        basis = self.basis
        gain, found = 0.0, None
        if basis.held.size:
            s, h = basis.s[basis.held], basis.h[basis.held]
            pulled = (basis.level == self.low[basis.held]) & (s > 0) | (basis.level == self.high[basis.held]) & (s < 0)
            gains = np.where(pulled, add_gains(s, h, basis.dependent[basis.held]), 0.0)
            at = int(gains.argmax())
            gain, found = float(gains[at]), ("variable", int(basis.held[at]))
        rows = np.flatnonzero(basis.element < 0) if basis.right.size else NONE
        if rows.size:
            price, kappa = basis.x[rows], basis.kappa[rows]
            gains = np.where(price < 0, price**2 / np.maximum(-2.0 * kappa, 1e-300), 0.0)
            at = int(gains.argmax())
            if gains[at] > gain:
                gain, found = float(gains[at]), ("row", int(rows[at]))
        if found is None or gain <= 1e-12 * abs(basis.value):
            return False
        kind, which = found
        if kind == "row":
            basis.drop(which)
        else:
            basis.add(which)
        self._count(1)
        return True

    def mark(self) -> Snapshot:
        return self.basis.snapshot()

    def back_to(self, mark: Snapshot) -> None:
        self.basis.restore(mark)

    def worth(self) -> tuple[float, float]:
        return float(self._losses()[1].min(initial=np.inf)), np.inf if self._unheld() else float(self._add_gains().max(initial=0.0))

    def _unheld(self) -> bool:
        """Whether a variable that is pulled adds no curvature, where φ may fall for ever: some support has no end then."""
        basis = self.basis
        pulled = (basis.h <= basis.dependent) & (np.abs(basis.s) > PULL * self.pull)
        pulled &= ((basis.s > 0) & np.isposinf(self.high)) | ((basis.s < 0) & np.isneginf(self.low))
        pulled[np.concatenate([self.shut, basis.support])] = False
        return self.endless and bool(pulled.any())
