"""Presolve drops only redundant rows and useless variables."""

from itertools import combinations

import numpy as np
import pytest

import ksparse as ks
from conftest import sweep
from ksparse.numerics.constraints import Linear, fixed_by_equations, presolved, reachable_variables
from ksparse.numerics.qp import feasible_point


def test_bounds_that_a_budget_implies_are_left_out():
    n = 5
    budget = {"E": np.ones((1, n)), "f": [1.0]}
    assert np.isinf(presolved(Linear.of(n, 0.0, 1.0, **budget)).upper).all()
    np.testing.assert_array_equal(presolved(Linear.of(n, 0.0, 0.999, **budget)).upper, np.full(n, 0.999))
    # short positions pay for more
    np.testing.assert_array_equal(presolved(Linear.of(n, -0.1, 1.0, **budget)).upper, np.full(n, 1.0))
    lower = np.array([0.2, 0.0, 0.0, 0.0, 0.0])
    np.testing.assert_array_equal(
        np.isinf(presolved(Linear.of(n, lower, 0.9, **budget)).upper), [False, True, True, True, True]
    )


def test_rows_that_the_bounds_imply_are_left_out():
    G = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [-1.0, 0.0, 0.0]])
    kept = presolved(Linear.of(3, 0.0, 1.0, G, [2.5, 2.5, 0.1]))
    np.testing.assert_array_equal(kept.G, G[1:2])  # 2 <= 2.5 and 0 <= 0.1 need no row
    assert presolved(Linear.of(3, 0.0, np.inf, G[:1], [2.5])).h.size == 1
    assert presolved(Linear.of(3, 0.0, 1.0, G[:1], [2.0])).h.size == 1  # as close as rounding: it stays


@pytest.mark.parametrize("seed", sweep(range(30), 10))
def test_no_point_is_lost(seed):
    """Presolve keeps the feasible supports and their bounds, and drops only variables that no support can use."""
    rng = np.random.default_rng(seed)
    n, k = 6, 3
    low, high = np.round(rng.uniform(0.0, 0.3, n), 1), np.round(rng.uniform(0.2, 0.9, n), 1)
    G = rng.integers(-1, 3, (2, n)).astype(float)
    linear = Linear.of(n, 0.0, high, G, np.round(rng.uniform(0.2, 2.0, 2), 1), np.ones((1, n)), [1.0])
    may, short = reachable_variables(linear, low, high, np.ones(n, dtype=bool), k), presolved(linear)
    for size in range(1, k + 1):
        for support in (list(S) for S in combinations(range(n), size)):
            points = []
            for polyhedron in (linear, short):
                on = polyhedron.on(np.array(support))
                try:
                    points.append(feasible_point(Linear(low[support], on.upper, on.G, on.h, on.E, on.f)))
                except ks.InfeasibleError:
                    points.append(None)
            assert (points[0] is None) == (points[1] is None)
            if points[0] is not None:
                assert may[support].all()
                assert linear.on(np.array(support)).broken(points[1]) <= 1e-8


def test_what_no_sparse_point_can_use_is_seen():
    n = 6
    linear = Linear.of(n, 0.0, np.array([0.5, 0.5, 0.3, 0.3, 0.05, 0.5]), E=np.ones((1, n)), f=[1.0])
    everyone = np.ones(n, dtype=bool)
    np.testing.assert_array_equal(
        reachable_variables(linear, linear.lower, linear.upper, everyone, 2), [True, True, False, False, False, True]
    )
    np.testing.assert_array_equal(
        reachable_variables(linear, linear.lower, linear.upper, everyone, 3), [True, True, True, True, True, True]
    )
    floor = np.array([0.6, 0.0, 0.0, 0.0, 0.0, 0.0])  # above its own bound
    assert not reachable_variables(linear, floor, linear.upper, everyone, 3)[0]


def test_equations_of_one_variable_after_the_other_fix_their_variables():
    E, f = np.array([[2.0, 0.0, 0.0, 0.0], [1.0, -1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]]), np.array([3.0, 1.0, 1.0])
    value, off = fixed_by_equations(Linear.of(4, E=E, f=f))
    np.testing.assert_array_equal(value, [1.5, 0.5, np.nan, np.nan])
    assert 0 < off[0] < 1e-14
    assert 0 < off[1] < 1e-14
    # bounds fix one
    value, _ = fixed_by_equations(Linear.of(4, [-1.0, -1.0, 0.25, -1.0], [1.0, 1.0, 0.25, 1.0], E=E[2:], f=f[2:]))
    np.testing.assert_array_equal(value, [np.nan, np.nan, 0.25, 0.75])
