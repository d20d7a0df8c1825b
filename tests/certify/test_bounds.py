"""Bounds never exceed the optimum, at any dual point, node or D; compared with independent enumeration."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzz.qp import solve_qp
from tests.fuzz.region import Region

import ksparse as ks
from conftest import sweep
from ksparse.certify.bound import QuadraticBound, Relaxation, fix_by_bound, top_sum
from ksparse.certify.diagonal import DiagonalSplit, margin_of, positive, scaled_to_psd
from ksparse.certify.program import ScaledProblem
from ksparse.certify.prove import families_of
from ksparse.numerics.relaxation_kernels import FREE, IN, OUT
from ksparse.search.candidate import Candidate
from ksparse.search.problem import SupportProblem

NONE = np.zeros(0, dtype=int)


def known(value):
    """Return a point of which only the value matters."""
    return Candidate.without_multipliers(NONE, np.zeros(0), value)


class Small:
    """A random problem with up to seven variables, and its optimum for any decision of variables."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.n = n = int(rng.integers(2, 8))
        self.k = int(rng.integers(1, n + 1))
        m = int(rng.integers(n, 3 * n))
        self.M = rng.standard_normal((m, n)) @ np.diag(10.0 ** rng.uniform(-1, 1, n)) + rng.uniform(
            0, 2
        ) * rng.standard_normal((m, 1))
        self.t, size = rng.standard_normal(m) * 10.0 ** rng.uniform(-2, 2), float(rng.choice([0.5, 2.0, np.inf]))
        kind = rng.integers(4)
        self.lower = np.zeros(n) if kind == 1 else np.full(n, -size)
        self.upper = np.full(n, size)
        self.E, self.f = (np.ones((1, n)), np.ones(1)) if kind >= 2 else (np.zeros((0, n)), np.zeros(0))
        row = rng.standard_normal((1, n))
        # 1/n everywhere is a point
        self.G, self.h = (row, row.mean(axis=1) + 0.1) if kind == 3 else (np.zeros((0, n)), np.zeros(0))
        self.floor = float(rng.choice([0.0, 0.2]))
        self.forced = rng.choice(n, 1) if rng.random() < 0.3 and self.k > 1 else NONE
        self.loss = ks.LeastSquares(self.M, self.t)
        rows = (self.G, self.h) if len(self.h) else (None, None)
        equations = (self.E, self.f) if len(self.f) else (None, None)
        self.C = ks.Polyhedron(*rows, *equations, lower=self.lower, upper=self.upper)

    def best(self, state=None, exactly=False):
        """Return the optimum with variables in, out or free, of at most or exactly k; ∞ without a feasible point."""
        state = np.zeros(self.n, dtype=int) if state is None else state
        state = state.copy()
        state[self.forced] = np.maximum(state[self.forced], IN)
        must, may = np.flatnonzero(state == IN), np.flatnonzero(state == FREE)
        found = np.inf
        room = self.k - len(must)
        for size in [room] if exactly else range(min(len(may), room) + 1):
            for more in itertools.combinations(may, size):
                found = min(found, self._on(np.sort(np.concatenate([must, np.array(more, dtype=int)]))))
        return found

    def _on(self, S):
        if not S.size:
            return 0.5 * float(self.t @ self.t) if self.C.contains(np.zeros(self.n)) else np.inf
        found = np.inf
        for sides in itertools.product((1, -1), repeat=S.size) if self.floor else [()]:
            lower, upper = self.lower[S].copy(), self.upper[S].copy()
            for i, side in enumerate(sides):
                lower[i], upper[i] = (
                    (max(lower[i], self.floor), upper[i]) if side > 0 else (lower[i], min(upper[i], -self.floor))
                )
            if (lower > upper).any():
                continue
            region = Region.of(S.size, lower=lower, upper=upper, G=self.G[:, S], h=self.h, E=self.E[:, S], f=self.f)
            answer = solve_qp(self.M[:, S], self.t, np.zeros(S.size), region)
            if answer.x is not None:
                found = min(found, 0.5 * float(((self.M[:, S] @ answer.x - self.t) ** 2).sum()))
        return found

    def program(self, best):
        problem = SupportProblem.of(self.loss, self.C, self.n, self.k, forced_in=self.forced, floor=self.floor)
        return ScaledProblem.of(problem, problem.model, known(best)), problem

    def whole(self, program, state):
        """Extend decisions about the program's variables to all variables."""
        full = np.full(self.n, OUT)
        full[program.supports.variables] = state
        return full


def above(optimum, bound, scale):
    """Whether a bound is above the optimum by more than the twin's own rounding."""
    return bound > optimum + 1e-9 * (abs(optimum) + scale)


@given(st.integers(0, 2**32 - 1))
@pytest.mark.slow
def test_no_dual_point_of_any_node_gives_a_bound_above_the_optimum(seed):
    small, rng = Small(seed), np.random.default_rng(seed + 1)
    best = small.best()
    if not np.isfinite(best):
        return
    program, _ = small.program(best)
    smaller = program.tightened(best / program.scale)
    for _ in range(3):
        state = np.where(program.state == IN, IN, rng.choice([FREE, FREE, IN, OUT], program.n)).astype(np.int8)
        if (state == IN).sum() > small.k:
            continue
        optimum = small.best(small.whole(program, state)) / program.scale
        for tried in (program, smaller):
            # a box: or worse than best
            optimum_here = optimum if tried is program or optimum <= best / program.scale * (1 + 1e-12) else np.inf
            d = scaled_to_psd(tried, rng.uniform(0, 1, program.n) * rng.choice([1.0, 0.01]))
            size = 10.0 ** rng.uniform(-2, 1)
            w, price = (
                size * rng.standard_normal((1, program.n)),
                size * rng.standard_normal((1, len(program.linear.f))),
            )
            dual, row_multipliers = QuadraticBound(tried, d), size * rng.random((1, len(program.linear.h)))
            assert not above(optimum_here, dual.at(w, price, row_multipliers, state[None]).value[0], 1.0)
            if tried.min_eigenvalue > 0:
                nodes = Relaxation(dual).root()
                nodes.state[0] = state
                tried.tighten_nodes(nodes, best / program.scale)
                own = replace(tried.sizes, max_above=nodes.max_above, max_below=nodes.max_below)
                assert not above(optimum_here, dual.at(w, price, row_multipliers, state[None], own).value[0], 1.0)


@given(st.integers(0, 2**32 - 1))
@pytest.mark.slow
def test_no_bound_of_exactly_k_is_above_the_best_of_exactly_k(seed):
    small, rng = Small(seed), np.random.default_rng(seed + 1)
    small.floor = 0.2  # each of them: else a nonzero may be as good as 0
    best = small.best()
    if not np.isfinite(best):
        return
    program = replace(small.program(best)[0], exactly=True)
    for _ in range(3):
        state = np.where(program.state == IN, IN, rng.choice([FREE, FREE, IN, OUT], program.n)).astype(np.int8)
        if (state == IN).sum() > small.k:
            continue
        optimum = small.best(small.whole(program, state), exactly=True) / program.scale
        d = scaled_to_psd(program, rng.uniform(0, 1, program.n) * rng.choice([1.0, 0.01]))
        size = 10.0 ** rng.uniform(-2, 1)
        w, price = size * rng.standard_normal((1, program.n)), size * rng.standard_normal((1, len(program.linear.f)))
        found = QuadraticBound(program, d).at(w, price, size * rng.random((1, len(program.linear.h))), state[None])
        assert not above(optimum, found.value[0], 1.0)
        decided = state[None].copy()
        fix_by_bound(decided, found, small.k, optimum - 1e-6 * abs(optimum))  # what is decided keeps what is best
        if np.isfinite(optimum):
            assert small.best(small.whole(program, decided[0]), exactly=True) / program.scale <= optimum * (1 + 1e-9)


@pytest.mark.parametrize("seed", sweep(range(12), 4))
def test_parts_by_the_number_of_nonzeros_are_the_whole(seed):
    """Minimum weights that few assets fit: the tree is split by the number of nonzeros and proves the optimum."""
    rng = np.random.default_rng(seed)
    n = 9
    returns = rng.standard_normal((60, n)) * rng.uniform(0.5, 1.5, n) + 0.5 * rng.standard_normal((60, 1))
    V, floor, E = np.cov(returns.T), rng.uniform(0.15, 0.35, n), np.ones((1, n))
    C = ks.Polyhedron(E=E, f=[1.0], lower=0.0, upper=0.6)
    best, by_count = np.inf, {}
    for size in range(1, n + 1):
        for S in map(list, itertools.combinations(range(n), size)):
            if floor[S].sum() > 1 or 0.6 * size < 1:
                continue
            region = Region.of(
                size,
                lower=floor[S],
                upper=np.full(size, 0.6),
                G=np.zeros((0, size)),
                h=np.zeros(0),
                E=E[:, S],
                f=np.ones(1),
            )
            answer = solve_qp(np.linalg.cholesky(V[np.ix_(S, S)]).T, np.zeros(size), np.zeros(size), region)
            by_count[size] = min(by_count.get(size, np.inf), float(answer.x @ V[np.ix_(S, S)] @ answer.x))
    best = min(by_count.values())
    found = ks.minimize(
        ks.Quadratic(2 * V), n, C, min_nonzero=floor, gap=1e-6, settings=ks.SearchSettings(enumerated=0)
    )
    assert found.status is ks.Status.OPTIMAL
    assert found.fun == pytest.approx(best, rel=1e-8)
    assert best * (1 - 1.1e-6) <= found.lower_bound <= best * (1 + 1e-9)
    problem = SupportProblem.of(ks.Quadratic(2 * V), C, n, n, floor=floor)
    assert problem.k == max(by_count)
    parts = families_of(problem, known(best))
    assert {part.problem.supports.k for part in parts if part.problem.exactly} == {
        *range(1 + min(part.problem.supports.k for part in parts), problem.k + 1)
    }


@given(st.integers(0, 2**32 - 1))
@pytest.mark.slow
def test_bounds_of_the_relaxation_and_what_it_decides(seed):
    small = Small(seed)
    best = small.best()
    if not np.isfinite(best):
        return
    program, _ = small.program(best)
    program = program.tightened(best / program.scale)
    relaxation = Relaxation(QuadraticBound(program, DiagonalSplit(program).solve()))
    node = relaxation.root()
    cut = best / program.scale * (1 - 1e-3) - 1e-3
    bound = relaxation.bound(node, cut, 200, 60)[0]
    assert not above(best / program.scale, bound, 1.0)
    changed = np.flatnonzero(node.state[0] != program.state)
    others = [
        small.best(small.whole(program, _other(program.state, i, node.state[0, i]))) / program.scale for i in changed
    ]
    # the opposite decisions are not better than the cut
    assert min(others, default=np.inf) >= cut - 1e-9


def _other(state, i, decided):
    other = state.copy()
    other[i] = OUT if decided == IN else IN
    return other


@given(st.integers(0, 2**32 - 1))
@pytest.mark.slow
def test_tree_and_enumeration_agree(seed):
    small = Small(seed)
    best = small.best()
    options = {
        "forced_in": small.forced,
        "min_nonzero": small.floor,
        "settings": ks.SearchSettings(enumerated=0),
    }
    if not np.isfinite(best):
        return
    for gap in (0.3, 0.01):  # what is left out for a wide gap is not known to be worse than that
        assert ks.minimize(small.loss, small.k, small.C, gap=gap, **options).lower_bound <= best * (1 + 1e-9) + 1e-9
    found = ks.minimize(small.loss, small.k, small.C, gap=1e-6, **options)
    assert found.lower_bound <= best * (1 + 1e-9) + 1e-9
    if found.status is ks.Status.OPTIMAL:
        assert found.fun == pytest.approx(best, rel=2e-6, abs=1e-8)
    assert found.gap >= 0
    assert found.fun >= found.lower_bound - 1e-9 * abs(found.fun)


@pytest.mark.slow
def test_nearly_all_of_them_are_proved():
    proved = tried = 0
    for seed in range(25):
        small = Small(seed)
        if np.isfinite(small.best()):
            options = {
                "forced_in": small.forced,
                "min_nonzero": small.floor,
                "settings": ks.SearchSettings(enumerated=0),
            }
            tried += 1
            proved += ks.minimize(small.loss, small.k, small.C, gap=1e-4, **options).status is ks.Status.OPTIMAL
    assert proved >= 0.9 * tried


@pytest.mark.parametrize("seed", range(5))
def test_d_is_safe(seed):
    rng = np.random.default_rng(seed)
    n = 12
    Z = rng.standard_normal((20, n)) + rng.standard_normal((20, 1))
    V = Z.T @ Z
    problem = SupportProblem.of(ks.Quadratic(V), ks.Simplex(), n, 4)
    program = ScaledProblem.of(problem, problem.model, known(1.0))
    split = DiagonalSplit(program)
    # not worse than the least eigenvalue for all
    assert split.solve().sum() > n * 0.9 * np.linalg.eigvalsh(program.H)[0]
    for _ in range(3):
        d = split.solve()
        assert np.linalg.eigvalsh(program.H - np.diag(d))[0] > 0
        assert positive(program.H, d, margin_of(program))
        split.update_weights(rng.standard_normal(n), rng.random(n))
    assert np.linalg.eigvalsh(program.H - np.diag(scaled_to_psd(program, 10.0 * d)))[0] >= 0


def test_the_conjugates_by_hand():
    problem = SupportProblem.of(
        ks.Quadratic(np.eye(3)), ks.Box([0.0, -1.0, -2.0], [2.0, 1.0, 3.0]), 3, 2, floor=0.5, most=3
    )
    program = ScaledProblem.of(problem, problem.model, known(1.0))
    dual = QuadraticBound(program, np.full(3, 0.5))
    free, zero = np.zeros((1, 3), dtype=np.int8), np.zeros((1, 3))
    conjugates, x = dual.conjugates(np.array([[-1.0, 0.1, 4.0]]), zero, free, program.sizes)
    # wrong side; the floor costs more than 0.1 brings; the upper bound
    np.testing.assert_allclose(x, [[0.0, 0.0, 3.0]])
    np.testing.assert_allclose(conjugates, [[0.0, 0.0, 3.0 * 4.0 - 0.25 * 9.0]])
    conjugates, x = dual.conjugates(np.array([[-1.0, 0.1, 4.0]]), zero, np.ones((1, 3), dtype=np.int8), program.sizes)
    np.testing.assert_allclose(x, [[0.5, 0.5, 3.0]])  # in: at its floor at least
    np.testing.assert_allclose(conjugates[0, :2], [-0.5 - 0.0625, 0.05 - 0.0625])


def test_the_largest_by_hand():
    conjugates, state = np.array([[5.0, 1.0, 3.0, 2.0], [5.0, 1.0, 3.0, 2.0]]), np.array([[0, 1, 0, 0], [-1, 0, 0, 0]])
    found = top_sum(conjugates, state, 2)
    np.testing.assert_allclose(found.total, [6.0, 5.0])
    np.testing.assert_allclose(found.smallest_selected[:, 0], [5.0, 2.0])
    np.testing.assert_allclose(found.largest_unselected[:, 0], [3.0, 1.0])
