"""Regressors and classifiers satisfy their constraints, and agree with the functions of the library."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import ksparse as ks
from ksparse.datasets import breast_cancer, diabetes
from ksparse.estimators import (
    SparseClassifier,
    SparseRegressor,
)


@given(
    seed=st.integers(0, 10_000), m=st.integers(4, 30), n=st.integers(1, 12), k=st.integers(1, 12),
    positive=st.booleans(), loss=st.sampled_from(["squared", "huber", "poisson"]),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
)  # fmt: skip
def test_regressors_obey_exactly(seed, m, n, k, positive, loss, scale):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n)) * scale
    y = rng.poisson(2.0, m).astype(float) if loss == "poisson" else rng.standard_normal(m)
    signed = True if positive else rng.permutation(n)[: n // 2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", ".*is more than the number of features")
        model = SparseRegressor(k, loss=loss, positive=signed, alpha=1e-8, max_time=5).fit(X, y)
    assert np.count_nonzero(model.coef_) <= k
    assert (model.coef_[signed if not positive else slice(None)] >= 0).all()
    assert np.isfinite(model.predict(X)).all()
    np.testing.assert_array_equal(model.get_support(), model.coef_ != 0)


def test_the_regressor_is_minimize_with_an_intercept():
    X, y, _ = diabetes(quadratic=True)
    model = SparseRegressor(8).fit(X, y)
    twin = ks.minimize(ks.LeastSquares((X - X.mean(axis=0)) / X.std(axis=0), y - y.mean()), 8)
    np.testing.assert_array_equal(np.flatnonzero(model.coef_), twin.support)
    assert 0.5 * np.sum((y - model.predict(X)) ** 2) == pytest.approx(twin.fun, rel=1e-9)
    assert isinstance(model.result_, ks.Result)
    raw = SparseRegressor(8, standardize=False).fit(X, y)
    assert raw.score(X, y) == pytest.approx(model.score(X, y), abs=0.01)


def test_names_signs_and_seats_of_a_data_frame():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, y, names = diabetes()
    table = pd.DataFrame(X, columns=names)
    model = SparseRegressor(4, positive=["s1", "s2"], forced_in=["age"], forced_out=["bmi"]).fit(table, y)
    chosen = dict(zip(model.feature_names_in_, model.coef_, strict=True))
    assert chosen["age"] != 0
    assert chosen["bmi"] == 0
    assert min(chosen["s1"], chosen["s2"]) >= 0
    assert list(model.get_feature_names_out()) == [name for name in names if chosen[name] != 0]
    selected = model.set_output(transform="pandas").transform(table)
    assert list(selected.columns) == list(model.get_feature_names_out())
    with pytest.raises(ValueError, match="forced_in holds 'weight', which is not a feature"):
        SparseRegressor(forced_in=["weight"]).fit(table, y)
    with pytest.raises(ValueError, match="which is not a feature: X has no column names"):
        SparseRegressor(positive=["age"]).fit(X, y)
    with pytest.raises(ValueError, match=r"forced_out must be feature indices in 0..9, got 10"):
        SparseRegressor(forced_out=[10]).fit(X, y)
    with pytest.raises(ValueError, match="as a mask must have one entry per feature"):
        SparseRegressor(positive=np.array([True, False])).fit(X, y)


@pytest.mark.parametrize("kind", [scipy.sparse.csr_array, scipy.sparse.csc_array])
def test_sparse_tables_are_not_densified(kind, monkeypatch):
    rng = np.random.default_rng(0)
    X = kind(np.where(rng.random((200, 60)) < 0.05, rng.standard_normal((200, 60)), 0.0))
    y = X @ np.where(np.arange(60) < 3, 2.0, 0.0) + 1.0
    for each in (scipy.sparse.csr_array, scipy.sparse.csc_array):
        monkeypatch.setattr(each, "toarray", _watched(each.toarray))
    model = SparseRegressor(3).fit(X, y)
    np.testing.assert_array_equal(np.flatnonzero(model.coef_), [0, 1, 2])
    assert model.intercept_ == pytest.approx(1.0)
    assert scipy.sparse.issparse(model.transform(X))


def _watched(toarray):
    def watched(self, *args, **kwargs):
        assert self.shape[0] * self.shape[1] < 200 * 60, "densified"
        return toarray(self, *args, **kwargs)

    return watched


def test_sets_and_budgets_on_coefficients(rng):
    X = rng.standard_normal((60, 12))
    y = X[:, :3] @ [0.5, 0.3, 0.2] + 0.01 * rng.standard_normal(60)
    model = SparseRegressor(3, C=ks.Simplex(), fit_intercept=False).fit(X, y)
    assert model.coef_.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_array_equal(np.flatnonzero(model.coef_), [0, 1, 2])


def test_a_time_limit_warns_and_still_fits(rng):
    X, y = rng.standard_normal((100, 300)), rng.standard_normal(100)
    with pytest.warns(ConvergenceWarning, match="SparseRegressor: time limit reached"):
        model = SparseRegressor(20, max_time=0.0).fit(X, y)
    assert np.count_nonzero(model.coef_) <= 20


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"k": -1}, ValueError, "k must be an integer >= 0, got -1"),
        ({"k": 2.5}, TypeError, "k must be an integer"),
        (
            {"loss": "absolute"},
            ValueError,
            "loss must be one of squared, huber, .*tweedie, got 'absolute'",
        ),
        ({"loss": "poisson"}, ValueError, "y must hold counts >= 0 for the poisson loss"),
        ({"alpha": -1.0}, ValueError, "alpha must be >= 0"),
        ({"method": "magic"}, ValueError, "method must be one of"),
    ],
)
def test_bad_parameters_are_named_at_fit(options, error, words):
    X, y, _ = diabetes()
    with pytest.raises(error, match=words):
        SparseRegressor(**options).fit(X, y - y.mean())


def test_the_classifier_agrees_with_logistic_regression_on_the_same_features():
    X, y, _ = breast_cancer()
    model = SparseClassifier(4, alpha=0.0).fit(X, y)
    Z = model.transform(X)
    twin = LogisticRegression(C=np.inf, max_iter=100_000, tol=1e-8).fit(StandardScaler().fit_transform(Z), y)
    np.testing.assert_allclose(model.predict_proba(X), twin.predict_proba(StandardScaler().fit_transform(Z)), atol=1e-3)
    assert model.coef_.shape == (1, 30)
    assert np.count_nonzero(model.coef_) == 4
    assert model.score(X, y) > 0.95


def test_several_classes_have_a_model_each():
    X, y = load_iris(return_X_y=True)
    labels = np.array(["setosa", "versicolor", "virginica"])[y]
    model = SparseClassifier(2, multi_class="ovr").fit(X, labels)
    assert model.coef_.shape == (3, 4)
    assert (np.count_nonzero(model.coef_, axis=1) <= 2).all()
    assert len(model.result_) == 3
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert model.score(X, labels) > 0.9
    assert set(model.predict(X)) == {"setosa", "versicolor", "virginica"}
    np.testing.assert_array_equal(model.get_support(), (model.coef_ != 0).any(axis=0))


def test_separated_classes_have_finite_coefficients():
    X, y = load_iris(return_X_y=True)
    model = SparseClassifier(1).fit(X, y == 0)
    assert model.score(X, y == 0) == 1.0
    assert np.abs(model.coef_).max() < 1e3


@pytest.mark.parametrize("estimator", [ks.SparseRegressor, ks.SparseClassifier])
@pytest.mark.parametrize("option", ["effort", "gap"])
def test_options_of_the_search_are_refused_with_the_papers_methods(estimator, option, rng):
    X, y = rng.standard_normal((30, 5)), np.arange(30) % 2
    with pytest.raises(ValueError, match=f"{option} is only supported with method='auto'"):
        estimator(method="iht", fit_intercept=False, **{option: 2}).fit(X, y)
    estimator(method="iht", fit_intercept=False).fit(X, y)
