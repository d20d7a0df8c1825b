"""How a problem is searched: chosen once, from what its pieces can do."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ksparse.data import design_of
from ksparse.search.active_set import ActiveSetNeighbourhood
from ksparse.search.local import LocalSearch
from ksparse.search.neighbourhoods import (
    GradientNeighbourhood,
    Neighbourhood,
    RowNeighbourhood,
    SecondOrderNeighbourhood,
)
from ksparse.search.principal_components import RayleighNeighbourhood
from ksparse.search.problem import SupportProblem
from ksparse.util.arrays import Vector

# work of one search if `settings.changes` has its default: about the same time for each kind of evaluation
SMALL_K_WORK, K_SQUARED_WORK = 700, 0.125  # small k + that times k², up to `settings.changes` (benchmarks/table5.py)
WORK_PER_VARIABLE = 40  # at most, for each variable of the support
WALK_WORK = 1.25  # times as many changes in walks: a step of a walk costs less than another swap (table5.py)
QP_WORK = 400  # evaluations by a quadratic program
NEWTON_WORK = 300  # by Newton's method
ROW_MODEL_WORK = 100  # by Newton's method on all classes at once (common_features.py)
FIRST_ORDER_WORK = 60  # by a first-order method
START_WORK_SHARE = 0.25  # more for other starts, where each change is costly


@dataclass(frozen=True)
class Strategy:
    """Which parts of the search a problem gets."""

    name: str  # for `verbose`
    neighbourhood: (
        str | None
    )  # "updated", "priced", "rayleigh", "rowwise", "gradient"; None where columns are too dear to rank moves
    changes: float  # of a support in one search
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
        return LocalSearch(problem, _stand(self.neighbourhood, problem), int(self.changes), self.aside)


def _stand(name: str, problem: SupportProblem) -> Neighbourhood:
    if name == "updated":
        depth = max(3, int(problem.settings.depth * problem.k))
        return ActiveSetNeighbourhood(problem, min(problem.max_held_rows, problem.k + depth))
    if problem.row_problem is not None:
        return RowNeighbourhood(problem, problem.row_problem)
    kinds: dict[str, Callable[[SupportProblem], Neighbourhood]] = {
        "priced": SecondOrderNeighbourhood,
        "rayleigh": RayleighNeighbourhood,
        "gradient": GradientNeighbourhood,
    }
    return kinds[name](problem)


def choose_strategy(problem: SupportProblem) -> Strategy:
    """The best that the pieces allow."""
    settings, k = problem.settings, problem.k
    if problem.can.columns_on_demand or _held_rows_too_few(problem):
        first = (
            problem.loss.hides_columns
        )  # each step of it is a pass, where data are read; an operator has a cheaper one
        name = f"{'hard thresholding, then ' if first else ''}among columns that gradients point at"
        return Strategy(name, None, 0, by_columns=True, first_order=first)
    if problem.can.spectral:
        return Strategy(
            "Rayleigh quotients from power iterations", "rayleigh", settings.changes, perturbs=False, first_order=False
        )
    if problem.updatable:
        longer = WALK_WORK if problem.walks else 1.0
        growing = settings.scaled(SMALL_K_WORK + K_SQUARED_WORK * k**2)
        changes = min(longer * min(settings.changes, growing), settings.scaled(WORK_PER_VARIABLE) * max(5, k))
        return Strategy("exact gains on an updated factorisation", "updated", int(changes), first_order=False)
    return without_updates(problem)


def without_updates(problem: SupportProblem) -> Strategy:
    """The best where a factorisation cannot be updated, or cannot be trusted."""
    settings = problem.settings
    if problem.row_problem is not None:
        changes = settings.changes if problem.can.exact_evaluation else settings.scaled(ROW_MODEL_WORK)
        kind = "gains of rows" if problem.can.exact_evaluation else "gains of rows on second-order models"
        return Strategy(kind, "rowwise", changes, START_WORK_SHARE * changes, first_order=False)
    if not problem.can.has_second_order_models:
        units = (
            settings.restarts if problem.can.treated_as_convex else 1
        )  # there each value is the best of several starts already
        return Strategy(
            "gradients",
            "gradient",
            settings.scaled(FIRST_ORDER_WORK),
            START_WORK_SHARE * settings.scaled(FIRST_ORDER_WORK),
            units=units,
            wanders=False,
        )
    # on a set that only projects Newton's method has no steps to take
    changes = (
        settings.scaled(QP_WORK)
        if problem.can.exact_evaluation
        else settings.scaled(NEWTON_WORK)
        if problem.can.has_multipliers
        else settings.scaled(FIRST_ORDER_WORK)
    )
    if (problem.loss.evaluation_is_costly or (problem.loss.entries or 0) >= settings.large) and modelled(
        problem, np.zeros(problem.n)
    ) is not None:
        return Strategy("second-order models", "priced", changes, first_order=False, by_models=True)
    kind = "gains bounded by multipliers" if problem.can.gains_are_bounds else "gains on second-order models"
    return Strategy(kind, "priced", changes, START_WORK_SHARE * changes)


def modelled(problem: SupportProblem, x: Vector) -> SupportProblem | None:
    """The problem with the second-order model at x in place of its loss; None where that is no easier."""
    model = None if problem.model is not None else problem.model_at(x)
    twin = None if model is None else problem.but(model=model)
    return twin if twin is not None and twin.updatable else None


def _held_rows_too_few(problem: SupportProblem) -> bool:
    """Return whether so few rows of H fit in memory that a search would read each again and again, a pass over all data."""
    squares, settings = problem.loss.squares(), problem.settings
    held = settings.memory // (8 * problem.n)
    if problem.floors.any or held >= min(problem.n, max(2 * problem.k, settings.entering)):
        return False
    return squares is not None and design_of(squares.A).pass_is_costly
