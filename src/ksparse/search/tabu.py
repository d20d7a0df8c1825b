"""Tabu search: the best swap that is not barred, whether it gains or not, again and again.

A descent ends where no swap gains. The walk goes on by the swap that costs least; who left may not come back for some steps, and who
entered may not leave for some, so that it does not go back the way it came, unless that leads to a better place than any before. It ends
after some steps without a better place, or where another walk has been. Nothing keeps it near the best support.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ksparse.search.local import LocalSearch
from ksparse.search.neighbourhoods import DependentError, Move
from ksparse.util.arrays import Vector

TENURE = (
    0.2,
    0.1,
)  # multiples of k: steps for which a variable that left stays out, and one that entered stays in (table5.py)


class Barred:
    """Who may not enter, and who may not leave, and for how many steps more."""

    def __init__(self, n: int, k: int, shares: tuple[float, float], rng: np.random.Generator) -> None:
        self._out, self._in = (
            np.zeros(n, dtype=np.intp) for _ in range(2)
        )  # the step up to which one stays out, stays in
        self.lengths, self.rng, self.step = (k * shares[0], k * shares[1]), rng, 0

    @property
    def out(self) -> Vector:
        """The mask of those who may not enter."""
        return np.asarray(self._out > self.step)

    @property
    def kept(self) -> Vector:
        """The mask of those who may not leave."""
        return np.asarray(self._in > self.step)

    def after(self, move: Move) -> None:
        """Bar those who moved, for times that differ, so that the walk does not go in circles."""
        self.step += 1
        for until, moved, length in zip(
            (self._out, self._in), (move.leaving, move.entering), self.lengths, strict=True
        ):
            for i in moved:
                until[i] = self.step + 1 + round((0.5 + self.rng.random()) * length)


def tabu_walk(search: LocalSearch, rng: np.random.Generator) -> Iterator[str]:
    """Better and better places, until many steps in a row led to none or the work is done; the search ends at the best of them."""
    hood, walks, settings = search.hood, search.hood.walks(), search.problem.settings
    if walks is None:
        return
    best, value, vain, better = hood.snapshot(), hood.value, 0, False
    walks.prefetch(search.most - search.changes)
    barred = Barred(search.problem.n, search.k, TENURE, rng)
    while vain < settings.patience * search.k and not search.spent:
        vain += 1
        try:
            swap = walks.best_swap(
                barred.out, barred.kept, hood.value - value + search.tiny
            )  # the bars fall for a new best
            if better and (swap is None or swap.gain <= search.tiny):
                search.attempt(search.descend, value)  # by those that the walk does not look at
                best, value, better = hood.snapshot(), hood.value, False
                yield "walk"
            elif swap is None or hood.apply(swap.move) is None:
                break
            else:
                barred.after(swap.move)
                if search.size < search.k:  # signs made others leave
                    search.fill(search.k, barred.out)
                known = search.mark_visited("walk")
                if hood.value < value - search.tiny:
                    best, value, vain, better = hood.snapshot(), hood.value, 0, True
                elif known:
                    break
        except DependentError:
            search.penalty += search.k
            break
    hood.restore(best)
    if better:  # and no time to look around
        search.attempt(search.descend, value)
        yield "walk"
