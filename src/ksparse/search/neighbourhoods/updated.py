"""Convex quadratics under equations and signs: the gains themselves, on a factorisation that is kept up to date.

Under signs a variable that would need the wrong one leaves as soon as another enters or leaves; a move that costs more by that than it
gained is taken back by who made it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ksparse.base.arrays import Vector
from ksparse.linalg.active_set import PULL
from ksparse.linalg.scaling import unit_scales
from ksparse.search.candidate import Candidate
from ksparse.search.gains import add_gains, drop_losses, swap_gains
from ksparse.search.neighbourhoods.base import DependentError, Move, Trust, Undo
from ksparse.search.neighbourhoods.basis import REFRESH, Basis, Snapshot
from ksparse.search.problem import SupportProblem


class Updated:
    """A support on the move, every change one product with k rows of H."""

    trust, monotone, compared = Trust.EXACT, True, 1

    def __init__(self, problem: SupportProblem, room: int) -> None:
        pieces = problem.pieces
        assert pieces.model is not None
        assert pieces.linear is not None
        self.basis, self.constant = Basis(pieces.model, pieces.linear, room), pieces.model.constant
        self.entering = pieces.settings.entering
        self.shut = np.flatnonzero(~pieces.allowed)
        self.sign = np.where(pieces.linear.lower >= 0, 1.0, 0.0) - np.where(pieces.linear.upper <= 0, 1.0, 0.0)  # that x_i must have
        self.signed = bool(self.sign.any())
        self.forced = np.zeros(pieces.n, dtype=bool)
        self.forced[pieces.forced] = True
        self.bend = unit_scales(pieces.model.diagonal) ** 2  # one without curvature is needed no more than the others for that
        self.endless, self.pull = pieces.loss.least == -np.inf, float(np.abs(pieces.model.r).max(initial=0.0))
        self.changes = 0

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
        if not self.basis.stand_on(np.asarray(candidate.support, dtype=np.intp)):
            raise DependentError
        self._obey()

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

    def _add_gains(self) -> Vector:
        """By how much each variable would lower φ; 0 for those of the support and those that may not enter, or not with their sign."""
        basis = self.basis
        gains = add_gains(basis.s, basis.h, basis.dependent)  # where i adds nothing new s_i is rounding, or the proof finds the ray
        gains[basis.support] = 0.0  # their h and s are 0 but for rounding
        if self.shut.size:
            gains[self.shut] = 0.0
        if self.signed:
            gains[self.sign * basis.s < 0] = 0.0
        return gains

    def _needed(self) -> Vector:
        """Which variables of the support an equation needs, or the user."""
        basis = self.basis
        return np.asarray((basis.kappa * self.bend[basis.support] <= 1e-12) | self.forced[basis.support])

    def _drop_losses(self) -> Vector:
        return drop_losses(self.basis.x, self.basis.kappa, self._needed())

    def drops(self) -> Iterator[Move]:
        losses = self._drop_losses()
        for j in np.argsort(losses, kind="stable"):
            if not np.isfinite(losses[j]):
                return
            yield Move((int(self.basis.support[j]),), ())

    def moves(self, least: float, full: bool) -> Iterator[Move]:
        """The best swap, and the next best where that was taken back: its entering variable is out."""
        banned: list[int] = []
        while True:
            alone = self._add_gains()
            alone[banned] = 0.0
            count = min(self.entering, int(np.count_nonzero(alone > least)))
            if not count or not self.basis.size:
                return
            entering = np.argpartition(-alone, count - 1)[:count]
            gains = self._swap_gains(entering)
            j, i = divmod(int(gains.argmax()), count)
            if not gains[j, i] > least:
                return
            yield Move((int(self.basis.support[j]),), (int(entering[i]),))
            banned.append(int(entering[i]))

    def _swap_gains(self, entering: Vector) -> Vector:
        """The table of swaps; −∞ where the entering variable would get the wrong sign."""
        basis, p = self.basis, self.basis.e + self.basis.size
        W = basis.inverse[basis.e : p, :p] @ basis.B[:p, entering]
        gains, pull = swap_gains(basis.x, basis.kappa, W, basis.s[entering], basis.h[entering], basis.dependent[entering], self._needed())
        if self.signed:
            gains[self.sign[entering] * pull < 0] = -np.inf
        return gains

    def apply(self, move: Move) -> Undo:
        if move.leaving and move.entering:
            (leaving,), (entering,) = move.leaving, move.entering
            self._swap(leaving, entering)
            after = self.basis.snapshot() if self.signed and self._wrong_signs().size else None
            self._obey()
            return lambda: self._swap_back(leaving, entering, after)
        for i in move.leaving:
            self._drop(self._place(i))
        for i in move.entering:
            self.basis.add(i)
            self._count(1)
        self._obey()
        return _final

    def _swap_back(self, leaving: int, entering: int, after: Snapshot | None) -> None:
        if after is not None:  # signs made others leave: back to before that
            self.basis.restore(after)
        self._swap(entering, leaving)

    def kick(self, leaving: Vector, rng: np.random.Generator) -> bool:
        """What an equation needs leaves too, where a random other can take its part: else a support of two would never lose both."""
        for i in leaving:
            if self._needed()[self._place(int(i))]:
                free = self.basis.h > self.basis.dependent
                free[np.concatenate([self.shut, self.support, leaving])] = False
                others = np.flatnonzero(free)
                if others.size and self.basis.size < self.room:
                    self.basis.add(int(rng.choice(others)))
                    self._count(1)
            place = self._place(int(i))
            if not self._needed()[place]:
                self._drop(place)
        self._obey()
        return True

    def _swap(self, leaving: int, entering: int) -> None:
        self.basis.swap(self._place(leaving), entering)
        self._count(2)

    def _drop(self, place: int) -> None:
        self.basis.drop(place)
        self._count(1)

    def _place(self, i: int) -> int:
        return int(np.flatnonzero(self.basis.support == i)[0])

    def _count(self, changes: int) -> None:
        self.changes += changes
        if self.basis.changes >= REFRESH and not self.basis.refresh():
            raise DependentError

    def _wrong_signs(self) -> Vector:
        """The places of the variables whose sign is not theirs to have."""
        return np.asarray((self.sign[self.basis.support] * self.basis.x < 0).nonzero()[0])

    def _obey(self) -> None:
        """Let variables leave whose sign is wrong, the worst first, until all are right."""
        while self.signed:
            wrong = self._wrong_signs()
            if not wrong.size:
                return
            cost = self._drop_losses()[wrong]  # the more it would cost to hold it at 0, the more it strains the others
            if not np.isfinite(cost).all():
                raise DependentError
            self._drop(int(wrong[cost.argmax()]))

    def mark(self) -> Snapshot:
        return self.basis.snapshot()

    def back_to(self, mark: Snapshot) -> None:
        self.basis.restore(mark)

    def worth(self) -> tuple[float, float]:
        losses = self._drop_losses()
        return float(losses.min(initial=np.inf)), np.inf if self._unheld() else float(self._add_gains().max(initial=0.0))

    def _unheld(self) -> bool:
        """Whether a variable that is pulled adds no curvature, where φ may fall for ever: some support has no end then."""
        basis = self.basis
        pulled = (basis.h <= basis.dependent) & (np.abs(basis.s) > PULL * self.pull) & (self.sign * basis.s >= 0)
        pulled[np.concatenate([self.shut, basis.support])] = False
        return self.endless and bool(pulled.any())


def _final() -> None:
    """What an add or a drop gains or costs is known before: none is made to be taken back."""
    raise NotImplementedError("an add or a drop is not taken back")
