"""The basis that is kept up to date, against its slow twin, and the search on it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ksparse as ks
from ksparse import auto
from ksparse.datasets import table5
from ksparse.support import exchange as module
from ksparse.support.basis import Basis
from ksparse.support.exchange import DependentError, Exchange, descend, explore
from ksparse.support.gains import add_gains, drop_losses, factor, swap_gains
from ksparse.support.search import search
from ksparse.support.task import Task

NONE = np.zeros(0, dtype=np.intp)
SETS = {
    "whole": lambda n: ks.WholeSpace(),
    "signs": lambda n: ks.Nonnegative(np.arange(0, n, 2)),
    "simplex": lambda n: ks.Simplex(),
    "hyperplane": lambda n: ks.Hyperplane(),
    "two equations": lambda n: ks.Polyhedron(None, None, E=np.vstack([np.ones(n), np.arange(n)]), f=np.array([1.0, n / 3])),
}


def a_task(rng, C, n=18, k=6, units=False, **options):
    A, b = rng.standard_normal((30, n)), rng.standard_normal(30)
    if units:
        A = A * 10.0 ** rng.uniform(-3, 3, n)
    return Task(ks.LeastSquares(A, b), C, n, k, **({"forced_in": NONE, "forced_out": NONE} | options))


def twin(task, basis):
    """The factorisation from scratch on the basis's members, in the same order."""
    E, f = task.linear.E, task.linear.f
    return factor(task.model.rows(basis.members), basis.members, E, f, task.model.r, task.model.diagonal)


@pytest.mark.parametrize("name", SETS)
@given(seed=st.integers(0, 10_000), units=st.booleans())
@settings(max_examples=25, deadline=None)
def test_adds_and_drops_keep_the_basis_equal_to_a_fresh_factorisation(name, seed, units):
    rng = np.random.default_rng(seed)
    task = a_task(rng, SETS[name](18), units=units)
    basis = Basis(task, task.model, 12)
    assert basis.stand_on(np.sort(rng.choice(18, 4, replace=False)))
    for _ in range(12):
        outside = np.setdiff1d(np.arange(18), basis.members)
        if basis.size < 4 or (basis.size < 10 and rng.uniform() < 0.5):
            basis.add(int(rng.choice(outside)))
        else:
            basis.drop(int(rng.integers(basis.size)))
    slow = twin(task, basis)
    unit = np.sqrt(task.model.diagonal)
    outside = np.setdiff1d(np.arange(18), basis.members)
    np.testing.assert_allclose(basis.x * unit[basis.members], slow.x, rtol=1e-5, atol=1e-8 * np.abs(slow.x).max())
    np.testing.assert_allclose((basis.h / unit**2)[outside], slow.h[outside], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose((basis.s / unit)[outside], slow.s[outside], rtol=1e-5, atol=1e-8 * np.abs(task.model.r / unit).max())
    assert basis.value == pytest.approx(slow.value, rel=1e-8, abs=1e-10 * task.model.constant)
    if not basis.signed:
        np.testing.assert_allclose(basis.add_gains()[outside], add_gains(slow)[outside], rtol=1e-4, atol=1e-9)
        np.testing.assert_allclose(basis.drop_losses(), drop_losses(slow), rtol=1e-4, atol=1e-9)
        np.testing.assert_allclose(basis.swap_gains(outside), swap_gains(slow, outside), rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("name", SETS)
def test_no_exchange_gains_more_than_its_newcomer_alone(name, rng):
    """The bound that lets the search look at few outsiders."""
    for _ in range(20):
        task = a_task(rng, SETS[name](18))
        basis = Basis(task, task.model, 8)
        assert basis.stand_on(np.sort(rng.choice(18, 6, replace=False)))
        basis.sign[:], basis.signed = 0.0, False
        outside = np.setdiff1d(np.arange(18), basis.members)
        assert (basis.swap_gains(outside) <= basis.add_gains()[outside] * (1 + 1e-9) + 1e-12).all()


def test_the_best_swap_is_the_best_of_the_whole_table(rng):
    for _ in range(20):
        task = a_task(rng, ks.WholeSpace(), n=150, k=6)
        basis = Basis(task, task.model, 8)
        assert basis.stand_on(np.sort(rng.choice(150, 6, replace=False)))
        outside = np.setdiff1d(np.arange(150), basis.members)
        table = basis.swap_gains(outside)
        j, i = divmod(int(table.argmax()), outside.size)
        assert basis.best_swap(1e-12, set(), 1_000) == (j, outside[i])
        assert basis.best_swap(float(table.max()) * 1.01, set(), 1_000) is None


def test_a_snapshot_brings_everything_back(rng):
    task = a_task(rng, ks.Simplex())
    basis = Basis(task, task.model, 10)
    basis.stand_on(np.array([1, 4, 7, 9]))
    saved = basis.snapshot()
    before = (basis.members.copy(), basis.x.copy(), basis.s.copy(), basis.h.copy(), basis.value)
    for i in (0, 2, 12):
        basis.add(i)
    basis.drop(0)
    basis.drop(1)
    basis.restore(saved)
    for was, now in zip(before, (basis.members, basis.x, basis.s, basis.h, basis.value), strict=True):
        np.testing.assert_array_equal(was, now)
    basis.add(3)  # and it is fit for use
    assert basis.value == pytest.approx(twin(task, basis).value, rel=1e-9)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("seed", range(5))
def test_a_descent_ends_where_the_slow_search_finds_nothing(name, seed):
    rng = np.random.default_rng(seed)
    task = a_task(rng, SETS[name](18))
    start = next(c for c in (task.evaluate(np.sort(rng.choice(18, 6, replace=False))) for _ in range(200)) if c is not None)
    found = descend(task, start)
    assert found.value <= start.value
    assert found.support.size <= 6
    assert task.C.contains(found.full(18))
    slow = search(task, found)
    assert slow.best.value >= found.value * (1 - 1e-9) if not SETS[name](18).linear(18).equations_only else slow.swaps == 0


def test_the_search_ends_early_where_nothing_is_in_doubt(rng):
    A = rng.standard_normal((200, 60))
    b = A[:, :5] @ np.full(5, 3.0) + 0.1 * rng.standard_normal(200)
    task = Task(ks.LeastSquares(A, b), ks.WholeSpace(), 60, 5, forced_in=NONE, forced_out=NONE)
    rows = list(explore(task, task.evaluate(NONE), np.random.default_rng(0)))
    assert [name for name, _ in rows] == ["descent"]
    np.testing.assert_array_equal(rows[0][1].best.support, np.arange(5))
    exchange = Exchange(task)
    exchange.begin(np.arange(5))
    assert exchange.clear
    exchange.begin(np.array([0, 1, 2, 3, 40]))
    assert not exchange.clear


def test_explore_only_ever_gets_better_and_stays_within_its_effort(monkeypatch):
    data = table5(1, seed=1)
    task = Task(ks.LeastSquares(data.A, data.b), ks.Nonnegative(data.nonnegative), 640, data.k, forced_in=NONE, forced_out=NONE)
    made = []
    monkeypatch.setattr(module, "Exchange", lambda task, plain=Exchange: made.append(plain(task)) or made[-1])
    values = [found.best.value for _, found in explore(task, task.evaluate(NONE), np.random.default_rng(0))]
    assert len(values) > 1
    assert values == sorted(values, reverse=True)
    assert made[0].changes <= made[0].effort + 20 * task.k


def test_dependent_members_are_left_to_the_slow_search(rng):
    A = rng.standard_normal((5, 20))  # five rows: eight members are dependent
    b = rng.standard_normal(5)
    task = Task(ks.LeastSquares(A, b), ks.WholeSpace(), 20, 8, forced_in=NONE, forced_out=NONE)
    with pytest.raises(DependentError):
        Exchange(task).begin(np.arange(8))
    result = ks.minimize(ks.LeastSquares(A, b), 8)
    assert result.success
    assert result.fun <= 1e-20


def test_copies_of_a_column_do_no_harm(rng):
    A = rng.standard_normal((40, 12))
    A = np.hstack([A, A, A[:, :3]])
    b = rng.standard_normal(40)
    result = ks.minimize(ks.LeastSquares(A, b), 5)
    alone = ks.minimize(ks.LeastSquares(A[:, :12], b), 5)
    assert result.fun == pytest.approx(alone.fun, rel=1e-9)
    assert np.unique(result.support % 12 if result.support.max() < 24 else result.support).size == 5


def test_forced_members_stay_and_shut_ones_stay_out(rng):
    A, b = rng.standard_normal((50, 80)), rng.standard_normal(50)
    for C in (ks.WholeSpace(), ks.Nonnegative(np.arange(40, 80))):
        result = ks.minimize(ks.LeastSquares(A, b), 8, C, forced_in=[3, 17], forced_out=[5, 60])
        assert {3, 17} <= set(result.support)
        assert not {5, 60} & set(result.support)
        assert C.contains(result.x)


def test_the_answer_does_not_depend_on_threads_or_earlier_calls(rng):
    A, b = rng.standard_normal((60, 200)), rng.standard_normal(60)
    loss = ks.LeastSquares(A, b)
    first = ks.minimize(loss, 10)
    for n_jobs in (None, 2):
        again = ks.minimize(loss, 10, n_jobs=n_jobs)
        np.testing.assert_array_equal(again.x, first.x)
    assert ks.minimize(loss, 10, random_state=1).fun <= first.fun * 1.2


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("C", [ks.WholeSpace(), ks.Nonnegative(), ks.Simplex()], ids=lambda C: type(C).__name__)
@pytest.mark.parametrize("kind", ["logistic", "huber", "poisson"])
def test_large_smooth_losses_are_searched_by_models_with_answers_as_good(kind, C, seed, monkeypatch):
    rng = np.random.default_rng(seed)
    A = 0.4 * rng.standard_normal((150, 40))
    z = 2.0 * A[:, :4].sum(axis=1)
    loss = {
        "logistic": lambda: ks.Logistic(A, z + rng.logistic(size=150) > 0),
        "huber": lambda: ks.Huber(A, z + rng.standard_t(2, 150), 1.0),
        "poisson": lambda: ks.Poisson(A, rng.poisson(np.exp(z)).astype(float)),
    }[kind]()
    plain = ks.minimize(loss, 5, C)
    monkeypatch.setattr(auto, "LARGE", 0)
    fast = ks.minimize(loss, 5, C)
    assert any(row["start"] == "models" for row in fast.outcomes)
    assert not any("apdca" in row["start"] for row in fast.outcomes)
    assert fast.success
    assert not fast.proved
    assert fast.support.size <= 5
    assert C.contains(fast.x)
    assert fast.fun <= plain.fun + 0.03 * abs(plain.fun)
    assert fast.fun == pytest.approx(loss.value(fast.x))
