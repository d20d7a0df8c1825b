"""Tabu walks by the best swap: the swap against re-solving all swaps, tabu variables, and the end of a walk."""

import itertools

import numpy as np
import pytest

import ksparse as ks
from conftest import sweep
from ksparse.datasets import table5
from ksparse.search import explore
from ksparse.search.active_set import ActiveSetNeighbourhood
from ksparse.search.candidate import SearchOutcome
from ksparse.search.local_search import LocalSearch, descend_from
from ksparse.search.neighbourhoods import DependentError, Move
from ksparse.search.perturbation import TabuList, tabu_walk
from ksparse.search.problem import SupportProblem
from ksparse.search.strategy import choose_strategy
from ksparse.util.resources import OutOfTimeError

NONE = np.zeros(0, dtype=np.intp)
SETS = {
    "whole": lambda n: ks.WholeSpace(),
    "hyperplane": lambda n: ks.Hyperplane(),
    "two equations": lambda n: ks.Polyhedron(
        None, None, E=np.vstack([np.ones(n), np.arange(n)]), f=np.array([1.0, n / 3])
    ),
}


def problem_of(loss, C, n, k, **options):
    return SupportProblem.of(loss, C, n, k, **options)


def a_problem(seed, C, n=14, k=5, **options):
    rng = np.random.default_rng(seed)
    return problem_of(ks.LeastSquares(rng.standard_normal((30, n)), rng.standard_normal(30)), C, n, k, **options)


def standing_at(problem, support):
    hood = ActiveSetNeighbourhood(problem, problem.k + 3)
    hood.move_to(problem.evaluate(np.asarray(support)))
    return hood


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("seed", sweep(range(6), 2))
def test_the_swap_is_the_best_of_all_that_are_not_barred(name, seed):
    problem = a_problem(seed, SETS[name](14))
    rng = np.random.default_rng(seed)
    support = np.sort(rng.choice(14, 5, replace=False))
    hood = standing_at(problem, support)
    shut, kept = np.zeros(14, dtype=bool), np.zeros(14, dtype=bool)
    shut[rng.choice(np.setdiff1d(np.arange(14), support), 3, replace=False)] = kept[
        rng.choice(support, 2, replace=False)
    ] = True
    values = {
        (out, into): problem.evaluate(np.sort(np.append(np.setdiff1d(support, [out]), into))).value
        for out in support[~kept[support]].tolist()
        for into in np.setdiff1d(np.flatnonzero(~shut), support).tolist()
    }
    best = min(values, key=values.get)
    swap = hood.best_swap(shut, kept)
    assert (swap.move.leaving[0], swap.move.entering[0]) == best
    assert swap.gain == pytest.approx(hood.value - values[best], rel=1e-8, abs=1e-10)


def test_no_swap_is_left_where_all_are_barred_or_forced_in():
    problem = a_problem(0, ks.WholeSpace())
    hood, none = standing_at(problem, [0, 1, 2, 3, 4]), np.zeros(14, dtype=bool)
    assert hood.best_swap(~none, none) is None
    assert hood.best_swap(none, ~none) is None
    forced = a_problem(0, ks.WholeSpace(), forced_in=np.arange(5))
    assert standing_at(forced, [0, 1, 2, 3, 4]).best_swap(none, none) is None


def test_a_swapped_variable_is_tabu_for_some_steps():
    barred = TabuList(10, 8, (0.5, 0.25), np.random.default_rng(0))
    barred.record(Move((3,), (7,)))
    out, kept = [], []
    for step in range(12):
        out.append(bool(barred.cannot_enter[3]))
        kept.append(bool(barred.cannot_leave[7]))
        assert not barred.cannot_enter[[7, 9]].any()
        assert not barred.cannot_leave[[3, 9]].any()
        barred.record(Move((step % 2,), (4 + step % 2,)))
    assert 1 + 2 <= sum(out) <= 1 + 6  # half to one and a half of 4, and one
    assert 1 + 1 <= sum(kept) <= 1 + 3
    assert out == sorted(out, reverse=True)
    assert kept == sorted(kept, reverse=True)


def test_a_walk_leaves_local_optima_that_no_swap_leaves():
    """Start from every suboptimal local optimum of problems small enough for enumeration."""
    stuck = left = 0
    for seed in range(12):
        problem = a_problem(seed, ks.WholeSpace(), n=12, k=4, settings=ks.SearchSettings(patience=20.0))
        found = [problem.evaluate(np.array(S)) for S in itertools.combinations(range(12), 4)]
        best = min(one.value for one in found)
        search = LocalSearch(problem, ActiveSetNeighbourhood(problem, 7), 10_000)
        ends = {
            round(end.value, 9): end for one in found[::40] if (end := descend_from(search, one)).value > best + 1e-9
        }
        for end in ends.values():
            search = LocalSearch(problem, ActiveSetNeighbourhood(problem, 7), 10_000)
            search.neighbourhood.move_to(end)
            reached = [
                search.neighbourhood.value
                for _ in tabu_walk(search, search.neighbourhood.walks(), np.random.default_rng(0))
            ]
            assert reached == sorted(reached, reverse=True)
            assert search.neighbourhood.value == pytest.approx(min([end.value, *reached]), rel=1e-12)
            stuck, left = stuck + 1, left + (search.neighbourhood.value <= best + 1e-9)
    assert stuck >= 5
    assert left >= 0.8 * stuck


@pytest.mark.parametrize("C", [ks.WholeSpace(), ks.Nonnegative(np.arange(0, 640, 2)), ks.Simplex()], ids=str)
def test_a_walk_ends_at_the_best_place_it_saw_and_obeys_on_the_way(C):
    instance = table5(1, seed=5)
    problem = problem_of(ks.LeastSquares(instance.A, instance.b), C, 640, 20)
    search = LocalSearch(problem, ActiveSetNeighbourhood(problem, 25), 600)
    start = problem.evaluate(np.arange(20))
    begin = descend_from(search, start)
    for _ in tabu_walk(search, search.neighbourhood.walks(), np.random.default_rng(1)):
        solved = problem.evaluate(np.sort(search.neighbourhood.support))
        assert solved.value == pytest.approx(search.neighbourhood.value, rel=1e-9)
        assert search.neighbourhood.size <= 20
    assert search.neighbourhood.value <= begin.value + 1e-12
    assert search.exhausted or search.neighbourhood.changes < 600


def test_a_walk_ends_where_variables_are_dependent(monkeypatch):
    problem = a_problem(3, ks.WholeSpace())
    search = LocalSearch(problem, ActiveSetNeighbourhood(problem, 8), 1_000)
    begin = descend_from(search, problem.evaluate(np.arange(5)))

    def dependent(move):
        raise DependentError

    monkeypatch.setattr(search.neighbourhood, "apply", dependent)
    assert list(tabu_walk(search, search.neighbourhood.walks(), np.random.default_rng(0))) == []
    assert search.neighbourhood.value == pytest.approx(begin.value)
    assert search.wasted == search.k


def test_a_walk_fetches_all_columns_at_once_where_it_is_long_enough():
    problem = a_problem(0, ks.WholeSpace())
    hood = standing_at(problem, [0, 1, 2, 3, 4])
    known = hood.model.known.sum()
    hood.prefetch(4)
    assert hood.model.known.sum() == known < 14
    hood.prefetch(5)
    assert hood.model.known.all()


@pytest.mark.parametrize("patience", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("changes", [60, 150, 1_000])
def test_a_walk_never_leaves_the_best_place_it_stood_at(patience, changes):
    """For every reason to end: patience, the limit on work, a support of another walk."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((60, 120)) + rng.standard_normal((60, 1))
        b = A[:, :25] @ rng.standard_normal(25) + 6.0 * rng.standard_normal(60)
        problem = problem_of(
            ks.LeastSquares(A, b), ks.WholeSpace(), 120, 18, settings=ks.SearchSettings(patience=patience)
        )
        search = LocalSearch(problem, ActiveSetNeighbourhood(problem, 23), changes)
        seen = [descend_from(search, problem.evaluate(np.arange(18))).value]
        visited = search.mark_visited

        def spy(way, visited=visited, search=search, seen=seen):
            seen.append(search.neighbourhood.value)
            return visited(way)

        search.mark_visited = spy
        for _ in range(3):
            before = search.neighbourhood.value
            named = list(tabu_walk(search, search.neighbourhood.walks(), rng))
            assert search.neighbourhood.value <= min(seen) + 1e-9
            assert bool(named) == (search.neighbourhood.value < before - 1e-9)
            solved = problem.evaluate(np.sort(search.neighbourhood.support))
            assert solved.value == pytest.approx(search.neighbourhood.value, rel=1e-9)


@pytest.mark.parametrize("ratio", [1e4, 1e8, 1e20])
def test_a_swap_of_columns_in_other_units_leaves_the_factorisation_exact(ratio):
    rng = np.random.default_rng(0)
    units = np.where(np.arange(14) % 2, 1.0, ratio)
    problem = problem_of(
        ks.LeastSquares(rng.standard_normal((30, 14)) * units, rng.standard_normal(30)), ks.WholeSpace(), 14, 5
    )
    hood = standing_at(problem, [1, 3, 5, 7, 9])  # small ones, for which large ones enter
    for leaving, entering in ((3, 2), (7, 0), (2, 3)):
        hood.pivot(hood._place(leaving), entering)
        p, S = hood.n_elements, hood.element.copy()
        kept, scale = hood.inverse[:p, :p].copy(), units[S][:, None] * units[S]
        s, h = hood.s.copy(), hood.h.copy()
        assert hood.recompute()
        np.testing.assert_allclose(kept * scale, hood.inverse[:p, :p] * scale, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(s / units, hood.s / units, atol=1e-10)
        np.testing.assert_allclose(h / units**2, hood.h / units**2, atol=1e-9)


@pytest.mark.parametrize("power", [-280, -262, 254, 300])
def test_units_do_not_matter_though_squares_of_H_are_beyond_the_range_of_numbers(power):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((40, 40)) + 0.5 * rng.standard_normal((40, 1))
        b = A[:, :9] @ rng.standard_normal(9) + rng.standard_normal(40)
        assert ks.minimize(ks.LeastSquares(A * 2.0**power, b), 18).fun == ks.minimize(ks.LeastSquares(A, b), 18).fun


@pytest.mark.parametrize("powers", [(300, 330), (-330, -330), (255, 255), (-330, 330)])
def test_units_do_not_matter_though_squares_of_the_slopes_are_beyond_the_range_of_numbers(powers):
    """Duplicate columns have slopes of pure rounding."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        A, b = rng.standard_normal((60, 80)), rng.standard_normal(60)
        A[:, 70:] = A[:, :10]
        same = ks.minimize(ks.LeastSquares(A, b), 20)
        other = ks.minimize(ks.LeastSquares(A * 2.0 ** powers[0], b * 2.0 ** powers[1]), 20)
        assert other.fun * 2.0 ** (-2 * powers[1]) == pytest.approx(same.fun, rel=1e-9)


def test_an_interrupted_walk_has_yielded_every_local_optimum_it_found():
    instance = table5(1, seed=4)
    problem = problem_of(ks.LeastSquares(instance.A, instance.b), ks.WholeSpace(), 640, 20)
    search = LocalSearch(problem, ActiveSetNeighbourhood(problem, 25), 800)
    descend_from(search, problem.evaluate(np.arange(20)))
    ends, attempt = [], search.attempt

    def spy(way, best):
        found = attempt(way, best)
        ends.append(search.neighbourhood.value)
        return found

    search.attempt = spy
    told = [
        search.neighbourhood.value for _ in tabu_walk(search, search.neighbourhood.walks(), np.random.default_rng(0))
    ]
    assert len(told) > 3
    assert told == ends


def test_a_search_whose_time_is_up_keeps_what_it_has_found(monkeypatch):
    problem = a_problem(1, ks.WholeSpace())
    begin = problem.evaluate(np.arange(5))
    better = min((problem.evaluate(np.arange(i, i + 5)) for i in range(9)), key=lambda one: one.value)
    assert better.value < begin.value

    def search_from(*given, **how):
        yield "walk", SearchOutcome(better, 3)
        raise OutOfTimeError

    monkeypatch.setattr(explore, "search_from", search_from)
    found = explore.run_restarts(problem, choose_strategy(problem), begin, [np.random.SeedSequence(0)], 1)
    assert found[0].best is better
