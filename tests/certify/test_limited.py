"""Bounds under limits per label and whole groups, against enumeration at any dual point; decisions keep the optimum."""

from itertools import combinations

import numpy as np
import pytest

import ksparse as ks
from ksparse.certify.bound import QuadraticBound, fix_by_bound
from ksparse.certify.diagonal import scaled_to_psd
from ksparse.certify.program import ScaledProblem
from ksparse.numerics.relaxation_kernels import FREE, IN, OUT
from ksparse.search.candidate import Candidate
from ksparse.search.problem import SupportProblem
from ksparse.solve.request import make_rules

N, NONE = 7, np.zeros(0, dtype=np.intp)


def drawn(rng, grouped):
    """Return a regression, k, and rules of one or both kinds."""
    A = rng.standard_normal((15, N)) + rng.uniform(0, 2) * rng.standard_normal((15, 1))
    b = A @ rng.standard_normal(N) + rng.standard_normal(15)
    groups = [int(g) for g in np.sort(rng.integers(0, 5, N))] if grouped else None
    labels = [g % 2 for g in groups] if grouped else [int(label) for label in rng.integers(0, 3, N)]
    least = int(rng.integers(0, 2))
    rules = make_rules(groups, (labels, {labels[0]: (least, least + int(rng.integers(0, 2)) + (least == 0))}), n=N)
    return A, b, min(3, int(rules.weight.sum())), rules


def best(A, b, k, rules, state):
    """Return the least value over all supports that obey the rules and the decisions."""
    found = np.inf
    for size in range(N + 1):
        for S in (np.array(S, dtype=np.intp) for S in combinations(range(N), size)):
            decided = (
                np.isin(np.flatnonzero(state == IN), S).all() and not np.isin(np.flatnonzero(state == OUT), S).any()
            )
            if decided and rules.is_satisfied(S) and rules.weight[S].sum() <= k:
                x = np.linalg.lstsq(A[:, S], b, rcond=None)[0] if size else np.zeros(0)
                found = min(found, 0.5 * float(np.sum((A[:, S] @ x - b) ** 2)))
    return found


@pytest.mark.parametrize("grouped", [False, True])
def test_no_dual_point_gives_a_bound_above_the_optimum(grouped):
    tight = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        A, b, k, rules = drawn(rng, grouped)
        optimum = best(A, b, k, rules, np.zeros(N))
        if not np.isfinite(optimum):
            continue
        problem = SupportProblem.of(ks.LeastSquares(A, b), ks.WholeSpace(), N, k, rules=rules)
        known = Candidate.without_multipliers(NONE, np.zeros(0), optimum)
        program = ScaledProblem.of(problem, problem.model, known)
        state = rng.choice([FREE, FREE, FREE, IN, OUT], N).astype(np.int8)
        if not program.supports.propagate(state):
            state[:] = FREE
        here = best(A, b, k, rules, state) / program.scale
        dual = QuadraticBound(program, scaled_to_psd(program, rng.uniform(0, 1, N)))
        H, at = program.H, np.zeros((1, N))
        at[0] = np.linalg.solve(H, program.r) + rng.choice([0.0, 0.1, 1.0]) * rng.standard_normal(N)
        none = np.zeros((1, 0))
        found = dual.at(at, none, none, state[None])
        assert not found.value[0] > here + 1e-9 * (1 + abs(here))
        tight += found.value[0] > 0
        decided = state[None].copy()
        fix_by_bound(decided, found, program.supports.k, here - 1e-6 * abs(here))
        if np.isfinite(here):
            assert best(A, b, k, rules, decided[0]) / program.scale <= here * (1 + 1e-9) + 1e-12
    assert tight > 10


WEAK = {
    "changes": 1,
    "returns": 0,
    "relaxed": 0,
    "drawn": 0,
    "restarts": 0,
}
# so that a tree finds all
WEAK |= {"enumerated": 0, "depth": 0.0, "entering": 1, "tried": 0, "proved": 0}


def test_a_node_of_more_small_groups_than_k_is_no_leaf():
    """Limits on groups count groups, not variables: a group of three uses one place of the limit."""
    groups, drawn = [3, 4, 2, 0, 2, 5, 5, 2], 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((18, 8)) + 0.5 * rng.standard_normal((18, 1))
        loss, V = ks.PrincipalComponent.from_factor(A), A.T @ A
        found = ks.minimize(
            loss, 2, ks.L2Ball(), groups=groups, forced_in=[3], gap=1e-6, settings=ks.SearchSettings(**WEAK)
        )
        whole = [np.flatnonzero(np.isin(groups, (0, other))) for other in (2, 3, 4, 5)]
        best = -max(np.linalg.eigvalsh(V[np.ix_(S, S)])[-1] for S in whole)
        assert found.lower_bound <= best * (1 - 1e-9)
        assert found.status is not ks.Status.OPTIMAL or found.fun == pytest.approx(best, rel=1e-5)
        drawn += found.nodes > 0
    assert drawn


@pytest.mark.parametrize(
    "rules",
    [
        {"requires": {3: [0], 4: [0], 5: [0]}},
        {"groups": [0, 1, 2, 0, 0, 0, 3, 4]},
        {"group_limits": ([0] + [1] * 7, {0: (1, 1)})},
    ],
)
def test_a_member_may_be_fixed_to_0(rules):
    """The bounds fix a member at 0, which remains allowed."""
    lower, upper = np.full(8, -0.5), np.full(8, 0.5)
    lower[0] = upper[0] = 0.0
    weak = ks.SearchSettings(**WEAK)
    for seed in range(8):
        draw = np.random.default_rng(seed)
        A = draw.standard_normal((20, 8))
        loss, k = (
            ks.LeastSquares(A, A @ draw.standard_normal(8) + draw.standard_normal(20)),
            2 if "groups" in rules else 3,
        )
        best = ks.minimize(loss, k, ks.Box(lower, upper), settings=ks.SearchSettings(enumerated=10_000), **rules)
        assert best.status is ks.Status.OPTIMAL
        found = ks.minimize(loss, k, ks.Box(lower, upper), gap=1e-6, settings=weak, **rules)
        assert found.lower_bound <= best.fun * (1 + 1e-9)
        assert found.fun <= best.fun * (1 + 1e-5) or found.status is not ks.Status.OPTIMAL


def test_limits_that_leave_no_variable(rng):
    loss = ks.LeastSquares(rng.standard_normal((12, 5)), rng.standard_normal(12))
    excluded = ([0] * 5, {0: (0, 0)})
    near = ks.near_optimal(loss, 2, group_limits=excluded)
    assert near.complete
    assert [support.size for support in near.supports] == [0]
    found = ks.minimize(loss, 2, group_limits=excluded, gap=1e-6, settings=ks.SearchSettings(enumerated=0))
    assert not found.x.any()
