"""Minima of rows subject to an equation, against linear programming; native output is suppressed."""

import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from conftest import sweep
from ksparse.numerics.constraints import Linear, min_activity_given_equation


@pytest.mark.parametrize("seed", sweep(range(20), 7))
def test_it_is_what_linear_programming_finds(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    lower, upper = -rng.random(n) * (rng.random(n) < 0.5), 0.1 + rng.random(n)
    G, e = rng.standard_normal((3, n)), np.where(rng.random(n) < 0.8, rng.standard_normal(n), 0.0)
    e[0] = 1.0
    f = float(e @ rng.uniform(lower, upper))
    found = min_activity_given_equation(G, e, f, lower, upper)
    for g, least in zip(G, found, strict=True):
        best = linprog(g, A_eq=e[None], b_eq=[f], bounds=np.column_stack([lower, upper])).fun
        assert least <= best + 1e-12
        assert least == pytest.approx(best, abs=1e-7)


def test_without_bounds_the_minimum_is_minus_infinity():
    lower, upper = np.zeros(2), np.full(2, np.inf)
    assert min_activity_given_equation(np.array([[-1.0, 0.0]]), np.array([0.0, 1.0]), 1.0, lower, upper)[0] == -np.inf
    found = min_activity_given_equation(np.array([[-1.0, 2.0]]), np.array([1.0, 1.0]), 1.0, lower, upper)
    assert found[0] == pytest.approx(-1.0, abs=1e-8)


def test_empty_polyhedra():
    ones = np.ones((1, 3))
    reached = Linear.of(3, lower=0.0, upper=1.0, G=-np.array([[1.0, 2.0, 3.0]]), h=[-3.0], E=ones, f=[1.0])
    beyond = Linear.of(3, lower=0.0, upper=1.0, G=-np.array([[1.0, 2.0, 3.0]]), h=[-3.1], E=ones, f=[1.0])
    assert not reached.provably_empty  # the third alone meets it
    assert beyond.provably_empty
    assert Linear.of(2, lower=1.0, upper=0.0).provably_empty
    assert not Linear.of(2, lower=0.0, upper=np.inf, E=np.ones((1, 2)), f=[1.0]).provably_empty
    assert not Linear(
        reached.lower, reached.upper, 1e-90 * reached.G, 1e-90 * reached.h, 1e60 * reached.E, 1e60 * reached.f
    ).provably_empty


def test_a_point_that_only_rounding_hides_is_not_denied():
    """g − λe is a rounding error and the bounds are wide: in exact arithmetic there is a feasible point."""
    wide, g, e = 1e8, np.array([[1.0, 7 / 3]]), np.array([3.0, 7.0])
    off = Fraction(g[0, 1]) - Fraction(7, 3)
    f = 3 * abs(float(off)) * wide / 8
    second = Fraction(-float(np.sign(float(off))) * wide / 4)
    first = (Fraction(f) - 7 * second) / 3
    assert abs(first) <= wide
    assert first + Fraction(g[0, 1]) * second <= 0
    assert not Linear.of(2, -wide, wide, g, [0.0], e, [f]).provably_empty


def test_nothing_is_printed_past_python():
    code = (
        "import os\nfrom ksparse.numerics.linear_programs import suppress_native_stdout as quiet\n"
        "print('before')\nwith quiet():\n    with quiet():\n        os.write(1, b'noise')\n"
        "    os.write(1, b'noise')\nprint('after')"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert ran.stdout.split() == ["before", "after"]
