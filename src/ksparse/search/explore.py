"""The search: cheap diverse starts, local search from each, perturbations of the best, restarts, and a proof of what is left."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ksparse.errors import InfeasibleError, UnboundedError, UndecidedError
from ksparse.firstorder.problem import Stopping
from ksparse.losses import Loss
from ksparse.numerics.floors import feasible_above_floor
from ksparse.result import Status
from ksparse.search.again import explored, local_search, searches
from ksparse.search.by_columns import explore_by_columns
from ksparse.search.candidate import Candidate, Incumbent, SearchOutcome
from ksparse.search.elite import Elite
from ksparse.search.enumeration import asked, try_all
from ksparse.search.local import LocalSearch, descended
from ksparse.search.neighbourhoods import DependentError
from ksparse.search.polish import slow_to_project
from ksparse.search.problem import SupportProblem
from ksparse.search.proof import prove
from ksparse.search.starts import (
    Start,
    cheap_starts,
    feasible_candidate,
    feasible_support,
    few_above_floor,
    first_order_starts,
    given_starts,
)
from ksparse.search.strategy import Strategy, choose_strategy, without_updates
from ksparse.util.arrays import Array, Vector, to_float64
from ksparse.util.progress import NULL_BAR, Bar, bar
from ksparse.util.resources import OutOfTimeError, one_thread

PARALLEL_SEARCHES = (
    8  # in a round, independent of each other: a fixed number, so that the answer does not depend on n_jobs
)
SEARCH_TIME_SHARE = 0.8  # of a time limit, for further searches if no effort is given: a proof comes after


@dataclass(frozen=True)
class Plan:
    """What the user said of how to search."""

    effort: int | None = None  # whole searches; None for one, or with a time limit for as many as bring something in it
    n_jobs: int | None = None  # threads to run them in
    seed: int = 0
    weights: list[float] | None = None  # of the penalised starts; None for a choice by the data


@dataclass
class Exploration:
    """One search while it lasts."""

    problem: SupportProblem
    loss: Loss  # in the user's own arrays, as x0 and begin
    x0: Array | None
    begin: Array  # where first-order starts begin
    stopping: Stopping  # of those
    plan: Plan
    started: float
    tell: Callable[[Incumbent], None]
    incumbent: Incumbent = field(default_factory=Incumbent)
    bar: Bar = NULL_BAR

    def run(self) -> Status:
        """Leave the best support that is found in the incumbent; why it ended."""
        with bar(f"search, k = {self.problem.asked}") as self.bar:
            return self._run()

    def _run(self) -> Status:
        problem, status = self.problem, Status.STATIONARY
        try:
            if try_all(problem, self.incumbent, self.started):
                self.tell(self.incumbent)
                return Status.OPTIMAL if self.incumbent.proved else Status.STATIONARY
            self._search()
        except StopIteration:
            status = Status.CALLBACK_STOP
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        except UnboundedError:  # on one support, so altogether
            status = Status.UNBOUNDED
        except OutOfTimeError:
            status = Status.TIME_LIMIT
        if self.incumbent.best is None:
            self.incumbent.best = fallback_point(problem, self.begin)
            status = (
                Status.NUMERICAL_TROUBLE if status.good else status
            )  # a point, but no arithmetic that makes the best of its support
        if self.incumbent.best is None:
            in_time = " in the time given" if problem.expired else ""
            raise InfeasibleError(
                f"no point of C = {problem.C} {asked(problem)} was found{in_time} that meets every constraint"
            )
        return conclude(problem, self.incumbent, status)

    def _search(self) -> None:
        """A whole search, what x0 adds to it, a proof of what is left, and as many more searches as the plan has."""
        seeds = np.random.SeedSequence(self.plan.seed)
        rng = np.random.default_rng(seeds.spawn(1)[0])
        given = [
            candidate
            for start in given_starts(self.problem, self.x0)
            if (candidate := self._from(start, None)) is not None
        ]
        strategy, own = self._whole(choose_strategy(self.problem), rng)
        for candidate in given:  # as itself: a start that the user knows must not lead the search of our own astray
            better = self._descended(strategy, candidate)
            if own is None or better.value < own.value:
                self._perturb(strategy, better, rng)
        self._settle()
        begin, settled = own or self.incumbent.best, self.incumbent.best
        if begin is not None and strategy.neighbourhood is not None:
            self._more(strategy, begin, seeds)
            if self.incumbent.best is not settled:
                self._settle()

    def _whole(self, strategy: Strategy, rng: np.random.Generator) -> tuple[Strategy, Candidate | None]:
        """All parts of the strategy in turn; the best that came of them, and the strategy that could go on from there."""
        problem = self.problem
        # where the perturbations take the only cheap start from there, it need not descend twice
        descends = strategy.neighbourhood is not None and (strategy.first_order or not strategy.perturbs)
        search = strategy.search(problem) if descends else None
        found = [self._from(start, search) for start in cheap_starts(problem, rng)]
        if not strategy.first_order and strategy.perturbs:
            strategy, better = self._perturb(strategy, _best(found), rng)
            found.append(better)
        if problem.expired and self.incumbent.best is not None:
            raise OutOfTimeError
        if not problem.can.spectral and (_best(found) is None or self.plan.weights is not None or strategy.first_order):
            found += self._first_order(strategy)
            if strategy.perturbs:
                strategy, better = self._perturb(strategy, _best(found), rng)
                found.append(better)
        return strategy, _best(found)

    def _take(self, name: str, found: SearchOutcome) -> None:
        self.incumbent.record(name, found, time.perf_counter() - self.started)
        best = self.incumbent.found
        self.bar.update(len(self.incumbent.records), f"stage {len(self.incumbent.records)}, best {best.value:.6g}")
        self.tell(self.incumbent)

    def _from(self, start: Start, search: LocalSearch | None) -> Candidate | None:
        """Descend from one start; take it as it is where something else will improve it."""
        self.incumbent.iterations += start.iterations
        self.incumbent.products += start.products
        candidate = feasible_candidate(self.problem, start)
        if candidate is None:
            return None
        if search is None:
            self._take(start.name, SearchOutcome(candidate))
            return candidate
        before = search.swaps
        better = descended(search, candidate)
        self._take(start.name, SearchOutcome(better, search.swaps - before))
        return better

    def _descended(self, strategy: Strategy, candidate: Candidate) -> Candidate:
        found = local_search(self.problem, strategy, candidate)
        self._take("x0, descended", found)
        return found.best

    def _first_order(self, strategy: Strategy) -> list[Candidate | None]:
        problem, incumbent = self.problem, self.incumbent
        search = strategy.search(problem) if strategy.neighbourhood is not None else None
        found: list[Candidate | None] = []
        try:
            for start in first_order_starts(
                problem,
                self.loss,
                problem.C,
                self.begin,
                self.stopping,
                self.plan.weights,
                few=strategy.by_columns,
            ):
                if problem.expired and incumbent.best is not None:
                    raise OutOfTimeError
                found.append(self._from(start, search))
        except UndecidedError:  # a projection that arithmetic cannot find: there are other starts
            if incumbent.best is None:
                raise
        return found

    def _perturb(
        self, strategy: Strategy, start: Candidate | None, rng: np.random.Generator
    ) -> tuple[Strategy, Candidate | None]:
        """Ways out of the start's local optimum; where variables are too nearly dependent for that, the strategy that can do without."""
        if start is None or (strategy.neighbourhood is None and not strategy.by_columns):
            return strategy, start
        best = start
        with one_thread():
            try:
                by_columns = explore_by_columns(self.problem, start, rng) if strategy.by_columns else None
                for name, found in by_columns or explored(self.problem, strategy, start, rng):
                    best = found.best
                    self._take(name, found)
            except DependentError:
                strategy = without_updates(self.problem)
        return strategy, best

    def _settle(self) -> None:
        """A proof of the best, where there is none yet; better ones that it meets."""
        best = self.incumbent.best
        if best is not None and not self.incumbent.proved and not self.problem.expired:
            self._take("all exchanges", settle(self.problem, best))

    def _more(self, strategy: Strategy, begin: Candidate, seeds: np.random.SeedSequence) -> None:
        """More whole searches from the same beginning and other seeds, some at a time, the later ones from the best of the earlier too.

        Those that run together do not know of each other, so that the answer does not depend on n_jobs.
        """
        problem, together, deadline = self.problem, PARALLEL_SEARCHES, self.problem.deadline
        count = strategy.units + self.plan.effort - 1 if self.plan.effort is not None else strategy.units
        open_ended = self.plan.effort is None and deadline < np.inf  # until a round brings nothing, or time is up
        last = self.started + SEARCH_TIME_SHARE * (deadline - self.started)
        limited = problem.but(deadline=last) if open_ended else problem
        elite = Elite()
        elite.take(begin.value, begin.support)
        done = 0
        while done < count or open_ended:
            if problem.expired or (open_ended and done >= count and time.perf_counter() >= last):
                return
            best = self.incumbent.best
            round_ = seeds.spawn(together if done >= count else min(together, count - done))
            done += len(round_)
            others = [
                list(elite.children(problem.k, together, np.random.default_rng(seed.spawn(1)[0]))) for seed in round_
            ]
            for found in searches(
                problem if done <= count else limited, strategy, begin, round_, others, self.plan.n_jobs
            ):
                if found is not None:
                    elite.take(found.best.value, found.best.support)
                    self._take("search again", found)
            if done > count and self.incumbent.best is best:
                return


def _best(found: list[Candidate | None]) -> Candidate | None:
    return min(
        (candidate for candidate in found if candidate is not None), key=lambda candidate: candidate.value, default=None
    )


def settle(problem: SupportProblem, best: Candidate) -> SearchOutcome:
    """A proof that nothing is left to exchange; where that meets something better, a descent from there, and all over again."""
    strategy, moves = without_updates(problem), 0
    seen = (
        problem.updatable and problem.can.signs_and_one_equation
    )  # a search with exact gains ended here: what it did not look at the proof does
    while not problem.expired:
        if problem.can.has_second_order_models and not problem.can.spectral and not seen:  # with all variables in view
            found = local_search(problem, strategy, best)
            best, moves = found.best, moves + found.swaps
        proof = prove(problem, best)
        if proof.better is None:
            return SearchOutcome(best, moves, proof.proved)
        best, moves, seen = proof.better, moves + 1, False
    return SearchOutcome(best, moves)


def conclude(problem: SupportProblem, incumbent: Incumbent, status: Status) -> Status:
    """What may be said of the best candidate after a search that ended well, or did not."""
    if status is Status.STATIONARY and problem.expired:
        return Status.TIME_LIMIT
    return Status.SWAP_OPTIMAL if status is Status.STATIONARY and incumbent.proved else status


def fallback_point(problem: SupportProblem, begin: Array) -> Candidate | None:
    """Return a k-sparse point of C for when the search found none, or None.

    It is near the start unless variables have floors or rules; only that of a loss of rows minimises φ on its support.
    """
    full, start = np.zeros(problem.n), to_float64(begin)
    if problem.row_problem is not None:
        return problem.evaluate(problem.forced)
    chosen = feasible_support(problem, start)
    supports = [] if chosen is None else [np.sort(problem.trim_to_rules(chosen))]
    if (
        problem.floors.any
    ):  # and those that no best point was found on, though one may be there; and the one that needs fewest variables
        supports += [
            support
            for key in problem.cache.undecided
            if (support := np.frombuffer(key, dtype=np.intp)).size <= problem.k
        ]
        supports += few_above_floor(problem)
        if (
            supports and supports[-1].size < problem.k
        ):  # on both sides of 0 a floor may take one variable more, against the others
            others = np.setdiff1d(np.flatnonzero(problem.allowed), supports[-1])[: problem.settings.tried]
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
    if not support.size:
        return np.zeros(0)
    by_program = problem.floors.any or slow_to_project(
        problem, support
    )  # a linear one, which is found sooner than the nearest point
    linear = problem.linear.on(support) if by_program and problem.linear is not None else None
    if linear is not None:
        return feasible_above_floor(linear, problem.floors.size[support])
    try:
        return np.asarray(problem.C.restrict(support).project(start[support]))
    except InfeasibleError:
        return None
