"""Joint paths over k: each as good as a single path, with the same choice of k."""

import itertools

import numpy as np
import pytest

import ksparse as ks
from ksparse.batch.paths import add_best, batched_k_paths, drop_cheapest, evaluate_supports, swap_to_local_optimum


def problems(rng, count=3, m=40, n=9):
    A = rng.standard_normal((count, m, n)) + rng.standard_normal((count, m, 1))
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    b = np.einsum("fmn,n->fm", A, rng.standard_normal(n)) + 0.3 * rng.standard_normal((count, m))
    return A, b, A.transpose(0, 2, 1) @ A, np.einsum("fmn,fm->fn", A, b), 0.5 * (b**2).sum(axis=1)


def test_every_k_is_the_best_of_all_supports(rng):
    A, b, G, R, half = problems(rng)
    for k, at in enumerate(batched_k_paths(G, R, half, 6), start=1):
        for f in range(len(A)):
            best = min(
                np.sum((A[f][:, s] @ np.linalg.lstsq(A[f][:, s], b[f], rcond=None)[0] - b[f]) ** 2)
                for s in map(list, itertools.combinations(range(9), k))
            )
            assert 2 * (half[f] + at.value[f]) <= best * (1 + 1e-9)
            assert len(set(at.S[f])) == k


def test_a_standing_is_what_least_squares_says(rng):
    A, b, G, R, half = problems(rng)
    S = np.array([[0, 3], [5, 2], [8, 1]])
    at = evaluate_supports(G, R, S)
    for f, support in enumerate(S):
        cut = A[f][:, support]
        x, rest = np.linalg.lstsq(cut, b[f], rcond=None)[:2]
        assert np.allclose(at.x[f], x)
        assert at.value[f] == pytest.approx(0.5 * rest[0] - half[f])
        assert np.allclose(at.q[f], A[f].T @ (b[f] - cut @ x))
    assert add_best(G, R, at).S.shape == (3, 3)
    assert (add_best(G, R, at).value <= at.value).all()
    assert (drop_cheapest(G, R, at).value >= at.value).all()
    assert (swap_to_local_optimum(G, R, half, at).value <= at.value).all()


def test_dependent_columns_are_refused(rng):
    A = rng.standard_normal((20, 3))
    A = np.column_stack([A, A @ rng.standard_normal((3, 2))])
    A /= np.linalg.norm(A, axis=0)
    b = rng.standard_normal(20)
    with pytest.raises(np.linalg.LinAlgError, match="depend on each other"):
        batched_k_paths((A.T @ A)[None], (A.T @ b)[None], np.array([0.5 * b @ b]), 4)


@pytest.mark.parametrize(
    "how", [{}, {"alpha": 0.1}, {"fit_intercept": False}, {"standardize": False}, {"criterion": "bic"}], ids=str
)
def test_the_choice_is_that_of_single_paths(rng, how):
    X = rng.standard_normal((60, 8)) * np.linspace(0.1, 10, 8) + 0.5 * rng.standard_normal((60, 1))
    y = X[:, 4:7] @ [3.0, -2.0, 1.0] + rng.standard_normal(60) + (0.0 if "fit_intercept" in how else 5.0)
    for w in (None, rng.integers(0, 3, 60)):
        quick = ks.SparseRegressorCV(range(1, 6), cv=3, **how).fit(X, y, w)
        usual = ks.SparseRegressorCV(range(1, 6), cv=3, effort=1, **how).fit(X, y, w)
        assert quick.k_ == usual.k_
        assert np.allclose(quick.coef_, usual.coef_, rtol=1e-6, atol=1e-9)
        assert np.allclose(quick.coef_path_, usual.coef_path_, rtol=1e-6, atol=1e-8)
        if "criterion" not in how:
            assert np.allclose(quick.cv_errors_, usual.cv_errors_, rtol=1e-7)
        else:
            assert np.allclose(quick.criterion_, usual.criterion_, rtol=1e-9)


def test_columns_that_repeat_go_the_usual_way(rng):
    X = rng.standard_normal((40, 3))
    X = np.column_stack([X, X, np.ones(40)])
    model = ks.SparseRegressorCV(range(1, 8), cv=3).fit(X, X[:, 0] + 0.1 * rng.standard_normal(40))
    assert model.k_ >= 1
    assert np.isfinite(model.cv_errors_).all()
