"""A search as a whole: a descent, or better and better answers by the strategy's perturbations; and several of them beside each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain

import numpy as np

from ksparse.search import perturb
from ksparse.search.by_models import explore_by_models
from ksparse.search.candidate import Candidate, SearchOutcome
from ksparse.search.local import descended
from ksparse.search.neighbourhoods import DependentError
from ksparse.search.problem import SupportProblem
from ksparse.search.starts import Start, feasible_candidate, kicked, other_supports
from ksparse.search.strategy import Strategy
from ksparse.util.arrays import Vector
from ksparse.util.resources import OutOfTimeError, deadline_scope, one_thread, parallel_map


def local_search(problem: SupportProblem, strategy: Strategy, candidate: Candidate) -> SearchOutcome:
    """A descent from a candidate; itself where moves cannot be ranked."""
    if strategy.neighbourhood is None:
        return SearchOutcome(candidate)
    search = strategy.search(problem)
    best = descended(search, candidate)
    return SearchOutcome(best, search.swaps)


def explored(
    problem: SupportProblem,
    strategy: Strategy,
    start: Candidate,
    rng: np.random.Generator,
    others: Iterable[Vector] | None = None,
) -> Iterator[tuple[str, SearchOutcome]]:
    """Better and better answers from a start, by the strategy's perturbations, and from what the relaxation suggests.

    Under signs and one equation alone a first search finds as good without.
    """
    if strategy.by_models:
        return explore_by_models(problem, start, rng)
    drawn = () if others is None and problem.can.signs_and_one_equation else other_supports(problem, start.support, rng)
    return perturb.explore(strategy.search(problem), start, rng, chain(drawn, others or ()))


def searches(
    problem: SupportProblem,
    strategy: Strategy,
    begin: Candidate,
    seeds: list[np.random.SeedSequence],
    others: list[list[Vector]],
    n_jobs: int | None,
) -> list[SearchOutcome | None]:
    """Whole searches beside each other, which do not know of each other: what comes of them does not depend on n_jobs."""

    def one(seed: np.random.SeedSequence, others: list[Vector]) -> SearchOutcome | None:
        own, rng = problem.but(own_cache=True), np.random.default_rng(seed)
        with deadline_scope(problem.deadline):  # threads do not inherit it
            try:
                return None if own.expired else _again(own, strategy, begin, rng, others)
            except OutOfTimeError:
                return None

    return parallel_map(lambda given: one(*given), list(zip(seeds, others, strict=True)), n_jobs)


def _again(
    problem: SupportProblem, strategy: Strategy, begin: Candidate, rng: np.random.Generator, others: list[Vector]
) -> SearchOutcome | None:
    """One more search: from the same beginning where chance decides what follows, else from a kicked support."""
    if not strategy.perturbs or not strategy.wanders:
        candidate = feasible_candidate(problem, Start("kicked", kicked(problem, begin.support, rng)))
        return None if candidate is None else local_search(problem, strategy, candidate)
    best, swaps = begin, 0
    with one_thread(), suppress(DependentError, OutOfTimeError):  # what was found before is kept
        for _, found in explored(problem, strategy, begin, rng, others):
            best, swaps = found.best, swaps + found.swaps
    return SearchOutcome(best, swaps)
