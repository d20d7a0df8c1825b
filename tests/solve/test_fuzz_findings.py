"""What the fuzzer found in 5,000 problems of one run, each in a few lines."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse.linalg

import ksparse as ks
from ksparse.data.derived import standardize
from ksparse.errors import UndecidedError


@pytest.mark.parametrize("enumerated", [0, 10])
def test_every_variable_forced_out(enumerated):
    settings = ks.SearchSettings(enumerated=enumerated)
    with pytest.raises(ks.InfeasibleError, match="no point"):
        ks.minimize(ks.LeastSquares(np.ones((4, 1)), np.ones(4)), 1, ks.Simplex(), forced_out=[0], settings=settings)


def test_no_time_at_all_on_a_custom_set(rng):
    low, high = np.array([0.0, -0.6, -0.2, 0.0, -1.0]), np.array([4e-4, 0.08, 0.5, 0.9, 1.0])
    C = ks.CustomSet(lambda u: np.clip(u, low, high), lambda x: np.abs(x - np.clip(x, low, high)).max(), n=5)
    found = ks.minimize(ks.Quadratic(np.eye(5), rng.standard_normal(5)), 5, C, forced_in=[2, 4], max_time=0.0)
    assert found.maxcv <= 1e-12


def test_a_first_point_above_a_floor_is_worth_a_moment():
    Q = np.array([[1.1, 0.38, 1.1], [0.38, 0.49, 0.38], [1.1, 0.38, 1.1]])
    rows = np.array([[-0.65, 0.0, 0.19], [-0.16, 0.0, -0.38], [-0.71, -0.14, 1.64]])
    C = ks.Polyhedron(rows, np.array([-0.128, 0.258, -0.432]), lower=np.array([-0.5, -1.72, -1.17]), upper=0.5)
    found = ks.minimize(ks.Quadratic(Q, [1.3, 0.53, -0.3]), 2, C, max_time=0.0, min_nonzero=0.4)
    assert found.support.size <= 2
    assert np.abs(found.x[found.support]).min() >= 0.4 - 1e-9
    assert found.maxcv <= 1e-9


def test_a_function_that_overflows_on_few_variables():
    c = np.array([0.72, 0.03, -0.39, -0.06, -1.26])
    loss = ks.Custom(lambda x: float(np.cosh(x - c).sum()), lambda x: np.sinh(x - c), n=5, convex=True)
    with np.errstate(over="ignore"):
        found = ks.minimize(loss, 5, ks.Simplex(1000.0))
    assert found.fun == pytest.approx(np.cosh((1000 - c.sum()) / 5) * 5, rel=1e-6)


@pytest.mark.parametrize("penalty", [ks.MCP(1e-3, 3.7), ks.SCAD(1e-3, 3.7), ks.CappedL1(1e-3, 2.0), ks.LogSum(1e-3, 2.0)])
def test_flat_penalties_of_large_entries_do_not_cancel(penalty):
    ends = [penalty.value(np.array([size, -size])) for size in (1e3, 1e20, 1e100)]
    assert 0 < ends[0] <= ends[1] <= ends[2] < 1.0


def test_nothing_is_printed_past_python(tmp_path):
    code = (
        "import os\nfrom ksparse.numerics.linear_programs import silenced\n"
        "print('before')\nwith silenced():\n    with silenced():\n        os.write(1, b'noise')\n    os.write(1, b'noise')\nprint('after')"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert ran.stdout.split() == ["before", "after"]


def test_a_constant_column_of_a_sparse_table_has_no_variance_at_all(rng):
    X = np.column_stack([rng.standard_normal(6), np.ones(6)])
    loss = ks.MeanVariance.from_returns(scipy.sparse.csr_array(X), 1.0)
    assert loss.value(np.array([0.0, 1e30])) == pytest.approx(-1e30)


def test_the_tip_of_a_cone_is_projected_onto():
    C = ks.Polyhedron([[0.337067, -1.0], [0.49455802, 1.0], [0.43861238, -1.0]], np.zeros(3), lower=-1.0, upper=1.0)
    np.testing.assert_allclose(C.project(np.array([1.0, 0.61032469])), [0.0, 0.0], atol=1e-14)


@pytest.mark.parametrize("method", ["gist", "nmapg", "apdca", "auto"])
def test_a_flat_quadratic_without_a_linear_part_is_bounded(method):
    Z = np.random.default_rng(3).standard_normal((2, 3))
    found = ks.minimize(ks.MeanVariance(Z.T @ Z, np.zeros(3), 30.0), 3, method=method, **({} if method == "auto" else {"rho": 0.01}))
    assert found.status is not ks.Status.UNBOUNDED
    assert found.fun == pytest.approx(0.0, abs=1e-9)


def test_a_row_on_small_entries_is_met_beside_large_ones():
    C = ks.Polyhedron([[-1.0, 0.0, 0.0]], [0.0], lower=-0.5, upper=1.0)
    x = C.project(np.array([-1.7e-13, 1.2, 0.3]))
    assert C.contains(x)
    np.testing.assert_allclose(x, [0.0, 1.0, 0.3], atol=1e-15)


def test_a_projection_that_fails_ends_a_run_with_the_best_point_so_far(monkeypatch):
    plain, calls = ks.Box.project, []

    def project(self, u):
        calls.append(u)
        if len(calls) == 6:
            raise UndecidedError("no optimum of the quadratic program could be found to rounding")
        return plain(self, u)

    monkeypatch.setattr(ks.Box, "project", project)
    found = ks.minimize_penalized(ks.LeastSquares(np.diag([1.0, 30.0]), np.ones(2)), ks.TopK2(0.1, 1), C=ks.Box(-1.0, 1.0))
    assert found.status is ks.Status.NUMERICAL_TROUBLE
    assert not found.success
    assert np.abs(found.x).max() <= 1.0


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
    for loss in (ks.Quadratic(np.diag([1.0, 0.0]), np.ones(2)), ks.Custom(lambda x: float(-x.sum()), lambda x: -np.ones(2), n=2)):
        assert ks.minimize(loss, 1, C).status is not ks.Status.UNBOUNDED


def test_curvature_that_is_rounding_stops_nothing():
    returns = np.array([[-0.6344718847759646, 1.2689438458379236], [-0.06698153801551737, 0.1339633026041]])  # no risk, some return
    found = ks.minimize(ks.MeanVariance.from_returns(returns, 30.0), 2, ks.Nonnegative())
    assert found.status is ks.Status.UNBOUNDED


@pytest.mark.parametrize("settings", [ks.SearchSettings(), ks.SearchSettings(enumerated=0, enumerated_dear=0)])
def test_a_path_does_not_begin_from_what_has_no_end(settings):
    loss = ks.PrincipalComponent([[1.2, 0.16, -0.75], [0.16, 0.44, -0.17], [-0.75, -0.17, 1.14]])
    path = ks.k_path(loss, [1, 2, 3], ks.Hyperplane(b=0.0), settings=settings)
    assert [found.status is ks.Status.UNBOUNDED for found in path.results] == [False, True, True]


def test_a_kick_takes_away_both_of_two_under_a_budget():
    risk = np.array([4.0, -2.0, 0.0, 4.0, 6.0])  # of rank 1, and two of the same risk and other returns
    loss = ks.MeanVariance(np.outer(risk, risk), [0.18, 0.16, -0.72, -0.31, 0.89], 0.5)
    found = ks.minimize(loss, 2, ks.Hyperplane(b=-2.0), settings=ks.SearchSettings(enumerated=0))
    assert found.status is ks.Status.UNBOUNDED


def test_means_of_a_sparse_table_in_single_precision_are_rounded_once():
    column = np.array([2, -1, 2, 2, -3, 3, -1, -2, -2], dtype=np.float32)
    assert not standardize(scipy.sparse.csr_array(np.outer(column, [1, 1, 2]).astype(np.float32)), "X", scale=False)[1].any()


@pytest.mark.parametrize("enumerated", [0, 2000])
def test_starts_that_know_of_the_curvature(enumerated):
    settings = ks.SearchSettings(enumerated=enumerated, enumerated_dear=enumerated)
    flat = ks.PrincipalComponent([[8.0, 0.0, -8.0], [0.0, 0.0, 0.0], [-8.0, 0.0, 8.0]])  # along every vector of even signs and sizes
    assert ks.minimize(flat, 3, ks.L1Ball(100.0), settings=settings).fun == pytest.approx(-80000.0)
    low, high = np.zeros(2), np.array([1.0, 1.4])
    C = ks.CustomSet(lambda u: np.clip(u, low, high), lambda x: np.abs(x - np.clip(x, low, high)).max(), n=2)
    beyond = ks.Quadratic(np.diag([0.0, -1.0]), [1.0, 0.48])  # 0 is a valley, the other end a deeper one
    assert ks.minimize(beyond, 2, C, settings=settings).fun == pytest.approx(0.48 * 1.4 - 0.98)


def test_a_guess_rules_no_exchange_out():
    loss = ks.Huber([[-0.3148, 0.3067, 0.6296, -1.76, -2.0474]], [0.4837], delta=0.7)  # where it is linear its model is flat
    C = ks.BudgetBox(1.4548, [-1.0796, 0.2, -0.7766, -1.315, -0.1096], [0.0705, 0.7, 0.0056, 1.0592, 0.762])
    begin = np.array([0.9886, -0.2355, 1.1916, 1.2876, -1.3383])
    off = ks.minimize(loss, 3, C, x0=begin, settings=ks.SearchSettings(enumerated=0, enumerated_dear=0))
    assert off.fun == pytest.approx(ks.minimize(loss, 3, C).fun)


def test_a_minimum_further_out_than_one_near_0():
    c = np.array([0.64, -0.378])
    loss = ks.Custom(lambda x: float(((x**2 - 1) ** 2).sum() / 4 + c @ x), lambda x: x**3 - x + c, n=2, convex=False)
    found = ks.minimize(loss, 2, ks.Box([-1.4, -1.0], [0.8, -0.5]))
    assert found.x[1] == pytest.approx(-0.639, abs=1e-2)  # at -0.5 it is a minimum too


def test_a_penalised_run_on_data_that_overflow_warns_of_nothing():
    A = np.array([[-1.1e98, 2.1e99, 6.3e98, 9.2e97], [1.6e98, -9.1e98, 7.0e99, -1.2e97]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = ks.minimize_penalized(ks.Poisson(A, [1.0, 1.0]), ks.TopK1(0.1, 3), method="gist", max_iter=300)
    assert np.isfinite(result.x).all()


def test_the_relaxation_in_values_of_any_size(rng):
    A, b = 1e100 * rng.standard_normal((5, 3)), 1e100 * rng.standard_normal(5)
    found = ks.minimize(ks.LeastSquares(A, b), 3, ks.BudgetBox(1.0, 0.0, np.inf), min_nonzero=0.1, settings=ks.SearchSettings(enumerated=0))
    assert found.success


def test_a_component_keeps_a_forced_variable_that_explains_nothing():
    loss = ks.PrincipalComponent.from_factor([[0.845, 0.0, -0.411]])
    settings = ks.SearchSettings(enumerated=0, enumerated_dear=0)
    found = ks.minimize(loss, 1, ks.L2Ball(), forced_in=[1], forced_out=[2], settings=settings)
    assert set(found.support) <= {1}


def test_a_point_that_arithmetic_can_hardly_find_is_not_called_missing():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((10, 6)) * np.array([1e3, 1e-2, 1e-6, 1e2, 1e5, 1e1])
    row = np.array(
        [[0.14580577220508742, 0.7311378927283557, 1.0659783944294328, -0.8126050889276193, -0.5825759106055975, -0.06810361566658703]]
    )
    low = np.array([-0.5, -1.3848676249484628, -0.5, -2.7154569379862252, -0.5, -0.5])
    high = np.array([0.993269658671819, 0.5, 1.50972624524191, 0.5, 0.8597898623459348, 0.735459418969699])
    C = ks.Polyhedron(None, None, row, [2.0759587122060235], lower=low, upper=high)  # hardly more than a point without two of them
    found = ks.minimize(
        ks.LeastSquares(A, rng.standard_normal(10)), 5, C, forced_out=[1, 3], min_nonzero=0.001, settings=ks.SearchSettings(enumerated=0)
    )
    assert found.maxcv < 1e-9
    assert (np.abs(found.x[found.support]) >= 0.001).all()


def test_a_variable_without_risk_and_without_a_bound():
    """Exchanges rank by curvature: one that has none must be looked at by itself."""
    loss = ks.MeanVariance(np.diag([4.0, 0, 0, 0, 0, 0, 0]), [-0.79, 0.83, -0.08, -1.65, 0.66, 1.16, -0.43], 30.0)
    low = [-np.inf, -np.inf, -0.8, -0.08, 0.0, -0.68, -0.01]
    C = ks.Box(low, [0.01, 1.3, 1.1, 0.7, np.inf, 1.3, 0.09])
    assert ks.minimize(loss, 3, C, settings=ks.SearchSettings(enumerated=0)).status is ks.Status.UNBOUNDED


def test_a_proof_of_a_value_that_is_rounding():
    A, rng = np.array([[-1.08, 0.8, -0.26, -0.62, -1.75, -0.86, 0.19, -0.4]]), np.random.default_rng(0)
    C = ks.Polyhedron(rng.standard_normal((2, 8)), [0.5, 0.7], np.ones((1, 8)), [0.0], lower=-1.0, upper=1.0)
    found = ks.minimize(ks.LeastSquares(A, [0.0]), 3, C, gap=1e-9, max_nodes=50, settings=ks.SearchSettings(enumerated=0))
    assert found.fun <= 1e-20


def test_two_variables_that_are_flat_together():
    loss = ks.Quadratic([[8, -8, -4], [-8, 8, 4], [-4, 4, 2]], [-3, 2, 0])
    C = ks.Box([-0.11, -np.inf, -np.inf], [0.57, 1.4, np.inf])
    assert ks.minimize(loss, 2, C, settings=ks.SearchSettings(enumerated=0)).status is ks.Status.UNBOUNDED
    assert ks.minimize(loss, 2, ks.Box(-1.0, 1.4), settings=ks.SearchSettings(enumerated=0)).success


def test_an_unbounded_problem_above_a_floor_has_a_point():
    factor = np.array([[10, 2, 4, 0, 0, 0], [-6, 4, 2, 1, 4, -2]])  # a budget of 0.3 that no single position of 0.4 meets
    loss, C = ks.MeanVariance(factor.T @ factor, [4, -4, 1, 10, -8, 1], 30.0), ks.Hyperplane([0.0, 2.0, 0.0, 1.85, 1.51, 0.82], 0.3)
    found = ks.minimize(loss, 3, C, min_nonzero=0.4, settings=ks.SearchSettings(enumerated=0))
    assert found.status is ks.Status.UNBOUNDED
    assert found.maxcv <= 1e-9


NOT_ALL = ks.SearchSettings(enumerated=0, enumerated_dear=0)


def test_a_component_is_not_left_at_0_where_it_explains_nothing():
    ball = ks.CustomSet(lambda u: u / max(1.0, np.linalg.norm(u)), lambda x: max(0.0, np.linalg.norm(x) - 1.0), n=2)
    found = ks.minimize(ks.PrincipalComponent(np.diag([0.0, 1.0])), 1, ball, settings=NOT_ALL)
    assert found.fun == pytest.approx(-1.0)


def test_few_exchanges_are_tried_where_none_can_be_proved():
    """The data are so small that no proof holds; the other of two variables is better."""
    loss = ks.MeanVariance(np.diag([2.0, 1.0]) * 1e-200, [-1e-100, 1e-100], 0.5)
    assert list(ks.minimize(loss, 1, ks.Simplex(0.1), settings=NOT_ALL).support) == [1]


@pytest.mark.parametrize(("kind", "seed"), [("huber", 11), ("poisson", 6), ("logistic", 6)])
def test_nearly_equal_columns_of_a_smooth_loss(kind, seed):
    """The best point is far out along their difference, which H = AᵀDA hardly sees: the model is solved from the data."""
    rng = np.random.default_rng(seed)
    A, b = rng.standard_normal((8, 3)), rng.integers(0, 2, 8).astype(float)
    A[:, 1] = A[:, 0] + 1e-8 * A[:, 1]
    losses = {"huber": lambda A: ks.Huber(A, b, delta=3.0), "poisson": lambda A: ks.Poisson(A, b), "logistic": lambda A: ks.Logistic(A, b)}
    make = losses[kind]
    apart = make(np.column_stack([A[:, 0], (A[:, 1] - A[:, 0]) / 1e-8]))  # the same space, in a better basis
    C = ks.Box([-np.inf, -np.inf, -0.1], [np.inf, np.inf, 0.1])
    assert ks.minimize(make(A), 2, C, settings=NOT_ALL).fun <= ks.minimize(apart, 2).fun * (1 + 1e-6)


@pytest.mark.parametrize("seed", [18, 20, 25])
def test_a_program_of_very_different_columns_is_solved_to_rounding(seed):
    """Many small steps drift from the budget, and the answer was refused; PIQP has none."""
    rng = np.random.default_rng(seed)
    A, low = rng.standard_normal((10, 6)) * 10.0 ** rng.integers(-6, 7, 6), -rng.uniform(0.3, 1.5, 6)
    C = ks.BudgetBox(0.8 * low.sum(), low, rng.uniform(0.1, 1.5, 6))
    loss = ks.LeastSquares(A, rng.standard_normal(10))
    found = ks.minimize(loss, 6, C, min_nonzero=0.4, settings=NOT_ALL)
    assert found.fun <= ks.minimize(loss, 6, C, min_nonzero=0.4).fun * (1 + 1e-6)


def test_no_time_to_look_at_an_operator(rng):
    Q = scipy.sparse.linalg.aslinearoperator(np.diag([1.4, 1.3, 0.8]))
    found = ks.minimize(ks.MeanVariance(Q, rng.standard_normal(3), 30.0), 1, ks.Box(-1.0, 1.0), max_time=0.0, settings=NOT_ALL)
    assert found.status is ks.Status.TIME_LIMIT


def test_a_component_that_two_variables_carry_for_ever():
    """On the hyperplane no single one leaves 0, and there it is stationary."""
    loss = ks.PrincipalComponent(np.diag([0.9, 1.0, 0.8, 2.4]))
    found = ks.minimize(loss, 2, ks.Hyperplane(b=0.0), forced_out=[1, 2], settings=NOT_ALL)
    assert found.status is ks.Status.UNBOUNDED


def test_a_function_that_overflows_on_all_of_the_set():
    c = np.array([-0.7, 1.4])
    loss = ks.Custom(lambda x: float(np.cosh(x - c).sum()), lambda x: np.sinh(x - c), n=2)
    with np.errstate(over="ignore"):
        found = ks.minimize(loss, 1, ks.Simplex(1000.0), settings=NOT_ALL)
    assert found.status is ks.Status.NUMERICAL_TROUBLE


def test_little_curvature_beside_other_variables_is_curvature():
    loss = ks.Quadratic(np.diag([1e-92, 1e-105, 1e-111]), [-0.1, 0.7, -1.4])
    found = ks.minimize(loss, 2, method="gist", max_iter=300, rho=[0.01, 1.0])
    assert found.status is not ks.Status.UNBOUNDED


@pytest.mark.parametrize("kind", ["component", "regression"])
def test_a_tree_where_the_forced_variables_are_all_there_may_be(kind, rng):
    X = rng.standard_normal((12, 4))
    component = ks.PrincipalComponent.from_data(X, scale=False), 1, ks.L2Ball(0.7)
    loss, k, C = component if kind == "component" else (ks.LeastSquares(X, X @ np.ones(4)), 1, None)
    found = ks.minimize(loss, k, C, forced_in=[0], gap=0.05, settings=NOT_ALL)
    assert list(found.support) == [0]
    assert found.status is ks.Status.OPTIMAL


def test_a_component_of_one_column_on_a_hyperplane():
    """It takes that column and another, and 0 is stationary."""
    loss = ks.PrincipalComponent(np.diag([0.0, 0.0, 0.0, 0.0, 0.0, 1.0]))
    assert ks.minimize(loss, 3, ks.Hyperplane(b=0.0), settings=NOT_ALL).status is ks.Status.UNBOUNDED


def test_counts_in_single_precision_are_one_function():
    """Where exp is cut short, it is so in the exact solves too."""
    A, y = np.array([[48.0], [1.0]], dtype=np.float32), np.array([5.0, 1.0], dtype=np.float32)
    loss = ks.Poisson(A, y)
    found = ks.minimize(loss, 1, ks.BudgetBox(1.0, 0.0, np.inf))
    assert found.fun == pytest.approx(loss.value(found.x), rel=1e-5)


def test_a_level_between_numbers_whose_product_vanishes():
    C = ks.BudgetBox(1.42e100, np.array([-1.22e100]), np.array([1.42e100]))
    loss = ks.Poisson(np.array([[2e-100], [0.0], [0.0], [0.0]]), [0.0, 2.0, 1.0, 1.0], sample_weight=[1.0, 0.0, 2.5, 1.5])
    assert np.isfinite(ks.minimize(loss, 1, C, gap=1e-9, max_nodes=200).fun)
