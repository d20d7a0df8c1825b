"""How a problem is searched: chosen once, from what its pieces can do."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ksparse.search.active_set import ActiveSetNeighbourhood
from ksparse.search.local import LocalSearch
from ksparse.search.neighbourhoods import Gradient, Neighbourhood, Priced, Rayleigh, Rowwise
from ksparse.search.problem import SupportProblem
from ksparse.util.arrays import Vector


@dataclass(frozen=True)
class Strategy:
    """Which parts of the search a problem gets."""

    name: str  # for `verbose`
    neighbourhood: (
        str | None
    )  # "updated", "priced", "rayleigh", "rowwise", "gradient"; None where columns are too dear to rank moves
    changes: int  # of a support in one search
    aside: float = math.inf  # the same for other starts, which come beside them
    perturbs: bool = True  # whether a descent is followed by ways out of its local optimum
    first_order: bool = True  # whether first-order starts come too, where something else has begun the search
    by_models: bool = False  # whether second-order models choose what is solved
    by_columns: bool = False  # whether the search is among columns that gradients point at, after hard thresholding
    units: int = 0  # searches more than one, where the user does not say
    wanders: bool = True  # whether chance decides where perturbations lead, so that another seed is another search

    def search(self, problem: SupportProblem) -> LocalSearch:
        """A local search of this kind."""
        assert self.neighbourhood is not None
        return LocalSearch(problem, _stand(self.neighbourhood, problem), self.changes, self.aside)


def _stand(name: str, problem: SupportProblem) -> Neighbourhood:
    if name == "updated":
        depth = max(3, int(problem.pieces.settings.depth * problem.k))
        return ActiveSetNeighbourhood(problem, min(problem.rows_in_memory, problem.k + depth))
    if problem.pieces.wide is not None:
        return Rowwise(problem, problem.pieces.wide)
    kinds: dict[str, Callable[[SupportProblem], Neighbourhood]] = {
        "priced": Priced,
        "rayleigh": Rayleigh,
        "gradient": Gradient,
    }
    return kinds[name](problem)


def choose_strategy(problem: SupportProblem) -> Strategy:
    """The best that the pieces allow."""
    pieces, settings, k = problem.pieces, problem.pieces.settings, problem.k
    if pieces.hidden or problem.cramped:
        first = (
            pieces.loss.hides_columns
        )  # each step of it is a pass, where data are read; an operator has a cheaper one
        name = f"{'hard thresholding, then ' if first else ''}among columns that gradients point at"
        return Strategy(name, None, 0, by_columns=True, first_order=first)
    if pieces.spectral:
        return Strategy(
            "Rayleigh quotients from power iterations", "rayleigh", settings.changes, perturbs=False, first_order=False
        )
    if problem.updatable:
        longer = settings.walked_more if problem.walks else 1.0
        growing = settings.changes_few + settings.changes_squared * k**2
        changes = min(longer * min(settings.changes, growing), settings.changes_each * max(5, k))
        return Strategy("exact gains on an updated factorisation", "updated", int(changes), first_order=False)
    return without_updates(problem)


def without_updates(problem: SupportProblem) -> Strategy:
    """The best where a factorisation cannot be updated, or cannot be trusted."""
    pieces, settings = problem.pieces, problem.pieces.settings
    if pieces.wide is not None:
        changes = settings.changes if pieces.direct else settings.changes_wide
        kind = "gains of rows" if pieces.direct else "gains of rows on second-order models"
        return Strategy(kind, "rowwise", changes, settings.aside * changes, first_order=False)
    if not pieces.modelled:
        units = (
            settings.restarts if pieces.treated_as_convex else 1
        )  # there each value is the best of several starts already
        return Strategy(
            "gradients",
            "gradient",
            settings.changes_dear,
            settings.aside * settings.changes_dear,
            units=units,
            wanders=False,
        )
    # on a set that only projects Newton's method has no steps to take
    changes = (
        settings.changes_solved
        if pieces.direct
        else settings.changes_smooth
        if pieces.priced
        else settings.changes_dear
    )
    if (pieces.loss.evaluation_is_costly or (pieces.loss.entries or 0) >= settings.large) and modelled(
        problem, np.zeros(problem.n)
    ) is not None:
        return Strategy("second-order models", "priced", changes, first_order=False, by_models=True)
    kind = "gains bounded by multipliers" if pieces.certifying else "gains on second-order models"
    return Strategy(kind, "priced", changes, settings.aside * changes)


def modelled(problem: SupportProblem, x: Vector) -> SupportProblem | None:
    """The problem with the second-order model at x in place of its loss; None where that is no easier."""
    pieces = problem.pieces
    model = None if pieces.model is not None else pieces.model_at(x)
    twin = None if model is None else problem.with_model(model)
    return twin if twin is not None and twin.updatable else None
