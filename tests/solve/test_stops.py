"""Time limits, interrupts and callbacks return the best feasible point so far."""

import signal
import threading
import time
import warnings

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

import ksparse as ks
from ksparse import Status
from ksparse.errors import UndecidedError

SEARCHED = ks.SearchSettings(enumerated=0)  # not by trying every support


def test_an_interrupt_anywhere_returns_a_feasible_sparse_point(rng):
    """Raise at every single gradient in turn: in the start, the run, the re-solve."""
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


@pytest.mark.parametrize(
    ("error", "status"), [(StopIteration, Status.CALLBACK_STOP), (KeyboardInterrupt, Status.INTERRUPTED)]
)
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
        began = time.process_time()
        result = ks.minimize(loss, 150, max_time=0.3, rho=1.0, method=method)
        assert time.process_time() - began < 8.0
        assert result.support.size <= 150


def test_callbacks_of_every_kind(rng):
    loss = ks.LeastSquares(rng.standard_normal((20, 40)), rng.standard_normal(20))
    seen = []
    for callback in (seen.append, max, lambda x: seen.append(x)):
        ks.minimize_penalized(loss, ks.L1(1.0), callback=callback, max_iter=5)
        ks.minimize(loss, 5, callback=callback)
    assert all(x.shape == (40,) for x in seen)


def test_time_limits_reach_mixed_integer_programs(rng):
    returns = 0.01 * rng.standard_normal((300, 200)) + 0.01 * rng.standard_normal((300, 1))
    fund = ks.SparsePortfolio(
        20, max_weight=0.08, min_weight=0.01, groups=np.arange(200) % 11, group_caps=0.2, max_time=1
    )
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fund.fit(returns)
    assert time.process_time() - started < 15  # without the limit: 61 s
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
            # before there is a call there is nothing to return, and after the answer it is there
            escaped += delay > 0.002 and result is None
        if result is not None:
            assert result.support.size <= 5
            assert C.contains(result.x)
    assert escaped <= 3  # on a machine so busy that the call had not begun


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


def test_a_projection_that_fails_ends_a_run_with_the_best_point_so_far(monkeypatch):
    plain, calls = ks.Box.project, []

    def project(self, u):
        calls.append(u)
        if len(calls) == 6:
            raise UndecidedError("no optimum of the quadratic program could be found to rounding")
        return plain(self, u)

    monkeypatch.setattr(ks.Box, "project", project)
    found = ks.minimize_penalized(
        ks.LeastSquares(np.diag([1.0, 30.0]), np.ones(2)), ks.TopK2(0.1, 1), C=ks.Box(-1.0, 1.0)
    )
    assert found.status is ks.Status.NUMERICAL_TROUBLE
    assert not found.success
    assert np.abs(found.x).max() <= 1.0


def test_no_time_to_look_at_an_operator(rng):
    Q = scipy.sparse.linalg.aslinearoperator(np.diag([1.4, 1.3, 0.8]))
    found = ks.minimize(
        ks.MeanVariance(Q, rng.standard_normal(3), 30.0), 1, ks.Box(-1.0, 1.0), max_time=0.0, settings=SEARCHED
    )
    assert found.status is ks.Status.TIME_LIMIT


@pytest.fixture
def regression(rng):
    A = rng.standard_normal((60, 40))
    return ks.LeastSquares(A, A[:, :4] @ [3.0, -2, 1.5, 1] + 0.3 * rng.standard_normal(60))


def test_limits_and_stops_return_the_best_so_far(regression):
    began = time.process_time()
    timed = ks.minimize(regression, 6, effort=10_000, max_time=0.3)
    assert timed.status is Status.TIME_LIMIT
    assert time.process_time() - began < 5
    assert timed.support.size <= 6
    calls = []

    def stop(intermediate_result):
        calls.append(intermediate_result.fun)
        if len(calls) == 3:
            raise StopIteration

    stopped = ks.minimize(regression, 6, callback=stop)
    assert stopped.status is Status.CALLBACK_STOP
    assert stopped.fun == pytest.approx(min(calls))


def test_no_time_at_all_leaves_0_where_no_variable_may_enter():
    operator = scipy.sparse.linalg.aslinearoperator(np.full((2, 1), 0.1))
    loss = ks.Logistic(operator, [-1.0, 1.0])
    late = ks.minimize(loss, 1, ks.NonnegativeBall(0.7), forced_out=[0], max_time=0.0, settings=SEARCHED)
    assert late.status is Status.TIME_LIMIT
    assert not late.x.any()
    assert late.fun == pytest.approx(2 * np.log(2))
