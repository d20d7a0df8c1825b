"""Signs by name, class weights, Huber's δ, k = 0, counts and amounts, whole paths of coefficients."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import GammaRegressor, HuberRegressor, LogisticRegression, TweedieRegressor

import ksparse as ks
from ksparse.linear.loss_names import huber_delta


@pytest.fixture
def data(rng):
    X = rng.standard_normal((120, 6)) + 0.5
    return X, X[:, :3] @ [2.0, -1.0, 0.5] + 0.5 * rng.standard_normal(120) + 3.0


def test_negative_signs_by_name_mask_and_all(data):
    X, y = data
    table = pd.DataFrame(X, columns=list("abcdef"))
    model = ks.SparseRegressor(3, negative=["a", "b"], positive=["c"]).fit(table, y)
    assert model.coef_[0] <= 0
    assert model.coef_[1] < 0
    assert model.coef_[2] >= 0
    assert (ks.SparseRegressor(4, negative=True).fit(X, y).coef_ <= 0).all()
    mirrored = ks.SparseRegressor(3, positive=True).fit(-X, y)
    assert np.allclose(ks.SparseRegressor(3, negative=True).fit(X, y).coef_, -mirrored.coef_)
    both = ks.SparseRegressor(3, negative=[0], positive=[0]).fit(X, y)
    assert both.coef_[0] == 0
    with pytest.raises(ValueError, match="negative holds 'z', which is not a feature"):
        ks.SparseRegressor(3, negative=["z"]).fit(table, y)
    labels = y > y.mean()
    assert (ks.SparseClassifier(3, negative=True).fit(X, labels).coef_ <= 0).all()


@pytest.mark.parametrize(
    "how", [{}, {"loss": "huber"}, {"loss": "poisson"}, {"fit_intercept": False}, {"positive": True}], ids=str
)
def test_no_features_leave_the_intercept(data, how):
    X, y = data
    y = np.round(np.abs(y))
    model = ks.SparseRegressor(0, **how).fit(X, y)
    assert not model.coef_.any()
    assert model.result_.success
    if how == {} or "positive" in how:
        assert model.intercept_ == pytest.approx(y.mean())
    if "poisson" in how.values():
        assert np.allclose(model.predict(X), y.mean())
    with pytest.raises(ks.InfeasibleError, match="forced in"):
        ks.SparseRegressor(0, forced_in=[1], **how).fit(X, y)
    share = ks.SparseClassifier(0).fit(X, y > 3).predict_proba(X)[:, 1]
    assert np.allclose(share, (y > 3).mean(), atol=1e-6)


def test_class_weights_count_like_rows(data):
    X, y = data
    labels = np.where(y > 4.5, "rare", "usual")
    doubled = ks.SparseClassifier(2, class_weight={"rare": 3.0}).fit(X, labels)
    repeated = np.repeat(np.arange(120), np.where(labels == "rare", 3, 1))
    assert np.allclose(doubled.coef_, ks.SparseClassifier(2).fit(X[repeated], labels[repeated]).coef_, rtol=1e-5)
    weight = np.linspace(0.5, 2.0, 120)
    one = ks.SparseClassifier(2, class_weight={"rare": 2.0}).fit(X, labels, weight)
    other = ks.SparseClassifier(2).fit(X, labels, weight * np.where(labels == "rare", 2.0, 1.0))
    assert np.allclose(one.coef_, other.coef_)
    balanced = ks.SparseClassifier(6, class_weight="balanced", alpha=0.0).fit(X, labels)
    reference = LogisticRegression(C=np.inf, class_weight="balanced", tol=1e-10, max_iter=10_000).fit(X, labels)
    assert np.allclose(balanced.coef_, reference.coef_, rtol=1e-4)
    assert ks.SparseClassifierCV([1, 2], class_weight="balanced", cv=3).fit(X, labels).k_ in (1, 2)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("even", "class_weight must be None"),
        ({"blue": 1.0}, "holds 'blue', which is not a class"),
        ({True: -1.0}, ">= 0"),
    ],
)
def test_bad_class_weights_are_named(data, given, words):
    X, y = data
    with pytest.raises(ValueError, match=words):
        ks.SparseClassifier(2, class_weight=given).fit(X, y > 3)


def test_hubers_delta_is_in_the_units_of_y(data, rng):
    X, y = data
    y = y + 20 * (rng.random(120) < 0.1)
    usual = ks.SparseRegressor(6, loss="huber").fit(X, y)
    same = ks.SparseRegressor(6, loss="huber", delta=huber_delta(y)).fit(X, y)
    assert np.allclose(usual.coef_, same.coef_, rtol=1e-6)
    scaled = ks.SparseRegressor(6, loss="huber", delta=1000 * huber_delta(y)).fit(X, 1000 * y)
    assert np.allclose(scaled.coef_, 1000 * usual.coef_, rtol=1e-6)
    wide = ks.SparseRegressor(6, loss="huber", delta=1e6).fit(X, y)
    assert np.allclose(wide.coef_, ks.SparseRegressor(6).fit(X, y).coef_, rtol=1e-6)
    tight = ks.SparseRegressor(6, loss="huber", delta=0.7).fit(X, y)
    reference = HuberRegressor(epsilon=1.35, alpha=0.0).fit(X, y)  # which estimates its own scale
    assert np.abs(tight.coef_ - reference.coef_).max() < 0.2
    with pytest.raises(ValueError, match="delta must be"):
        ks.SparseRegressor(2, loss="huber", delta=-1.0).fit(X, y)
    assert ks.SparseRegressorCV([1, 2, 3], loss="huber", delta=1.0, cv=3).fit(X, y).k_ >= 2


def test_amounts_and_counts_are_those_of_scikit_learn(data, rng):
    X, y = data
    X = 0.3 * X
    amounts = rng.gamma(2.0, np.exp(X[:, 0] - X[:, 1]))
    gamma = ks.SparseRegressor(6, loss="gamma").fit(X, amounts)
    assert np.allclose(gamma.coef_, GammaRegressor(alpha=0, tol=1e-8, max_iter=1000).fit(X, amounts).coef_, atol=1e-4)
    some = np.where(rng.random(120) < 0.3, 0.0, amounts)
    tweedie = ks.SparseRegressor(6, loss="tweedie").fit(X, some)
    reference = TweedieRegressor(power=1.5, alpha=0, tol=1e-8, max_iter=1000).fit(X, some)
    assert np.allclose(tweedie.predict(X), reference.predict(X), rtol=1e-3)
    counts = rng.negative_binomial(1.0, 1.0 / (1.0 + np.exp(X[:, 0])))
    assert (ks.SparseRegressor(2, loss="negative_binomial").fit(X, counts).predict(X) > 0).all()
    median = ks.SparseRegressor(6, loss="quantile").fit(X, y)
    assert np.mean(median.predict(X) > y) == pytest.approx(0.5, abs=0.05)
    for loss in ("gamma", "tweedie", "negative_binomial", "quantile"):
        assert ks.SparseRegressorCV([1, 2], loss=loss, cv=3).fit(
            X, amounts if loss != "negative_binomial" else counts
        ).k_ in (1, 2)
    with pytest.raises(ValueError, match="amounts > 0 for the gamma loss"):
        ks.SparseRegressor(2, loss="gamma").fit(X, some)


def test_a_path_of_coefficients_belongs_to_the_choice(data):
    X, y = data
    model = ks.SparseRegressorCV(range(1, 7), cv=3).fit(X, y)
    assert model.coef_path_.shape == (6, 6)
    assert np.array_equal(model.coef_path_[model.k_ - 1], model.coef_)
    assert model.intercept_path_[model.k_ - 1] == model.intercept_
    assert [np.count_nonzero(row) for row in model.coef_path_] == list(model.ks_)
    three = ks.SparseClassifierCV([1, 2], cv=3).fit(X, np.digitize(y, [3, 5]))
    assert three.coef_path_.shape == (3, 2, 6)
    assert np.array_equal(three.coef_path_[:, three.k_ - 1], three.coef_)


@pytest.mark.parametrize("how", [{}, {"multi_output": "common"}], ids=str)
def test_no_features_leave_the_intercepts_of_several_targets(data, how):
    X, y = data
    model = ks.SparseRegressor(0, **how).fit(X, np.column_stack([y, 2 * y]))
    assert not model.coef_.any()
    np.testing.assert_allclose(model.intercept_, [y.mean(), 2 * y.mean()])


MODELS = {
    "regressor": lambda X, y: ks.SparseRegressor(k=99).fit(X, y),
    "several targets": lambda X, y: ks.SparseRegressor(k=99).fit(X, np.column_stack([y, -y])),
    "classifier": lambda X, y: ks.SparseClassifier(k=99).fit(X, y > y.mean()),
    "cross-validation": lambda X, y: ks.SparseRegressorCV(ks=[1, 99]).fit(X, y),
    "components": lambda X, y: ks.SparsePCA(k=99).fit(X),
    "one k for each component": lambda X, y: ks.SparsePCA(n_components=2, k=[99, 2]).fit(X),
    "portfolio": lambda X, y: ks.SparsePortfolio(k=99).fit(X / 100),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_k_above_the_number_of_columns_is_clipped_with_a_warning(data, name):
    X, y = data
    with pytest.warns(
        UserWarning,
        match=rf"k=99 is more than the number of (features|assets), {X.shape[1]}: all of them may be chosen",
    ):
        MODELS[name](X, y)


def test_a_k_above_the_number_of_groups_is_clipped_with_a_warning(data):
    X, y = data
    with pytest.warns(UserWarning, match="k=3 is more than the number of groups, 2: all of them may be chosen"):
        ks.SparseRegressor(k=3, groups=[0] * 2 + [1] * (X.shape[1] - 2)).fit(X, y)
