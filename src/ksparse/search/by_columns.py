"""Search where the data hide their columns, and have too many to ask for each: among those that the gradient points at.

An operator's gradient is one product for all variables, a column one product for one of them. So hard thresholding finds a first support,
and the variables in question are those on it and some beside it whose gradient, over the length of their column, is largest. Their columns
are asked for; among them the search is as among any others. Where it ends the gradient points at other variables, or at none that are new.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ksparse.search.again import explored, local_search
from ksparse.search.candidate import Candidate, SearchOutcome
from ksparse.search.neighbourhoods import DependentError, GradientNeighbourhood
from ksparse.search.problem import NEGLIGIBLE, SupportProblem
from ksparse.search.strategy import choose_strategy, without_updates
from ksparse.util.arrays import Vector

PRICING_ROUNDS = 8  # times that gradients may point at other columns
COLUMNS_PER_VARIABLE = (
    4  # columns read for each variable of the support, if they are read on demand (benchmarks/scale.py)
)


def explore_by_columns(
    problem: SupportProblem, start: Candidate, rng: np.random.Generator
) -> Iterator[tuple[str, SearchOutcome]]:
    """Better and better answers, each among the columns that the last one's gradient points at and those before."""
    best, shown = start, start.support[:0]
    perfect = problem.loss.least + NEGLIGIBLE * abs(problem.loss.value(np.zeros(problem.n)))
    hood, length = GradientNeighbourhood(problem), np.maximum(problem.loss.lengths(), 1e-300)
    for _ in range(PRICING_ROUNDS):
        if problem.expired or best.value <= perfect:
            return
        hood.move_to(best)
        wanted = np.union1d(problem.forced_first(best.support), _pointed_at(problem, hood, length))
        wanted = problem.rules.closure(wanted)
        if np.isin(wanted, shown).all():
            return
        shown = np.union1d(shown, wanted)
        for name, found in _search_among(problem, shown, best, rng):
            if found.best.value < best.value:
                best = found.best
                yield f"{name}, {shown.size} columns", found


def _pointed_at(problem: SupportProblem, hood: GradientNeighbourhood, length: Vector | float) -> Vector:
    """The variables of the largest gradients, some for each place in the support; none that has none, or cannot go that way."""
    gradient = hood.reduced_gradient()
    ranks = np.where(problem.allowed, np.abs(gradient), 0.0) / length
    ranks[hood.support] = 0.0
    if problem.linear is not None:
        ranks[((problem.linear.lower >= 0) & (gradient >= 0)) | ((problem.linear.upper <= 0) & (gradient <= 0))] = 0.0
    count = min(max(COLUMNS_PER_VARIABLE * problem.k, problem.settings.entering), ranks.size)
    highest = np.argpartition(-ranks, count - 1)[:count]
    return np.asarray(highest[ranks[highest] > 0])


def _search_among(
    problem: SupportProblem, shown: Vector, at: Candidate, rng: np.random.Generator
) -> Iterator[tuple[str, SearchOutcome]]:
    """What a search finds that knows no other columns."""
    few = among(problem, shown)
    begin = few.evaluate(np.searchsorted(shown, problem.forced_first(at.support)))
    if begin is None:
        return
    strategy = choose_strategy(few)
    try:
        for name, found in explored(few, strategy, begin, rng):
            yield name, _seen_whole(found, shown)
    except DependentError:
        yield "descent", _seen_whole(local_search(few, without_updates(few), begin), shown)


def among(problem: SupportProblem, shown: Vector) -> SupportProblem:
    """The problem in some of its variables, the others 0; of so few all rows of H can be remembered."""
    settings, n = problem.settings, shown.size
    return SupportProblem.of(
        problem.loss.restrict(shown),
        problem.C.restrict(shown),
        n,
        problem.asked,
        forced_in=np.flatnonzero(np.isin(shown, problem.forced)),
        forced_out=np.flatnonzero(~problem.allowed[shown]),
        floor=problem.floors.size[shown],
        deadline=problem.deadline,
        settings=replace(settings, memory=max(settings.memory, 8 * n * max(n, problem.k))),
        most=problem.k,
        rules=problem.rules.on(shown),
    )


def _seen_whole(found: SearchOutcome, shown: Vector) -> SearchOutcome:
    """The same in the numbers of all variables; what was proved was proved among some."""
    best = found.best
    whole = replace(best, support=shown[best.support], at_lower=shown[best.at_lower], at_upper=shown[best.at_upper])
    return SearchOutcome(whole, found.swaps)
