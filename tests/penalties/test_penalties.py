"""Each penalty: the pair (g1, g2), proxes against brute force, the subgradient, and the weight that keeps x at 0."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import catalogue
import ksparse as ks
from ksparse.firstorder.loop import drive
from ksparse.firstorder.problem import Problem, Stopping
from ksparse.util.arrays import to_numpy

cases = st.tuples(
    st.integers(1, 8),
    st.integers(0, 10**6),
    st.sampled_from([0.05, 0.5, 1.0, 3.0, 20.0]),
    st.sampled_from([0.1, 1.0, 5.0]),
)


def draw(n, seed, scale):
    return np.random.default_rng(seed).standard_normal((2, n)) * scale


TABLE1 = {  # g one entry at a time, as the paper and Gong et al. print it
    "L1": lambda s: 0.4 * s,
    "CappedL1": lambda s: 0.4 * min(s, 0.8),
    "LogSum": lambda s: 0.4 * np.log(1 + s / 1.5),
    "LogSum steep": lambda s: 0.4 * np.log(1 + s / 0.1),
    "SCAD": lambda s: (
        0.4 * s if s <= 0.4 else ((-(s**2) + 2 * 3.7 * 0.4 * s - 0.16) / (2 * 2.7) if s <= 1.48 else 4.7 * 0.16 / 2)
    ),
    "MCP": lambda s: 0.4 * s - s**2 / 3.0 if s <= 0.6 else 1.5 * 0.16 / 2,
    "MCP concave": lambda s: 0.4 * s - s**2 / 0.6 if s <= 0.12 else 0.3 * 0.16 / 2,
}


@pytest.mark.parametrize("name", TABLE1)
def test_values_are_those_of_table_1(name):
    for s in np.linspace(0, 3, 50):
        assert catalogue.PENALTIES[name](1).value(np.array([-s])) == pytest.approx(TABLE1[name](s), abs=1e-12)


def test_top_k_values_by_sorting(rng):
    for k in range(1, 7):
        x = rng.standard_normal(6)
        tail = np.sort(np.abs(x))[: 6 - k]
        assert ks.TopK1(0.7, k).value(x) == pytest.approx(0.7 * tail.sum())
        assert ks.TopK2(0.7, k).value(x) == pytest.approx(0.7 * (tail**2).sum())
        for penalty in (ks.TopK1(0.7, k), ks.TopK2(0.7, k)):
            assert penalty.value(x) == pytest.approx(penalty.g1(x) - penalty.g2(x), abs=1e-12)
            sparse = np.where(np.abs(x) >= np.sort(np.abs(x))[6 - k], x, 0)
            assert penalty.value(sparse) == 0.0
    assert ks.L1MinusL2(2.0).value(np.array([3.0, -4.0])) == pytest.approx(2 * (7 - 5))


@pytest.mark.parametrize("name", catalogue.PENALTIES)
@given(case=cases)
def test_g1_and_g2_are_convex_and_the_subgradient_is_one(name, case):
    n, seed, scale, _ = case
    penalty = catalogue.PENALTIES[name](n)
    x, y = draw(n, seed, scale)
    before = x.copy()
    size = 1e-10 * max(1.0, scale**2)
    for part in (penalty.g1, penalty.g2):
        assert part((x + y) / 2) <= (part(x) + part(y)) / 2 + size
    for at in (x, np.zeros(n), np.where(np.arange(n) % 2, x, 0.0)):
        assert penalty.g2(y) >= penalty.g2(at) + penalty.subgradient_g2(at) @ (y - at) - size
    assert penalty.value(x) == pytest.approx(penalty.g1(x) - penalty.g2(x), abs=size)
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("name", catalogue.PENALTIES)
@given(case=cases)
def test_prox_of_g1_meets_the_three_point_inequality(name, case):
    n, seed, scale, t = case
    penalty = catalogue.PENALTIES[name](n)
    u, y = draw(n, seed, scale)
    x = penalty.prox_g1(u, t)
    for other in (y, u, np.zeros(n), x + 1e-3 * y):
        gap = t * penalty.g1(other) + 0.5 * np.sum((other - u) ** 2) - t * penalty.g1(x) - 0.5 * np.sum((x - u) ** 2)
        assert gap >= 0.5 * np.sum((other - x) ** 2) - 1e-9 * max(1.0, scale**2)


@pytest.mark.parametrize("name", catalogue.PENALTIES)
@given(case=cases)
def test_prox_of_the_whole_beats_a_fine_grid(name, case):
    """In one dimension a grid is brute force; in more, no random point near the answer may be better."""
    n, seed, scale, t = case
    penalty = catalogue.PENALTIES[name](n)
    u, _ = draw(n, seed, scale)
    x = penalty.prox(u, t)

    def cost(v):
        return t * penalty.value(v) + 0.5 * np.sum((v - u) ** 2)

    best = cost(x)
    rng = np.random.default_rng(seed)
    if n == 1:
        rivals = [np.array([v]) for v in np.linspace(-2 * abs(u[0]) - 1, 2 * abs(u[0]) + 1, 2001)]
    else:
        rivals = [x + rng.standard_normal(n) * 10.0 ** rng.uniform(-4, 1) for _ in range(200)]
        rivals += [np.where(mask, u, 0) for mask in itertools.islice(itertools.product((0, 1), repeat=n), 256)]
        rivals += [penalty.prox_g1(u, t), u, np.zeros(n)]
    assert best <= min(cost(v) for v in rivals) + 1e-9 * max(1.0, scale**2)


@pytest.mark.parametrize("name", ["TopK1", "TopK2"])
def test_prox_of_the_top_k_penalties_is_the_best_over_all_choices_of_the_k(name, rng):
    n, t = 6, 0.8
    penalty = catalogue.PENALTIES[name](n)
    for _ in range(20):
        u = rng.standard_normal(n)
        costs = []
        for kept in itertools.combinations(range(n), penalty.k):
            x = penalty.prox_g1(u, t)
            x[list(kept)] = u[list(kept)]
            costs.append(t * penalty.value(x) + 0.5 * np.sum((x - u) ** 2))
        x = penalty.prox(u, t)
        assert t * penalty.value(x) + 0.5 * np.sum((x - u) ** 2) == pytest.approx(min(costs))


@pytest.mark.parametrize("name", catalogue.PENALTIES)
def test_other_array_namespaces_keep_kind_and_agree(name, asarray, rng):
    penalty = catalogue.PENALTIES[name](8)
    x = rng.standard_normal(8).astype(np.float32).astype(np.float64)
    given_x = asarray(x)
    tol = 1e-12 if "64" in str(given_x.dtype) else 1e-5
    for f in (penalty.value, penalty.g1, penalty.g2):
        assert f(given_x) == pytest.approx(f(x), rel=tol, abs=tol)
    for f in (lambda v: penalty.prox(v, 0.3), lambda v: penalty.prox_g1(v, 0.3), penalty.subgradient_g2):
        out = f(given_x)
        assert type(out) is type(given_x)
        assert out.dtype == given_x.dtype
        np.testing.assert_allclose(to_numpy(out), f(x), rtol=tol, atol=tol)


def weighted(name, weight):
    theta = {"CappedL1": 0.8, "LogSum": 1.5, "LogSum steep": 0.1, "SCAD": 3.7, "MCP": 1.5, "MCP concave": 0.3}
    kind = name.split()[0]
    if kind.startswith("TopK"):
        return getattr(ks, kind)(weight, 3)
    return getattr(ks, kind)(weight, theta[name]) if name in theta else getattr(ks, kind)(weight)


@pytest.mark.parametrize("name", [name for name in catalogue.PENALTIES if name != "TopK2"])
def test_weight_max_is_where_zero_becomes_stationary(name, rng):
    loss = ks.LeastSquares(rng.standard_normal((20, 6)), rng.standard_normal(20))
    weight = ks.weight_max(loss, weighted(name, 1.0))
    assert weight == ks.weight_max(loss, weighted(name, 7.0))
    for factor, stays in ((1.001, True), (0.999, False)):
        problem = Problem(loss, weighted(name, factor * weight))
        run = drive(ks.PDCA(rule=ks.FixedStep()), problem, np.zeros(6), Stopping(tol=0.0, max_iter=50))
        assert (not run.x.any()) is stays


def test_no_weight_of_top_k2_holds_zero(rng):
    loss = ks.LeastSquares(rng.standard_normal((20, 6)), rng.standard_normal(20))
    assert ks.weight_max(loss, ks.TopK2(1.0, 3)) == np.inf
    assert ks.weight_max(ks.LeastSquares(np.eye(3), np.zeros(3)), ks.TopK2(1.0, 2)) == 0.0


@pytest.mark.parametrize(
    "penalty", [ks.MCP(1e-3, 3.7), ks.SCAD(1e-3, 3.7), ks.CappedL1(1e-3, 2.0), ks.LogSum(1e-3, 2.0)]
)
def test_flat_penalties_of_large_entries_do_not_cancel(penalty):
    ends = [penalty.value(np.array([size, -size])) for size in (1e3, 1e20, 1e100)]
    assert 0 < ends[0] <= ends[1] <= ends[2] < 1.0
