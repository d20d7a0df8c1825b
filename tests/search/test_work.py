"""Work of a search: calls of the user's projection and small solves are counted, not timed."""

import numpy as np
import pytest

import ksparse as ks
from ksparse.numerics import qp
from ksparse.numerics.constraints import Linear
from ksparse.numerics.nonconvex import minimize_by_projection
from ksparse.numerics.qp import Objective, solve_qp
from ksparse.result import Status
from ksparse.search.polish import minimize_by_cutting_planes, minimize_quadratic


class Counted:
    """A built-in set given by its projection and its violation, with counted calls."""

    def __init__(self, C, n):
        self.calls = 0
        self.inner = C
        self.set = ks.CustomSet(self.project, C.violation, n=n)

    def project(self, u):
        self.calls += 1
        return self.inner.project(u)


def half_space(a, b):
    return ks.Polyhedron(a[None], np.array([b]))


@pytest.mark.parametrize("name", ["box", "ball", "half-space"])
def test_one_projection_of_the_whole_set_gives_that_on_a_support(rng, name):
    n, support = 9, np.array([1, 4, 5, 8])
    C = {"box": ks.Box(-0.3, 0.5), "ball": ks.L2Ball(0.7), "half-space": half_space(rng.standard_normal(n), -0.4)}[name]
    counted = Counted(C, n)
    cut = counted.set.restrict(support)
    for _ in range(5):
        u, counted.calls = 3 * rng.standard_normal(4), 0
        np.testing.assert_allclose(cut.project(u), C.restrict(support).project(u), atol=1e-12)
        assert counted.calls == 1


def test_a_set_that_needs_prices_is_projected_onto_all_the_same(rng):
    n, support = 8, np.array([0, 2, 3, 7])
    counted = Counted(ks.Simplex(1.0), n)
    for _ in range(5):
        u = rng.standard_normal(4)
        np.testing.assert_allclose(counted.set.restrict(support).project(u), ks.Simplex(1.0).project(u), atol=1e-8)


def test_a_quadratic_on_a_half_space_takes_one_cut(rng):
    n, support = 12, np.arange(0, 12, 2)
    A = rng.standard_normal((20, 6)) * 10.0 ** np.arange(-3, 3)
    a = rng.standard_normal(n)
    counted, objective = Counted(half_space(a, -1.0), n), Objective(A.T @ A, -A.T @ rng.standard_normal(20))
    x = minimize_quadratic(objective, counted.set.restrict(support), np.zeros(6))
    exact = solve_qp(objective, Linear.of(6, G=a[support][None], h=np.array([-1.0]))).x
    np.testing.assert_allclose(x, exact, rtol=1e-8, atol=1e-10)
    assert counted.calls <= 2


def test_cuts_do_not_take_a_point_beside_a_round_set_for_one_of_it(rng):
    ball = ks.CustomSet(ks.L2Ball().project, ks.L2Ball().violation, n=6)
    for _ in range(20):
        A = rng.standard_normal((6, 3))
        free = rng.standard_normal(3)  # where A alone would have x: a little outside, so that few cuts come near
        objective = Objective(A.T @ A, -(A.T @ A) @ free * (1 + 10.0 ** -rng.uniform(1, 4)) / np.linalg.norm(free))
        x = minimize_by_cutting_planes(objective, ball.restrict(np.array([1, 2, 4])), np.zeros(3))
        exact = minimize_quadratic(objective, ks.L2Ball(), np.zeros(3))
        assert x is None or np.linalg.norm(x - exact) <= 1e-8


@pytest.mark.parametrize("C", [ks.Box(-0.2, 0.1), ks.L2Ball(0.3), ks.Simplex(1.0)], ids=str)
def test_the_spectral_gradient_finds_the_minimum(rng, C):
    A, b = rng.standard_normal((15, 10)) * 10.0 ** rng.uniform(-1, 1, 10), rng.standard_normal(15)
    H, c = A.T @ A, -A.T @ b
    ended = minimize_by_projection(H, c, C.project, C.project(np.zeros(10)), 2000, 1e-9)
    exact = minimize_quadratic(Objective(H, c), C, np.zeros(10))
    assert ended.settled
    np.testing.assert_allclose(Objective(H, c).value(ended.x), Objective(H, c).value(exact), rtol=1e-8)


@pytest.mark.parametrize("name", ["box", "ball"])
def test_a_search_on_a_custom_set_needs_few_projections(rng, name):
    n, k = 24, 10
    A, b = rng.standard_normal((12, n)), rng.standard_normal(12)
    C = {"box": ks.Box(-0.3, 0.2), "ball": ks.L2Ball(0.5)}[name]
    counted, loss = Counted(C, n), ks.LeastSquares(A, b)
    result = ks.minimize(loss, k, counted.set)
    assert result.success
    assert result.fun <= 1.3 * ks.minimize(loss, k, C).fun  # which uses the structure of C
    assert counted.calls <= 60_000  # 250 000 and more when every step of every solve went through a dual


def test_an_unbounded_loss_on_a_custom_set_is_detected_by_a_ray(rng):
    n = 20
    A = rng.standard_normal((6, n))
    counted = Counted(half_space(rng.standard_normal(n), 0.5), n)
    result = ks.minimize(ks.Quadratic(A.T @ A, rng.standard_normal(n)), 15, counted.set)
    assert result.status is Status.UNBOUNDED
    assert counted.calls <= 2_000


def test_a_bounded_set_has_no_ray(rng):
    A = rng.standard_normal((3, 8))
    counted, objective = Counted(ks.L2Ball(1e6), 8), Objective(A.T @ A, rng.standard_normal(8))
    assert minimize_by_cutting_planes(objective, counted.set.restrict(np.arange(8)), np.zeros(8)) is None
    assert counted.calls <= 10


def test_dependent_variables_do_not_make_a_search_try_every_swap(rng, monkeypatch):
    n, k = 36, 20
    solves = []
    solve_scaled = qp._solve_scaled
    monkeypatch.setattr(qp, "_solve_scaled", lambda *of: solves.append(1) or solve_scaled(*of))
    loss = ks.MeanVariance.from_returns(rng.standard_normal((12, n)), 1.0)
    result = ks.minimize(loss, k, ks.Box(-rng.uniform(0, 1, n), rng.uniform(0, 1, n)))
    assert result.status is Status.SWAP_OPTIMAL
    assert len(solves) <= 6_000


def test_single_precision_makes_a_covariance_no_less_convex(rng):
    A = rng.standard_normal((5, 20))
    loss = ks.Quadratic((A.T @ A).astype(np.float32), np.zeros(20, dtype=np.float32))
    assert np.linalg.eigvalsh(loss.as_float64().matrix)[0] < -1e-10  # what rounding left
    assert loss.as_float64().convex
    assert not loss.as_float64().convexity_is_certain
    assert not ks.Quadratic(np.diag([1.0, -0.1]).astype(np.float32)).as_float64().convex
    assert ks.Quadratic(np.eye(3, dtype=np.float32)).as_float64().convexity_is_certain


def test_a_pull_far_beyond_the_bounds_does_not_lose_the_interior_point(rng, monkeypatch):
    slow = []
    primal_active_set = qp.primal_active_set
    monkeypatch.setattr(qp, "primal_active_set", lambda *of: slow.append(1) or primal_active_set(*of))
    A = rng.standard_normal((4, 12))
    linear = Linear.of(12, -np.ones(12), np.ones(12), rng.standard_normal((2, 12)), np.ones(2))
    solve_qp(Objective(A.T @ A, 1e100 * rng.standard_normal(12)), linear)
    assert not slow
