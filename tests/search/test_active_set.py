"""The KKT inverse that is updated with its active constraints, compared with solves from scratch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ksparse as ks
from ksparse.search.active_set import ActiveSetNeighbourhood
from ksparse.search.candidate import NONE
from ksparse.search.neighbourhoods import DependentError, Move
from ksparse.search.problem import SupportProblem

N, K = 16, 6


def sets(rng):
    """Return polyhedra with points on small supports, each with its minimum size."""
    mu = rng.uniform(0.5, 1.5, N)
    sectors = np.array([np.arange(N) % 3 == s for s in range(3)], dtype=float)
    ones = np.ones((1, N))
    return {
        "box": (ks.Box(-rng.uniform(0.0, 0.3, N), rng.uniform(0.1, 0.4, N)), 0.0),
        "budget box": (ks.BudgetBox(1.0, 0.0, 0.4), 0.0),
        "budget, floor": (ks.BudgetBox(1.0, 0.0, 0.5), 0.08),
        "return": (ks.Polyhedron(-mu[None], [-1.0], ones, [1.0], lower=0.0), 0.0),
        "return, equation": (ks.Polyhedron(E=np.vstack([ones, mu]), f=[1.0, 1.0], lower=0.0, upper=0.6), 0.05),
        "sectors": (ks.Polyhedron(sectors, np.full(3, 0.5), ones, [1.0], lower=0.0, upper=0.4), 0.03),
        "signs": (ks.Box(np.where(np.arange(N) % 2, 0.0, -np.inf), np.inf), 0.0),
        "two equations": (ks.Polyhedron(E=np.vstack([ones, np.arange(N)]), f=[1.0, N / 3]), 0.0),
        "rows alone": (ks.Polyhedron(rng.standard_normal((3, N)), rng.uniform(0.1, 0.5, 3)), 0.0),
    }


def problem_of(rng, name, forced_in=NONE):
    A = rng.standard_normal((24, N)) + 0.8 * rng.standard_normal((24, 1))
    C, floor = sets(rng)[name]
    loss = ks.LeastSquares(A, A[:, :5].sum(axis=1) / 5 + 0.3 * rng.standard_normal(24))
    return SupportProblem.of(loss, C, N, K, forced_in=forced_in, floor=floor)


def stand_somewhere(problem, rng):
    """Return a neighbourhood at a random support on which C has a point."""
    hood = ActiveSetNeighbourhood(problem, K + 4)
    for _ in range(200):
        found = problem.evaluate(np.sort(rng.choice(N, K, replace=False)))
        if found is not None:
            hood.move_to(found)
            return hood, found
    raise AssertionError("no support has a point")


def test_every_number_along_a_random_walk_is_that_of_an_inverse_from_scratch():
    """Adds, drops, swaps, undone moves, snapshots, removals of several and fresh supports, over every kind of set."""
    compared = 0
    for seed, name in enumerate(list(sets(np.random.default_rng(0))) * 3):
        rng = np.random.default_rng(seed)
        problem = problem_of(rng, name, forced_in=np.array([3]) if seed % 4 == 0 else NONE)
        hood, _ = stand_somewhere(problem, rng)
        twin, saved = ActiveSetNeighbourhood(problem, K + 4), hood.snapshot()
        for _ in range(20):
            outside = np.setdiff1d(np.arange(N), hood.support)
            leaving = tuple(rng.choice(hood.support, min(1, hood.size)).tolist())
            entering, kind = (int(rng.choice(outside)),), rng.integers(8)
            try:
                if kind == 0 and hood.size > K:
                    hood.apply(Move(leaving, ()))
                elif kind == 1 and hood.size < K + 2:
                    hood.apply(Move((), entering))
                elif kind <= 4 and hood.size:
                    undo = hood.apply(Move(leaving, entering))
                    if undo is not None and kind == 4:
                        undo()
                elif kind == 5:
                    hood.restore(saved)
                elif kind == 6:
                    saved = hood.snapshot()
                    if not hood.remove_many(rng.permutation(hood.support)[:2], rng):
                        hood.restore(saved)
                elif not hood.move_to_support(np.sort(rng.choice(N, K, replace=False))):
                    hood.restore(saved)
            except DependentError:
                hood.restore(saved)
            one, other = hood, twin
            free = one.element[one.free]
            if not other.rebuild(np.append(free, one.held), one.held, one.level, ~one.element[one.element < 0]):
                continue
            compared += 1
            assert (one.key, hood.size) == (other.key, twin.size)
            assert hood.value == pytest.approx(twin.value, rel=1e-8)
            order = np.searchsorted(np.sort(other.element), one.element)
            places = np.argsort(other.element, kind="stable")[order]
            for mine, fresh in (
                (one.x, other.x[places]),
                (one.kappa, other.kappa[places]),
                (one.s, other.s),
                (one.h, other.h),
            ):
                np.testing.assert_allclose(mine, fresh, rtol=1e-6, atol=1e-8 * max(1.0, np.abs(fresh).max(initial=0.0)))
            at = {i: place for place, i in enumerate(other.support.tolist())}
            losses, promising = one.drop_losses(), np.flatnonzero(one.add_gains(within=False) > 1e-9)
            np.testing.assert_allclose(
                losses, other.drop_losses()[[at[i] for i in one.support.tolist()]], rtol=1e-5, atol=1e-8
            )
            np.testing.assert_allclose(one.add_gains(), other.add_gains(), rtol=1e-5, atol=1e-8)
            rows, gains = one.swap_gains(promising)
            np.testing.assert_allclose(
                gains, other.swap_gains(promising)[1][[at[i] for i in rows.tolist()]], rtol=1e-5, atol=1e-7
            )
    assert compared > 250


@pytest.mark.parametrize("name", list(sets(np.random.default_rng(0))))
@given(seed=st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_the_value_is_that_of_the_quadratic_program_wherever_it_stands(name, seed):
    rng = np.random.default_rng(seed)
    problem = problem_of(rng, name)
    hood, found = stand_somewhere(problem, rng)
    assert hood.value == pytest.approx(found.value, rel=1e-8)
    compared = refused = 0
    for _ in range(12):
        outside = np.setdiff1d(np.arange(N), hood.support)
        leaving, entering = (int(rng.choice(hood.support)),), (int(rng.choice(outside)),)
        kind = rng.integers(3)
        if hood.support.size <= 2 or (kind == 0 and hood.support.size < K + 2):
            leaving = ()
        elif kind == 1:
            entering = ()
        before = hood.value, sorted(hood.support)
        try:
            undo = hood.apply(Move(leaving, entering))
        except DependentError:
            break
        wanted = np.union1d(np.setdiff1d(before[1], leaving), entering).astype(np.intp)
        exact = problem.evaluate(wanted)
        if undo is None:
            refused += exact is not None
            assert (hood.value, sorted(hood.support)) == before
            continue
        assert exact is not None  # C has a point there
        compared += 1
        assert hood.value == pytest.approx(exact.value, rel=1e-7, abs=1e-9)
        x = np.zeros(N)
        x[hood.element[hood.free]] = hood.x[hood.free]
        x[hood.held] = hood.level
        assert problem.linear.violation(x) <= 1e-9
        np.testing.assert_allclose(x, exact.full(N), atol=1e-6)
        if rng.random() < 0.3 and leaving and entering:
            undo()
            assert hood.value == pytest.approx(before[0], rel=1e-9)
            assert sorted(hood.support) == before[1]
    assert refused <= 0.2 * (compared + refused) + 1


def test_a_row_that_alone_holds_a_variable_without_curvature_is_not_let_go():
    C = ks.Polyhedron(G=[[0.0, 1, -1], [-1, 0, 1]], h=[-1.0, 1], lower=np.zeros(3))
    loss = ks.Quadratic(np.diag([0.0, 1, 1]), np.array([0.0, 1, -2]))
    result = ks.minimize(loss, 2, C, settings=ks.SearchSettings(enumerated=0))
    assert result.fun == pytest.approx(-2.0)
    for seed in (5, 20, 21, 36):
        rng = np.random.default_rng(seed)
        A = rng.normal(size=(60, 40))
        A[:, rng.choice(40, 4, replace=False)] = 0
        b, G, x = rng.normal(size=60), np.round(rng.normal(size=(3, 40))), np.zeros(40)
        x[rng.choice(40, 4, replace=False)] = rng.uniform(0, 1, 4)
        C = ks.Polyhedron(G=G, h=G @ x + rng.choice([0, 0, 0.5], size=3), lower=np.zeros(40))
        assert C.contains(ks.minimize(ks.LeastSquares(A, b), 4, C).x)


def test_a_support_that_is_forced_in_and_held_at_0_has_no_swaps():
    settings = ks.SearchSettings(enumerated=0)
    result = ks.minimize(
        ks.Quadratic(np.eye(4), np.array([1.0, 1, -1, -1])), 2, ks.Nonnegative(), forced_in=[0, 1], settings=settings
    )
    assert not result.x.any()


def test_bounds_that_a_budget_implies_are_kept_exactly_above_floors():
    rng = np.random.default_rng(169)
    n, B = 9, 10.0 ** rng.integers(3, 11)
    lower = np.zeros(n)
    lower[:5] = B * rng.uniform(0.1, 1, 5)
    total = float(lower.sum() + rng.uniform(0.1, 1))
    most = (total - (lower.sum() - lower))[5]
    upper = np.full(n, np.inf)
    upper[5:] = most
    c = np.zeros(n)
    c[:5], c[5] = -lower[:5], -3 * B
    C = ks.Polyhedron(E=np.ones((1, n)), f=[total], lower=lower, upper=upper)
    result = ks.minimize(ks.Quadratic(np.eye(n), c), 6, C, min_nonzero=1e-3 * most)
    assert (result.x <= upper).all()
    assert (result.x >= lower).all()


def test_units_that_are_far_apart_leave_the_relaxation_without_a_word(rng):
    A = rng.standard_normal((20, 5)) * np.array([1.0, 1e-160, 1e-7, 1.0, 1e-100])
    C = ks.Polyhedron(E=np.ones((1, 5)), f=[1.0], lower=0.0, upper=0.7)
    result = ks.minimize(ks.LeastSquares(A, rng.standard_normal(20)), 3, C, settings=ks.SearchSettings(enumerated=0))
    assert C.contains(result.x)
