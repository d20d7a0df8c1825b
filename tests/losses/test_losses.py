"""Each loss against finite differences and its Hessian's norm, and on other kinds of matrices and arrays."""

from importlib import import_module

import numpy as np
import pytest

import catalogue
import ksparse as ks
from conftest import MATRIX_KINDS, cases, sweep
from ksparse.util.arrays import embed, to_numpy

ALL = {**catalogue.LOSSES, **catalogue.TABLE_LOSSES, **catalogue.FREE_LOSSES}


def build(name, matrix=lambda A: A, seed=0):
    return ALL[name](np.random.default_rng(seed), matrix)


@pytest.mark.parametrize("name", ALL)
def test_gradient_is_that_of_finite_differences(name, rng):
    loss = build(name)
    for _ in range(5):
        x = rng.standard_normal(loss.n)
        h = 1e-6
        slow = [(loss.value(x + h * e) - loss.value(x - h * e)) / (2 * h) for e in np.eye(loss.n)]
        np.testing.assert_allclose(loss.gradient(x), slow, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ALL)
def test_curvature_is_that_of_finite_differences_or_above_for_huber(name, rng):
    loss = build(name)
    x, d = rng.standard_normal((2, loss.n))
    h = 1e-5
    slow = d @ (loss.gradient(x + h * d) - loss.gradient(x - h * d)) / (2 * h)
    fast = loss.curvature_at(x, loss.image(x), d, loss.image(d))
    if "Huber" in name:
        assert fast >= slow - 1e-8
    else:
        np.testing.assert_allclose(fast, slow, rtol=1e-4)
    if loss.has_hessian:
        np.testing.assert_allclose(d @ loss.hessian_at(x, loss.image(x)) @ d, fast, rtol=1e-10)


@pytest.mark.parametrize("name", catalogue.LOSSES)
@pytest.mark.parametrize("seed", sweep(range(10), 4))
def test_lipschitz_bound_is_never_below_an_observed_ratio_and_tight_for_quadratics(name, seed):
    loss = build(name, seed=seed)
    L = loss.lipschitz()
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((20, loss.n)) * 10.0 ** rng.integers(-3, 2, 20)[:, None]
    g = np.array([loss.gradient(row) for row in x])
    ratio = np.linalg.norm(np.diff(g, axis=0), axis=1) / np.linalg.norm(np.diff(x, axis=0), axis=1)
    assert ratio.max() <= L * (1 + 1e-9)
    if isinstance(loss, ks.losses.QuadraticForm):
        H = loss.hessian_at(x[0], loss.image(x[0]))
        true = np.abs(np.linalg.eigvalsh(H)).max()
        assert true <= L <= true * 1.001


@pytest.mark.parametrize("shape", [(200, 50), (40, 300), (120, 120)])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_lipschitz_of_larger_data_by_lanczos(shape, scale, rng):
    A = rng.standard_normal(shape) * scale
    true = np.linalg.norm(A, 2) ** 2
    for kind in MATRIX_KINDS.values():
        L = ks.LeastSquares(kind(A), np.ones(shape[0])).lipschitz()
        assert true <= L <= true * 1.001
    w = rng.uniform(0, 2, shape[0])
    true = np.linalg.norm(np.sqrt(w)[:, None] * A, 2) ** 2
    assert true <= ks.LeastSquares(A, np.ones(shape[0]), sample_weight=w).lipschitz() <= true * 1.001


def test_lipschitz_with_tied_and_zero_eigenvalues():
    assert ks.LeastSquares(np.eye(100), np.ones(100)).lipschitz() >= 1.0
    assert ks.LeastSquares(np.zeros((100, 80)), np.ones(100)).lipschitz() == 0.0
    assert ks.Quadratic(-np.diag(np.arange(100.0))).lipschitz() >= 99.0
    assert ks.Poisson(np.ones((3, 2)), [0, 1, 2]).lipschitz() == np.inf


@pytest.mark.parametrize("kind", MATRIX_KINDS)
@pytest.mark.parametrize("name", [*catalogue.LOSSES, *catalogue.TABLE_LOSSES])
def test_dense_sparse_and_operator_agree(name, kind, rng):
    if name in catalogue.TABLE_LOSSES and kind in ("operator", "object"):
        with pytest.raises(TypeError, match="columns"):
            build(name, MATRIX_KINDS[kind])
        return
    dense, other = build(name), build(name, MATRIX_KINDS[kind])
    x = rng.standard_normal(dense.n)
    np.testing.assert_allclose(other.value(x), dense.value(x), rtol=1e-12)
    np.testing.assert_allclose(other.gradient(x), dense.gradient(x), rtol=1e-10, atol=1e-12)
    support = np.array([1, 4])
    np.testing.assert_allclose(
        other.restrict(support).gradient(x[:2]), dense.restrict(support).gradient(x[:2]), rtol=1e-10, atol=1e-12
    )
    np.testing.assert_allclose(other.lipschitz(), dense.lipschitz(), rtol=1e-6)


@pytest.mark.parametrize("name", ALL)
def test_restriction_is_the_loss_with_zeros_elsewhere(name, rng):
    loss = build(name)
    support = np.array([0, 2, 5])
    cut = loss.restrict(support)
    z = rng.standard_normal(3)
    x = embed(z, support, loss.n)
    assert cut.n == 3
    np.testing.assert_allclose(cut.value(z), loss.value(x), rtol=1e-12)
    np.testing.assert_allclose(cut.gradient(z), loss.gradient(x)[support], rtol=1e-10)
    np.testing.assert_allclose(
        cut.restrict(np.array([1])).value(z[:1]), loss.value(embed(z[:1], np.array([2]), loss.n)), rtol=1e-12
    )


@pytest.mark.parametrize("name", [*catalogue.LOSSES, *catalogue.TABLE_LOSSES])
def test_other_array_namespaces_keep_kind_and_agree(name, asarray, rng):
    reference, loss = build(name), build(name, asarray)
    x = rng.standard_normal(reference.n)
    given = asarray(x)
    gradient = loss.gradient(given)
    assert type(gradient) is type(given)
    assert gradient.dtype == given.dtype
    tol = 1e-12 if "64" in str(given.dtype) else 2e-4
    np.testing.assert_allclose(loss.value(given), reference.value(x), rtol=tol)
    np.testing.assert_allclose(to_numpy(gradient), reference.gradient(x), rtol=tol, atol=tol)
    np.testing.assert_allclose(loss.lipschitz(), reference.lipschitz(), rtol=1e-3)
    cut = loss.restrict(np.array([1, 3]))
    assert cut.gradient(given[:2]).dtype == given.dtype
    assert loss.as_float64().value(x) == pytest.approx(reference.value(x), rel=max(tol, 1e-9))


def test_a_weight_is_a_repetition_and_weight_zero_an_absence(rng):
    A, b = rng.standard_normal((5, 3)), rng.standard_normal(5)
    w = np.array([2.0, 0.0, 1.0, 3.0, 1.0])
    rows = np.repeat(np.arange(5), w.astype(int))
    x = rng.standard_normal(3)
    counts = np.arange(5)
    for weighted, repeated in [
        (ks.LeastSquares(A, b, sample_weight=w), ks.LeastSquares(A[rows], b[rows])),
        (ks.Huber(A, b, 0.5, sample_weight=w), ks.Huber(A[rows], b[rows], 0.5)),
        (ks.Logistic(A, np.sign(b), sample_weight=w), ks.Logistic(A[rows], np.sign(b)[rows])),
        (ks.Poisson(A, counts, sample_weight=w), ks.Poisson(A[rows], counts[rows])),
    ]:
        assert weighted.value(x) == pytest.approx(repeated.value(x))
        np.testing.assert_allclose(weighted.gradient(x), repeated.gradient(x), rtol=1e-12)


def test_values_by_hand(rng):
    A, b, x = rng.standard_normal((7, 4)), rng.standard_normal(7), rng.standard_normal(4)
    r = A @ x - b
    assert ks.LeastSquares(A, b).value(x) == pytest.approx(0.5 * r @ r)
    assert ks.Huber(A, b, 0.3).value(x) == pytest.approx(
        sum(0.5 * t * t if abs(t) <= 0.3 else 0.3 * abs(t) - 0.045 for t in r)
    )
    y = np.sign(b)
    assert ks.Logistic(A, y).value(x) == pytest.approx(np.log1p(np.exp(-y * (A @ x))).sum())
    assert ks.Logistic(A, (y + 1) / 2).value(x) == ks.Logistic(A, y).value(x)
    counts = np.arange(7)
    assert ks.Poisson(A, counts).value(x) == pytest.approx((np.exp(A @ x) - counts * (A @ x)).sum())
    V = np.cov(A.T)
    assert ks.Quadratic(V, x).value(x) == pytest.approx(0.5 * x @ V @ x + x @ x)
    assert ks.MeanVariance(V, b[:4], 2.0).value(x) == pytest.approx(2 * x @ V @ x - b[:4] @ x)
    assert ks.PrincipalComponent(V).value(x) == pytest.approx(-x @ V @ x)
    assert ks.PrincipalComponent.from_data(A).value(x) == pytest.approx(-x @ np.corrcoef(A.T) @ x)
    assert ks.PrincipalComponent.from_data(A, scale=False).value(x) == pytest.approx(-x @ V @ x)
    assert ks.MeanVariance.from_returns(A, 2.0).value(x) == pytest.approx(2 * x @ V @ x - A.mean(0) @ x)


def test_extreme_images_stay_finite_without_warnings():
    A = np.array([[1000.0], [-1000.0]])
    assert ks.Logistic(A, [1, -1]).value(np.array([5.0])) == 0.0
    assert ks.Logistic(A, [-1, 1]).value(np.array([5.0])) == pytest.approx(10_000.0)
    assert np.isfinite(ks.Poisson(A, [1, 2]).value(np.array([5.0])))
    assert np.isfinite(ks.Poisson(A, [1, 2]).gradient(np.array([5.0]))).all()


def test_constant_columns_have_no_correlation():
    X = np.random.default_rng(0).standard_normal((20, 4))
    X[:, 2] = 0.1
    for table in (X, MATRIX_KINDS["csr"](X)):
        loss = ks.PrincipalComponent.from_data(table)
        assert loss.value(np.eye(4)[2]) == 0.0
        assert loss.value(np.eye(4)[0]) == pytest.approx(-1.0)


def test_convexity_is_known():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((4, 6))
    assert ks.Quadratic(Z.T @ Z).convex is True  # singular
    assert ks.Quadratic(Z.T @ Z - np.eye(6)).convex is False
    assert ks.PrincipalComponent(Z.T @ Z).convex is False
    assert ks.PrincipalComponent.from_data(Z).convex is False
    assert ks.MeanVariance.from_returns(Z, 1.0).convex is True
    assert ks.Quadratic(MATRIX_KINDS["csr"](Z.T @ Z)).convex is True
    big = np.diag(np.r_[np.ones(99), -0.01])
    assert ks.Quadratic(MATRIX_KINDS["csr"](big)).convex is False
    assert ks.Quadratic(MATRIX_KINDS["operator"](big @ big)).convex is True


@pytest.mark.parametrize("library", cases(["torch", "jax"]))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_autodiff_gives_the_gradient_in_the_dtype_of_x(library, dtype, rng):
    numpy_like = import_module("torch" if library == "torch" else "jax.numpy")
    loss = ks.autodiff(lambda x: numpy_like.sum(numpy_like.exp(x) - 2 * x), n=4)
    x = rng.standard_normal(4).astype(dtype)
    loss = loss.for_vectors_like(x)
    gradient = loss.gradient(x)
    assert gradient.dtype == dtype
    np.testing.assert_allclose(gradient, np.exp(x) - 2, rtol=1e-5)
    assert loss.value(x) == pytest.approx(float(np.sum(np.exp(x) - 2 * x)), rel=1e-5)


@pytest.mark.needs("torch")
def test_autodiff_says_what_each_library_answered():
    with pytest.raises(TypeError, match=r"torch: .*one torch number"):
        ks.autodiff(lambda x: x, n=2).value(np.ones(2))
    with pytest.raises(ValueError, match="backend must be one of torch, jax"):
        ks.autodiff(lambda x: x.sum(), backend="tensorflow")


@pytest.mark.needs("torch")
def test_torch_tensors_stay_torch_in_autodiff():
    import torch

    result = ks.minimize(ks.autodiff(lambda x: ((x - torch.arange(4.0)) ** 2).sum()), 2, x0=torch.zeros(4), rho=1.0)
    assert isinstance(result.x, torch.Tensor)
    assert result.x.dtype == torch.float32
    np.testing.assert_allclose(result.x.numpy(), [0, 0, 2, 3], atol=1e-5)


def test_vectors_of_dask_are_computed(rng):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    A, b, weight, times = rng.standard_normal((30, 4)), rng.standard_normal(30), rng.random(30), rng.random(30)
    for make in (
        lambda of: ks.LeastSquares(A, of(b), of(weight), of(np.ones(4))),
        lambda of: ks.Logistic(A, of(b > 0), of(weight), of(np.ones(4))),
        lambda of: ks.MultiResponse(A, of(np.column_stack([b, -b])), of(weight)),
        lambda of: ks.Cox(A, of(times), of(b > 0)),
        lambda of: ks.Quadratic(of(A.T @ A), of(np.ones(4))),
    ):
        lazy, plain = (make(of) for of in (lambda v: da.from_array(v, chunks=7), lambda v: v))
        x = rng.standard_normal(plain.n)
        assert lazy.value(da.from_array(x, chunks=2)) == plain.value(x)
        np.testing.assert_array_equal(lazy.gradient(x), plain.gradient(x))
    B = rng.standard_normal((30, 3))
    found = ks.minimize_many(
        da.from_array(A, chunks=(10, 4)), da.from_array(B, chunks=7), 2, sample_weight=da.from_array(weight, chunks=7)
    )
    np.testing.assert_allclose(
        found.x.toarray(), ks.minimize_many(A, B, 2, sample_weight=weight).x.toarray(), atol=1e-12
    )
