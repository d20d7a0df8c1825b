"""The path over k: every answer as good as a single solve, values never rising, with moves between k."""

import numpy as np
import pytest

import ksparse as ks
from conftest import data_file
from ksparse.certify.prove import Certificate
from ksparse.datasets import pit_props, table5


def regression(rng, m=40, n=9):
    A = rng.standard_normal((m, n))
    return A, A @ rng.standard_normal(n) + rng.standard_normal(m)


@pytest.mark.parametrize(
    "C", [ks.WholeSpace(), ks.Nonnegative(), ks.Box(-0.4, 0.5), ks.Hyperplane(), ks.Simplex(), ks.L2Ball(0.8)], ids=repr
)
def test_small_problems_are_solved_for_every_k(C, rng):
    A, b = regression(rng)
    loss = ks.LeastSquares(A, b)
    path = ks.k_path(loss, range(1, 10), C)
    np.testing.assert_array_equal(path.ks, range(1, 10))
    assert (np.diff(path.objective) <= 0).all()
    for result in path.results:
        assert result.success
        assert np.count_nonzero(result.x) <= result.k
        assert C.violation(result.x) <= 1e-12
        assert result.fun == pytest.approx(ks.minimize(loss, result.k, C).fun, rel=1e-9)


def test_pit_props_reach_the_published_optimum_for_every_k():
    R, _ = pit_props()
    path = ks.k_path(ks.PrincipalComponent(R), range(1, 14), ks.L2Ball())
    published = [1.0, 1.954, 2.4753, 2.9375, 3.4062, 3.771, 3.9962, 4.0686, 4.1386, 4.1726, 4.2083, 4.2182, 4.2186]
    np.testing.assert_allclose(-path.objective, published, atol=1e-4)


def test_a_path_is_nearly_as_good_as_single_fits_on_table_5():
    data = table5(1, seed=0)
    loss, C = ks.LeastSquares(data.A, data.b), ks.Nonnegative(data.nonnegative)
    path = ks.k_path(loss, range(2, 31, 4), C)
    assert (np.diff(path.objective) <= 0).all()
    singles = np.array([ks.minimize(loss, int(k), C).fun for k in path.ks])
    assert (path.objective <= singles * 1.15).all()  # a single fit searches wider than one k of a path
    assert np.median(path.objective / singles) <= 1.02
    assert all(result.status is ks.Status.SWAP_OPTIMAL for result in path.results)


def test_entering_and_leaving_variables_lead_from_answer_to_answer(rng):
    A, b = regression(rng, 60, 25)
    path = ks.k_path(ks.LeastSquares(A, b), [1, 2, 3, 5, 8], effort=2)
    support: set[int] = set()
    for entered, left, now in zip(path.entered, path.left, path.supports, strict=True):
        assert support.isdisjoint(entered)
        assert set(left) <= support
        support = (support | set(entered)) - set(left)
        assert support == set(now)
    assert path.x.shape == (5, 25)
    assert path[3].k == 3
    assert len(path) == 5
    with pytest.raises(KeyError, match="k = 4 is not on the path, which has 1, 2, 3, 5, 8"):
        path[4]


def test_the_path_as_a_table(rng):
    pytest.importorskip("pandas", reason="pandas is not installed")
    A, b = regression(rng)
    table = ks.k_path(ks.LeastSquares(A, b), [2, 4]).to_frame()
    assert list(table.columns) == ["k", "objective", "nonzeros", "status", "entered", "left"]
    assert list(table["k"]) == [2, 4]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["logistic", "custom"])
def test_other_losses_have_paths_too(kind, rng):
    A, b = regression(rng, 50, 12)
    loss = ks.Logistic(A, np.where(b > 0, 1.0, -1.0)) if kind == "logistic" else ks.Custom(
        lambda x: 0.5 * float(np.sum((A @ x - b) ** 2)) + 0.1 * float(np.sum(x**4)),
        lambda x: A.T @ (A @ x - b) + 0.4 * x**3, n=12
    )  # fmt: skip
    path = ks.k_path(loss, [1, 2, 4])
    assert (np.diff(path.objective) <= 0).all()
    for result in path.results:
        assert np.count_nonzero(result.x) <= result.k
        assert result.fun <= ks.minimize(loss, result.k).fun * (1 + 1e-3)


def test_options_hold_along_the_path(rng):
    returns = rng.standard_normal((200, 15)) * 0.01 + rng.uniform(0, 0.002, 15)
    loss = ks.MeanVariance.from_returns(returns, 5.0)
    path = ks.k_path(loss, [3, 5, 8], ks.BudgetBox(1, 0, 0.5), forced_in=[4], forced_out=[0, 1], min_nonzero=0.05)
    for result in path.results:
        assert abs(result.x.sum() - 1) <= 1e-12
        assert result.x[4] >= 0.05
        assert result.x[[0, 1]].max() == 0
        assert result.x[result.support].min() >= 0.05


def test_limits_and_interrupts_still_give_every_k(rng, monkeypatch):
    A, b = regression(rng, 100, 300)
    loss = ks.LeastSquares(A, b)
    for result in ks.k_path(loss, [2, 5, 20], ks.Nonnegative(), max_time=0.0).results:
        assert result.status is ks.Status.TIME_LIMIT
        assert np.count_nonzero(result.x) <= result.k
        assert result.x.min() >= 0
    calls = []

    def interrupted(*args):
        calls.append(args)
        raise KeyboardInterrupt

    monkeypatch.setattr("ksparse.solve.path.local_search", interrupted)
    path = ks.k_path(loss, [2, 5, 20], ks.Nonnegative())
    assert calls
    for result in path.results:
        assert result.status is ks.Status.INTERRUPTED
        assert np.count_nonzero(result.x) <= result.k
        assert not result.success
    assert (np.diff(path.objective) <= 0).all()


def test_an_interrupt_in_one_proof_of_a_path_ends_the_others(rng, monkeypatch):
    A, b = regression(rng, 60, 20)
    asked = []

    def interrupted(problem, *args):
        asked.append(problem.k)
        return Certificate(status=ks.Status.INTERRUPTED)

    monkeypatch.setattr("ksparse.solve.path.certify", interrupted)
    path = ks.k_path(ks.LeastSquares(A, b), [2, 3, 4], gap=1e-3, settings=ks.SearchSettings(enumerated=0))
    assert asked == [2]
    assert all(result.status is ks.Status.INTERRUPTED for result in path.results)


@pytest.mark.parametrize(
    ("sizes", "error", "words"),
    [
        ([], ValueError, "ks must hold at least one k"),
        ([0, 2], ValueError, "ks must be an integer >= 1, got 0"),
        ([2, 99], ValueError, r"ks must be an integer in 1..9, got 99"),
        ([1.5], TypeError, "ks must be an integer >= 1"),
    ],
)
def test_bad_ks_are_named(sizes, error, words, rng):
    A, b = regression(rng)
    with pytest.raises(error, match=words):
        ks.k_path(ks.LeastSquares(A, b), sizes)


def test_an_impossible_least_k_is_an_error(rng):
    A, b = regression(rng)
    with pytest.raises(ks.InfeasibleError, match="k = 2"):
        ks.k_path(ks.LeastSquares(A, b), [2, 5], ks.BudgetBox(1, 0, 0.3))


def test_the_same_seed_gives_the_same_path():
    data = np.load(data_file("communities_crime_1993x100.npz"))
    X = data["X"] - data["X"].mean(axis=0)
    loss = ks.LeastSquares(X, data["y"] - data["y"].mean())
    first, second = (ks.k_path(loss, [5, 10, 20], random_state=3, n_jobs=jobs) for jobs in (None, 2))
    np.testing.assert_array_equal(first.x, second.x)
