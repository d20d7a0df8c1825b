"""The batch search: the compiled loop agrees with its array version, and both are right."""

import itertools

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from tests.batch.twin import search_all

from ksparse.batch.kernel import search_each
from ksparse.batch.problem import PERTURBATIONS, BatchData, Incumbents
from ksparse.batch.rounds import NEAR, SHARED, frequent_supports, rounds_of, search_batch, shared_starts
from ksparse.util.compiled import compiled

M, N, K, COUNT = 12, 8, 3, 16


def data_of(rng, lower, upper, k=K, ridge=0.0, weight=None):
    A = rng.standard_normal((M, N)) + 1.5 * rng.standard_normal((M, 1))  # correlated
    B = A[:, :K] @ rng.standard_normal((K, COUNT)) + 0.5 * rng.standard_normal((M, COUNT))
    data = BatchData.of(A, weight, np.full(N, ridge), np.full(N, lower), np.full(N, upper), k)
    return A, B, data


def run(search, problem, R, half, starts, perturbations, perturb_known, best):
    search(
        problem.G, R, half, problem.signed, starts, perturbations, problem.hash_keys, perturb_known, best.support,
        best.x, best.value, best.share,
    )  # fmt: skip


def naive(A, b, k, lower, upper, ridge=0.0):
    """Solve every support by a bounded least-squares solver of SciPy."""
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
    best = Incumbents.zero(data.problem, COUNT)
    search_batch(
        data.problem,
        lambda part: data.linear_terms(B[:, part]),
        [slice(0, COUNT)],
        rounds_of(data.problem, 1, 0),
        best,
        1,
        lambda p: True,
    )
    x, residual = data.refine(B, best)
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
    """The loop runs interpreted, so that it is tested without a compiler."""
    _, B, data = data_of(rng, *SIGNS[signs])
    problem, (R, half) = data.problem, data.linear_terms(B)
    starts, kicks = problem.empty_supports(COUNT)[:, None], problem.perturbations(unit, 0)
    first, second = Incumbents.zero(problem, COUNT), Incumbents.zero(problem, COUNT)
    for search, best in ((search_all, first), (search_each, second)):
        run(search, problem, R, half, starts, kicks, True, best)
    assert np.allclose(first.value, second.value, rtol=1e-9)
    assert np.array_equal(np.sort(first.support, axis=1), np.sort(second.support, axis=1))


def test_they_agree_on_supports_of_others_too(rng):
    """Start from these supports alone, with no incumbent."""
    _, B, data = data_of(rng, 0.0, np.inf)
    problem, (R, half) = data.problem, data.linear_terms(B)
    known = Incumbents.zero(problem, COUNT)
    starts = shared_starts(
        problem, R, half, frequent_supports(problem, np.array(list(itertools.combinations(range(N), K)))), known
    )
    first, second = Incumbents.zero(problem, COUNT), Incumbents.zero(problem, COUNT)
    for search, best in ((search_all, first), (search_each, second)):
        run(search, problem, R, half, starts, problem.perturbations(0, 0), False, best)
    assert np.allclose(first.value, second.value, rtol=1e-9)
    assert np.array_equal(np.sort(first.support, axis=1), np.sort(second.support, axis=1))
    assert np.any(first.value < -0.1 * half)


def test_the_compiled_loop_is_the_loop(rng):
    _, B, data = data_of(rng, 0.0, np.inf)
    problem, (R, half) = data.problem, data.linear_terms(B)
    found = []
    for loop in (search_each, compiled(search_each)):
        best = Incumbents.zero(problem, COUNT)
        run(loop, problem, R, half, problem.empty_supports(COUNT)[:, None], problem.perturbations(0, 0), True, best)
        found.append(best)
    assert np.allclose(found[0].value, found[1].value, rtol=1e-12)
    assert np.array_equal(found[0].support, found[1].support)


def test_supports_of_others_are_ranked_by_what_they_serve(rng):
    _, B, data = data_of(rng, 0.0, np.inf)
    problem, (R, half) = data.problem, data.linear_terms(B)
    pool = frequent_supports(problem, np.array(list(itertools.combinations(range(N), K))))
    known = Incumbents.zero(problem, COUNT)
    known.value[:] = -0.8 * half  # a fifth of ½‖b‖² is left
    starts = shared_starts(problem, R, half, pool, known)
    assert starts.shape == (COUNT, SHARED, K)
    for r, all_of_it, chosen in zip(R, half, starts, strict=True):
        left = {}
        for support in pool:
            x = np.linalg.solve(problem.G[np.ix_(support, support)], r[support])
            if (x > 0).all():
                left[tuple(support)] = all_of_it - 0.5 * r[support] @ x
        ranked = sorted(left, key=left.get)[: len(chosen)]
        near = {support for support in ranked if left[support] <= NEAR * 0.2 * all_of_it}
        assert {tuple(support) for support in chosen if (support < problem.n).all()} == near


def test_kicks_are_all_where_they_are_few_and_drawn_where_they_are_many(rng):
    _, _, data = data_of(rng, 0.0, np.inf)
    every = data.problem.perturbations(0, 0)
    assert len(every) == 8  # ∅ and all subsets of three seats
    wide = data_of(rng, 0.0, np.inf, k=8)[2].problem
    for unit in range(4):
        kicks = wide.perturbations(unit, 0)
        assert len(kicks) == PERTURBATIONS
        assert np.array_equal(kicks, wide.perturbations(unit, 0))
        assert kicks[:, 1:].max() < 8
        assert set(kicks[:, 0]) == {1 - unit % 2}
