"""The batch search: the compiled loop and its twin by whole arrays say the same, and what they say is right."""

import itertools

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from ksparse.search.batch.by_arrays import descend_all
from ksparse.search.batch.data import BatchData
from ksparse.search.batch.loop import descend_each
from ksparse.search.batch.problem import Best
from ksparse.search.batch.rounds import distinct, rounds_of, search_batch, served
from ksparse.search.settings import SearchSettings
from ksparse.util.compiled import compiled

M, N, K, COUNT = 12, 8, 3, 16


def data_of(rng, lower, upper, k=K, ridge=0.0, weight=None):
    A = rng.standard_normal((M, N)) + 1.5 * rng.standard_normal((M, 1))  # correlated
    B = A[:, :K] @ rng.standard_normal((K, COUNT)) + 0.5 * rng.standard_normal((M, COUNT))
    data = BatchData.of(A, weight, np.full(N, ridge), np.full(N, lower), np.full(N, upper), k, SearchSettings())
    return A, B, data


def naive(A, b, k, lower, upper, ridge=0.0):
    """All supports, each by a bounded least-squares solver that is not ours."""
    best = np.inf
    for support in itertools.combinations(range(A.shape[1]), k):
        S = A[:, support]
        rows, rest = np.vstack([S, np.sqrt(ridge) * np.eye(k)]), np.append(b, np.zeros(k))
        best = min(best, float(lsq_linear(rows, rest, (lower, upper), tol=1e-12).cost))
    return best


SIGNS = {"none": (-np.inf, np.inf), "nonnegative": (0.0, np.inf), "nonpositive": (-np.inf, 0.0)}


@pytest.mark.parametrize("signs", SIGNS)
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_the_twin_finds_what_enumeration_finds(rng, signs, ridge):
    A, B, data = data_of(rng, *SIGNS[signs], ridge=ridge)
    best = Best.nothing(data.problem, COUNT)
    search_batch(
        data.problem,
        lambda part: data.pulls(B[:, part]),
        [slice(0, COUNT)],
        rounds_of(data.problem, 1, 0),
        best,
        1,
        lambda p: True,
    )
    x, residual = data.refined(B, best)
    X = np.zeros((COUNT, N))
    for row, (support, values) in enumerate(zip(best.support, x, strict=True)):
        X[row, data.columns[support[support < data.problem.n]]] = values[support < data.problem.n]
    fun = 0.5 * ((A @ X.T - B) ** 2).sum(axis=0) + 0.5 * ridge * (X**2).sum(axis=1)
    expected = np.array([naive(A, b, K, *SIGNS[signs], ridge) for b in B.T])
    assert np.all(fun <= expected * (1 + 1e-7) + 1e-12)
    assert np.all((X >= SIGNS[signs][0]) & (X <= SIGNS[signs][1]))
    assert residual.max() < 1e-10


@pytest.mark.parametrize("signs", SIGNS)
@pytest.mark.parametrize("unit", [0, 1, 2])
def test_the_loop_does_what_the_arrays_do(rng, signs, unit):
    """Interpreted, so that this is tested where nothing can be compiled."""
    _, B, data = data_of(rng, *SIGNS[signs])
    problem, (R, half) = data.problem, data.pulls(B)
    starts, kicks = problem.nothing(COUNT)[:, None], problem.kicks(unit, 0)
    first, second = Best.nothing(problem, COUNT), Best.nothing(problem, COUNT)
    descend_all(problem, R, half, starts, kicks, True, first)
    descend_each(
        problem.G, R, half, problem.signed, starts, kicks, problem.keys, True, problem.settings.batch_looked, problem.least,
        problem.rounding, problem.independent, second.support, second.x, second.value, second.share,
    )  # fmt: skip
    assert np.allclose(first.value, second.value, rtol=1e-9)
    assert np.array_equal(np.sort(first.support, axis=1), np.sort(second.support, axis=1))


def test_they_agree_on_supports_of_others_too(rng):
    """From those alone, with nothing known before."""
    _, B, data = data_of(rng, 0.0, np.inf)
    problem, (R, half) = data.problem, data.pulls(B)
    known = Best.nothing(problem, COUNT)
    starts = served(problem, R, half, distinct(problem, np.array(list(itertools.combinations(range(N), K)))), known)
    first, second = Best.nothing(problem, COUNT), Best.nothing(problem, COUNT)
    descend_all(problem, R, half, starts, problem.kicks(0, 0), False, first)
    descend_each(
        problem.G, R, half, problem.signed, starts, problem.kicks(0, 0), problem.keys, False, problem.settings.batch_looked, problem.least,
        problem.rounding, problem.independent, second.support, second.x, second.value, second.share,
    )  # fmt: skip
    assert np.allclose(first.value, second.value, rtol=1e-9)
    assert np.array_equal(np.sort(first.support, axis=1), np.sort(second.support, axis=1))
    assert np.any(first.value < -0.1 * half)


def test_the_compiled_loop_is_the_loop(rng):
    _, B, data = data_of(rng, 0.0, np.inf)
    problem, (R, half) = data.problem, data.pulls(B)
    found = []
    for loop in (descend_each, compiled(descend_each)):
        best = Best.nothing(problem, COUNT)
        loop(
            problem.G, R, half, problem.signed, problem.nothing(COUNT)[:, None], problem.kicks(0, 0), problem.keys, True, 16, problem.least,
            problem.rounding, problem.independent, best.support, best.x, best.value, best.share,
        )  # fmt: skip
        found.append(best)
    assert np.allclose(found[0].value, found[1].value, rtol=1e-12)
    assert np.array_equal(found[0].support, found[1].support)


def test_supports_of_others_are_ranked_by_what_they_serve(rng):
    _, B, data = data_of(rng, 0.0, np.inf)
    problem, (R, half) = data.problem, data.pulls(B)
    pool = distinct(problem, np.array(list(itertools.combinations(range(N), K))))
    known = Best.nothing(problem, COUNT)
    known.value[:] = -0.8 * half  # a fifth of ½‖b‖² is left
    starts = served(problem, R, half, pool, known)
    assert starts.shape == (COUNT, problem.settings.batch_shared, K)
    for r, all_of_it, chosen in zip(R, half, starts, strict=True):
        left = {}
        for support in pool:
            x = np.linalg.solve(problem.G[np.ix_(support, support)], r[support])
            if (x > 0).all():
                left[tuple(support)] = all_of_it - 0.5 * r[support] @ x
        ranked = sorted(left, key=left.get)[: len(chosen)]
        near = {support for support in ranked if left[support] <= problem.settings.batch_near * 0.2 * all_of_it}
        assert {tuple(support) for support in chosen if (support < problem.n).all()} == near


def test_kicks_are_all_where_they_are_few_and_drawn_where_they_are_many(rng):
    _, _, data = data_of(rng, 0.0, np.inf)
    every = data.problem.kicks(0, 0)
    assert len(every) == 8  # ∅ and all subsets of three seats
    wide = data_of(rng, 0.0, np.inf, k=8)[2].problem
    for unit in range(4):
        kicks = wide.kicks(unit, 0)
        assert len(kicks) == wide.settings.batch_kicks
        assert np.array_equal(kicks, wide.kicks(unit, 0))
        assert kicks[:, 1:].max() < 8
        assert set(kicks[:, 0]) == {1 - unit % 2}
