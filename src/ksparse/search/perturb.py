"""What a search tries where a descent has ended: walks or ways by other cardinalities, other starts, and kicks, on any neighbourhood.

A way down lets the variables that cost least leave, one by one, and looks after each whether another than the last to leave gains most
now. If so it fills up from there; if not the way back is the way it came. A way up is the same with more variables than k. A kick lets some
variables leave at random, which may not come back until their places are taken. Other starts are descended from one by one, and then
supports made of two of the best (`elite`). The search ends when kick after kick leads to known supports, or after so many changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np

from ksparse.search.candidate import Candidate, SearchOutcome
from ksparse.search.elite import Elite
from ksparse.search.local import LocalSearch, descended, solved
from ksparse.search.neighbourhoods import DependentError
from ksparse.search.tabu import tabu_walk
from ksparse.util.arrays import Vector


def explore(
    search: LocalSearch, start: Candidate, rng: np.random.Generator, others: Iterable[Vector] = ()
) -> Iterator[tuple[str, SearchOutcome]]:
    """Better and better answers: a descent from the start and from `others`, then ways out of the best local optimum.

    `DependentError` where no support on the way can be trusted, after what was found without.
    """
    best = descended(search, start)
    yield "descent", SearchOutcome(best, search.swaps)
    if best is start or not np.array_equal(
        np.sort(search.hood.support), best.support
    ):  # in vain, or a variable came out as 0
        search.hood.move_to(best)
    search.swaps = 0
    for name in _improvements(search, rng, others):
        better, swaps, search.swaps = solved(search, best), search.swaps, 0
        if better is not best:
            best = better
            yield name, SearchOutcome(best, swaps)


def _improvements(search: LocalSearch, rng: np.random.Generator, others: Iterable[Vector]) -> Iterator[str]:
    """Leave the search at a better and better place: by a walk, or by way of other k while that helps, by other starts, by kicks."""
    if search.clear:
        return
    yield from _beyond(search, rng)
    yield from _by_other_starts(search, rng, others)
    yield from _by_pairs(search)
    yield from _by_kicks(search, rng)


def _by_other_starts(search: LocalSearch, rng: np.random.Generator, others: Iterable[Vector]) -> Iterator[str]:
    """Descents from other supports, and from those made of two of the best that are reached: work beside that of the kicks."""
    settings, before = search.problem.settings, search.changes
    best, value, elite = search.hood.snapshot(), search.hood.value, Elite()
    elite.take(value, search.hood.support)
    for support in chain(others, elite.children(search.problem.k, settings.children, rng)):
        if search.problem.expired or search.changes - before >= search.aside:
            break
        if not _descends_from(search, support):
            continue
        elite.take(search.hood.value, search.hood.support)
        if search.hood.value < value - search.tiny:
            _exhaust(_by_other_k(search))
            best, value = search.hood.snapshot(), search.hood.value
            elite.take(value, search.hood.support)
            yield "other start"
    search.most += search.changes - before
    search.hood.restore(best)


def _by_pairs(search: LocalSearch) -> Iterator[str]:
    """Two for two while that helps."""
    best = search.hood.snapshot(), search.hood.value
    while not search.problem.expired and search.pair() and search.hood.value < best[1] - search.tiny:
        best = search.hood.snapshot(), search.hood.value
        yield "two for two"
    search.hood.restore(best[0])


def _by_kicks(search: LocalSearch, rng: np.random.Generator) -> Iterator[str]:
    """Kicks of the best place, each followed by a walk or ways by other k, until several in a row lead nowhere or the work is done."""
    best, value, returns = search.hood.snapshot(), search.hood.value, 0
    while returns < search.problem.settings.returns and not search.spent:
        returns += 1
        search.hood.restore(best)
        if not _kicked(search, rng):
            continue
        returns = 0
        _exhaust(_beyond(search, rng))
        if search.hood.value < value - search.tiny:
            best, value = search.hood.snapshot(), search.hood.value
            yield "kick"
    search.hood.restore(best)


def _beyond(search: LocalSearch, rng: np.random.Generator) -> Iterator[str]:
    """Out of a local optimum: by a walk where the best swap is known and k is not small, else by way of other k."""
    return tabu_walk(search, rng) if search.problem.walks and search.hood.walks() else _by_other_k(search)


def _exhaust(steps: Iterator[str]) -> None:
    for _ in steps:
        pass


def _descends_from(search: LocalSearch, support: Vector) -> bool:
    """A descent from another support, or where that has no point from its first variables; False where that leads to a known one."""
    problem, support = search.problem, search.problem.trim_to_rules(support)
    shorter = min(
        2 if problem.floors.any else 0, support.size - max(1, problem.forced.size)
    )  # fewer above a floor are easier to fit
    try:
        return (
            any(search.hood.move_to_support(support[: support.size - fewer]) for fewer in range(max(0, shorter) + 1))
            and search.descend()
        )
    except DependentError:
        search.penalty += search.k
        return False


def _by_other_k(search: LocalSearch) -> Iterator[str]:
    """By way of fewer and of more variables, again and again while that helps; the search ends at the best place seen."""
    best = search.hood.snapshot()
    while True:
        for way, name in ((_down, "-"), (_up, "+")):
            search.hood.restore(best)
            try:
                steps = way(search, search.hood.value)
            except DependentError:
                search.penalty += search.k
                continue
            if steps is not None:
                best = search.hood.snapshot()
                yield f"by k {name} {steps}"
                break
        else:
            search.hood.restore(best)
            return


def _down(search: LocalSearch, best: float) -> int | None:
    """Fewer and fewer variables, and from there up again, until a better place is found: how many fewer it took; None where none is."""
    hood = search.hood
    for fewer in range(1, search.depth + 1):
        if search.spent or search.size <= 1:
            return None
        leaving = next((move for move in search.drops() if hood.apply(move) is not None), None)
        if leaving is None:
            return None
        known = search.mark_visited("fill")
        entering = next(search.adds(1), None)
        if known or entering is None or entering.entering == leaving.leaving:
            continue
        if search.attempt(lambda: search.fill(search.k, fresh=True) and search.descend(), best):
            return fewer
    return None


def _up(search: LocalSearch, best: float) -> int | None:
    """The same by more and more variables."""
    hood = search.hood
    for more in range(1, search.depth + 1):
        if search.spent or hood.size >= hood.max_size:
            return None
        entering = next((move for move in search.adds(1, k=search.size + 1) if hood.apply(move) is not None), None)
        if entering is None or search.size <= search.k:  # it pushed others out
            return None
        known = search.mark_visited("reduce")
        leaving = next(search.drops(), None)
        if known or leaving is None or leaving.leaving == entering.entering:
            continue
        if search.attempt(lambda: search.reduce(search.k) and search.descend(), best):
            return more
    return None


def _kicked(search: LocalSearch, rng: np.random.Generator) -> bool:
    """Some variables, at least two where there are as many, leave, and stay out until their places are taken; False: that is in vain."""
    hood, kick = search.hood, search.problem.settings.kick
    may_leave = {move.leaving[0] for move in hood.ranked_drops()}
    movable = np.array([i for i in hood.support.tolist() if i in may_leave], dtype=np.intp)
    count = min(max(2, int(np.ceil(rng.uniform(*kick) * search.size))), movable.size)
    leaving = rng.choice(movable, count, replace=False)
    try:
        if not hood.remove_many(leaving, rng) or (search.rules.any and search.size > search.k):
            return False
        search.fill(search.k, leaving)
        return search.descend()
    except DependentError:
        search.penalty += search.k
        return False
