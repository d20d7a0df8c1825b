"""Every support there is, where they are few enough to try all: what is best then is proved."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import combinations
from math import comb

import numpy as np

from ksparse.errors import InfeasibleError
from ksparse.search.candidate import Incumbent, SearchOutcome
from ksparse.search.problem import SupportProblem
from ksparse.search.support_rules import Rules
from ksparse.util.arrays import Vector
from ksparse.util.resources import GRACE

COSTLY = 33  # evaluations by a direct solve that take the time of one by a first-order method (about)


def try_all(problem: SupportProblem, incumbent: Incumbent, started: float) -> bool:
    """Try every support where they are few; False where they are many, or the time ran out."""
    supports: Iterator[Vector] | None = all_supports(problem)
    if supports is None:
        return False
    if problem.k > 1 and problem.model is not None:
        problem.model.prefetch(np.flatnonzero(problem.allowed))  # all by one pass: each will be needed
    bound = np.inf  # what the values on all supports are proved not to fall below
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
            return False  # not even that is proved
        raise InfeasibleError(f"C = {problem.C} holds no point {asked(problem)}: every support was tried")
    incumbent.bound = bound
    proved = bound >= best.value - problem.claim_tol(best.value)
    incumbent.record("enumeration", SearchOutcome(best, 0, proved), time.perf_counter() - started)
    return True


def all_supports(problem: SupportProblem) -> Iterator[Vector] | None:
    """Every support of k variables (with a floor: of at most k), where they are few enough to try all; else None."""
    settings = problem.settings
    open_ = problem.allowed.copy()
    open_[problem.forced] = False
    free = np.flatnonzero(open_)  # there may be millions: nothing is sorted
    room = min(problem.k - problem.forced.size, free.size)
    if problem.rules.any:
        free = free[problem.rules.weight[free] > 0]
        room = min(problem.asked, free.size)
    sizes = range(room + 1) if problem.floors.any or problem.rules.any else (room,)
    count = sum(comb(free.size, size) for size in sizes)
    if count > (settings.enumerated // (1 if problem.can.exact_evaluation else COSTLY)):
        return None
    if problem.rules.any:
        return _obedient_supports(problem, problem.rules)
    choices = (list(chosen) for size in sizes for chosen in combinations(range(free.size), size))
    return (np.union1d(problem.forced, free[chosen]).astype(np.intp) for chosen in choices)


def _obedient_supports(problem: SupportProblem, rules: Rules) -> Iterator[Vector]:
    """Every support that rules allow; without a floor only those that nothing can be added to, which hold all others."""
    free = np.setdiff1d(np.flatnonzero(problem.allowed & (rules.weight > 0)), problem.forced)
    for size in range(min(problem.asked, free.size) + 1):
        for chosen in combinations(free.tolist(), size):
            support = np.union1d(problem.forced, np.array(chosen, dtype=np.intp)).astype(np.intp)
            support = rules.closure(support) if rules.grouped else support
            if not problem.allows(support):
                continue
            if problem.floors.any or not (rules.enterable(support, problem.asked) & problem.allowed).any():
                yield support


def asked(problem: SupportProblem) -> str:
    """What is asked of a point, in words."""
    low, high = problem.floors.size.min(), problem.floors.size.max()
    sized = (
        ""
        if high == 0
        else f", each at least {low:g} in size,"
        if low == high
        else ", each at least as large as its min_nonzero,"
    )
    rules = problem.rules
    what = "groups" if rules.grouped else "nonzeros"
    ruled = " that the rules about supports allow" if rules.any else ""
    return f"with at most k = {problem.asked} {what}{sized}{ruled}"
