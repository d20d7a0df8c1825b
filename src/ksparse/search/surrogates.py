"""Searches on an easier problem: second-order models of a costly loss, or some of the columns of the data.

A model is a quadratic, on which hundreds of swaps take the time of one evaluation of the loss itself. It is accurate
only near its point. So the support that it proposes is evaluated exactly, and kept if the loss itself falls; then the
next model is made there.

One product with an operator gives the gradient of all variables, but only a single column. So the search runs among the
columns of the start and those whose gradient is largest relative to their length. Where it ends, the columns with the
largest gradients are added, until none of them is new.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ksparse.search.candidate import Candidate, Improvements, SearchOutcome
from ksparse.search.local_search import descend_from
from ksparse.search.neighbourhoods import DependentError, GradientNeighbourhood
from ksparse.search.problem import NEGLIGIBLE, SupportProblem, forced_first
from ksparse.search.starts import random_restart
from ksparse.search.strategy import choose_strategy, model_problem, without_updates
from ksparse.util.arrays import Vector

MAX_MODELS = 25  # second-order models in a row, each at the point found on the last one
REPLACED = (0.5, 1.0)  # share of the support that a restart replaces (benchmarks/knob.py)
SMALL_DATA = 2**20  # entries of the data up to which models cost little: then restarts are twice as many
PRICING_ROUNDS = 8  # times that columns with large gradients may be added
COLUMNS_PER_VARIABLE = 4  # columns read on demand for each variable of the support (benchmarks/scale.py)

Search = Callable[[SupportProblem, Candidate, np.random.Generator], Improvements]


def search_on_models(problem: SupportProblem, start: Candidate, rng: np.random.Generator) -> Improvements:
    """Yield better and better candidates: descents on models, from the start and from random restarts."""
    settings, loss = problem.settings, problem.loss
    small = not loss.evaluation_is_costly and (loss.entries or 0) < SMALL_DATA
    best = _descend_on_models(problem, start)
    yield "models", SearchOutcome(best)
    for _ in range((2 if small else 1) * settings.restarts):
        begin = _restart(problem, best, rng)
        tried = begin if begin is None or problem.expired else _descend_on_models(problem, begin)
        if tried is not None and tried.value < best.value:
            best = tried
            yield "restart on models", SearchOutcome(best)


def _restart(problem: SupportProblem, best: Candidate, rng: np.random.Generator) -> Candidate | None:
    """Return the best point on a random support; if C has no point there, on one with half as many changes."""
    least, most = REPLACED
    while True:
        found = problem.evaluate(random_restart(problem, best.support, rng, (least, most)), best)
        if found is not None or most * best.support.size <= 2 or problem.expired:
            return found
        least, most = least / 2, most / 2


def _descend_on_models(problem: SupportProblem, best: Candidate) -> Candidate:
    """Descend on models, each at the point found on the last one, until none improves it or one was used before.

    On its own support a model has its minimum at its point, so that a search starts there without a solve.
    """
    known = problem.cache.modelled
    for _ in range(MAX_MODELS):
        key = problem.asked, best.support.tobytes()
        model = None if key in known else model_problem(problem, best.full(problem.n))
        known.add(key)
        if model is None or problem.expired:
            break
        better = descend_from(choose_strategy(model).search(model), best, problem)
        if better.value >= best.value - problem.gain_tol(best.value):
            break
        best = better
    return best


def search_on_columns(
    problem: SupportProblem, start: Candidate, rng: np.random.Generator, search: Search
) -> Improvements:
    """Yield better and better candidates among columns with large gradients; `search` runs on each problem."""
    best, columns = start, start.support[:0]
    perfect = problem.loss.least + NEGLIGIBLE * abs(problem.loss.value(np.zeros(problem.n)))
    at, length = GradientNeighbourhood(problem), np.maximum(problem.loss.lengths(), 1e-300)
    for _ in range(PRICING_ROUNDS):
        if problem.expired or best.value <= perfect:
            return
        at.move_to(best)
        wanted = np.union1d(forced_first(problem, best.support), _price_columns(problem, at, length))
        wanted = problem.rules.closure(wanted)
        if np.isin(wanted, columns).all():
            return
        columns = np.union1d(columns, wanted)
        restricted = restricted_to_columns(problem, columns)
        begin = restricted.evaluate(np.searchsorted(columns, forced_first(problem, best.support)))
        if begin is None:
            continue
        for name, outcome in _search_or_descend(restricted, begin, rng, search):
            if outcome.best.value < best.value:
                best = outcome.best  # in the indices of the restricted problem
                at_lower, at_upper = columns[best.at_lower], columns[best.at_upper]
                best = replace(best, support=columns[best.support], at_lower=at_lower, at_upper=at_upper)
                yield f"{name}, {columns.size} columns", SearchOutcome(best, outcome.swaps)


def _price_columns(problem: SupportProblem, at: GradientNeighbourhood, length: Vector | float) -> Vector:
    """Return the variables with the largest ratio of gradient to column length, without those of the wrong sign."""
    gradient = at.reduced_gradient()
    ranks = np.where(problem.allowed, np.abs(gradient), 0.0) / length
    ranks[at.support] = 0.0
    if problem.linear is not None:
        low, high = problem.linear.lower, problem.linear.upper
        ranks[((low >= 0) & (gradient >= 0)) | ((high <= 0) & (gradient <= 0))] = 0.0
    count = min(max(COLUMNS_PER_VARIABLE * problem.k, problem.settings.entering), ranks.size)
    highest = np.argpartition(-ranks, count - 1)[:count]
    return np.asarray(highest[ranks[highest] > 0])


def _search_or_descend(
    problem: SupportProblem, begin: Candidate, rng: np.random.Generator, search: Search
) -> Improvements:
    """Yield what a search finds; if variables are too nearly dependent for it, what a descent finds."""
    try:
        yield from search(problem, begin, rng)
    except DependentError:
        descent = without_updates(problem).search(problem)
        yield "descent", SearchOutcome(descend_from(descent, begin), descent.swaps)


def restricted_to_columns(problem: SupportProblem, columns: Vector) -> SupportProblem:
    """Return the problem with all variables outside `columns` fixed at 0, with room for all rows of its H."""
    settings, n = problem.settings, columns.size
    return SupportProblem.of(
        problem.loss.restrict(columns), problem.C.restrict(columns), n, problem.asked,
        forced_in=np.flatnonzero(np.isin(columns, problem.forced)),
        forced_out=np.flatnonzero(~problem.allowed[columns]), floor=problem.floors.size[columns],
        deadline=problem.deadline, most=problem.k, rules=problem.rules.on(columns),
        settings=replace(settings, memory=max(settings.memory, 8 * n * max(n, problem.k))),
    )  # fmt: skip
