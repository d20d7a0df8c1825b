"""Exchanges for smooth losses that are not quadratic: on the second-order model at the best point, which is then taken anew.

A model is a quadratic, for which hundreds of exchanges cost what one exact solve of the loss itself does. It is wrong away from its point;
so what it proposes is solved exactly, and kept only where the loss itself falls.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from ksparse.search.exchange import DependentError, descend
from ksparse.search.floating import explore
from ksparse.search.search import Found
from ksparse.search.starts import kicked
from ksparse.search.task import Candidate, Task, tolerance

ROUNDS = 25  # models that are taken anew
RESTARTS = 4  # from kicked supports


def modelled(task: Task, at: Candidate) -> Task | None:
    """The task with the second-order model at a candidate in place of its loss; None where exchanges do not fit it."""
    model = task.ranking_model(at) if task.model is None else None
    twin = None if model is None else task.with_model(model)
    return twin if twin is not None and twin.exchangeable else None


def explore_by_models(task: Task, start: Candidate, rng: np.random.Generator) -> Iterator[tuple[str, Found]]:
    """Better and better answers: descents on models, a wider search on the last one, and descents again from kicked supports."""
    best = _descended(task, start)
    yield "models", Found(best, 0, False)
    twin = modelled(task, best)
    if twin is None or task.expired:
        return
    with suppress(DependentError):  # the model's members, not the loss's: what was found on it counts
        for name, found in explore(twin, _in(twin, best), rng):
            tried = task.evaluate(found.best.support, best)
            if tried is not None and tried.value < best.value:
                best = tried
                yield f"{name}, on a model", Found(best, found.swaps, False)
    for _ in range(RESTARTS):
        begin = task.evaluate(kicked(task, best.support, rng), best)
        tried = begin if begin is None or task.expired else _descended(task, begin)
        if tried is not None and tried.value < best.value:
            best = tried
            yield "restart by models", Found(best, 0, False)


def _descended(task: Task, best: Candidate) -> Candidate:
    """Descents on models, each taken at the answer of the last, until one brings nothing."""
    for _ in range(ROUNDS):
        twin = modelled(task, best)
        if twin is None or task.expired:
            break
        tried = task.evaluate(descend(twin, _in(twin, best)).support, best)
        if tried is None or tried.value >= best.value - tolerance(task, best.value):
            break
        best = tried
    return best


def _in(twin: Task, at: Candidate) -> Candidate:
    """A candidate as the model sees it: its value there is that of the same support."""
    found = twin.evaluate(at.support)
    assert found is not None  # the same set on the same support
    return found
