"""Search over supports on a basis that is kept up to date: for convex quadratics under equations and signs.

A descent fills free seats with what gains most and then exchanges members for outsiders while that gains. Under signs a member that would
need the wrong one leaves; a move that costs more by that than it gained is taken back. Out of a local optimum the search goes by way of
other k, and by kicks: some members leave and may not come back until their seats are taken. It ends when kick after kick leads back
to the best support, or after a fixed number of changes; nothing is proved here, that is left to `search`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from ksparse.sets.base import Vector
from ksparse.support.basis import REFRESH, Basis
from ksparse.support.search import Found, tolerance
from ksparse.support.task import Candidate, Task

OUTSIDERS = 256  # looked at for an exchange; the proof looks at all
DEPTHS = (8, 4, 2)  # ways by other k are k over these long; after a kick the first two
EFFORT = 800  # changes of the support, after which a search has done its part; where seats are few it is done sooner
CLEAR = 10.0  # where each member is worth so much more than any outsider, the support is not in doubt
RETURNS = 8  # kicks that led back to the best support, in a row, after which it is believed


class DependentError(Exception):
    """The members are dependent, or nearly so: a basis cannot be trusted there."""


class Exchange:
    """A support on the move."""

    def __init__(self, task: Task) -> None:
        assert task.model is not None
        self.task, self.k = task, task.k
        self.basis = Basis(task, task.model, task.seats_in_memory)
        self.constant = task.model.constant
        self.changes = self.swaps = 0
        self.effort = min(EFFORT, EFFORT * 3 // 5 + 4 * self.k, 30 * max(7, self.k))

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

        The second where a good fit is near: there all gains are small beside the losses, and all supports in doubt.
        """
        basis = self.basis
        if basis.size < self.k:
            return False
        most = float(basis.add_gains().max())
        return bool(basis.drop_losses().min() >= CLEAR * most and most <= abs(basis.value + self.constant) / CLEAR)

    def _add(self, i: int) -> None:
        self.basis.add(i)
        self._count()

    def _drop(self, j: int) -> None:
        self.basis.drop(j)
        self._count()

    def _count(self) -> None:
        self.changes += 1
        if self.basis.changes >= REFRESH and not self.basis.refresh():
            raise DependentError

    def attempt(self, move: Callable[[], None]) -> None:
        """A move that may end among dependent members: then it is taken back, and counts as many changes as there are seats."""
        before = self.basis.snapshot()
        try:
            move()
        except DependentError:
            self.changes += self.k
            self.basis.restore(before)

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

    def fill(self, k: int, shut: Vector | None = None) -> None:
        """Take what gains most until k seats are taken or nothing gains; those in `shut` stay out."""
        for _ in range(3 * k):  # under signs newcomers may push others out: not for ever
            if self.basis.size >= k or self.task.expired:
                return
            self.basis.seats = k - self.basis.size
            gains = self.basis.add_gains()
            if shut is not None:
                gains[shut] = 0.0
            i = int(gains.argmax())
            if gains[i] <= self.tiny:
                return
            self._add(i)
            self._obey()

    def shrink(self, k: int) -> None:
        """Let those go that cost least, until k are left."""
        while self.basis.size > k:
            losses = self.basis.drop_losses()
            j = int(losses.argmin())
            if not np.isfinite(losses[j]):
                raise DependentError
            self._drop(j)
        self._obey()

    def descend(self, k: int) -> None:
        """Fill, then exchange while that gains."""
        self._obey()
        self.fill(k)
        banned: set[int] = set()
        while not self.task.expired:
            found = self.basis.best_swap(self.tiny, banned, OUTSIDERS)
            if found is None:
                return
            before, saved = self.basis.value, self.basis.snapshot() if self.basis.signed else None
            self._drop(found[0])
            self._add(found[1])
            self.swaps += 1
            if saved is None:
                continue
            if self.basis.wrong_signs().size:
                self._obey()
                self.fill(k)
            if self.basis.value > before - self.tiny:
                self.basis.restore(saved)
                banned.add(found[1])
            else:
                banned.clear()

    def by_way_of(self, k: int) -> None:
        """To another number of seats, and back."""
        if k > self.k:
            self.fill(k)
            self.shrink(self.k)
        else:
            self.shrink(k)
        self.descend(self.k)

    def kick(self, rng: np.random.Generator) -> None:
        """Some members, at least two where there are as many, leave, and stay out until their seats are taken."""
        movable = np.flatnonzero(np.isfinite(self.basis.drop_losses()))
        count = min(max(2, int(np.ceil(rng.uniform(0.05, 0.5) * self.basis.size))), movable.size)
        leaving = rng.choice(self.basis.members[movable], count, replace=False)
        for i in leaving:
            place = int(np.flatnonzero(self.basis.members == i)[0])
            if np.isfinite(self.basis.drop_losses()[place]):
                self._drop(place)
        self._obey()
        self.fill(self.k, leaving)
        self.descend(self.k)


def descend(task: Task, start: Candidate) -> Candidate:
    """A candidate improved by exchanges; itself where a basis cannot help."""
    return _descended(Exchange(task), start)


def descend_alone(task: Task, start: Candidate) -> Found:
    """The same as where a search ended, nothing proved."""
    exchange = Exchange(task)
    return Found(_descended(exchange, start), exchange.swaps, False)


def _descended(exchange: Exchange, start: Candidate) -> Candidate:
    try:
        exchange.begin(start.support)
        exchange.descend(exchange.k)
    except DependentError:
        return start
    return _better(exchange, start)


def _better(exchange: Exchange, best: Candidate) -> Candidate:
    """The support the basis stands on, solved exactly, if it is better."""
    found = exchange.task.evaluate(exchange.basis.members.copy(), best)
    return best if found is None or found.value >= best.value else found


def explore(task: Task, start: Candidate, rng: np.random.Generator) -> Iterator[tuple[str, Found]]:
    """Better and better answers: a descent from the start, then ways out of each local optimum.

    `DependentError` where no basis can be trusted on the way, after what was found without.
    """
    exchange = Exchange(task)
    best = _descended(exchange, start)
    yield "descent", Found(best, exchange.swaps, False)
    if best is start or not np.array_equal(np.sort(exchange.basis.members), best.support):  # in vain, or a member came out as 0
        exchange.begin(best.support)
    for name in _improvements(exchange, rng):
        better, swaps, exchange.swaps = _better(exchange, best), exchange.swaps, 0
        if better is not best:
            best = better
            yield name, Found(best, swaps, False)


def _improvements(exchange: Exchange, rng: np.random.Generator) -> Iterator[str]:
    """Leave the basis at a better and better place: by way of other k while that helps, then by kicks, each followed by the same."""
    exchange.swaps = 0
    if exchange.clear:
        return
    yield from _by_other_k(exchange, DEPTHS)
    best, returns = exchange.basis.snapshot(), 0
    while returns < RETURNS and not exchange.spent:
        exchange.basis.restore(best)
        exchange.attempt(lambda: exchange.kick(rng))
        for _ in _by_other_k(exchange, DEPTHS[:2]):
            pass
        gain, tiny = best.value - exchange.basis.value, exchange.tiny
        returns = returns + 1 if abs(gain) <= tiny else 0
        if gain > tiny:
            yield "kick"
            yield from _by_other_k(exchange, DEPTHS)
            best = exchange.basis.snapshot()


def _by_other_k(exchange: Exchange, depths: tuple[int, ...]) -> Iterator[str]:
    """By way of k + d and k − d, k over d in `depths`, again and again while that helps; the basis ends at the best place seen."""
    k, basis = exchange.k, exchange.basis
    best, gained = basis.snapshot(), True
    while gained:
        gained = False
        for d in dict.fromkeys(sign * max(1, k // depth) for depth in depths for sign in (1, -1)):
            other = min(max(k + d, 1, exchange.task.forced.size), basis.room)
            if other == k or exchange.spent:
                continue
            exchange.attempt(partial(exchange.by_way_of, other))
            if basis.value < best.value - exchange.tiny:
                best, gained = basis.snapshot(), True
                yield f"by k {'+' if d > 0 else '-'} {abs(d)}"
            else:
                basis.restore(best)
