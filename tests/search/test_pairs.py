"""Pair swaps where minimum sizes nearly fill a budget, compared with the same moves made one by one."""

from itertools import combinations

import numpy as np
import pytest

import ksparse as ks
from conftest import sweep
from ksparse.search.active_set import ActiveSetNeighbourhood
from ksparse.search.problem import SupportProblem

NONE = np.zeros(0, dtype=int)


def tight(seed, n=12, k=5):
    """Return a problem with a return row and minimum weights, k of which nearly fill the budget."""
    rng = np.random.default_rng(seed)
    Z, returns = rng.standard_normal((3 * n, n)), rng.random(n)
    floor = rng.uniform(0.7, 1.0, n) / k
    C = ks.Polyhedron(G=-returns[None], h=[-0.45], E=np.ones((1, n)), f=[1.0], lower=np.zeros(n), upper=np.ones(n))
    return ks.Quadratic(Z.T @ Z / n), C, floor


def naive(loss, C, low, x, free, active, leaving, entering):
    """Return φ after a move with free variables re-solved under the active rows; None if a bound or a row breaks."""
    H, x, C = np.asarray(loss.quadratic().H.M), x.copy(), C.as_linear(x.size)
    x[list(leaving)], x[list(entering)] = 0.0, low[list(entering)]
    x[free] = 0.0
    rows, right = np.vstack([C.E, C.G[active]]), np.concatenate([C.f, C.h[active]])
    K = np.block([[H[np.ix_(free, free)], rows[:, free].T], [rows[:, free], np.zeros((len(rows), len(rows)))]])
    x[free] = np.linalg.lstsq(K, np.concatenate([-H[free] @ x, right - rows @ x]), rcond=None)[0][: free.size]
    kept = (
        np.abs(rows @ x - right).max() < 1e-9 and (C.G @ x <= C.h + 1e-9).all() and (x[free] >= low[free] - 1e-9).all()
    )
    return float(0.5 * x @ H @ x) if kept and (x <= 1.0 + 1e-9).all() else None


@pytest.mark.parametrize("seed", sweep(range(8), 3))
def test_they_are_the_moves_that_gain_with_all_others_where_they_are(seed):
    loss, C, floor = tight(seed)
    n, k = 12, 5
    problem = SupportProblem.of(loss, C, n, k, floor=floor)
    found = [
        one
        for S in combinations(range(n), k)
        if (one := problem.evaluate(np.array(S))) is not None and one.support.size == k
    ]
    start = max(found, key=lambda one: one.value)
    hood = ActiveSetNeighbourhood(problem, k + 3)
    hood.move_to(start)
    basis, x = hood, start.full(n)
    free, active = basis.element[basis.element >= 0], ~basis.element[basis.element < 0]
    outside = np.setdiff1d(np.arange(n), start.support)
    values = {
        (pair, other): naive(loss, C, floor, x, free, active, pair, other)
        for pair in combinations(sorted(basis.held.tolist()), 2)
        for other in combinations(outside.tolist(), 2)
    }
    wanted = {move for move, value in values.items() if value is not None and value < start.value - 1e-7}
    moves = list(hood.ranked_pair_swaps(1e-7))
    assert {(tuple(sorted(move.leaving)), tuple(sorted(move.entering))) for move in moves} == wanted
    gains = [values[tuple(sorted(move.leaving)), tuple(sorted(move.entering))] for move in moves]
    assert gains == sorted(gains)
    for move in moves[:3]:
        undo = hood.apply(move)
        assert undo is not None
        assert hood.value <= values[tuple(sorted(move.leaving)), tuple(sorted(move.entering))] + 1e-9
        undo()
        assert hood.value == pytest.approx(start.value)


@pytest.mark.parametrize("seed", sweep(range(6), 2))
def test_the_search_meets_the_optimum_where_floors_are_tight(seed):
    loss, C, floor = tight(seed, 14, 6)
    found = ks.minimize(loss, 6, C, min_nonzero=floor, settings=ks.SearchSettings(enumerated=0))
    assert found.fun == pytest.approx(ks.minimize(loss, 6, C, min_nonzero=floor, gap=1e-6).fun, rel=1e-6)
