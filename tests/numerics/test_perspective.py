"""The perspective relaxation, compared with enumeration and with a convex solver."""

from itertools import combinations

import numpy as np
import pytest

import ksparse as ks
from ksparse.numerics.constraints import Linear
from ksparse.numerics.relaxation import diagonal_part, relax


def a_matrix(rng, n, m=40):
    A = rng.standard_normal((m, n)) + 0.7 * rng.standard_normal((m, 1))
    return A.T @ A / m


def value(H, r, d, x, z):
    """Return the relaxation's objective at x, z."""
    own = np.where(z > 0, d * x**2 / np.where(z > 0, z, 1.0), 0.0)
    return 0.5 * x @ (H - np.diag(d)) @ x - r @ x + 0.5 * own.sum()


@pytest.mark.parametrize("seed", range(5))
def test_it_is_below_every_k_sparse_point_and_above_all_points(seed):
    rng = np.random.default_rng(seed)
    n, k = 9, 3
    H, r = a_matrix(rng, n), rng.standard_normal(n) * 0.2
    C = ks.Polyhedron(-rng.uniform(0, 1, (1, n)), [-0.3], np.ones((1, n)), [1.0], lower=0.0, upper=0.7)
    linear, d = C.as_linear(n), diagonal_part(H) * np.diag(H)
    assert np.linalg.eigvalsh(H - np.diag(d))[0] > -1e-9
    x, z = relax(H, r, d, linear, k, 3000)
    assert (z >= 0).all()
    assert (z <= 1 + 1e-12).all()
    assert z.sum() <= k * (1 + 1e-2)
    assert linear.violation(x) <= 1e-4
    loss = ks.Quadratic(H, -r)
    supports = [np.array(S) for S in combinations(range(n), k) if C.has_point_on(np.array(S))]
    best = min(ks.minimize(loss, n, C.without(np.setdiff1d(np.arange(n), S))).fun for S in supports)
    whole = ks.minimize(loss, n, C).fun
    slack = 2e-3 * (abs(best) + abs(whole))
    assert whole - slack <= value(H, r, d, x, z) <= best + slack


def test_without_a_limit_it_is_the_quadratic_program(rng):
    n = 8
    H, r = a_matrix(rng, n), rng.standard_normal(n)
    x, _ = relax(H, r, diagonal_part(H) * np.diag(H), Linear.of(n, -1.0, 1.0), n, 3000)
    np.testing.assert_allclose(x, ks.minimize(ks.Quadratic(H, -r), n, ks.Box(-1.0, 1.0)).x, atol=1e-3)


def test_a_singular_matrix_has_no_diagonal_part(rng):
    Z = rng.standard_normal((5, 12))
    assert diagonal_part(Z.T @ Z) is None
    assert diagonal_part(np.diag([1.0, 0.0, 2.0])) is None
    assert diagonal_part(np.diag([1.0, 3.0, 2.0])) == pytest.approx(1.0, rel=0.05)


def test_floors_let_fewer_in(rng):
    """Σx = 1 with minimum sizes of 0.15: at most six nonzeros for any k."""
    n = 20
    H = a_matrix(rng, n, 200)
    linear = Linear.of(n, 0.15, 0.4, E=np.ones((1, n)), f=[1.0])
    z = relax(H, np.zeros(n), diagonal_part(H) * np.diag(H), linear, n, 2000)[1]
    assert z.sum() <= 1 / 0.15 + 0.1
