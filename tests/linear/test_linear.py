"""Linear models agree with enumeration and with scikit-learn."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import lsq_linear
from sklearn.linear_model import LogisticRegression, PoissonRegressor

import ksparse as ks
from ksparse.linear.loss_names import LOSSES
from ksparse.linear.problem import linear_problem


def fit_linear(X, y, k, *, tol=1e-5, **options):
    return linear_problem(X, y, **options).minimize(k, tol=tol)


def squares(X, y, coef, intercept):
    return float(np.sum((X @ coef + intercept - y) ** 2))


@pytest.mark.parametrize("bounds", [(-np.inf, np.inf), (0.0, np.inf), (-0.3, 0.4)], ids=str)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_least_squares_is_the_best_of_all_subsets(bounds, fit_intercept, rng):
    X = rng.standard_normal((30, 7)) * 10.0 ** rng.uniform(-2, 2, 7) + 5.0
    y = X @ rng.standard_normal(7) / X.std(axis=0).mean() + rng.standard_normal(30) + 100.0
    low, high = bounds
    best = np.inf
    for subset in combinations(range(7), 3):
        A = np.hstack([X[:, subset], np.ones((30, 1))]) if fit_intercept else X[:, subset]
        free = np.r_[np.full(3, low), -np.inf] if fit_intercept else np.full(3, low)
        top = np.r_[np.full(3, high), np.inf] if fit_intercept else np.full(3, high)
        best = min(best, 2 * lsq_linear(A, y, (free, top), tol=1e-14).cost)
    fit = fit_linear(X, y, 3, lower=low, upper=high, fit_intercept=fit_intercept)
    assert np.count_nonzero(fit.coef) <= 3
    assert (fit.coef >= low).all()
    assert (fit.coef <= high).all()
    assert squares(X, y, fit.coef, fit.intercept) <= best * (1 + 1e-7)
    if not fit_intercept:
        assert fit.intercept == 0.0


@pytest.mark.parametrize("loss", LOSSES)
def test_bounds_hold_exactly_and_forced_features_stay(loss, rng):
    X = rng.standard_normal((80, 12)) * 10.0 ** rng.uniform(-3, 3, 12)
    score = X[:, 0] / np.ptp(X[:, 0]) * 4 - X[:, 1] / np.ptp(X[:, 1]) * 4
    y = score + 0.1 * rng.standard_normal(80)
    if loss == "logistic":
        y = (score + rng.standard_normal(80) > 0).astype(float)
    elif loss == "multinomial":
        y = np.digitize(score + rng.standard_normal(80), [-0.7, 0.7]).astype(float)
    elif loss in ("poisson", "negative_binomial"):
        y = rng.poisson(np.exp(score)).astype(float)
    elif loss in ("gamma", "tweedie"):
        y = rng.gamma(2.0, np.exp(score))
    upper = np.full(12, 0.01 / X.std(axis=0))
    fit = fit_linear(X, y, 4, loss=loss, lower=-upper, upper=upper, forced_in=[7])
    assert (np.abs(fit.coef) <= upper).all()
    coef = np.atleast_2d(fit.coef)  # of several classes a row each
    assert np.count_nonzero(coef.any(axis=0)) <= 4
    assert coef[:, 7].any()
    assert np.any(np.abs(fit.coef) == upper)  # a bound that binds is met to the last bit


def test_logistic_and_poisson_agree_with_scikit_learn_on_all_features(rng):
    X = rng.standard_normal((300, 4)) + 3.0
    score = X @ [0.5, -0.4, 0.2, 0.0] - 0.3
    y = (score + rng.logistic(size=300) > 0).astype(int)
    fit = fit_linear(X, y, 4, loss="logistic", tol=1e-12)
    model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(fit.coef, model.coef_[0], atol=1e-4)
    np.testing.assert_allclose(fit.intercept, model.intercept_[0], atol=1e-3)
    counts = rng.poisson(np.exp(score))
    fit = fit_linear(X, counts, 4, loss="poisson", tol=1e-12)
    model = PoissonRegressor(alpha=0, tol=1e-10, max_iter=10_000).fit(X, counts)
    np.testing.assert_allclose(np.r_[fit.coef, fit.intercept], np.r_[model.coef_, model.intercept_], atol=1e-3)


def test_huber_is_not_moved_by_an_outlier(rng):
    X = rng.standard_normal((100, 10))
    y = 3 * X[:, 2] + 0.1 * rng.standard_normal(100)
    y[5] += 1e4
    fit = fit_linear(X, y, 1, loss="huber")
    np.testing.assert_array_equal(np.flatnonzero(fit.coef), [2])
    assert fit.coef[2] == pytest.approx(3, abs=0.2)


def test_far_columns_constant_columns_and_sparse_tables(rng):
    X = rng.standard_normal((60, 6))
    X[:, 0] = 2000 + rng.integers(0, 20, 60)  # years
    X[:, 3] = 7.0
    y = 0.5 * (X[:, 0] - 2010) + X[:, 1] + 0.01 * rng.standard_normal(60)
    fit = fit_linear(X, y, 2)
    np.testing.assert_array_equal(np.flatnonzero(fit.coef), [0, 1])
    assert fit.intercept == pytest.approx(-1005, abs=5)
    Z = rng.standard_normal((60, 6)) * (rng.random((60, 6)) < 0.3)
    y = 2 * Z[:, 4] - Z[:, 1] + 5
    for kind in (scipy.sparse.csr_array, scipy.sparse.csc_array):
        fit, dense = fit_linear(kind(Z), y, 2), fit_linear(Z, y, 2)
        np.testing.assert_allclose(fit.coef, dense.coef, atol=1e-8)
        assert fit.intercept == pytest.approx(5)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (
            {"loss": "absolute"},
            "loss must be one of squared, logistic, huber, poisson, .*tweedie, got 'absolute'",
        ),
        ({"lower": 2.0, "upper": 1.0}, "lower must not exceed upper, got 2 > 1 at index 0"),
        ({"lower": np.zeros(3)}, "lower must have length 4, got 3"),
        ({"k": 5}, "k must be an integer in 0..4"),
        ({"y": np.ones(9)}, "y must have length 10, got 9"),
        ({"X": np.full((10, 4), np.nan)}, "X must not contain NaN"),
    ],
)
def test_bad_input_is_named(change, error, rng):
    given = {"X": rng.standard_normal((10, 4)), "y": rng.standard_normal(10), "k": 2} | change
    with pytest.raises(ValueError, match=error):
        fit_linear(**given)


def test_only_bounds_are_supported_for_shared_features(rng):
    X, y = rng.standard_normal((60, 6)), rng.integers(3, size=60)
    with pytest.raises(ks.MissingPieceError, match=r"C = Simplex\(1\) is not supported for targets or classes"):
        linear_problem(X, y, loss="multinomial", C=ks.Simplex())


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss != "multinomial"])
def test_a_set_for_the_coefficients_is_combined_with_an_intercept(loss, rng):
    X = rng.standard_normal((60, 6)) * 10.0 ** rng.uniform(-1, 1, 6) + 2.0
    y = (X[:, 0] - X[:, 1] > 0).astype(float) + 1.0 * (loss not in ("logistic",)) * 3.0
    fit = linear_problem(X, y, loss=loss, C=ks.Simplex()).minimize(3)
    assert fit.coef.sum() == pytest.approx(1, abs=1e-12)
    assert fit.coef.min() >= 0
    boxed = linear_problem(X, y, loss=loss, C=ks.Box(-0.01, 0.02), lower=-0.005).minimize(3)
    assert boxed.coef.max() <= 0.02
    assert boxed.coef.min() >= -0.005
    if loss == "squared":
        ball = linear_problem(X, y, loss=loss, C=ks.L2Ball(0.1)).minimize(3)
        assert np.linalg.norm(ball.coef) <= 0.1 + 1e-12
    else:
        with pytest.raises(ks.MissingPieceError, match=f"cannot be combined with an intercept with the {loss} loss"):
            linear_problem(X, y, loss=loss, C=ks.L2Ball(0.1))
    with pytest.raises(ValueError, match="bounds cannot be combined with C"):
        linear_problem(X, y, loss=loss, C=ks.Simplex(), upper=0.5)


def test_weights_count_like_repeated_rows(rng):
    X, y = rng.standard_normal((25, 8)), rng.standard_normal(25)
    times = rng.integers(0, 4, 25)
    for loss in ("squared", "poisson"):
        target = np.abs(np.round(y * 3)) if loss == "poisson" else y
        weighted = linear_problem(X, target, loss=loss, sample_weight=times).minimize(3)
        repeated = linear_problem(np.repeat(X, times, axis=0), np.repeat(target, times), loss=loss).minimize(3)
        np.testing.assert_allclose(weighted.coef, repeated.coef, atol=1e-7)
        assert weighted.intercept == pytest.approx(repeated.intercept, abs=1e-7)


def test_a_path_of_linear_models(rng):
    X, y = rng.standard_normal((50, 20)) + 1, rng.standard_normal(50) + 4
    fits = linear_problem(X, y, lower=0.0).path([1, 3, 6])
    assert [np.count_nonzero(fit.coef) <= k for fit, k in zip(fits, (1, 3, 6), strict=True)] == [True] * 3
    values = [squares(X, y, fit.coef, fit.intercept) for fit in fits]
    assert values == sorted(values, reverse=True)
