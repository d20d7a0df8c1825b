"""method="auto": cheap diverse starts, search over supports from each, perturbed restarts, the best of all."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ksparse.base.arrays import Array, Vector, to_float64
from ksparse.base.checks import check_indices, check_integer, check_n_jobs, check_number
from ksparse.base.deadline import OutOfTimeError, until
from ksparse.base.threads import one_thread
from ksparse.errors import InfeasibleError, MissingPieceError, UnboundedError, UndecidedError
from ksparse.firstorder.problem import Problem
from ksparse.losses import Loss
from ksparse.penalties import TopK2
from ksparse.result import Result, Status
from ksparse.search.component import prove_component, search_component
from ksparse.search.exchange import DependentError, descend, descend_alone
from ksparse.search.floating import explore
from ksparse.search.generic import search_generic
from ksparse.search.oscillate import oscillate
from ksparse.search.progress import Progress
from ksparse.search.remodel import explore_by_models, modelled
from ksparse.search.search import Found, search, settle
from ksparse.search.starts import Start, all_supports, cheap_starts, feasible_candidate, first_order_starts, kicked, seats
from ksparse.search.task import Candidate, Task, claimable
from ksparse.solve.auto_report import AutoReport
from ksparse.solve.judge import judge_auto
from ksparse.solve.penalty_grid import resolve_weights
from ksparse.solve.request import Call

N_RESTARTS = 4  # perturbed restarts unless told otherwise
START_TOL = 1e-4  # relative change of F at which a first-order start has done its part
START_ITERATIONS = 300
LARGE = 2**19  # entries of A from which losses that are not quadratic are searched by models alone
SMALL = 2**22  # entries of the data below which all is done on one thread
ROUND = 8  # restarts perturb the best of the round before: a fixed number, so that the answer does not depend on n_jobs


def fitting_threads(loss: Loss) -> AbstractContextManager[None]:
    """One thread within, where no product with the data is worth a second; its waiting in a loop would slow the first down."""
    return nullcontext() if loss.entries is None or loss.entries >= SMALL else one_thread()


def local_search(task: Task, candidate: Candidate) -> Found:
    """The search that fits the task; where columns are too dear to look at, none."""
    if task.opaque:
        return as_it_is(task, candidate)
    if task.component:
        return search_component(task, candidate)
    if task.ranks:
        return search(task, descend(task, candidate) if task.exchangeable else candidate)
    return search_generic(task, candidate)


@dataclass(frozen=True)
class Plan:
    """How far the search goes."""

    n_restarts: int | None  # perturbed restarts after the starts; None for as many as fit the task
    n_jobs: int | None  # threads to run them in
    seed: int
    weights: list[float] | None  # of the penalised starts; None for a choice by the data


def make_plan(n_restarts: int | None, n_jobs: int | None, random_state: Any, rho: str | float | Sequence[float]) -> Plan:
    """The plan that the arguments describe."""
    return Plan(
        n_restarts=None if n_restarts is None else check_integer(n_restarts, "n_restarts", 0),
        n_jobs=check_n_jobs(n_jobs),
        seed=_seed(random_state),
        weights=None if isinstance(rho, str) and rho == "auto" else resolve_weights(rho),
    )


def _usual_restarts(task: Task) -> int:
    """None where a component's starts are random, an exchange kicks by itself, or columns are dear."""
    return 0 if task.component or task.opaque or task.exchangeable or _is_large_and_smooth(task) else N_RESTARTS


def _seed(random_state: int | np.random.Generator | None) -> int:
    if random_state is None:
        return 0
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    return check_integer(random_state, "random_state", 0)


def make_task(call: Call, forced_in: Any, forced_out: Any, min_nonzero: float) -> Task:
    """The search that the arguments describe, after a look at whether they can be met."""
    n, k = call.n, call.k
    inside, outside = check_indices(forced_in, "forced_in"), check_indices(forced_out, "forced_out")
    for indices, name in ((inside, "forced_in"), (outside, "forced_out")):
        if indices.size and indices[-1] >= n:
            raise ValueError(f"{name} must be below the number of variables {n}, got {indices[-1]}")
    both = np.intersect1d(inside, outside)
    if both.size:
        raise ValueError(f"forced_in and forced_out must not share a variable, both hold {both[0]}")
    floor = check_number(min_nonzero, "min_nonzero", at_least=0)
    task = Task(call.loss, call.C, n, k, forced_in=inside, forced_out=outside, floor=floor, deadline=call.deadline)
    if floor and not _knows_floors(task):
        raise MissingPieceError(
            f"min_nonzero needs a convex quadratic loss and a polyhedral set, not {type(call.loss).__name__} on {call.C}"
        )
    if task.forced.size > k:
        raise InfeasibleError(f"{task.forced.size} variables are forced in, more than k = {k}")
    clash = np.intersect1d(task.forced, outside)
    if clash.size:
        raise InfeasibleError(f"forced_out holds variable {clash[0]}, whose bounds exclude 0")
    return task


def _knows_floors(task: Task) -> bool:
    try:
        return task.linear is not None and task.model is not None and task.convex
    except OutOfTimeError:  # then no more than a point is asked for
        return True


def solve_auto(call: Call, task: Task, plan: Plan) -> Result:
    """The best k-sparse point the search finds, told to the callback and the table as it goes, and judged."""
    problem = Problem(call.loss, TopK2(1.0, task.k), call.C, task.n)
    kind, progress, status = problem.zeros(), Progress(), Status.INTERRUPTED
    try:
        if call.interrupted:
            raise KeyboardInterrupt
        with AutoReport(call.verbose, call.callback) as report:
            report.banner(problem)
            status = search_supports(call, task, plan, kind, progress, lambda progress: report.tell(progress, task.n))
            result = judge_auto(call, task, progress, status, kind)
            report.footer(result)
        return result
    except KeyboardInterrupt:  # outside of what takes one itself: before the search began, or after it ended
        progress.best = progress.best or some_point(task, _beginning(call, kind))
        if progress.best is None:
            raise
        return judge_auto(call, task, progress, Status.INTERRUPTED, kind)


def _beginning(call: Call, kind: Array) -> Array:
    """The user's start, or 1/n in every entry."""
    return kind + 1.0 / call.n if call.x0 is None else call.x0


def search_supports(call: Call, task: Task, plan: Plan, kind: Array, progress: Progress, tell: Callable[[Progress], None]) -> Status:
    """Leave the best support that the search finds in `progress`; why it ended."""
    begin = _beginning(call, kind)
    stopping = replace(call.stopping, tol=max(call.stopping.tol, START_TOL), max_iter=min(call.stopping.max_iter, START_ITERATIONS))
    status, started = Status.STATIONARY, call.started
    try:
        if try_all(task, progress, started):
            tell(progress)
            return Status.OPTIMAL if progress.proved else Status.STATIONARY
        seeds = np.random.SeedSequence(plan.seed)
        rng = np.random.default_rng(seeds.spawn(1)[0])
        exchanging = task.exchangeable or _is_large_and_smooth(task)
        for start in cheap_starts(task, call.x0, rng):
            alone = call.x0 is None or not task.exchangeable  # then `explore` takes it from there, else each descends first
            improve = (as_it_is if alone else descend_alone) if exchanging else local_search
            _from_start(task, progress, start, improve, started, tell)
        if exchanging:
            exchanging = _explore(task, progress, rng, started, tell)
        if task.expired and progress.best is not None:
            return Status.TIME_LIMIT
        if not task.component and (progress.best is None or plan.weights is not None or not exchanging):
            try:
                for start in first_order_starts(task, call.loss, task.C, begin, stopping, plan.weights):
                    if task.expired and progress.best is not None:
                        return Status.TIME_LIMIT
                    _from_start(task, progress, start, local_search, started, tell)
            except UndecidedError:  # a projection that arithmetic cannot find: there are other starts
                if progress.best is None:
                    raise
        if not exchanging and not task.opaque:
            _oscillate(task, progress, started, tell)
        _restart(task, progress, plan, seeds, started, tell)
        if progress.best is not None and task.certifying and not progress.proved and not task.expired:
            progress.take("all exchanges", settle(task, progress.best), time.perf_counter() - started)
            tell(progress)
    except StopIteration:
        status = Status.CALLBACK_STOP
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
        progress.best = progress.best or some_point(task, begin)
    except UnboundedError:  # on one support, so altogether
        status = Status.UNBOUNDED
        progress.best = progress.best or some_point(task, begin)
    except OutOfTimeError:
        status = Status.TIME_LIMIT
        progress.best = progress.best or some_point(task, begin)
    if progress.best is None:
        in_time = " in the time given" if task.expired else ""
        raise InfeasibleError(
            f"no point of C = {call.C} with at most k = {task.k} nonzeros{_sized(task)} was found{in_time} that meets every constraint"
        )
    return conclude(task, progress, status)


def as_it_is(task: Task, candidate: Candidate) -> Found:
    """A candidate that something else will improve."""
    return Found(candidate, 0, False)


def _is_large_and_smooth(task: Task) -> bool:
    """Whether one exact solve costs so much that models should choose what is solved."""
    return (task.loss.entries or 0) >= LARGE and modelled(task, task._at_forced()) is not None


def _from_start(
    task: Task,
    progress: Progress,
    start: Start,
    improve: Callable[[Task, Candidate], Found],
    started: float,
    tell: Callable[[Progress], None],
) -> None:
    """Search from one start."""
    progress.iterations += start.iterations
    progress.products += start.products
    candidate = feasible_candidate(task, start)
    if candidate is not None:
        progress.take(start.name, improve(task, candidate), time.perf_counter() - started)
        tell(progress)


def _explore(task: Task, progress: Progress, rng: np.random.Generator, started: float, tell: Callable[[Progress], None]) -> bool:
    """Exchanges from the best so far, then a look at all of them, which proves that none is left, or takes it; whether that did."""
    if progress.best is None:
        return False
    whole = True
    with one_thread():
        try:
            for name, found in (explore if task.exchangeable else explore_by_models)(task, progress.best, rng):
                progress.take(name, found, time.perf_counter() - started)
                tell(progress)
        except DependentError:
            whole = False
    if not task.expired:
        progress.take("all exchanges", settle(task, progress.best), time.perf_counter() - started)
        tell(progress)
    return whole


def conclude(task: Task, progress: Progress, status: Status) -> Status:
    """What may be said of the best candidate after a search that ended well, or did not."""
    assert progress.best is not None
    if status is Status.STATIONARY and task.expired:
        return Status.TIME_LIMIT
    if status is Status.STATIONARY and task.component:
        try:
            progress.proved = prove_component(task, progress.best)
        except KeyboardInterrupt:
            return Status.INTERRUPTED
    return Status.SWAP_OPTIMAL if status is Status.STATIONARY and progress.proved else status


def _sized(task: Task) -> str:
    return f", each at least {task.floor:g} in size," if task.floor else ""


def some_point(task: Task, begin: Array) -> Candidate | None:
    """A k-sparse point of C near the start, not re-solved."""
    support = seats(task, to_float64(begin))
    if support is None:
        return None
    support = np.sort(support)
    x = task.C.restrict(support).project(to_float64(begin)[support])
    full = np.zeros(task.n)
    full[support] = x
    return Candidate(support, x, task.loss.value(full), np.zeros(support.size), np.zeros(0))


def try_all(task: Task, progress: Progress, started: float) -> bool:
    """Try every support where they are few; False where they are many, or the time ran out."""
    supports = all_supports(task)
    if supports is None:
        return False
    bound = np.inf  # what the values on all supports are proved not to fall below
    for support in supports:
        candidate = task.evaluate(support)
        if candidate is not None and (progress.best is None or candidate.value < progress.best.value):
            progress.best = candidate
        bound = min(bound, task.lower_bound(support))
        if task.expired and (progress.best is not None or task.overdue):
            return False
    if progress.best is None:
        if bound < np.inf:
            return False  # not even that is proved
        raise InfeasibleError(f"C = {task.C} holds no point with at most k = {task.k} nonzeros{_sized(task)}: every support was tried")
    proved = bound >= progress.best.value - claimable(task, progress.best.value)
    progress.take("enumeration", Found(progress.best, 0, proved), time.perf_counter() - started)
    return True


def _oscillate(task: Task, progress: Progress, started: float, tell: Callable[[Progress], None]) -> None:
    """From the best so far to other k and back."""
    if task.component or progress.best is None:
        return
    for name, found in oscillate(task, progress.best, local_search):
        progress.take(name, found, time.perf_counter() - started)
        tell(progress)


def _restart(
    task: Task, progress: Progress, plan: Plan, seeds: np.random.SeedSequence, started: float, tell: Callable[[Progress], None]
) -> None:
    """Rounds of perturbed restarts from the best so far."""
    count = _usual_restarts(task) if plan.n_restarts is None else plan.n_restarts
    for first in range(0, count, ROUND):
        if task.expired or progress.best is None:
            return
        supports = [kicked(task, progress.best.support, np.random.default_rng(seed)) for seed in seeds.spawn(min(ROUND, count - first))]
        for found in _searches(task, supports, plan.n_jobs):
            if found is not None:
                progress.take("restart", found, time.perf_counter() - started)
                tell(progress)


def _searches(task: Task, supports: list[Vector], n_jobs: int | None) -> list[Found | None]:
    def one(support: Vector) -> Found | None:
        own = task.with_own_memory()
        with until(task.deadline):  # threads do not inherit it
            candidate = feasible_candidate(own, Start("restart", support))
            return None if candidate is None or task.expired else local_search(own, candidate)

    if n_jobs in (None, 1):
        return [one(support) for support in supports]
    from joblib import Parallel, delayed

    found: list[Found | None] = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(one)(support) for support in supports)
    return found
