"""Rules about supports against plain enumeration, by code of its own: which nonzeros are allowed, and what is best on them."""

from itertools import combinations

import numpy as np
import pytest

import ksparse as ks
from ksparse.result import Status
from ksparse.search.rules import Rules, closed_rows

SEARCHED = ks.SearchSettings(enumerated=0)  # no support is found by trying all


def subsets(n, most):
    return (set(chosen) for size in range(most + 1) for chosen in combinations(range(n), size))


def obeys(S, k, groups, group_limits, requires):
    """Whether a support keeps to the letter of the rules."""
    counted = S
    if groups is not None:
        touched = {groups[i] for i in S}
        if any(groups[i] in touched and i not in S for i in range(len(groups))):
            return False
        counted = {next(i for i in range(len(groups)) if groups[i] == g) for g in touched}
    if len(counted) > k:
        return False
    if group_limits is not None:
        labels, limits = group_limits
        for label, (least, most) in limits.items():
            if not least <= sum(labels[i] == label for i in counted) <= (len(labels) if most is None else most):
                return False
    return all(parent in S for child, parents in (requires or {}).items() if child in S for parent in parents)


def allowed_supports(n, k, *, groups=None, group_limits=None, requires=None, forced_in=(), forced_out=()):
    """Every set of nonzeros that lies in a support that obeys."""
    top = n if groups is not None else k
    whole = [S for S in subsets(n, top) if obeys(S, k, groups, group_limits, requires) and S >= set(forced_in) and not S & set(forced_out)]
    return {frozenset(T) for S in whole for size in range(len(S) + 1) for T in combinations(sorted(S), size)}


def squares(A, b, T, signed=False):
    """The best fit on T; with signs only where it is positive throughout: other supports have the best of the others."""
    T = sorted(T)
    x = np.linalg.lstsq(A[:, T], b, rcond=None)[0] if T else np.zeros(0)
    return np.inf if signed and (x < 0).any() else 0.5 * float(np.sum((A[:, T] @ x - b) ** 2))


def budgeted(V, r, T):
    """½xᵀVx − rᵀx on Σx = 1, x ≥ 0, by its optimality conditions on T."""
    T = sorted(T)
    if not T:
        return np.inf
    K = np.block([[V[np.ix_(T, T)], np.ones((len(T), 1))], [np.ones((1, len(T))), np.zeros((1, 1))]])
    x = np.linalg.solve(K, np.append(r[T], 1.0))[:-1]
    return np.inf if (x < 0).any() else float(0.5 * x @ V[np.ix_(T, T)] @ x - r[T] @ x)


def drawn(seed):
    """A random problem of each kind with random rules: the loss, the set, k, the rules, and the least value by enumeration."""
    rng = np.random.default_rng(seed)
    n, kind, rules = int(rng.integers(6, 10)), seed % 3, {}
    k = int(rng.integers(2, 5))
    A = rng.standard_normal((20, n)) + 0.7 * rng.standard_normal((20, 1))
    b = A @ np.where(rng.random(n) < 0.6, rng.standard_normal(n), 0.0) + 0.3 * rng.standard_normal(20)
    if seed % 5 != 4:
        labels = [str(label) for label in rng.integers(0, 3, n)]
        free = dict.fromkeys(labels, 0)
        for label in rng.permutation(sorted(free))[: int(rng.integers(1, 3))]:
            least = int(rng.integers(0, 2))
            free[str(label)] = (least, int(rng.integers(max(least, 1), 3)))
        rules["group_limits"] = labels, {label: limits for label, limits in free.items() if limits != 0}
    if seed % 5 != 3:  # the first need nobody, so that every label can be filled by itself
        heads = [i for i in range(n) if "group_limits" not in rules or i == rules["group_limits"][0].index(rules["group_limits"][0][i])]
        children = [i for i in range(n) if i not in heads][: int(rng.integers(1, 4))]
        rules["requires"] = {i: [int(p) for p in rng.choice([j for j in range(n) if j != i], int(rng.integers(1, 3)), replace=False)] for i in children}
    if kind == 2:
        V, r = A.T @ A / 20, 0.1 * rng.standard_normal(n)
        loss, C, value = ks.Quadratic(V, -r), ks.Simplex(), lambda T: budgeted(V, r, T)
    else:
        loss, C, value = ks.LeastSquares(A, b), ks.Nonnegative() if kind else None, lambda T: squares(A, b, T, signed=bool(kind))
    allowed = allowed_supports(n, k, **rules)
    return loss, C, k, rules, allowed, min((value(T) for T in allowed), default=np.inf)


@pytest.mark.parametrize("seed", range(60))
def test_enumerated_searched_and_proved_as_by_plain_enumeration(seed):
    loss, C, k, rules, allowed, best = drawn(seed)
    if not np.isfinite(best):
        with pytest.raises(ks.InfeasibleError):
            ks.minimize(loss, k, C, **rules)
        return
    tried = ks.minimize(loss, k, C, **rules)
    assert tried.status is Status.OPTIMAL
    proved = ks.minimize(loss, k, C, gap=1e-6, settings=SEARCHED, **rules)
    assert proved.status is Status.OPTIMAL
    assert proved.lower_bound <= best + 1e-9 * abs(best)
    for result in (tried, proved):
        assert result.success
        assert frozenset(result.support.tolist()) in allowed
        assert result.fun == pytest.approx(best, rel=2e-6, abs=1e-9)
