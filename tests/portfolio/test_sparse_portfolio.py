"""Portfolios satisfy their constraints, with groups, trading costs and an index to track."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

import ksparse as ks
from conftest import data_file
from ksparse.estimators import (
    SparsePortfolio,
)
from ksparse.search.explore import SupportSearch


@pytest.fixture
def returns(rng):
    return rng.standard_normal((250, 12)) * rng.uniform(0.005, 0.02, 12) + rng.uniform(-0.0005, 0.0015, 12)


def test_a_portfolio_is_the_library_beneath(returns):
    model = SparsePortfolio(4, risk_aversion=5.0, max_weight=0.5, min_weight=0.1).fit(returns)
    twin = ks.minimize(ks.MeanVariance.from_returns(returns, 5.0), 4, ks.BudgetBox(1, 0, 0.5), min_nonzero=0.1)
    np.testing.assert_allclose(model.weights_, twin.x, atol=1e-9)
    assert model.weights_[model.weights_ != 0].min() >= 0.1
    np.testing.assert_allclose(model.predict(returns), returns @ model.weights_)
    assert model.mean_return_ == pytest.approx(model.predict(returns).mean())
    assert model.variance_ == pytest.approx(model.predict(returns).var(ddof=1))
    assert model.score(returns) == pytest.approx(model.mean_return_ / np.sqrt(model.variance_))


def test_group_caps_hold(returns):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    names = [f"A{i}" for i in range(12)]
    table = pd.DataFrame(returns, columns=names)
    free = SparsePortfolio(5).fit(table).weights_
    top = names[int(np.argmax(free))]
    groups = {"hot": [top, "A0"], "rest": [name for name in names if name not in (top, "A0")]}
    capped = SparsePortfolio(5, groups=groups, group_caps={"hot": 0.1}).fit(table)
    assert capped.weights_[[names.index(name) for name in groups["hot"]]].sum() <= 0.1 + 1e-12
    labels = ["a"] * 6 + ["b"] * 6
    both = SparsePortfolio(5, groups=labels, group_caps=0.5).fit(returns).weights_
    assert both[:6].sum() == pytest.approx(0.5, abs=1e-9)
    with pytest.raises(ValueError, match="group_caps names 'cold', which is not among the groups"):
        SparsePortfolio(groups=groups, group_caps={"cold": 0.5}).fit(table)
    with pytest.raises(ValueError, match="groups has no effect without group_caps"):
        SparsePortfolio(groups=labels).fit(returns)


def _traded_on(S, V, r, cost, held, low):
    """Return the least value on a support, with x = held + buy − sell, by sequential quadratic programming."""
    x = lambda z: held[S] + z[:3] - z[3:]  # noqa: E731
    outside = cost * np.abs(np.delete(held, S)).sum()
    found = minimize(
        lambda z: 1e4 * (10 * x(z) @ V[np.ix_(S, S)] @ x(z) - r[S] @ x(z) + cost * z.sum() + outside),
        np.full(6, 0.1), bounds=[(0, 2)] * 6, method="SLSQP", options={"maxiter": 500, "ftol": 1e-14},
        constraints=[
            {"type": "eq", "fun": lambda z: x(z).sum() - 1},
            {"type": "ineq", "fun": lambda z: x(z) - low},
            {"type": "ineq", "fun": lambda z: 0.8 - x(z)},
        ],
    )  # fmt: skip
    return found.fun / 1e4 if found.success else np.inf


@pytest.mark.parametrize("long_only", [True, False])
def test_trading_costs_against_enumeration(returns, long_only):
    """αxᵀVx − rᵀx + c Σ|x − held| compared with sequential quadratic programming on every support."""
    X = returns[:, :6]
    held = np.array([0.5, 0.5, 0, 0, 0, 0])
    V, r, cost = np.cov(X.T), X.mean(axis=0), 2e-4
    model = SparsePortfolio(
        3, risk_aversion=10.0, long_only=long_only, max_weight=0.8, previous_weights=held, turnover_cost=cost
    ).fit(X)

    def value(x):
        return 10 * x @ V @ x - r @ x + cost * np.abs(x - held).sum()

    best = min(
        _traded_on(list(support), V, r, cost, held, 0.0 if long_only else -0.8) for support in combinations(range(6), 3)
    )
    assert value(model.weights_) <= best + 1e-8
    assert model.result_.fun == pytest.approx(value(model.weights_), abs=1e-12)
    assert model.weights_.sum() == pytest.approx(1, abs=1e-12)
    assert model.turnover_ == pytest.approx(np.abs(model.weights_ - held).sum())
    dear = SparsePortfolio(3, previous_weights=held, turnover_cost=1.0).fit(X)
    np.testing.assert_allclose(dear.weights_, held, atol=1e-12)  # costs too high for any trade


def test_weights_and_groups_by_name_are_aligned_by_name(returns):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    names = [f"A{i}" for i in range(12)]
    table = pd.DataFrame(returns, columns=names)
    before = pd.Series([0.5, 0.3, 0.2], index=["A7", "A3", "A0"])
    model = SparsePortfolio(3, previous_weights=before, turnover_cost=1.0).fit(table)
    assert {name: weight for name, weight in zip(names, model.weights_, strict=True) if weight} == pytest.approx(
        before.to_dict()
    )
    labels = pd.Series(["x"] * 6 + ["y"] * 6, index=names[::-1])
    capped = SparsePortfolio(4, groups=labels, group_caps={"x": 0.1}).fit(table)
    assert capped.weights_[6:].sum() <= 0.1 + 1e-12  # the last six names carry x


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"turnover_cost": 0.1}, ValueError, "turnover_cost needs previous_weights"),
        ({"max_weight": 0.4, "min_weight": 0.5}, ks.InfeasibleError, "min_weight 0.5 is above max_weight 0.4"),
        ({"max_weight": 0.9, "min_weight": 0.7, "k": 3}, ks.InfeasibleError, "each at least 0.7 in size"),
        (
            {"groups": ["a"] * 12, "group_caps": 0.5},
            ks.InfeasibleError,
            "no weights meet the budget, the bounds, the target return",
        ),
        ({"groups": ["a"] * 12, "group_caps": [0.5]}, TypeError, "group_caps must be one number or a mapping"),
        ({"max_turnover": 0.1}, ValueError, "max_turnover needs previous_weights to trade from"),
        ({"linear_constraints": "tech <= 0.3"}, ValueError, "'tech' in 'tech <= 0.3' is neither an asset nor a group"),
        (
            {"min_weights": {"A": 0.1}},
            ValueError,
            "min_weights names 'A', which is not an asset: X has no column names",
        ),
        ({"forced_in": range(5), "k": 4}, ks.InfeasibleError, "5 variables are forced in, more than k = 4"),
        ({"previous_weights": [0.5, 0.5]}, ValueError, "previous_weights must hold one number per asset, 12"),
    ],
)
def test_portfolios_that_cannot_be_are_named(returns, options, error, words):
    with pytest.raises(error, match=words):
        SparsePortfolio(**options).fit(returns)


def test_riskless_assets_without_bounds_are_no_portfolio(returns):
    returns = returns.copy()
    returns[:, 0], returns[:, 1] = 1e-4, 2e-4
    with pytest.raises(ValueError, match="the problem is unbounded: a zero-variance portfolio has unlimited return"):
        SparsePortfolio(3, long_only=False).fit(returns)


def test_an_index_is_tracked():
    data = np.load(data_file("orlib_indtrack1_hangseng_n31.npz"))
    prices, index = data["prices"].astype(float), data["index"].astype(float)
    X, y = prices[1:] / prices[:-1] - 1, index[1:] / index[:-1] - 1
    model = SparsePortfolio(8, max_weight=0.4).fit(X, y)
    assert np.count_nonzero(model.weights_) <= 8
    assert model.weights_.sum() == pytest.approx(1, abs=1e-12)
    distance = np.sqrt(np.mean((X @ model.weights_ - y) ** 2))
    assert model.score(X, y) == pytest.approx(-distance)
    assert distance < 0.5 * np.std(y)
    with pytest.raises(ValueError, match=r"target_return cannot be used when y \(an index\) is given"):
        SparsePortfolio(target_return=0.1).fit(X, y)


def test_a_set_of_ones_own(returns):
    C = ks.Polyhedron(np.vstack([np.r_[np.ones(3), np.zeros(9)]]), [0.25], np.ones((1, 12)), [1.0], lower=0.0)
    model = SparsePortfolio(4, C=C).fit(returns)
    assert model.weights_[:3].sum() <= 0.25 + 1e-12
    with pytest.raises(ValueError, match="max_weight cannot be combined with C"):
        SparsePortfolio(4, C=C, max_weight=0.3).fit(returns)


@given(seed=st.integers(0, 10_000), n=st.integers(2, 15), k=st.integers(1, 8), most=st.sampled_from([None, 0.5, 0.9]))
def test_portfolios_obey_exactly(seed, n, k, most):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, n)) * 0.02 + rng.uniform(-0.001, 0.002, n)
    if most is not None and min(k, n) * most < 1:
        with pytest.raises(ks.InfeasibleError):
            SparsePortfolio(k, max_weight=most).fit(X)
        return
    w = SparsePortfolio(k, max_weight=most).fit(X).weights_
    assert abs(w.sum() - 1) <= 1e-12
    assert np.count_nonzero(w) <= k
    assert w.min() >= 0
    assert w.max() <= (most or 1.0 + 1e-12)


def test_rules_in_words_hold(returns):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    names = [f"A{i}" for i in range(12)]
    table = pd.DataFrame(returns, columns=names)
    sectors = dict.fromkeys(names[:4], "tech") | dict.fromkeys(names[4:8], "energy") | dict.fromkeys(names[8:], "banks")
    model = SparsePortfolio(
        6, objective="minimize_risk", groups=pd.Series(sectors), group_caps={"tech": 0.3}, group_floors={"banks": 0.25},
        linear_constraints=["A1 + A2 >= 0.1", "energy <= 2*banks"], max_weights={"A0": 0.05}, min_weights={"A9": 0.08},
        forced_in=["A3"], forced_out=["A11"], min_weight=0.02,
    ).fit(table)  # fmt: skip
    w = pd.Series(model.weights_, index=names)
    assert w.sum() == pytest.approx(1, abs=1e-12)
    assert w[:4].sum() <= 0.3 + 1e-12
    assert w[8:].sum() >= 0.25 - 1e-12
    assert w["A1"] + w["A2"] >= 0.1 - 1e-12
    assert w[4:8].sum() <= 2 * w[8:].sum() + 1e-12
    assert w["A0"] <= 0.05
    assert w["A9"] >= 0.08 - 1e-12
    assert w["A3"] >= 0.02 - 1e-12
    assert w["A11"] == 0
    assert (w != 0).sum() <= 6
    assert w[w != 0].min() >= 0.02 - 1e-12
    assert model.result_.fun == pytest.approx(w.to_numpy() @ np.cov(returns.T) @ w.to_numpy())


def test_an_index_is_tracked_within_a_turnover(returns):
    y = returns[:, :6].mean(axis=1)
    held = np.r_[np.full(4, 0.25), np.zeros(8)]
    free = SparsePortfolio(4, max_weight=0.6).fit(returns, y)
    near = SparsePortfolio(4, max_weight=0.6, previous_weights=held, max_turnover=0.1).fit(returns, y)
    assert near.turnover_ <= 0.1 + 1e-12 < free.turnover_ + np.abs(held).sum()
    assert near.result_.fun == pytest.approx(np.mean((returns @ near.weights_ - y) ** 2), rel=1e-9)
    loose = SparsePortfolio(4, max_weight=0.6, previous_weights=held, max_turnover=4.0).fit(returns, y)
    np.testing.assert_allclose(loose.weights_, free.weights_, atol=1e-8)


@pytest.mark.slow
def test_a_frontier_is_every_target_solved_alone(returns):
    model = SparsePortfolio(4, max_weight=0.6, min_weight=0.05, groups=["a", "b", "c"] * 4, group_caps=0.7)
    points = model.frontier(returns, 7)
    assert len(points) == 7
    assert (np.diff(points.variances) >= -1e-15).all()
    for target, w, variance in zip(points.targets, points.weights, points.variances, strict=True):
        alone = SparsePortfolio(
            4, max_weight=0.6, min_weight=0.05, groups=["a", "b", "c"] * 4, group_caps=0.7, target_return=target
        )
        assert variance <= alone.fit(returns).variance_ * (1 + 1e-9)
        assert returns.mean(axis=0) @ w >= target - 1e-12
        assert np.count_nonzero(w) <= 4
        assert w[w != 0].min() >= 0.05 - 1e-12
    assert points.to_frame().shape[0] == 7
    assert "SWAP_OPTIMAL" in repr(points) or "OPTIMAL" in repr(points)
    given = model.frontier(returns, points.targets[[5, 2]])
    np.testing.assert_allclose(given.variances, points.variances[[2, 5]], rtol=1e-9)
    np.testing.assert_allclose(points.ratios, points.mean_returns / points.deviations)


@pytest.mark.parametrize(
    ("options", "points", "words"),
    [
        ({"target_return": 0.1}, 5, "target_return is not supported by frontier"),
        (
            {"turnover_cost": 1e-4, "previous_weights": np.full(12, 1 / 12)},
            5,
            "turnover_cost is not supported by frontier",
        ),
        ({}, 1, "points must be an integer >= 2"),
        ({}, [np.nan], "points must be how many, or a list of finite mean returns"),
        ({}, [0.5], "no portfolio reaches the mean return 0.5"),
    ],
)
def test_frontiers_that_cannot_be(returns, options, points, words):
    with pytest.raises(ValueError, match=words):
        SparsePortfolio(4, **options).frontier(returns, points)


def interrupt_call(monkeypatch, number):
    """Interrupt the search of the numbered call before it finds a point; return the list of searches begun."""
    begun, search = [], SupportSearch._search

    def searched(self):
        begun.append(self)
        if len(begun) == number:
            raise KeyboardInterrupt
        search(self)

    monkeypatch.setattr(SupportSearch, "_search", searched)
    return begun


def test_a_frontier_that_is_interrupted_ends_with_the_last_portfolio_that_was_found(returns, monkeypatch):
    targets = SparsePortfolio(3).frontier(returns, 5).targets
    monkeypatch.setattr("ksparse.search.explore.enumerate_supports", lambda *_: False)
    begun = interrupt_call(monkeypatch, 2)
    points = SparsePortfolio(3).frontier(returns, targets)
    assert len(begun) == 2
    assert points.statuses[:4] == ["INTERRUPTED"] * 4
    assert points.statuses[4] != "INTERRUPTED"
    assert (points.weights[:4] == points.weights[3]).all()
    assert (points.mean_returns >= targets - 1e-12).all()


def test_an_interrupt_where_a_frontier_needs_its_ends_is_not_lost(returns, monkeypatch):
    monkeypatch.setattr("ksparse.search.explore.enumerate_supports", lambda *_: False)
    begun = interrupt_call(monkeypatch, 1)
    with pytest.raises(KeyboardInterrupt):
        SparsePortfolio(3).frontier(returns, 5)
    assert len(begun) == 1


@pytest.mark.filterwarnings("ignore:SparsePortfolio. interrupted")
def test_a_walk_through_time_ends_with_an_interrupt(returns, monkeypatch):
    monkeypatch.setattr("ksparse.search.explore.enumerate_supports", lambda *_: False)
    begun = interrupt_call(monkeypatch, 2)
    with pytest.raises(KeyboardInterrupt):
        SparsePortfolio(3).walk_forward(returns, window=len(returns) - 10, step=2)
    assert len(begun) == 2


def test_a_frontier_with_a_turnover_rises_to_the_largest_mean_within_it(returns):
    held, r = np.r_[0.5, 0.5, np.zeros(10)], returns.mean(axis=0)
    points = SparsePortfolio(4, previous_weights=held, max_turnover=0.6).frontier(returns, 6)
    assert (np.diff(points.variances) >= -1e-15).all()
    assert np.abs(points.weights - held).sum(axis=1).max() <= 0.6 + 1e-9
    most = 0.5 * r[:2].sum() + 0.3 * (r.max() - r[:2].min())  # what may be sold is sold of the worse, for the best
    assert points.mean_returns[-1] == pytest.approx(most, rel=1e-6)


def test_a_walk_is_its_fits_one_by_one(returns):
    model = SparsePortfolio(4, max_weight=0.5, turnover_cost=1e-4, max_turnover=0.5)
    walk = model.walk_forward(returns, window=100, step=40)
    assert len(walk) == 4
    assert walk.starts.tolist() == [100, 140, 180, 220]
    before = None
    for i, start in enumerate(walk.starts):
        alone = SparsePortfolio(4, max_weight=0.5)
        if before is not None:
            alone.set_params(previous_weights=before, turnover_cost=1e-4 / 40, max_turnover=0.5)
        alone.fit(returns[start - 100 : start])
        np.testing.assert_allclose(walk.weights[i], alone.weights_, atol=1e-7)
        held = returns[start : start + 40] @ walk.weights[i]
        held[0] -= 0.0 if before is None else 1e-4 * np.abs(walk.weights[i] - before).sum()
        np.testing.assert_allclose(walk.returns[start - 100 : start - 60], held, atol=1e-15)
        before = walk.weights[i]
    assert (walk.turnovers[1:] <= 0.5 + 1e-12).all()
    assert walk.wealth[-1] == pytest.approx(np.prod(1 + walk.returns))
    assert walk.to_frame().shape == (4, 5)
    assert "4 rebalancings" in repr(walk)
    assert model.previous_weights is None  # the user's own is as it was
    with pytest.raises(ValueError, match="window must leave rows to hold the portfolio in: X has 250, got window=250"):
        model.walk_forward(returns, window=250)
    for rows in (200, 300):
        with pytest.raises(ValueError, match=f"y must hold one return per row of X, 250, got {rows}"):
            model.walk_forward(returns, np.zeros(rows), window=100)
    tracked = SparsePortfolio(4).walk_forward(returns, returns[:, :5].mean(axis=1), window=100, step=75)
    assert len(tracked) == 2


def test_a_second_fit_may_begin_at_the_first(returns):
    model = SparsePortfolio(4, warm_start=True).fit(returns[:200])
    again = model.fit(returns)
    np.testing.assert_allclose(again.weights_, SparsePortfolio(4).fit(returns).weights_, atol=1e-9)
    model.fit(returns[:, :8])  # other assets: from nothing
    assert model.weights_.size == 8


def test_names_per_group_with_a_frontier_a_walk_an_index_and_a_set(returns):
    labels = [f"s{i % 4}" for i in range(12)]

    def counts(x):
        return [np.count_nonzero(x[j::4]) for j in range(4)]

    rules = {"groups": labels, "group_cardinalities": {"s0": 1, "s1": (1, 1)}, "min_weight": 0.03}
    assert counts(SparsePortfolio(5, **rules).fit(returns).weights_)[1] == 1
    assert all(
        counts(x)[0] <= 1 and counts(x)[1] == 1 for x in SparsePortfolio(5, **rules).frontier(returns, 4).weights
    )
    walk = SparsePortfolio(5, **rules, turnover_cost=1e-3, max_turnover=0.6).walk_forward(returns, window=150, step=50)
    assert all(counts(x)[0] <= 1 and counts(x)[1] == 1 for x in walk.weights)
    assert walk.turnovers[1:].max() <= 0.6 + 1e-9
    y = returns.mean(axis=1)
    tracked = SparsePortfolio(4, groups=labels, group_cardinalities=1).fit(returns, y)
    assert max(counts(tracked.weights_)) == 1
    assert tracked.tracking_error_ == pytest.approx(np.sqrt(np.mean((returns @ tracked.weights_ - y) ** 2)))
    free = SparsePortfolio(4, C=ks.Simplex(), groups=labels, group_cardinalities=1).fit(returns)
    twin = SparsePortfolio(4, groups=labels, group_cardinalities=1).fit(returns)
    np.testing.assert_allclose(free.weights_, twin.weights_, atol=1e-9)
    with pytest.raises(ValueError, match="requires min_weight > 0"):
        SparsePortfolio(4, groups=labels, group_cardinalities={"s1": (1, 2)}).fit(returns, y)


def test_an_index_is_tracked_at_a_cost(returns):
    """The mean squared distance plus the costs, with assets already held, against every pair."""
    X = returns[:, :5]
    y, held, cost = X.mean(axis=1), np.array([0.5, 0.5, 0, 0, 0.0]), 2e-5

    def value(x):
        return np.mean((X @ x - y) ** 2) + cost * np.abs(x - held).sum()

    model = SparsePortfolio(2, previous_weights=held, turnover_cost=cost).fit(X, y)
    shares = np.linspace(0, 1, 2001)
    best = min(value(np.eye(5)[i] * s + np.eye(5)[j] * (1 - s)) for i, j in combinations(range(5), 2) for s in shares)
    assert value(model.weights_) <= best
    assert model.result_.fun == pytest.approx(value(model.weights_), rel=1e-9)
    assert model.cost_ == pytest.approx(cost * model.turnover_)
