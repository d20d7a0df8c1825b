"""The box of a node contains every good enough point; compared with the ellipsoid in extended precision."""

import numpy as np
import pytest
from tests.certify.test_bounds import known

import ksparse as ks
from ksparse.certify.program import ScaledProblem
from ksparse.search.problem import SupportProblem


def solved(M, b):
    """Return M⁻¹b in extended precision, by elimination with pivots."""
    M, b = M.astype(np.longdouble), b.astype(np.longdouble)
    for j in range(len(M)):
        pivot = j + int(np.abs(M[j:, j]).argmax())
        M[[j, pivot]], b[[j, pivot]] = M[[pivot, j]], b[[pivot, j]]
        for i in range(j + 1, len(M)):
            ratio = M[i, j] / M[j, j]
            M[i], b[i] = M[i] - ratio * M[j], b[i] - ratio * b[j]
    x = np.zeros_like(b)
    for j in reversed(range(len(M))):
        x[j] = (b[j] - M[j, j + 1 :] @ x[j + 1 :]) / M[j, j]
    return x


def ends(program, kept, best):
    """Return the range of each variable over the points with φ ≤ `best`, the equations satisfied and all others 0."""
    H, r, E, f = program.H[np.ix_(kept, kept)], program.r[kept], program.linear.E[:, kept], program.linear.f
    K = np.block([[H, E.T], [E, np.zeros((f.size, f.size))]])
    x = solved(K, np.concatenate([r, f]))[: kept.size]
    value = 0.5 * x @ H.astype(np.longdouble) @ x - r @ x + program.constant
    columns = [solved(K, np.eye(len(K))[i])[i] for i in range(kept.size)]
    far = np.sqrt(2.0 * np.maximum(best - value, 0.0) * np.maximum(np.array(columns), 0.0))
    return x - far, x + far


@pytest.mark.parametrize("budget", [False, True])
@pytest.mark.parametrize("apart", [1.0, 1e-2, 1e-4])  # how nearly dependent the columns are
@pytest.mark.parametrize("seed", range(4))
def test_every_point_that_is_good_enough_is_in_the_box(seed, apart, budget):
    rng = np.random.default_rng(seed)
    n = 7
    A = rng.standard_normal((30, 2)) @ rng.standard_normal((2, n)) + apart * rng.standard_normal((30, n))
    loss = ks.LeastSquares(A, rng.standard_normal(30))
    C = ks.Hyperplane() if budget else ks.WholeSpace()
    problem = SupportProblem.of(loss, C, n, 3, most=n)
    best = float(ks.minimize(loss, 3, C).fun)
    program = ScaledProblem.of(problem, problem.model, known(best))
    best /= program.scale
    whole = program.tightened(best)
    assert whole.min_eigenvalue > 0
    for size in (n, 5, 4):
        kept = np.sort(rng.choice(n, size, replace=False))
        low, high = ends(program, kept, best)
        if not low[0] < high[0]:
            continue  # nothing is so good there
        up, down = whole.implied_sizes(kept, best)
        assert (high <= up).all()
        assert (-low <= down).all()
        # and little more
        np.testing.assert_allclose(up, np.maximum(high, 0.0), rtol=1e-3, atol=1e-3 * float(np.abs(low).max()))


@pytest.mark.parametrize("angle", [1e-1, 1e-3, 1e-6])
def test_equations_at_a_small_angle_cost_no_point_its_place(angle):
    for seed in range(30):
        rng = np.random.default_rng(seed)
        n, k, m = 8, 4, 20
        A = rng.standard_normal((m, n))
        E = np.ones((2, n))
        E[1, :2] += angle, 3e-5 * angle  # so x₀ is nearly 0
        loss, C = (
            ks.LeastSquares(A, A @ np.r_[0, 4, np.full(6, 0.6)] + rng.standard_normal(m)),
            ks.Polyhedron(E=E, f=[8.0, 8.0]),
        )
        problem = SupportProblem.of(loss, C, n, k)
        best = problem.evaluate(np.arange(4))
        if best is None:
            continue
        program = ScaledProblem.of(problem, problem.model, best)
        program = program.tightened(best.value / program.scale)
        y = best.x / program.unit[best.support]
        # bounds implied by a value hold the point of that value
        assert (y <= program.sizes.max_above[best.support] * (1 + 1e-9)).all()
        assert (-y <= program.sizes.max_below[best.support] * (1 + 1e-9)).all()


def test_singular_matrices_have_no_box():
    A = np.ones((5, 3))
    problem = SupportProblem.of(ks.LeastSquares(A, np.arange(5.0)), ks.WholeSpace(), 3, 2, most=3)
    program = ScaledProblem.of(problem, problem.model, known(1.0))
    assert program.tightened(1.0) is program
