"""Portfolios within a tracking error, compared with SLSQP on every support and checked against raw returns."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize

import ksparse as ks
from ksparse.portfolio.problem import Benchmark


def data(seed, n=7):
    X = ks.datasets.factor_model(n, 120, seed=seed).returns
    rng = np.random.default_rng(seed)
    return X, X @ rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(n)) * (rng.random(n) < 0.5)


def distance(X, y, x):
    return np.sqrt(np.mean((X @ x - y) ** 2))


def best_by_enumeration(X, y, k, limit, alpha, floor, cost, held):
    """Return the least αxᵀVx − rᵀx + cost·|x − held| of k long assets within the limit, by SLSQP in (x, |x − held|)."""
    n, V, r = X.shape[1], np.cov(X.T), X.mean(axis=0)
    best = np.inf
    for S in map(list, combinations(range(n), k)):
        for m in {k} if floor == 0 else {k, k - 1}:
            T = S[:m]
            found = minimize(
                lambda z, T=T, m=m: 1e4 * (alpha * z[:m] @ V[np.ix_(T, T)] @ z[:m] - r[T] @ z[:m] + cost * z[m:].sum()),
                np.r_[np.full(m, 1 / m), np.ones(m)], bounds=[(floor, 1)] * m + [(0, 2)] * m, method="SLSQP",
                options={"maxiter": 300, "ftol": 1e-14},
                constraints=[
                    {"type": "eq", "fun": lambda z, m=m: z[:m].sum() - 1},
                    {"type": "ineq", "fun": lambda z, T=T, m=m: 1e6 * (limit**2 - np.mean((X[:, T] @ z[:m] - y) ** 2))},
                    {"type": "ineq", "fun": lambda z, T=T, m=m: z[m:] - (z[:m] - held[T])},
                    {"type": "ineq", "fun": lambda z, T=T, m=m: z[m:] + (z[:m] - held[T])},
                ],
            )  # fmt: skip
            x = np.zeros(n)
            x[T] = found.x[:m]
            if distance(X, y, x) <= limit * (1 + 1e-6) and abs(x.sum() - 1) < 1e-7:
                best = min(best, alpha * x @ V @ x - r @ x + cost * np.abs(x - held).sum())
    return best


@pytest.mark.parametrize("seed", range(4))
def test_the_best_within_a_tracking_error_against_enumeration(seed):
    X, y, held = data(seed)
    floor, cost = 0.05 if seed % 3 == 0 else 0.0, 2e-4 if seed % 2 else 0.0
    limit = (1.05 + 0.25 * (seed % 3)) * ks.SparsePortfolio(3, min_weight=floor).fit(X, y).tracking_error_
    trades = {"previous_weights": held, "turnover_cost": cost} if cost else {}
    model = ks.SparsePortfolio(3, risk_aversion=3.0, min_weight=floor, max_tracking_error=limit, **trades).fit(X, y)
    best = best_by_enumeration(X, y, 3, limit, 3.0, floor, cost, held)
    x, result = model.weights_, model.result_
    assert distance(X, y, x) <= limit  # not by a tolerance
    value = 3 * x @ np.cov(X.T) @ x - X.mean(axis=0) @ x + cost * np.abs(x - held).sum()
    assert value <= best + 1e-6 * abs(best)
    assert result.fun == pytest.approx(value, abs=1e-14)
    assert result.lower_bound <= result.fun
    assert result.success
    if result.status is ks.Status.OPTIMAL:
        assert value <= best + 1e-9
    assert x[x > 0].min() >= floor
    assert x.sum() == pytest.approx(1, abs=1e-12)


def test_a_limit_that_costs_nothing_changes_nothing():
    X, y, _ = data(1, 12)
    free = ks.SparsePortfolio(4, objective="minimize_risk").fit(X)
    loose = ks.SparsePortfolio(4, objective="minimize_risk", max_tracking_error=1.0, gap=1e-6).fit(X, y)
    np.testing.assert_array_equal(free.weights_, loose.weights_)
    assert loose.result_.status is ks.Status.OPTIMAL
    assert loose.result_.gap <= 1e-6


@pytest.mark.parametrize("seed", [0, 1])
def test_bounds_of_the_dual_hold(seed):
    X, y, _ = data(seed)
    limit = 1.3 * ks.SparsePortfolio(3).fit(X, y).tracking_error_
    result = ks.SparsePortfolio(3, risk_aversion=2.0, max_tracking_error=limit, gap=1e-4).fit(X, y).result_
    best = best_by_enumeration(X, y, 3, limit, 2.0, 0.0, 0.0, np.zeros(7))
    assert result.lower_bound <= best + 1e-6 * abs(best)
    assert result.fun <= best + 1e-6 * abs(best)
    assert result.gap == pytest.approx((result.fun - result.lower_bound) / abs(result.fun), abs=1e-12)
    assert (result.status is ks.Status.OPTIMAL) == (result.gap <= 1e-4)


def test_limits_with_groups_shorts_and_turnovers():
    X, y, _ = data(4, 20)
    labels = [f"s{i % 4}" for i in range(20)]
    held = np.r_[np.full(4, 0.25), np.zeros(16)]
    model = ks.SparsePortfolio(
        6, objective="minimize_risk", long_only=False, max_weight=0.6, max_short=0.2, min_weight=0.02, groups=labels,
        group_caps=0.5, group_cardinalities={"s0": 2, "s1": (1, 2)}, previous_weights=held, max_turnover=1.2,
        max_tracking_error=0.006,
    ).fit(X, y)  # fmt: skip
    x = model.weights_
    assert distance(X, y, x) <= 0.006
    assert np.abs(x - held).sum() <= 1.2 + 1e-9
    assert -x[x < 0].sum() <= 0.2 + 1e-9
    assert np.count_nonzero(x[::4]) <= 2
    assert 1 <= np.count_nonzero(x[1::4]) <= 2
    assert np.abs(x[x != 0]).min() >= 0.02 - 1e-12
    assert max(x[j::4].sum() for j in range(4)) <= 0.5 + 1e-9


def test_limits_that_cannot_be_are_named():
    X, y, _ = data(0, 12)
    with pytest.raises(
        ks.InfeasibleError,
        match="max_tracking_error 1e-09 is infeasible: the smallest one possible with at most 3 assets",
    ):
        ks.SparsePortfolio(3, max_tracking_error=1e-9).fit(X, y)
    with pytest.raises(ValueError, match="max_tracking_error needs y, the returns of the index"):
        ks.SparsePortfolio(3, max_tracking_error=0.01).fit(X)
    with pytest.raises(ValueError, match="max_tracking_error must be > 0"):
        ks.SparsePortfolio(3, max_tracking_error=0.0).fit(X, y)
    with pytest.raises(ValueError, match=r"y is not supported by frontier\(\) without max_tracking_error"):
        ks.SparsePortfolio(3).frontier(X, 3, y=y)


def test_frontiers_and_walks_stay_near():
    X, y, _ = data(2, 15)
    limit = 1.4 * ks.SparsePortfolio(5).fit(X, y).tracking_error_
    points = ks.SparsePortfolio(5, max_tracking_error=limit).frontier(X, 4, y=y)
    assert all(distance(X, y, x) <= limit for x in points.weights)
    assert (points.mean_returns >= points.targets - 1e-12).all()
    walk = ks.SparsePortfolio(5, max_tracking_error=1.5 * limit, objective="minimize_risk").walk_forward(
        X, y, window=80, step=20
    )
    assert all(
        distance(X[s - 80 : s], y[s - 80 : s], x) <= 1.5 * limit for s, x in zip(walk.starts, walk.weights, strict=True)
    )


def test_the_way_to_the_limit_ends_within_it():
    rng = np.random.default_rng(0)
    for _ in range(50):
        X, far, near = rng.standard_normal((30, 5)), rng.standard_normal(5), rng.standard_normal(5)
        y = X @ near + 0.01 * rng.standard_normal(30)
        limit = 0.5 * (distance(X, y, far) + distance(X, y, near))
        x = Benchmark(X, y, limit).first_within_limit(far, near)
        assert distance(X, y, x) <= limit
        assert distance(X, y, x) == pytest.approx(limit, rel=1e-10)


@pytest.mark.parametrize("seed", [4, 5])
def test_names_whose_bounds_exclude_0_never_leave(seed):
    rng = np.random.default_rng(seed)
    X = 0.01 * rng.standard_normal((30, 6)) + 0.01 * rng.standard_normal((30, 1))
    y = X @ rng.dirichlet(np.ones(6))
    limit = 0.9 * np.sqrt(np.mean((X - y[:, None]) ** 2, axis=0)).min()
    rules = {"objective": "minimize_risk", "max_tracking_error": limit}
    long = ks.SparsePortfolio(2, min_weights={2: 0.1}, **rules).fit(X, y)
    best = np.inf  # one other name beside, by a fine grid
    for j in (0, 1, 3, 4, 5):
        shares = np.linspace(0.1, 1, 2001)
        R = np.outer(X[:, 2], shares) + np.outer(X[:, j], 1 - shares)
        near = np.sqrt(np.mean((R - y[:, None]) ** 2, axis=0)) <= limit
        best = min(best, R.var(axis=0, ddof=1)[near].min(initial=np.inf))
    assert best * (1 - 1e-3) <= long.variance_ <= best
    assert distance(X, y, long.weights_) <= limit
    turn = np.array([1, 1, -1, 1, 1, 1])  # the same, where that name must be short
    bounds = {
        "min_weights": dict.fromkeys((0, 1, 3, 4, 5), 0.0),
        "max_weights": {2: -0.1},
        "long_only": False,
        "max_weight": 2.0,
    }
    sums = {"budget": (-1.0, 1.0), "linear_constraints": ["x0 + x1 + x3 + x4 + x5 - x2 == 1"]}
    short = ks.SparsePortfolio(2, **bounds, **sums, **rules).fit(X * turn, y)
    np.testing.assert_allclose(short.weights_, long.weights_ * turn, atol=1e-7)


def test_holding_nothing_is_a_portfolio_where_the_budget_allows_it():
    X, y, _ = data(3, 6)
    nothing = distance(X, y, np.zeros(6))
    rules = {"objective": "minimize_risk", "budget": (0.0, 1.0)}
    limit = 0.9 * nothing
    model = ks.SparsePortfolio(1, max_tracking_error=limit, **rules).fit(X, y)
    shares = np.linspace(0, 1, 2001)
    errors = np.sqrt(np.mean((X[:, :, None] * shares - y[:, None, None]) ** 2, axis=0))
    best = np.where(errors <= limit, shares**2 * X.var(axis=0, ddof=1)[:, None], np.inf).min()
    assert 0 < model.variance_ <= best <= model.variance_ * 1.02
    assert distance(X, y, model.weights_) <= limit
    with pytest.raises(ks.InfeasibleError, match="is infeasible: the smallest one possible with at most 1 assets"):
        ks.SparsePortfolio(1, max_tracking_error=0.1 * nothing, **rules).fit(X, y)
    sides = ks.SparsePortfolio(
        2, objective="minimize_risk", budget=0.0, long_only=False, max_weight=1.0, max_tracking_error=0.999 * nothing
    )
    assert np.count_nonzero(sides.fit(X, y).weights_) == 2
    assert sides.tracking_error_ <= 0.999 * nothing
    # an index that hardly moves: every position is too far from it, however much it would earn
    still = ks.SparsePortfolio(
        2, budget=(0.0, 1.0), min_weight=0.3, risk_aversion=0.1, max_tracking_error=0.05 * nothing
    ).fit(X, 0.01 * y)
    np.testing.assert_array_equal(still.weights_, 0.0)
    assert still.result_.success


@pytest.mark.parametrize("above", [1e-3, 1e-7, 1e-9])
def test_limits_are_kept_to_the_last_digit_however_small_they_are_beside_the_returns(above):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = 0.01 * rng.standard_normal((30, 4)) + 0.01 * rng.standard_normal((30, 1))
        y = X @ rng.dirichlet(np.ones(4))
        # all four names: hardly any distance
        limits = {3: ks.SparsePortfolio(3).fit(X, y).tracking_error_ * (1 + above), 4: 1e-3 * above}
        for k, limit in limits.items():
            model = ks.SparsePortfolio(k, objective="minimize_risk", max_tracking_error=limit).fit(X, y)
            apart = X @ model.weights_ - y
            assert (
                max(
                    model.tracking_error_,
                    np.linalg.norm(apart) / np.sqrt(30),
                    distance(np.asfortranarray(X), y, model.weights_),
                )
                <= limit
            )
            assert model.result_.success


def test_a_limit_that_is_the_error_of_an_asset_allows_that_asset():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = 0.02 * rng.standard_normal((25, 5)) + 0.01 * rng.standard_normal((25, 1))
        y = X @ rng.dirichlet(np.ones(5))
        limit = min(distance(X, y, x) for x in np.eye(5))
        model = ks.SparsePortfolio(1, objective="minimize_risk", max_tracking_error=limit).fit(X, y)
        assert model.tracking_error_ == limit
