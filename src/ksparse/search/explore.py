"""The search over supports: cheap starts, a whole search from them, further searches from other seeds, and a proof.

`SupportSearch` is one call. `search_from` is a whole search from one candidate, by the strategy that the problem
allows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
from numpy.random import SeedSequence

from ksparse.errors import InfeasibleError, UnboundedError, UndecidedError
from ksparse.firstorder.problem import Stopping
from ksparse.losses import Loss
from ksparse.result import Status
from ksparse.search.candidate import Candidate, Improvements, Incumbent, SearchOutcome
from ksparse.search.enumeration import describe_constraints, enumerate_supports
from ksparse.search.local_search import LocalSearch, descend_from
from ksparse.search.neighbourhoods import DependentError
from ksparse.search.perturbation import iterated_local_search
from ksparse.search.polish import slow_to_project
from ksparse.search.problem import SupportProblem, attains_least
from ksparse.search.proof import prove_swap_optimality
from ksparse.search.starts import (
    Start,
    cheap_starts,
    feasible_candidate,
    feasible_support,
    few_above_floor,
    first_order_starts,
    given_starts,
    other_supports,
    random_restart,
)
from ksparse.search.strategy import Strategy, choose_strategy, without_updates
from ksparse.search.surrogates import search_on_columns, search_on_models
from ksparse.util.arrays import Array, Vector, to_float64
from ksparse.util.progress import NULL_BAR, Bar, bar
from ksparse.util.resources import OutOfTimeError, StoppedError, deadline_scope, one_thread, parallel_map

PARALLEL_SEARCHES = 8  # in a round: a fixed number, so that the answer does not depend on n_jobs
SEARCH_TIME_SHARE = 0.8  # of a time limit, for further searches if no effort is given: a proof comes after
STOPS = (StopIteration, StoppedError, KeyboardInterrupt, OutOfTimeError)


@dataclass(frozen=True)
class SearchOptions:
    """What the user asked of the search."""

    # whole searches, 0 for a quick one; None for one, or with a time limit until a round brings nothing
    effort: int | None = None
    n_jobs: int | None = None  # threads
    seed: int = 0
    weights: list[float] | None = None  # of the penalised starts; None for a choice by the data


class _LeastValueError(Exception):
    """Raised to end a search at a value that is, to rounding, the lower bound that the loss claims."""


@dataclass
class SupportSearch:
    """One search: `run` leaves the best support found in `incumbent`."""

    problem: SupportProblem
    loss: Loss  # in the user's own arrays, as x0 and begin
    x0: Array | None
    begin: Array  # where first-order starts begin
    stopping: Stopping  # of those
    options: SearchOptions
    started: float
    notify: Callable[[Incumbent], None]
    incumbent: Incumbent = field(default_factory=Incumbent)
    bar: Bar = NULL_BAR

    def run(self) -> Status:
        """Search; return why it ended."""
        problem, status = self.problem, Status.STATIONARY
        try:
            with bar(f"search, k = {problem.asked}") as self.bar:
                if enumerate_supports(problem, self.incumbent, self.started):
                    self.notify(self.incumbent)
                    return Status.OPTIMAL if self.incumbent.proved else Status.STATIONARY
                self._search()
        except _LeastValueError:
            self.incumbent.proved, self.incumbent.bound = True, problem.loss.least
            return Status.OPTIMAL
        except STOPS as stop:
            status = stop_status(stop)
        except UnboundedError:  # on one support, so altogether
            status = Status.UNBOUNDED
        if self.incumbent.best is None:
            self.incumbent.best = fallback_point(problem, self.begin)
            # a point, but arithmetic found no best one on its support
            status = Status.NUMERICAL_TROUBLE if status.good else status
        if self.incumbent.best is None:
            in_time = " in the time given" if problem.expired else ""
            wanted = f"C = {problem.C} {describe_constraints(problem)}"
            raise InfeasibleError(f"no point of {wanted} was found{in_time} that meets every constraint")
        return final_status(problem, self.incumbent, status)

    def _search(self) -> None:
        """Evaluate x0, search from generated starts, descend from x0, prove the best, and search with other seeds."""
        seeds = SeedSequence(self.options.seed)
        rng = np.random.default_rng(seeds.spawn(1)[0])
        given = [self._from(start, None) for start in given_starts(self.problem, self.x0)]
        strategy, own = self._search_once(choose_strategy(self.problem), rng)
        for candidate in given:  # separately, so that x0 does not influence the main search
            if candidate is None:
                continue
            found = local_search(self.problem, strategy, candidate)
            self._record("x0, descended", found)
            if self.options.effort != 0 and (own is None or found.best.value < own.value):
                self._improve(strategy, found.best, rng)
        if self.options.effort == 0:
            return
        self._prove_or_improve()
        begin, proved = own or self.incumbent.best, self.incumbent.best
        if begin is not None and strategy.neighbourhood is not None:
            self._search_again(strategy, begin, seeds)
            if self.incumbent.best is not proved:
                self._prove_or_improve()

    def _search_once(self, strategy: Strategy, rng: np.random.Generator) -> tuple[Strategy, Candidate | None]:
        """Run the parts of the strategy in turn; return the best candidate and the strategy to continue with."""
        problem = self.problem
        # the only cheap start is descended from where the search improves it
        descends = strategy.neighbourhood is not None and (strategy.first_order or not strategy.perturbs)
        quick = self.options.effort == 0 and descends
        search = strategy.search(problem) if descends else None
        found = [self._from(start, search) for start in cheap_starts(problem, rng)]
        if not strategy.first_order and strategy.perturbs:
            strategy, better = self._improve(strategy, _best(found), rng)
            found.append(better)
        if problem.expired and self.incumbent.best is not None:
            raise OutOfTimeError
        wanted = _best(found) is None or self.options.weights is not None or (strategy.first_order and not quick)
        if wanted and not problem.can.spectral:
            found += self._first_order(strategy)
            if strategy.perturbs:
                strategy, better = self._improve(strategy, _best(found), rng)
                found.append(better)
        return strategy, _best(found)

    def _record(self, name: str, found: SearchOutcome) -> None:
        self.incumbent.record(name, found, time.perf_counter() - self.started)
        stage = len(self.incumbent.records)
        self.bar.update(stage, f"stage {stage}, best {self.incumbent.found.value:.6g}")
        self.notify(self.incumbent)
        if attains_least(self.problem, self.incumbent.found.value):  # a proof by itself
            raise _LeastValueError

    def _from(self, start: Start, search: LocalSearch | None) -> Candidate | None:
        """Evaluate a start, and descend from it if a search is given."""
        self.incumbent.iterations += start.iterations
        candidate = feasible_candidate(self.problem, start)
        if candidate is None:
            return None
        swaps = 0
        if search is not None:
            before = search.swaps
            candidate = descend_from(search, candidate)
            swaps = search.swaps - before
        self._record(start.name, SearchOutcome(candidate, swaps))
        return candidate

    def _first_order(self, strategy: Strategy) -> list[Candidate | None]:
        """Return what first-order starts lead to."""
        problem, incumbent = self.problem, self.incumbent
        search = strategy.search(problem) if strategy.neighbourhood is not None else None
        found: list[Candidate | None] = []
        try:
            weights, few = self.options.weights, strategy.by_columns
            for start in first_order_starts(problem, self.loss, self.begin, self.stopping, weights, few):
                if problem.expired and incumbent.best is not None:
                    raise OutOfTimeError
                found.append(self._from(start, search))
        except UndecidedError:  # arithmetic cannot find a projection: there are other starts
            if incumbent.best is None:
                raise
        return found

    def _improve(
        self, strategy: Strategy, start: Candidate | None, rng: np.random.Generator
    ) -> tuple[Strategy, Candidate | None]:
        """Search from a candidate; if variables are dependent, return the strategy that does without updates."""
        if start is None or (strategy.neighbourhood is None and not strategy.by_columns):
            return strategy, start
        best = start
        with one_thread():
            try:
                for name, found in search_from(self.problem, strategy, start, rng, quick=self.options.effort == 0):
                    best = found.best
                    self._record(name, found)
            except DependentError:
                strategy = without_updates(self.problem)
        return strategy, best

    def _prove_or_improve(self) -> None:
        best = self.incumbent.best
        if best is not None and not self.incumbent.proved and not self.problem.expired:
            self._record("all moves", prove_or_improve(self.problem, best))

    def _search_again(self, strategy: Strategy, begin: Candidate, seeds: SeedSequence) -> None:
        """Run more searches from the same start with other seeds, in rounds.

        Searches of one round are independent, so that the answer does not depend on n_jobs.
        """
        problem, deadline, effort = self.problem, self.problem.deadline, self.options.effort
        count = 0 if effort is None else effort - 1
        open_ended = effort is None and deadline < np.inf  # until a round brings nothing, or time is up
        last = self.started + SEARCH_TIME_SHARE * (deadline - self.started)
        limited = problem.with_changes(deadline=last) if open_ended else problem
        done = 0
        while done < count or open_ended:
            if problem.expired or (open_ended and done >= count and time.perf_counter() >= last):
                return
            best = self.incumbent.best
            round_ = seeds.spawn(PARALLEL_SEARCHES if done >= count else min(PARALLEL_SEARCHES, count - done))
            done += len(round_)
            on = problem if done <= count else limited
            for found in run_restarts(on, strategy, begin, round_, self.options.n_jobs):
                if found is not None:
                    self._record("search again", found)
            if done > count and self.incumbent.best is best:
                return


def local_search(problem: SupportProblem, strategy: Strategy, candidate: Candidate) -> SearchOutcome:
    """Descend from a candidate; return it unchanged if moves cannot be ranked."""
    if strategy.neighbourhood is None:
        return SearchOutcome(candidate)
    search = strategy.search(problem)
    return SearchOutcome(descend_from(search, candidate), search.swaps)


def search_from(
    problem: SupportProblem, strategy: Strategy, start: Candidate, rng: np.random.Generator, *,
    again: bool = False, quick: bool = False,
) -> Improvements:  # fmt: skip
    """Yield better and better candidates from a start and from other supports.

    A first search under signs and one equation alone does as well without other supports, as does a `quick` one; a
    search `again` uses them.
    """
    if strategy.by_columns:
        return search_on_columns(problem, start, rng, lambda on, at, rng: search_from(on, choose_strategy(on), at, rng))
    if strategy.by_models:
        return islice(search_on_models(problem, start, rng), 1 if quick else None)
    alone = quick or (problem.can.signs_and_one_equation and not again)
    others = () if alone else other_supports(problem, start.support, rng)
    return iterated_local_search(strategy.search(problem), start, rng, others, quick)


def run_restarts(
    problem: SupportProblem, strategy: Strategy, begin: Candidate, seeds: list[SeedSequence], n_jobs: int | None
) -> list[SearchOutcome | None]:
    """Run independent whole searches in threads, one per seed; the outcomes do not depend on n_jobs."""

    def one(seed: SeedSequence) -> SearchOutcome | None:
        own, rng = problem.with_changes(own_cache=True), np.random.default_rng(seed)
        with deadline_scope(problem.deadline):  # threads do not inherit it
            try:
                return None if own.expired else _restart(own, strategy, begin, rng)
            except OutOfTimeError:
                return None

    return parallel_map(one, seeds, n_jobs)


def _restart(
    problem: SupportProblem, strategy: Strategy, begin: Candidate, rng: np.random.Generator
) -> SearchOutcome | None:
    """Search once more: from the same start if chance decides what follows, else from a random restart."""
    if not strategy.perturbs or not strategy.wanders:
        candidate = feasible_candidate(problem, Start("restart", random_restart(problem, begin.support, rng)))
        return None if candidate is None else local_search(problem, strategy, candidate)
    best, swaps = begin, 0
    with one_thread(), suppress(DependentError, OutOfTimeError):  # what was found before is kept
        for _, found in search_from(problem, strategy, begin, rng, again=True):
            best, swaps = found.best, swaps + found.swaps
    return SearchOutcome(best, swaps)


def _best(found: list[Candidate | None]) -> Candidate | None:
    return min((each for each in found if each is not None), key=lambda candidate: candidate.value, default=None)


def prove_or_improve(problem: SupportProblem, best: Candidate) -> SearchOutcome:
    """Prove that no add, drop or swap improves a candidate; where one does, descend from there and try again."""
    moves, undecided = 0, None
    searched = problem.updatable and problem.can.signs_and_one_equation  # a search with exact gains ended here
    descended = searched or problem.can.gains_are_bounds  # then the proof finds what a descent would
    while not problem.expired:
        if not descended and not problem.can.spectral and problem.can.has_second_order_models:
            found = local_search(problem, without_updates(problem), best)  # over all variables
            best, moves = found.best, moves + found.swaps
            if best is undecided:
                break
        proof = prove_swap_optimality(problem, best)
        if proof.better is not None:
            best, moves, searched, descended = proof.better, moves + 1, False, False
        elif proof.proved or searched or not descended:
            return SearchOutcome(best, moves, proof.proved)
        else:  # a proof tries few moves one by one: a descent tries the most promising first
            undecided, descended = best, False
    return SearchOutcome(best, moves)


def stop_status(error: BaseException) -> Status:
    """Return the status of a run that one of STOPS ended."""
    if isinstance(error, KeyboardInterrupt):
        return Status.INTERRUPTED
    return Status.TIME_LIMIT if isinstance(error, OutOfTimeError) else Status.CALLBACK_STOP


def final_status(problem: SupportProblem, incumbent: Incumbent, status: Status) -> Status:
    """Return what a search that ended with `status` may claim of its best candidate."""
    if status is Status.STATIONARY and problem.expired:
        return Status.TIME_LIMIT
    return Status.SWAP_OPTIMAL if status is Status.STATIONARY and incumbent.proved else status


def fallback_point(problem: SupportProblem, begin: Array) -> Candidate | None:
    """Return a k-sparse point of C for when the search found none, or None.

    It is near `begin` unless variables have a minimum size or rules; only that of a loss of rows minimises φ on its
    support.
    """
    full, start = np.zeros(problem.n), to_float64(begin)
    if problem.row_problem is not None:
        return problem.evaluate(problem.forced)
    chosen = feasible_support(problem, start)
    supports = [] if chosen is None else [np.sort(problem.trim_to_rules(chosen))]
    if problem.floors.any:
        # supports whose best point was not found, though there may be a point; and the one that needs fewest variables
        undecided = [np.frombuffer(key, dtype=np.intp) for key in problem.cache.undecided]
        supports += [support for support in undecided if support.size <= problem.k]
        supports += few_above_floor(problem)
        # if sizes are on both sides of 0, it may take one more variable to balance the others
        if supports and supports[-1].size < problem.k:
            others = problem.inactive(supports[-1])[: problem.settings.tried]
            supports += [np.union1d(supports[-1], [i]).astype(np.intp) for i in others]
    if problem.rules.any:
        supports = [support for support in [*supports, *few_above_floor(problem)] if problem.allows(support)]
    for support in supports:
        x = _point_on(problem, support, start) if support.size or problem.C.contains(full) else None
        if x is not None:
            full[support] = x
            return Candidate.without_multipliers(support, x, problem.loss.value(full), problem.linear)
    return None


def _point_on(problem: SupportProblem, support: Vector, start: Vector) -> Vector | None:
    """Return a point of C on a support, by a linear program if that is faster than a projection."""
    if not support.size:
        return np.zeros(0)
    by_program = problem.floors.any or slow_to_project(problem, support)
    linear = problem.linear.on(support) if by_program and problem.linear is not None else None
    if linear is not None:
        return problem.floors.feasible(linear, support)
    with suppress(InfeasibleError):
        return np.asarray(problem.C.restrict(support).project(start[support]))
    return None
