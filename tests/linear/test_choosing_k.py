"""k by cross-validation and by information criteria."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ksparse as ks
from ksparse.datasets import breast_cancer, diabetes
from ksparse.estimators import (
    SparseClassifier,
    SparseClassifierCV,
    SparseRegressor,
    SparseRegressorCV,
)


@pytest.mark.parametrize("criterion", ["cv", "bic", "ebic"])
def test_the_planted_number_of_features_is_found(criterion, rng):
    X = rng.standard_normal((150, 20))
    y = X[:, [2, 5, 11]] @ [3.0, -2.0, 1.5] + 0.3 * rng.standard_normal(150)
    model = SparseRegressorCV(range(1, 9), criterion=criterion, one_standard_error=True, cv=5, random_state=0).fit(X, y)
    assert model.k_ in ((3,) if criterion == "cv" else (3, 4))  # one of seventeen others may look good by chance
    assert {2, 5, 11} <= set(np.flatnonzero(model.coef_))
    assert hasattr(model, "cv_errors_" if criterion == "cv" else "criterion_")


def test_cross_validation_matches_its_definition(rng):
    """The errors are those of models fitted to the training rows alone."""
    X, y = rng.standard_normal((60, 6)), rng.standard_normal(60)
    y += 2 * X[:, 1]
    folds = KFold(4)
    model = SparseRegressorCV([1, 3, 6], cv=folds).fit(X, y)
    for row, (train, test) in enumerate(folds.split(X)):
        for column, k in enumerate((1, 3, 6)):
            fit = SparseRegressor(k).fit(X[train], y[train])
            assert model.cv_errors_[row, column] == pytest.approx(
                np.mean((y[test] - fit.predict(X[test])) ** 2), rel=1e-6
            )
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
        chosen = {
            SparseRegressorCV(range(1, 7), criterion=criterion).fit(X, y, w * scale).k_ for scale in (1.0, 1e-3, 1e3)
        }
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
    search = GridSearchCV(
        make_pipeline(StandardScaler(), SparseRegressor()), {"sparseregressor__k": [1, 3, 5]}, cv=3
    ).fit(X, y)
    assert search.best_params_["sparseregressor__k"] in (1, 3, 5)
    chain = make_pipeline(SparseRegressor(3), SparseRegressor(2)).fit(X, y)
    assert chain[-1].n_features_in_ == 3
