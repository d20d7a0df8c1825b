"""Search for smooth losses that are not quadratic and dear: on the second-order model at the best point, which is then taken anew.

A model is a quadratic, for which hundreds of exchanges cost what one exact solve of the loss itself does. It is wrong away from its point;
so what it proposes is solved exactly, and kept only where the loss itself falls.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from ksparse.search.candidate import Candidate, SearchOutcome
from ksparse.search.local import descended
from ksparse.search.neighbourhoods import DependentError
from ksparse.search.perturb import explore
from ksparse.search.problem import SupportProblem
from ksparse.search.starts import kicked
from ksparse.search.strategy import choose_strategy, modelled

MAX_MODELS = 25  # second-order models in a row, each at the answer of the last
REPLACED = (0.5, 1.0)  # share of the support that a restart replaces (benchmarks/knob.py)
SMALL_DATA = 2**20  # entries up to which models cost little, and restarts are twice as many


def explore_by_models(
    problem: SupportProblem, start: Candidate, rng: np.random.Generator
) -> Iterator[tuple[str, SearchOutcome]]:
    """Better and better answers: descents on models, from the start and from kicked supports.

    Where a model is dear beside moves on it, or C leaves few kicks a point, a wider search comes between, on the model at the point where
    the descents ended.
    """
    settings, loss = problem.settings, problem.loss
    small = not loss.evaluation_is_costly and (loss.entries or 0) < SMALL_DATA
    best = _descended(problem, start)
    yield "models", SearchOutcome(best)
    if not (small and problem.can.signs_and_one_equation):
        for name, found in _explored_on_model(problem, best, rng):
            best = found.best
            yield name, found
    for _ in range((2 if small else 1) * settings.restarts):
        begin = _kicked(problem, best, rng)
        tried = begin if begin is None or problem.expired else _descended(problem, begin)
        if tried is not None and tried.value < best.value:
            best = tried
            yield "restart by models", SearchOutcome(best)


def _kicked(problem: SupportProblem, best: Candidate, rng: np.random.Generator) -> Candidate | None:
    """The best point on a kicked support; where C has none there, on one that is kicked half as far."""
    least, most = REPLACED
    while True:
        found = problem.evaluate(kicked(problem, best.support, rng, (least, most)), best)
        if found is not None or most * best.support.size <= 2 or problem.expired:
            return found
        least, most = least / 2, most / 2


def _explored_on_model(
    problem: SupportProblem, best: Candidate, rng: np.random.Generator
) -> Iterator[tuple[str, SearchOutcome]]:
    """What a whole search on the model at the best point meets, where that is better indeed."""
    twin = modelled(problem, best.full(problem.n))
    if twin is None or problem.expired:
        return
    with suppress(DependentError):  # the model's variables, not the loss's: what was found on it counts
        for name, found in explore(choose_strategy(twin).search(twin), best, rng):
            tried = problem.evaluate(found.best.support, best)
            if tried is not None and tried.value < best.value:
                best = tried
                yield f"{name}, on a model", SearchOutcome(best, found.swaps)


def _descended(problem: SupportProblem, best: Candidate) -> Candidate:
    """Descents on models, each taken at the answer of the last, until one brings nothing, or another has been there before.

    On its own support a model has its least value where it was taken: there a search can stand without a solve.
    """
    known = problem.cache.modelled
    for _ in range(MAX_MODELS):
        key = problem.asked, best.support.tobytes()
        twin = None if key in known else modelled(problem, best.full(problem.n))
        known.add(key)
        if twin is None or problem.expired:
            break
        better = descended(choose_strategy(twin).search(twin), best, problem)
        if better.value >= best.value - problem.gain_tol(best.value):
            break
        best = better
    return best
