"""min_nonzero, one number or one per variable, and first feasible supports without integer programming."""

import time
from itertools import combinations

import numpy as np
import pytest

import ksparse as ks
from ksparse.sets import polyhedron


def by_enumeration(loss, k, linear, floor):
    """Return the best value over every support with variables above their minimum sizes, by continuous solves."""
    n, best = loss.n, np.inf
    for size in range(1, k + 1):
        for S in combinations(range(n), size):
            low, high = np.zeros(n), np.zeros(n)
            low[list(S)], high[list(S)] = np.maximum(linear.lower[list(S)], floor[list(S)]), linear.upper[list(S)]
            try:
                best = min(
                    best, ks.minimize(loss, n, ks.Polyhedron(linear.G, linear.h, linear.E, linear.f, low, high)).fun
                )
            except ks.InfeasibleError:
                continue
    return best


@pytest.mark.parametrize("seed", range(4))
def test_a_floor_for_each_variable_as_enumeration_has_it(seed):
    rng = np.random.default_rng(seed)
    n, k = 7, 3
    A = rng.standard_normal((20, n))
    loss, floor = ks.Quadratic(A.T @ A / 20, -rng.uniform(0, 0.5, n)), rng.uniform(0.0, 0.45, n)
    C = ks.Polyhedron(-rng.uniform(0, 1, (1, n)), [-0.4], np.ones((1, n)), [1.0], lower=0.0, upper=0.8)
    for settings in (None, ks.SearchSettings(enumerated=0)):
        result = ks.minimize(loss, k, C, min_nonzero=floor, settings=settings)
        assert result.success
        assert (result.x[result.support] >= floor[result.support] * (1 - 1e-9)).all()
        assert result.fun == pytest.approx(by_enumeration(loss, k, C.as_linear(n), floor), rel=1e-6)


def test_the_same_floor_for_all_may_be_a_number_or_a_vector(rng):
    A = rng.standard_normal((40, 15))
    loss, C = ks.Quadratic(A.T @ A), ks.BudgetBox(1.0, 0.0, 0.5)
    number, vector = (ks.minimize(loss, 6, C, min_nonzero=floor) for floor in (0.12, np.full(15, 0.12)))
    np.testing.assert_array_equal(number.x, vector.x)
    paths = [ks.k_path(loss, [3, 5], C, min_nonzero=floor) for floor in (0.12, np.full(15, 0.12))]
    for one, other in zip(*(path.results for path in paths), strict=True):
        np.testing.assert_array_equal(one.x, other.x)


@pytest.mark.parametrize(
    ("floor", "message"),
    [
        (np.full(14, 0.1), "min_nonzero must have length 15, got 14"),
        (np.r_[-0.1, np.zeros(14)], "min_nonzero must be >= 0, got -0.1 for variable 0"),
        (np.r_[np.nan, np.zeros(14)], "min_nonzero"),
        (-0.1, "min_nonzero must be >= 0"),
    ],
)
def test_bad_floors_are_refused(floor, message, rng):
    A = rng.standard_normal((40, 15))
    with pytest.raises(ValueError, match=message):
        ks.minimize(ks.Quadratic(A.T @ A), 6, ks.BudgetBox(1.0, 0.0, 0.5), min_nonzero=floor)


def sector_caps(n, most=0.08, cap=0.2, sectors=11):
    G = np.array([np.arange(n) % sectors == s for s in range(sectors)], dtype=float)
    return ks.Polyhedron(G, np.full(sectors, cap), np.ones((1, n)), [1.0], lower=0.0, upper=most)


def test_a_first_support_needs_no_integer_program(rng, monkeypatch):
    """At least 13 assets, at most 2 at full weight per sector: a vertex satisfies this."""

    def refuse(*args, **options):
        raise AssertionError("an integer program was asked for")

    monkeypatch.setattr("scipy.optimize.milp", refuse)
    monkeypatch.setattr(polyhedron, "sparsest_support", refuse)
    R = rng.standard_normal((150, 60)) * 0.01 + rng.standard_normal((150, 1)) * 0.01
    result = ks.minimize(ks.Quadratic(np.cov(R.T)), 20, sector_caps(60), min_nonzero=0.01)
    assert result.success
    assert sector_caps(60).contains(result.x)
    assert (result.x[result.support] >= 0.01 * (1 - 1e-9)).all()


def test_a_time_limit_is_kept_under_sector_caps(rng):
    R = rng.standard_normal((300, 200)) * 0.01 + rng.standard_normal((300, 1)) * 0.01 + 0.0003
    began = time.process_time()
    result = ks.minimize(ks.MeanVariance.from_returns(R, 1.0), 20, sector_caps(200), min_nonzero=0.01, max_time=1.0)
    assert time.process_time() - began <= 10.0  # of the processor, which other processes do not take from
    assert sector_caps(200).contains(result.x)
    assert result.support.size <= 20


@pytest.mark.parametrize("settings", [None, ks.SearchSettings(enumerated=0)])
def test_a_floor_above_the_bound_has_no_point_and_one_at_the_bound_has(settings):
    def solve(C, floor, k=1):
        return ks.minimize(ks.LeastSquares(np.eye(k), np.ones(k)), k, C, min_nonzero=floor, settings=settings)

    for C, floor in ((ks.Box([0.2], [0.6]), 1.3), (ks.Box([-0.6], [-0.2]), 1.3), (ks.Box([0.2], [0.6]), 0.6000001)):
        with pytest.raises(ks.InfeasibleError, match="at least"):
            solve(C, floor)
    for floor in (0.6, np.nextafter(0.6, 1.0), 0.6 * (1 + 1e-12)):
        for C in (ks.Box([0.2], [0.6]), ks.Box([-0.6], [-0.2]), ks.Polyhedron([[1.0]], [0.6], lower=0.2, upper=0.6)):
            result = solve(C, floor)
            assert result.success
            np.testing.assert_allclose(np.abs(result.x), [0.6], rtol=1e-9)
    upper = np.array([0.3, 0.7])
    result = solve(ks.Polyhedron([[1.0, 1.0]], [1.0], lower=0.1, upper=upper), np.array([0.1 + 0.2, 0.7]), 2)
    assert result.success
    np.testing.assert_allclose(result.x, upper, rtol=1e-9)


@pytest.mark.slow
def test_a_floor_is_tried_on_both_sides_of_0():
    C = ks.BudgetBox(1.0, [-0.05, -1.0], [1.0, 2.0])
    result = ks.minimize(ks.LeastSquares(np.eye(2), [-1.0, 2.0]), 2, C, min_nonzero=0.1, forced_in=[0, 1])
    np.testing.assert_allclose(result.x, [0.1, 0.9])
    for seed in range(30):  # against all signs
        rng = np.random.default_rng(seed)
        loss = ks.LeastSquares(rng.standard_normal((6, 4)), 0.3 * rng.standard_normal(6))
        found = ks.minimize(loss, 4, ks.Box(-1.0, 1.0), min_nonzero=0.3, forced_in=range(4)).fun
        signs = np.array(np.meshgrid(*[[-1, 1]] * 4)).reshape(4, -1).T
        sides = [ks.Box(np.where(s > 0, 0.3, -1.0), np.where(s > 0, 1.0, -0.3)) for s in signs]
        assert found == pytest.approx(min(ks.minimize(loss, 4, side).fun for side in sides), rel=1e-9)


def test_floors_that_leave_few_sizes(rng):
    Z = rng.standard_normal((60, 40))
    mu = rng.uniform(0, 1, 40)
    exactly_five = ks.minimize(ks.Quadratic(Z.T @ Z), 8, ks.BudgetBox(1.0, 0.0, 0.21), min_nonzero=0.19)
    assert exactly_five.support.size == 5
    C = ks.Polyhedron(None, None, np.vstack([np.ones(40), mu]), [1.0, 0.9], lower=0.0)
    result = ks.minimize(ks.Quadratic(Z.T @ Z), 10, C, min_nonzero=0.2)
    assert result.success
    assert result.x[result.support].min() >= 0.2 - 1e-12


def test_min_nonzero(rng):
    V, r = np.cov(rng.standard_normal((80, 20)).T), rng.standard_normal(20) / 50
    loss = ks.MeanVariance(V, r, 3.0)
    long_only = ks.minimize(loss, 8, ks.Simplex(), min_nonzero=0.1)
    assert long_only.x[long_only.support].min() >= 0.1 - 1e-12
    assert long_only.fun >= ks.minimize(loss, 8, ks.Simplex()).fun - 1e-12
    long_short = ks.minimize(loss, 8, ks.Hyperplane(), min_nonzero=0.1)
    assert np.abs(long_short.x[long_short.support]).min() >= 0.1 - 1e-12
    capped = ks.minimize(loss, 8, ks.BudgetBox(1.0, 0.0, 0.15), min_nonzero=0.1)
    assert ((capped.x == 0) | ((capped.x >= 0.1 - 1e-12) & (capped.x <= 0.15 + 1e-12))).all()
    with pytest.raises(ks.InfeasibleError):
        ks.minimize(loss, 3, ks.Simplex(), min_nonzero=1.5)
