"""Many columns: the Gram cache is limited, answers stay the same, and too large problems are refused with numbers."""

import numpy as np
import pytest
import scipy.sparse

import ksparse as ks
from ksparse.data import Blocks
from ksparse.numerics.kkt_inverse import parts
from ksparse.search import neighbourhoods
from ksparse.solve import request

N, K = 300, 5
LITTLE = ks.SearchSettings(memory=8 * N * K - 1)  # k rows do not fit
SETS = {
    "whole": ks.WholeSpace(),
    "nonnegative": ks.Nonnegative(),
    "box": ks.Box(-0.7, 0.9),
    "ball": ks.L2Ball(1.5),
    "simplex": ks.Simplex(),
}
KINDS = {
    "dense": np.asarray,
    "csr": scipy.sparse.csr_array,
    "csc": scipy.sparse.csc_array,
    "blocks": lambda A: Blocks(A, 30),
}


@pytest.fixture
def planted(rng):
    A = rng.standard_normal((120, N)) * (rng.random((120, N)) < 0.5) * rng.uniform(0.2, 5.0, N)
    x = np.zeros(N)
    x[rng.choice(N, K, replace=False)] = rng.choice([-1.0, 1.0], K)
    return A, A @ x + 0.5 * rng.standard_normal(120)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("kind", KINDS)
def test_fewer_rows_the_same_answer(kind, name, planted):
    A, b = planted
    whole = ks.minimize(ks.LeastSquares(A, b), K, SETS[name])
    found = ks.minimize(ks.LeastSquares(KINDS[kind](A), b), K, SETS[name], settings=LITTLE)
    np.testing.assert_array_equal(found.support, whole.support)
    assert found.fun == pytest.approx(whole.fun, rel=1e-8)
    assert found.status is ks.Status.STATIONARY  # of columns that were not shown nothing is proved
    assert kind != "blocks" or found.passes <= 25


def test_paths_starts_and_what_cannot_be_proved(planted):
    A, b = planted
    loss = ks.LeastSquares(A, b)
    paths = [ks.k_path(loss, [1, 3, K], settings=settings).results for settings in (None, LITTLE)]
    for whole, found in zip(*paths, strict=True):
        np.testing.assert_array_equal(found.support, whole.support)
    begun = ks.minimize(loss, K, x0=np.eye(N)[7], effort=2, gap=0.1, settings=LITTLE)
    np.testing.assert_array_equal(begun.support, paths[0][-1].support)
    assert "too many columns to hold all of them" in begun.message
    tiny = ks.minimize(loss, K, settings=ks.SearchSettings(memory=0))
    np.testing.assert_array_equal(tiny.support, begun.support)


def test_fewer_columns_than_k_may_be_pointed_at():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 40))
    b = A[:, :6] @ rng.standard_normal(6) + 0.3 * rng.standard_normal(60)
    whole, tiny = (
        ks.minimize(ks.LeastSquares(A, b), 6, ks.Simplex(), settings=settings)
        for settings in (None, ks.SearchSettings(memory=0))
    )
    assert tiny.fun == pytest.approx(whole.fun, rel=0.05)


def test_other_losses(planted):
    A, b = planted
    y = (b > 0).astype(float)
    whole, found = (ks.minimize(ks.Logistic(A / 5, y, ridge=1.0), K, settings=settings) for settings in (None, LITTLE))
    assert found.fun <= whole.fun * (1 + 1e-3)
    assert found.support.size <= K


def test_floors_keep_all_rows(planted):
    A, b = planted
    found, whole = (
        ks.minimize(ks.LeastSquares(A, b), K, min_nonzero=0.3, settings=settings) for settings in (LITTLE, None)
    )
    np.testing.assert_array_equal(found.support, whole.support)


def test_rows_are_forgotten_and_computed_anew(planted):
    A, b = planted
    model = ks.LeastSquares(A, b).quadratic()
    model.memory = 8 * N * 4
    H = A.T @ A
    for support in (np.array([0, 1, 2]), np.array([7, 2]), np.arange(6), np.array([20])):
        np.testing.assert_allclose(model.rows(support), H[support], atol=1e-10)
        assert model.known.sum() <= max(4, support.size)


def test_tables_in_parts_are_the_table(planted, monkeypatch):
    """Swaps are ranked and proved in blocks of columns."""
    A, b = planted
    C = ks.Nonnegative(np.arange(N // 2))
    whole = ks.minimize(ks.LeastSquares(A, b), K, C)
    monkeypatch.setattr("ksparse.numerics.kkt_inverse.PART", 64)
    monkeypatch.setattr(neighbourhoods, "PART", 64)
    found = ks.minimize(ks.LeastSquares(A, b), K, C)
    np.testing.assert_array_equal(found.support, whole.support)
    assert found.status is whole.status is ks.Status.SWAP_OPTIMAL
    assert [len(range(*part.indices(10))) for part in parts(10, 20)] == [3, 3, 3, 1]


def test_empty_columns_leave_no_doubt(planted):
    A, b = planted
    A[:, ::2] = 0.0
    found, without = (ks.minimize(ks.LeastSquares(given, b), K) for given in (scipy.sparse.csr_array(A), A[:, 1::2]))
    assert found.status is ks.Status.SWAP_OPTIMAL
    assert found.fun == pytest.approx(without.fun)


def test_what_does_not_fit_is_refused_with_the_numbers(planted, monkeypatch):
    A, b = planted
    monkeypatch.setattr(request, "ASKED", 0)
    monkeypatch.setattr(request, "available_memory", lambda: 2**15)
    with pytest.raises(
        MemoryError,
        match=r"needs .* GiB in addition to the data .300 variables, k = 5., 0\.00 GiB are available",
    ):
        ks.minimize(ks.LeastSquares(A, b), K)
    monkeypatch.setattr(request, "available_memory", lambda: 2**30)
    assert ks.minimize(ks.LeastSquares(A, b), K).success


@pytest.mark.parametrize("kind", ["dense", "blocks"])
def test_few_rows_fit_and_the_proof_comes_after(kind, planted):
    """Dense rows cost a pass each: the search uses few columns, and the proof k rows."""
    A, b = planted
    loss = ks.LeastSquares(KINDS[kind](A), b)
    found, whole = (
        ks.minimize(loss, K, settings=ks.SearchSettings(memory=8 * N * (K + 2))),
        ks.minimize(ks.LeastSquares(A, b), K),
    )
    np.testing.assert_array_equal(found.support, whole.support)
    assert found.status is ks.Status.SWAP_OPTIMAL
    assert found.passes <= 12


def test_columns_that_were_read_cost_no_pass(planted, monkeypatch):
    A, _ = planted
    blocks, x = Blocks(A, 30), np.zeros(N)
    x[[4, 7]] = 1.0, -2.0
    np.testing.assert_allclose(blocks.columns(np.array([7, 2, 4])), A[:, [7, 2, 4]])
    assert blocks.passes == 1
    np.testing.assert_allclose(blocks @ x, A @ x)
    np.testing.assert_allclose(blocks.columns(np.array([2, 7])), A[:, [2, 7]])
    np.testing.assert_array_equal(blocks @ np.zeros(N), np.zeros(len(A)))
    assert blocks.passes == 1
    x[9] = 3.0
    np.testing.assert_allclose(blocks @ x, A @ x)
    assert blocks.passes == 2
    monkeypatch.setattr("ksparse.data.design.KEPT", 3 * len(A))
    np.testing.assert_allclose(blocks.columns(np.array([7, 11])), A[:, [7, 11]])  # no room for four: it begins anew
    np.testing.assert_allclose(blocks.columns(np.arange(9)), A[:, :9])
    np.testing.assert_allclose(blocks.columns(np.arange(9)), A[:, :9])
    assert blocks.passes == 5
