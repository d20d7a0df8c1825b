"""The basis that is kept up to date, against its slow twin, and the search on it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ksparse as ks
from ksparse.datasets import table5
from ksparse.search import floating
from ksparse.search.basis import Basis
from ksparse.search.exchange import DependentError, Exchange, descend
from ksparse.search.floating import explore
from ksparse.search.gains import add_gains, drop_losses, factor, swap_gains
from ksparse.search.search import search
from ksparse.search.task import Task
from ksparse.solve import auto

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
def test_adds_drops_and_exchanges_keep_the_basis_equal_to_a_fresh_factorisation(name, seed, units):
    rng = np.random.default_rng(seed)
    task = a_task(rng, SETS[name](18), units=units)
    basis = Basis(task, task.model, 12)
    assert basis.stand_on(np.sort(rng.choice(18, 4, replace=False)))
    for _ in range(12):
        outside = np.setdiff1d(np.arange(18), basis.members)
        move = rng.uniform()
        if basis.size < 4 or (basis.size < 10 and move < 0.35):
            basis.add(int(rng.choice(outside)))
        elif move < 0.7:
            basis.drop(int(rng.integers(basis.size)))
        else:
            basis.exchange(int(rng.integers(basis.size)), int(rng.choice(outside)))
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
    before = (basis.members.copy(), basis.x.copy(), basis.s.copy(), basis.h.copy(), basis.value, basis.key)
    for i in (0, 2, 12):
        basis.add(i)
    basis.drop(0)
    basis.drop(1)
    basis.exchange(0, 15)
    assert basis.key != before[-1]
    basis.restore(saved)
    for was, now in zip(before, (basis.members, basis.x, basis.s, basis.h, basis.value, basis.key), strict=True):
        np.testing.assert_array_equal(was, now)
    basis.add(3)  # and it is fit for use
    assert basis.value == pytest.approx(twin(task, basis).value, rel=1e-9)


def test_a_support_has_one_key_however_it_was_reached(rng):
    task = a_task(rng, ks.WholeSpace())
    one, other = Basis(task, task.model, 10), Basis(task, task.model, 10)
    one.stand_on(np.array([2, 5, 11]))
    other.stand_on(np.array([5, 7]))
    other.add(2)
    other.add(3)
    other.exchange(int(np.flatnonzero(other.members == 7)[0]), 11)
    assert one.key != other.key
    other.drop(int(np.flatnonzero(other.members == 3)[0]))
    assert one.key == other.key


def test_a_search_does_not_go_the_same_way_twice(rng):
    task = a_task(rng, ks.WholeSpace(), n=60, k=6)
    exchange = Exchange(task)
    exchange.begin(NONE)
    assert exchange.descend()
    end, changes = exchange.basis.snapshot(), exchange.changes
    assert not exchange.descend()  # it stands where a descent has been
    exchange.begin(NONE)
    assert not exchange.descend()  # by greedy steps that are free, to the first support it exchanged from
    assert exchange.changes <= changes + 6
    exchange.basis.restore(end)
    exchange.let_go(0)
    assert exchange.fill(6, fresh=True)  # the first time
    exchange.basis.restore(end)
    exchange.let_go(0)
    assert not exchange.fill(6, fresh=True)
    assert exchange.basis.size < 6 or exchange.changes - changes <= 14


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
    assert slow.best.value >= found.value * (1 - 1e-9) if not SETS[name](18).as_linear(18).equations_only else slow.swaps == 0


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
    monkeypatch.setattr(floating, "Exchange", lambda task, plain=Exchange: made.append(plain(task)) or made[-1])
    values = [found.best.value for _, found in explore(task, task.evaluate(NONE), np.random.default_rng(0))]
    assert len(values) > 1
    assert values == sorted(values, reverse=True)
    assert made[0].changes <= made[0].effort + 20 * task.k


@pytest.mark.parametrize("seed", [1, 16, 20, 32, 39, 92, 149, 187])
def test_a_perfect_fit_is_kept_where_members_are_dependent(seed):
    """More seats than rows: x may be huge on other supports, and the model's value there is rounding."""
    rng = np.random.default_rng(seed)
    A, b = rng.standard_normal((5, 20)), rng.standard_normal(5)
    result = ks.minimize(ks.LeastSquares(A, b), 8)
    assert 0.5 * np.sum((A @ result.x - b) ** 2) <= 1e-20
    assert np.abs(result.x).max() <= 1e3


@pytest.mark.parametrize("seed", [53, 85, 160, 205, 255])
def test_the_answer_is_what_the_search_said_where_columns_are_nearly_copies(seed):
    rng = np.random.default_rng(seed)
    m, n, k = int(rng.integers(4, 30)), int(rng.integers(25, 60)), int(rng.integers(3, 14))
    A, half = rng.standard_normal((m, n)), n // 2
    if seed % 2:
        A[:, half : 2 * half] = A[:, :half] + 10.0 ** rng.integers(-10, -3) * rng.standard_normal((m, half))
    b = rng.standard_normal(m) if seed % 3 else A @ (rng.standard_normal(n) * (rng.random(n) < k / n))
    result = ks.minimize(ks.LeastSquares(A, b), k)
    assert result.success
    assert np.unique(result.support).size == result.support.size <= k
    said = min(row["fun"] for row in result.outcomes)
    assert 0.5 * np.sum((A @ result.x - b) ** 2) <= said + 1e-9 * float(b @ b)


def test_members_are_not_taken_twice(rng):
    A = rng.standard_normal((5, 30))
    task = Task(ks.LeastSquares(A, rng.standard_normal(5)), ks.WholeSpace(), 30, 10, forced_in=NONE, forced_out=NONE)
    basis = Basis(task, task.model, 12)
    basis.stand_on(np.arange(5))
    basis.h[:5], basis.s[:5] = 1e-3, 1.0  # as rounding may leave them
    assert (basis.add_gains()[:5] == 0.0).all()
    assert basis.best_swap(0.0, set(), 30) is None or basis.best_swap(0.0, set(), 30)[1] >= 5


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
