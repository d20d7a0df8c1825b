"""SparseRegressor with several targets: each as if fitted alone."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import ksparse as ks


@pytest.fixture
def data(rng):
    X = rng.standard_normal((40, 8)) * np.linspace(0.1, 30, 8) + 5
    return X, X[:, :6] @ rng.uniform(0, 1, (6, 6)) * np.repeat([1e-3, 1.0, 1e3], 2) + rng.standard_normal((40, 6)) + 7


HOW = {
    "plain": {},
    "positive": {"positive": True},
    "some positive": {"positive": [0, 3, 7]},
    "no intercept": {"fit_intercept": False},
    "ridge": {"alpha": 0.1},
    "as they are": {"standardize": False},
    "forced": {"forced_in": [7]},
    "bounds": {"C": ks.Box(-0.2, 0.2)},
    "huber": {"loss": "huber"},
    "simplex": {"C": ks.Simplex()},
    "proved": {"gap": 0.1},
}


@pytest.mark.parametrize("name", HOW)
def test_each_target_is_fitted_as_if_alone(data, name):
    X, Y = data
    Y = Y[:, :2] if name in ("huber", "simplex", "proved", "forced", "bounds") else Y
    model = ks.SparseRegressor(3, **HOW[name]).fit(X, Y)
    assert model.coef_.shape == (Y.shape[1], 8)
    assert model.predict(X).shape == Y.shape
    for target, y in enumerate(Y.T):
        alone = ks.SparseRegressor(3, **HOW[name]).fit(X, y)
        assert np.allclose(model.coef_[target], alone.coef_, rtol=1e-6, atol=1e-9)
        assert np.allclose(model.intercept_[target], alone.intercept_, rtol=1e-6, atol=1e-6)
    assert model.get_support().sum() == (model.coef_ != 0).any(axis=0).sum()


def test_weights_count_like_rows(data):
    X, Y = data
    weight = np.arange(40) % 3
    model = ks.SparseRegressor(3).fit(X, Y, sample_weight=weight)
    repeated = ks.SparseRegressor(3).fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight, axis=0))
    assert np.allclose(model.coef_, repeated.coef_, rtol=1e-7, atol=1e-10)


def test_impossible_arguments_are_errors(data):
    X, Y = data
    with pytest.raises(ValueError, match="inf"):
        ks.SparseRegressor(3).fit(X, np.where(Y > 0, np.inf, Y))
    with pytest.raises(ValueError, match='multi_output="common" needs loss="squared"'):
        ks.SparseRegressorCV([1, 2], loss="huber").fit(X, Y)  # which finds k features for all targets
    with pytest.warns(ConvergenceWarning, match="time limit"):
        ks.SparseRegressor(3, max_time=0.0).fit(X, Y)


def test_effort_of_targets_solved_together_is_checked_like_any_other(rng):
    X, Y = rng.standard_normal((30, 8)), rng.standard_normal((30, 3))
    with pytest.raises(ValueError, match="effort must be an integer >= 1"):
        ks.SparseRegressor(3, effort=0).fit(X, Y)
