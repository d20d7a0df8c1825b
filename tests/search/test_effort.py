"""Effort: complete searches from other seeds; the best result counts."""

import itertools

import numpy as np
import pytest

import ksparse as ks
from ksparse.datasets import table5


def hard_problems():
    """Yield problems for which one search seldom finds the best point."""
    data = table5(1, seed=11)
    yield ks.LeastSquares(data.A, data.b), data.k, ks.Nonnegative(data.nonnegative)
    rng = np.random.default_rng(5)
    A = rng.standard_normal((60, 80)) + 0.6 * rng.standard_normal((60, 1))
    mu = rng.uniform(0.0, 1.0, 80)
    yield (
        ks.Quadratic(A.T @ A / 60 + np.eye(80)),
        8,
        ks.Polyhedron(E=np.vstack([np.ones(80), mu]), f=[1.0, 0.6], lower=0.0, upper=0.5),
    )
    X = rng.standard_normal((40, 120))
    yield ks.PrincipalComponent.from_data(X), 6, ks.L2Ball()
    yield ks.Logistic(X, X[:, :3].sum(axis=1) + rng.logistic(size=40) > 0, ridge=0.5), 4, None


@pytest.mark.parametrize("problem", list(hard_problems()), ids=["signs", "two equations", "component", "logistic"])
def test_more_effort_is_never_worse_and_threads_do_not_matter(problem):
    quick = ks.minimize(*problem, effort=0)
    values = [ks.minimize(*problem, effort=effort) for effort in (1, 3, 10)]
    assert quick.fun >= values[0].fun >= values[1].fun >= values[2].fun
    for result in (quick, *values):
        assert result.success
        assert result.support.size <= problem[1]
    beside = ks.minimize(*problem, effort=10, n_jobs=2)
    np.testing.assert_array_equal(beside.x, values[2].x)
    assert [row["fun"] for row in beside.outcomes] == [row["fun"] for row in values[2].outcomes]


def test_one_search_is_the_default_and_effort_counts_searches():
    problem = next(hard_problems())
    default = ks.minimize(*problem)
    np.testing.assert_array_equal(ks.minimize(*problem, effort=1).x, default.x)
    again = [row for row in ks.minimize(*problem, effort=3).outcomes if row["start"] == "search again"]
    assert len(again) == 2
    with pytest.raises(ValueError, match="effort must be an integer >= 0, got -1"):
        ks.minimize(*problem, effort=-1)
    with pytest.raises(ValueError, match="effort is only supported with method='auto'"):
        ks.minimize(*problem, method="apdca", effort=4)


def test_with_a_time_limit_the_search_goes_on_while_that_helps(monkeypatch):
    problem = next(hard_problems())
    alone = ks.minimize(*problem)
    readings = itertools.count()
    # every look at the clock takes a millisecond
    monkeypatch.setattr("time.perf_counter", lambda: 1e-3 * next(readings))
    longer = ks.minimize(*problem, max_time=2.0)
    assert longer.elapsed <= 1.5 * 2.0 + 0.3
    assert longer.success  # the time was for more, not for this
    assert longer.fun <= alone.fun
    assert any(row["start"] == "search again" for row in longer.outcomes)


@pytest.mark.parametrize("problem", list(hard_problems())[:2], ids=["signs", "two equations"])
def test_a_start_of_the_users_never_makes_the_answer_worse(problem, rng):
    loss, k, C = problem
    alone = ks.minimize(loss, k, C).fun
    for _ in range(4):
        x0 = np.zeros(loss.n)
        x0[rng.choice(loss.n, 2 * k, replace=False)] = rng.standard_normal(2 * k)  # not k-sparse, not in C
        assert ks.minimize(loss, k, C, x0=x0).fun <= alone
    better = ks.minimize(loss, k, C, effort=8).x
    assert ks.minimize(loss, k, C, x0=better).fun <= loss.value(better) * (1 + 1e-9)


def test_no_effort_is_little_more_than_a_descent_and_proves_nothing():
    data = table5(1, seed=11)
    loss = ks.LeastSquares(data.A, data.b)
    quick = ks.minimize(loss, data.k, effort=0)
    assert [row["start"] for row in quick.outcomes][:2] == ["greedy", "descent"]
    assert {row["start"] for row in quick.outcomes} <= {"greedy", "descent", "walk"}
    assert quick.status is ks.Status.STATIONARY
    model = ks.SparseRegressor(data.k, effort=0, fit_intercept=False).fit(data.A, data.b)
    assert model.result_.nit <= quick.nit
    with pytest.raises(ValueError, match="effort must be an integer >= 0, got -1"):
        ks.minimize(loss, data.k, effort=-1)
    with pytest.raises(ValueError, match="effort must be an integer >= 1, got 0"):
        ks.k_path(loss, [2, 3], effort=0)
