"""Portfolio rules against enumeration with a general-purpose solver, checked on the raw data."""

import time
from itertools import combinations, product

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

import ksparse as ks
from conftest import sweep
from ksparse.portfolio.extended_formulation import ExtendedPortfolio
from ksparse.portfolio.problem import portfolio
from ksparse.portfolio.rules import LinearRules
from ksparse.portfolio.solve import solve_portfolio
from ksparse.search.active_set import ActiveSet


def market(seed, n, periods=60):
    X = 0.01 * np.random.default_rng(seed).standard_normal((periods, n)) + 0.0005
    return np.cov(X.T), X.mean(axis=0)


def best_on(S, signs, V, r, alpha, *, lower, upper, total, G, h, held, cost, turnover, short, floor):
    """Return the least value on a support with these signs, in (x, |x − held|), by SLSQP from a feasible point."""
    S, m = list(S), len(S)
    low, high = lower[S].copy(), upper[S].copy()
    for j, sign in enumerate(signs):
        low[j], high[j] = (max(low[j], floor), high[j]) if sign > 0 else (low[j], min(high[j], -floor))
    if (low > high).any() or (np.delete(lower, S) > 0).any():
        return np.inf
    eye, away = np.eye(m), np.abs(np.delete(held, S))
    rows = [np.hstack([eye, -eye]), np.hstack([-eye, -eye]), np.hstack([G[:, S], np.zeros((len(h), m))])]
    right = [held[S], -held[S], h]
    if turnover is not None:
        rows, right = [*rows, np.r_[np.zeros(m), np.ones(m)][None]], [*right, [turnover - away.sum()]]
    if short is not None:
        rows, right = [*rows, np.r_[np.where(np.array(signs) < 0, -1.0, 0.0), np.zeros(m)][None]], [*right, [short]]
    A, b = np.vstack(rows), np.concatenate(right)
    bounds = [*zip(low, high, strict=True), *[(0, 5)] * m]
    sums = np.r_[np.ones(m), np.zeros(m)]
    start = linprog(
        np.r_[np.zeros(m), np.ones(m)], A, b, sums[None], [total], [(max(u, -5), min(v, 5)) for u, v in bounds]
    )
    if not start.success:
        return np.inf
    dear = np.r_[np.zeros(m), cost[S]]
    outside = float(np.delete(cost, S) @ away)
    Q = V[np.ix_(S, S)]
    found = minimize(
        lambda z: 1e4 * (alpha * z[:m] @ Q @ z[:m] - r[S] @ z[:m] + dear @ z + outside), start.x, bounds=bounds,
        method="SLSQP", jac=lambda z: 1e4 * (np.r_[2 * alpha * Q @ z[:m] - r[S], np.zeros(m)] + dear),
        options={"maxiter": 300, "ftol": 1e-15},
        constraints=[{"type": "eq", "fun": lambda z: sums @ z - total}, {"type": "ineq", "fun": lambda z: b - A @ z}],
    )  # fmt: skip
    feasible = (b - A @ found.x).min() >= -1e-8 and abs(sums @ found.x - total) <= 1e-8
    return found.fun / 1e4 if feasible else np.inf


@pytest.mark.parametrize("seed", sweep(range(10), 4))
def test_costs_turnover_and_short_sides_against_enumeration(seed):
    rng = np.random.default_rng(seed)
    n, k, short = 5, 2 + seed % 2, seed % 3 == 1
    V, r = market(seed, n)
    held = rng.dirichlet(np.ones(n)) * (rng.random(n) < 0.6)
    if short:
        held[0] = -0.2
    floor = 0.1 if seed % 2 else 0.0
    turnover = None if seed % 4 == 0 else float(rng.uniform(1.0, 1.8))
    cost = rng.uniform(0, 2e-3, n) if seed % 4 != 2 else np.zeros(n)
    G, h = np.array([[1.0, 1.0, 0.0, 0.0, 0.0]]), np.array([0.7])
    lower, upper = np.full(n, -0.9 if short else 0.0), np.full(n, 0.9)
    most_short = 0.3 if short else None
    wanted = portfolio(
        V, r, risk_aversion=10.0, long_only=not short, max_weight=0.9, rows=LinearRules.of(n, [(G[0], 0.7)]), held=held,
        cost=cost, max_turnover=turnover, max_short=most_short,
    )  # fmt: skip
    rules = {"lower": lower, "upper": upper, "total": 1.0, "G": G, "h": h, "held": held, "cost": cost}
    rules |= {"turnover": turnover, "short": most_short, "floor": floor}
    best = min(
        best_on(S, signs, V, r, 10.0, **rules)
        for size in range(1, k + 1)
        for S in combinations(range(n), size)
        for signs in product(*[(1, -1) if short else (1,)] * size)
    )
    if best == np.inf:
        with pytest.raises(ks.InfeasibleError):
            solve_portfolio(wanted, k, min_weight=floor)
        return
    found = solve_portfolio(wanted, k, min_weight=floor)
    x = found.x
    value = 10.0 * x @ V @ x - r @ x + cost @ np.abs(x - held)
    assert found.fun == pytest.approx(value, abs=1e-15)
    assert value <= best + 1e-9
    assert value >= best - 1e-7 * max(1.0, abs(best))  # the twin looked at every support
    assert x.sum() == pytest.approx(1.0, abs=1e-12)
    assert np.count_nonzero(x) <= k
    assert x[:2].sum() <= 0.7 + 1e-12
    assert (np.abs(x[x != 0]) >= floor - 1e-12).all()
    assert turnover is None or np.abs(x - held).sum() <= turnover + 1e-12
    assert -np.minimum(x, 0).sum() <= (most_short or 0.0) + 1e-12
    assert found.maxcv <= 1e-12


def test_an_extended_formulation_is_proved():
    V, r = market(3, 20)
    held = np.zeros(20)
    held[:5] = 0.2
    wanted = portfolio(V, r, risk_aversion=20.0, long_only=True, held=held, cost=5e-4, max_turnover=0.8)
    found = solve_portfolio(wanted, 5, gap=0.01)
    assert found.status is ks.Status.OPTIMAL
    assert found.lower_bound <= found.fun <= found.lower_bound + 0.01 * abs(found.fun)
    free = solve_portfolio(portfolio(V, r, risk_aversion=20.0, long_only=True), 5)
    assert np.abs(free.x - held).sum() > 0.8 >= np.abs(found.x - held).sum() - 1e-12
    kept = solve_portfolio(portfolio(V, r, risk_aversion=20.0, long_only=True, held=held, max_turnover=0.0), 5)
    np.testing.assert_array_equal(kept.x, held)


@pytest.mark.parametrize("seed", sweep(range(6), 2))
def test_long_and_short_positions_above_a_floor_are_proved_beside_every_support(seed):
    n, floor = 6, 0.12  # with so small a budget a long part may pay for a short part of the same asset
    V, r = market(seed, n)
    wanted = portfolio(V, r, objective="minimize_risk", budget=0.2, max_weight=0.8)
    found = solve_portfolio(wanted, n, min_weight=floor, gap=1e-3)
    rules = {"lower": np.full(n, -0.8), "upper": np.full(n, 0.8), "total": 0.2, "G": np.zeros((0, n)), "h": np.zeros(0)}
    rules |= {"held": np.zeros(n), "cost": np.zeros(n), "turnover": None, "short": None, "floor": floor}
    best = min(
        best_on(S, signs, V, np.zeros(n), 1.0, **rules)
        for size in range(1, n + 1)
        for S in combinations(range(n), size)
        for signs in product(*[(1, -1)] * size)
    )
    assert found.status is ks.Status.OPTIMAL
    assert found.lower_bound <= best * (1 + 1e-9)
    assert best * (1 - 1e-6) <= found.fun <= best * (1 + 1e-3)
    assert found.fun <= found.lower_bound + 1e-3 * abs(found.fun)
    assert (np.abs(found.x[found.x != 0]) >= floor - 1e-12).all()


def test_all_solves_of_an_extended_formulation_share_one_time_limit(monkeypatch):
    V, r = market(1, 6)
    ends, limit, began = [], 60.0, time.perf_counter()

    def told(*args, **options):
        ends.append((time.perf_counter() + options["max_time"], options["gap"]))
        return ks.minimize(*args, **options)

    monkeypatch.setattr("ksparse.portfolio.solve.minimize", told)
    found = solve_portfolio(
        portfolio(V, r, objective="minimize_risk", budget=0.2, max_weight=0.8),
        6,
        min_weight=0.12,
        gap=1e-3,
        max_time=limit,
    )
    assert found.status is ks.Status.OPTIMAL
    assert len(ends) > 1
    assert max(end for end, _ in ends) <= began + limit + 1.0
    assert ends[0][0] <= began + 0.5 * limit + 1.0  # time is left for what must follow
    assert [gap for _, gap in ends] == [None, *[1e-3] * (len(ends) - 1)]


@pytest.mark.parametrize(
    ("raised", "status"), [(StopIteration, ks.Status.CALLBACK_STOP), (KeyboardInterrupt, ks.Status.INTERRUPTED)]
)
def test_a_search_of_an_extended_formulation_that_is_stopped_ends_with_weights_above_the_floor(raised, status):
    V, r = market(1, 8)
    calls = []

    def stop(x):
        if (x[:8] * x[8:]).any():  # long and short parts
            calls.append(x)
            raise raised

    wanted = portfolio(V, r, objective="minimize_risk", budget=0.2, max_weight=0.8)
    found = solve_portfolio(wanted, 8, min_weight=0.12, gap=1e-3, callback=stop)
    assert len(calls) == 1
    assert found.status is status
    assert not found.success
    assert (np.abs(found.x[found.x != 0]) >= 0.12 - 1e-12).all()
    assert found.x.sum() == pytest.approx(0.2, abs=1e-9)


def test_what_is_held_is_traded_from_whatever_its_sign():
    V, r = market(0, 4)
    held = np.array([0.6, -0.3, 0.0, 0.7])
    extended = ExtendedPortfolio(
        portfolio(V, r, max_weight=1.0, held=held, cost=[1e-3, 2e-3, 0.0, 3e-3], max_turnover=2.0)
    )
    T, t = extended.traded
    for x in (held, np.array([0.2, 0.3, -0.4, 0.9]), np.array([-0.5, -0.8, 0.3, 0.0])):
        z = extended.extend(x)
        np.testing.assert_allclose(extended.weights(z), x, atol=1e-15)
        np.testing.assert_allclose(T @ z + t, np.abs(x - held), atol=1e-15)
        H, c = extended.quadratic
        assert 0.5 * z @ H @ z + c @ z + extended.constant == pytest.approx(extended.problem.value(x), abs=1e-15)
        seen, most = extended.loss.value(z) + extended.constant, 1e-6 * np.diag(H).max() * np.square(held).sum() / 8
        # never above, and hardly below
        assert extended.problem.value(x) - most - 1e-15 <= seen <= extended.problem.value(x) + 1e-15


def test_minimum_variance_needs_no_risk_aversion():
    V, r = market(1, 8)
    found = solve_portfolio(portfolio(V, r, objective="minimize_risk", long_only=True), 3)
    twin = ks.minimize(ks.MeanVariance(V, np.zeros(8), 1.0), 3, ks.Simplex())
    np.testing.assert_allclose(found.x, twin.x, atol=1e-9)
    assert found.fun == pytest.approx(found.x @ V @ found.x)


@pytest.mark.parametrize("budget", [0.4, (0.2, 0.5), 2.0])
def test_budgets(budget):
    V, r = market(2, 8)
    x = solve_portfolio(portfolio(V, 10 * r, long_only=True, max_weight=0.6, budget=budget), 4).x
    least, most = budget if isinstance(budget, tuple) else (budget, budget)
    assert least - 1e-12 <= x.sum() <= most + 1e-12


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        (
            {"objective": "least"},
            ValueError,
            "objective must be 'minimize_risk', 'maximize_utility' or None, got 'least'",
        ),
        (
            {"objective": "minimize_risk", "risk_aversion": 3.0},
            ValueError,
            "risk_aversion cannot be combined with objective='minimize_risk'",
        ),
        ({"budget": (1.0, 0.5)}, ValueError, "least <= most"),
        ({"budget": (1.0, 0.5, 2.0)}, ValueError, "budget must be one number or"),
        (
            {"min_weights": np.full(4, -0.1), "long_only": True},
            ValueError,
            "min_weights is below 0 for asset 0, which long_only=True forbids",
        ),
        (
            {"min_weights": np.full(4, 0.4), "max_weights": np.full(4, 0.3)},
            ks.InfeasibleError,
            "the bounds of asset 0 leave no weight",
        ),
        ({"cost": [0.1, -0.1, 0.0, 0.0]}, ValueError, "cost must be >= 0, got -0.1 for asset 1"),
        ({"max_turnover": -1.0}, ValueError, "max_turnover must be >= 0"),
        (
            {"target_return": 1.0, "long_only": True},
            ks.InfeasibleError,
            "the target return 1 is above the largest within the bounds",
        ),
    ],
)
def test_problems_that_cannot_be_are_named(options, error, words):
    with pytest.raises(error, match=words):
        portfolio(*market(0, 4), **options)


def test_a_turnover_that_no_portfolio_keeps():
    wanted = portfolio(*market(0, 4), long_only=True, max_weight=0.5, held=np.array([1.0, 0, 0, 0]), max_turnover=0.5)
    with pytest.raises(ks.InfeasibleError, match=r"within a turnover of 0\.5"):
        solve_portfolio(wanted, 3)
    wanted = portfolio(*market(0, 4), max_weight=1.0, held=np.zeros(4), cost=1e-3, forced_in=[1])
    with pytest.raises(ValueError, match="forced_in holds asset 1, which may be long or short"):
        solve_portfolio(wanted, 2)


def test_many_constraints_that_follow_each_other_end_with_the_time(monkeypatch):
    n, now, calls = 120, [0.0], []
    V, r = market(2, n, periods=200)
    wanted = portfolio(V, r, max_weight=0.3, held=np.full(n, 1 / n), cost=1e-4, max_turnover=2.5)
    hold = ActiveSet._hold_worst

    def slow(self):
        now[0] += 1.0
        calls.append(self)
        return hold(self)

    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    monkeypatch.setattr(ActiveSet, "_hold_worst", slow)
    found = solve_portfolio(wanted, 10, max_time=5.0)
    assert len(calls) <= 64
    assert found.status is ks.Status.TIME_LIMIT
    assert found.maxcv <= 1e-9


def test_a_large_point_is_not_projected_when_the_time_is_up(monkeypatch):
    n, projected = 40, []
    V, r = market(2, n, periods=200)
    monkeypatch.setattr("ksparse.search.polish.LARGE", 50)
    monkeypatch.setattr("ksparse.sets.polyhedron.project_polyhedron", lambda *args: projected.append(args))
    wanted = portfolio(V, r, max_weight=0.3, held=np.full(n, 1 / n), cost=1e-4, max_turnover=2.5)
    found = solve_portfolio(wanted, 10, max_time=0.0)
    assert not projected
    assert found.status is ks.Status.TIME_LIMIT
    assert found.maxcv <= 1e-9
    assert np.count_nonzero(found.x) <= 10


@pytest.mark.parametrize("low", [1e-3, 0.0, -0.5])
def test_the_convexity_of_an_extended_formulation_is_read_from_the_covariance(low, monkeypatch):
    """The matrix of the extended problem has twice the size: its factorisation takes eight times as long."""
    V, r = market(0, 12)
    values, vectors = np.linalg.eigh(V)
    V = vectors @ np.diag(np.r_[low * values[-1], values[1:]]) @ vectors.T
    sizes, cholesky = [], np.linalg.cholesky
    monkeypatch.setattr(np.linalg, "cholesky", lambda H: sizes.append(len(H)) or cholesky(H))
    held = np.full(12, 1 / 12)
    seen = ExtendedPortfolio(
        portfolio((V + V.T) / 2, r, long_only=False, max_weight=1.0, held=held, cost=1e-3, max_turnover=2.0)
    ).loss
    assert seen.convex == (low >= 0)
    assert set(sizes) <= {12}
    assert ks.Quadratic(seen.matrix, seen.c).convex == seen.convex
    assert max(sizes) == 36
