"""Cases of method="auto" that broke an earlier version, each with what must hold instead."""

import itertools

import numpy as np
import pytest

import catalogue
import ksparse as ks
from ksparse import Status
from ksparse.search.polish import polish


@pytest.mark.parametrize("scale", [1e-8, 1e-4, 1e4, 1e8])
@pytest.mark.parametrize("set_name", ["WholeSpace", "Hyperplane", "Nonnegative", "Simplex", "Box", "BudgetBox", "Polyhedron"])
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


@pytest.mark.slow
def test_concave_losses_off_the_ball_leave_zero(rng):
    Z = rng.standard_normal((30, 30))
    V = Z.T @ Z / 30
    x0 = np.r_[np.ones(3), np.zeros(27)]
    for C in (
        ks.Box(-1, 1),
        ks.L1Ball(3.0),
        ks.CustomSet(lambda u: np.clip(u, -1, 1), lambda x: float(np.abs(x - np.clip(x, -1, 1)).max())),
    ):
        result = ks.minimize(ks.PrincipalComponent(V), 3, C, x0=x0)
        assert result.fun <= ks.PrincipalComponent(V).value(x0) + 1e-9
        assert not result.proved
    assert ks.minimize(ks.PrincipalComponent(V), 3, ks.Nonnegative()).status is Status.UNBOUNDED


@pytest.mark.slow
def test_sparse_matrices_are_not_taken_for_convex(rng):
    import scipy.sparse

    Q = rng.standard_normal((12, 12))
    Q, c = Q + Q.T, rng.standard_normal(12)
    dense = ks.minimize(ks.Quadratic(Q, c), 3, ks.Box(-1, 1))
    sparse = ks.minimize(ks.Quadratic(scipy.sparse.csr_matrix(Q), c), 3, ks.Box(-1, 1))
    assert sparse.fun == pytest.approx(dense.fun)
    assert not sparse.proved
    assert ks.minimize(ks.Quadratic(scipy.sparse.csr_matrix(Q), c), 3).status is Status.UNBOUNDED
    assert ks.minimize(ks.PrincipalComponent(scipy.sparse.csr_matrix(Q @ Q)), 3).status is Status.UNBOUNDED


def test_variables_without_curvature_run_off():
    for Q in (np.zeros((30, 30)), np.diag(np.r_[np.ones(29), 0.0])):
        assert ks.minimize(ks.Quadratic(Q, -np.ones(30)), 4, ks.Nonnegative()).status is Status.UNBOUNDED
    held = ks.minimize(ks.Quadratic(np.zeros((30, 30)), -np.arange(30.0)), 4, ks.Polyhedron(np.ones((1, 30)), [1.0], lower=0.0))
    assert held.fun == pytest.approx(-29.0)


@pytest.mark.parametrize("set_name", ["WholeSpace", "Hyperplane", "Box", "BudgetBox of vectors", "Polyhedron", "Nonnegative"])
def test_no_false_proofs_on_dependent_columns(set_name):
    searched = ks.SearchSettings(enumerated=0, enumerated_dear=0)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((int(rng.integers(3, 7)), 14))
        A[:, 7:] = A[:, :7]
        loss, C = ks.LeastSquares(A, 10 * rng.standard_normal(len(A))), catalogue.SETS[set_name](14)
        result = ks.minimize(loss, 5, C, n_restarts=0, settings=searched)
        if not result.proved:
            continue
        for j, i in itertools.product(result.support, np.setdiff1d(np.arange(14), result.support)):
            support = np.union1d(np.setdiff1d(result.support, [j]), [i])
            try:
                assert polish(loss, C, support, np.zeros(support.size)).value >= result.fun - 1e-7
            except ks.InfeasibleError:
                continue


@pytest.mark.slow
def test_forced_lists_with_polyhedra_and_budgets():
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n = 40
        Z = rng.standard_normal((60, n))
        E = np.vstack([np.ones(n), rng.uniform(0, 1, n)])
        forced = int(rng.integers(n))
        C = ks.Polyhedron(None, None, E, [1, 0.5], lower=0.0)
        result = ks.minimize(ks.Quadratic(Z.T @ Z), 4, C, forced_in=[forced], forced_out=[(forced + 1) % n])
        assert result.support.size <= 4
        assert np.union1d(result.support, [forced]).size <= 4
        assert result.x[(forced + 1) % n] == 0
        assert result.maxcv <= 1e-9
    up = np.r_[np.full(3, 0.9), np.full(10, 0.2), np.full(27, 0.01)]
    result = ks.minimize(ks.Quadratic(Z.T @ Z), 6, ks.BudgetBox(1.0, 0.0, up), forced_out=[0, 1, 2])
    assert result.success
    assert not result.x[:3].any()


def test_floors_that_leave_few_sizes(rng):
    Z = rng.standard_normal((60, 40))
    mu = rng.uniform(0, 1, 40)
    exactly_five = ks.minimize(ks.Quadratic(Z.T @ Z), 8, ks.BudgetBox(1.0, 0.0, 0.21), min_nonzero=0.19)
    assert exactly_five.support.size == 5
    C = ks.Polyhedron(None, None, np.vstack([np.ones(40), mu]), [1.0, 0.9], lower=0.0)
    result = ks.minimize(ks.Quadratic(Z.T @ Z), 10, C, min_nonzero=0.2)
    assert result.success
    assert result.x[result.support].min() >= 0.2 - 1e-12


def test_an_interrupt_inside_a_start_is_not_swallowed(rng):
    class Interrupting:
        def __init__(self, A, left):
            self._A, self.left, self.shape = A, left, A.shape

        @property
        def T(self):
            twin = Interrupting(self._A.T, self.left)
            return twin

        def __matmul__(self, v):
            self.left[0] -= 1
            if self.left[0] == 0:
                raise KeyboardInterrupt
            return self._A @ v

    A, b = rng.standard_normal((40, 30)), rng.standard_normal(40)
    for at in (35, 40, 50):
        result = ks.minimize(ks.LeastSquares(Interrupting(A, [at]), b), 5)
        assert result.status is Status.INTERRUPTED
        assert result.support.size <= 5


def test_threads_do_not_change_the_answer_of_other_losses(rng):
    A = rng.standard_normal((40, 60))
    loss = ks.Logistic(A, A[:, 0] + rng.standard_normal(40) > 0)
    runs = [ks.minimize(loss, 4, n_restarts=8, random_state=1, n_jobs=jobs) for jobs in (1, 2)]
    np.testing.assert_array_equal(runs[0].x, runs[1].x)
    assert [row["swaps"] for row in runs[0].outcomes] == [row["swaps"] for row in runs[1].outcomes]


def test_a_start_on_a_set_with_inequality_rows(rng):
    A = rng.standard_normal((60, 40))
    b = A[:, :5].sum(axis=1) + rng.standard_normal(60)
    C = ks.Polyhedron(np.ones((2, 40)), [3.0, 4.0], lower=np.full(40, -1.0), upper=np.full(40, 1.0))
    x0 = np.zeros(40)
    x0[:4] = 0.25
    result = ks.minimize(ks.LeastSquares(A, b), 4, C, x0=x0)
    assert result.success
    assert result.fun <= 0.5 * np.sum((A @ x0 - b) ** 2)
