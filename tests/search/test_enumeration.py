"""Enumeration: bounds of many supports at once are valid and close, and only supports that may be best are solved."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import nnls

import ksparse as ks
from ksparse.data.model import QuadraticModel
from ksparse.numerics.bound import lower_bounds_on_supports
from ksparse.numerics.constraints import Linear
from ksparse.search.problem import SupportProblem


def least_squares(rng, m=12, n=6):
    A = rng.standard_normal((m, n)) * rng.uniform(0.01, 100, n)
    return A, rng.standard_normal(m)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_bounds_under_signs_are_those_of_nonnegative_least_squares(rng, size):
    A, b = least_squares(rng)
    supports = np.array(list(combinations(range(6), size)))
    model = QuadraticModel.of_squares(A, b)
    signs = Linear.of(6, lower=0.0)
    found = lower_bounds_on_supports(model.block(np.arange(6)), model.r, signs, supports, model.noise, model.constant)
    true = np.array([0.5 * nnls(A[:, support], b)[1] ** 2 for support in supports])
    assert (found <= true * (1 + 1e-13)).all()
    assert found == pytest.approx(true, rel=1e-9)


def test_bounds_under_signs_and_an_equation_are_values_of_the_simplex(rng):
    A, b = least_squares(rng)
    supports = np.array(list(combinations(range(6), 3)))
    model = QuadraticModel.of_squares(A, b)
    simplex = Linear.of(6, lower=0.0, E=np.ones((1, 6)), f=[1.0])
    found = lower_bounds_on_supports(model.block(np.arange(6)), model.r, simplex, supports, model.noise, model.constant)
    problem = SupportProblem.of(ks.LeastSquares(A, b), ks.Simplex(), 6, 3)
    true = np.array([problem.evaluate(support).value for support in supports])
    assert (found <= true * (1 + 1e-12)).all()
    assert found == pytest.approx(true, rel=1e-8)


def test_dependent_variables_have_no_bound(rng):
    A, b = least_squares(rng)
    A[:, 1] = 2.0 * A[:, 0]
    model = QuadraticModel.of_squares(A, b)
    supports = np.array([[0, 1], [0, 2]])
    found = lower_bounds_on_supports(model.block(np.arange(6)), model.r, Linear.of(6), supports, model.noise)
    assert found[0] == -np.inf < found[1]


def test_few_supports_are_solved_one_by_one(rng, monkeypatch):
    A, b = least_squares(rng, 50, 10)
    solved = []
    evaluate = SupportProblem.evaluate
    monkeypatch.setattr(SupportProblem, "evaluate", lambda self, S, hint=None: solved.append(S) or evaluate(self, S))
    result = ks.minimize(ks.LeastSquares(A, b), 3, ks.Nonnegative())
    assert result.status is ks.Status.OPTIMAL
    assert len({S.tobytes() for S in solved}) < 10  # of 120
    values = [0.5 * nnls(A[:, list(support)], b)[1] ** 2 for support in combinations(range(10), 3)]
    assert result.fun == pytest.approx(min(values), rel=1e-12)
    assert min(values) * (1 - 1e-8) <= result.lower_bound <= min(values) * (1 + 1e-12)


@pytest.mark.parametrize("C", [ks.Box(-0.5, 0.7), ks.BudgetBox(1.0, 0.0, 0.6), ks.L2Ball(0.8), None])
@pytest.mark.parametrize("options", [{}, {"forced_in": [0]}, {"min_nonzero": 0.05}, {"groups": [0, 0, 1, 2, 3, 4]}])
def test_the_best_support_is_the_best_of_all_solved_one_by_one(C, options, rng, monkeypatch):
    if isinstance(C, ks.L2Ball) and "min_nonzero" in options:
        pytest.skip("a minimum size needs a polyhedron")
    A, b = rng.standard_normal((9, 6)), rng.standard_normal(9)
    found = ks.minimize(ks.LeastSquares(A, b), 3, C, **options)
    monkeypatch.setattr("ksparse.search.enumeration.LARGEST_BATCHED", 0)
    alone = ks.minimize(ks.LeastSquares(A, b), 3, C, **options)
    assert found.status is alone.status is ks.Status.OPTIMAL
    assert found.fun == pytest.approx(alone.fun, rel=1e-12)
    assert found.support.tolist() == alone.support.tolist()


@pytest.mark.parametrize("mean", [1e5, 3e6])
def test_a_large_mean_does_not_hide_the_best_support(mean, rng):
    """φ(0) is then far above the values that matter."""
    A = rng.standard_normal((60, 8))
    A[:, 0] = 1.0
    b = mean + 0.3 * (A[:, 3] - A[:, 5]) + 0.5 * rng.standard_normal(60)
    result = ks.minimize(ks.LeastSquares(A, b), 3)
    residuals = [np.linalg.lstsq(A[:, S], b, rcond=None)[1][0] for S in map(list, combinations(range(8), 3)) if 0 in S]
    assert result.fun == pytest.approx(0.5 * min(residuals), rel=1e-6)


def test_supports_without_a_finite_value_end_no_search(rng):
    a = 10.0 ** rng.uniform(-200, -150, 300)
    a[:5] = 1.0
    A, b = rng.standard_normal((80, 300)), rng.standard_normal(80)
    result = ks.minimize(ks.LeastSquares(A, b), 2, ks.Hyperplane(a, 1.0))
    assert result.success
    assert np.isfinite(result.fun)
