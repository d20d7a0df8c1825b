"""Sparse components: ordinary components without a limit, correct variances with one."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse

import ksparse as ks
from conftest import sweep
from ksparse.data import Dense
from ksparse.data.derived import Deflated
from ksparse.estimators import SparsePCA


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


@pytest.mark.slow
@pytest.mark.parametrize("deflation", ["projection", "hotelling", "orthogonal"])
@pytest.mark.parametrize("nonnegative", [False, True])
def test_components_are_sparse_with_correct_variances(deflation, nonnegative, rng):
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


def test_hotelling_is_that_of_the_formed_matrix():
    for seed in range(6):
        X = np.random.default_rng(seed).standard_normal((20, 12))
        found = SparsePCA(4, k=3, deflation="hotelling").fit(X)
        left = np.corrcoef(X.T)
        for result, v in zip(found.result_, found.components_, strict=True):
            formed = ks.minimize(ks.PrincipalComponent(left), 3, ks.L2Ball())
            assert result.status is formed.status is ks.Status.OPTIMAL  # so few supports that all are tried
            np.testing.assert_allclose(np.abs(formed.x), np.abs(v), atol=1e-8)
            left = left - (v @ left @ v) * np.outer(v, v)


def test_what_hotelling_leaves_by_its_products(rng):
    Z, values, taken = rng.standard_normal((5, 40)), rng.random(3), rng.standard_normal((3, 40))
    left, design = Z.T @ Z - (taken.T * values) @ taken, Deflated(Dense(Z), values, taken)
    X, S = rng.standard_normal((4, 40)), np.array([3, 0, 17])
    for found, expected in (
        (design @ X[0], left @ X[0]), (design @ X.T, left @ X.T), (design.T @ X[0], left @ X[0]),
        (design.times(X), X @ left), (design.columns(S), left[:, S]), (design.diagonal(), np.diag(left)),
        (design.dense(), left),
    ):  # fmt: skip
        np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("seed", sweep(range(6), 2))
def test_hotelling_ends_where_rounding_is_left(seed):
    X = np.random.default_rng(seed).standard_normal((3, 3))
    for scale in (False, True):
        # three rows differ in two directions
        assert SparsePCA(3, 3, deflation="hotelling", scale=scale).fit(X).n_components_ == 2


@pytest.mark.parametrize("k", [0.1, 2.0, True, None, "3", [1, 2.5], [1, "2"]])
def test_sizes_that_are_no_integers_are_named(rng, k):
    with pytest.raises(TypeError, match="k must be an integer"):
        SparsePCA(2, k=k).fit(rng.standard_normal((10, 4)))


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


@pytest.mark.parametrize("kind", [scipy.sparse.csr_array, scipy.sparse.csc_matrix])
@pytest.mark.parametrize(
    "options",
    [{}, {"scale": False}, {"deflation": "hotelling"}, {"deflation": "orthogonal"}, {"nonnegative": True}],
    ids=str,
)
def test_a_sparse_table_has_the_components_of_the_dense_one(options, kind, rng):
    X = rng.poisson(0.4, (60, 12)) * rng.uniform(0.5, 3, 12)
    X[:, 0] += X[:, 1]
    X[:, 7], X[:, 8] = 0.0, 2.0  # empty, and constant
    dense, sparse = (ks.SparsePCA(2, k=3, **options).fit(data) for data in (X, kind(X)))
    np.testing.assert_allclose(np.abs(sparse.components_), np.abs(dense.components_), rtol=1e-7, atol=1e-9)
    for name in ("mean_", "scale_", "explained_variance_", "explained_variance_ratio_"):
        np.testing.assert_allclose(getattr(sparse, name), getattr(dense, name), rtol=1e-10)
    np.testing.assert_allclose(np.abs(sparse.transform(kind(X))), np.abs(dense.transform(X)), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(sparse.transform(kind(X)), sparse.transform(X), rtol=1e-9, atol=1e-11)


def test_a_sparse_table_is_not_made_dense():
    X = scipy.sparse.random_array((6_000, 1_500), density=0.002, random_state=0, format="csr")
    tracemalloc.start()
    ks.SparsePCA(2, k=5).fit(X)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 8 * X.shape[0] * X.shape[1] / 2
