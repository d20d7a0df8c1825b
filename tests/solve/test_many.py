"""`minimize_many` against single solves and enumeration, for every kind of A and every way to stop."""

import itertools
from contextlib import nullcontext

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import aslinearoperator

import ksparse as ks
from conftest import sweep
from enumeration import enumerated
from ksparse.solve import many

M, N, COUNT, K = 15, 7, 6, 3


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    """Batch as few columns as these tests have."""
    monkeypatch.setattr(many, "MANY", 1)


@pytest.fixture
def data(rng):
    A = rng.standard_normal((M, N)) + rng.standard_normal((M, 1))
    return A, A[:, :K] @ np.abs(rng.standard_normal((K, COUNT))) + 0.3 * rng.standard_normal((M, COUNT))


SETS = {
    "whole space": None,
    "nonnegative": ks.Nonnegative(),
    "some nonnegative": ks.Nonnegative([1, 4]),
    "signs": ks.Box(np.r_[np.zeros(3), np.full(4, -np.inf)], np.r_[np.full(3, np.inf), np.zeros(3), np.inf]),
    "shut": ks.Box(np.r_[np.zeros(2), np.full(5, -np.inf)], np.r_[np.zeros(2), np.full(5, np.inf)]),
    "box": ks.Box(-0.5, 0.5),
    "simplex": ks.Simplex(),
}


@pytest.mark.parametrize("name", SETS)
def test_every_column_is_as_good_as_enumeration(data, name):
    A, B = data
    C = SETS[name]
    batch = ks.minimize_many(A, B, K, C)
    assert len(batch) == COUNT
    assert batch.success.all()
    for i, b in enumerate(B.T):
        best = enumerated(ks.LeastSquares(A, b), ks.WholeSpace() if C is None else C, N, K)
        assert batch.fun[i] <= best * (1 + 1e-7) + 1e-10


def test_rows_are_results_judged_like_any_other(data):
    A, B = data
    batch = ks.minimize_many(A, B, K, ks.Nonnegative())
    for i, result in enumerate(batch):
        assert isinstance(result, ks.Result)
        assert result.fun == pytest.approx(0.5 * np.sum((A @ result.x - B[:, i]) ** 2), rel=1e-12)
        assert result.fun == pytest.approx(batch.fun[i], rel=1e-12)
        assert result.maxcv == 0.0
        assert result.support.size <= K
        assert result.residual < 1e-9
        assert result.success
        assert result.status is ks.Status.STATIONARY
        assert np.array_equal(result.support, batch.supports[i])
    assert batch[-1].fun == batch[COUNT - 1].fun
    assert np.array_equal(batch.counts(), (batch.x.toarray() != 0).sum(axis=1))
    assert "6 solutions with at most 3 nonzeros" in repr(batch)
    assert list(batch.to_frame()["nonzeros"]) == [support.size for support in batch.supports]


KINDS = {
    "csr": scipy.sparse.csr_array, "csc": scipy.sparse.csc_matrix, "fortran": np.asfortranarray,
    "operator": aslinearoperator, "integers": lambda A: np.round(10 * A).astype(int) / 10, "list": lambda A: A.tolist(),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_any_kind_of_data(data, kind):
    A, B = data
    A = np.round(A, 1)
    expected = ks.minimize_many(A, B, K, ks.Nonnegative())
    batch = ks.minimize_many(KINDS[kind](A), B, K, ks.Nonnegative())
    assert np.allclose(batch.fun, expected.fun, rtol=1e-9)


def test_single_precision(data):
    A, B = data
    expected = ks.minimize_many(A, B, K).fun
    assert np.allclose(ks.minimize_many(A.astype(np.float32), B.astype(np.float32), K).fun, expected, rtol=1e-4)


@pytest.mark.needs("torch")
def test_tensors_of_pytorch(data):
    import torch

    A, B = data
    expected = ks.minimize_many(A, B, K).fun
    assert np.allclose(ks.minimize_many(torch.tensor(A), torch.tensor(B), K).fun, expected, rtol=1e-9)


def test_weights_and_ridge_are_those_of_least_squares(data, rng):
    A, B = data
    w, rho = rng.uniform(0.1, 2.0, M), rng.uniform(0.0, 1.0, N)
    batch = ks.minimize_many(A, B, K, ks.Nonnegative(), sample_weight=w, ridge=rho)
    for i, b in enumerate(B.T):
        loss = ks.LeastSquares(A, b, w, rho)
        assert batch.fun[i] == pytest.approx(loss.value(batch.x[:, [i]].toarray().ravel()), rel=1e-12)
        assert batch.fun[i] <= enumerated(loss, ks.Nonnegative(), N, K) * (1 + 1e-7)


def test_answers_do_not_depend_on_threads_blocks_or_units(data, monkeypatch, rng):
    A, B = data
    B = np.hstack([B, B[:, ::-1] + 0.1 * rng.standard_normal(B.shape)])
    batch = ks.minimize_many(A, B, K, ks.Nonnegative())
    monkeypatch.setattr("ksparse.solve.many.LONGEST", 5)
    assert np.allclose(ks.minimize_many(A, B, K, ks.Nonnegative(), n_jobs=2).x.toarray(), batch.x.toarray(), rtol=1e-9)
    for scale in (1e-8, 1e8):
        assert np.allclose(
            ks.minimize_many(A * scale, B / scale, K, ks.Nonnegative()).fun * scale**2, batch.fun, rtol=1e-9
        )


def test_more_effort_is_never_worse(rng):
    A = rng.standard_normal((40, 1)) + 0.3 * rng.standard_normal((40, 60))
    B = A[:, :8] @ rng.uniform(0, 1, (8, 20)) + 0.1 * rng.standard_normal((40, 20))
    values = [ks.minimize_many(A, B, 6, effort=effort).fun for effort in (1, 2, 3, 4)]
    for worse, better in itertools.pairwise(values):
        assert np.all(better <= worse * (1 + 1e-9))


def test_a_perfect_fit_nothing_and_dependent_columns(rng):
    A = rng.standard_normal((10, 6))
    A = np.column_stack([A, A[:, 0], np.zeros(10), A[:, 1] + A[:, 2]])
    B = np.column_stack([A[:, 0], np.zeros(10), A[:, 1] + A[:, 2], -A[:, 3]])
    batch = ks.minimize_many(A, B, 2, ks.Nonnegative([0, 1, 2, 4, 5, 6, 7, 8]))
    assert np.allclose(batch.fun, 0.0, atol=1e-20)
    assert batch.success.all()
    assert batch.supports[1].size == 0
    shut = ks.minimize_many(A, B, 2, ks.Box(0.0, 0.0))
    assert shut.x.nnz == 0
    assert np.allclose(shut.fun, 0.5 * (B**2).sum(axis=0))


@pytest.mark.parametrize("C", [ks.Nonnegative(), ks.Simplex()], ids=["together", "singly"])
def test_progress_is_told_and_may_stop(data, C):
    A, B = data
    seen = []
    ks.minimize_many(A, B, K, C, callback=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (COUNT, COUNT)
    assert sorted(seen) == seen

    def stop(done, total):
        raise StopIteration

    batch = ks.minimize_many(A, B, K, C, callback=stop)
    assert ks.Status.CALLBACK_STOP in batch.status
    assert not batch.success.all()
    assert all(result.maxcv <= 1e-9 for result in batch)
    late = ks.minimize_many(A, B, K, C, max_time=0.0)
    assert ks.Status.TIME_LIMIT in late.status
    assert all(result.maxcv <= 1e-9 for result in late)


def test_a_bar_is_shown_where_asked(data, monkeypatch):
    asked = []
    monkeypatch.setattr("ksparse.solve.many.show_progress", lambda shown: asked.append(shown) or nullcontext())
    for how in ({}, {"verbose": 1}, {"progress": True}):
        ks.minimize_many(*data, K, **how)
    assert asked == [False, True, True]


def test_inputs_stay_as_they_are(data):
    A, B = data
    before = A.copy(), B.copy()
    ks.minimize_many(A, B, K, ks.Nonnegative(), sample_weight=np.linspace(1, 2, M))
    assert np.array_equal(A, before[0])
    assert np.array_equal(B, before[1])


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"B": np.zeros(M)}, ValueError, "B must have one column per right-hand side.*ks.minimize"),
        ({"B": np.zeros((M + 1, 2))}, ValueError, "B must have as many rows as A, 15, got 16"),
        ({"B": np.full((M, 2), np.nan)}, ValueError, "B must not contain NaN"),
        ({"B": np.full((M, 2), "a")}, TypeError, "B must be"),
        ({"k": -1}, ValueError, "k must be"),
        ({"k": N + 1}, ValueError, "k must be"),
        ({"C": ks.Nonnegative}, TypeError, "C must be an instance of ksparse.ConvexSet"),
        ({"C": ks.Box(np.zeros(4), 1.0)}, ValueError, "C has 4 variables"),
        ({"C": ks.Box(1.0, 2.0)}, ks.InfeasibleError, "no point with at most k = 3"),
        ({"effort": 0}, ValueError, "effort must be"),
        ({"n_jobs": 0}, ValueError, "n_jobs"),
        ({"max_time": -1.0}, ValueError, "max_time"),
        ({"sample_weight": np.full(M, -1.0)}, ValueError, "sample_weight"),
        ({"ridge": -1.0}, ValueError, "ridge"),
        ({"callback": 3}, TypeError, "callback"),
        ({"settings": 3}, TypeError, "settings must be"),
    ],
)
def test_bad_input_is_named(data, change, error, words):
    A, B = data
    with pytest.raises(error, match=words):
        ks.minimize_many(**{"A": A, "B": B, "k": K} | change)


def test_many_columns_in_threads_are_those_of_one_thread(rng):
    """Enough right-hand sides for the compiled loop, if a compiler is installed."""
    A = rng.standard_normal((20, 12)) + rng.standard_normal((20, 1))
    B = A @ np.maximum(rng.standard_normal((12, 600)), 0.0) + 0.1 * rng.standard_normal((20, 600))
    one, two = (ks.minimize_many(A, B, 3, ks.Nonnegative(), n_jobs=n_jobs) for n_jobs in (None, 2))
    assert np.array_equal(one.x.toarray(), two.x.toarray())
    assert one.success.all()
    # by whole arrays, and with fewer supports of others to start from
    few = ks.minimize_many(A, B[:, :5], 3, ks.Nonnegative())
    assert np.allclose(few.fun, one.fun[:5], rtol=1e-6)


def test_columns_that_are_solved_one_by_one_end_with_an_interrupt(data, monkeypatch):
    from ksparse.search.explore import SupportSearch

    A, B = data
    begun, search = [], SupportSearch._search

    def interrupted_at_the_second(self):
        begun.append(self)
        if len(begun) == 2:
            raise KeyboardInterrupt
        search(self)

    monkeypatch.setattr(SupportSearch, "_search", interrupted_at_the_second)
    batch = ks.minimize_many(A, B, K, ks.Box(-0.5, 0.5), settings=ks.SearchSettings(enumerated=0))
    assert len(begun) == 2
    assert batch[0].status.good
    assert all(result.status is ks.Status.INTERRUPTED and not result.success for result in list(batch)[1:])


def test_an_interrupt_before_any_column_is_solved_is_not_lost(data, monkeypatch):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("ksparse.solve.many.minimize", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ks.minimize_many(*data, K, ks.Box(-0.5, 0.5))


def test_the_time_of_one_answer_does_not_depend_on_when_it_is_asked_for(rng, monkeypatch):
    batch = ks.minimize_many(rng.standard_normal((20, 8)), rng.standard_normal((20, 3)), 2)
    monkeypatch.setattr("time.perf_counter", lambda: 1e9)
    assert batch[0].elapsed == batch.elapsed < 1e6


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_zero_that_no_search_came_to_is_not_called_stationary(dtype, rng, monkeypatch):
    monkeypatch.setattr(many, "LONGEST", 8)
    A = rng.standard_normal((12, 5)).astype(dtype)
    B = np.column_stack([np.tile(A, 2)[:, :8], A[:, 0] + A[:, 1], -A.sum(axis=1), np.zeros(12)])
    batch = ks.minimize_many(A, B, 2, ks.Nonnegative(), max_time=0.0)
    first, others = batch[8], [batch[9], batch[10]]
    assert not first.x.any()
    assert first.residual > 0.1
    assert [found.residual for found in others] == [0.0, 0.0]


def test_success_of_a_batch_asks_for_signs_and_k(rng, monkeypatch):
    from ksparse.batch.problem import BatchData

    refined = BatchData.refine

    def negated(data, B, best):
        x, residual = refined(data, B, best)
        return np.where(np.arange(len(x))[:, None] == 1, -x, x), residual

    A = rng.random((20, 8))
    monkeypatch.setattr(BatchData, "refine", negated)
    batch = ks.minimize_many(A, A[:, :3] + 0.01, 2, ks.Nonnegative())
    assert batch.success.tolist() == [True, False, True] == [result.success for result in batch]


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csc_array])
@pytest.mark.parametrize("apart", [1e-5, 1e-7, 1e-9])
def test_nearly_equal_columns_are_told_apart_by_single_solves(kind, apart):
    A = np.array([[1.0, 1.0], [0.0, apart], [1.0, 1.0]])
    B = np.array([[1.0, 0.0, 1.0], [5.0, 5.0, 0.0], [1.0, 0.0, 1.0]])
    batch = ks.minimize_many(kind(A), B, 2)
    np.testing.assert_allclose(batch.fun, 0.0, atol=1e-12)
    assert batch.success.all()
    assert [support.size for support in batch.supports] == [2, 2, 1]
    for i, result in enumerate(batch):
        np.testing.assert_array_equal(result.x, batch.x[:, [i]].toarray().ravel())
        assert (result.fun, result.success, int(result.status)) == (batch.fun[i], batch.success[i], batch.status[i])
    signed = ks.minimize_many(kind(A), B, 2, ks.Nonnegative())
    single = [ks.minimize(ks.LeastSquares(A, b), 2, ks.Nonnegative()).fun for b in B.T]
    np.testing.assert_allclose(signed.fun, single, atol=1e-12)


@pytest.mark.parametrize("seed", sweep(range(6), 2))
def test_nearly_dependent_columns_cost_nothing_beside_single_calls(seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((12, 9))
    A[:, 1] = A[:, 0] + 1e-6 * rng.standard_normal(12)
    A[:, 2] = A[:, 3] + A[:, 4] + 1e-7 * rng.standard_normal(12)
    B = A[:, :8] @ rng.standard_normal((8, 10)) + rng.uniform(0, 1e6, 10) * (A[:, [1]] - A[:, [0]])
    for C in (None, ks.Nonnegative()):
        single = np.array([ks.minimize(ks.LeastSquares(A, b), 3, C).fun for b in B.T])
        assert (ks.minimize_many(A, B, 3, C).fun <= single * (1 + 1e-6) + 1e-12 * (B**2).sum(axis=0)).all()


def test_single_solves_are_for_columns_that_need_them(data, monkeypatch):
    def refuse(*args, **options):
        raise AssertionError("a single solve was asked for")

    A, B = data
    monkeypatch.setattr(many, "minimize", refuse)
    for matrix in (A, A[:3], np.column_stack([A, A[:, 0], -A[:, 1]]), np.column_stack([A, A[:, 0] * (1 + 1e-7)])):
        assert ks.minimize_many(matrix, B[: len(matrix)], 2, ks.Nonnegative()).success.all()


def test_an_interrupt_in_a_single_solve_is_reported(monkeypatch):
    def interrupt(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(many, "minimize", interrupt)
    batch = ks.minimize_many([[1.0, 1.0], [0.0, 1e-5], [1.0, 1.0]], [[1.0, 1.0], [5.0, 0.0], [1.0, 1.0]], 2)
    assert set(batch.status) == {int(ks.Status.INTERRUPTED)}
    assert not batch.success.any()
    assert [support.size for support in batch.supports] == [1, 1]


def test_few_columns_are_solved_one_by_one(data, monkeypatch):
    """The loop of a batch is not compiled for them."""
    A, B = data
    batched = ks.minimize_many(A, B, K, ks.Nonnegative())
    monkeypatch.setattr(many, "MANY", COUNT + 1)
    monkeypatch.setattr(many, "search_batch", None)
    alone = ks.minimize_many(A, B, K, ks.Nonnegative())
    assert alone.fun == pytest.approx(batched.fun, rel=1e-9)
    assert alone.success.all()
