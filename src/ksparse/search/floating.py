"""What a search tries where a descent has ended: ways by other k, and kicks.

A way down lets the members that cost least go, one by one, and looks after each whether the outsider that gains most now is another than
the last to go. If so it fills up from there; if not the way back is the way it came. A way up is the same with more seats than k.
A kick lets some members go at random, who may not come back until their seats are taken. The search ends when kick after kick leads
to known supports, or after a fixed number of changes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ksparse.search.basis import Snapshot
from ksparse.search.exchange import DependentError, Exchange, descended, solved
from ksparse.search.search import Found
from ksparse.search.task import Candidate, Task

KICK = (0.25, 0.5)  # of the members leave
RETURNS = 8  # kicks that led to known supports, in a row, after which the best is believed


def explore(task: Task, start: Candidate, rng: np.random.Generator) -> Iterator[tuple[str, Found]]:
    """Better and better answers: a descent from the start, then ways out of each local optimum.

    `DependentError` where no basis can be trusted on the way, after what was found without.
    """
    exchange = Exchange(task)
    best = descended(exchange, start)
    yield "descent", Found(best, exchange.swaps, False)
    if best is start or not np.array_equal(np.sort(exchange.basis.members), best.support):  # in vain, or a member came out as 0
        exchange.begin(best.support)
    exchange.swaps = 0
    for name in _improvements(exchange, rng):
        better, swaps, exchange.swaps = solved(exchange, best), exchange.swaps, 0
        if better is not best:
            best = better
            yield name, Found(best, swaps, False)


def _improvements(exchange: Exchange, rng: np.random.Generator) -> Iterator[str]:
    """Leave the basis at a better and better place: by way of other k while that helps, then by kicks, each followed by the same."""
    if exchange.clear:
        return
    yield from _by_other_k(exchange)
    best, returns = exchange.basis.snapshot(), 0
    while returns < RETURNS and not exchange.spent:
        returns += 1
        exchange.basis.restore(best)
        if not _kicked(exchange, rng):
            continue
        returns = 0
        for _ in _by_other_k(exchange):
            pass
        if exchange.basis.value < best.value - exchange.tiny:
            best = exchange.basis.snapshot()
            yield "kick"


def _by_other_k(exchange: Exchange) -> Iterator[str]:
    """By way of fewer and of more seats, again and again while that helps; the basis ends at the best place seen."""
    best = exchange.basis.snapshot()
    while True:
        for step, name in ((_down, "-"), (_up, "+")):
            exchange.basis.restore(best)
            try:
                way = step(exchange, best)
            except DependentError:
                exchange.changes += exchange.k
                continue
            if way is not None:
                best = exchange.basis.snapshot()
                yield f"by k {name} {way}"
                break
        else:
            exchange.basis.restore(best)
            return


def _down(exchange: Exchange, best: Snapshot) -> int | None:
    """Fewer and fewer seats, and from there up again, until a better place is found: the number of seats it took; None where none is."""
    basis, k = exchange.basis, exchange.k
    for fewer in range(1, exchange.depth + 1):
        j = None if exchange.spent or basis.size <= 1 else exchange.leaver()
        if j is None:
            return None
        last = int(basis.members[j])
        exchange.let_go(j)
        known, newcomer = exchange.known("fill"), exchange.newcomer()
        if known or newcomer is None or newcomer == last:
            continue
        if exchange.attempt(lambda: exchange.fill(k, fresh=True) and exchange.descend(), best):
            return fewer
    return None


def _up(exchange: Exchange, best: Snapshot) -> int | None:
    """The same by more and more seats."""
    basis, k = exchange.basis, exchange.k
    for more in range(1, exchange.depth + 1):
        i = None if exchange.spent or basis.size >= basis.room else exchange.newcomer()
        if i is None:
            return None
        exchange.take(i)
        if basis.size <= k:  # it pushed others out
            return None
        known, j = exchange.known("shrink"), exchange.leaver()
        if known or j is None or basis.members[j] == i:
            continue
        if exchange.attempt(lambda: exchange.shrink(k) and exchange.descend(), best):
            return more
    return None


def _kicked(exchange: Exchange, rng: np.random.Generator) -> bool:
    """Some members, at least two where there are as many, leave, and stay out until their seats are taken; False where that is in vain."""
    basis = exchange.basis
    movable = np.flatnonzero(np.isfinite(basis.drop_losses()))
    count = min(max(2, int(np.ceil(rng.uniform(*KICK) * basis.size))), movable.size)
    leaving = rng.choice(basis.members[movable], count, replace=False)
    try:
        exchange.let_all_go(leaving)
        exchange.fill(exchange.k, leaving)
        return exchange.descend()
    except DependentError:
        exchange.changes += exchange.k
        return False
