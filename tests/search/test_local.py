"""The updated factorisation against a new one; the local search, and the searches that follow."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import ksparse as ks
from ksparse.datasets import table5
from ksparse.numerics.kkt_inverse import KKTInverse
from ksparse.search import surrogates
from ksparse.search.active_set import ActiveSetNeighbourhood
from ksparse.search.candidate import Candidate
from ksparse.search.local_search import descend_from
from ksparse.search.neighbourhoods import DependentError, Move, SecondOrderNeighbourhood
from ksparse.search.perturbation import iterated_local_search
from ksparse.search.problem import SupportProblem
from ksparse.search.starts import random_restart
from ksparse.search.strategy import choose_strategy, model_problem, without_updates

NONE = np.zeros(0, dtype=np.intp)
SETS = {
    "whole": lambda n: ks.WholeSpace(),
    "signs": lambda n: ks.Nonnegative(np.arange(0, n, 2)),
    "simplex": lambda n: ks.Simplex(),
    "hyperplane": lambda n: ks.Hyperplane(),
    "two equations": lambda n: ks.Polyhedron(
        None, None, E=np.vstack([np.ones(n), np.arange(n)]), f=np.array([1.0, n / 3])
    ),
}


def problem_of(loss, C, n, k, **options):
    return SupportProblem.of(loss, C, n, k, **options)


def a_problem(rng, C, n=18, k=6, units=0.0, **options):
    A, b = rng.standard_normal((30, n)), rng.standard_normal(30)
    if units:
        A = A * 10.0 ** rng.uniform(-units, units, n)
    return problem_of(ks.LeastSquares(A, b), C, n, k, **options)


def at(problem, support):
    """Return a candidate on a support, feasible or not."""
    return Candidate.without_multipliers(np.asarray(support), np.zeros(len(support)), np.inf)


def twin(problem, basis):
    """Return the factorisation from scratch on the basis's support, in the same order."""
    model, linear = problem.model, problem.linear
    return KKTInverse.of(model.rows(basis.support), basis.support, linear.E, linear.f, model.r, model.diagonal)


@pytest.mark.parametrize("name", SETS)
@given(seed=st.integers(0, 10_000), units=st.sampled_from([0.0, 1.0]))
@settings(max_examples=25, deadline=None)
def test_adds_drops_and_exchanges_keep_the_basis_equal_to_a_fresh_factorisation(name, seed, units):
    rng = np.random.default_rng(seed)
    problem = a_problem(rng, SETS[name](18), units=units)
    hood = ActiveSetNeighbourhood(problem, 12)
    basis = hood
    assert basis.rebuild(np.sort(rng.choice(18, 4, replace=False)))
    for _ in range(12):
        outside = np.setdiff1d(np.arange(18), basis.support)
        move = rng.uniform()
        if basis.n_elements < 4 or (basis.n_elements < 10 and move < 0.35):
            basis.add(int(rng.choice(outside)))
        elif move < 0.7:
            basis.drop(int(rng.integers(basis.n_elements)))
        else:
            basis.pivot(int(rng.integers(basis.n_elements)), int(rng.choice(outside)))
    slow = twin(problem, basis)
    assume(not slow.singular)
    unit = np.sqrt(problem.model.diagonal)
    outside = np.setdiff1d(np.arange(18), basis.support)
    np.testing.assert_allclose(basis.x * unit[basis.support], slow.x, rtol=1e-5, atol=1e-8 * np.abs(slow.x).max())
    np.testing.assert_allclose((basis.h / unit**2)[outside], slow.h[outside], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(
        (basis.s / unit)[outside], slow.s[outside], rtol=1e-5, atol=1e-8 * np.abs(problem.model.r / unit).max()
    )
    assert basis.q == pytest.approx(slow.value, rel=1e-6, abs=1e-10 * problem.model.constant)
    if not basis.signed:
        np.testing.assert_allclose(hood.add_gains()[outside], slow.adds()[outside], rtol=1e-4, atol=1e-9)
        spared = np.isfinite(hood.drop_losses())  # the others an equation needs, or nearly so
        assert (slow.kappa[~spared] <= 1e-9 * (1 + 1e-2)).all()
        np.testing.assert_allclose(hood.drop_losses()[spared], slow.drops()[spared], rtol=1e-4, atol=1e-9)
        np.testing.assert_allclose(
            hood.swap_gains(outside)[1][spared], slow.swaps(outside)[0][spared], rtol=1e-4, atol=1e-7
        )


@pytest.mark.parametrize("name", SETS)
def test_no_exchange_gains_more_than_its_newcomer_alone(name, rng):
    """This bound lets the search rank few inactive variables."""
    for _ in range(20):
        problem = a_problem(rng, SETS[name](18))
        hood = ActiveSetNeighbourhood(problem, 8)
        basis = hood
        assert basis.rebuild(np.sort(rng.choice(18, 6, replace=False)))
        hood.sign_blocked = []  # no signs
        outside = np.setdiff1d(np.arange(18), basis.support)
        assert (hood.swap_gains(outside)[1] <= hood.add_gains()[outside] * (1 + 1e-9) + 1e-12).all()


def test_the_best_swap_is_the_best_of_the_whole_table(rng):
    for _ in range(20):
        problem = a_problem(rng, ks.WholeSpace(), n=150, k=6)
        hood = ActiveSetNeighbourhood(problem, 8)
        basis = hood
        assert basis.rebuild(np.sort(rng.choice(150, 6, replace=False)))
        outside = np.setdiff1d(np.arange(150), basis.support)
        table = hood.swap_gains(outside)[1]
        j, i = divmod(int(table.argmax()), outside.size)
        assert next(hood.ranked_moves(1e-12, True)) == Move((basis.support[j],), (outside[i],))
        assert next(hood.ranked_moves(float(table.max()) * 1.01, True), None) is None


def test_a_snapshot_brings_everything_back(rng):
    problem = a_problem(rng, ks.Simplex())
    basis = ActiveSetNeighbourhood(problem, 10)
    basis.rebuild(np.array([1, 4, 7, 9]))
    saved = basis.snapshot()
    before = (basis.support.copy(), basis.x.copy(), basis.s.copy(), basis.h.copy(), basis.value, basis.key)
    for i in (0, 2, 12):
        basis.add(i)
    basis.drop(0)
    basis.drop(1)
    basis.pivot(0, 15)
    assert basis.key != before[-1]
    basis.restore(saved)
    for was, now in zip(before, (basis.support, basis.x, basis.s, basis.h, basis.value, basis.key), strict=True):
        np.testing.assert_array_equal(was, now)
    basis.add(3)  # and it is fit for use
    assert basis.q == pytest.approx(twin(problem, basis).value, rel=1e-9)


def test_a_support_has_one_key_however_it_was_reached(rng):
    problem = a_problem(rng, ks.WholeSpace())
    one, other = (ActiveSetNeighbourhood(problem, 10) for _ in range(2))
    one.rebuild(np.array([2, 5, 11]))
    other.rebuild(np.array([5, 7]))
    other.add(2)
    other.add(3)
    other.pivot(int(np.flatnonzero(other.support == 7)[0]), 11)
    assert one.key != other.key
    other.drop(int(np.flatnonzero(other.support == 3)[0]))
    assert one.key == other.key


def test_a_search_does_not_go_the_same_way_twice(rng):
    problem = a_problem(rng, ks.WholeSpace(), n=60, k=6)
    search = choose_strategy(problem).search(problem)
    search.neighbourhood.move_to(at(problem, NONE))
    assert search.descend()
    end, work = search.neighbourhood.snapshot(), search.work
    assert not search.descend()  # it stands where a descent has been
    search.neighbourhood.move_to(at(problem, NONE))
    assert not search.descend()  # by greedy steps that are free, to the first support it swapped from
    assert search.work <= work + 6
    for fresh in (True, False):  # the first time, and never again
        search.neighbourhood.restore(end)
        search.neighbourhood.apply(next(search.neighbourhood.ranked_drops()))
        assert search.add_up_to(6, fresh=True) is fresh


@pytest.mark.parametrize("name", SETS)
def test_a_move_taken_back_leaves_everything_as_it_was(name, rng):
    problem = a_problem(rng, SETS[name](18))
    start = next(
        c for c in (problem.evaluate(np.sort(rng.choice(18, 6, replace=False))) for _ in range(200)) if c is not None
    )
    for hood in (ActiveSetNeighbourhood(problem, 9), SecondOrderNeighbourhood(problem)):
        hood.move_to(start)
        for move in list(hood.ranked_moves(0.0, True))[:5]:
            before = np.sort(hood.support).tolist(), hood.value, hood.key
            undo = hood.apply(move)
            if undo is not None:
                undo()
            assert (np.sort(hood.support).tolist(), hood.key) == (before[0], before[2])
            assert hood.value == pytest.approx(before[1], rel=1e-9)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("seed", range(5))
def test_a_descent_ends_where_the_slow_search_finds_nothing(name, seed):
    rng = np.random.default_rng(seed)
    problem = a_problem(rng, SETS[name](18))
    start = next(
        c for c in (problem.evaluate(np.sort(rng.choice(18, 6, replace=False))) for _ in range(200)) if c is not None
    )
    found = descend_from(choose_strategy(problem).search(problem), start)
    assert found.value <= start.value
    assert found.support.size <= 6
    assert problem.C.contains(found.full(18))
    slow = descend_from(without_updates(problem).search(problem), found)
    assert slow.value >= found.value * (1 - 1e-9)


def test_the_search_ends_early_where_nothing_is_in_doubt(rng):
    A = rng.standard_normal((200, 60))
    b = A[:, :5] @ np.full(5, 3.0) + 0.1 * rng.standard_normal(200)
    problem = problem_of(ks.LeastSquares(A, b), ks.WholeSpace(), 60, 5)
    search = choose_strategy(problem).search(problem)
    rows = list(iterated_local_search(search, problem.evaluate(NONE), np.random.default_rng(0)))
    assert [name for name, _ in rows] == ["descent"]
    np.testing.assert_array_equal(rows[0][1].best.support, np.arange(5))
    search.neighbourhood.move_to(at(problem, np.arange(5)))
    assert search.support_is_unambiguous
    search.neighbourhood.move_to(at(problem, np.array([0, 1, 2, 3, 40])))
    assert not search.support_is_unambiguous


def test_explore_only_ever_gets_better_and_stays_within_its_effort():
    data = table5(1, seed=1)
    problem = problem_of(ks.LeastSquares(data.A, data.b), ks.Nonnegative(data.nonnegative), 640, data.k)
    search = choose_strategy(problem).search(problem)
    values = [
        found.best.value for _, found in iterated_local_search(search, problem.evaluate(NONE), np.random.default_rng(0))
    ]
    assert len(values) > 1
    assert values == sorted(values, reverse=True)
    assert search.work <= search.work_limit + 20 * problem.k


@pytest.mark.parametrize("seed", [1, 16, 20, 32, 39, 92, 149, 187])
def test_a_perfect_fit_is_kept_where_members_are_dependent(seed):
    """With k above the number of rows, x may be huge on other supports, and the model's value there is rounding."""
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
    problem = problem_of(ks.LeastSquares(A, rng.standard_normal(5)), ks.WholeSpace(), 30, 10)
    hood = ActiveSetNeighbourhood(problem, 12)
    basis = hood
    basis.rebuild(np.arange(5))
    basis.h[:5], basis.s[:5] = 1e-3, 1.0  # as rounding may leave them
    assert (hood.add_gains()[:5] == 0.0).all()
    assert all(move.entering[0] >= 5 for move in hood.ranked_moves(0.0, True))


def test_dependent_members_are_left_to_the_slow_search(rng):
    A = rng.standard_normal((5, 20))  # five rows: eight variables are dependent
    b = rng.standard_normal(5)
    problem = problem_of(ks.LeastSquares(A, b), ks.WholeSpace(), 20, 8)
    with pytest.raises(DependentError):
        choose_strategy(problem).search(problem).neighbourhood.move_to(at(problem, np.arange(8)))
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
def test_large_smooth_losses_are_searched_by_models_with_answers_as_good(kind, C, seed):
    rng = np.random.default_rng(seed)
    A = 0.4 * rng.standard_normal((150, 40))
    z = 2.0 * A[:, :4].sum(axis=1)
    loss = {
        "logistic": lambda: ks.Logistic(A, z + rng.logistic(size=150) > 0),
        "huber": lambda: ks.Huber(A, z + rng.standard_t(2, 150), 1.0),
        "poisson": lambda: ks.Poisson(A, rng.poisson(np.exp(z)).astype(float)),
    }[kind]()
    plain = ks.minimize(loss, 5, C)
    fast = ks.minimize(loss, 5, C, settings=ks.SearchSettings(large=0))
    assert any(row["start"] == "models" for row in fast.outcomes)
    assert not any("apdca" in row["start"] for row in fast.outcomes)
    assert fast.success
    assert not fast.proved
    assert fast.support.size <= 5
    assert C.contains(fast.x)
    assert fast.fun <= plain.fun + 0.03 * abs(plain.fun)
    assert fast.fun == pytest.approx(loss.value(fast.x))


def test_no_support_is_modelled_twice(monkeypatch, rng):
    """If a perturbation ends at a support where a model was searched already, the result is known."""
    taken = []
    model_at = ks.Logistic.model_at
    monkeypatch.setattr(
        ks.Logistic, "model_at", lambda loss, x: taken.append(tuple(np.flatnonzero(x))) or model_at(loss, x)
    )
    A = rng.standard_normal((80, 60))
    y = A[:, :3].sum(axis=1) + rng.logistic(size=80) > 0
    found = ks.minimize(ks.Logistic(A, y, ridge=0.1), 4, settings=ks.SearchSettings(large=0))
    assert any(row["start"] == "models" for row in found.outcomes)
    full = [support for support in taken if len(support) == 4]
    assert len(full) > 10
    assert len(full) <= len(set(full)) + 1  # the last at the end, for the look at all exchanges


@pytest.mark.parametrize(
    "C", [ks.WholeSpace(), ks.Nonnegative(), ks.Box(-0.5, 0.8), ks.Simplex()], ids=lambda C: type(C).__name__
)
def test_a_model_is_lowest_on_its_support_where_it_was_taken(C, rng):
    """A search on the model can therefore start there without a solve."""
    A = rng.standard_normal((80, 12))
    problem = problem_of(ks.Logistic(A, np.arange(80) % 2, ridge=0.1), C, 12, 4)
    best = problem.evaluate(np.array([1, 4, 5, 9]))
    twin = model_problem(problem, best.full(12))
    at = twin.evaluate(best.support)
    np.testing.assert_allclose(at.full(12), best.full(12), atol=1e-6)
    assert at.value == pytest.approx(best.value, rel=1e-9)


def test_where_a_model_leads_depends_on_k(rng):
    """Each k of a path begins at the same support, and shares the evaluations of the others."""
    A = rng.standard_normal((150, 60))
    problem = problem_of(
        ks.Logistic(A, A[:, :8].sum(axis=1) + rng.logistic(size=150) > 0, ridge=0.1), ks.WholeSpace(), 60, 8
    )
    for k in (8, 4, 2):
        assert surrogates._descend_on_models(problem.with_changes(k=k), problem.evaluate(NONE)).support.size == k


def test_a_kick_that_leaves_no_point_is_halved(rng):
    """An equation on three variables: a large random perturbation rarely keeps one of them."""
    E = np.zeros((1, 60))
    E[0, [3, 30, 50]] = 1.0
    loss, C = ks.Logistic(rng.standard_normal((80, 60)), np.arange(80) % 2, ridge=0.1), ks.Polyhedron(E=E, f=np.ones(1))
    problem = problem_of(loss, C, 60, 8)
    best = problem.evaluate(np.array([0, 3, 10, 11, 12, 20, 30, 40]))
    plain = [problem.evaluate(random_restart(problem, best.support, rng, (0.5, 1.0)), best) for _ in range(20)]
    halved = [surrogates._restart(problem, best, rng) for _ in range(20)]
    assert sum(found is not None for found in plain) < 15
    assert sum(found is not None for found in halved) >= 18
    assert all(found is None or C.contains(found.full(60)) for found in halved)
