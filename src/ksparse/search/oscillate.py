"""Out of a local optimum by way of other k: with more seats the search sees other supports, with fewer it forgets weak members.

A swap-optimal support of k members is left by growing it to k + d, searching there and shrinking it back, or by shrinking it to k − d,
searching there and growing it again. Each costs about as much as a start, and begins from the best that is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ksparse.base.arrays import Vector
from ksparse.errors import UnboundedError
from ksparse.search.gains import drop_losses
from ksparse.search.search import Found, certified_factor
from ksparse.search.task import Candidate, Task

LEAVERS = 3  # members tried in turn where one has to go
DEPTHS, ROUNDS = (8, 4, 2), 3  # d is k over these
LARGE = 200_000  # members times variables beyond which one round of the middle depth is all that pays
Search = Callable[[Task, Candidate], Found]


def oscillate(task: Task, best: Candidate, search: Search) -> Iterator[tuple[str, Found]]:
    """Answers by way of k + d and k − d, each from the best so far, until a round of all depths brings nothing."""
    room = int(task.allowed.sum())
    depths, rounds = (DEPTHS, ROUNDS) if task.k * task.n <= LARGE else (DEPTHS[1:2], 1)
    for _ in range(rounds):
        before = best.value
        for d in dict.fromkeys(max(1, task.k // depth) for depth in depths):
            for name, k in ((f"by k + {d}", min(task.k + d, room)), (f"by k - {d}", max(task.k - d, 1, task.forced.size))):
                if task.expired or k == task.k:
                    continue
                found = _by_way_of(task, task.with_k(k), best, search)
                if found is None:
                    continue
                if found.best.value < best.value:
                    best = found.best
                yield name, found
        if not best.value < before - 1e-9 * abs(before):
            return


def _by_way_of(task: Task, other: Task, best: Candidate, search: Search) -> Found | None:
    """From the best to another k and back."""
    there = shrunk(best, other)
    if there is None:
        return None
    try:
        away = search(other, there).best
    except UnboundedError:
        if other.k <= task.k:
            raise
        return None  # with more seats φ falls without end; with k of them it need not
    back = shrunk(away, task)
    return None if back is None else search(task, back)


def shrunk(at: Candidate | None, task: Task) -> Candidate | None:
    """A candidate with members taken out until k are left: each time the one that costs least of those the model thinks cheapest."""
    while at is not None and at.support.size > task.k:
        order = [j for j in np.argsort(_costs(at, task), kind="stable") if at.support[j] not in task.forced]
        best: Candidate | None = None
        for tried, j in enumerate(order):
            if best is not None and tried >= LEAVERS:
                break
            candidate = task.evaluate(np.delete(at.support, j), at)
            if candidate is not None and (best is None or candidate.value < best.value):
                best = candidate
        at = best
    return at


def _costs(at: Candidate, task: Task) -> Vector:
    """What each member's leaving costs, by the model; without one, the size of its entry."""
    model = None if task.component else task.ranking_model(at)
    if model is None:
        return np.abs(at.x)
    found, _ = certified_factor(task, model, at)
    return drop_losses(found)
