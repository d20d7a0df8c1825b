"""SparseMeanRisk inside skfolio."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

pytest.importorskip("skfolio", reason="skfolio is not installed")

from skfolio import RiskMeasure
from skfolio.datasets import load_sp500_dataset
from skfolio.metrics import make_scorer
from skfolio.model_selection import WalkForward, cross_val_predict
from skfolio.moments import LedoitWolf
from skfolio.optimization import MeanRisk
from skfolio.pre_selection import DropCorrelated
from skfolio.preprocessing import prices_to_returns
from skfolio.prior import EmpiricalPrior

from ksparse.skfolio import SparseMeanRisk


@pytest.fixture(scope="module")
def returns():
    return prices_to_returns(load_sp500_dataset()).iloc[-1500:]


def test_without_a_cap_it_is_the_convex_optimum(returns):
    ours = SparseMeanRisk(k=20).fit(returns)
    theirs = MeanRisk(risk_measure=RiskMeasure.VARIANCE).fit(returns)
    V = np.cov(returns.to_numpy().T)
    assert ours.weights_ @ V @ ours.weights_ <= theirs.weights_ @ V @ theirs.weights_ * (1 + 1e-6)
    np.testing.assert_allclose(ours.weights_, theirs.weights_, atol=1e-3)


def test_walking_forward(returns):
    cv = WalkForward(train_size=500, test_size=250)
    predicted = cross_val_predict(SparseMeanRisk(k=5, min_weight=0.05), returns, cv=cv)
    assert len(predicted) == 4
    for portfolio in predicted:
        assert np.count_nonzero(portfolio.weights) <= 5
        assert portfolio.weights.sum() == pytest.approx(1, abs=1e-12)
        assert portfolio.weights[portfolio.weights != 0].min() >= 0.05
    assert predicted.annualized_sharpe_ratio is not None


def test_trading_costs_are_handed_from_fold_to_fold(returns):
    cv = WalkForward(train_size=500, test_size=250)
    free = cross_val_predict(SparseMeanRisk(k=5), returns, cv=cv)
    dear = cross_val_predict(SparseMeanRisk(k=5, transaction_costs=1e-2), returns, cv=cv)
    turnover = [
        sum(np.abs(b.weights - a.weights).sum() for a, b in zip(list(p), list(p)[1:], strict=False))
        for p in (free, dear)
    ]
    assert turnover[1] < 0.5 * turnover[0]


def test_a_grid_over_k(returns):
    search = GridSearchCV(
        SparseMeanRisk(),
        {"k": [2, 5, 10]},
        cv=WalkForward(train_size=500, test_size=500),
        scoring=make_scorer(RiskMeasure.VARIANCE),
    ).fit(returns)
    assert search.best_params_["k"] in (2, 5, 10)
    assert np.count_nonzero(search.best_estimator_.weights_) <= search.best_params_["k"]


def test_priors_pipelines_names_and_clones(returns):
    model = SparseMeanRisk(
        k=4, risk_aversion=5.0, prior_estimator=EmpiricalPrior(covariance_estimator=LedoitWolf())
    ).fit(returns)
    assert model.prior_estimator_.return_distribution_.covariance.shape == (20, 20)
    assert list(model.feature_names_in_) == list(returns.columns)
    chain = make_pipeline(DropCorrelated(threshold=0.6), clone(model).set_params(prior_estimator=None)).fit(returns)
    portfolio = chain.predict(returns)
    assert np.count_nonzero(portfolio.weights) <= 4
    assert "SparseMeanRisk" in chain._repr_html_()


def test_returns_to_reach_and_failures(returns):
    mean = returns.to_numpy().mean(axis=0)
    model = SparseMeanRisk(k=5, min_return=float(np.sort(mean)[-4])).fit(returns)
    assert mean @ model.weights_ >= np.sort(mean)[-4] - 1e-12
    with pytest.raises(ValueError, match="the target return 1 is above the largest within the bounds"):
        SparseMeanRisk(min_return=1.0).fit(returns)
    with pytest.warns(UserWarning, match="weights_ is set to None"):
        failed = SparseMeanRisk(min_return=1.0, raise_on_failure=False).fit(returns)
    assert failed.weights_ is None
    saved = SparseMeanRisk(min_return=1.0, fallback=SparseMeanRisk(k=3)).fit(returns)
    assert np.count_nonzero(saved.weights_) <= 3


def test_mandates_in_skfolios_words(returns):
    names = list(returns.columns)
    groups = {name: ["first", "all"] if i < 10 else ["second", "all"] for i, name in enumerate(names)}
    rules = ["first <= 0.4", f"{names[0]} + {names[12]} >= 0.1", f"{names[3]} <= 0.05"]
    ours = SparseMeanRisk(k=20, groups=groups, linear_constraints=rules, max_weights={names[15]: 0.1}, budget=0.9).fit(
        returns
    )
    theirs = MeanRisk(
        risk_measure=RiskMeasure.VARIANCE, groups=groups, linear_constraints=rules, budget=0.9,
        max_weights={name: 0.1 if name == names[15] else 1.0 for name in names},
    ).fit(returns)  # fmt: skip
    V = np.cov(returns.to_numpy().T)
    assert ours.weights_ @ V @ ours.weights_ <= theirs.weights_ @ V @ theirs.weights_ * (1 + 1e-6)
    np.testing.assert_allclose(ours.weights_, theirs.weights_, atol=2e-3)
    rows = [["first"] * 10 + ["second"] * 10]
    same = SparseMeanRisk(k=20, groups=rows, linear_constraints=rules, max_weights={names[15]: 0.1}, budget=0.9).fit(
        returns
    )
    np.testing.assert_allclose(same.weights_, ours.weights_, atol=1e-9)
    with pytest.raises(ValueError, match="groups must hold one label per asset in each row, 20, got 2"):
        SparseMeanRisk(groups=[["a", "b"]], linear_constraints="a <= 0.1").fit(returns)


def test_turnovers_as_skfolio_means_them_and_in_all(returns):
    held = np.full(20, 0.05)
    V = np.cov(returns.to_numpy().T)
    ours = SparseMeanRisk(k=20, previous_weights=held, max_turnover=0.02).fit(returns)
    theirs = MeanRisk(risk_measure=RiskMeasure.VARIANCE, previous_weights=held, max_turnover=0.02).fit(returns)
    assert np.abs(ours.weights_ - held).max() <= 0.02 + 1e-9
    assert ours.weights_ @ V @ ours.weights_ <= theirs.weights_ @ V @ theirs.weights_ * (1 + 1e-5)
    five = np.r_[np.full(5, 0.2), np.zeros(15)]
    near = SparseMeanRisk(k=5, previous_weights=five, max_total_turnover=0.3).fit(returns)
    assert np.abs(near.weights_ - five).sum() <= 0.3 + 1e-9
    assert np.count_nonzero(near.weights_) <= 5
    priced = SparseMeanRisk(k=5, previous_weights=five, transaction_costs=dict.fromkeys(returns.columns, 1.0)).fit(
        returns
    )
    np.testing.assert_allclose(priced.weights_, five, atol=1e-12)


def test_names_per_group_and_tracking_errors_as_skfolio_means_them(returns):
    groups = {name: ["odd" if i % 2 else "even", "all"] for i, name in enumerate(returns.columns)}
    model = SparseMeanRisk(cardinality=6, groups=groups, group_cardinalities={"odd": 2}).fit(returns)
    np.testing.assert_array_equal(
        model.weights_, SparseMeanRisk(6, groups=groups, group_cardinalities={"odd": 2}).fit(returns).weights_
    )
    assert np.count_nonzero(model.weights_) <= 6
    odd = model.weights_[1::2]
    assert np.count_nonzero(odd) <= 2
    with pytest.raises(ValueError, match="groups with limits must not overlap"):
        SparseMeanRisk(6, groups=groups, group_cardinalities={"odd": 2, "all": 4}).fit(returns)
    y = returns.mean(axis=1)
    near = SparseMeanRisk(6, max_tracking_error=0.006).fit(returns, y)
    away = np.asarray(returns) @ near.weights_ - np.asarray(y)
    assert np.linalg.norm(away) / np.sqrt(len(away) - 1) <= 0.006
    assert np.linalg.norm(away) / np.sqrt(len(away) - 1) == pytest.approx(0.006)
    whole = SparseMeanRisk(returns.shape[1], max_tracking_error=0.004).fit(returns, y)
    twin = MeanRisk(max_tracking_error=0.004).fit(returns, y)
    assert whole.weights_ == pytest.approx(twin.weights_, abs=2e-3)
    with pytest.raises(ValueError, match="max_tracking_error needs y"):
        SparseMeanRisk(6, max_tracking_error=0.006).fit(returns)
