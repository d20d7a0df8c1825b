"""Each set: characterisations of its projection, comparison with a slow version, and other kinds of arrays."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize as scipy_minimize

import catalogue
import ksparse as ks
from ksparse.util.arrays import embed, to_numpy

vectors = st.integers(2, 10).flatmap(
    lambda n: st.tuples(
        st.just(n), st.integers(0, 10**6), st.sampled_from([1e-8, 1e-2, 1.0, 1.0, 10.0, 1e3]), st.booleans()
    )
)


def draw(n, seed, scale, ties):
    u, v = np.random.default_rng(seed).standard_normal((2, n)) * scale
    return (np.round(u, 1), np.round(v, 1)) if ties else (u, v)


@pytest.mark.parametrize("name", catalogue.SETS)
@given(case=vectors)
def test_projection_is_one(name, case):
    """In the set, idempotent, nonexpansive, and ⟨u − Pu, y − Pu⟩ ≤ 0 for y in the set: this defines a projection."""
    n, *rest = case
    C = catalogue.SETS[name](n)
    u, v = draw(n, *rest)
    before = u.copy()
    p, q = C.project(u), C.project(v)
    size = max(1.0, np.abs(u).max(), np.abs(v).max())
    assert C.contains(p)
    assert C.violation(p) <= 1e-9 * size
    np.testing.assert_allclose(C.project(p), p, atol=1e-9 * size)
    assert np.linalg.norm(p - q) <= np.linalg.norm(u - v) + 1e-8 * size
    assert (u - p) @ (q - p) <= 1e-8 * size**2
    np.testing.assert_array_equal(u, before)


@pytest.mark.parametrize(
    "name", ["Simplex", "BudgetBox", "BudgetBox of vectors", "L1Ball", "Polyhedron", "Box of vectors"]
)
def test_projection_is_the_nearest_point_a_general_solver_finds(name, rng):
    n = 5
    C = catalogue.SETS[name](n)
    if name == "L1Ball":
        constraints = {
            "type": "ineq",
            "fun": lambda x: np.array([C.radius - np.array(s) @ x for s in itertools.product((-1, 1), repeat=n)]),
        }
        bounds = None
    else:
        linear = C.as_linear(n)
        constraints = [{"type": "eq", "fun": lambda x: linear.E @ x - linear.f}] if linear.f.size else []
        if linear.h.size:
            constraints.append({"type": "ineq", "fun": lambda x: linear.h - linear.G @ x})
        bounds = list(zip(linear.lower, linear.upper, strict=True))
    for _ in range(5):
        u = 2 * rng.standard_normal(n)
        slow = scipy_minimize(
            lambda x, u=u: 0.5 * np.sum((x - u) ** 2),
            np.full(n, 0.2),
            bounds=bounds,
            constraints=constraints,
            method="SLSQP",
            tol=1e-12,
        )
        np.testing.assert_allclose(C.project(u), slow.x, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in catalogue.SETS if name != "CustomSet"])
def test_other_array_namespaces_keep_kind_and_agree(name, asarray, rng):
    C = catalogue.SETS[name](8)
    u = 2 * rng.standard_normal(8)
    given_u = asarray(u)
    reference = C.project(np.asarray(u, dtype=np.float64))
    tol = 1e-9 if "64" in str(given_u.dtype) else 1e-5
    for same in (C, C.like(given_u)):
        p = same.project(given_u)
        assert type(p) is type(given_u)
        assert p.dtype == given_u.dtype
        np.testing.assert_allclose(to_numpy(p), reference, atol=tol)
        assert same.violation(p) <= 10 * tol
        assert same.contains(p)


@pytest.mark.parametrize("name", catalogue.SETS)
def test_restriction_is_the_set_cut_by_the_subspace(name, rng):
    n, support = 7, np.array([0, 2, 3, 6])
    C = catalogue.SETS[name](n)
    cut = C.restrict(support)
    for _ in range(5):
        z = cut.project(2 * rng.standard_normal(4))
        assert C.contains(embed(z, support, n))
        assert cut.violation(z) <= 1e-9
        other = cut.project(2 * rng.standard_normal(4))
        w = 2 * rng.standard_normal(4)
        p = cut.project(w)
        assert (w - p) @ (other - p) <= 1e-7  # nearest among the points of C on the support


@pytest.mark.parametrize("name", catalogue.SETS)
def test_linear_description_and_shrink_agree_with_the_set(name, rng):
    n = 6
    C = catalogue.SETS[name](n)
    inside = C.project(rng.standard_normal(n))
    linear = C.as_linear(n)
    if linear is not None:
        assert linear.violation(inside) <= 1e-9
        outside = inside + 5.0
        assert (linear.violation(outside) > 1e-6) == (C.violation(outside) > 1e-6)
    if not C.has_shrink:
        with pytest.raises(ks.MissingPieceError):
            C.shrink(inside, 0.1)
        return
    u, t = 2 * rng.standard_normal(n), 0.3
    x = C.shrink(u, t)
    assert C.contains(x)
    for _ in range(50):  # three-point inequality of a prox
        y = C.project(x + rng.standard_normal(n) * 10.0 ** rng.integers(-3, 1))
        gap = t * np.abs(y).sum() + 0.5 * np.sum((y - u) ** 2) - t * np.abs(x).sum() - 0.5 * np.sum((x - u) ** 2)
        assert gap >= 0.5 * np.sum((y - x) ** 2) - 1e-9


@pytest.mark.parametrize("name", catalogue.JOINT)
@given(case=vectors, k=st.integers(1, 12))
def test_joint_projection_is_the_best_over_all_supports(name, case, k):
    n, *rest = case
    k = min(k, n)
    C = catalogue.SETS[name](n)
    if C.why_no_sparse_member(n, k) is not None:
        return
    assert C.has_joint
    u, _ = draw(n, *rest)
    x = C.project_sparse(u, k)
    assert np.count_nonzero(x) <= k
    assert C.contains(x)
    best = np.inf
    for support in itertools.combinations(range(n), k):
        try:
            z = embed(C.restrict(np.array(support)).project(u[list(support)]), np.array(support), n)
        except ks.InfeasibleError:
            continue
        best = min(best, np.linalg.norm(z - u))
    assert np.linalg.norm(x - u) <= best * (1 + 1e-9) + 1e-15


def test_joint_projection_on_other_namespaces(asarray, rng):
    u = rng.standard_normal(9)
    for name in catalogue.JOINT:
        C = catalogue.SETS[name](9)
        x = C.like(asarray(u)).project_sparse(asarray(u), 4)
        assert type(x) is type(asarray(u))
        assert x.dtype == asarray(u).dtype
        np.testing.assert_allclose(to_numpy(x), C.project_sparse(u, 4), atol=1e-5)


def test_joint_projection_is_refused_where_it_is_not_exact():
    with pytest.raises(ks.MissingPieceError, match="no closed form"):
        ks.BudgetBox(1.0, np.zeros(3), [0.5, 1, 1]).project_sparse(np.ones(3), 2)
    with pytest.raises(ks.MissingPieceError, match="no closed form"):
        ks.Hyperplane([1.0, 2, 3]).project_sparse(np.ones(3), 2)


def test_sparse_supports_prefer_large_entries_but_never_where_c_has_no_point():
    size = np.array([5.0, 4.0, 3.0, 2.0, 1.0])
    np.testing.assert_array_equal(ks.WholeSpace().sparse_support(size, 2), [0, 1])
    np.testing.assert_array_equal(ks.Box([-1, -1, -1, -1, 0.5], 1.0).sparse_support(size, 2), [0, 4])
    np.testing.assert_array_equal(ks.BudgetBox(1.0, 0.0, [0.2, 0.2, 0.2, 0.2, 0.9]).sparse_support(size, 2), [0, 4])
    np.testing.assert_array_equal(ks.BudgetBox(4.5, 0.0, [0.5, 2, 3]).sparse_support(np.array([3.0, 2, 1]), 2), [1, 2])
    np.testing.assert_array_equal(
        ks.BudgetBox(-1.0, [-0.2, -0.2, -0.2, -0.2, -0.9], 0.0).sparse_support(size, 2), [0, 4]
    )
    np.testing.assert_array_equal(ks.Hyperplane([0.0, 0, 0, 0, 2], 1.0).sparse_support(size, 2), [0, 4])
    target = ks.Polyhedron(None, None, [[1, 1, 1, 1, 1], [0, 0, 0, 0, 1]], [1.0, 0.5], lower=0.0)
    np.testing.assert_array_equal(target.sparse_support(size, 2), [0, 4])
    with pytest.raises(ks.InfeasibleError, match="k = 1"):
        target.sparse_support(size, 1)


@pytest.mark.parametrize(
    ("C", "k", "reason"),
    [
        (ks.BudgetBox(1.0, 0.0, np.full(30, 0.05)), 10, "10 variables within their upper bounds sum to at most 0.5"),
        (ks.BudgetBox(-1.0, np.full(30, -0.05), 0.0), 10, "sum to at least -0.5"),
        (ks.BudgetBox(1.0, np.full(30, 0.01), 1.0), 10, "bounds of 30 variables exclude 0"),
        (ks.Box(np.full(30, 0.01), 1.0), 10, "bounds of 30 variables exclude 0"),
        (ks.Box(0.01, 1.0), 10, "bounds of 30 variables exclude 0"),
        (ks.BudgetBox(1.0, 0.0, 0.05), 10, "less than the total 1"),
        (ks.Polyhedron(np.ones((1, 30)), [50.0], lower=1.0), 10, "bounds of 30 variables exclude 0"),
    ],
)
def test_no_k_sparse_member_is_an_error_that_says_why(C, k, reason):
    assert C.why_no_sparse_member(30, k) is not None
    with pytest.raises(ks.InfeasibleError, match=reason):
        ks.minimize(ks.LeastSquares(np.eye(30), np.ones(30)), k, C, rho=1.0)


def test_sets_with_a_k_sparse_member_say_so():
    assert ks.BudgetBox(0.5, 0.0, np.full(30, 0.05)).why_no_sparse_member(30, 10) is None
    assert ks.Simplex().why_no_sparse_member(30, 1) is None
    assert ks.Box(np.r_[0.1, np.zeros(29)], 1.0).why_no_sparse_member(30, 1) is None


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ks.Box(1.0, 0.0), "lower 1 > upper 0"),
        (lambda: ks.Box([0.0, 2.0], [1.0, 1.0]), "at index 1"),
        (lambda: ks.BudgetBox(1.0, np.zeros(3), np.full(3, 0.1)), "total must be 0 to 0.3, as the bounds allow, got 1"),
        (lambda: ks.Hyperplane(np.zeros(3), 1.0), "a = 0 but b = 1"),
        (lambda: ks.Polyhedron([[1.0, 0], [-1, 0]], [-1.0, 0.0]), "linear programming proof"),
        (lambda: ks.Polyhedron(None, None, [[1.0, 1]], [3.0], lower=0.0, upper=1.0), "linear programming proof"),
        (lambda: ks.Box([0.5, 0.0], 1.0).restrict(np.array([1])), "variable 0 exclude 0"),
        (lambda: ks.BudgetBox(1.0, np.zeros(3), np.full(3, 0.4)).restrict(np.array([0, 1])), "on a support of 2"),
        (lambda: ks.Hyperplane([1.0, 0.0]).restrict(np.array([1])), "a is 0 there"),
        (lambda: ks.Polyhedron(None, None, [[1.0, 0]], [1.0]).restrict(np.array([1])), "on this support"),
    ],
)
def test_empty_sets_are_refused(make, words):
    with pytest.raises(ks.InfeasibleError, match=words):
        make()


def test_budgets_and_bounds_hold_to_rounding_on_large_vectors(rng):
    u = rng.standard_normal(20_000) * 10
    for C in (ks.Simplex(), ks.Hyperplane(), ks.BudgetBox(1.0, 0.0, 0.01), ks.L1Ball(1.0)):
        assert C.violation(C.project(u)) <= 1e-11
    weights = ks.Simplex().project(u)
    assert (weights >= 0).all()
    assert abs(weights.sum() - 1) <= 1e-14


def test_polyhedron_gives_exact_zeros_and_exact_bounds(rng):
    C = ks.Polyhedron(None, None, np.vstack([np.ones(20), np.arange(20.0)]), [1.0, 7.5], lower=0.0, upper=0.3)
    for _ in range(10):
        x = C.project(rng.standard_normal(20))
        assert C.violation(x) <= 1e-14
        assert ((x == 0) | (x == 0.3) | ((x > 1e-9) & (x < 0.3 - 1e-9))).all()


def test_simplex_of_equal_and_of_huge_entries():
    np.testing.assert_allclose(ks.Simplex().project(np.full(4, 7.0)), 0.25)
    np.testing.assert_allclose(ks.Simplex().project(np.array([1e12, 1e12 - 0.5, 0.0])), [0.75, 0.25, 0.0], atol=1e-4)


def test_a_custom_set_restricts_by_alternation_or_by_the_users_own_way(rng):
    ball = ks.CustomSet(ks.L2Ball().project, ks.L2Ball().violation, n=5)
    u = 3 * rng.standard_normal(2)
    np.testing.assert_allclose(ball.restrict(np.array([1, 3])).project(u), u / np.linalg.norm(u), atol=1e-8)
    with_restrict = ks.CustomSet(ks.L2Ball().project, ks.L2Ball().violation, restrict=lambda support: ks.L2Ball())
    assert isinstance(with_restrict.restrict(np.array([1, 3])), ks.L2Ball)
    shifted = ks.CustomSet(lambda u: np.clip(u, 1, 2), lambda x: float(np.abs(x - np.clip(x, 1, 2)).max()), n=3)
    with pytest.raises(ks.InfeasibleError, match="no point on this support"):
        shifted.restrict(np.array([0])).project(np.ones(1))


def test_dykstra_does_not_stop_where_it_only_stands_still():
    P = ks.Polyhedron([[-1, -1], [0, -1], [0, 1], [-1, 0]], [-1, 0, 1, 0])
    cut = ks.CustomSet(P.project, P.violation, n=2).restrict(np.array([0]))
    np.testing.assert_allclose(cut.project(np.array([-100.0])), [1.0], atol=1e-8)


def test_the_tip_of_a_cone_is_projected_onto():
    C = ks.Polyhedron([[0.337067, -1.0], [0.49455802, 1.0], [0.43861238, -1.0]], np.zeros(3), lower=-1.0, upper=1.0)
    np.testing.assert_allclose(C.project(np.array([1.0, 0.61032469])), [0.0, 0.0], atol=1e-14)


def test_a_row_on_small_entries_is_met_beside_large_ones():
    C = ks.Polyhedron([[-1.0, 0.0, 0.0]], [0.0], lower=-0.5, upper=1.0)
    x = C.project(np.array([-1.7e-13, 1.2, 0.3]))
    assert C.contains(x)
    np.testing.assert_allclose(x, [0.0, 1.0, 0.3], atol=1e-15)


@pytest.mark.parametrize("far", [1e18, 1e25, 1e30, 1e100])
@pytest.mark.parametrize("G", [[[1.0, 0.0]], [[0.02, 0.0], [0.5, 0.0]], [[1.0, 0.0], [0.3, 0.7]]], ids=str)
def test_bounds_that_are_far_away_do_not_hinder_a_projection(far, G):
    C = ks.Polyhedron(G, np.zeros(len(G)), lower=-far, upper=far)
    np.testing.assert_allclose(C.project(np.array([1.0, -0.3])), [0.0, -0.3], atol=1e-12)
