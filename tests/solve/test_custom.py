"""Losses and sets given as functions."""

import numpy as np
import pytest

import ksparse as ks


def test_a_loss_that_does_not_exist_at_zero(rng):
    """Growth-optimal portfolio: −Σ log(Rx) on the simplex."""
    R = 1 + 0.05 * rng.standard_normal((50, 8))
    loss = ks.Custom(lambda x: -float(np.log(R @ x).sum()), lambda x: -(R.T @ (1 / (R @ x))), n=8, convex=True)
    values = {}
    for method in ("pdca", "apdca", "auto"):
        result = ks.minimize(loss, 3, ks.Simplex(), rho=0.1, method=method)
        assert result.success
        values[method] = result.fun
    assert values["auto"] <= min(values.values()) + 1e-10


def test_a_custom_loss_with_a_zero_column(rng):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        A, b = rng.standard_normal((4, 4)), rng.standard_normal(4)
        A[:, 0] = 0
        loss = ks.Custom(
            lambda x, A=A, b=b: float(0.5 * np.sum((A @ x - b) ** 2)), lambda x, A=A, b=b: A.T @ (A @ x - b), n=4
        )
        result = ks.minimize(loss, 4, ks.Hyperplane(), rho=1.0, method="pdca", max_iter=500)
        assert np.isfinite(result.x).all()
        assert result.residual <= 1e-6


@pytest.mark.needs("torch")
@pytest.mark.parametrize("method", ["apdca", "auto"])
def test_functions_written_for_float32_torch_see_float32_torch(method, rng):
    import torch

    A, b = (torch.tensor(v, dtype=torch.float32) for v in (rng.standard_normal((20, 6)), rng.standard_normal(20)))
    result = ks.minimize(
        ks.autodiff(lambda x: 0.5 * torch.sum((A @ x - b) ** 2)), 2, x0=torch.zeros(6), rho=1.0, method=method
    )
    assert result.x.dtype == torch.float32
    exact = ks.minimize(ks.LeastSquares(A.double(), b.double()), 2, x0=np.zeros(6), rho=1.0, method=method)
    assert result.fun == pytest.approx(exact.fun, rel=1e-4)


def test_the_users_memory_is_neither_shared_nor_spoiled(rng):
    A, b = rng.standard_normal((20, 6)), rng.standard_normal(20)
    buffer = np.empty(6)

    def gradient(x):
        np.matmul(A.T, A @ x - b, out=buffer)
        return buffer

    loss = ks.Custom(lambda x: float(0.5 * np.sum((A @ x - b) ** 2)), gradient, n=6)
    assert ks.minimize(loss, 3).fun == pytest.approx(ks.minimize(ks.LeastSquares(A, b), 3).fun)
    x0 = np.ones(6)

    def project(u):
        np.clip(u, 0, 0.5, out=u)
        return u

    ks.minimize(loss, 3, ks.CustomSet(project, lambda x: float(np.abs(x - np.clip(x, 0, 0.5)).max())), x0=x0, rho=1.0)
    np.testing.assert_array_equal(x0, 1.0)
    assert ks.minimize_penalized(loss, ks.TopK2(1, 2), x0=x0, max_iter=0).x is not x0


def quadratic_of_a_user(rng, sign=1.0):
    A, b = rng.standard_normal((30, 6)), rng.standard_normal(30)
    calls = [0, 0]

    def value(x):
        calls[0] += 1
        return 0.5 * float(np.sum((A @ x - b) ** 2))

    def gradient(x):
        calls[1] += 1
        return sign * (A.T @ (A @ x - b))

    return ks.Custom(value, gradient, n=6), calls


@pytest.mark.parametrize("sign", [-1.0, 2.0, 0.0])
def test_a_wrong_gradient_is_refused(sign, rng):
    loss, _ = quadratic_of_a_user(rng, sign)
    with pytest.raises(ValueError, match="gradient does not match value"):
        ks.minimize(loss, 2)
    with pytest.raises(ValueError, match="gradient does not match value"):
        ks.minimize_penalized(loss, ks.L1(0.1))


def test_a_loss_of_nan_is_refused():
    with pytest.raises(ValueError, match=r"value\(x\) must be a finite number, got nan"):
        ks.minimize(ks.Custom(lambda x: np.nan, lambda x: x, n=3), 2)


@pytest.mark.parametrize(
    ("project", "words"),
    [
        (lambda u: np.sin(37 * u), "must not move points of C"),
        (lambda u: np.where(u > 0, 1.0, -1.0), "onto a convex set"),
    ],
)
def test_a_map_that_is_no_projection_is_refused(project, words, rng):
    C = ks.CustomSet(project, lambda x: 0.0, n=4)
    with pytest.raises(ValueError, match=words):
        ks.minimize(ks.LeastSquares(rng.standard_normal((9, 4)), rng.standard_normal(9)), 2, C)


def test_a_loss_that_ends_at_the_bounds(rng):
    loss = ks.Custom(lambda x: float((x**1.5 - 2 * x).sum()), lambda x: 1.5 * x**0.5 - 2, n=4)
    with np.errstate(invalid="ignore"):
        assert ks.minimize(loss, 2, ks.Nonnegative()).fun == pytest.approx(2 * ((16 / 9) ** 1.5 - 32 / 9), rel=1e-6)


@pytest.mark.parametrize("method", ["auto", "apdca"])
def test_calls_of_a_users_functions_are_counted(method, rng):
    loss, calls = quadratic_of_a_user(rng)
    for _ in range(2):
        calls[:] = [0, 0]
        result = ks.minimize(loss, 2, method=method)
        assert [result.nfev, result.njev] == calls
