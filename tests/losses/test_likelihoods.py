"""Quantile, Gamma, Tweedie, negative binomial and Cox: values against definitions, answers against enumeration."""

from functools import partial

import numpy as np
import pytest
from scipy.stats import nbinom
from sklearn.metrics import mean_gamma_deviance, mean_pinball_loss, mean_tweedie_deviance

import ksparse as ks
from enumeration import enumerated

M, N = 40, 7


@pytest.fixture
def data(rng):
    A = 0.5 * rng.standard_normal((M, N))
    return A, A[:, :2] @ [1.0, -1.5] + 0.3


def cox_by_hand(score, time, event):
    """Return Breslow's sum, term by term."""
    total = 0.0
    for i in np.flatnonzero(event):
        total += np.log(np.exp(score[time >= time[i]]).sum()) - score[i]
    return total


def test_deviances_are_those_of_scikit_learn(data, rng):
    A, score = data
    x, mu = rng.standard_normal(N), None
    mu = np.exp(A @ x)
    y = rng.gamma(2.0, np.exp(score) / 2.0)
    gamma = ks.Gamma(A, y)
    assert 2 * (gamma.value(x) - gamma.least) == pytest.approx(M * mean_gamma_deviance(y, mu))
    for power in (1.1, 1.5, 1.9):
        some = np.where(rng.random(M) < 0.3, 0.0, y)
        loss = ks.Tweedie(A, some, power=power)
        assert 2 * (loss.value(x) - loss.least) == pytest.approx(M * mean_tweedie_deviance(some, mu, power=power))


def test_the_negative_binomial_is_that_of_scipy(data, rng):
    A, score = data
    theta, y = 1.7, rng.poisson(np.exp(score))
    loss = ks.NegativeBinomial(A, y, theta=theta)
    x, z = rng.standard_normal((2, N))

    def likelihood(x):
        mu = np.exp(A @ x)
        return nbinom.logpmf(y, theta, theta / (theta + mu)).sum()

    assert loss.value(x) - loss.value(z) == pytest.approx(likelihood(z) - likelihood(x))
    assert loss.value(x) > loss.least


def test_the_quantile_loss_is_above_the_check_loss_by_little(data, rng):
    A, score = data
    b, x = score + rng.standard_normal(M), rng.standard_normal(N)
    for tau in (0.1, 0.5, 0.9):
        for width in (1.0, 1e-3):
            above = ks.Quantile(A, b, tau=tau, width=width).value(x) - M * mean_pinball_loss(b, A @ x, alpha=tau)
            assert 0 <= above <= M * width * np.log(2.0) + 1e-9


def test_a_share_tau_lies_below_the_quantile(rng):
    y = rng.standard_normal(500)
    for tau in (0.2, 0.75):
        x = ks.minimize(ks.Quantile(np.ones((500, 1)), y, tau=tau, width=0.01), 1).x
        assert (y < x[0]).mean() == pytest.approx(tau, abs=0.01)


def test_cox_is_breslows_sum_ties_and_all(data, rng):
    A, _ = data
    time, event = rng.integers(1, 12, M), rng.integers(0, 2, M)
    x = 3 * rng.standard_normal(N)
    loss = ks.Cox(A, time, event)
    assert loss.value(x) == pytest.approx(cox_by_hand(A @ x, time, event), rel=1e-12)
    # nothing overflows
    assert loss.value(500 * x) == pytest.approx(ks.Cox(1000 * A, time, event).value(x / 2), rel=1e-12)
    assert np.isfinite(loss.gradient(1e3 * x)).all()


LOSSES = {
    "quantile": lambda A, s, rng: ks.Quantile(A, s + rng.standard_normal(M), tau=0.7),
    "gamma": lambda A, s, rng: ks.Gamma(A, rng.gamma(2.0, np.exp(s))),
    "tweedie": lambda A, s, rng: ks.Tweedie(A, np.maximum(rng.gamma(2.0, np.exp(s)) - 1.0, 0.0)),
    "negative binomial": lambda A, s, rng: ks.NegativeBinomial(A, rng.poisson(np.exp(s + 1))),
    "cox": lambda A, s, rng: ks.Cox(A, rng.exponential(np.exp(-s)), rng.random(M) < 0.7),
}


@pytest.mark.parametrize("C", [ks.WholeSpace(), ks.Nonnegative()], ids=str)
@pytest.mark.parametrize("name", LOSSES)
def test_the_answer_is_that_of_enumeration(data, rng, name, C):
    A, score = data
    loss = LOSSES[name](A, score, rng)
    result = ks.minimize(loss, 2, C, settings=ks.SearchSettings(enumerated=0))
    assert result.success
    assert result.fun == pytest.approx(enumerated(loss, C, N, 2), rel=1e-8)


@pytest.mark.parametrize("name", LOSSES)
def test_derivatives_are_right(data, rng, name):
    A, score = data
    check = ks.check_gradient(LOSSES[name](A, score, rng), 0.5 * rng.standard_normal(N))
    assert check.passed
    assert check.curvature_error < 1e-3


def test_a_proof_by_a_lower_bound(data, rng):
    A, score = data
    for loss in (
        ks.Cox(A, rng.exponential(np.exp(-score)), np.ones(M), ridge=1.0),
        ks.Gamma(A, rng.gamma(2.0, np.exp(score)), ridge=1.0),
    ):
        result = ks.minimize(loss, 2, gap=0.01)
        assert result.gap <= 0.01


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda A, y: ks.Quantile(A, y, tau=1.0), "tau must be > 0 and < 1"),
        (lambda A, y: ks.Quantile(A, y, width=0.0), "width must be"),
        (lambda A, y: ks.Gamma(A, np.zeros(M)), "amounts > 0.*Tweedie"),
        (lambda A, y: ks.Tweedie(A, -np.ones(M)), "amounts >= 0"),
        (lambda A, y: ks.Tweedie(A, np.ones(M), power=2.5), "power must lie between 1"),
        (lambda A, y: ks.NegativeBinomial(A, -np.ones(M)), "counts >= 0"),
        (lambda A, y: ks.NegativeBinomial(A, np.ones(M), theta=0.0), "theta must be"),
        (lambda A, y: ks.Cox(A, abs(y), np.full(M, 2)), "event must hold 0"),
        (lambda A, y: ks.Cox(A, abs(y), np.zeros(M)), "at least one death"),
        (lambda A, y: ks.Cox(A, y[:3], np.ones(M)), "time must have length 40"),
    ],
)
def test_bad_input_is_named(data, make, words):
    with pytest.raises(ValueError, match=words):
        make(*data)


def test_losses_with_parameters_go_into_the_regressor(data, rng):
    A, score = data
    y = rng.gamma(2.0, np.exp(score) / 2.0)
    model = ks.SparseRegressor(2, loss=partial(ks.Tweedie, power=1.5)).fit(A, y)
    assert np.count_nonzero(model.coef_) <= 2


def least_on_a_line(loss):
    """Return the least value of a convex loss of one variable, by bisection on the sign of its slope."""
    low, high = -1e12, 1e12
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if loss.gradient(np.array([middle]))[0] > 0 else (middle, high)
    return min(loss.value(np.array([x])) for x in (low, high))


@pytest.mark.parametrize(("A", "b", "tau", "x"), [([[100.0]], [4.0], 0.5, 0.04), ([[1.0]], [2.0], 0.9, 2.2197)])
def test_a_saturated_quantile_moves(A, b, tau, x):
    found = ks.minimize(ks.Quantile(A, b, tau=tau), 1)
    assert found.success
    assert found.x[0] == pytest.approx(x, rel=1e-4)


@pytest.mark.parametrize("start", [0.0, 1e3])
@pytest.mark.parametrize("seed", [3, 13, 15, 17])
def test_an_optimum_is_found_from_where_a_loss_has_no_curvature(seed, start):
    rng = np.random.default_rng(seed)
    A, b = (
        rng.standard_normal((3, 1)) * 10.0 ** rng.integers(-1, 3),
        rng.standard_normal(3) * 10.0 ** rng.integers(1, 6),
    )
    loss = ks.Quantile(A, b, tau=rng.uniform(0.05, 0.95), width=10.0 ** rng.integers(-3, 1))
    found = ks.minimize(loss, 1, x0=np.array([start]))
    assert found.success
    assert found.fun == pytest.approx(least_on_a_line(loss), rel=1e-6)
