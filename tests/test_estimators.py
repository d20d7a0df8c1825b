"""The estimators obey, agree with the library beneath them, and keep scikit-learn's manners."""

import pickle
import warnings
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import ksparse as ks
from conftest import data_file
from ksparse.datasets import breast_cancer, diabetes
from ksparse.estimators import (
    SparseClassifier,
    SparseClassifierCV,
    SparsePCA,
    SparsePortfolio,
    SparseRegressor,
    SparseRegressorCV,
)
from ksparse.portfolio import _exact, portfolio

ALL = [
    SparseRegressor(), SparseRegressor(loss="huber"), SparseRegressor(loss="poisson"), SparseRegressor(method="apdca"), SparseClassifier(),
    SparseRegressorCV(cv=3), SparseRegressorCV(criterion="bic"), SparseClassifierCV(ks=[1, 2], cv=2), SparsePCA(), SparsePortfolio(),
]  # fmt: skip


@parametrize_with_checks(ALL)
def test_scikit_learns_own_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", FutureWarning)
        check(estimator)


# --- regression ---


@given(
    seed=st.integers(0, 10_000), m=st.integers(4, 30), n=st.integers(1, 12), k=st.integers(1, 12), positive=st.booleans(),
    loss=st.sampled_from(["squared", "huber", "poisson"]), scale=st.sampled_from([1e-6, 1.0, 1e6]),
)  # fmt: skip
def test_regressors_obey_exactly(seed, m, n, k, positive, loss, scale):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n)) * scale
    y = rng.poisson(2.0, m).astype(float) if loss == "poisson" else rng.standard_normal(m)
    signed = True if positive else rng.permutation(n)[: n // 2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SparseRegressor(k, loss=loss, positive=signed, alpha=1e-8, max_time=5).fit(X, y)
    assert np.count_nonzero(model.coef_) <= k
    assert (model.coef_[signed if not positive else slice(None)] >= 0).all()
    assert np.isfinite(model.predict(X)).all()
    np.testing.assert_array_equal(model.get_support(), model.coef_ != 0)


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
    X = kind(scipy.sparse.random_array((200, 60), density=0.05, rng=rng))
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
        ({"k": 0}, ValueError, "k must be an integer in 1..10, got 0"),
        ({"k": 2.5}, TypeError, "k must be an integer"),
        ({"loss": "absolute"}, ValueError, "loss must be one of squared, huber, poisson, got 'absolute'"),
        ({"loss": "poisson"}, ValueError, "y must hold counts >= 0 for the poisson loss"),
        ({"alpha": -1.0}, ValueError, "alpha must be >= 0"),
        ({"method": "magic"}, ValueError, "method must be one of"),
    ],
)
def test_bad_parameters_are_named_at_fit(options, error, words):
    X, y, _ = diabetes()
    with pytest.raises(error, match=words):
        SparseRegressor(**options).fit(X, y - y.mean())


# --- classification ---


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
    model = SparseClassifier(2).fit(X, labels)
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


# --- choosing k ---


@pytest.mark.parametrize("criterion", ["cv", "bic", "ebic"])
def test_the_planted_number_of_features_is_found(criterion, rng):
    X = rng.standard_normal((150, 20))
    y = X[:, [2, 5, 11]] @ [3.0, -2.0, 1.5] + 0.3 * rng.standard_normal(150)
    model = SparseRegressorCV(range(1, 9), criterion=criterion, one_standard_error=True, cv=5, random_state=0).fit(X, y)
    assert model.k_ in ((3,) if criterion == "cv" else (3, 4))  # one of seventeen others may look good by chance
    assert {2, 5, 11} <= set(np.flatnonzero(model.coef_))
    assert hasattr(model, "cv_errors_" if criterion == "cv" else "criterion_")


def test_cross_validation_is_what_it_says(rng):
    """The errors are those of models fitted to the training rows alone."""
    X, y = rng.standard_normal((60, 6)), rng.standard_normal(60)
    y += 2 * X[:, 1]
    folds = KFold(4)
    model = SparseRegressorCV([1, 3, 6], cv=folds).fit(X, y)
    for row, (train, test) in enumerate(folds.split(X)):
        for column, k in enumerate((1, 3, 6)):
            fit = SparseRegressor(k).fit(X[train], y[train])
            assert model.cv_errors_[row, column] == pytest.approx(np.mean((y[test] - fit.predict(X[test])) ** 2), rel=1e-6)
    best = model.cv_errors_.mean(axis=0)
    assert model.k_ == (1, 3, 6)[int(np.argmin(best))]
    np.testing.assert_allclose(model.coef_, SparseRegressor(model.k_).fit(X, y).coef_, atol=1e-9)
    two = SparseRegressorCV([1, 3, 6], cv=folds, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(two.cv_errors_, model.cv_errors_)


def test_information_criteria_count_by_hand(rng):
    X, y = rng.standard_normal((80, 7)), rng.standard_normal(80) + 3.0
    model = SparseRegressorCV([1, 2, 4], criterion="aic").fit(X, y)
    for value, k in zip(model.criterion_, (1, 2, 4), strict=True):
        rss = np.sum((y - SparseRegressor(k).fit(X, y).predict(X)) ** 2)
        assert value == pytest.approx(80 * np.log(rss / 80) + 2 * k)
    with pytest.raises(ValueError, match="criterion must be one of cv, aic, bic, ebic, got 'mdl'"):
        SparseRegressorCV(criterion="mdl").fit(X, y)
    with pytest.raises(ValueError, match="ks must hold at least one k"):
        SparseRegressorCV([]).fit(X, y)


def test_criteria_do_not_depend_on_the_scale_of_weights(rng):
    X = rng.standard_normal((80, 10))
    y = 2 * X[:, 0] - X[:, 3] + 0.5 * rng.standard_normal(80)
    w = rng.uniform(0.5, 1.5, 80)
    for criterion in ("aic", "bic", "ebic"):
        chosen = {SparseRegressorCV(range(1, 7), criterion=criterion).fit(X, y, w * scale).k_ for scale in (1.0, 1e-3, 1e3)}
        assert len(chosen) == 1


def test_outliers_do_not_choose_k_for_huber(rng):
    X = rng.standard_normal((80, 10))
    y = 2 * X[:, 0] - X[:, 3] + X[:, 5] + 0.3 * rng.standard_normal(80)
    y[:6] += 60 * rng.choice([-1, 1], 6)
    for criterion in ("aic", "bic", "ebic", "cv"):
        assert SparseRegressorCV(range(1, 7), criterion=criterion, loss="huber").fit(X, y).k_ >= 3


def test_huber_counts_weights_like_repeated_rows(rng):
    X, y = rng.standard_normal((40, 5)), rng.standard_normal(40)
    times = rng.integers(0, 4, 40)
    weighted = SparseRegressor(2, loss="huber").fit(X, y, times)
    repeated = SparseRegressor(2, loss="huber").fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-7)


def test_choosing_k_respects_what_is_forced_and_says_what_is_wrong(rng):
    X, y = rng.standard_normal((60, 8)), rng.standard_normal(60)
    assert SparseRegressorCV(forced_in=[1, 2, 4], criterion="bic").fit(X, y).ks_[0] == 3
    assert SparseRegressorCV(C=ks.BudgetBox(1.0, 0.0, 0.3), criterion="bic").fit(X, y).ks_[0] == 4
    with pytest.raises(TypeError, match="ks must be a sequence"):
        SparseRegressorCV(3).fit(X, y)
    with pytest.raises(ValueError, match="sample_weight is 0 on all training rows of a fold"):
        SparseRegressorCV([1, 2], cv=KFold(3)).fit(X, y, np.r_[np.ones(20), np.zeros(40)])
    with pytest.raises(ks.InfeasibleError, match="3 features are forced in, more than k = 2"):
        SparseClassifier(2, forced_in=[5, 1, 2]).fit(X, y > 0)
    with pytest.raises(ValueError, match="y is 0 in every row"):
        SparseRegressor(loss="poisson").fit(X, 0 * y)
    labels = np.r_[np.zeros(30), np.ones(29), [2.0]]
    with pytest.raises(ValueError, match="a class is missing from the training rows of a fold"):
        SparseClassifierCV([1], cv=KFold(3)).fit(X, labels)


def test_the_classifier_chooses_k_too():
    X, y, _ = breast_cancer()
    model = SparseClassifierCV([1, 2, 3], cv=3, one_standard_error=True).fit(X, y)
    assert model.k_ in (1, 2, 3)
    assert np.count_nonzero(model.coef_) <= model.k_
    assert model.cv_errors_.shape == (3, 3)
    assert SparseClassifierCV([1, 2, 3], criterion="ebic").fit(X, y).criterion_.shape == (3,)


def test_estimators_work_in_pipelines_and_grid_searches():
    X, y, _ = diabetes()
    search = GridSearchCV(make_pipeline(StandardScaler(), SparseRegressor()), {"sparseregressor__k": [1, 3, 5]}, cv=3).fit(X, y)
    assert search.best_params_["sparseregressor__k"] in (1, 3, 5)
    chain = make_pipeline(SparseRegressor(3), SparseRegressor(2)).fit(X, y)
    assert chain[-1].n_features_in_ == 3


# --- manners ---


@pytest.mark.parametrize("estimator", ALL, ids=lambda estimator: str(estimator)[:40])
def test_pickle_clone_and_the_same_answer_twice(estimator):
    X, y, _ = breast_cancer() if "Classifier" in type(estimator).__name__ else diabetes()
    if isinstance(estimator, SparsePortfolio):
        X, y = X / 100.0, None
    first = clone(estimator).fit(X[:120], None if y is None else y[:120])
    second = pickle.loads(pickle.dumps(first))
    third = clone(estimator).set_params(**estimator.get_params()).fit(X[:120], None if y is None else y[:120])
    name = next(name for name in ("coef_", "components_", "weights_") if hasattr(first, name))
    np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    np.testing.assert_array_equal(getattr(first, name), getattr(third, name))
    assert type(estimator).__name__ in first._repr_html_()
    assert first.n_iter_ >= 1
    assert first.n_features_in_ == X.shape[1]


def test_scikit_learns_callbacks_are_told_and_may_stop(rng):
    callback = pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9 has no callbacks")

    class Recorder:
        def __init__(self, stop_after=None):
            self.begun, self.ended, self.stop_after = 0, 0, stop_after

        def setup(self, estimator, context):
            self.name = context.estimator_name

        def on_fit_task_begin(self, estimator, context):
            self.begun += 1

        def on_fit_task_end(self, estimator, context):
            self.ended += 1
            return self.stop_after is not None and self.ended >= self.stop_after

        def teardown(self, estimator, context):
            self.down = True

    assert isinstance(Recorder(), callback.FitCallback)
    X, y = rng.standard_normal((60, 100)), rng.standard_normal(60)
    seen = Recorder()
    SparseRegressor(8).set_callbacks(seen).fit(X, y)
    assert seen.name == "SparseRegressor"
    assert seen.begun == seen.ended > 3
    assert seen.down
    stopper = Recorder(stop_after=2)
    with pytest.warns(ConvergenceWarning, match="stopped by the callback"):
        model = SparseRegressor(8).set_callbacks(stopper).fit(X, y)
    assert stopper.begun < seen.begun
    assert np.count_nonzero(model.coef_) <= 8
    for estimator in (SparsePCA(k=5), SparseRegressorCV([1, 2], cv=2), SparsePortfolio(3)):
        seen = Recorder()
        estimator.set_callbacks(seen).fit(X, *([] if isinstance(estimator, SparsePortfolio) else [y]))
        assert seen.begun == seen.ended >= 1


# --- components ---


@pytest.mark.parametrize("deflation", ["projection", "hotelling", "orthogonal"])
def test_components_with_all_loadings_are_the_ordinary_ones(deflation, rng):
    X = rng.standard_normal((50, 8)) @ rng.standard_normal((8, 8)) + 3.0
    model = SparsePCA(3, k=8, deflation=deflation).fit(X)
    values, vectors = np.linalg.eigh(np.corrcoef(X.T))
    np.testing.assert_allclose(model.explained_variance_, values[::-1][:3], rtol=1e-5)
    np.testing.assert_allclose(np.abs(model.components_ @ vectors[:, ::-1][:, :3]), np.eye(3), atol=1e-3)
    np.testing.assert_allclose(model.explained_variance_ratio_, values[::-1][:3] / 8, rtol=1e-5)
    scores = model.transform(X)
    np.testing.assert_allclose(scores.var(axis=0, ddof=1), values[::-1][:3], rtol=1e-5)
    back = SparsePCA(8, k=8).fit(X)
    np.testing.assert_allclose(back.inverse_transform(back.transform(X)), X, atol=1e-6)


@pytest.mark.parametrize("deflation", ["projection", "hotelling", "orthogonal"])
@pytest.mark.parametrize("nonnegative", [False, True])
def test_components_are_sparse_and_honest(deflation, nonnegative, rng):
    X = rng.standard_normal((25, 40)) + rng.standard_normal((25, 1))
    model = SparsePCA(3, k=[6, 4, 9], nonnegative=nonnegative, deflation=deflation, scale=False).fit(X)
    assert (np.count_nonzero(model.components_, axis=1) <= [6, 4, 9]).all()
    np.testing.assert_allclose(np.linalg.norm(model.components_, axis=1), 1.0)
    assert not nonnegative or model.components_.min() >= 0
    scores = model.transform(X)
    whole = np.linalg.norm(np.linalg.qr(scores - scores.mean(axis=0))[1].diagonal() / np.sqrt(24)) ** 2
    assert model.explained_variance_.sum() == pytest.approx(whole)
    assert model.explained_variance_ratio_.sum() <= 1
    if deflation == "orthogonal" and not nonnegative:
        assert model.explained_variance_[0] >= model.explained_variance_[1] * 0.5


def test_hotelling_without_forming_the_matrix(rng, monkeypatch):
    X = rng.standard_normal((20, 80))
    formed = SparsePCA(2, k=6, deflation="hotelling").fit(X)
    monkeypatch.setattr("ksparse.components.FORMED", 10)
    np.testing.assert_allclose(SparsePCA(2, k=6, deflation="hotelling").fit(X).components_, formed.components_, atol=1e-8)


def test_hotelling_goes_on_while_variance_is_left():
    X = np.random.default_rng(0).standard_normal((6, 8))
    model = SparsePCA(5, 3, deflation="hotelling").fit(X)
    assert model.n_components_ == 5


def test_pca_refuses_what_it_cannot_do(rng):
    X = rng.standard_normal((10, 4))
    with pytest.raises(ValueError, match="n_components=5 must be at most 4: n_samples=10, n_features=4"):
        SparsePCA(5).fit(X)
    with pytest.raises(ValueError, match="deflation must be one of projection, hotelling, orthogonal, got 'none'"):
        SparsePCA(deflation="none").fit(X)
    with pytest.raises(ValueError, match="k must be one number or 2, one per component, got 3"):
        SparsePCA(2, k=[1, 2, 3]).fit(X)


# --- portfolios ---


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
    with pytest.raises(ValueError, match="groups and group_caps need each other"):
        SparsePortfolio(groups=labels).fit(returns)


def _traded_on(S, V, r, cost, held, low):
    """The least value on a support: x = held + buy − sell, by sequential quadratic programming."""
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
    """αxᵀVx − rᵀx + c Σ|x − held| on every support of three of six assets, by a long subgradient-free search."""
    X = returns[:, :6]
    held = np.array([0.5, 0.5, 0, 0, 0, 0])
    V, r, cost = np.cov(X.T), X.mean(axis=0), 2e-4
    model = SparsePortfolio(3, risk_aversion=10.0, long_only=long_only, max_weight=0.8, previous_weights=held, turnover_cost=cost).fit(X)

    def value(x):
        return 10 * x @ V @ x - r @ x + cost * np.abs(x - held).sum()

    best = min(_traded_on(list(support), V, r, cost, held, 0.0 if long_only else -0.8) for support in combinations(range(6), 3))
    assert value(model.weights_) <= best + 1e-8
    assert model.result_.fun == pytest.approx(value(model.weights_), abs=1e-12)
    assert model.weights_.sum() == pytest.approx(1, abs=1e-12)
    assert model.turnover_ == pytest.approx(np.abs(model.weights_ - held).sum())
    dear = SparsePortfolio(3, previous_weights=held, turnover_cost=1.0).fit(X)
    np.testing.assert_allclose(dear.weights_, held, atol=1e-12)  # too dear to trade at all


def test_trading_costs_on_many_small_problems():
    """Every support of k assets valued exactly, with caps, floors and short positions."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n, k, long_only = 5, 1 + seed % 3, bool(seed % 2)
        X = 0.01 * rng.standard_normal((60, n))
        held = (rng.dirichlet(np.ones(n)).round(2) * (rng.random(n) < 0.7)).round(2)
        options = {"long_only": long_only, "max_weight": None if long_only else 1.0, "previous_weights": held, "turnover_cost": 5e-3}
        model = SparsePortfolio(k, **options).fit(X)
        V, r = np.cov(X.T), X.mean(axis=0)
        wanted = portfolio(V, r, long_only=long_only, max_weight=options["max_weight"], held=held, cost=5e-3)
        values = [_exact(wanted, np.array(support), 0.0) for support in combinations(range(n), k)]
        best = min(wanted.value(x) for x in values if x is not None)
        assert wanted.value(model.weights_) <= best + 1e-12
        assert model.result_.status is ks.Status.OPTIMAL
    many = 0.01 * np.random.default_rng(0).standard_normal((100, 40)) + 0.0005
    capped = SparsePortfolio(
        5, groups=[i % 4 for i in range(40)], group_caps=0.5, previous_weights=np.full(40, 0.025), turnover_cost=1e-3, min_weight=0.05
    ).fit(many)
    assert capped.result_.status is ks.Status.STATIONARY  # found, not proved
    assert max(capped.weights_[np.arange(40) % 4 == g].sum() for g in range(4)) <= 0.5 + 1e-12
    assert capped.weights_[capped.weights_ != 0].min() >= 0.05


def test_weights_and_groups_by_name_are_aligned_by_name(returns):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    names = [f"A{i}" for i in range(12)]
    table = pd.DataFrame(returns, columns=names)
    before = pd.Series([0.5, 0.3, 0.2], index=["A7", "A3", "A0"])
    model = SparsePortfolio(3, previous_weights=before, turnover_cost=1.0).fit(table)
    assert {name: weight for name, weight in zip(names, model.weights_, strict=True) if weight} == pytest.approx(before.to_dict())
    labels = pd.Series(["x"] * 6 + ["y"] * 6, index=names[::-1])
    capped = SparsePortfolio(4, groups=labels, group_caps={"x": 0.1}).fit(table)
    assert capped.weights_[6:].sum() <= 0.1 + 1e-12  # the last six names carry x


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"turnover_cost": 0.1}, ValueError, "turnover_cost needs previous_weights"),
        ({"max_weight": 0.4, "min_weight": 0.5}, ks.InfeasibleError, "min_weight 0.5 is above max_weight 0.4"),
        ({"max_weight": 0.9, "min_weight": 0.7, "k": 3}, ks.InfeasibleError, "each at least 0.7 in size"),
        ({"groups": ["a"] * 12, "group_caps": 0.5}, ks.InfeasibleError, "no weights meet the budget, the bounds, the target return"),
        ({"groups": ["a"] * 12, "group_caps": [0.5]}, TypeError, "group_caps must be one number or a mapping"),
        ({"previous_weights": [0.5, 0.5]}, ValueError, "previous_weights must hold one finite weight per asset, 12"),
    ],
)
def test_portfolios_that_cannot_be_are_named(returns, options, error, words):
    with pytest.raises(error, match=words):
        SparsePortfolio(**options).fit(returns)


def test_riskless_assets_without_bounds_are_no_portfolio(returns):
    returns = returns.copy()
    returns[:, 0], returns[:, 1] = 1e-4, 2e-4
    with pytest.raises(ValueError, match="some portfolio has no risk and as much return as one likes"):
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
    with pytest.raises(ValueError, match="target_return has no meaning when an index is tracked"):
        SparsePortfolio(target_return=0.1).fit(X, y)


def test_a_set_of_ones_own(returns):
    C = ks.Polyhedron(np.vstack([np.r_[np.ones(3), np.zeros(9)]]), [0.25], np.ones((1, 12)), [1.0], lower=0.0)
    model = SparsePortfolio(4, C=C).fit(returns)
    assert model.weights_[:3].sum() <= 0.25 + 1e-12
    with pytest.raises(ValueError, match="max_weight cannot be combined with C"):
        SparsePortfolio(4, C=C, max_weight=0.3).fit(returns)
