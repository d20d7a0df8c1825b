""" "Unbounded" is reported if and only if it holds."""

import numpy as np
import pytest
import scipy.sparse

import ksparse as ks
from ksparse import Status
from ksparse.firstorder.loop import drive
from ksparse.firstorder.problem import Problem, Stopping

SEARCHED = ks.SearchSettings(enumerated=0)  # not by trying every support


@pytest.mark.parametrize("method", ["auto", "pdca", "apdca"])
def test_a_flat_direction_downhill_is_unbounded_and_found_soon(method):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3, 6))
    loss = ks.MeanVariance(X.T @ X, rng.standard_normal(6), 10.0)
    result = ks.minimize(loss, 5, ks.Hyperplane(), method=method)
    assert result.status is Status.UNBOUNDED
    assert not result.success
    assert result.support.size <= 5
    assert result.nfev <= 25_000  # for one weight: the others are not begun


@pytest.mark.parametrize("method", ["auto", "pdca", "apdca"])
def test_a_loss_that_is_linear_on_a_support(method):
    result = ks.minimize(ks.Quadratic(np.diag([1.0, 0.0]), [0, -1.0]), 1, method=method, rho=1.0)
    assert result.status is Status.UNBOUNDED
    bounded = ks.minimize(ks.Quadratic(np.diag([1.0, 0.0]), [0, -1.0]), 1, ks.Box(-1.0, 3.0), method=method, rho=1.0)
    assert bounded.fun == pytest.approx(-3.0)


def test_linear_drift_is_unbounded():
    """A fixed step along a flat direction: x grows by a constant, and would need 1e20 steps to look large."""
    Q = np.diag([1.0, 2.0, 0.0])
    run = drive(
        ks.PDCA(ks.FixedStep()), Problem(ks.Quadratic(Q, [0, 0, 1.0]), ks.L1(0.1)), np.ones(3), Stopping(tol=0.0)
    )
    assert run.status is Status.UNBOUNDED
    assert run.nit <= 2000


def test_slow_convergence_is_not_mistaken_for_drift(rng):
    A = rng.standard_normal((30, 30)) @ np.diag(np.logspace(0, -6, 30))
    problem = Problem(ks.LeastSquares(A, rng.standard_normal(30)), ks.L1(1e-9))
    assert (
        drive(ks.PDCA(ks.FixedStep()), problem, np.zeros(30), Stopping(tol=0.0, max_iter=3000)).status
        is Status.ITERATION_LIMIT
    )
    X = np.linspace(-1, 1, 10)[:, None]
    logistic = Problem(ks.Logistic(X, X[:, 0] > 0), ks.L1(1e-12))  # separable: F falls for ever, but not below 0
    assert drive(ks.APDCA(), logistic, np.zeros(1), Stopping(tol=0.0, max_iter=3000)).status is not Status.UNBOUNDED


def few_periods():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((10, 30))
    return ks.MeanVariance(Z.T @ Z / 10, rng.standard_normal(30), 1.0)


@pytest.mark.parametrize(
    ("C", "options"),
    [
        (ks.Box(-50, np.inf), {}),
        (ks.Box(-50, np.inf), {"min_nonzero": 0.1}),
        (ks.Polyhedron(np.ones((1, 30)), [1e3], lower=-50.0), {}),
    ],
)
def test_fewer_periods_than_assets_is_unbounded_only_where_k_assets_are(C, options):
    result = ks.minimize(few_periods(), 8, C, **options)
    assert result.success
    assert ks.minimize(few_periods(), 30, C, **options).status is not Status.UNBOUNDED or isinstance(C, ks.Box)


def test_least_squares_is_never_unbounded(rng):
    A = rng.standard_normal((4, 6)) * np.logspace(-8, 0, 6)
    C = ks.Polyhedron(-np.eye(6) * 1e-8, np.zeros(6))
    for method in ("auto", "pdca", "apdca"):
        assert (
            ks.minimize(ks.LeastSquares(A, rng.standard_normal(4)), 4, C, method=method, rho=1.0).status
            is not Status.UNBOUNDED
        )


def test_small_positive_curvature_is_not_unbounded():
    Q = np.array([[1, 1], [1, 1 + 2.0**-44]])  # exactly positive definite
    assert ks.minimize(ks.Quadratic(Q, [1.0, -1.0]), 2).status is not Status.UNBOUNDED
    cut_off_far = ks.Polyhedron([[1e-10, 1]], [1.0], lower=0.0)
    assert ks.minimize(ks.Quadratic(np.diag([-1.0, 1.0])), 2, cut_off_far).fun == pytest.approx(-5e19)


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
    held = ks.minimize(
        ks.Quadratic(np.zeros((30, 30)), -np.arange(30.0)), 4, ks.Polyhedron(np.ones((1, 30)), [1.0], lower=0.0)
    )
    assert held.fun == pytest.approx(-29.0)


@pytest.mark.parametrize("method", ["gist", "nmapg", "apdca", "auto"])
def test_a_flat_quadratic_without_a_linear_part_is_bounded(method):
    Z = np.random.default_rng(3).standard_normal((2, 3))
    found = ks.minimize(
        ks.MeanVariance(Z.T @ Z, np.zeros(3), 30.0), 3, method=method, **({} if method == "auto" else {"rho": 0.01})
    )
    assert found.status is not ks.Status.UNBOUNDED
    assert found.fun == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("C", [ks.L2Ball(7e99), ks.Box(np.full(3, -1e99), np.full(3, 7e99)), ks.Simplex(1e99)])
@pytest.mark.parametrize("method", ["iht", "pdca", "auto"])
def test_a_bounded_set_is_never_unbounded_however_large(C, method):
    concave = np.array([[0.2, 0.9, 1.1], [0.9, 0.8, 0.4], [1.1, 0.4, -0.9]])
    weight = {} if method == "auto" else {"rho": 0.01, "max_iter": 300}
    for scale in (1.0, 1e-100):
        found = ks.minimize(ks.Quadratic(scale * concave, [1.1, 0.4, -1.2]), 2, C, method=method, **weight)
        assert found.status is not ks.Status.UNBOUNDED


def test_a_bounded_set_that_only_projects_is_never_unbounded_however_large():
    C = ks.CustomSet(lambda u: np.clip(u, -1e30, 1e30), lambda x: max(0.0, float(np.abs(x).max()) - 1e30), n=2)
    for loss in (
        ks.Quadratic(np.diag([1.0, 0.0]), np.ones(2)),
        ks.Custom(lambda x: float(-x.sum()), lambda x: -np.ones(2), n=2),
    ):
        assert ks.minimize(loss, 1, C).status is not ks.Status.UNBOUNDED


def test_curvature_that_is_rounding_stops_nothing():
    # no risk, some return
    returns = np.array([[-0.6344718847759646, 1.2689438458379236], [-0.06698153801551737, 0.1339633026041]])
    found = ks.minimize(ks.MeanVariance.from_returns(returns, 30.0), 2, ks.Nonnegative())
    assert found.status is ks.Status.UNBOUNDED


@pytest.mark.parametrize("settings", [None, SEARCHED])
def test_a_path_does_not_begin_from_what_has_no_end(settings):
    loss = ks.PrincipalComponent([[1.2, 0.16, -0.75], [0.16, 0.44, -0.17], [-0.75, -0.17, 1.14]])
    path = ks.k_path(loss, [1, 2, 3], ks.Hyperplane(b=0.0), settings=settings)
    assert [found.status is ks.Status.UNBOUNDED for found in path.results] == [False, True, True]


def test_a_kick_takes_away_both_of_two_under_a_budget():
    risk = np.array([4.0, -2.0, 0.0, 4.0, 6.0])  # of rank 1, and two of the same risk and other returns
    loss = ks.MeanVariance(np.outer(risk, risk), [0.18, 0.16, -0.72, -0.31, 0.89], 0.5)
    found = ks.minimize(loss, 2, ks.Hyperplane(b=-2.0), settings=ks.SearchSettings(enumerated=0))
    assert found.status is ks.Status.UNBOUNDED


def test_a_variable_without_risk_and_without_a_bound():
    """Swaps rank by curvature: a variable without curvature needs its own check."""
    loss = ks.MeanVariance(np.diag([4.0, 0, 0, 0, 0, 0, 0]), [-0.79, 0.83, -0.08, -1.65, 0.66, 1.16, -0.43], 30.0)
    low = [-np.inf, -np.inf, -0.8, -0.08, 0.0, -0.68, -0.01]
    C = ks.Box(low, [0.01, 1.3, 1.1, 0.7, np.inf, 1.3, 0.09])
    assert ks.minimize(loss, 3, C, settings=ks.SearchSettings(enumerated=0)).status is ks.Status.UNBOUNDED


def test_two_variables_that_are_flat_together():
    loss = ks.Quadratic([[8, -8, -4], [-8, 8, 4], [-4, 4, 2]], [-3, 2, 0])
    C = ks.Box([-0.11, -np.inf, -np.inf], [0.57, 1.4, np.inf])
    assert ks.minimize(loss, 2, C, settings=ks.SearchSettings(enumerated=0)).status is ks.Status.UNBOUNDED
    assert ks.minimize(loss, 2, ks.Box(-1.0, 1.4), settings=ks.SearchSettings(enumerated=0)).success


def test_an_unbounded_problem_above_a_floor_has_a_point():
    # a budget of 0.3 that no single position of 0.4 meets
    factor = np.array([[10, 2, 4, 0, 0, 0], [-6, 4, 2, 1, 4, -2]])
    loss, C = (
        ks.MeanVariance(factor.T @ factor, [4, -4, 1, 10, -8, 1], 30.0),
        ks.Hyperplane([0.0, 2.0, 0.0, 1.85, 1.51, 0.82], 0.3),
    )
    found = ks.minimize(loss, 3, C, min_nonzero=0.4, settings=ks.SearchSettings(enumerated=0))
    assert found.status is ks.Status.UNBOUNDED
    assert found.maxcv <= 1e-9


def test_a_component_that_two_variables_carry_for_ever():
    """On the hyperplane no single variable can leave 0, where φ is stationary."""
    loss = ks.PrincipalComponent(np.diag([0.9, 1.0, 0.8, 2.4]))
    found = ks.minimize(loss, 2, ks.Hyperplane(b=0.0), forced_out=[1, 2], settings=SEARCHED)
    assert found.status is ks.Status.UNBOUNDED


def test_little_curvature_beside_other_variables_is_curvature():
    loss = ks.Quadratic(np.diag([1e-92, 1e-105, 1e-111]), [-0.1, 0.7, -1.4])
    found = ks.minimize(loss, 2, method="gist", max_iter=300, rho=[0.01, 1.0])
    assert found.status is not ks.Status.UNBOUNDED


def test_a_component_of_one_column_on_a_hyperplane():
    """Descent needs that column and another, and 0 is stationary."""
    loss = ks.PrincipalComponent(np.diag([0.0, 0.0, 0.0, 0.0, 0.0, 1.0]))
    assert ks.minimize(loss, 3, ks.Hyperplane(b=0.0), settings=SEARCHED).status is ks.Status.UNBOUNDED


@pytest.mark.parametrize(
    "rules", [{}, {"groups": [0, 1, 2, 1, 3]}, {"groups": [0, 1, 2, 1, 3], "forced_out": [3]}], ids=str
)
def test_a_flat_direction_is_found_beside_the_variables_that_C_needs(rules):
    """φ falls along the last variable, but C has no point with that variable alone."""
    H = np.diag([1.3, 1.1, 0.8, 1.4, 0.0])
    loss, C = ks.Quadratic(H, [-1.4, 0.3, 0.1, -0.4, -0.6]), ks.Hyperplane([-1.9, 0.01, 0.3, 2.0, 0.0], -2.0)
    assert ks.minimize(loss, 3, C, settings=SEARCHED, **rules).status is ks.Status.UNBOUNDED
