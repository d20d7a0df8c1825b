"""Selection stability by subsampling, standard errors by refit, and their plots."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import linregress

import ksparse as ks
from ksparse.plotting import plot_coefficient_path, plot_refit, plot_stability


@pytest.fixture
def data(rng):
    X = rng.standard_normal((150, 10))
    return X, X[:, :2] @ [2.0, -1.5] + 0.2 * X[:, 2] + rng.standard_normal(150) + 1.0


def test_what_is_there_is_stable_and_noise_is_not(data):
    X, y = data
    found = ks.selection_stability(
        ks.SparseRegressor(3), pd.DataFrame(X, columns=list("abcdefghij")), y, n_subsamples=20
    )
    assert found.selected.shape == (20, 10)
    assert (found.selected.sum(axis=1) == 3).all()
    assert found.stable() == ["a", "b"]
    assert found.frequencies[3:].max() < 0.9
    assert found.expected_false == pytest.approx(9 / 8)
    assert list(found.to_frame()["feature"])[:2] == ["a", "b"]
    assert "in at least 90 % of them: a, b" in repr(found)


def test_the_draw_does_not_depend_on_threads_and_the_estimator_stays(data):
    X, y = data
    model = ks.SparseRegressor(2)
    one, two = (
        ks.selection_stability(model, X, y, n_subsamples=4, random_state=3, n_jobs=n_jobs) for n_jobs in (None, 2)
    )
    assert np.array_equal(one.selected, two.selected)
    assert not hasattr(model, "coef_")


def test_subsamples_keep_every_class_and_the_weights(data):
    X, y = data
    labels = np.zeros(150, int)
    labels[:4] = 1  # four of them
    X = X.copy()
    X[:4, 5] += 5
    found = ks.selection_stability(ks.SparseClassifier(1), X, labels, n_subsamples=5)
    assert found.frequencies[5] == 1.0
    weight = (np.arange(150) < 75).astype(float)
    weighted = ks.selection_stability(ks.SparseRegressor(2), X, y, n_subsamples=3, sample_weight=weight)
    assert weighted.selected.shape == (3, 10)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"estimator": 3}, TypeError, "must select features"),
        ({"n_subsamples": 1}, ValueError, "n_subsamples"),
        ({"fraction": 1.0}, ValueError, "fraction must be > 0 and < 1"),
    ],
)
def test_bad_input_is_named(data, change, error, words):
    X, y = data
    with pytest.raises(error, match=words):
        ks.selection_stability(**{"estimator": ks.SparseRegressor(2), "X": X, "y": y} | change)


def test_errors_of_one_feature_are_those_of_scipy(data):
    X, y = data
    model = ks.SparseRegressor(1).fit(X, y)
    found = ks.standard_errors(model, X, y)
    line = linregress(X[:, int(np.flatnonzero(model.coef_)[0])], y)
    assert found.names == ["intercept", "x0"]
    assert np.allclose(found.coef, [line.intercept, line.slope])
    assert np.allclose(found.error, [line.intercept_stderr, line.stderr])
    assert found.p_values[1] == pytest.approx(line.pvalue, rel=1e-6)
    low, high = found.interval(0.9)[1]
    assert low < line.slope < high
    assert list(found.to_frame().columns) == ["coefficient", "error", "p", "low", "high"]


def by_hand(D, bend, slope):
    """The inverse curvature, and the sandwich estimator."""
    bread = np.linalg.inv(D.T @ (bend[:, None] * D))
    return np.sqrt(np.diag(bread)), np.sqrt(np.diag(bread @ (D.T @ (slope[:, None] ** 2 * D)) @ bread))


def test_errors_of_likelihoods_and_sandwiches_are_those_by_hand(data, rng):
    X, score = data
    labels = np.where(score + rng.logistic(size=150) > 1, "yes", "no")
    model = ks.SparseClassifier(2, alpha=0.0).fit(X, labels)
    found, robust = ks.standard_errors(model, X, labels), ks.standard_errors(model, X, labels, robust=True)
    D = np.column_stack([np.ones(150), X[:, np.flatnonzero(model.coef_[0])]])
    share = 1 / (1 + np.exp(-D @ found.coef))
    plain, sandwich = by_hand(D, share * (1 - share), share - (labels == "yes"))
    assert np.allclose(found.coef[1:], model.coef_[model.coef_ != 0], rtol=1e-4)
    assert np.allclose(found.error, plain, rtol=1e-5)
    assert np.allclose(robust.error, sandwich, rtol=1e-5)
    assert math.isinf(found.freedom)
    assert robust.robust
    assert not found.robust
    counts = rng.poisson(np.exp(0.3 * score))
    poisson = ks.standard_errors(ks.SparseRegressor(2, loss="poisson").fit(X, counts), X, counts)
    assert (poisson.error > 0).all()
    huber = ks.standard_errors(ks.SparseRegressor(2, loss="huber", delta=1.0).fit(X, score), X, score)
    assert huber.robust
    assert huber.error.max() < 0.3


def test_weights_count_like_rows_in_errors(data):
    X, y = data
    weight = np.arange(150) % 3
    model = ks.SparseRegressor(2).fit(X, y, weight)
    rows = np.repeat(np.arange(150), weight)
    assert np.allclose(ks.standard_errors(model, X, y, weight).error, ks.standard_errors(model, X[rows], y[rows]).error)


def test_models_without_standard_errors_are_refused(data):
    X, y = data
    with pytest.raises(TypeError, match="model must be a fitted SparseRegressor"):
        ks.standard_errors(3, X, y)
    with pytest.raises(ValueError, match="3 rows of coefficients"):
        ks.standard_errors(ks.SparseClassifier(1).fit(X, np.digitize(y, [0, 2])), X, np.digitize(y, [0, 2]))
    with pytest.raises(ValueError, match="nothing to refit"):
        ks.standard_errors(ks.SparseRegressor(0, fit_intercept=False).fit(X, y), X, y)
    with pytest.raises(ValueError, match="y must have as many entries"):
        ks.standard_errors(ks.SparseRegressor(1).fit(X, y), X, y[:5])


def test_pictures(data):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    X, y = data
    found = ks.selection_stability(ks.SparseRegressor(2), X, y, n_subsamples=4)
    assert len(plot_stability(found).patches) == np.count_nonzero(found.frequencies)
    model = ks.SparseRegressorCV(range(1, 5), cv=3).fit(X, y)
    ax = plot_coefficient_path(model.ks_, model.coef_path_, [f"feature {j}" for j in range(10)])
    assert len(ax.lines) == np.count_nonzero(model.coef_path_.any(axis=0))
    assert len(plot_refit(ks.standard_errors(model, X, y)).get_yticks()) == np.count_nonzero(model.coef_)
    with pytest.raises(ValueError, match="one row per k"):
        plot_coefficient_path([1, 2], np.zeros((3, 2)))
