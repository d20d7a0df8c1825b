"""Cases that broke an earlier version, each with what must hold instead."""

import numpy as np
import pytest

import ksparse as ks
from ksparse import Status
from ksparse.firstorder.drive import Stopping, drive
from ksparse.firstorder.problem import Problem
from ksparse.numerics.qp import least_squares, null_space


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
    """A fixed step along a flat direction: x grows by the same amount each time, and would take 1e20 steps to look large."""
    Q = np.diag([1.0, 2.0, 0.0])
    run = drive(ks.PDCA(ks.FixedStep()), Problem(ks.Quadratic(Q, [0, 0, 1.0]), ks.L1(0.1)), np.ones(3), Stopping(tol=0.0))
    assert run.status is Status.UNBOUNDED
    assert run.nit <= 2000


def test_slow_convergence_is_not_mistaken_for_drift(rng):
    A = rng.standard_normal((30, 30)) @ np.diag(np.logspace(0, -6, 30))
    problem = Problem(ks.LeastSquares(A, rng.standard_normal(30)), ks.L1(1e-9))
    assert drive(ks.PDCA(ks.FixedStep()), problem, np.zeros(30), Stopping(tol=0.0, max_iter=3000)).status is Status.ITERATION_LIMIT
    X = np.linspace(-1, 1, 10)[:, None]
    logistic = Problem(ks.Logistic(X, X[:, 0] > 0), ks.L1(1e-12))  # separable: F falls for ever, but not below 0
    assert drive(ks.APDCA(), logistic, np.zeros(1), Stopping(tol=0.0, max_iter=3000)).status is not Status.UNBOUNDED


def test_long_steps_on_a_concave_loss_do_not_look_stationary():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        S = rng.standard_normal((8, 8))
        loss, penalty = ks.PrincipalComponent(S @ S.T), ks.L1(0.5)
        result = ks.minimize_penalized(loss, penalty, C=ks.L2Ball(), method="pdca", tol=1e-3, patience=1, x0=rng.standard_normal(8))
        problem = Problem(loss, penalty, ks.L2Ball())
        at_L = problem.residual(problem.point(result.x), problem.lipschitz())
        assert (result.status is Status.STATIONARY) <= (at_L <= 1e-4)


def test_budget_seats_reach_the_total_whenever_some_support_does(rng):
    for _ in range(200):
        n, k = 6, int(rng.integers(1, 6))
        high = rng.uniform(0, 3, n).round(2)
        total = float(rng.uniform(0, np.sort(high)[-k:].sum()))
        C = ks.BudgetBox(total, 0.0, high)
        assert high[C.sparse_support(rng.uniform(0, 1, n), k)].sum() >= total - 1e-9


def test_an_interrupt_anywhere_returns_a_feasible_sparse_point(rng):
    """Raised at every single gradient in turn: in the start, the run, the re-solve."""
    A, b = rng.standard_normal((12, 5)), rng.standard_normal(12)
    statuses = set()
    for method in ("apdca", "auto"):
        for at in range(1, 60):
            calls = {"n": 0}

            def gradient(x, calls=calls, at=at):
                calls["n"] += 1
                if calls["n"] == at:
                    raise KeyboardInterrupt
                return A.T @ (A @ x - b)

            loss = ks.Custom(lambda x: 0.5 * float(np.sum((A @ x - b) ** 2)), gradient, n=5)
            try:
                result = ks.minimize(loss, 2, ks.Nonnegative(), rho=1.0, method=method)
            except KeyboardInterrupt:
                assert calls["n"] <= 3  # before there was a point to return
                continue
            statuses.add(result.status)
            assert result.support.size <= 2
            assert (result.x >= 0).all()
            if calls["n"] >= at and result.status is not Status.INTERRUPTED:
                pytest.fail(f"interrupt {at} of {method} was swallowed: {result.status.name}")
    assert Status.INTERRUPTED in statuses


@pytest.mark.parametrize(("error", "status"), [(StopIteration, Status.CALLBACK_STOP), (KeyboardInterrupt, Status.INTERRUPTED)])
def test_a_stop_within_the_grid_of_weights_is_that_of_the_whole(error, status, rng):
    calls = []

    def callback(intermediate_result):
        calls.append(intermediate_result.nit)
        if len(calls) == 41:
            raise error

    loss = ks.LeastSquares(rng.standard_normal((20, 6)), rng.standard_normal(20))
    result = ks.minimize(loss, 2, method="apdca", callback=callback)
    assert (result.status, result.success) == (status, False)
    assert result.support.size <= 2


def test_time_limits_hold_for_the_re_solve_too(rng):
    B = rng.standard_normal((300, 400))
    B[:, 1:] = B[:, :1] + 1e-3 * B[:, 1:]
    b = rng.standard_normal(300)
    loss = ks.Custom(lambda x: 0.5 * float(np.sum((B @ x - b) ** 2)), lambda x: B.T @ (B @ x - b), n=400)
    for method in ("apdca", "auto"):
        result = ks.minimize(loss, 150, max_time=0.3, rho=1.0, method=method)
        assert result.elapsed < 8.0
        assert result.support.size <= 150


def test_a_loss_that_does_not_exist_at_zero(rng):
    """Growth-optimal portfolio: −Σ log(Rx) on the simplex."""
    R = 1 + 0.05 * rng.standard_normal((50, 8))
    loss = ks.Custom(lambda x: -float(np.log(R @ x).sum()), lambda x: -(R.T @ (1 / (R @ x))), n=8, convex=True)
    values = {}
    for method in ("pdca", "apdca", "auto"):
        result = ks.minimize(loss, 3, ks.Simplex(), rho=0.1, method=method)
        assert result.success
        values[method] = result.fun
    assert values["auto"] <= min(values.values()) + 1e-10


def test_a_custom_loss_with_a_zero_column(rng):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        A, b = rng.standard_normal((4, 4)), rng.standard_normal(4)
        A[:, 0] = 0
        loss = ks.Custom(lambda x, A=A, b=b: float(0.5 * np.sum((A @ x - b) ** 2)), lambda x, A=A, b=b: A.T @ (A @ x - b), n=4)
        result = ks.minimize(loss, 4, ks.Hyperplane(), rho=1.0, method="pdca", max_iter=500)
        assert np.isfinite(result.x).all()
        assert result.residual <= 1e-6


def test_dykstra_does_not_stop_where_it_only_stands_still():
    P = ks.Polyhedron([[-1, -1], [0, -1], [0, 1], [-1, 0]], [-1, 0, 1, 0])
    cut = ks.CustomSet(P.project, P.violation, n=2).restrict(np.array([0]))
    np.testing.assert_allclose(cut.project(np.array([-100.0])), [1.0], atol=1e-8)


def test_a_polyhedron_without_a_sparse_point_says_why_before_any_work():
    C = ks.Polyhedron(None, None, np.ones((1, 20)), [1.0], lower=0, upper=0.06)
    with pytest.raises(ks.InfeasibleError, match="every point has at least 17 nonzeros"):
        ks.minimize(ks.LeastSquares(np.eye(20), np.ones(20)), 10, C)


def test_a_polyhedron_with_one_sparse_support_is_solved_there():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        E, x = rng.standard_normal((2, 6)), np.zeros(6)
        x[rng.choice(6, 2, replace=False)] = rng.uniform(0.5, 1, 2)
        C = ks.Polyhedron(None, None, E, E @ x, lower=-2.0, upper=2.0)
        for method in ("auto", "apdca"):
            result = ks.minimize(ks.Quadratic(np.eye(6)), 2, C, method=method, rho=1.0)
            assert result.maxcv <= 1e-9
            assert result.support.size <= 2


def test_a_custom_set_that_needs_one_variable():
    w = np.eye(4)[0]
    C = ks.CustomSet(lambda u: u + w * (1 - u[0]), lambda x: abs(x[0] - 1))
    for method in ("apdca", "auto"):
        assert ks.minimize(ks.Quadratic(np.eye(4), [0, -9, -9, -9]), 2, C, rho=1e-2, method=method).fun == pytest.approx(-40.0)


def test_a_line_search_with_small_growth_still_spans_every_scale(rng):
    loss = ks.Poisson(3 * rng.standard_normal((20, 6)), rng.uniform(0, 20, 20))
    slow = ks.minimize_penalized(loss, ks.L1(0.1), step=ks.Backtracking(eta=1.01))
    assert slow.fun == pytest.approx(ks.minimize_penalized(loss, ks.L1(0.1)).fun, rel=1e-2)


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


@pytest.mark.needs("torch")
@pytest.mark.parametrize("method", ["apdca", "auto"])
def test_functions_written_for_float32_torch_see_float32_torch(method, rng):
    import torch

    A, b = (torch.tensor(v, dtype=torch.float32) for v in (rng.standard_normal((20, 6)), rng.standard_normal(20)))
    result = ks.minimize(ks.autodiff(lambda x: 0.5 * torch.sum((A @ x - b) ** 2)), 2, x0=torch.zeros(6), rho=1.0, method=method)
    assert result.x.dtype == torch.float32
    exact = ks.minimize(ks.LeastSquares(A.double(), b.double()), 2, x0=np.zeros(6), rho=1.0, method=method)
    assert result.fun == pytest.approx(exact.fun, rel=1e-4)


def test_the_users_memory_is_neither_shared_nor_spoiled(rng):
    A, b = rng.standard_normal((20, 6)), rng.standard_normal(20)
    buffer = np.empty(6)

    def gradient(x):
        np.matmul(A.T, A @ x - b, out=buffer)
        return buffer

    loss = ks.Custom(lambda x: float(0.5 * np.sum((A @ x - b) ** 2)), gradient, n=6)
    assert ks.minimize(loss, 3).fun == pytest.approx(ks.minimize(ks.LeastSquares(A, b), 3).fun)
    x0 = np.ones(6)

    def project(u):
        np.clip(u, 0, 0.5, out=u)
        return u

    ks.minimize(loss, 3, ks.CustomSet(project, lambda x: float(np.abs(x - np.clip(x, 0, 0.5)).max())), x0=x0, rho=1.0)
    np.testing.assert_array_equal(x0, 1.0)
    assert ks.minimize_penalized(loss, ks.TopK2(1, 2), x0=x0, max_iter=0).x is not x0


def test_data_a_trillion_times_larger(rng):
    A, b = rng.standard_normal((20, 6)), rng.standard_normal(20)
    plain = ks.minimize(ks.LeastSquares(A, b), 2)
    large = ks.minimize(ks.LeastSquares(A * 1e12, b), 2)
    assert large.fun == pytest.approx(plain.fun)
    for method in ("pdca", "apdca"):
        best = ks.minimize(ks.LeastSquares(A, b), 2, method=method, rho=1.0)
        assert ks.minimize(ks.LeastSquares(A * 1e12, b), 2, method=method, rho=1e24).fun == pytest.approx(best.fun, rel=0.3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda loss: ks.minimize(loss, 1, method=ks.APDCA), "got the class APDCA: write APDCA()"),
        (lambda loss: ks.minimize_penalized(loss, ks.L1(1.0), step=0.1), "step must be a step rule"),
        (lambda loss: ks.APDCA(rule=0.1), "rule must be a step rule"),
        (lambda loss: ks.PDCA(rule=ks.Backtracking), "rule must be a step rule"),
        (lambda loss: ks.minimize(loss, 1, verbose="x"), "verbose must be an integer"),
        (lambda loss: ks.LeastSquares(np.ma.masked_array(np.eye(2), mask=np.eye(2)), np.ones(2)), "masked"),
    ],
)
def test_unclear_errors_became_clear(call, words):
    with pytest.raises(TypeError, match=words.replace("(", r"\(").replace(")", r"\)")):
        call(ks.LeastSquares(np.eye(3), np.ones(3)))


def test_callbacks_of_every_kind(rng):
    loss = ks.LeastSquares(rng.standard_normal((20, 40)), rng.standard_normal(20))
    seen = []
    for callback in (seen.append, max, lambda x: seen.append(x)):
        ks.minimize_penalized(loss, ks.L1(1.0), callback=callback, max_iter=5)
        ks.minimize(loss, 5, callback=callback)
    assert all(x.shape == (40,) for x in seen)


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
