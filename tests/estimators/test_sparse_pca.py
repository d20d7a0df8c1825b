"""Sparse components: the ordinary ones where all loadings are allowed, honest where not."""

import numpy as np
import pytest

import ksparse as ks
from ksparse.estimators import SparsePCA
from ksparse.models.components import _Lifted


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


def test_hotelling_without_forming_the_matrix(monkeypatch):
    for seed in range(6):
        X = np.random.default_rng(seed).standard_normal((20, 12))
        formed = SparsePCA(4, k=3, deflation="hotelling").fit(X)
        assert all(result.status is ks.Status.OPTIMAL for result in formed.result_)  # so few supports that all are tried
        with monkeypatch.context() as patch:
            patch.setattr("ksparse.models.components.FORMED", 10)
            lifted = SparsePCA(4, k=3, deflation="hotelling").fit(X)
        np.testing.assert_allclose(lifted.components_, formed.components_, atol=1e-8)
        np.testing.assert_allclose([r.fun for r in lifted.result_], [r.fun for r in formed.result_], rtol=1e-10)


def test_what_hotelling_leaves_has_a_factor_of_few_nonzeros(rng):
    Z = rng.standard_normal((5, 40))
    rest = _Lifted(Z)
    left = Z.T @ Z
    for size in (8, 1, 12):
        v = np.zeros(40)
        v[rng.choice(40, size, replace=False)] = rng.standard_normal(size)
        v /= np.linalg.norm(v)
        left -= (v @ left @ v) * np.outer(v, v)
        rest.take(v)
    F, lift = rest.factor()
    np.testing.assert_allclose((F.T @ F).toarray(), left + lift * np.eye(40), atol=1e-12 * lift)
    assert F.nnz <= Z.size + 40 + 8 * 3 + 12 * 4
    np.testing.assert_allclose(rest.diagonal, np.diag(left), atol=1e-10)


@pytest.mark.parametrize("seed", range(6))
def test_hotelling_ends_where_rounding_is_left(seed):
    X = np.random.default_rng(seed).standard_normal((3, 3))
    for scale in (False, True):
        assert SparsePCA(3, 3, deflation="hotelling", scale=scale).fit(X).n_components_ == 2  # three rows differ in two directions


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
