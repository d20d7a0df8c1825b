"""How a problem is searched: chosen once, from what its loss and set can do."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ksparse.data import design_of
from ksparse.search.active_set import ActiveSetNeighbourhood
from ksparse.search.local_search import LocalSearch
from ksparse.search.neighbourhoods import (
    GradientNeighbourhood,
    Neighbourhood,
    RowNeighbourhood,
    SecondOrderNeighbourhood,
)
from ksparse.search.principal_components import RayleighNeighbourhood
from ksparse.search.problem import SupportProblem
from ksparse.search.settings import SearchSettings
from ksparse.util.arrays import Vector

# Limits of the work of one search, in changes of a support, if `settings.changes` has its default. They take about the
# same time for each kind of evaluation.
SMALL_K_WORK, K_SQUARED_WORK = 700, 0.125  # the limit grows as 700 + 0.125·k² up to `settings.changes` (table5.py)
WORK_PER_VARIABLE = 40  # the limit for each variable of the support
WALK_WORK = 1.25  # factor of the limit with walks: a step of a walk costs less than another swap (table5.py)
QP_WORK = 400  # the limit if a quadratic program evaluates a support
NEWTON_WORK = 300  # the limit for Newton's method
ROW_MODEL_WORK = 100  # the limit for Newton's method on all classes at once (common_features.py)
FIRST_ORDER_WORK = 60  # the limit for a first-order method
START_WORK_SHARE = 0.25  # share of the limit that is added for other starts, where each change is costly

NeighbourhoodMaker = Callable[[SupportProblem], Neighbourhood]


@dataclass(frozen=True)
class Strategy:
    """The parts of the search that a problem gets."""

    name: str  # for `verbose`
    neighbourhood: NeighbourhoodMaker | None  # None if columns cost too much to rank moves by them
    work: float = 0  # changes of a support in one search
    start_work: float = math.inf  # further changes for other starts
    perturbs: bool = True  # whether a descent is followed by perturbations
    first_order: bool = True  # whether first-order starts come too if there are others
    by_models: bool = False  # whether second-order models choose the supports that are evaluated
    by_columns: bool = False  # whether the search is restricted to the columns with the largest gradients
    wanders: bool = True  # whether perturbations are random, so that another seed is another search

    def search(self, problem: SupportProblem) -> LocalSearch:
        """Return a new local search."""
        assert self.neighbourhood is not None
        return LocalSearch(problem, self.neighbourhood(problem), int(self.work), self.start_work)


def _rows(problem: SupportProblem) -> Neighbourhood:
    assert problem.row_problem is not None
    return RowNeighbourhood(problem, problem.row_problem)


def choose_strategy(problem: SupportProblem) -> Strategy:
    """Return the best strategy that the loss and the set allow."""
    settings, k = problem.settings, problem.k
    if problem.columns_on_demand or _held_rows_too_few(problem):
        # a step of hard thresholding is a pass over blocks of data; an operator has it cheaper
        first = problem.loss.hides_columns
        name = f"{'hard thresholding, then ' if first else ''}among the columns with the largest gradients"
        return Strategy(name, None, by_columns=True, first_order=first)
    if problem.can.spectral:
        name = "Rayleigh quotients from power iterations"
        return Strategy(name, RayleighNeighbourhood, settings.changes, perturbs=False, first_order=False)
    if problem.updatable:
        longer = WALK_WORK if problem.walks else 1.0
        scale = settings.changes / SearchSettings.changes
        growing = scale * (SMALL_K_WORK + K_SQUARED_WORK * k**2)
        work = min(longer * min(settings.changes, growing), scale * WORK_PER_VARIABLE * max(5, k))
        return Strategy("exact gains on an updated KKT inverse", ActiveSetNeighbourhood, int(work), first_order=False)
    return without_updates(problem)


def without_updates(problem: SupportProblem) -> Strategy:
    """Return the best strategy if a KKT inverse cannot be updated, or variables are too nearly dependent for it."""
    settings, can = problem.settings, problem.can
    scale = settings.changes / SearchSettings.changes
    if problem.row_problem is not None:
        work = settings.changes if can.exact_evaluation else scale * ROW_MODEL_WORK
        name = "gains of rows" if can.exact_evaluation else "gains of rows on second-order models"
        return Strategy(name, _rows, work, START_WORK_SHARE * work, first_order=False)
    if not can.has_second_order_models:
        work = scale * FIRST_ORDER_WORK
        return Strategy("gradients", GradientNeighbourhood, work, START_WORK_SHARE * work, wanders=False)
    # Newton's method has no steps on a set given only by its projection
    work = scale * (QP_WORK if can.exact_evaluation else NEWTON_WORK if can.has_multipliers else FIRST_ORDER_WORK)
    costly = problem.loss.evaluation_is_costly or (problem.loss.entries or 0) >= settings.large
    if costly and model_problem(problem, np.zeros(problem.n)) is not None:
        return Strategy("second-order models", SecondOrderNeighbourhood, work, first_order=False, by_models=True)
    name = "gains bounded by multipliers" if can.gains_are_bounds else "gains on second-order models"
    return Strategy(name, SecondOrderNeighbourhood, work, START_WORK_SHARE * work)


def model_problem(problem: SupportProblem, x: Vector) -> SupportProblem | None:
    """Return the problem with the second-order model at x in place of its loss; None if that is no easier."""
    model = None if problem.model is not None else problem.can.model_at(x)
    of_model = None if model is None else problem.with_changes(model=model)
    return of_model if of_model is not None and of_model.updatable else None


def _held_rows_too_few(problem: SupportProblem) -> bool:
    """Return whether so few rows of H fit in memory that a search would often pass over all data for one."""
    squares, settings = problem.loss.squares(), problem.settings
    held = settings.memory // (8 * problem.n)
    if problem.floors.any or held >= min(problem.n, max(2 * problem.k, settings.entering)):
        return False
    return squares is not None and design_of(squares.A).pass_is_costly
