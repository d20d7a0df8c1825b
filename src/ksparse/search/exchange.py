"""Supports on the move, on a basis that is kept up to date: for convex quadratics under equations and signs.

A descent fills free seats with what gains most and then exchanges members for outsiders while that gains. Under signs a member that would
need the wrong one leaves; a move that costs more by that than it gained is taken back. Each of these goes on from a support in one way
only: where the search has been at a support before, on the same way, it knows the end and stops. Nothing is proved here, that is left to
`search`; what is tried where a descent has ended is in `floating`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ksparse.base.arrays import Vector
from ksparse.search.basis import REFRESH, Basis, Snapshot
from ksparse.search.search import Found
from ksparse.search.task import Candidate, Task, tolerance

OUTSIDERS = 64  # looked at for an exchange; the proof looks at all
EFFORT = 1_500  # changes of the support, after which a search has done its part; where seats are few it is done sooner
CLEAR = 10.0  # where each member is worth so much more than any outsider, the support is not in doubt


class DependentError(Exception):
    """The members are dependent, or nearly so: a basis cannot be trusted there."""


class Exchange:
    """A support on the move."""

    def __init__(self, task: Task) -> None:
        assert task.model is not None
        self.task, self.k = task, task.k
        self.depth = max(3, self.k // 4)  # ways by other k go as far
        self.basis = Basis(task, task.model, min(task.seats_in_memory, self.k + self.depth))
        self.constant = task.model.constant
        self.changes = self.swaps = 0
        self.effort = min(EFFORT, 700 + self.k**2 // 8, 40 * max(5, self.k))
        self._seen: set[tuple[str, int]] = set()

    def begin(self, support: Vector) -> None:
        """Stand on a support."""
        if not self.basis.stand_on(np.asarray(support, dtype=np.intp)):
            raise DependentError

    @property
    def tiny(self) -> float:
        """A gain below this is rounding."""
        return tolerance(self.task, self.basis.value + self.constant)

    @property
    def spent(self) -> bool:
        """Whether the search has done its part, or its time is up."""
        return self.changes >= self.effort or self.task.expired

    @property
    def clear(self) -> bool:
        """Whether no member is in doubt: each would cost far more to lose than any outsider could bring, and that is little altogether.

        The second where a good fit is near: there all gains are small beside the losses, and all supports in doubt. A perfect fit is not.
        """
        basis = self.basis
        if abs(basis.value + self.constant) <= self.tiny:
            return True
        if basis.size < self.k:
            return False
        most = float(basis.add_gains().max())
        return bool(basis.drop_losses().min() >= CLEAR * most and most <= abs(basis.value + self.constant) / CLEAR)

    def known(self, way: str) -> bool:
        """Whether the search has been at this support before on the same way; from now on it has."""
        mark = (way, self.basis.key)
        known = mark in self._seen
        self._seen.add(mark)
        return known

    def _add(self, i: int) -> None:
        self.basis.add(i)
        self._count(1)

    def _drop(self, j: int) -> None:
        self.basis.drop(j)
        self._count(1)

    def _exchange(self, j: int, i: int) -> None:
        self.basis.exchange(j, i)
        self._count(2)

    def _count(self, changes: int) -> None:
        self.changes += changes
        if self.basis.changes >= REFRESH and not self.basis.refresh():
            raise DependentError

    def attempt(self, move: Callable[[], bool], best: Snapshot) -> bool:
        """Whether a move leads to a better place than `best`; if not it is taken back.

        One that ends among dependent members counts as many changes as there are seats.
        """
        before = self.basis.snapshot()
        try:
            if move() and self.basis.value < best.value - self.tiny:
                return True
        except DependentError:
            self.changes += self.k
        self.basis.restore(before)
        return False

    def _obey(self) -> None:
        """Let members go whose sign is wrong, the worst first, until all are right."""
        while self.basis.signed:
            wrong = self.basis.wrong_signs()
            if not wrong.size:
                return
            cost = self.basis.drop_losses()[wrong]  # the more it would cost to hold it at 0, the more it strains the others
            if not np.isfinite(cost).all():
                raise DependentError
            self._drop(int(wrong[cost.argmax()]))

    def newcomer(self, shut: Vector | None = None) -> int | None:
        """The outsider that gains most, those in `shut` aside; None where none gains."""
        gains = self.basis.add_gains()
        if shut is not None:
            gains[shut] = 0.0
        i = int(gains.argmax())
        return i if gains[i] > self.tiny else None

    def take(self, i: int) -> None:
        """Let an outsider in, and those go whose sign it makes wrong."""
        self._add(i)
        self._obey()

    def leaver(self) -> int | None:
        """The place of the member that costs least; None where none can be spared."""
        losses = self.basis.drop_losses()
        j = int(losses.argmin()) if losses.size else 0
        return j if losses.size and np.isfinite(losses[j]) else None

    def let_go(self, j: int) -> None:
        """Let the member at place j go, and those whose sign that makes wrong."""
        self._drop(j)
        self._obey()

    def let_all_go(self, leaving: Vector) -> None:
        """Let several members go, as far as they can be spared."""
        for i in leaving:
            j = int(np.flatnonzero(self.basis.members == i)[0])
            if np.isfinite(self.basis.drop_losses()[j]):
                self._drop(j)
        self._obey()

    def fill(self, k: int, shut: Vector | None = None, *, fresh: bool = False) -> bool:
        """Take what gains most until k seats are taken or nothing gains; those in `shut` stay out.

        With `fresh` only while that leads to supports that are not known; False where it does not.
        """
        for _ in range(3 * k):  # under signs newcomers may push others out: not for ever
            self.basis.seats = k - self.basis.size
            i = None if self.basis.seats <= 0 or self.task.expired else self.newcomer(shut)
            if i is None:
                break
            self.take(i)
            if fresh and self.known("fill"):
                return False
        return True

    def shrink(self, k: int) -> bool:
        """Let those go that cost least, until k are left; False where that leads to a known support."""
        while self.basis.size > k:
            j = self.leaver()
            if j is None:
                raise DependentError
            self.let_go(j)
            if self.known("shrink"):
                return False
        return True

    def descend(self) -> bool:
        """Fill, then exchange while that gains; False where that leads to a known support."""
        self._obey()
        self.fill(self.k)
        if self.known("exchange"):
            return False
        banned: set[int] = set()
        while not self.task.expired:
            found = self.basis.best_swap(self.tiny, banned, OUTSIDERS)
            if found is None:
                break
            if not self._exchanged(*found):
                banned.add(found[1])
                continue
            self.swaps += 1
            banned.clear()
            if self.known("exchange"):
                return False
        return True

    def _exchanged(self, j: int, i: int) -> bool:
        """Exchange a member for an outsider; taken back where that makes signs wrong and so costs more than it gains."""
        before, leaving = self.basis.value, int(self.basis.members[j])
        self._exchange(j, i)
        if not self.basis.signed or not self.basis.wrong_signs().size:
            return True
        after = self.basis.snapshot()
        self._obey()
        self.fill(self.k)
        if self.basis.value <= before - self.tiny:
            return True
        self.basis.restore(after)
        self._exchange(j, leaving)
        return False


def descend(task: Task, start: Candidate) -> Candidate:
    """A candidate improved by exchanges; itself where a basis cannot help."""
    return descended(Exchange(task), start)


def descend_alone(task: Task, start: Candidate) -> Found:
    """The same as where a search ended, nothing proved."""
    exchange = Exchange(task)
    return Found(descended(exchange, start), exchange.swaps, False)


def descended(exchange: Exchange, start: Candidate) -> Candidate:
    """The same on a given exchange, which is left where it ended."""
    try:
        exchange.begin(start.support)
        exchange.descend()
    except DependentError:
        return start
    return solved(exchange, start)


def solved(exchange: Exchange, best: Candidate) -> Candidate:
    """The support the exchange stands on, solved exactly, if it is better."""
    found = exchange.task.evaluate(exchange.basis.members.copy(), best)
    return best if found is None or found.value >= best.value else found
