"""Sparse components agree with the eigenvectors, and their variance is counted once."""

import numpy as np
import pytest

from ksparse.components.problem import adjusted_variance, sparse_components


def test_all_loadings_allowed_is_the_ordinary_principal_component_analysis(rng):
    X = rng.standard_normal((40, 6)) @ rng.standard_normal((6, 6))
    found = sparse_components(X, 6, 3, scale=False)
    values, vectors = np.linalg.eigh(np.cov(X.T))
    np.testing.assert_allclose(found.variance, values[::-1][:3], rtol=1e-6)
    np.testing.assert_allclose(np.abs(found.loadings @ vectors[:, ::-1][:, :3]), np.eye(3), atol=1e-4)
    assert found.total == pytest.approx(values.sum())


def test_components_are_sparse_and_their_variance_is_not_counted_twice(rng):
    X = rng.standard_normal((30, 50)) @ np.diag(np.linspace(3, 1, 50))
    found = sparse_components(X, [5, 8, 3], 3)
    np.testing.assert_array_equal((found.loadings != 0).sum(axis=1), [5, 8, 3])
    np.testing.assert_allclose(np.linalg.norm(found.loadings, axis=1), 1.0)
    assert found.total == pytest.approx(50)  # of a correlation matrix
    assert found.variance.sum() <= 50
    Z = (X - X.mean(axis=0)) / X.std(axis=0) / np.sqrt(30)
    twice = adjusted_variance(Z, np.vstack([found.loadings[0], found.loadings[0]]))
    assert twice[1] <= 1e-20
    shared = Z @ found.loadings[:2].T
    explained = np.linalg.norm(Z - shared @ np.linalg.lstsq(shared, Z, rcond=None)[0]) ** 2
    assert found.variance[:2].sum() <= 50 - explained + 1e-9


def test_components_refuse_a_k_per_component_of_the_wrong_length(rng):
    with pytest.raises(ValueError, match="k must be one number or 2, one per component, got 3"):
        sparse_components(rng.standard_normal((10, 5)), [1, 2, 3], 2)
