"""Losses given by PyTorch and JAX functions agree with the built-in loss, and evaluations are counted."""

from importlib import import_module

import numpy as np
import pytest

import ksparse as ks
from conftest import cases
from ksparse.losses.autodiff import Jax

LIBRARIES = ("torch", "jax")
M, N, K = 30, 12, 3


@pytest.fixture(params=cases(LIBRARIES))
def library(request):
    return request.param, import_module("torch" if request.param == "torch" else "jax.numpy")


@pytest.fixture
def data(rng):
    A = rng.standard_normal((M, N))
    return A, A[:, :K] @ [1.0, -2.0, 1.5] + 0.5 * rng.standard_normal(M)


def own(library, A, b, calls=None):
    name, xp = library
    A, b = (xp.asarray(A), xp.asarray(b)) if name == "torch" else (A, b)

    def squares(x):
        if calls is not None:
            calls.append(1)
        return 0.5 * xp.sum((A @ x - b) ** 2)

    return squares


def logistic(library, A, y):
    name, xp = library
    A, y = (xp.asarray(A), xp.asarray(y)) if name == "torch" else (A, y)
    return lambda x: xp.sum(xp.log1p(xp.exp(-y * (A @ x))))


@pytest.mark.parametrize("C", [None, ks.Nonnegative(), ks.Simplex(), ks.L2Ball(0.7)], ids=str)
def test_the_answer_is_that_of_the_loss_itself(library, data, C):
    A, b = data
    result = ks.minimize(ks.autodiff(own(library, A, b), n=N, backend=library[0]), K, C)
    best = ks.minimize(ks.LeastSquares(A, b), K, C)
    assert result.success
    assert result.fun == pytest.approx(best.fun, rel=1e-7)
    assert np.array_equal(result.support, best.support)


def test_the_hessian_is_that_of_the_loss_itself(library, data, rng):
    A, b = data
    y = np.where(b > 0, 1.0, -1.0)
    loss, built_in = ks.autodiff(logistic(library, A, y), n=N, backend=library[0]), ks.Logistic(A, y)
    x, support = 0.3 * rng.standard_normal(N), np.array([1, 4, 7])
    everything = np.arange(N)
    model, expected = loss.model_at(x), built_in.model_at(x)
    assert np.allclose(model.block(everything), expected.block(everything), rtol=1e-9, atol=1e-10)
    assert np.allclose(model.r, expected.r, rtol=1e-9)
    assert model.constant == pytest.approx(expected.constant, rel=1e-9)
    cut, same = loss.restrict(support), built_in.restrict(support)
    z = x[support]
    assert np.allclose(cut.hessian_at(z, cut.image(z)), same.hessian_at(z, same.image(z)), rtol=1e-9)
    d = rng.standard_normal(N)
    assert loss.curvature_at(x, x, d, d) == pytest.approx(built_in.curvature_at(x, A @ x, d, A @ d), rel=1e-9)


def test_value_and_gradient_come_of_one_call(library, data):
    A, b = data
    calls = []
    loss = ks.autodiff(own(library, A, b, calls), n=N, backend=library[0])
    x = np.linspace(-1, 1, N)
    value = loss.value(x)
    once = len(calls)
    assert np.allclose(loss.gradient(x), A.T @ (A @ x - b))
    assert loss.value(x.copy()) == value
    assert len(calls) == once
    if library[0] == "jax":  # compiled: the function itself is not called again at other points
        loss.value(x + 1.0)
        assert len(calls) == once


def test_values_are_in_double_precision(library, data):
    A, b = data
    loss = ks.autodiff(own(library, A, b), n=N, backend=library[0])
    x = np.linspace(-1, 1, N)
    assert loss.value(x) == pytest.approx(ks.LeastSquares(A, b).value(x), rel=1e-14)


@pytest.mark.needs("jax")
def test_a_gradient_with_many_operations_is_differenced(data, monkeypatch, rng):
    import jax.numpy as jnp

    A, b = data
    loss = ks.autodiff(own(("jax", jnp), A, b), n=N, backend="jax")
    monkeypatch.setattr(import_module("ksparse.losses.autodiff"), "HEAVY", 0)
    H = loss.hessian_on(rng.standard_normal(N), np.arange(N))
    assert np.allclose(H, A.T @ A, rtol=1e-7, atol=1e-6)


@pytest.mark.needs("jax")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SMALL", 0),  # compiled with care
        ("PLAIN", {"xla_no_such_option": 1}),  # as an option that another version of JAX does not know
        ("QUICK", {"xla_no_such_option": 1}),
    ],
)
def test_however_it_is_compiled_the_numbers_are_the_same(data, monkeypatch, name, value):
    import jax.numpy as jnp

    A, b = data
    y = np.where(b > 0, 1.0, -1.0)
    monkeypatch.setattr(import_module("ksparse.losses.autodiff"), name, value)
    loss, built_in = ks.autodiff(logistic(("jax", jnp), A, y), n=N, backend="jax"), ks.Logistic(A, y)
    x = np.linspace(-1, 1, N)
    assert loss.value(x) == pytest.approx(built_in.value(x), rel=1e-13)
    assert np.allclose(loss.gradient(x), built_in.gradient(x), rtol=1e-12)
    assert np.allclose(loss.hessian_on(x, np.arange(N)), built_in.model_at(x).block(np.arange(N)), rtol=1e-11)


@pytest.mark.needs("jax")
def test_a_vector_in_single_precision_gets_a_program_of_its_own(data):
    import jax.numpy as jnp

    A, b = data
    engine, x = Jax(own(("jax", jnp), A.astype(np.float32), b.astype(np.float32))), np.linspace(-1, 1, N)
    coarse, fine = engine.value_and_gradient(x.astype(np.float32))[1], engine.value_and_gradient(x)[1]
    assert (coarse.dtype, fine.dtype) == (np.float32, np.float64)
    assert np.allclose(coarse, fine, rtol=1e-4)


def test_a_function_that_is_not_convex_gets_no_model(library):
    _, xp = library
    loss = ks.autodiff(lambda x: xp.sum(xp.cos(x)), n=4, backend=library[0])
    assert loss.model_at(np.zeros(4)) is None
    assert loss.model_at(np.full(4, np.pi)) is not None
    not_convex = ks.autodiff(lambda x: xp.sum(xp.cos(x)), n=4, convex=False, backend=library[0])
    assert not_convex.model_at(np.full(4, np.pi)) is None
    result = ks.minimize(not_convex, 2, ks.Box(-4.0, 4.0))
    assert result.fun == pytest.approx(0.0, abs=1e-8)  # two at −1, two at 1


def test_a_linear_function_and_one_that_bends_nowhere(library):
    _, xp = library
    result = ks.minimize(ks.autodiff(lambda x: xp.sum(x), n=5, backend=library[0]), 2, ks.Box(-1.0, 1.0))
    assert result.fun == pytest.approx(-2.0)


@pytest.mark.parametrize("second", [False, True], ids=["differences", "products"])
@pytest.mark.parametrize("C", [None, ks.Nonnegative(), ks.Simplex()], ids=str)
def test_two_functions_are_searched_by_models_too(data, C, second):
    A, b = data
    product = (lambda x, d: A.T @ (A @ d)) if second else None
    loss = ks.Custom(lambda x: 0.5 * np.sum((A @ x - b) ** 2), lambda x: A.T @ (A @ x - b), n=N, product=product)
    result, best = ks.minimize(loss, K, C), ks.minimize(ks.LeastSquares(A, b), K, C)
    assert result.success
    assert result.fun == pytest.approx(best.fun, rel=1e-7)
    x = np.linspace(-1, 1, N)
    assert np.allclose(loss.model_at(x).block(np.arange(N)), A.T @ A, rtol=1e-7, atol=1e-6)


def test_a_product_of_another_shape_is_refused(data):
    loss = ks.Custom(lambda x: float(x @ x), lambda x: 2 * x, n=4, product=lambda x, d: d[:2])
    with pytest.raises(TypeError, match=r"product\(x, d\) must return a vector of shape"):
        ks.minimize(loss, 2)
    with pytest.raises(TypeError, match="product must be"):
        ks.Custom(lambda x: 0.0, lambda x: x, product=3)


# --- check_gradient ---------------------------------------------------------------------------------------------------


def test_right_gradients_pass(data):
    A, b = data
    for loss in (
        ks.LeastSquares(A, b),
        ks.Logistic(A, np.sign(b)),
        ks.Poisson(A, np.round(np.abs(b))),
        ks.PrincipalComponent(A.T @ A),
    ):
        check = ks.check_gradient(loss, np.linspace(-0.5, 0.5, N))
        assert check.passed
        assert check.error < 1e-6
        assert check.curvature_error < 1e-4
        assert "agrees" in repr(check)


def test_a_wrong_entry_is_found_and_named():
    def gradient(x):
        g = 2 * x
        g[3] *= 1.01
        return g

    check = ks.check_gradient(ks.Custom(lambda x: x @ x, gradient), np.ones(6))
    assert not check.passed
    assert check.worst == 3
    assert check.differences[3] == pytest.approx(2.0)
    assert "NOT" in repr(check)


def test_not_a_number_is_no_gradient():
    check = ks.check_gradient(ks.Custom(lambda x: float("nan"), lambda x: x), np.ones(2))
    assert not check.passed
    assert check.error == np.inf


@pytest.mark.parametrize(
    ("loss", "x", "error"), [(3, [1.0], TypeError), (ks.Custom(lambda x: 0.0, lambda x: x, n=2), [1.0], ValueError)]
)
def test_bad_input_to_the_check_is_named(loss, x, error):
    with pytest.raises(error, match=r"loss must be|x must have length 2"):
        ks.check_gradient(loss, x)
