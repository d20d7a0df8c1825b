"""Operators with many columns: same answers as for the matrix in memory, with few products."""

import numpy as np
import pytest
from scipy.fft import dct, idct
from scipy.sparse.linalg import LinearOperator, aslinearoperator

import ksparse as ks
from ksparse.data import operator as operators


@pytest.fixture
def hidden(monkeypatch):
    """Treat every operator of more than 20 columns as one of many columns."""
    monkeypatch.setattr(operators, "MANY", 20)


class Counted(LinearOperator):
    """Return an operator for a dense matrix, and the count of its products."""

    def __init__(self, A):
        self.A, self.products = A, 0
        super().__init__(A.dtype, A.shape)

    def _matvec(self, x):
        self.products += 1
        return self.A @ np.ravel(x)

    def _rmatvec(self, r):
        self.products += 1
        return self.A.T @ np.ravel(r)


def planted(rng, m=80, n=60, k=4, noise=0.5):
    A = rng.standard_normal((m, n)) * rng.uniform(0.2, 5.0, n)
    x = np.zeros(n)
    x[rng.choice(n, k, replace=False)] = rng.choice([-1.0, 1.0], k)
    return A, A @ x + noise * rng.standard_normal(m)


SETS = {
    "whole": ks.WholeSpace(),
    "nonnegative": ks.Nonnegative(),
    "box": ks.Box(-0.7, 0.9),
    "ball": ks.L2Ball(1.5),
    "simplex": ks.Simplex(),
    "polyhedron": ks.Polyhedron(np.ones((1, 60)), [1.0], lower=-np.ones(60), upper=np.ones(60)),
}


@pytest.mark.parametrize("name", SETS)
def test_the_answer_is_that_of_a_matrix_in_memory(name, rng, hidden):
    A, b = planted(rng)
    shown, found = (ks.minimize(ks.LeastSquares(given, b), 4, SETS[name]) for given in (A, aslinearoperator(A)))
    np.testing.assert_array_equal(found.support, shown.support)
    assert found.fun == pytest.approx(shown.fun, rel=1e-8)
    assert found.status is ks.Status.STATIONARY  # among the columns that were shown: of the others nothing is proved


def test_losses_that_are_not_quadratic(rng, hidden):
    A, b = planted(rng)
    y = (b > 0).astype(float)
    shown, found = (ks.minimize(ks.Logistic(given, y, ridge=1.0), 4) for given in (A / 5, aslinearoperator(A / 5)))
    np.testing.assert_array_equal(found.support, shown.support)
    assert found.fun == pytest.approx(shown.fun, rel=1e-8)


def test_what_is_forced_and_floors(rng, hidden):
    A, b = planted(rng)
    options = {"forced_in": [3, 17], "forced_out": [5]}
    shown, found = (ks.minimize(ks.LeastSquares(given, b), 6, **options) for given in (A, aslinearoperator(A)))
    np.testing.assert_array_equal(found.support, shown.support)
    assert {3, 17} <= set(found.support)


def test_columns_are_asked_for_once_and_only_some(rng, monkeypatch):
    monkeypatch.setattr(operators, "MANY", 100)
    A, b = planted(rng, 200, 3000, 5)
    operator = Counted(A)
    found = ks.minimize(ks.LeastSquares(operator, b), 5)
    assert operator.products < 500
    assert found.passes <= operator.products  # one with 0 looks at the transpose
    assert found.fun <= ks.minimize(ks.LeastSquares(A, b), 5).fun * (1 + 1e-9)


def test_a_known_diagonal_ranks_and_proves(rng, monkeypatch):
    monkeypatch.setattr(operators, "MANY", 100)
    A, b = planted(rng, 200, 3000, 5)
    operator = Counted(A)
    known = ks.operator(operator, diagonal=np.square(A).sum(axis=0), columns=lambda S: A[:, S])
    found, shown = ks.minimize(ks.LeastSquares(known, b), 5), ks.minimize(ks.LeastSquares(A, b), 5)
    np.testing.assert_array_equal(found.support, shown.support)
    assert found.status is shown.status is ks.Status.SWAP_OPTIMAL
    assert operator.products < 100


def test_lengths_are_estimated(rng):
    A = rng.standard_normal((300, 50)) * rng.uniform(0.1, 10.0, 50)
    estimate = ks.operator(aslinearoperator(A)).column_norms() / np.linalg.norm(A, axis=0)
    assert 0.5 < estimate.min() < estimate.max() < 1.6  # 32 probes: a standard deviation of an eighth


def test_wrong_properties_of_an_operator_are_errors(rng):
    A = aslinearoperator(rng.standard_normal((8, 5)))
    with pytest.raises(ValueError, match="diagonal must have length 5, got 4"):
        ks.operator(A, diagonal=np.ones(4))
    with pytest.raises(ValueError, match="diagonal must be >= 0, as sums of squares are, got -1"):
        ks.operator(A, diagonal=-np.ones(5))
    with pytest.raises(TypeError, match="columns must be callable"):
        ks.operator(A, columns=3)
    with pytest.raises(ValueError, match=r"columns\(S\) must have shape \(m, len\(S\)\), here \(8, 1\), got \(8,\)"):
        ks.operator(A, columns=lambda S: np.ones(8))
    with pytest.raises(TypeError, match="A must offer products with its transpose"):
        ks.operator(LinearOperator((4, 3), matvec=lambda x: np.ones(4), dtype=float))


@pytest.mark.slow
def test_a_cosine_transform_of_131072_columns(rng):
    """The solve takes seconds, not one product per column."""
    m, n, k = 32_768, 131_072, 50
    rows, count = np.sort(rng.choice(n, m, replace=False)), [0]

    def there(x):
        count[0] += 1
        return dct(np.ravel(x), norm="ortho")[rows]

    def back(r):
        count[0] += 1
        whole = np.zeros(n)
        whole[rows] = np.ravel(r)
        return idct(whole, norm="ortho")

    truth = np.zeros(n)
    truth[rng.choice(n, k, replace=False)] = rng.standard_normal(k)
    found = ks.minimize(
        ks.LeastSquares(LinearOperator((m, n), matvec=there, rmatvec=back, dtype=float), there(truth)), k
    )
    np.testing.assert_array_equal(found.support, np.flatnonzero(truth))
    assert count[0] < 1_000
