"""Iterated local search: what follows a descent.

- A tabu walk, if gains of swaps are exact and k is large: make the best swap that is not tabu, whether it gains or not.
  A variable that left may not return for some steps, and one that entered may not leave, unless that leads to a new
  best. The walk ends after some steps without improvement, or where another walk has been.
- Oscillation in k, otherwise: drop variables, the cheapest first, and fill up again; or add variables and drop others.
  Where the way back would retrace the way there, go further.
- Descents from other starts.
- Pair swaps, of two variables for two others.
- Perturbations of the best support: variables leave at random and stay out until their places are taken.

The search ends if one perturbation after another leads to visited supports, or after a limit of work.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np

from ksparse.search.candidate import Candidate, Improvements, SearchOutcome
from ksparse.search.local_search import LocalSearch, descend_from, evaluate_if_better
from ksparse.search.neighbourhoods import DependentError, Move, Walks
from ksparse.util.arrays import Vector

QUICK_WORK = 2.2  # the work of a quick search, relative to that of its first descent (quick.py)
TENURE = (0.2, 0.1)  # multiples of k: steps that a variable stays out after leaving, in after entering (table5.py)


def iterated_local_search(
    search: LocalSearch, start: Candidate, rng: np.random.Generator, others: Iterable[Vector] = (), quick: bool = False
) -> Improvements:
    """Yield better and better candidates: a descent from the start, then what leads out of the best local optimum.

    A `quick` search ends after about twice the work of the descent. Raise `DependentError` if a support on the way has
    dependent variables.
    """
    best = descend_from(search, start)
    yield "descent", SearchOutcome(best, search.swaps)
    if quick:
        search.work_limit = int(QUICK_WORK * search.work)
    # the descent failed, or a variable came out as 0
    if best is start or not np.array_equal(np.sort(search.neighbourhood.support), best.support):
        search.neighbourhood.move_to(best)
    search.swaps = 0
    if search.support_is_unambiguous:
        return
    # only minimum sizes let two swaps at once gain what no single swap does
    pairs = _pair_swaps(search) if search.problem.floors.any else ()
    for name in chain(_escape(search, rng), _other_starts(search, others), pairs, _perturbations(search, rng)):
        better, swaps, search.swaps = evaluate_if_better(search, best), search.swaps, 0
        if better is not best:
            best = better
            yield name, SearchOutcome(best, swaps)


def _other_starts(search: LocalSearch, others: Iterable[Vector]) -> Iterator[str]:
    """Descend from other supports; this has a work limit of its own."""
    neighbourhood, before = search.neighbourhood, search.work
    best, value = neighbourhood.snapshot(), neighbourhood.value
    for support in others:
        if search.problem.expired or search.work - before >= search.start_work:
            break
        if not _descend_from_support(search, support):
            continue
        if neighbourhood.value < value - search.gain_tol:
            deque(_oscillate_in_k(search), maxlen=0)
            best, value = neighbourhood.snapshot(), neighbourhood.value
            yield "other start"
    search.work_limit += search.work - before
    neighbourhood.restore(best)


def _pair_swaps(search: LocalSearch) -> Iterator[str]:
    neighbourhood = search.neighbourhood
    best, value = neighbourhood.snapshot(), neighbourhood.value
    while not search.problem.expired and search.swap_pairs() and neighbourhood.value < value - search.gain_tol:
        best, value = neighbourhood.snapshot(), neighbourhood.value
        yield "pair swap"
    neighbourhood.restore(best)


def _perturbations(search: LocalSearch, rng: np.random.Generator) -> Iterator[str]:
    """Perturb the best support, descend and walk, until several in a row fail or the work is done."""
    neighbourhood, failures = search.neighbourhood, 0
    best, value = neighbourhood.snapshot(), neighbourhood.value
    while failures < search.problem.settings.returns and not search.exhausted:
        failures += 1
        neighbourhood.restore(best)
        if not _perturb(search, rng):
            continue
        failures = 0
        deque(_escape(search, rng), maxlen=0)
        if neighbourhood.value < value - search.gain_tol:
            best, value = neighbourhood.snapshot(), neighbourhood.value
            yield "perturbation"
    neighbourhood.restore(best)


def _escape(search: LocalSearch, rng: np.random.Generator) -> Iterator[str]:
    """Leave a local optimum by a walk, if the neighbourhood has walks, or by oscillation in k."""
    walks = search.neighbourhood.walks() if search.problem.walks else None
    return _oscillate_in_k(search) if walks is None else tabu_walk(search, walks, rng)


def _oscillate_in_k(search: LocalSearch) -> Iterator[str]:
    """Oscillate below and above k while that improves; leave the search at the best support."""
    neighbourhood = search.neighbourhood
    best = neighbourhood.snapshot()
    improved = True
    while improved:
        improved = False
        for name in "-+":
            neighbourhood.restore(best)
            try:
                steps = _oscillate(search, neighbourhood.value, below=name == "-")
            except DependentError:
                search.wasted += search.k
                continue
            if steps is not None:
                best, improved = neighbourhood.snapshot(), True
                yield f"by k {name} {steps}"
                break
    neighbourhood.restore(best)


def _oscillate(search: LocalSearch, best: float, below: bool) -> int | None:
    """Drop variables, the cheapest first, and fill up, or add some and drop others; return the steps to a better one.

    The way back begins where it does not undo the last step.
    """
    neighbourhood = search.neighbourhood

    def return_to_k() -> bool:
        there = search.add_up_to(search.k, fresh=True) if below else search.drop_down_to(search.k)
        return there and search.descend()

    for steps in range(1, search.depth + 1):
        if search.exhausted or (search.size <= 1 if below else neighbourhood.size >= neighbourhood.max_size):
            return None
        outward = search.drops() if below else search.adds(1, k=search.size + 1)
        there = next((move for move in outward if neighbourhood.apply(move) is not None), None)
        if there is None or (not below and search.size <= search.k):  # what entered pushed others out
            return None
        known = search.mark_visited("add" if below else "drop")
        back = next(search.adds(1) if below else search.drops(), None)
        if known or back is None or (back.leaving, back.entering) == (there.entering, there.leaving):
            continue
        if search.attempt(return_to_k, best):
            return steps
    return None


def _perturb(search: LocalSearch, rng: np.random.Generator) -> bool:
    """Remove variables at random, at least two if there are as many, add others and descend; False if that fails."""
    neighbourhood = search.neighbourhood
    removable = {move.leaving[0] for move in neighbourhood.ranked_drops()}
    movable = np.array([i for i in neighbourhood.support.tolist() if i in removable], dtype=np.intp)
    count = min(max(2, int(np.ceil(rng.uniform(*search.problem.settings.kick) * search.size))), movable.size)
    leaving = rng.choice(movable, count, replace=False)
    try:
        if not neighbourhood.remove_many(leaving, rng) or (search.rules.any and search.size > search.k):
            return False
        search.add_up_to(search.k, leaving)
        return search.descend()
    except DependentError:
        search.wasted += search.k
        return False


def _descend_from_support(search: LocalSearch, support: Vector) -> bool:
    """Descend from another support, or from its first variables if it has no point; False if that fails."""
    problem = search.problem
    support = problem.trim_to_rules(support)
    # with a minimum size, fewer variables are easier to fit
    fewer = min(2 if problem.floors.any else 0, support.size - max(1, problem.forced.size))
    sizes = range(support.size, support.size - max(0, fewer) - 1, -1)
    try:
        return any(search.neighbourhood.move_to_support(support[:size]) for size in sizes) and search.descend()
    except DependentError:
        search.wasted += search.k
        return False


class TabuList:
    """Variables that may not enter, or not leave, for a number of steps."""

    def __init__(self, n: int, k: int, tenure: tuple[float, float], rng: np.random.Generator) -> None:
        self._out, self._in = (np.zeros(n, dtype=np.intp) for _ in range(2))  # the last step of each
        self.tenure, self.rng, self.step = (k * tenure[0], k * tenure[1]), rng, 0

    @property
    def cannot_enter(self) -> Vector:
        """The mask of variables that may not enter."""
        return np.asarray(self._out > self.step)

    @property
    def cannot_leave(self) -> Vector:
        """The mask of variables that may not leave."""
        return np.asarray(self._in > self.step)

    def record(self, move: Move) -> None:
        """Make the variables of a move tabu, for random times, so that the walk does not cycle."""
        self.step += 1
        for until, moved, tenure in zip((self._out, self._in), (move.leaving, move.entering), self.tenure, strict=True):
            for i in moved:
                until[i] = self.step + 1 + round((0.5 + self.rng.random()) * tenure)


def tabu_walk(search: LocalSearch, walks: Walks, rng: np.random.Generator) -> Iterator[str]:
    """Walk to better and better supports by the `walks` of the neighbourhood; leave the search at the best of them."""
    neighbourhood = search.neighbourhood
    best, value, idle, better = neighbourhood.snapshot(), neighbourhood.value, 0, False
    walks.prefetch(search.work_limit - search.work)
    tabu = TabuList(search.problem.n, search.k, TENURE, rng)
    while idle < search.problem.settings.patience * search.k and not search.exhausted:
        idle += 1
        try:
            # a swap to a new best is never tabu
            swap = walks.best_swap(tabu.cannot_enter, tabu.cannot_leave, neighbourhood.value - value + search.gain_tol)
            if better and (swap is None or swap.gain <= search.gain_tol):
                search.attempt(search.descend, value)  # by variables that the walk does not consider
                best, value, better = neighbourhood.snapshot(), neighbourhood.value, False
                yield "walk"
            elif swap is None or neighbourhood.apply(swap.move) is None:
                break
            else:
                tabu.record(swap.move)
                if search.size < search.k:  # signs made others leave
                    search.add_up_to(search.k, tabu.cannot_enter)
                known = search.mark_visited("walk")
                if neighbourhood.value < value - search.gain_tol:
                    best, value, idle, better = neighbourhood.snapshot(), neighbourhood.value, 0, True
                elif known:
                    break
        except DependentError:
            search.wasted += search.k
            break
    neighbourhood.restore(best)
    if better:  # stopped before it descended from there
        search.attempt(search.descend, value)
        yield "walk"
