"""Enumeration of all supports, if there are few: the best one is then proved optimal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import chain, combinations
from math import comb

import numpy as np

from ksparse.errors import InfeasibleError
from ksparse.numerics.bound import lower_bounds_on_supports
from ksparse.numerics.constraints import Linear
from ksparse.search.candidate import Incumbent, SearchOutcome
from ksparse.search.problem import SupportProblem, attains_least
from ksparse.util.arrays import Vector
from ksparse.util.resources import GRACE

LARGEST_BATCHED = 32  # variables of a support up to which the bounds of many supports are computed together
MOST_COLUMNS, ENTRIES = 1024, 2**16  # of the supports of one batch, and entries of H on them
COSTLY = 33  # evaluations by a direct solve that take the time of one by a first-order method (about)


def enumerate_supports(problem: SupportProblem, incumbent: Incumbent, started: float) -> bool:
    """Evaluate every support of k variables (with a minimum size or rules: of at most k) if there are few.

    Return False if there are many, or the time ran out.
    """
    free = problem.inactive(problem.forced)
    room = min(problem.k - problem.forced.size, free.size)
    if problem.rules.any:
        free = free[problem.rules.weight[free] > 0]
        room = min(problem.asked, free.size)
    sizes = range(room + 1) if problem.floors.any or problem.rules.any else range(room, room + 1)
    few = problem.settings.enumerated // (1 if problem.can.exact_evaluation else COSTLY)
    if sum(comb(free.size, size) for size in sizes) > few:
        return False
    supports = list(_supports_of(problem, free, sizes))
    bound = np.inf  # a lower bound of φ on all supports
    for place, lowest in _ranked(problem, supports):
        best = incumbent.best
        if best is not None and (lowest >= best.value or attains_least(problem, best.value)):
            bound = min(bound, max(lowest, problem.loss.least))  # so are the bounds of all that follow
            break
        candidate = problem.evaluate(supports[place])
        if candidate is not None and (best is None or candidate.value < best.value):
            incumbent.best = candidate
        bound = min(bound, max(lowest, problem.lower_bound(supports[place])))
        if problem.expired and (incumbent.best is not None or time.perf_counter() >= problem.deadline + GRACE):
            return False
    best = incumbent.best
    if best is None:
        if bound < np.inf:
            return False  # infeasibility is not proved
        wanted = f"C = {problem.C} holds no point {describe_constraints(problem)}"
        raise InfeasibleError(f"{wanted}: every support was tried")
    incumbent.bound = bound
    proved = bound >= best.value - problem.claim_tol(best.value)
    incumbent.record("enumeration", SearchOutcome(best, 0, proved), time.perf_counter() - started)
    return True


def _supports_of(problem: SupportProblem, free: Vector, sizes: range) -> Iterator[Vector]:
    """Yield the forced variables with every choice of so many free ones, as the rules allow.

    With rules and without a minimum size only maximal supports are needed, which contain the others.
    """
    rules = problem.rules
    for chosen in chain.from_iterable(combinations(free.tolist(), size) for size in sizes):
        support = np.sort(np.concatenate([problem.forced, np.array(chosen, dtype=np.intp)]))
        support = rules.closure(support) if rules.group is not None else support
        if rules.any and not problem.allows(support):
            continue
        if not rules.any or problem.floors.any or not (rules.enterable(support, problem.asked) & problem.allowed).any():
            yield support


def _ranked(problem: SupportProblem, supports: list[Vector]) -> list[tuple[int, float]]:
    """Return the places of the supports with lower bounds of φ there without inequalities, the least first.

    Where nothing is known the bound is −∞, and the order remains.
    """
    bounds, model, linear = np.full(len(supports), -np.inf), problem.model, problem.linear
    sizes = np.array([support.size for support in supports])
    if model is None or not problem.can.exact_evaluation:
        return list(enumerate(bounds.tolist()))
    if problem.k > 1:
        model.prefetch(np.flatnonzero(problem.allowed))  # most are needed: read them in one pass
    for size in (size for size in np.unique(sizes) if 0 < size <= LARGEST_BATCHED):
        places = np.flatnonzero(sizes == size)
        step = max(1, min(MOST_COLUMNS // size, ENTRIES // size**2))
        for part in (places[begin : begin + step] for begin in range(0, places.size, step)):
            used, chosen = np.unique(np.array([supports[place] for place in part]), return_inverse=True)
            on_used = Linear.of(used.size) if linear is None else linear.on(used)
            if on_used is not None:
                H = np.diag(model.diagonal[used]) if size == 1 else model.block(used)
                bounds[part] = lower_bounds_on_supports(H, model.r[used], on_used, chosen, model.noise, model.constant)
    return [(int(place), float(bounds[place])) for place in np.argsort(bounds, kind="stable")]


def describe_constraints(problem: SupportProblem) -> str:
    """Return the constraints on the nonzeros in words."""
    low, high = problem.floors.size.min(), problem.floors.size.max()
    same = f"{low:g} in size" if low == high else "as large as its min_nonzero"
    sized = "" if high == 0 else f", each at least {same},"
    what = "groups" if problem.rules.group is not None else "nonzeros"
    ruled = " that the rules about supports allow" if problem.rules.any else ""
    return f"with at most k = {problem.asked} {what}{sized}{ruled}"
