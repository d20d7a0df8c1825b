"""Bounds under limits per label and whole groups: at no dual point above what enumeration finds, and what they decide keeps the best."""

from itertools import combinations

import numpy as np
import pytest

import ksparse as ks
from ksparse.certify.diagonal import safe
from ksparse.certify.dual_bound import QuadraticBound
from ksparse.certify.program import Program
from ksparse.certify.relaxation import screen
from ksparse.linalg.states import FREE, IN, OUT
from ksparse.search.candidate import Candidate
from ksparse.search.pieces import Pieces
from ksparse.solve.rules import make_rules

N, NONE = 7, np.zeros(0, dtype=np.intp)


def drawn(rng, grouped):
    """A regression, k, and rules of one kind or both."""
    A = rng.standard_normal((15, N)) + rng.uniform(0, 2) * rng.standard_normal((15, 1))
    b = A @ rng.standard_normal(N) + rng.standard_normal(15)
    groups = [int(g) for g in np.sort(rng.integers(0, 5, N))] if grouped else None
    labels = [g % 2 for g in groups] if grouped else [int(label) for label in rng.integers(0, 3, N)]
    least = int(rng.integers(0, 2))
    rules = make_rules(groups, (labels, {labels[0]: (least, least + int(rng.integers(0, 2)) + (least == 0))}), n=N)
    return A, b, min(3, rules.members), rules


def best(A, b, k, rules, state):
    """The least value over all supports that obey and that the decisions allow."""
    found = np.inf
    for size in range(N + 1):
        for S in (np.array(S, dtype=np.intp) for S in combinations(range(N), size)):
            decided = np.isin(np.flatnonzero(state == IN), S).all() and not np.isin(np.flatnonzero(state == OUT), S).any()
            if decided and rules.obeys(S) and rules.weight[S].sum() <= k:
                x = np.linalg.lstsq(A[:, S], b, rcond=None)[0] if size else np.zeros(0)
                found = min(found, 0.5 * float(np.sum((A[:, S] @ x - b) ** 2)))
    return found


@pytest.mark.parametrize("grouped", [False, True])
def test_no_dual_point_gives_a_bound_above_the_optimum(grouped):
    tight = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        A, b, k, rules = drawn(rng, grouped)
        optimum = best(A, b, k, rules, np.zeros(N))
        if not np.isfinite(optimum):
            continue
        pieces = Pieces.of(ks.LeastSquares(A, b), ks.WholeSpace(), N, forced_in=NONE, forced_out=NONE, most=rules.widest(k), rules=rules)
        known = Candidate.unpriced(NONE, np.zeros(0), optimum, 0)
        program = Program.of(pieces, pieces.model, rules.widest(k), known).ruled(pieces, k)
        state = rng.choice([FREE, FREE, FREE, IN, OUT], N).astype(np.int8)
        if not program.propagate(state):
            state[:] = FREE
        here = best(A, b, k, rules, state) / program.scale
        dual = QuadraticBound(program, safe(program, rng.uniform(0, 1, N)))
        H, at = program.H, np.zeros((1, N))
        at[0] = np.linalg.solve(H, program.r) + rng.choice([0.0, 0.1, 1.0]) * rng.standard_normal(N)
        none = np.zeros((1, 0))
        found = dual.at(at, none, none, state[None])
        assert not found.value[0] > here + 1e-9 * (1 + abs(here))
        tight += found.value[0] > 0
        decided = state[None].copy()
        screen(decided, found, program.k, here - 1e-6 * abs(here))
        if np.isfinite(here):
            assert best(A, b, k, rules, decided[0]) / program.scale <= here * (1 + 1e-9) + 1e-12
    assert tight > 10
