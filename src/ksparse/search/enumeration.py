"""Enumeration of all supports, if there are few: the best one is then proved optimal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import combinations
from math import comb

import numpy as np

from ksparse.errors import InfeasibleError
from ksparse.search.candidate import Incumbent, SearchOutcome
from ksparse.search.problem import SupportProblem
from ksparse.util.arrays import Vector
from ksparse.util.resources import GRACE

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
    supports = _supports_satisfying_rules(problem) if problem.rules.any else _supports_of(sizes, free, problem.forced)
    if problem.k > 1 and problem.model is not None:
        problem.model.prefetch(np.flatnonzero(problem.allowed))  # each is needed: read them in one pass
    bound = np.inf  # a lower bound of φ on all supports
    for support in supports:
        candidate = problem.evaluate(support)
        if candidate is not None and (incumbent.best is None or candidate.value < incumbent.best.value):
            incumbent.best = candidate
        bound = min(bound, problem.lower_bound(support))
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


def _supports_of(sizes: range, free: Vector, forced: Vector) -> Iterator[Vector]:
    """Yield the forced variables with every choice of so many free ones."""
    for size in sizes:
        for chosen in combinations(free.tolist(), size):
            yield np.union1d(forced, np.array(chosen, dtype=np.intp)).astype(np.intp)


def _supports_satisfying_rules(problem: SupportProblem) -> Iterator[Vector]:
    """Yield every support that the rules allow; without a minimum size only maximal ones, which contain them."""
    rules, free = problem.rules, problem.inactive(problem.forced)
    free = free[rules.weight[free] > 0]
    for size in range(min(problem.asked, free.size) + 1):
        for chosen in combinations(free.tolist(), size):
            support = np.union1d(problem.forced, np.array(chosen, dtype=np.intp)).astype(np.intp)
            support = rules.closure(support) if rules.group is not None else support
            if not problem.allows(support):
                continue
            if problem.floors.any or not (rules.enterable(support, problem.asked) & problem.allowed).any():
                yield support


def describe_constraints(problem: SupportProblem) -> str:
    """Return the constraints on the nonzeros in words."""
    low, high = problem.floors.size.min(), problem.floors.size.max()
    same = f"{low:g} in size" if low == high else "as large as its min_nonzero"
    sized = "" if high == 0 else f", each at least {same},"
    what = "groups" if problem.rules.group is not None else "nonzeros"
    ruled = " that the rules about supports allow" if problem.rules.any else ""
    return f"with at most k = {problem.asked} {what}{sized}{ruled}"
