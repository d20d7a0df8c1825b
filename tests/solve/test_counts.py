"""Evaluations of φ and ∇φ, and products with an operator, are counted."""

from collections import Counter
from typing import ClassVar

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator

import ksparse as ks


def test_evaluations_are_counted(rng):
    A, b = rng.standard_normal((20, 6)), rng.standard_normal(20)
    counts = {"value": 0, "gradient": 0}

    def value(x):
        counts["value"] += 1
        return float(0.5 * np.sum((A @ x - b) ** 2))

    def gradient(x):
        counts["gradient"] += 1
        return A.T @ (A @ x - b)

    result = ks.minimize_penalized(ks.Custom(value, gradient, n=6), ks.L1(0.5))
    assert abs(result.nfev - counts["value"]) <= 2
    assert abs(result.njev - counts["gradient"]) <= 2


class CountedLogistic(ks.Logistic):
    """A logistic loss that counts evaluations of φ and ∇φ; a second-order model counts as one of both."""

    calls: ClassVar = Counter()
    skip_self_check = True  # without the evaluations of a check

    def value_at(self, x, image):
        self.calls["values"] += 1
        return super().value_at(x, image)

    def gradient_at(self, x, image):
        self.calls["gradients"] += 1
        return super().gradient_at(x, image)

    def model_at(self, x):
        self.calls["models"] += 1
        return super().model_at(x)


@pytest.mark.parametrize("options", [{}, {"effort": 3, "n_jobs": 2}, {"method": "apdca", "rho": [1.0, 10.0]}], ids=str)
def test_every_evaluation_of_a_built_in_loss_is_counted(options, rng):
    A = rng.standard_normal((60, 20))
    loss = CountedLogistic(A, (A[:, 0] - A[:, 1] + 0.5 * rng.standard_normal(60) > 0).astype(float), ridge=0.1)
    for _ in range(2):
        loss.calls.clear()
        result = ks.minimize(loss, 3, **options)
        assert result.nfev == loss.calls["values"] + loss.calls["models"] > 100
        assert result.njev == loss.calls["gradients"] + loss.calls["models"] > 50


def test_evaluations_of_a_loss_of_rows_and_of_a_path_are_counted(rng):
    A = rng.standard_normal((60, 20))
    assert ks.minimize(ks.Multinomial(A, np.arange(60) % 3, ridge=0.1), 3).nfev > 20
    results = ks.k_path(ks.Logistic(A, np.arange(60) % 2, ridge=0.1), [1, 2, 3]).results
    assert 100 < results[0].nfev <= results[1].nfev <= results[2].nfev


class Cosines(LinearOperator):
    """Return random rows of a cosine transform."""

    def __init__(self, m, n):
        from scipy.fft import dct, idct

        self.rows, self.products = np.sort(np.random.default_rng(0).choice(n, m, replace=False)), 0
        self.there, self.back = (lambda x: dct(x, norm="ortho")), (lambda x: idct(x, norm="ortho"))
        super().__init__(np.float64, (m, n))

    def _matvec(self, x):
        self.products += 1
        return self.there(np.ravel(x))[self.rows]

    def _rmatvec(self, r):
        self.products += 1
        whole = np.zeros(self.shape[1])
        whole[self.rows] = np.ravel(r)
        return self.back(whole)


def test_an_operator_is_not_asked_for_each_of_its_columns(rng):
    A = Cosines(2048, 8192)
    truth = np.zeros(8192)
    truth[rng.choice(8192, 20, replace=False)] = rng.choice([-1.0, 1.0], 20)
    b = A @ truth
    result = ks.minimize(ks.LeastSquares(A, b), 20)
    np.testing.assert_array_equal(result.support, np.flatnonzero(truth))
    assert A.products < 8192
