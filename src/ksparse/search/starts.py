"""Starts of a search over supports: several cheap kinds, since each of them fails on some problems."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ksparse.errors import InfeasibleError
from ksparse.firstorder.loop import drive
from ksparse.firstorder.methods import APDCA, IHT
from ksparse.firstorder.problem import Problem, Stopping
from ksparse.firstorder.steps import Backtracking
from ksparse.losses import Loss
from ksparse.numerics.constraints import Linear, activity_terms
from ksparse.numerics.linear_programs import falling_direction, sparsest_support
from ksparse.numerics.relaxation import diagonal_part, relax
from ksparse.penalties import Cardinality, TopK2
from ksparse.search.candidate import Candidate
from ksparse.search.principal_components import column_components, random_components
from ksparse.search.problem import SupportProblem
from ksparse.util.arrays import Array, Vector, to_float64

REPLACED = (0.1, 0.5)  # share of the support that a random restart replaces
RELAXATION_STEPS = 100  # of the first-order method that solves the perspective relaxation
WEIGHTS = (10.0, 1.0, 0.1, 0.01)  # of penalised starts, relative to the curvature of φ along one variable
START_TOL = 1e-4  # relative change of F at which a first-order start ends
START_STEPS = 300  # of a first-order start
POWER_STARTS = 32  # random starts of truncated power iterations at a time (chosen on benchmarks/sparse_pca.py)
SCREENED_COLUMNS = 64  # columns of V considered as starts for a component
REFINED_COLUMNS = 8  # number of these that power iterations refine


@dataclass(frozen=True)
class Start:
    """A support to start from, and what it cost."""

    name: str
    support: Vector  # the most promising variables first
    iterations: int = 0
    point: Vector | None = None  # x to start from, if known


def feasible_support(problem: SupportProblem, size: Vector) -> Vector | None:
    """Return at most k variables on which C may have a point, forced and large ones first; None if none are found."""
    ranked = np.where(problem.allowed, np.abs(size), 0.0)
    ranked[problem.forced] = 2.0 * ranked.max(initial=0.0) + 1.0
    room = problem.k
    while True:
        try:
            chosen = problem.C.sparse_support(ranked, room)
        except InfeasibleError:
            return None
        chosen = _with_forced(problem, chosen, ranked)
        if chosen.size <= problem.k:
            return chosen
        room -= chosen.size - problem.k  # make room for the forced variables
        if room < 1:
            return None


def _with_forced(problem: SupportProblem, chosen: Vector, score: Vector) -> Vector:
    """Return the allowed variables of a support with the forced ones, those of large score first."""
    chosen = np.union1d(chosen[problem.allowed[chosen]], problem.forced).astype(np.intp)
    return np.asarray(chosen[np.argsort(-score[chosen], kind="stable")])


def feasible_candidate(problem: SupportProblem, start: Start) -> Candidate | None:
    """Evaluate the start's support; with a minimum size, drop variables until the rest fit."""
    support, point = start.support, start.point
    hint = None if point is None else Candidate.without_multipliers(support, point[support], np.inf, problem.linear)
    support = problem.trim_to_rules(support)
    candidate = problem.evaluate(problem.extend_to_rules(support), hint)
    while candidate is None and problem.floors.any and support.size > max(1, problem.forced.size):
        support = support[:-1]
        candidate = problem.evaluate(problem.extend_to_rules(support))
    return candidate if candidate is None or not problem.rules.any or problem.allows(candidate.support) else None


def given_starts(problem: SupportProblem, x0: Array | None) -> Iterator[Start]:
    """Yield the user's point; if its nonzeros are not an allowed support, a support of its large entries."""
    if x0 is not None:
        given = to_float64(x0)
        if problem.width > 1:
            given = np.linalg.norm(given.reshape(-1, problem.width), axis=1)
        support = np.flatnonzero(given)
        if problem.allows(support) and np.isin(problem.forced, support).all():
            yield Start("x0", support, point=given if problem.row_problem is None else None)
        else:
            yield from _as_start("x0", problem, given)


def cheap_starts(problem: SupportProblem, rng: np.random.Generator) -> Iterator[Start]:
    """Yield starts without a first-order method: the smallest support; for a component, those of power iterations."""
    if problem.can.spectral:
        drawn = random_components(problem, POWER_STARTS, rng)[:2]
        by_columns = column_components(problem, SCREENED_COLUMNS, REFINED_COLUMNS, rng)[:1]
        values = [problem.evaluate(support).value for support in (*drawn, *by_columns)]  # type: ignore[union-attr]
        yield from (Start("power iteration", support) for support in drawn)
        if by_columns and values[-1] < min(values[:-1]):
            yield Start("a column of V", by_columns[0])
    else:
        if problem.loss.least == -np.inf:
            _raise_if_unbounded(problem)
        yield from _greedy(problem)
        # 0 may be stationary: start where φ has the most negative curvature
        if problem.model is not None and not problem.can.treated_as_convex:
            yield from _as_start("negative curvature", problem, np.maximum(-problem.model.diagonal, 0.0))


def _raise_if_unbounded(problem: SupportProblem) -> None:
    """Raise `UnboundedError` if φ is unbounded below along few variables on which H is singular.

    Moves are ranked by curvature, so that a search may never reach such variables.
    """
    model, linear = problem.model, problem.linear
    small = problem.n <= problem.settings.relaxed
    if model is None or linear is None or not problem.can.treated_as_convex or not small:
        return
    variables = falling_direction(model.rows(np.arange(problem.n)), model.r, linear.fixed_to_zero(~problem.allowed))
    if variables is not None:
        support = np.union1d(problem.forced, variables).astype(np.intp)
        if problem.allows(support) and problem.evaluate(support) is None:  # raises if φ is unbounded there
            for start in _as_start("falling", problem, np.isin(np.arange(problem.n), support).astype(float)):
                feasible_candidate(problem, start)  # C has a point only with other variables too


def first_order_starts(
    problem: SupportProblem, loss: Loss, begin: Array, stopping: Stopping, weights: list[float] | None, few: bool
) -> Iterator[Start]:
    """Yield supports found by hard thresholding, if C has the projection for it, and by APDCA.

    With `few`, APDCA runs only without hard thresholding or if `weights`, the penalty weights, are given (None: chosen
    by the data). `loss` and `begin` are in the user's arrays.
    """
    joint, x = problem.C.has_joint, begin
    if joint:
        constrained = Problem(loss, Cardinality(problem.k, problem.C), n=problem.n)
        for name, at in (("iht from 0", constrained.zeros()), ("iht", begin)):
            run = drive(IHT(), constrained, at, stopping.until(problem.deadline), catch_interrupt=False)
            yield from _as_start(name, problem, to_float64(run.x), run.nit)
    if few and joint and weights is None:
        return
    if weights is None:
        unit = typical_curvature(problem, loss, begin)
        weights = [factor * unit for factor in WEIGHTS]
    for weight in sorted(weights, reverse=True):  # each run starts where the last one ended
        penalised = Problem(loss, TopK2(weight, problem.k), problem.C, problem.n)
        run = drive(APDCA(), penalised, x, stopping.until(problem.deadline), catch_interrupt=False)
        x = run.x
        yield from _as_start(f"apdca, rho = {weight:.3g}", problem, to_float64(x), run.nit)


def other_supports(problem: SupportProblem, support: Vector, rng: np.random.Generator) -> Iterator[Vector]:
    """Yield other supports to start from: those that the perspective relaxation suggests, else random ones."""
    suggested = list(_relaxed_supports(problem, rng))
    yield from suggested or (random_restart(problem, support, rng) for _ in range(problem.settings.drawn))


def _relaxed_supports(problem: SupportProblem, rng: np.random.Generator) -> Iterator[Vector]:
    """Yield the support of largest z in the relaxation, then random ones drawn by z; nothing if it does not apply."""
    settings, k, n = problem.settings, problem.k, problem.n
    if not problem.can.allows_updates or n > settings.relaxed or (k >= n and not problem.floors.any):
        return
    H, linear, allowed = problem.quadratic.rows(np.arange(n)), problem.polyhedron, problem.allowed
    part = diagonal_part(H)
    if part is None:
        return
    low, high = problem.floors.bounds(linear)
    on_support = replace(linear, lower=np.where(allowed, low, 0.0), upper=np.where(allowed, high, 0.0))
    _, z = relax(H, problem.quadratic.r, part * np.diag(H), on_support, k, RELAXATION_STEPS)
    z[problem.forced] = 2.0
    likely = np.log(z + 1e-4)
    for draw in range(3 * settings.drawn):
        rank = likely + (rng.gumbel(size=n) if draw else 0.0)
        rank[problem.forced] = np.inf
        ranked = np.argsort(-rank, kind="stable")
        ranked = ranked[allowed[ranked]]
        if not problem.floors.any:
            yield np.sort(ranked[:k])
            continue
        count = min(k, max(1, round(z.sum() + (rng.standard_normal() if draw else 0.0))))
        yield _fitting(on_support, ranked, count)


def _fitting(linear: Linear, ranked: Vector, count: int) -> Vector:
    """Return the first `count` variables whose minimum sizes fit together in every row."""
    rows, least = (activity_terms(M, linear.lower, linear.upper)[0] for M in (linear.G, linear.E))
    needs, room = np.vstack([rows, least]), np.concatenate([linear.h, linear.f])
    filling = (needs >= 0).all(axis=1)  # rows whose room every variable reduces
    needs, room = needs[filling], room[filling]
    room = room + 1e-9 * (1.0 + np.abs(room))
    chosen, left = np.zeros(0, dtype=np.intp), ranked
    while left.size and chosen.size < count:
        left = left[(needs[:, left] <= room[:, None]).all(axis=0)]
        chosen, room, left = np.append(chosen, left[:1]), room - needs[:, left[:1]].sum(axis=1), left[1:]
    return chosen


def _as_start(name: str, problem: SupportProblem, size: Vector, iterations: int = 0) -> Iterator[Start]:
    support = feasible_support(problem, size)
    if support is not None:
        yield Start(name, support, iterations)


def _greedy(problem: SupportProblem) -> Iterator[Start]:
    """Yield the smallest support on which C has a point; the search adds the other variables one by one."""
    if problem.evaluate(problem.extend_to_rules(problem.forced)) is not None:
        yield Start("greedy", problem.forced)
        return
    score = np.ones(problem.n)
    if problem.model is not None:
        score = -(0.5 * problem.model.diagonal - np.abs(problem.model.r))
        score = score - score.min() + 1e-3 * max(float(np.ptp(score)), 1e-300)
    for support in _few_supports(problem, score):
        start = Start("greedy", support)
        if feasible_candidate(problem, start) is not None:
            yield start
            return
    # whether there is a point at all
    yield from (Start("fewest", support) for support in few_above_floor(problem, score))


def few_above_floor(problem: SupportProblem, score: Vector | None = None) -> list[Vector]:
    """Return the smallest support of a point of a polyhedron, preferably of large score; none if it exceeds k."""
    if problem.linear is None:
        return []
    possible = problem.linear.fixed_to_zero(~problem.allowed)
    rows = problem.rules.rows(problem.allowed)
    fewest = sparsest_support(possible, floor=problem.floors.size, forced=problem.forced, preferred=score, rows=rows)
    return [] if fewest is None or fewest.support.size > problem.k else [fewest.support]


def _few_supports(problem: SupportProblem, score: Vector) -> Iterator[Vector]:
    """Yield supports on which C may have a point, of few variables and of k, those of large score first."""
    few = problem.C.small_support(score, problem.k)
    if few is not None:
        few = _with_forced(problem, few, score)
        if few.size <= problem.k:
            yield few
    whole = feasible_support(problem, score)
    if whole is not None:
        yield whole


def typical_curvature(problem: SupportProblem, loss: Loss, begin: Array) -> float:
    """Return the curvature of φ along a typical variable: the unit of the penalty weight."""
    unit = 0.0
    if problem.model is not None and problem.allowed.any():
        unit = float(np.median(np.abs(problem.model.diagonal[problem.allowed])))
    if unit <= 0.0:
        penalised = Problem(loss, TopK2(1e-300, problem.k), problem.C, problem.n)
        unit = Backtracking().start(penalised, penalised.point(penalised.C.project(begin))).l
    return min(max(unit, 1e-290), 1e290)


def random_restart(
    problem: SupportProblem, support: Vector, rng: np.random.Generator, part: tuple[float, float] = REPLACED
) -> Vector:
    """Replace a share of a support, at least two variables if possible, by random ones, and fill it up to k.

    For a component, run power iterations from random starts instead: they repair a support faster than swaps do.
    """
    if problem.can.spectral:
        return random_components(problem, POWER_STARTS, rng)[0]
    movable = np.setdiff1d(support, problem.forced)
    outside = problem.inactive(support)
    count = min(max(2, int(np.ceil(rng.uniform(*part) * movable.size))), movable.size, outside.size)
    leaving = rng.choice(movable, count, replace=False)
    room = min(count + max(0, problem.k - support.size), outside.size)
    entering = rng.choice(outside, room, replace=False)
    support = np.setdiff1d(support, leaving)
    return np.sort(problem.trim_to_rules(np.concatenate([support, entering])))
