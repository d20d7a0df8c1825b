"""Data of any size and in single precision, columns that are nearly dependent, functions that overflow."""

import warnings

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

import catalogue
import ksparse as ks
from ksparse import Status
from ksparse.data.derived import standardize
from ksparse.numerics.qp import least_squares, null_space

SEARCHED = ks.SearchSettings(enumerated=0)  # not by trying every support


def test_data_a_trillion_times_larger(rng):
    A, b = rng.standard_normal((20, 6)), rng.standard_normal(20)
    plain = ks.minimize(ks.LeastSquares(A, b), 2)
    large = ks.minimize(ks.LeastSquares(A * 1e12, b), 2)
    assert large.fun == pytest.approx(plain.fun)
    for method in ("pdca", "apdca"):
        best = ks.minimize(ks.LeastSquares(A, b), 2, method=method, rho=1.0)
        assert ks.minimize(ks.LeastSquares(A * 1e12, b), 2, method=method, rho=1e24).fun == pytest.approx(
            best.fun, rel=0.3
        )


def test_a_decomposition_that_does_not_converge_never_reaches_the_user(monkeypatch):
    """LAPACK's divide and conquer fails on some ordinary matrices; which ones depends on the version of LAPACK."""
    ones = np.ones((2, 3))  # one equation, twice
    problem = ks.LeastSquares(np.eye(3), [3.0, 2.0, 1.0]), 3, ks.Polyhedron([[1.0, 2.0, 0.0]], [2.0], ones, ones[:, 0])
    expected = ks.minimize(*problem)

    def fail(*_, **__):
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr(np.linalg, "lstsq", fail)
    monkeypatch.setattr(np.linalg, "svd", fail)
    found = ks.minimize(*problem)
    assert found.status is expected.status
    np.testing.assert_allclose(found.x, expected.x, atol=1e-12)
    M = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]])
    np.testing.assert_allclose(M @ least_squares(M, np.array([1.0, 2.0])), [1.0, 2.0], atol=1e-14)
    along = null_space(M)
    assert along.shape == (3, 2)
    np.testing.assert_allclose(M @ along, 0.0, atol=1e-14)


@pytest.mark.parametrize("size", [1e300, 1e-300])
def test_numbers_whose_squares_are_none_are_refused(size, rng):
    A, b = rng.standard_normal((9, 4)), rng.standard_normal(9)
    with pytest.raises(ValueError, match="in A must "):
        ks.LeastSquares(size * A, b)
    with pytest.raises(ValueError, match="in b must "):
        ks.LeastSquares(A, size * b)
    with pytest.raises(ValueError, match="in Q must "):
        ks.Quadratic(size * A.T @ A)


@pytest.mark.parametrize("scale", [(1e100, 1e100), (1e-100, 1e-100), (1e100, 1.0), (1.0, 1e-100)])
@pytest.mark.parametrize("C", [None, ks.Nonnegative(), ks.L2Ball(1.0), ks.Simplex()])
def test_scales_far_from_1_without_a_warning(scale, C, rng):
    A, b = scale[0] * rng.standard_normal((20, 6)), scale[1] * rng.standard_normal(20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = ks.minimize(ks.LeastSquares(A, b), 2, C)
    assert result.success
    assert np.isfinite(result.fun)


def test_single_precision_counts_are_summed_in_double(rng):
    A = (3 * rng.standard_normal((50, 8))).astype(np.float32)
    y = rng.poisson(np.exp(np.clip(2 * A[:, 0], -5, 8)))
    result = ks.minimize(ks.Poisson(A, y), 3)
    image = A.astype(float) @ result.x.astype(float)
    assert result.fun == pytest.approx(float(np.sum(np.exp(image) - y * image)), rel=1e-12)


@pytest.mark.parametrize("matrix", [np.asarray, scipy.sparse.csr_array])
def test_small_negative_curvature_beside_large_is_seen(matrix):
    loss = ks.Quadratic(matrix(np.diag([1e10, -1.0, 2.0])), [0, 0.1, 0])
    for k in (1, 3):
        assert ks.minimize(loss, k, ks.Box(-1, 1)).fun == pytest.approx(-0.6)
    tilted = np.ones((2, 2)) / 2 - 1e-11 * np.array([[1, -1], [-1, 1]]) / 2
    assert ks.minimize(ks.Quadratic(matrix(tilted)), 2).status is Status.UNBOUNDED


def test_sparse_tables_far_from_0_keep_their_digits(rng):
    z = rng.standard_normal((60, 3))
    X = np.column_stack([z[:, 0], z[:, 0] + 0.5 * z[:, 1], z[:, 0] + 0.5 * z[:, 1] * 1.0002]) + 2e6 * np.array(
        [1, 0.7, 0.5]
    )
    dense, sparse = (
        ks.minimize(ks.PrincipalComponent.from_data(kind(X)), 2, ks.L2Ball())
        for kind in (np.asarray, scipy.sparse.csr_array)
    )
    assert sparse.fun == pytest.approx(dense.fun, rel=1e-8)


def test_nearly_symmetric_is_made_symmetric():
    Q, c = np.diag([1e8, 1, 1.0]), np.array([0, -1.0, -1])
    Q[1, 2] = 0.9
    assert ks.minimize(ks.Quadratic(Q, c), 3).fun == pytest.approx(-0.6896551724)


def test_single_precision_at_0_is_summed_in_double(rng):
    for _ in range(20):
        A, b = np.ones((7, 1), dtype=np.float32), -rng.uniform(1.0, 9.0, 7).astype(np.float32)
        result = ks.minimize(ks.LeastSquares(A, b), 1, ks.Nonnegative(), gap=1e-6)
        assert not result.x.any()
        assert result.fun == pytest.approx(0.5 * float(np.sum(b.astype(float) ** 2)), rel=1e-14)
        assert result.lower_bound <= result.fun


@pytest.mark.parametrize("scale", [1e-8, 1e-4, 1e4, 1e8])
@pytest.mark.parametrize(
    "set_name", ["WholeSpace", "Hyperplane", "Nonnegative", "Simplex", "Box", "BudgetBox", "Polyhedron"]
)
def test_the_units_of_the_data_do_not_matter(scale, set_name, rng):
    A, b = rng.standard_normal((40, 25)), rng.standard_normal(40)
    C = catalogue.SETS[set_name](25)
    plain = ks.minimize(ks.LeastSquares(A, b), 5, C)
    scaled = ks.minimize(ks.LeastSquares(scale * A, scale * b), 5, C)
    assert scaled.success
    np.testing.assert_array_equal(scaled.support, plain.support)
    assert scaled.fun == pytest.approx(scale**2 * plain.fun, rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_the_units_of_each_variable_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    A, b = rng.standard_normal((80, 60)), rng.standard_normal(80)
    units = 10.0 ** rng.uniform(-4, 4, 60)
    for C in (ks.WholeSpace(), ks.Nonnegative()):
        plain, scaled = ks.minimize(ks.LeastSquares(A, b), 6, C), ks.minimize(ks.LeastSquares(A * units, b), 6, C)
        assert scaled.fun == pytest.approx(plain.fun, rel=0.03)  # the starts see the units, the swaps do not
        assert scaled.status is Status.SWAP_OPTIMAL


def test_a_function_that_overflows_on_few_variables():
    c = np.array([0.72, 0.03, -0.39, -0.06, -1.26])
    loss = ks.Custom(lambda x: float(np.cosh(x - c).sum()), lambda x: np.sinh(x - c), n=5, convex=True)
    with np.errstate(over="ignore"):
        found = ks.minimize(loss, 5, ks.Simplex(1000.0))
    assert found.fun == pytest.approx(np.cosh((1000 - c.sum()) / 5) * 5, rel=1e-6)


def test_a_constant_column_of_a_sparse_table_has_no_variance_at_all(rng):
    X = np.column_stack([rng.standard_normal(6), np.ones(6)])
    loss = ks.MeanVariance.from_returns(scipy.sparse.csr_array(X), 1.0)
    assert loss.value(np.array([0.0, 1e30])) == pytest.approx(-1e30)


def test_means_of_a_sparse_table_in_single_precision_are_rounded_once():
    column = np.array([2, -1, 2, 2, -3, 3, -1, -2, -2], dtype=np.float32)
    table = scipy.sparse.csr_array(np.outer(column, [1, 1, 2]).astype(np.float32))
    assert not standardize(table, "X", scale=False)[1].any()


def test_a_penalised_run_on_data_that_overflow_warns_of_nothing():
    A = np.array([[-1.1e98, 2.1e99, 6.3e98, 9.2e97], [1.6e98, -9.1e98, 7.0e99, -1.2e97]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = ks.minimize_penalized(ks.Poisson(A, [1.0, 1.0]), ks.TopK1(0.1, 3), method="gist", max_iter=300)
    assert np.isfinite(result.x).all()


def test_the_relaxation_in_values_of_any_size(rng):
    A, b = 1e100 * rng.standard_normal((5, 3)), 1e100 * rng.standard_normal(5)
    found = ks.minimize(
        ks.LeastSquares(A, b),
        3,
        ks.BudgetBox(1.0, 0.0, np.inf),
        min_nonzero=0.1,
        settings=ks.SearchSettings(enumerated=0),
    )
    assert found.success


@pytest.mark.parametrize(("kind", "seed"), [("huber", 11), ("poisson", 6), ("logistic", 6)])
def test_nearly_equal_columns_of_a_smooth_loss(kind, seed):
    """The best point is far out along a difference that H = AᵀDA hardly resolves: the model is solved from A."""
    rng = np.random.default_rng(seed)
    A, b = rng.standard_normal((8, 3)), rng.integers(0, 2, 8).astype(float)
    A[:, 1] = A[:, 0] + 1e-8 * A[:, 1]
    losses = {
        "huber": lambda A: ks.Huber(A, b, delta=3.0),
        "poisson": lambda A: ks.Poisson(A, b),
        "logistic": lambda A: ks.Logistic(A, b),
    }
    make = losses[kind]
    apart = make(np.column_stack([A[:, 0], (A[:, 1] - A[:, 0]) / 1e-8]))  # the same space, in a better basis
    C = ks.Box([-np.inf, -np.inf, -0.1], [np.inf, np.inf, 0.1])
    assert ks.minimize(make(A), 2, C, settings=SEARCHED).fun <= ks.minimize(apart, 2).fun * (1 + 1e-6)


@pytest.mark.parametrize("seed", [18, 20, 25])
def test_a_program_of_very_different_columns_is_solved_to_rounding(seed):
    """Many small steps drift off the budget, and the answer was refused; PIQP does not drift."""
    rng = np.random.default_rng(seed)
    A, low = rng.standard_normal((10, 6)) * 10.0 ** rng.integers(-6, 7, 6), -rng.uniform(0.3, 1.5, 6)
    C = ks.BudgetBox(0.8 * low.sum(), low, rng.uniform(0.1, 1.5, 6))
    loss = ks.LeastSquares(A, rng.standard_normal(10))
    found = ks.minimize(loss, 6, C, min_nonzero=0.4, settings=SEARCHED)
    assert found.fun <= ks.minimize(loss, 6, C, min_nonzero=0.4).fun * (1 + 1e-6)


def test_a_function_that_overflows_on_all_of_the_set():
    c = np.array([-0.7, 1.4])
    loss = ks.Custom(lambda x: float(np.cosh(x - c).sum()), lambda x: np.sinh(x - c), n=2)
    with np.errstate(over="ignore"):
        found = ks.minimize(loss, 1, ks.Simplex(1000.0), settings=SEARCHED)
    assert found.status is ks.Status.NUMERICAL_TROUBLE


def test_counts_in_single_precision_are_one_function():
    """The cap on exp applies in the exact solves too."""
    A, y = np.array([[48.0], [1.0]], dtype=np.float32), np.array([5.0, 1.0], dtype=np.float32)
    loss = ks.Poisson(A, y)
    found = ks.minimize(loss, 1, ks.BudgetBox(1.0, 0.0, np.inf))
    assert found.fun == pytest.approx(loss.value(found.x), rel=1e-5)


@pytest.mark.parametrize("slope", [0.0, 1.0])
def test_a_curvature_that_cancels_the_shift_against_singular_systems_does_no_harm(slope):
    found = ks.minimize(ks.Quadratic(np.diag([1.0, -1e-15]), [0.5, slope]), 2, ks.Box(-1.0, 1.0))
    assert found.success
    assert found.fun == pytest.approx(-0.125 - slope)
