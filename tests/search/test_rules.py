"""Rules about supports against independent enumeration: allowed supports, and the best point on each."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import lsq_linear, nnls

import ksparse as ks
from conftest import sweep
from ksparse.result import Status
from ksparse.search.support_rules import closed_rows
from ksparse.solve.request import make_rules

SEARCHED = ks.SearchSettings(enumerated=0)  # no support is found by trying all


def subsets(n, most):
    return (set(chosen) for size in range(most + 1) for chosen in combinations(range(n), size))


def obeys(S, k, groups, group_limits, requires):
    """Whether a support satisfies the rules."""
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
    """Return every set of nonzeros contained in a support that satisfies the rules."""
    top = n if groups is not None else k
    whole = [
        S
        for S in subsets(n, top)
        if obeys(S, k, groups, group_limits, requires) and S >= set(forced_in) and not S & set(forced_out)
    ]
    return {frozenset(T) for S in whole for size in range(len(S) + 1) for T in combinations(sorted(S), size)}


def squares(A, b, T, signed=False):
    """Return the best fit on T; under signs only if it is positive, since smaller supports cover the other cases."""
    T = sorted(T)
    x = np.linalg.lstsq(A[:, T], b, rcond=None)[0] if T else np.zeros(0)
    return np.inf if signed and (x < 0).any() else 0.5 * float(np.sum((A[:, T] @ x - b) ** 2))


def budgeted(V, r, T):
    """Minimise ½xᵀVx − rᵀx on Σx = 1, x ≥ 0, by its optimality conditions on T."""
    T = sorted(T)
    if not T:
        return np.inf
    K = np.block([[V[np.ix_(T, T)], np.ones((len(T), 1))], [np.ones((1, len(T))), np.zeros((1, 1))]])
    x = np.linalg.solve(K, np.append(r[T], 1.0))[:-1]
    return np.inf if (x < 0).any() else float(0.5 * x @ V[np.ix_(T, T)] @ x - r[T] @ x)


def drawn(seed):
    """Return a random problem with random rules: loss, set, k, rules, and the least value by enumeration."""
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
    if seed % 5 != 3:  # the first variables have no parents, so that every label can be filled alone
        heads = [
            i
            for i in range(n)
            if "group_limits" not in rules or i == rules["group_limits"][0].index(rules["group_limits"][0][i])
        ]
        children = [i for i in range(n) if i not in heads][: int(rng.integers(1, 4))]
        rules["requires"] = {
            i: [int(p) for p in rng.choice([j for j in range(n) if j != i], int(rng.integers(1, 3)), replace=False)]
            for i in children
        }
    if kind == 2:
        V, r = A.T @ A / 20, 0.1 * rng.standard_normal(n)
        loss, C, value = ks.Quadratic(V, -r), ks.Simplex(), lambda T: budgeted(V, r, T)
    else:
        loss, C, value = (
            ks.LeastSquares(A, b),
            ks.Nonnegative() if kind else None,
            lambda T: squares(A, b, T, signed=bool(kind)),
        )
    allowed = allowed_supports(n, k, **rules)
    return loss, C, k, rules, allowed, min((value(T) for T in allowed), default=np.inf)


@pytest.mark.parametrize("seed", sweep(range(60), 20))
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


def groups_and_more(seed, n=8):
    """Return groups, or limits with parents, and sometimes variables forced in or out."""
    rng = np.random.default_rng(seed)
    labels = [int(label) for label in rng.integers(0, 4, n)]
    if seed % 2:
        rules = {"groups": labels}
    else:
        limits = {label: (int(rng.integers(0, 2)), int(rng.integers(1, 3))) for label in sorted(set(labels))}
        limits = {label: limits[label] for label in list(limits)[:2]}
        free = [i for i in range(n) if labels[i] not in limits]
        rules = {
            "group_limits": (labels, limits),
            "requires": {i: [int(rng.integers(0, n - 1))] for i in free[:2] if i},
        }
    forced = {"forced_in": [int(rng.integers(0, n))]} if seed % 3 == 0 else {}
    return rng, rules, forced, min(3, len(set(labels)))


LOSSES = {
    "squares": lambda A, b: (ks.LeastSquares(A, b), None, lambda T: squares(A, b, T)),
    "component": lambda A, b: (
        ks.PrincipalComponent(A.T @ A), ks.L2Ball(), lambda T: -np.linalg.norm(A[:, sorted(T)], 2) ** 2,
    ),
    "custom": lambda A, b: (
        ks.Custom(lambda x: 0.5 * float(np.sum((A @ x - b) ** 2)), lambda x: A.T @ (A @ x - b), n=8), None,
        lambda T: squares(A, b, T),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("seed", sweep(range(12), 4))
def test_groups_and_forced_variables_on_every_neighbourhood(kind, seed):
    rng, rules, forced, k = groups_and_more(seed)
    A = rng.standard_normal((30, 8)) + rng.standard_normal((30, 1))
    loss, C, value = LOSSES[kind](A, A @ rng.standard_normal(8) + rng.standard_normal(30))
    allowed = allowed_supports(8, k, **rules, **forced)
    if not allowed:
        with pytest.raises(ks.InfeasibleError):
            ks.minimize(loss, k, C, **rules, **forced)
        return
    best = min(value(T) for T in allowed if T)
    gap = None if kind == "custom" else 1e-6
    result = ks.minimize(loss, k, C, gap=gap, settings=ks.SearchSettings(enumerated=0), **rules, **forced)
    assert result.success
    assert frozenset(result.support.tolist()) in allowed
    assert result.fun == pytest.approx(best, rel=3e-6)
    assert gap is None or result.status is Status.OPTIMAL


@pytest.mark.parametrize("seed", sweep(range(6), 2))
def test_every_k_of_a_path_is_the_best_of_its_own(seed):
    rng, rules, forced, k = groups_and_more(seed)
    A = rng.standard_normal((30, 8))
    b = A @ rng.standard_normal(8)
    ks_ = [size for size in range(1, k + 1) if allowed_supports(8, size, **rules, **forced)]
    path = ks.k_path(ks.LeastSquares(A, b), ks_, settings=SEARCHED, gap=1e-6, **rules, **forced)
    for size in ks_:
        allowed = allowed_supports(8, size, **rules, **forced)
        assert frozenset(path[size].support.tolist()) in allowed
        assert path[size].fun == pytest.approx(min(squares(A, b, T) for T in allowed), rel=3e-6)


def above_floor(V, r, T, floor):
    """Minimise ½xᵀVx − rᵀx on Σx = 1, x ≥ floor on T: the best of all faces."""
    best, T = np.inf, sorted(T)
    for held in (list(held) for size in range(len(T)) for held in combinations(T, size)):
        free = [i for i in T if i not in held]
        K = np.block([[V[np.ix_(free, free)], np.ones((len(free), 1))], [np.ones((1, len(free))), np.zeros((1, 1))]])
        x = np.zeros(r.size)
        x[held] = floor
        x[free] = np.linalg.solve(K, np.append(r[free] - V[free] @ x, 1.0 - floor * len(held)))[:-1]
        if (x[free] >= floor - 1e-12).all():
            best = min(best, float(0.5 * x @ V @ x - r @ x))
    return best


@pytest.mark.parametrize("seed", sweep(range(8), 3))
def test_above_a_floor_the_nonzeros_obey_by_themselves(seed):
    rng, rules, _, k = groups_and_more(seed)
    A = rng.standard_normal((20, 8)) + rng.standard_normal((20, 1))
    V, r = A.T @ A / 20, 0.4 * rng.standard_normal(8)
    whole = [
        S
        for S in subsets(8, 8)
        if S and obeys(S, k, rules.get("groups"), rules.get("group_limits"), rules.get("requires"))
    ]
    best = min(above_floor(V, r, S, 0.07) for S in whole)
    for options in ({"gap": 1e-6, "settings": SEARCHED}, {}):
        result = ks.minimize(ks.Quadratic(V, -r), k, ks.Simplex(), min_nonzero=0.07, **rules, **options)
        assert set(result.support.tolist()) in whole
        assert result.success
        assert result.status is Status.OPTIMAL
        assert result.fun == pytest.approx(best, rel=3e-6)


@pytest.mark.parametrize("seed", sweep(range(10), 4))
def test_swap_optimal_holds_for_every_allowed_exchange(seed):
    rng = np.random.default_rng(seed)
    A, n, k = rng.standard_normal((30, 40)) + rng.standard_normal((30, 1)), 40, 6
    b, labels = rng.standard_normal(30), [i % 4 for i in range(n)]
    rules = {
        "group_limits": (labels, {0: (0, 1), 1: (1, 2)}),
        "requires": {i: [i - 4] for i in range(20, 30) if labels[i] > 1},
    }
    result = ks.minimize(ks.LeastSquares(A, b), k, **rules)
    assert result.status is Status.SWAP_OPTIMAL
    told = make_rules(None, *rules.values(), n=n)
    at = set(result.support.tolist())
    assert told.is_extendable(result.support, k)
    for T in [at - {j} | {i} for j in [None, *at] for i in set(range(n)) - at]:
        if told.is_extendable(np.array(sorted(T)), k):
            assert squares(A, b, T) >= result.fun * (1 - 1e-8)


def test_the_start_of_the_user_is_never_lost_and_a_forbidden_one_is_no_answer(rng):
    A, b, limits = rng.standard_normal((30, 12)), rng.standard_normal(30), ([0, 1] * 6, {0: (0, 1)})
    good = ks.minimize(ks.LeastSquares(A, b), 4, group_limits=limits)
    again = ks.minimize(ks.LeastSquares(A, b), 4, group_limits=limits, x0=good.x, settings=SEARCHED)
    assert again.fun <= good.fun * (1 + 1e-12)
    forbidden = np.zeros(12)
    forbidden[[0, 2, 4, 6]] = 1.0
    result = ks.minimize(ks.LeastSquares(A, b), 4, group_limits=limits, x0=forbidden, settings=SEARCHED)
    assert np.count_nonzero(result.support % 2 == 0) <= 1


def test_a_direction_that_rules_forbid_is_not_called_unbounded():
    """φ is unbounded below only along x₀ − x₁, two variables of one label with limit 1."""
    Q, c = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), np.array([-1.0, 1.0, -0.5])
    assert ks.minimize(ks.Quadratic(Q, c), 2).status is Status.UNBOUNDED
    ruled = ks.minimize(ks.Quadratic(Q, c), 2, group_limits=(list("aab"), {"a": (0, 1)}))
    assert ruled.status is Status.OPTIMAL
    assert ruled.fun == pytest.approx(-0.625)


def test_what_variables_bring_is_closed():
    assert closed_rows(4, [(3, 2), (2, 1)]).toarray().tolist() == [
        [1, 0, 0, 0],
        [0, 1, 0, 0],
        [0, 1, 1, 0],
        [0, 1, 1, 1],
    ]


LABELS = list("aabbc")
WRONG = {
    "limits are no pair": ({"group_limits": LABELS}, TypeError, "group_limits must be"),
    "too few labels": (
        {"group_limits": (LABELS[:4], {"a": (0, 1)})}, ValueError, "label for each of the 5 variables, got 4",
    ),
    "one label for all": ({"groups": "aabbc"}, TypeError, "groups must hold a label"),
    "unknown label": ({"group_limits": (LABELS, {"z": (0, 1)})}, ValueError, "label 'z', which no variable"),
    "least above most": (
        {"group_limits": (LABELS, {"a": (2, 1)})}, ValueError, "at least 2 and at most 1 of label 'a'",
    ),
    "limits no integers": (
        {"group_limits": (LABELS, {"a": (0.5, 1)})}, TypeError, "minimum count in group_limits for label 'a'",
    ),
    "requires a list": ({"requires": [1, 2]}, TypeError, "requires must be"),
    "a parent too far": ({"requires": {1: [5]}}, ValueError, "a parent in requires"),
    "k counts groups": ({"groups": LABELS, "k": 4}, ValueError, "k must be an integer in 0..3"),
    "more than k": (
        {"group_limits": (list("aaaab"), {"a": (4, 4)})}, ks.InfeasibleError,
        "at least 4 of label 'a', more than k = 3",
    ),
    "more than there are": (
        {"group_limits": (LABELS, {"c": (2, 2)})}, ks.InfeasibleError, "at least 2 of label 'c', of which 1 variables",
    ),
    "taken away": (
        {"group_limits": (LABELS, {"c": (1, 1)}), "forced_out": [4]}, ks.InfeasibleError,
        "label 'c', of which 0 variables",
    ),
    "forced too many": (
        {"group_limits": (LABELS, {"a": (0, 1)}), "forced_in": [0, 1]}, ks.InfeasibleError, "1 of label 'a', but 2",
    ),
    "together too many": (
        {"group_limits": (LABELS, {"a": (2, 2), "b": (2, 2)})}, ks.InfeasibleError, "2 of label 'a', 2 of label 'b'",
    ),
    "parent forced out": (
        {"requires": {1: 2}, "forced_in": [1], "forced_out": [2]}, ks.InfeasibleError, "requires variable 2, which",
    ),
    "all have parents": (
        {"group_limits": (LABELS, {"c": (1, 1)}), "requires": {4: 0}}, ks.MissingPieceError,
        "without parents, there are 0",
    ),
    "a paper's method": (
        {"requires": {1: 2}, "method": "apdca"}, ValueError, "requires is only supported with method='auto'",
    ),
    "two labels in a group": (
        {"groups": LABELS, "group_limits": (list("xyxyz"), {"x": (0, 1), "y": (0, 1)})}, ValueError, "of group 'a'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_rules_are_errors(case):
    options, error, message = WRONG[case]
    loss = ks.LeastSquares(np.eye(5), np.ones(5))
    with pytest.raises(error, match=message):
        ks.minimize(loss, options.get("k", 3), **{name: value for name, value in options.items() if name != "k"})


@pytest.mark.parametrize("seed", sweep(range(10), 4))
def test_all_that_are_nearly_as_good(seed):
    """Compare with the best point on every allowed support whose value is good enough."""
    rng, rules, forced, k = groups_and_more(seed)
    A = rng.standard_normal((30, 8)) + rng.standard_normal((30, 1))
    b = A @ rng.standard_normal(8) + rng.standard_normal(30)
    whole = [
        sorted(S) for S in subsets(8, 8)
        if S >= set(forced.get("forced_in", ()))
        and obeys(S, k, rules.get("groups"), rules.get("group_limits"), rules.get("requires"))
    ]  # fmt: skip
    values = {tuple(S): squares(A, b, S) for S in whole}
    if not values:
        return
    edge = 1.1 * min(values.values())
    found = ks.near_optimal(ks.LeastSquares(A, b), k, within=0.1, settings=SEARCHED, **rules, **forced)
    assert found.complete
    assert {tuple(support.tolist()) for support in found.supports} == {
        S for S, value in values.items() if value <= edge
    }


def test_near_ones_above_a_floor_and_with_signs(rng):
    A = rng.standard_normal((20, 8)) + rng.standard_normal((20, 1))
    V, r, rules = (
        A.T @ A / 20,
        0.4 * rng.standard_normal(8),
        {"group_limits": ([0, 0, 0, 1, 1, 1, 2, 2], {0: (0, 1), 1: (1, 2)})},
    )
    values = {
        tuple(sorted(S)): above_floor(V, r, S, 0.07)
        for S in subsets(8, 4)
        if S and obeys(S, 4, None, rules["group_limits"], None)
    }
    found = ks.near_optimal(
        ks.Quadratic(V, -r), 4, ks.Simplex(), within=0.3, min_nonzero=0.07, settings=SEARCHED, **rules
    )
    best = min(values.values())
    assert found.complete
    assert {tuple(support.tolist()) for support in found.supports} == {
        S for S, value in values.items() if value <= best + 0.3 * abs(best)
    }


def rules_and_forced(rng, n, kind):
    """Return rules of one kind, or none, with up to two variables forced in and up to three forced out."""
    labels, rules = [int(label) for label in rng.integers(0, rng.integers(2, 6), n)], {}
    if kind == "groups":
        rules = {"groups": labels}
    elif kind == "limits":
        rules = {
            "group_limits": (
                labels,
                {g: (int(rng.integers(0, 2)), int(rng.integers(1, 3))) for g in sorted(set(labels))[:2]},
            )
        }
    elif kind == "parents":
        rules = {"requires": {int(i): [int((i + rng.integers(1, n)) % n)] for i in rng.choice(n, 3, replace=False)}}
    order, inside, outside = rng.permutation(n).tolist(), int(rng.integers(0, 3)), int(rng.integers(0, 4))
    forced = {"forced_in": order[:inside], "forced_out": order[inside : inside + outside]}
    return rules, forced, int(rng.integers(1, min(4, len(set(labels)) if kind == "groups" else n) + 1))


def on_plane(R, q):
    """Return the least-squares solution with Σx = 1, by its optimality conditions."""
    ones = np.ones((R.shape[1], 1))
    return np.linalg.solve(np.block([[R.T @ R, ones], [ones.T, np.zeros((1, 1))]]), np.append(R.T @ q, 1.0))[:-1]


SETS = {
    "space": (lambda n: ks.WholeSpace(), lambda R, q: np.linalg.lstsq(R, q, rcond=None)[0]),
    "box": (lambda n: ks.Box(-0.7, 0.7), lambda R, q: lsq_linear(R, q, (-0.7, 0.7), method="bvls", tol=1e-14).x),
    "signs": (lambda n: ks.Nonnegative(), lambda R, q: nnls(R, q)[0]),
    "plane": (lambda n: ks.Polyhedron(E=np.ones((1, n)), f=[1.0]), on_plane),
}


@pytest.mark.parametrize("C", SETS)
@pytest.mark.parametrize("kind", ["groups", "limits", "parents", "none"])
@pytest.mark.parametrize("seed", range(2))
def test_rules_with_forced_variables_on_every_set_as_by_plain_enumeration(kind, C, seed):
    rng = np.random.default_rng([seed, *kind.encode(), *C.encode()])
    n = int(rng.integers(4, 9))
    (rules, forced, k), (make_set, solve) = rules_and_forced(rng, n, kind), SETS[C]
    A, b = rng.standard_normal((n + 2, n)) + 0.5 * rng.standard_normal((n + 2, 1)), 2.0 * rng.standard_normal(n + 2)
    R, q = np.vstack([A, np.sqrt(0.1) * np.eye(n)]), np.append(b, np.zeros(n))

    def best(S):
        x = np.zeros(n)
        x[S] = solve(R[:, S], q) if S else 0.0
        return (0.5 * float(np.sum((R @ x - q) ** 2)), tuple(np.flatnonzero(x))) if S or C != "plane" else (np.inf, ())

    allowed = allowed_supports(n, k, **rules, **forced)
    whole = [
        S
        for S in allowed
        if S >= set(forced["forced_in"]) and obeys(S, k, *map(rules.get, ("groups", "group_limits", "requires")))
    ]
    values = [best(sorted(S)) for S in whole]
    loss, options = ks.LeastSquares(A, b, ridge=0.1), {"settings": SEARCHED, **rules, **forced}
    if min(values, default=(np.inf,))[0] == np.inf:
        with pytest.raises(ks.InfeasibleError):
            ks.minimize(loss, k, make_set(n), **options)
        return
    least = min(values)[0]
    results = [
        ks.minimize(loss, k, make_set(n), effort=2, **options),
        ks.k_path(loss, [k], make_set(n), gap=1e-7, **options)[k],
    ]
    for result in results:
        assert result.success
        assert frozenset(result.support.tolist()) in allowed
        assert result.fun == pytest.approx(least, rel=2e-6)
    assert results[1].status is Status.OPTIMAL
    near = ks.near_optimal(loss, k, make_set(n), within=0.3, **options)
    assert near.complete or len(allowed) == 1
    assert sorted(tuple(support.tolist()) for support in near.supports) == sorted(
        {S for value, S in values if value <= 1.3 * least}
    )
    np.testing.assert_allclose(
        near.frequencies, [np.mean([i in support for support in near.supports]) for i in range(n)]
    )


def test_a_group_with_a_member_forced_out_stays_out():
    loss = ks.LeastSquares([[3.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 1.0]], [1.0, 5.0, 1.0, 2.0])
    for gap in (None, 1e-6):
        result = ks.minimize(loss, 1, ks.Box(-9, 9), groups=[0, 0, 1], forced_out=[0], settings=SEARCHED, gap=gap)
        np.testing.assert_allclose(result.x, [0.0, 0.0, 1.5])
        assert result.fun == pytest.approx(13.25)
        assert result.success
    loss, rules = ks.LeastSquares(np.eye(6), np.arange(1.0, 7.0)), {"groups": [0, 0, 1, 1, 2, 2], "forced_out": [0, 3]}
    result = ks.minimize(loss, 2, ks.Polyhedron(np.ones((1, 6)), [3.0]), settings=SEARCHED, **rules)
    assert set(result.support.tolist()) <= {4, 5}
