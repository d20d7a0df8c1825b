"""The search: cheap diverse starts, local search from each, perturbations of the best, restarts, and a proof of what is left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from ksparse.base.arrays import Array, Vector, to_float64
from ksparse.base.deadline import OutOfTimeError, until
from ksparse.base.threads import one_thread
from ksparse.errors import InfeasibleError, UnboundedError, UndecidedError
from ksparse.firstorder.drive import Stopping
from ksparse.losses import Loss
from ksparse.result import Status
from ksparse.search import perturb
from ksparse.search.by_models import explore_by_models
from ksparse.search.candidate import Candidate, Found
from ksparse.search.incumbent import Incumbent
from ksparse.search.local import LocalSearch, descended
from ksparse.search.neighbourhoods.base import DependentError
from ksparse.search.problem import SupportProblem
from ksparse.search.proof import prove
from ksparse.search.starts import Start, all_supports, cheap_starts, feasible_candidate, feasible_support, first_order_starts, kicked, relaxed_supports
from ksparse.search.strategy import Strategy, choose_strategy, without_updates


@dataclass(frozen=True)
class Plan:
    """What the user said of how to search."""

    restarts: int | None = None  # from kicked supports; None for as many as the strategy has
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

    def run(self) -> Status:
        """Leave the best support that is found in the incumbent; why it ended."""
        problem, status = self.problem, Status.STATIONARY
        try:
            if try_all(problem, self.incumbent, self.started):
                self.tell(self.incumbent)
                return Status.OPTIMAL if self.incumbent.proved else Status.STATIONARY
            if self._search() is Status.TIME_LIMIT:
                return Status.TIME_LIMIT
        except StopIteration:
            status = Status.CALLBACK_STOP
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        except UnboundedError:  # on one support, so altogether
            status = Status.UNBOUNDED
        except OutOfTimeError:
            status = Status.TIME_LIMIT
        if not status.good:
            self.incumbent.best = self.incumbent.best or some_point(problem, self.begin)
        if self.incumbent.best is None:
            in_time = " in the time given" if problem.expired else ""
            raise InfeasibleError(f"no point of C = {problem.pieces.C} {asked(problem)} was found{in_time} that meets every constraint")
        return conclude(problem, self.incumbent, status)

    def _search(self) -> Status:
        """All parts of the strategy in turn."""
        problem, incumbent = self.problem, self.incumbent
        strategy = choose_strategy(problem)
        seeds = np.random.SeedSequence(self.plan.seed)
        rng = np.random.default_rng(seeds.spawn(1)[0])
        search = strategy.search(problem) if strategy.neighbourhood is not None else None
        # where the perturbations take the only cheap start from there, it need not descend twice
        descends = strategy.first_order or not strategy.perturbs or (self.x0 is not None and not strategy.by_models)
        for start in cheap_starts(problem, self.x0, rng):
            self._from(start, search if descends else None)
        if not strategy.first_order and strategy.perturbs:
            strategy, search = self._perturb(strategy, search, rng)
        if problem.expired and incumbent.best is not None:
            return Status.TIME_LIMIT
        if not problem.pieces.spectral and (incumbent.best is None or self.plan.weights is not None or strategy.first_order):
            if self._first_order(search) is Status.TIME_LIMIT:
                return Status.TIME_LIMIT
            if strategy.perturbs:
                self._perturb(strategy, search, rng)
        self._restart(strategy, seeds)
        if incumbent.best is not None and not incumbent.proved and not problem.expired:
            self._take("all exchanges", settle(problem, incumbent.best))
        return Status.STATIONARY

    def _take(self, name: str, found: Found) -> None:
        self.incumbent.take(name, found, time.perf_counter() - self.started)
        self.tell(self.incumbent)

    def _from(self, start: Start, search: LocalSearch | None) -> None:
        """Descend from one start; take it as it is where something else will improve it."""
        self.incumbent.iterations += start.iterations
        self.incumbent.products += start.products
        candidate = feasible_candidate(self.problem, start)
        if candidate is None:
            return
        if search is None:
            self._take(start.name, Found(candidate))
            return
        before = search.swaps
        self._take(start.name, Found(descended(search, candidate), search.swaps - before))

    def _first_order(self, search: LocalSearch | None) -> Status:
        problem, incumbent = self.problem, self.incumbent
        try:
            for start in first_order_starts(problem, self.loss, problem.pieces.C, self.begin, self.stopping, self.plan.weights):
                if problem.expired and incumbent.best is not None:
                    return Status.TIME_LIMIT
                self._from(start, search)
        except UndecidedError:  # a projection that arithmetic cannot find: there are other starts
            if incumbent.best is None:
                raise
        return Status.STATIONARY

    def _perturb(self, strategy: Strategy, search: LocalSearch | None, rng: np.random.Generator) -> tuple[Strategy, LocalSearch | None]:
        """Ways out of the best so far; where variables are too nearly dependent for that, the strategy that can do without."""
        best = self.incumbent.best
        if best is None or search is None:
            return strategy, search
        with one_thread():
            try:
                for name, found in explore_by_models(self.problem, best, rng) if strategy.by_models else perturb.explore(search, best, rng, relaxed_supports(self.problem, rng)):
                    self._take(name, found)
            except DependentError:
                strategy = without_updates(self.problem)
                search = strategy.search(self.problem)
        return strategy, search

    def _restart(self, strategy: Strategy, seeds: np.random.SeedSequence) -> None:
        """Rounds of perturbed restarts from the best so far."""
        count = strategy.restarts if self.plan.restarts is None else self.plan.restarts
        if strategy.neighbourhood is None:
            return
        together = self.problem.pieces.settings.together
        for first in range(0, count, together):
            best = self.incumbent.best
            if self.problem.expired or best is None:
                return
            rounds = seeds.spawn(min(together, count - first))
            supports = [kicked(self.problem, best.support, np.random.default_rng(seed)) for seed in rounds]
            for found in _searches(self.problem, strategy, supports, self.plan.n_jobs):
                if found is not None:
                    self._take("restart", found)


def _searches(problem: SupportProblem, strategy: Strategy, supports: list[Vector], n_jobs: int | None) -> list[Found | None]:
    def one(support: Vector) -> Found | None:
        own = problem.with_own_memory()
        with until(problem.pieces.deadline):  # threads do not inherit it
            candidate = feasible_candidate(own, Start("restart", support))
            return None if candidate is None or own.expired else local_search(own, strategy, candidate)

    if n_jobs in (None, 1):
        return [one(support) for support in supports]
    from joblib import Parallel, delayed

    found: list[Found | None] = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(one)(support) for support in supports)
    return found


def local_search(problem: SupportProblem, strategy: Strategy, candidate: Candidate) -> Found:
    """A descent from a candidate; itself where moves cannot be ranked."""
    if strategy.neighbourhood is None:
        return Found(candidate)
    search = strategy.search(problem)
    best = descended(search, candidate)
    return Found(best, search.swaps)


def settle(problem: SupportProblem, best: Candidate) -> Found:
    """A proof that nothing is left to exchange; where that meets something better, a descent from there, and all over again."""
    strategy, moves = without_updates(problem), 0
    while not problem.expired:
        if problem.pieces.modelled and not problem.pieces.spectral:  # with all variables in view
            found = local_search(problem, strategy, best)
            best, moves = found.best, moves + found.swaps
        proof = prove(problem, best)
        if proof.better is None:
            return Found(best, moves, proof.proved)
        best, moves = proof.better, moves + 1
    return Found(best, moves)


def conclude(problem: SupportProblem, incumbent: Incumbent, status: Status) -> Status:
    """What may be said of the best candidate after a search that ended well, or did not."""
    if status is Status.STATIONARY and problem.expired:
        return Status.TIME_LIMIT
    return Status.SWAP_OPTIMAL if status is Status.STATIONARY and incumbent.proved else status


def asked(problem: SupportProblem) -> str:
    """What is asked of a point, in words."""
    low, high = problem.pieces.floor.min(), problem.pieces.floor.max()
    sized = "" if high == 0 else f", each at least {low:g} in size," if low == high else ", each at least as large as its min_nonzero,"
    return f"with at most k = {problem.k} nonzeros{sized}"


def some_point(problem: SupportProblem, begin: Array) -> Candidate | None:
    """A k-sparse point of C near the start, not re-solved."""
    support = feasible_support(problem, to_float64(begin))
    if support is None:
        return None
    support = np.sort(support)
    x = problem.pieces.C.restrict(support).project(to_float64(begin)[support])
    full = np.zeros(problem.n)
    full[support] = x
    return Candidate.unpriced(support, x, problem.pieces.loss.value(full), problem.pieces.rows)


def try_all(problem: SupportProblem, incumbent: Incumbent, started: float) -> bool:
    """Try every support where they are few; False where they are many, or the time ran out."""
    supports: Iterator[Vector] | None = all_supports(problem)
    if supports is None:
        return False
    bound = np.inf  # what the values on all supports are proved not to fall below
    for support in supports:
        candidate = problem.evaluate(support)
        if candidate is not None and (incumbent.best is None or candidate.value < incumbent.best.value):
            incumbent.best = candidate
        bound = min(bound, problem.lower_bound(support))
        if problem.expired and (incumbent.best is not None or problem.pieces.overdue):
            return False
    best = incumbent.best
    if best is None:
        if bound < np.inf:
            return False  # not even that is proved
        raise InfeasibleError(f"C = {problem.pieces.C} holds no point {asked(problem)}: every support was tried")
    proved = bound >= best.value - problem.pieces.claimable(best.value)
    incumbent.take("enumeration", Found(best, 0, proved), time.perf_counter() - started)
    return True
