"""The iteration loop: every stopping reason, the result then, and the calls of the callback."""

import logging
import re
import time

import numpy as np
import pytest

import ksparse as ks
from ksparse import Status
from ksparse.firstorder.loop import drive
from ksparse.firstorder.problem import Problem, Stopping
from ksparse.penalties import NoPenalty


@pytest.fixture
def loss(rng):
    A = rng.standard_normal((40, 15))
    return ks.LeastSquares(A, A[:, :3].sum(1) + 0.1 * rng.standard_normal(40))


def test_stops_by_relative_change_of_F(loss):
    result = ks.minimize_penalized(loss, ks.L1(1.0), tol=1e-6)
    F = result.trace.F
    change = np.abs(np.diff(F)) / np.abs(F[1:])
    assert result.status in (Status.SETTLED, Status.STATIONARY)
    assert result.success
    assert change[-1] <= 1e-6 < change[:-1].min()


def test_patience_asks_for_several_small_changes_in_a_row(loss):
    result = ks.minimize_penalized(loss, ks.L1(1.0), tol=1e-6, patience=3)
    change = np.abs(np.diff(result.trace.F)) / np.abs(result.trace.F[1:])
    assert (change[-3:] <= 1e-6).all()


def test_stops_by_step_length(loss):
    run = drive(ks.PDCAe(), Problem(loss, ks.L1(1.0)), np.zeros(15), Stopping(tol=1e-4))
    longer = drive(ks.PDCAe(), Problem(loss, ks.L1(1.0)), np.zeros(15), Stopping(tol=1e-8))
    assert run.nit < longer.nit


def test_stops_by_residual_and_says_stationary(loss):
    result = ks.minimize_penalized(loss, ks.MCP(1.0, 2.0), tol=0.0, stop="step", tol_residual=1e-8)
    assert result.status is Status.STATIONARY
    assert result.residual <= 1e-6
    assert result.trace.residual[-1] <= 1e-8 < result.trace.residual[1:-1].min()


def test_stops_by_iterations_and_by_time_with_the_best_so_far(loss):
    few = ks.minimize_penalized(loss, ks.L1(1.0), tol=0.0, max_iter=3)
    assert (few.status, few.nit, few.success) == (Status.ITERATION_LIMIT, 3, False)
    assert few.fun == pytest.approx(few.trace.F.min())
    none = ks.minimize_penalized(loss, ks.L1(1.0), max_time=0.0)
    assert (none.status, none.nit) == (Status.TIME_LIMIT, 0)

    weight = np.logspace(0, -8, 3)

    def slow(x):
        time.sleep(0.02)
        return float(x @ (weight * x))

    custom = ks.Custom(slow, lambda x: 2 * weight * x, n=3)
    timed = ks.minimize_penalized(custom, ks.L1(1e-12), x0=np.ones(3), tol=0.0, max_time=0.1)
    assert timed.status is Status.TIME_LIMIT
    assert timed.nit < 100


def test_the_best_point_is_kept_where_the_method_is_not_monotone(rng):
    A = rng.standard_normal((30, 60))
    result = ks.minimize_penalized(ks.LeastSquares(A, rng.standard_normal(30)), ks.MCP(0.1, 2.0), tol=0.0, max_iter=60)
    assert result.fun == pytest.approx(result.trace.F.min(), rel=1e-9)


def test_trace_has_one_entry_per_iteration(loss):
    result = ks.minimize_penalized(loss, ks.L1(1.0))
    trace = result.trace
    assert len(trace) == result.nit + 1
    for column in (trace.F, trace.step, trace.residual, trace.elapsed, trace.products):
        assert column.shape == (result.nit + 1,)
    assert (np.diff(trace.elapsed) >= 0).all()
    assert (np.diff(trace.products) >= 2).all()
    assert (trace.step > 0).all()


def test_callback_as_in_scipy(loss):
    seen = []

    def by_result(intermediate_result):
        seen.append((intermediate_result.nit, intermediate_result.fun, intermediate_result.x))
        intermediate_result.x[:] = np.nan  # must not reach the run
        if intermediate_result.nit == 5:
            raise StopIteration

    result = ks.minimize_penalized(loss, ks.L1(1.0), callback=by_result)
    assert result.status is Status.CALLBACK_STOP
    assert [row[0] for row in seen] == [1, 2, 3, 4, 5]
    np.testing.assert_allclose([row[1] for row in seen], result.trace.F[1:])
    assert np.isfinite(result.x).all()
    points = []
    ks.minimize_penalized(loss, ks.L1(1.0), max_iter=4, tol=0.0, callback=points.append)
    assert [p.shape for p in points] == [(15,)] * 4


def test_an_interrupt_returns_the_best_so_far(loss):
    def interrupt(intermediate_result):
        if intermediate_result.nit == 4:
            raise KeyboardInterrupt

    result = ks.minimize_penalized(loss, ks.L1(1.0), callback=interrupt)
    assert (result.status, result.nit) == (Status.INTERRUPTED, 4)
    assert result.fun == pytest.approx(result.trace.F.min())
    sparse = ks.minimize(loss, 3, ks.Nonnegative(), method="apdca", callback=interrupt)
    assert sparse.status is Status.INTERRUPTED
    assert sparse.support.size <= 3
    assert sparse.maxcv == 0.0


def test_verbose_prints_a_table(loss, capsys, monkeypatch):
    monkeypatch.setattr(logging.getLogger("ksparse"), "propagate", False)  # away from pytest's own handlers
    ks.minimize_penalized(loss, ks.L1(1.0), verbose=3)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "ksparse apdca: LeastSquares + L1(1) over WholeSpace, 15 variables"
    assert lines[1].split() == ["it", "F", "1/step", "residual", "products", "time"]
    assert re.match(r" +1 +\d\.\d+e[+-]\d\d ", lines[2])
    assert "iterations" in lines[-1]
    ks.minimize_penalized(loss, ks.L1(1.0), verbose=0)
    assert capsys.readouterr().out == ""


def test_verbose_goes_through_logging_where_that_is_configured(loss, caplog, capsys):
    with caplog.at_level(logging.INFO, logger="ksparse"):
        ks.minimize_penalized(loss, ks.L1(1.0), verbose=2)
    assert "LeastSquares" in caplog.messages[0]
    assert capsys.readouterr().out == ""
    assert logging.getLogger("ksparse").handlers == []


@pytest.mark.parametrize("method", ["pdca", "apdca", "gist", "nmapg"])
@pytest.mark.parametrize("step", ["backtracking", "fixed"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_unbounded_below_ends_as_unbounded(method, step, dtype, rng):
    V = np.cov(rng.standard_normal((20, 6)).T).astype(dtype)
    for loss in (ks.PrincipalComponent(V), ks.Quadratic(np.zeros((6, 6), dtype=dtype), np.ones(6, dtype=dtype))):
        result = ks.minimize_penalized(loss, ks.L1(1e-3), method=method, step=step)
        assert result.status is Status.UNBOUNDED
        assert not result.success
        assert np.isfinite(result.x).all()
        assert result.nit < 2000


def test_a_slow_descent_without_floor_is_found_too():
    """Negative curvature a millionth of the largest: the step must grow for the run to end."""
    loss = ks.Quadratic(np.diag([1.0, -1e-6]))
    result = ks.minimize_penalized(loss, ks.L1(1e-9), x0=np.ones(2), method="pdca", tol=1e-12)
    assert result.status is Status.UNBOUNDED
    early = ks.minimize_penalized(loss, ks.L1(1e-9), x0=np.ones(2), method="pdca")
    assert early.status is Status.SETTLED  # F changes by less than 1e-5 of itself per step
    assert not early.success  # the recomputed residual shows that the point is not stationary
    assert early.residual > 0.1


def test_sparse_pca_without_the_ball_ends_as_unbounded_in_minimize(rng):
    result = ks.minimize(ks.PrincipalComponent(np.cov(rng.standard_normal((20, 6)).T)), 3, rho=0.01)
    assert result.status is Status.UNBOUNDED
    assert not result.success
    assert np.isfinite(result.x).all()
    assert result.support.size <= 3


def test_nan_from_the_users_function_is_numerical_trouble_or_an_error_never_an_answer():
    loss = ks.Custom(lambda x: float("nan") if x[0] > 0.5 else float(-x.sum()), lambda x: -np.ones(2), n=2)
    result = ks.minimize_penalized(loss, ks.L1(1e-3), x0=np.zeros(2), step=ks.FixedStep(1.0))
    assert result.status is Status.NUMERICAL_TROUBLE
    assert np.isfinite(result.x).all()
    bad = ks.Custom(lambda x: 0.0, lambda x: np.full(2, np.nan), n=2)
    with pytest.raises(ValueError, match=r"gradient\(x\) returned NaN"):
        ks.minimize_penalized(bad, ks.L1(1.0), x0=np.ones(2))


@pytest.mark.parametrize("method", [ks.PDCA(), ks.APDCA()])
def test_a_line_search_from_a_slope_without_curvature_finds_the_bend(method):
    """The slope at 0 is 50, the curvature there 0 and at the optimum 25,000."""
    problem = Problem(ks.Quantile([[100.0]], [4.0]), NoPenalty())
    run = drive(method, problem, np.zeros(1), Stopping(tol=1e-12))
    assert problem.F(problem.point(run.x)) == pytest.approx(0.1 * np.log(2))


def test_a_line_search_with_small_growth_still_spans_every_scale(rng):
    loss = ks.Poisson(3 * rng.standard_normal((20, 6)), rng.uniform(0, 20, 20))
    slow = ks.minimize_penalized(loss, ks.L1(0.1), step=ks.Backtracking(eta=1.01))
    assert slow.fun == pytest.approx(ks.minimize_penalized(loss, ks.L1(0.1)).fun, rel=1e-2)
