"""A k-sparse feasible point is found if one exists; otherwise the error gives the reason."""

import numpy as np
import pytest

import ksparse as ks


def test_budget_seats_reach_the_total_whenever_some_support_does(rng):
    for _ in range(200):
        n, k = 6, int(rng.integers(1, 6))
        high = rng.uniform(0, 3, n).round(2)
        total = float(rng.uniform(0, np.sort(high)[-k:].sum()))
        C = ks.BudgetBox(total, 0.0, high)
        assert high[C.sparse_support(rng.uniform(0, 1, n), k)].sum() >= total - 1e-9


def test_a_polyhedron_without_a_sparse_point_says_why_before_any_work():
    C = ks.Polyhedron(None, None, np.ones((1, 20)), [1.0], lower=0, upper=0.06)
    with pytest.raises(ks.InfeasibleError, match="every point has at least 17 nonzeros"):
        ks.minimize(ks.LeastSquares(np.eye(20), np.ones(20)), 10, C)


def test_a_polyhedron_with_one_sparse_support_is_solved_there():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        E, x = rng.standard_normal((2, 6)), np.zeros(6)
        x[rng.choice(6, 2, replace=False)] = rng.uniform(0.5, 1, 2)
        C = ks.Polyhedron(None, None, E, E @ x, lower=-2.0, upper=2.0)
        for method in ("auto", "apdca"):
            result = ks.minimize(ks.Quadratic(np.eye(6)), 2, C, method=method, rho=1.0)
            assert result.maxcv <= 1e-9
            assert result.support.size <= 2


def test_a_custom_set_that_needs_one_variable():
    w = np.eye(4)[0]
    C = ks.CustomSet(lambda u: u + w * (1 - u[0]), lambda x: abs(x[0] - 1))
    for method in ("apdca", "auto"):
        assert ks.minimize(
            ks.Quadratic(np.eye(4), [0, -9, -9, -9]), 2, C, rho=1e-2, method=method
        ).fun == pytest.approx(-40.0)


def test_a_budget_met_by_forced_seats_alone():
    C = ks.BudgetBox(1.0, np.r_[0.1, np.zeros(24)], np.r_[0.2, np.full(24, 0.5)])
    result = ks.minimize(ks.LeastSquares(np.eye(25), np.ones(25)), 5, C)
    assert result.success
    assert result.fun == pytest.approx(11.6)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_infeasible_supports_are_not_accepted_in_any_units(scale):
    loss = ks.LeastSquares(1e-5 * np.diag([0.1, 1.0]), np.zeros(2))
    result = ks.minimize(loss, 1, ks.Polyhedron([[-1.0, -1.0], [1.0, 0.0]], [-scale, 0.2 * scale]))
    np.testing.assert_allclose(result.x, [0, scale])
    assert result.success


def test_tiny_sets_are_not_met_by_0():
    for C in (ks.Simplex(1e-12), ks.BudgetBox(1e-12, 0.0, 1.0), ks.Hyperplane(b=1e-12), ks.Box(np.r_[1e-12, 0.0], 1.0)):
        assert not C.contains(np.zeros(2))
        result = ks.minimize(ks.LeastSquares(np.eye(2), -np.ones(2)), 1, C)
        assert result.success
        assert abs(result.x.sum()) == pytest.approx(1e-12)


def test_a_generalised_model_on_a_large_simplex():
    rng = np.random.default_rng(1)
    result = ks.minimize(ks.Logistic(rng.standard_normal((19, 4)), (rng.random(19) < 0.5) * 1.0), 1, ks.Simplex(1000))
    assert result.x.sum() == pytest.approx(1000)
    assert result.success


@pytest.mark.parametrize("method", ["pdca", "apdca", "iht", "l1dca"])
def test_the_papers_methods_find_a_sparse_point_of_a_polyhedron(method):
    """Unbounded variables: only one of two supports has a feasible point."""
    pytest.importorskip("clarabel")
    E = np.array([[1.0, 1.0, 1.0, 1.0, 0.0], [0.0, 1.0, 2.0, 3.0, 1.0]])
    C = ks.Polyhedron(None, None, E, [1.0, 7.0], lower=[0.0, 0.0, 0.0, 0.0, -np.inf])
    try:
        result = ks.minimize(ks.LeastSquares(np.eye(5), np.ones(5)), 2, C, method=method, rho=1.0)
    except ks.MissingPieceError:
        assert method == "iht"
        return
    assert result.maxcv <= 1e-9
    assert result.support.size <= 2


def test_a_polyhedron_of_columns_in_other_units_is_not_empty():
    ones = ks.LeastSquares(np.eye(2), np.ones(2))
    far = ks.minimize(ones, 1, ks.Polyhedron([[-1, -1e-10]], [-1.0], upper=[0, np.inf]))
    np.testing.assert_allclose(far.x, [0, 1e10])
    np.testing.assert_allclose(
        ks.minimize(ones, 2, ks.Polyhedron(None, None, [[1, -1e-10]], [0.0], [0.5, -np.inf], [2, np.inf])).x, [0.5, 5e9]
    )


def test_a_projection_that_stops_early_has_points():
    def project(u):  # onto the simplex, by Dykstra's alternation to 1e-8
        x, p = u.copy(), np.zeros(4)
        for _ in range(5000):
            y = np.clip(x + p, 0, 1)
            p = x + p - y
            following = y - (y.sum() - 1) / 4
            if np.abs(following - y).max() < 1e-8:
                break
            x = following
        return following

    C = ks.CustomSet(project, lambda x: max(abs(x.sum() - 1), -x.min(), x.max() - 1, 0.0), n=4)
    assert ks.minimize(ks.LeastSquares(np.eye(4), np.arange(1.0, 5.0)), 2, C).fun == pytest.approx(11.5, rel=1e-6)


@pytest.mark.slow
def test_forced_lists_with_polyhedra_and_budgets():
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n = 40
        Z = rng.standard_normal((60, n))
        E = np.vstack([np.ones(n), rng.uniform(0, 1, n)])
        forced = int(rng.integers(n))
        C = ks.Polyhedron(None, None, E, [1, 0.5], lower=0.0)
        result = ks.minimize(ks.Quadratic(Z.T @ Z), 4, C, forced_in=[forced], forced_out=[(forced + 1) % n])
        assert result.support.size <= 4
        assert np.union1d(result.support, [forced]).size <= 4
        assert result.x[(forced + 1) % n] == 0
        assert result.maxcv <= 1e-9
    up = np.r_[np.full(3, 0.9), np.full(10, 0.2), np.full(27, 0.01)]
    result = ks.minimize(ks.Quadratic(Z.T @ Z), 6, ks.BudgetBox(1.0, 0.0, up), forced_out=[0, 1, 2])
    assert result.success
    assert not result.x[:3].any()


def test_a_start_on_a_set_with_inequality_rows(rng):
    A = rng.standard_normal((60, 40))
    b = A[:, :5].sum(axis=1) + rng.standard_normal(60)
    C = ks.Polyhedron(np.ones((2, 40)), [3.0, 4.0], lower=np.full(40, -1.0), upper=np.full(40, 1.0))
    x0 = np.zeros(40)
    x0[:4] = 0.25
    result = ks.minimize(ks.LeastSquares(A, b), 4, C, x0=x0)
    assert result.success
    assert result.fun <= 0.5 * np.sum((A @ x0 - b) ** 2)


@pytest.mark.parametrize("enumerated", [0, 10])
def test_every_variable_forced_out(enumerated):
    settings = ks.SearchSettings(enumerated=enumerated)
    with pytest.raises(ks.InfeasibleError, match="no point"):
        ks.minimize(ks.LeastSquares(np.ones((4, 1)), np.ones(4)), 1, ks.Simplex(), forced_out=[0], settings=settings)


def test_a_point_that_arithmetic_can_hardly_find_is_not_called_missing():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((10, 6)) * np.array([1e3, 1e-2, 1e-6, 1e2, 1e5, 1e1])
    row = np.array(
        [
            [
                0.14580577220508742,
                0.7311378927283557,
                1.0659783944294328,
                -0.8126050889276193,
                -0.5825759106055975,
                -0.06810361566658703,
            ]
        ]
    )
    low = np.array([-0.5, -1.3848676249484628, -0.5, -2.7154569379862252, -0.5, -0.5])
    high = np.array([0.993269658671819, 0.5, 1.50972624524191, 0.5, 0.8597898623459348, 0.735459418969699])
    # hardly more than a point without two of them
    C = ks.Polyhedron(None, None, row, [2.0759587122060235], lower=low, upper=high)
    found = ks.minimize(
        ks.LeastSquares(A, rng.standard_normal(10)),
        5,
        C,
        forced_out=[1, 3],
        min_nonzero=0.001,
        settings=ks.SearchSettings(enumerated=0),
    )
    assert found.maxcv < 1e-9
    assert (np.abs(found.x[found.support]) >= 0.001).all()
