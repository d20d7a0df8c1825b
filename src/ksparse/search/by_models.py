"""Search for smooth losses that are not quadratic and dear: on the second-order model at the best point, which is then taken anew.

A model is a quadratic, for which hundreds of exchanges cost what one exact solve of the loss itself does. It is wrong away from its point;
so what it proposes is solved exactly, and kept only where the loss itself falls.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from ksparse.search.candidate import Candidate, Found
from ksparse.search.local import descended
from ksparse.search.neighbourhoods.base import DependentError
from ksparse.search.perturb import explore
from ksparse.search.problem import SupportProblem
from ksparse.search.starts import kicked
from ksparse.search.strategy import choose_strategy, modelled


def explore_by_models(problem: SupportProblem, start: Candidate, rng: np.random.Generator) -> Iterator[tuple[str, Found]]:
    """Better and better answers: descents on models, a wider search on the last one, and descents again from kicked supports."""
    best = _descended(problem, start)
    yield "models", Found(best)
    twin = modelled(problem, best.full(problem.n))
    at = None if twin is None else twin.evaluate(best.support)
    if twin is None or at is None or problem.expired:
        return
    with suppress(DependentError):  # the model's variables, not the loss's: what was found on it counts
        for name, found in explore(choose_strategy(twin).search(twin), at, rng):
            tried = problem.evaluate(found.best.support, best)
            if tried is not None and tried.value < best.value:
                best = tried
                yield f"{name}, on a model", Found(best, found.swaps)
    settings = problem.pieces.settings
    small = not problem.pieces.loss.dear and (problem.pieces.loss.entries or 0) < settings.cached
    for _ in range(settings.kicked_models if small else settings.restarts):
        begin = problem.evaluate(kicked(problem, best.support, rng), best)
        tried = begin if begin is None or problem.expired else _descended(problem, begin)
        if tried is not None and tried.value < best.value:
            best = tried
            yield "restart by models", Found(best)


def _descended(problem: SupportProblem, best: Candidate) -> Candidate:
    """Descents on models, each taken at the answer of the last, until one brings nothing."""
    for _ in range(problem.pieces.settings.models):
        twin = modelled(problem, best.full(problem.n))
        if twin is None or problem.expired:
            break
        at = twin.evaluate(best.support)
        if at is None:  # of a perfect fit no curvature is left
            break
        on_model = descended(choose_strategy(twin).search(twin), at)
        tried = problem.evaluate(on_model.support, best)
        if tried is None or tried.value >= best.value - problem.pieces.tolerance(best.value):
            break
        best = tried
    return best
