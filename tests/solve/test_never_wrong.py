"""Wrong statuses, infeasible answers and crashes that a fuzzer once found: each with what must hold instead."""

import signal
import threading
import time
import warnings
from collections import Counter
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import LinearOperator

import ksparse as ks
from ksparse import Status
from ksparse.firstorder.drive import Stopping
from ksparse.firstorder.problem import Products
from ksparse.numerics.bound import Noise, shortfall
from ksparse.search.candidate import Candidate
from ksparse.search.incumbent import Incumbent
from ksparse.solve.judge import judge_search
from ksparse.solve.request import check_request, support_problem


def polynomial():
    t = np.linspace(0, 1, 50)
    return np.vander(t, 14, increasing=True), np.sin(6 * t) + 0.01 * np.random.default_rng(0).standard_normal(50)


def few_periods():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((10, 30))
    return ks.MeanVariance(Z.T @ Z / 10, rng.standard_normal(30), 1.0)


# --- false proofs ----------------------------------------------------------------------------------------------------------


def test_least_squares_on_nearly_dependent_columns_is_solved_from_the_data():
    A, b = polynomial()
    best = 0.5 * float(np.sum((A @ np.linalg.lstsq(A, b)[0] - b) ** 2))
    for result in (ks.minimize(ks.LeastSquares(A, b), 14), ks.k_path(ks.LeastSquares(A, b), [13, 14])[14]):
        assert result.fun == pytest.approx(best, rel=1e-6)
        assert result.status is not Status.OPTIMAL or result.fun <= best * (1 + 1e-7)


@pytest.mark.parametrize("condition", [1e2, 1e6, 1e8, 1e10, 1e13])
def test_a_proof_on_ill_conditioned_columns_is_one(condition, rng):
    """The value is that of orthogonal arithmetic wherever optimality is claimed, and it is claimed where there is no doubt."""
    U, _ = np.linalg.qr(rng.standard_normal((40, 6)))
    V, _ = np.linalg.qr(rng.standard_normal((6, 6)))
    A, b = U @ np.diag(np.geomspace(1, 1 / condition, 6)) @ V, rng.standard_normal(40)
    best = 0.5 * float(b @ b - np.sum((U.T @ b) ** 2))
    result = ks.minimize(ks.LeastSquares(A, b), 6)
    if result.status is Status.OPTIMAL:
        assert result.fun <= best * (1 + 1e-7)
    assert (result.status is Status.OPTIMAL) >= (condition <= 1e6)


def test_small_curvature_beside_the_linear_part_on_a_polyhedron():
    loss = ks.MeanVariance(np.diag([3.0, 1.9, 1.4, 1.9]) * 1e-10, [-1e-5, 4.2e-5, 3e-5, 2.2e-5], 0.5)
    C = ks.Polyhedron(
        [[-1.0, 0.25, -1.1, 0.9], [-0.4, -2.5, 0, 0]], [-0.25, 0.0], np.ones((1, 4)), [-0.28], lower=np.full(4, -2.0)
    )  # fmt: skip
    result = ks.minimize(loss, 2, C)
    np.testing.assert_allclose(result.x, [0, 1.72, 0, -2], atol=1e-12)
    assert result.fun <= loss.value(np.array([0, 1.72, 0, -2.0])) + 1e-18


def test_the_shortfall_bounds_what_is_left_at_any_point(rng):
    """Whatever the point and the prices: no feasible point is better by more."""
    from ksparse.numerics.constraints import Linear
    from ksparse.numerics.qp import Objective

    for _ in range(200):
        Z = rng.standard_normal((5, 3))
        objective = Objective(Z.T @ Z, rng.standard_normal(3))
        linear = Linear.of(3, lower=-1.0, upper=2.0, G=rng.standard_normal((2, 3)), h=np.array([2.0, 2.0]))
        inside = rng.uniform(-1, 2, (400, 3))
        inside = inside[(inside @ linear.G.T <= linear.h).all(axis=1)]
        x, prices = inside[0], rng.standard_normal(2)
        best = min(objective.value(point) for point in inside)
        assert best >= objective.value(x) - shortfall(objective, linear, x, np.zeros(0), prices, Noise())


@pytest.mark.parametrize("set_name", ["whole", "nonnegative", "budget", "ball"])
def test_claims_of_swap_optimality_hold_for_nearly_dependent_columns(set_name):
    """Every neighbour is re-solved by orthogonal arithmetic: none may be better than a proof admits."""
    C = {"whole": None, "nonnegative": ks.Nonnegative(), "budget": ks.Hyperplane(), "ball": ks.L2Ball(50.0)}[set_name]
    for seed in range(6):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((30, 12))
        A[:, 6:] = A[:, :6] + 10.0 ** rng.uniform(-9, -2) * rng.standard_normal((30, 6))
        loss = ks.LeastSquares(A, A[:, 0] - A[:, 6] + 0.1 * rng.standard_normal(30))
        result = ks.minimize(loss, 3, C)
        if result.status not in (Status.SWAP_OPTIMAL, Status.OPTIMAL):
            continue
        for j in result.support:
            for i in np.setdiff1d(np.arange(12), result.support):
                support = np.sort(np.append(np.setdiff1d(result.support, [j]), i))
                other = ks.minimize(loss, 3, C, forced_in=support, forced_out=np.setdiff1d(np.arange(12), support))
                assert other.fun >= result.fun * (1 - 1e-6)


# --- false "unbounded" and false "infeasible" ---------------------------------------------------------------------------------


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
        assert ks.minimize(ks.LeastSquares(A, rng.standard_normal(4)), 4, C, method=method, rho=1.0).status is not Status.UNBOUNDED


def test_a_budget_met_by_forced_seats_alone():
    C = ks.BudgetBox(1.0, np.r_[0.1, np.zeros(24)], np.r_[0.2, np.full(24, 0.5)])
    result = ks.minimize(ks.LeastSquares(np.eye(25), np.ones(25)), 5, C)
    assert result.success
    assert result.fun == pytest.approx(11.6)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_infeasible_supports_are_not_accepted_in_any_units(scale):
    loss = ks.LeastSquares(1e-5 * np.diag([0.1, 1.0]), np.zeros(2))
    result = ks.minimize(loss, 1, ks.Polyhedron([[-1.0, -1.0], [1.0, 0.0]], [-scale, 0.2 * scale]))
    np.testing.assert_allclose(result.x, [0, scale])
    assert result.success


def test_tiny_sets_are_not_met_by_0():
    for C in (ks.Simplex(1e-12), ks.BudgetBox(1e-12, 0.0, 1.0), ks.Hyperplane(b=1e-12), ks.Box(np.r_[1e-12, 0.0], 1.0)):
        assert not C.contains(np.zeros(2))
        result = ks.minimize(ks.LeastSquares(np.eye(2), -np.ones(2)), 1, C)
        assert result.success
        assert abs(result.x.sum()) == pytest.approx(1e-12)


def test_a_generalised_model_on_a_large_simplex():
    rng = np.random.default_rng(1)
    result = ks.minimize(ks.Logistic(rng.standard_normal((19, 4)), (rng.random(19) < 0.5) * 1.0), 1, ks.Simplex(1000))
    assert result.x.sum() == pytest.approx(1000)
    assert result.success


@pytest.mark.slow
def test_a_floor_is_tried_on_both_sides_of_0():
    C = ks.BudgetBox(1.0, [-0.05, -1.0], [1.0, 2.0])
    result = ks.minimize(ks.LeastSquares(np.eye(2), [-1.0, 2.0]), 2, C, min_nonzero=0.1, forced_in=[0, 1])
    np.testing.assert_allclose(result.x, [0.1, 0.9])
    for seed in range(30):  # against all signs
        rng = np.random.default_rng(seed)
        loss = ks.LeastSquares(rng.standard_normal((6, 4)), 0.3 * rng.standard_normal(6))
        found = ks.minimize(loss, 4, ks.Box(-1.0, 1.0), min_nonzero=0.3, forced_in=range(4)).fun
        signs = np.array(np.meshgrid(*[[-1, 1]] * 4)).reshape(4, -1).T
        sides = [ks.Box(np.where(s > 0, 0.3, -1.0), np.where(s > 0, 1.0, -0.3)) for s in signs]
        assert found == pytest.approx(min(ks.minimize(loss, 4, side).fun for side in sides), rel=1e-9)


@pytest.mark.parametrize("method", ["pdca", "apdca", "iht", "l1dca"])
def test_the_papers_methods_find_a_sparse_point_of_a_polyhedron(method):
    """Unbounded variables: only one support of two has a point."""
    pytest.importorskip("clarabel")
    E = np.array([[1.0, 1.0, 1.0, 1.0, 0.0], [0.0, 1.0, 2.0, 3.0, 1.0]])
    C = ks.Polyhedron(None, None, E, [1.0, 7.0], lower=[0.0, 0.0, 0.0, 0.0, -np.inf])
    try:
        result = ks.minimize(ks.LeastSquares(np.eye(5), np.ones(5)), 2, C, method=method, rho=1.0)
    except ks.MissingPieceError:
        assert method == "iht"
        return
    assert result.maxcv <= 1e-9
    assert result.support.size <= 2


# --- components on boxes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 3])
def test_components_on_boxes_away_from_0(k, rng):
    Z = rng.standard_normal((9, 5))
    V = Z.T @ Z / 9
    result = ks.minimize(ks.PrincipalComponent(V), k, ks.Box(-3, 0))
    corners = -3.0 * np.array(np.meshgrid(*[[0, 1]] * 5)).reshape(5, -1).T
    assert result.fun <= min(-x @ V @ x for x in corners if np.count_nonzero(x) <= k) + 1e-9
    assert ks.minimize(ks.PrincipalComponent(V), k, ks.Box(-np.inf, 0)).status is Status.UNBOUNDED


def test_indefinite_quadratics_on_boxes_and_budgets(rng):
    """Against a fine grid, three variables at a time."""
    side = np.linspace(-1, 1, 41)
    grid = np.array(np.meshgrid(side, side, side)).reshape(3, -1).T
    for _ in range(20):
        Q = rng.standard_normal((3, 3))
        loss = ks.Quadratic(Q + Q.T, rng.standard_normal(3))
        values = 0.5 * np.einsum("ij,jk,ik->i", grid, Q + Q.T, grid) + grid @ loss.c
        assert ks.minimize(loss, 3, ks.Box(-1, 1)).fun <= values.min() + 1e-12
        on_budget = np.abs(grid.sum(axis=1) - 1.0) < 1e-9
        assert ks.minimize(loss, 3, ks.BudgetBox(1.0, -1.0, 1.0)).fun <= values[on_budget].min() + 1e-12


# --- users' own pieces -------------------------------------------------------------------------------------------------------


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
    with pytest.raises(ValueError, match="gradient must be that of value"):
        ks.minimize(loss, 2)
    with pytest.raises(ValueError, match="gradient must be that of value"):
        ks.minimize_penalized(loss, ks.L1(0.1))


@pytest.mark.parametrize("method", ["auto", "apdca"])
def test_calls_of_a_users_functions_are_counted(method, rng):
    loss, calls = quadratic_of_a_user(rng)
    for _ in range(2):
        calls[:] = [0, 0]
        result = ks.minimize(loss, 2, method=method)
        assert [result.nfev, result.njev] == calls


class CountedLogistic(ks.Logistic):
    """A logistic loss that notes each evaluation of φ and ∇φ; a second-order model is one of both."""

    calls: ClassVar = Counter()
    tested = True  # without the evaluations of a check

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


def test_a_loss_of_nan_is_refused():
    with pytest.raises(ValueError, match=r"value\(x\) must be a finite number, got nan"):
        ks.minimize(ks.Custom(lambda x: np.nan, lambda x: x, n=3), 2)


@pytest.mark.parametrize(
    ("project", "words"),
    [(lambda u: np.sin(37 * u), "leave the points of C where they are"), (lambda u: np.where(u > 0, 1.0, -1.0), "onto a convex set")],
)
def test_a_map_that_is_no_projection_is_refused(project, words, rng):
    C = ks.CustomSet(project, lambda x: 0.0, n=4)
    with pytest.raises(ValueError, match=words):
        ks.minimize(ks.LeastSquares(rng.standard_normal((9, 4)), rng.standard_normal(9)), 2, C)


# --- scales, precision, time ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e300, 1e-300])
def test_numbers_whose_squares_are_none_are_refused(size, rng):
    A, b = rng.standard_normal((9, 4)), rng.standard_normal(9)
    with pytest.raises(ValueError, match="A must hold"):
        ks.LeastSquares(size * A, b)
    with pytest.raises(ValueError, match="b must hold"):
        ks.LeastSquares(A, size * b)
    with pytest.raises(ValueError, match="Q must hold"):
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


class Cosines(LinearOperator):
    """Random rows of a cosine transform."""

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


def test_time_limits_reach_mixed_integer_programs(rng):
    returns = 0.01 * rng.standard_normal((300, 200)) + 0.01 * rng.standard_normal((300, 1))
    fund = ks.SparsePortfolio(20, max_weight=0.08, min_weight=0.01, groups=np.arange(200) % 11, group_caps=0.2, max_time=1)
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fund.fit(returns)
    assert time.perf_counter() - started < 15  # was 61 s; on a busy machine
    held = fund.weights_[fund.weights_ != 0]
    assert held.sum() == pytest.approx(1)
    assert held.min() >= 0.01 - 1e-12
    assert max(fund.weights_[np.arange(200) % 11 == g].sum() for g in range(11)) <= 0.2 + 1e-12


@pytest.mark.parametrize("method", ["auto", "apdca"])
def test_an_interrupt_at_any_moment_returns_a_point(method, rng):
    A, b = rng.standard_normal((400, 300)), rng.standard_normal(400)
    loss, C = ks.LeastSquares(A, b), ks.Box(-1.0, 1.0)
    main = threading.main_thread().ident
    escaped = 0
    for delay in (0.0, 0.001, 0.002, 0.004, 0.008, 0.015, 0.03, 0.06, 0.12):
        timer, result = threading.Timer(delay, lambda: signal.pthread_kill(main, signal.SIGINT)), None
        try:
            timer.start()
            result = ks.minimize(loss, 5, C, method=method, rho=1.0)
            timer.join()
        except KeyboardInterrupt:
            escaped += (
                delay > 0.002 and result is None
            )  # before there is a call there is nothing to return, and after the answer it is there
        if result is not None:
            assert result.support.size <= 5
            assert C.contains(result.x)
    assert escaped <= 3  # on a machine so busy that the call had not begun


# --- claims that arithmetic in other units would have refused --------------------------------------------------------------


@pytest.mark.parametrize("matrix", [np.asarray, scipy.sparse.csr_array])
def test_small_negative_curvature_beside_large_is_seen(matrix):
    loss = ks.Quadratic(matrix(np.diag([1e10, -1.0, 2.0])), [0, 0.1, 0])
    for k in (1, 3):
        assert ks.minimize(loss, k, ks.Box(-1, 1)).fun == pytest.approx(-0.6)
    tilted = np.ones((2, 2)) / 2 - 1e-11 * np.array([[1, -1], [-1, 1]]) / 2
    assert ks.minimize(ks.Quadratic(matrix(tilted)), 2).status is Status.UNBOUNDED


def test_small_positive_curvature_is_not_unbounded():
    Q = np.array([[1, 1], [1, 1 + 2.0**-44]])  # exactly positive definite
    assert ks.minimize(ks.Quadratic(Q, [1.0, -1.0]), 2).status is not Status.UNBOUNDED
    cut_off_far = ks.Polyhedron([[1e-10, 1]], [1.0], lower=0.0)
    assert ks.minimize(ks.Quadratic(np.diag([-1.0, 1.0])), 2, cut_off_far).fun == pytest.approx(-5e19)


def test_sparse_tables_far_from_0_keep_their_digits(rng):
    z = rng.standard_normal((60, 3))
    X = np.column_stack([z[:, 0], z[:, 0] + 0.5 * z[:, 1], z[:, 0] + 0.5 * z[:, 1] * 1.0002]) + 2e6 * np.array([1, 0.7, 0.5])
    dense, sparse = (ks.minimize(ks.PrincipalComponent.from_data(kind(X)), 2, ks.L2Ball()) for kind in (np.asarray, scipy.sparse.csr_array))
    assert sparse.fun == pytest.approx(dense.fun, rel=1e-8)


def test_a_polyhedron_of_columns_in_other_units_is_not_empty():
    ones = ks.LeastSquares(np.eye(2), np.ones(2))
    far = ks.minimize(ones, 1, ks.Polyhedron([[-1, -1e-10]], [-1.0], upper=[0, np.inf]))
    np.testing.assert_allclose(far.x, [0, 1e10])
    np.testing.assert_allclose(
        ks.minimize(ones, 2, ks.Polyhedron(None, None, [[1, -1e-10]], [0.0], [0.5, -np.inf], [2, np.inf])).x, [0.5, 5e9]
    )


def test_a_projection_that_stops_early_has_points():
    def project(u):  # onto the simplex, by Dykstra's alternation to 1e-8
        x, p = u.copy(), np.zeros(4)
        for _ in range(5000):
            y = np.clip(x + p, 0, 1)
            p = x + p - y
            following = y - (y.sum() - 1) / 4
            if np.abs(following - y).max() < 1e-8:
                break
            x = following
        return following

    C = ks.CustomSet(project, lambda x: max(abs(x.sum() - 1), -x.min(), x.max() - 1, 0.0), n=4)
    assert ks.minimize(ks.LeastSquares(np.eye(4), np.arange(1.0, 5.0)), 2, C).fun == pytest.approx(11.5, rel=1e-6)


def test_nearly_symmetric_is_made_symmetric():
    Q, c = np.diag([1e8, 1, 1.0]), np.array([0, -1.0, -1])
    Q[1, 2] = 0.9
    assert ks.minimize(ks.Quadratic(Q, c), 3).fun == pytest.approx(-0.6896551724)


def test_a_loss_that_ends_at_the_bounds(rng):
    loss = ks.Custom(lambda x: float((x**1.5 - 2 * x).sum()), lambda x: 1.5 * x**0.5 - 2, n=4)
    with np.errstate(invalid="ignore"):
        assert ks.minimize(loss, 2, ks.Nonnegative()).fun == pytest.approx(2 * ((16 / 9) ** 1.5 - 32 / 9), rel=1e-6)


def test_single_precision_at_0_is_summed_in_double(rng):
    for _ in range(20):
        A, b = np.ones((7, 1), dtype=np.float32), -rng.uniform(1.0, 9.0, 7).astype(np.float32)
        result = ks.minimize(ks.LeastSquares(A, b), 1, ks.Nonnegative(), gap=1e-6)
        assert not result.x.any()
        assert result.fun == pytest.approx(0.5 * float(np.sum(b.astype(float) ** 2)), rel=1e-14)
        assert result.lower_bound <= result.fun


@pytest.mark.parametrize(
    ("support", "x", "right"),
    [([0, 1], [1.0, 5.0], False), ([1], [5.0], False), ([2], [1.5], True), ([2], [0.4], False), ([2], [0.5 * (1 - 1e-10)], True)],
)
def test_the_judge_looks_at_barred_variables_and_floors(support, x, right):
    """Variable 0 is forced out, variable 1 is in a group with it, and nonzeros are at least 0.5."""
    request = check_request(ks.LeastSquares(np.eye(3), [1.0, 5.0, 1.5]), 1, None, None, Stopping(), groups=[0, 0, 1])
    problem = support_problem(request, (), [0], 0.5)
    best = Candidate.unpriced(np.array(support), np.array(x), 0.0)
    problem.__dict__["polish"] = lambda candidate: ks.search.polish.PolishedPoint(candidate.x, 0.0, 0.0, Products())
    assert judge_search(request, problem, Incumbent(best), Status.STATIONARY).success == right
