"""Faster code must not change answers: one pass for two products, continuation, restarts, threads."""

import multiprocessing
import os
import subprocess
import sys
import threading
from contextlib import nullcontext

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import ksparse as ks
from ksparse.data import Dense, array
from ksparse.datasets import table2
from ksparse.errors import MissingPieceError
from ksparse.solve.request import support_problem
from ksparse.util.arrays import finite
from ksparse.util.checks import check_array
from ksparse.util.resources import all_threads, available_threads, map_row_chunks, one_thread

# --- one pass over A --------------------------------------------------------------------------------------------------


@pytest.fixture
def one_pass_everywhere(monkeypatch):
    monkeypatch.setattr(array, "ONE_PASS_BYTES", 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (17, 5), (64, 200)])
def test_both_products_of_one_pass_are_the_two_products(one_pass_everywhere, rng, shape, dtype):
    A, x, w = (rng.standard_normal(size).astype(dtype) for size in (shape, shape[1], shape[0]))
    for weight in (None, np.abs(w)):
        y = A @ x
        g = A.T @ (y if weight is None else weight * y)
        found = array.both_products(A, weight, x)
        assert found.dtype == dtype
        np.testing.assert_allclose(
            found, np.concatenate([y, g]), rtol=0, atol=200 * np.finfo(dtype).eps * max(1, np.abs(g).max())
        )


@pytest.mark.parametrize("method", ["pdca", "apdca", "pdcae", "gist", "nmapg"])
@pytest.mark.parametrize("step", ["fixed", "backtracking"])
def test_a_run_in_one_pass_is_the_run_in_two(one_pass_everywhere, rng, monkeypatch, method, step):
    A, b, w = rng.standard_normal((40, 60)), rng.standard_normal(40), rng.uniform(0.5, 2, 40)
    options = {"method": method, "step": step, "max_iter": 25, "tol": 0.0}
    for extra in ({}, {"sample_weight": w, "ridge": 0.1}):
        fast = ks.LeastSquares(A, b, **extra)
        assert fast.one_pass
        fused = ks.minimize_penalized(fast, ks.MCP(1.0, 2.0), **options)
        with monkeypatch.context() as patch:
            patch.setattr(array, "ONE_PASS_BYTES", 2**60)
            slow = ks.LeastSquares(A, b, **extra)
            assert not slow.one_pass
            plain = ks.minimize_penalized(slow, ks.MCP(1.0, 2.0), **options)
        np.testing.assert_allclose(fused.x, plain.x, atol=1e-9)
        np.testing.assert_allclose(fused.trace.F, plain.trace.F, rtol=1e-9)
        assert fused.fun == pytest.approx(plain.fun, rel=1e-10)
        assert fused.trace.products[-1] < 0.7 * plain.trace.products[-1]  # one pass a step, not two


def test_one_pass_leaves_the_other_matrices_alone(one_pass_everywhere, rng):
    import scipy.sparse

    A = rng.standard_normal((20, 30))
    assert array.fits_one_pass(A)
    for other in (np.asfortranarray(A), A[:, ::2], scipy.sparse.csr_matrix(A), A.astype(np.float16)):
        assert not array.fits_one_pass(other)


def test_one_pass_serves_auto_restriction_and_float64(one_pass_everywhere, rng):
    A = rng.standard_normal((60, 40)).astype(np.float32)
    loss = ks.LeastSquares(A, A[:, 3] - 2 * A[:, 8])
    loss.gradient(np.zeros(40, dtype=np.float32))
    result = ks.minimize(loss, 2)
    np.testing.assert_array_equal(result.support, [3, 8])
    cut = loss.restrict(np.array([3, 8])).as_float64()
    np.testing.assert_allclose(cut.gradient(np.array([1.0, -2.0])), 0, atol=1e-4)


# --- continuation and restarts ----------------------------------------------------------------------------------------

PENALTIES = [
    ks.L1(0.5),
    ks.L1MinusL2(0.5),
    ks.MCP(0.5, 3.0),
    ks.SCAD(0.5, 3.7),
    ks.CappedL1(0.5, 1.0),
    ks.LogSum(0.5, 1.0),
    ks.TopK1(0.5, 4),
]


@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda penalty: type(penalty).__name__)
def test_continuation_ends_at_a_stationary_point_of_the_problem_asked_for(penalty, rng):
    A, b = rng.standard_normal((60, 30)), rng.standard_normal(60)
    loss = ks.LeastSquares(A, b)
    result = ks.minimize_penalized(loss, penalty, continuation=True, tol=0.0, stop="step", tol_residual=1e-9)
    assert result.status is ks.Status.STATIONARY
    assert result.fun == pytest.approx(loss.value(result.x) + penalty.value(result.x))
    if isinstance(penalty, ks.L1):  # convex: one answer
        assert result.fun == pytest.approx(
            ks.minimize_penalized(loss, penalty, tol=0.0, stop="step", tol_residual=1e-9).fun
        )


def test_continuation_takes_fewer_products_on_table_2():
    data = table2(1)
    loss, penalty = ks.LeastSquares(data.A, data.b), ks.L1MinusL2(5e-4)
    ours = ks.minimize_penalized(loss, penalty, continuation=True, tol=1e-6)
    fixed = ks.minimize_penalized(loss, penalty, method="apdca", step="fixed")
    assert ours.fun <= 1.0005 * 0.029620772  # what pDCAe ends at after 1001 steps
    assert ours.trace.products[-1] <= 0.5 * fixed.trace.products[-1]
    assert (np.diff(ours.trace.elapsed) >= 0).all()


def test_continuation_counts_and_limits_are_those_of_all_weights_together(rng):
    A, b = rng.standard_normal((40, 60)), rng.standard_normal(40)
    loss, seen = ks.LeastSquares(A, b), []
    whole = ks.minimize_penalized(
        loss, ks.MCP(0.01, 3.0), continuation=True, callback=lambda intermediate_result: seen.append(1)
    )
    assert whole.nit == len(seen) > len(whole.trace)
    short = ks.minimize_penalized(loss, ks.MCP(0.01, 3.0), continuation=True, max_iter=whole.nit // 2)
    assert short.nit == whole.nit // 2
    assert short.status is ks.Status.ITERATION_LIMIT
    assert short.fun == pytest.approx(loss.value(short.x) + ks.MCP(0.01, 3.0).value(short.x))
    none = ks.minimize_penalized(loss, ks.MCP(0.01, 3.0), continuation=True, max_time=0.0)
    assert none.status is ks.Status.TIME_LIMIT


def test_continuation_stops_with_the_callback_and_at_large_weights_changes_nothing(rng):
    A, b = rng.standard_normal((40, 60)), rng.standard_normal(40)
    loss = ks.LeastSquares(A, b)

    def stop(intermediate_result):
        raise StopIteration

    assert ks.minimize_penalized(loss, ks.L1(0.01), continuation=True, callback=stop).status is ks.Status.CALLBACK_STOP
    large = ks.L1(0.9 * float(np.abs(A.T @ b).max()))
    plain, continued = ks.minimize_penalized(loss, large), ks.minimize_penalized(loss, large, continuation=True)
    np.testing.assert_array_equal(plain.x, continued.x)


def test_continuation_needs_a_weight_that_holds_x_at_zero(rng):
    with pytest.raises(MissingPieceError, match=r"continuation needs a penalty with λ‖x‖₁ in it.*TopK2 has none"):
        ks.minimize_penalized(
            ks.LeastSquares(rng.standard_normal((5, 4)), np.ones(5)), ks.TopK2(1.0, 2), continuation=True
        )


def test_apdca_restarts_its_momentum_where_it_points_uphill():
    data = table2(1)
    loss, penalty = ks.LeastSquares(data.A, data.b), ks.L1MinusL2(5e-4)
    ends = {
        adaptive: ks.minimize_penalized(loss, penalty, method=ks.APDCA(ks.FixedStep(), adaptive=adaptive))
        for adaptive in (False, True)
    }
    assert ends[True].fun < 0.98 * ends[False].fun  # without, it stops at a flat spot of an oscillation
    assert ends[True].fun <= 1.0005 * 0.029620772


# --- threads ----------------------------------------------------------------------------------------------------------


def blas_counts():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_threads_are_limited_within_and_restored_after():
    before = blas_counts()
    with one_thread():
        assert set(blas_counts()) == {1}
        with all_threads():
            assert blas_counts() == before
        assert set(blas_counts()) == {1}
        assert available_threads() == max(before)
        with one_thread():
            assert available_threads() == max(before)
        assert set(blas_counts()) == {1}
    assert blas_counts() == before
    with pytest.raises(RuntimeError, match="inside"), one_thread():
        raise RuntimeError("inside")
    assert blas_counts() == before


def test_blas_has_one_thread_within_a_solve_and_the_users_own_functions_keep_theirs(rng, monkeypatch):
    A, b, seen = rng.standard_normal((40, 60)), rng.standard_normal(40), []
    monkeypatch.setattr(
        sys.modules["ksparse.solve.minimize"],
        "support_problem",
        lambda *given: seen.append(blas_counts()) or support_problem(*given),
    )
    own = ks.Custom(lambda x: 0.5 * np.sum((A @ x - b) ** 2), lambda x: A.T @ (A @ x - b), n=60)
    with threadpool_limits(2, user_api="blas"):
        before = blas_counts()
        for loss in (ks.LeastSquares(A, b), own):
            ks.minimize(loss, 5)
            assert blas_counts() == before
    assert set(seen[0]) == {1}
    assert seen[1] == before


def test_the_entries_of_a_matrix_are_checked_on_one_thread(rng):
    seen = []

    class Traced(np.ndarray):
        def __matmul__(self, other):
            seen.append(set(blas_counts()))
            return super().__matmul__(other)

    with threadpool_limits(2, user_api="blas"):
        assert finite(rng.standard_normal((5, 4)).view(Traced))
    assert seen == [{1}]


BLAS_THAT_COMES_LATE = """
import sys
import numpy as np
from threadpoolctl import threadpool_info
import ksparse as ks
from ksparse.util.resources import all_threads, one_thread

def counts():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

def solve(n):
    A, within = np.random.default_rng(0).standard_normal((20, n)), []
    problem = ks.LeastSquares(A, A[:, 0] + A[:, 1]), 2
    ks.minimize(*problem, settings=ks.SearchSettings(enumerated=0), callback=lambda x: within.append(counts()))
    return within[-1]

with one_thread():
    assert "scipy.linalg" not in sys.modules
    print(solve(12))
    with all_threads():
        print(counts())
    print(counts())
print(counts())
print(solve(9))
print(counts())
"""


def test_a_blas_that_is_loaded_within_a_solve_is_limited_too():
    """SciPy brings a BLAS of its own, which the first search loads."""
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    done = subprocess.run(
        [sys.executable, "-c", BLAS_THAT_COMES_LATE], capture_output=True, text=True, check=True,
        env=os.environ | dict.fromkeys(names, "2"),
    )  # fmt: skip
    within, all_of_them, again, after, next_time, at_the_end = (set(eval(line)) for line in done.stdout.splitlines())
    assert within == again == next_time == {1}
    assert all_of_them == after == at_the_end == {2}


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(50, 7), (7, 50)])
def test_large_products_are_split_over_threads_and_stay_the_same(shape, order, rng, monkeypatch):
    A = np.asarray(rng.standard_normal(shape), order=order)
    x, r, S = rng.standard_normal(shape[1]), rng.standard_normal(shape[0]), np.array([3, 0, 5])
    monkeypatch.setattr("ksparse.util.resources.available_threads", lambda: 3)
    monkeypatch.setattr("ksparse.data.array.LARGE_ARRAY", 1)
    monkeypatch.setattr("ksparse.data.array.LARGE_PRODUCT", 1)
    design = Dense(A)
    np.testing.assert_allclose(design @ x, A @ x, rtol=1e-12)
    np.testing.assert_allclose(design @ np.outer(x, [1, 2]), A @ np.outer(x, [1, 2]), rtol=1e-12)
    np.testing.assert_allclose(design.T @ r, A.T @ r, rtol=1e-12)
    np.testing.assert_allclose(design.gram(S, None), A[:, S].T @ A, rtol=1e-12)
    np.testing.assert_allclose(design.gram(S, r * r), A[:, S].T @ ((r * r)[:, None] * A), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(design.gram(np.arange(shape[1]), None), A.T @ A, rtol=1e-12, atol=1e-14)


def test_split_work_inside_split_work_runs_on_its_own_thread(monkeypatch):
    monkeypatch.setattr("ksparse.util.resources.available_threads", lambda: 2)
    found = map_row_chunks(
        lambda rows: sum(map_row_chunks(lambda part: part.stop - part.start, rows.stop - rows.start)), 6
    )
    assert sum(found) == 6


def test_work_is_shared_out_whole(monkeypatch):
    for threads in (1, 2, 3, 8):
        monkeypatch.setattr("ksparse.util.resources.available_threads", lambda threads=threads: threads)
        assert sum(map_row_chunks(lambda rows: sum(range(rows.start, rows.stop)), 5)) == 10


def test_a_matrix_is_finite_or_not_whatever_its_sums(rng):
    A = rng.standard_normal((6, 4))
    A[2, 1] = 1.7e308
    A[2, 2] = 1.7e308  # finite, though their sum is not
    assert check_array(A, "A", 2) is A
    for bad in (np.inf, -np.inf, np.nan):
        B = A.copy()
        B[2, 1] = bad
        with pytest.raises(ValueError, match="A must"):
            check_array(B, "A", 2)


def test_other_threads_leave_the_limit_alone():
    before, done = blas_counts(), []

    def other():
        with one_thread(), all_threads():
            done.append(available_threads())

    for limit in (one_thread, nullcontext):
        with limit():
            thread = threading.Thread(target=other)
            thread.start()
            thread.join(10)
        assert blas_counts() == before
    assert done == [max(before)] * 2


def _sum_in_a_child(queue):
    queue.put(sum(map_row_chunks(lambda rows: sum(range(rows.start, rows.stop)), 5)))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*fork.*:RuntimeWarning")
def test_threads_work_in_a_forked_child(monkeypatch):
    monkeypatch.setattr("ksparse.util.resources.available_threads", lambda: 2)
    assert sum(map_row_chunks(lambda rows: rows.stop - rows.start, 5)) == 5  # the parent's pool exists
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_sum_in_a_child, args=(queue,))
    child.start()
    assert queue.get(timeout=20) == 10
    child.join(10)
