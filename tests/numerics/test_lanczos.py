"""Lanczos against dense eigenvalues, on spectra of every kind."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator

import ksparse as ks
from ksparse.numerics.eigen import has_negative_eigenvalue, largest_eigenvalue

SPECTRA = {
    "both signs": lambda rng, n: rng.standard_normal(n),
    "wide": lambda rng, n: 10.0 ** rng.uniform(-12, 0, n),
    "ties": lambda rng, n: np.round(rng.uniform(-2, 2, n)),
    "negative": lambda rng, n: -(10.0 ** rng.uniform(-3, 3, n)),
    "one above a cluster": lambda rng, n: np.r_[np.ones(n - 1), 1 + 10.0 ** rng.uniform(-8, 0)],
    "huge": lambda rng, n: 1e200 * rng.standard_normal(n),
    "tiny": lambda rng, n: 1e-200 * rng.standard_normal(n),
}


def symmetric(rng, eigenvalues):
    Q, _ = np.linalg.qr(rng.standard_normal((eigenvalues.size, eigenvalues.size)))
    M = (Q * eigenvalues) @ Q.T
    return (M + M.T) / 2


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("n", [1, 2, 3, 5, 17, 60, 150])
def test_the_ends_of_the_spectrum(name, n, rng):
    for _ in range(5):
        M = symmetric(rng, SPECTRA[name](rng, n))
        values = np.linalg.eigvalsh(M)
        size = np.abs(values).max()
        L = largest_eigenvalue(lambda v, M=M: M @ v, n, np.zeros(0))
        assert size <= L <= 1.001 * size
        if abs(values[0]) > 1e-5 * size or values[0] >= 0:
            assert has_negative_eigenvalue(lambda v, M=M: M @ v, n, np.zeros(0), size) == (values[0] < 0)


def test_the_operator_zero_and_the_identity_handing_back_its_argument():
    assert largest_eigenvalue(np.zeros_like, 50, np.zeros(0)) == 0.0
    assert 1.0 <= largest_eigenvalue(lambda v: v, 50, np.zeros(0)) <= 1.001
    assert not has_negative_eigenvalue(lambda v: v, 50, np.zeros(0), 1.0)


def test_products_that_overflow_have_no_bound_and_the_fixed_step_says_so(rng):
    # which does not show its numbers
    loss = ks.LeastSquares(aslinearoperator(1e200 * rng.standard_normal((60, 50))), np.ones(60))
    with np.errstate(over="ignore", invalid="ignore"):
        assert loss.lipschitz() == np.inf
        with pytest.raises(ks.MissingPieceError, match="FixedStep needs a Lipschitz constant"):
            ks.minimize_penalized(loss, ks.L1(1.0), step="fixed")


def test_products_in_float32_give_a_bound_too(rng):
    A = rng.standard_normal((300, 80)).astype(np.float32)
    true = np.linalg.norm(A.astype(np.float64), 2) ** 2
    assert true <= largest_eigenvalue(lambda v: A.T @ (A @ v), 80, np.zeros(0, dtype=np.float32)) <= 1.001 * true


def test_a_handful_of_vectors_is_all_that_is_held(rng):
    n = 100_000
    d = rng.uniform(0.0, 1.0, n)
    largest_eigenvalue(lambda v: d[:50] * v, 50, np.zeros(0))  # what is loaded on first use
    tracemalloc.start()
    try:
        largest_eigenvalue(lambda v: d * v, n, np.zeros(0))
        assert tracemalloc.get_traced_memory()[1] <= 6.5 * 8 * n
    finally:
        tracemalloc.stop()
