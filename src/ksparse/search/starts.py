"""Where a search over supports begins: cheap starts that fail in different places."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb

import numpy as np

from ksparse.base.arrays import Array, Vector, to_float64
from ksparse.errors import InfeasibleError
from ksparse.firstorder.drive import Stopping, drive
from ksparse.firstorder.methods import APDCA, IHT
from ksparse.firstorder.problem import Problem
from ksparse.firstorder.steps import Backtracking
from ksparse.linalg.integer import fewest_nonzeros
from ksparse.losses import Loss
from ksparse.penalties import Cardinality, TopK2
from ksparse.search.component import random_components
from ksparse.search.task import Candidate, Task
from ksparse.sets import ConvexSet

RHO_FACTORS = (10.0, 1.0, 0.1, 0.01)  # penalty weights tried, relative to the curvature of φ along one variable
COMPONENTS = 32  # random starts of the truncated power iteration at a time
ENUMERABLE = {"cheap": 2_000, "dear": 60}  # so many supports are simply all tried


@dataclass(frozen=True)
class Start:
    """A support to begin from, and what it cost."""

    name: str
    support: Vector  # its members, the most promising first
    iterations: int = 0
    products: int = 0
    point: Vector | None = None  # values to begin from, where there are any


def seats(task: Task, size: Vector) -> Vector | None:
    """At most k indices that C and the forced lists allow, those with large entries of `size` first; None if none are found."""
    ranked = np.where(task.allowed, np.abs(size), 0.0)
    ranked[task.forced] = 2.0 * ranked.max(initial=0.0) + 1.0
    room = task.k
    while True:
        try:
            chosen = task.C.seats(ranked, room)
        except InfeasibleError:
            return None
        chosen = np.union1d(chosen[task.allowed[chosen]], task.forced).astype(np.intp)
        if chosen.size <= task.k:
            return chosen[np.argsort(-ranked[chosen], kind="stable")]
        room -= chosen.size - task.k  # the forced ones need seats that C's own choice took
        if room < 1:
            return None


def feasible_candidate(task: Task, start: Start) -> Candidate | None:
    """The start's support evaluated; with a floor, where k seats are more than fit, as many of its best members as do."""
    rows = np.zeros(0 if task.linear is None else task.linear.h.size)
    hint = None if start.point is None else Candidate(start.support, start.point[start.support], np.inf, np.zeros(start.support.size), rows)
    candidate = task.evaluate(start.support, hint)
    members = start.support
    while candidate is None and task.floor and members.size > max(1, task.forced.size):
        members = members[:-1]
        candidate = task.evaluate(members)
    return candidate


def all_supports(task: Task) -> Iterator[Vector] | None:
    """Every support of k variables (with a floor: of at most k), where they are few enough to try all; else None."""
    free = np.setdiff1d(np.flatnonzero(task.allowed), task.forced)
    room = min(task.k - task.forced.size, free.size)
    sizes = range(room + 1) if task.floor else (room,)
    count = sum(comb(free.size, size) for size in sizes)
    if count > ENUMERABLE["cheap" if task.exact else "dear"]:
        return None
    return (
        np.union1d(task.forced, free[list(chosen)]).astype(np.intp) for size in sizes for chosen in combinations(range(free.size), size)
    )


def cheap_starts(task: Task, x0: Array | None, rng: np.random.Generator) -> Iterator[Start]:
    """Where to begin without a first-order method: the user's point, and the smallest support (for a component: random ones)."""
    if x0 is not None:
        given = to_float64(x0)
        support = np.flatnonzero(given)
        if support.size <= task.k and task.allowed[support].all() and np.isin(task.forced, support).all():
            yield Start("x0", support, point=given)
        else:
            yield from _as_start("x0", task, given)
    if task.component:
        for support in random_components(task, COMPONENTS, rng)[:2]:
            yield Start("power iteration", support)
    else:
        yield from _greedy(task)


def first_order_starts(
    task: Task, loss: Loss, C: ConvexSet, begin: Array, stopping: Stopping, weights: list[float] | None
) -> Iterator[Start]:
    """Where hard thresholding and APDCA end.

    `loss` and `begin` are in the user's own arrays; `weights` are those of the penalised starts, None for a choice by the data.
    """
    if C.has_joint:
        yield from _hard_thresholding(task, loss, C, begin, stopping)
    yield from _penalised(task, loss, C, begin, stopping, weights)


def _as_start(name: str, task: Task, size: Vector, iterations: int = 0, products: int = 0) -> Iterator[Start]:
    support = seats(task, size)
    if support is not None:
        yield Start(name, support, iterations, products)


def _greedy(task: Task) -> Iterator[Start]:
    """The smallest support C has a point on; the search fills the other seats one by one."""
    if task.evaluate(task.forced) is not None:
        yield Start("greedy", task.forced)
        return
    score = np.ones(task.n)
    if task.model is not None:
        score = -(0.5 * task.model.diagonal - np.abs(task.model.r))
        score = score - score.min() + 1e-3 * max(float(np.ptp(score)), 1e-300)
    sizes = range(max(1, task.forced.size), task.k + 1)
    for size in sizes if task.floor else (s for s in sizes if s <= 4 or s == task.k or s & (s - 1) == 0):
        support = seats(task.with_k(size), score)
        if support is not None and task.evaluate(support) is not None:
            yield Start("greedy", support)
            return
    if task.linear is not None:  # the question whether such a point exists at all
        fewest = fewest_nonzeros(task.linear.without(~task.allowed), floor=task.floor, forced=task.forced, preferred=score)
        if fewest is not None and fewest.support.size <= task.k:
            yield Start("fewest", fewest.support)


def _hard_thresholding(task: Task, loss: Loss, C: ConvexSet, begin: Array, stopping: Stopping) -> Iterator[Start]:
    problem = Problem(loss, Cardinality(task.k, C), n=task.n)
    for name, x in (("iht from 0", problem.zeros()), ("iht", begin)):
        run = drive(IHT(), problem, x, _left(task, stopping), catch_interrupt=False)
        yield from _as_start(name, task, to_float64(run.x), run.nit, problem.products.total)


def _penalised(task: Task, loss: Loss, C: ConvexSet, begin: Array, stopping: Stopping, weights: list[float] | None) -> Iterator[Start]:
    """APDCA along falling weights, each from the last one's answer: every weight lands on another support."""
    x = begin
    if weights is None:
        unit = typical_curvature(task, loss, C, begin)
        weights = [factor * unit for factor in RHO_FACTORS]
    for weight in sorted(weights, reverse=True):
        problem = Problem(loss, TopK2(weight, task.k), C, task.n)
        run = drive(APDCA(), problem, x, _left(task, stopping), catch_interrupt=False)
        x = run.x
        yield from _as_start(f"apdca, rho = {weight:.3g}", task, to_float64(x), run.nit, problem.products.total)


def _left(task: Task, stopping: Stopping) -> Stopping:
    """The stopping rule with the time that is left."""
    return replace(stopping, max_time=None if np.isinf(task.deadline) else max(0.0, task.deadline - time.perf_counter()))


def typical_curvature(task: Task, loss: Loss, C: ConvexSet, begin: Array) -> float:
    """The curvature of φ along a typical variable: the unit of the penalty weight."""
    unit = 0.0
    if task.model is not None and task.allowed.any():
        unit = float(np.median(np.abs(task.model.diagonal[task.allowed])))
    if unit <= 0.0:
        problem = Problem(loss, TopK2(1e-300, task.k), C, task.n)
        unit = Backtracking().start(problem, problem.point(problem.C.project(begin))).l
    return min(max(unit, 1e-290), 1e290)


def kicked(task: Task, support: Vector, rng: np.random.Generator) -> Vector:
    """A support to restart from: some members, at least two where there are as many, replaced by random outsiders.

    For a component that is a fresh batch of power iterations, which repair a support faster than swaps do.
    """
    if task.component:
        return random_components(task, COMPONENTS, rng)[0]
    movable = np.setdiff1d(support, task.forced)
    outside = np.setdiff1d(np.flatnonzero(task.allowed), support)
    count = min(max(2, int(np.ceil(rng.uniform(0.1, 0.5) * movable.size))), movable.size, outside.size)
    leaving = rng.choice(movable, count, replace=False)
    return np.union1d(np.setdiff1d(support, leaving), rng.choice(outside, count, replace=False))
