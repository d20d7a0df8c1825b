"""Targets or classes with common features: SparseRegressor(multi_output="common"), multinomial SparseClassifier."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

import ksparse as ks


@pytest.fixture
def targets(rng):
    X = rng.standard_normal((50, 8)) * np.linspace(0.1, 30, 8) + 5
    return X, X[:, :3] @ rng.standard_normal((3, 4)) + rng.standard_normal((50, 4)) + 7


@pytest.fixture
def wine():
    X, y = load_wine(return_X_y=True)
    return X, np.array(["barbera", "grignolino", "barolo"])[y]


def test_common_features_are_those_of_enumeration_with_free_intercepts(targets):
    X, Y = targets
    model = ks.SparseRegressor(3, multi_output="common").fit(X, Y)

    def fitted(S):
        A = np.column_stack([X[:, S], np.ones(len(X))])
        found, rest, *_ = np.linalg.lstsq(A, Y, rcond=None)
        return rest.sum(), S, found

    _, S, found = min((fitted(list(S)) for S in combinations(range(8), 3)), key=lambda one: one[0])
    assert np.flatnonzero(model.get_support()).tolist() == S
    np.testing.assert_allclose(model.coef_[:, S], found[:-1].T, rtol=1e-8)
    np.testing.assert_allclose(model.intercept_, found[-1], rtol=1e-8)
    assert model.coef_.shape == (4, 8)
    assert model.predict(X).shape == Y.shape
    assert model.result_.status.name == "OPTIMAL"


def test_common_features_with_signs_weights_and_sparse_data(targets):
    X, Y = targets
    signed = ks.SparseRegressor(3, multi_output="common", positive=True).fit(X, Y)
    assert signed.coef_.min() >= 0
    assert signed.get_support().sum() <= 3
    weight = np.arange(50) % 3
    weighted = ks.SparseRegressor(3, multi_output="common").fit(X, Y, sample_weight=weight)
    repeated = ks.SparseRegressor(3, multi_output="common").fit(
        np.repeat(X, weight, axis=0), np.repeat(Y, weight, axis=0)
    )
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-7, atol=1e-10)
    dense, sparse = (
        ks.SparseRegressor(3, multi_output="common").fit(data, Y) for data in (X, scipy.sparse.csr_array(X))
    )
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-6, atol=1e-9)
    nothing = ks.SparseRegressor(0, multi_output="common").fit(X, Y)
    np.testing.assert_allclose(nothing.predict(X), np.broadcast_to(Y.mean(axis=0), Y.shape))


@pytest.mark.parametrize("criterion", ["cv", "bic", "ebic"])
def test_k_of_common_features_is_chosen(targets, criterion):
    X, Y = targets
    model = ks.SparseRegressorCV(range(1, 6), criterion=criterion, cv=3).fit(X, Y)
    assert model.k_ in range(2, 6)
    assert model.coef_path_.shape == (4, 5, 8)
    assert model.intercept_path_.shape == (4, 5)
    np.testing.assert_allclose(model.coef_path_[:, model.k_ - 1], model.coef_, rtol=1e-9)
    assert (np.count_nonzero(model.coef_path_.any(axis=0), axis=1) == np.arange(1, 6)).all()


def test_all_features_are_scikit_learns_multinomial_model(wine):
    X, y = wine
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    ours = ks.SparseClassifier(13, alpha=1e-2).fit(Z, y)
    theirs = LogisticRegression(C=1 / (1e-2 * len(y)), tol=1e-10, max_iter=10_000).fit(Z, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(ours.predict_proba(Z), theirs.predict_proba(Z), atol=1e-4)
    assert (ours.predict(Z) == theirs.predict(Z)).all()
    np.testing.assert_allclose(ours.predict_log_proba(Z), np.log(ours.predict_proba(Z)))


def test_classes_share_k_features_and_the_best_of_pairs_is_found(wine):
    X, y = wine
    model = ks.SparseClassifier(2).fit(X, y)
    assert model.coef_.shape == (3, 13)
    assert model.intercept_.shape == (3,)
    assert model.get_support().sum() == 2
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    alone = [
        ks.SparseClassifier(2, forced_in=S).fit(X, y).result_.fun
        for S in ([6, 9], [6, 12], [9, 12], [0, 6], [0, 9], [11, 12])
    ]
    assert model.result_.fun <= min(alone) * (1 + 1e-9)
    apart = ks.SparseClassifier(2, multi_class="ovr").fit(X, y)
    assert len(apart.result_) == 3
    assert (np.count_nonzero(apart.coef_, axis=1) == 2).all()
    limited = ks.SparseClassifier(3, group_limits=(np.arange(13) < 10, {True: (0, 1)})).fit(X, y)
    assert limited.get_support()[:10].sum() <= 1


def test_class_weights_count_like_rows(wine):
    X, y = wine
    weights = {"barbera": 1, "barolo": 3, "grignolino": 2}
    rows = np.repeat(np.arange(len(y)), [weights[label] for label in y])
    weighted = ks.SparseClassifier(3, class_weight=weights).fit(X, y)
    repeated = ks.SparseClassifier(3).fit(X[rows], y[rows])
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-4, atol=1e-6)
    without = ks.SparseClassifier(3).fit(X, y, sample_weight=(y != "barolo").astype(float))
    assert without.classes_.tolist() == ["barbera", "grignolino"]


@pytest.mark.parametrize("criterion", ["cv", "bic", "ebic"])
def test_k_of_classes_is_chosen(wine, criterion):
    X, y = wine
    model = ks.SparseClassifierCV([1, 2, 4], criterion=criterion, cv=3).fit(X, y)
    assert model.k_ in (2, 4)
    assert model.coef_path_.shape == (3, 3, 13)
    assert model.intercept_path_.shape == (3, 3)
    np.testing.assert_allclose(model.coef_path_[:, [1, 2, 4].index(model.k_)], model.coef_, rtol=1e-6, atol=1e-9)
    if criterion == "cv":
        assert model.cv_errors_.shape == (3, 3)


def test_they_work_in_a_grid_search(wine):
    X, y = wine
    search = GridSearchCV(ks.SparseClassifier(), {"k": [1, 3]}, cv=2).fit(X, y)
    assert search.best_params_["k"] == 3


def test_impossible_arguments_are_errors(targets, wine):
    X, Y = targets
    for options, message in (
        ({"loss": "huber"}, 'needs loss="squared"'),
        ({"method": "apdca"}, 'needs method="auto"'),
        ({"multi_output": "both"}, '"independent" or "common"'),
    ):
        with pytest.raises(ValueError, match=message):
            ks.SparseRegressor(2, **({"multi_output": "common"} | options)).fit(X, Y)
    with pytest.raises(ks.MissingPieceError, match="not supported for targets or classes that share"):
        ks.SparseRegressor(2, multi_output="common", C=ks.Simplex()).fit(X, Y)
    with pytest.raises(ValueError, match='needs loss="squared"'):
        ks.SparseRegressorCV([1, 2], loss="huber").fit(X, Y)
    for options in ({"positive": True}, {"C": ks.Nonnegative()}, {"gap": 0.1}, {"method": "apdca"}, {"negative": [1]}):
        with pytest.raises(ValueError, match=f'{next(iter(options))} requires multi_class="ovr"'):
            ks.SparseClassifier(2, **options).fit(*wine)
    with pytest.raises(ValueError, match='"multinomial" or "ovr"'):
        ks.SparseClassifier(2, multi_class="all").fit(*wine)
