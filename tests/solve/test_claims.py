"""Statuses are true: proofs, swap-optimality and stationary points, checked by slower and more exact arithmetic."""

import itertools

import numpy as np
import pytest

import catalogue
import ksparse as ks
from ksparse import Status
from ksparse.firstorder.problem import Problem, Stopping
from ksparse.numerics.bound import Noise, suboptimality_bound
from ksparse.search.candidate import Candidate, Incumbent
from ksparse.search.polish import PolishedPoint, polish
from ksparse.solve.judge import judge_search
from ksparse.solve.request import check_request, support_problem

SEARCHED = ks.SearchSettings(enumerated=0)  # not by trying every support


def test_long_steps_on_a_concave_loss_do_not_look_stationary():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        S = rng.standard_normal((8, 8))
        loss, penalty = ks.PrincipalComponent(S @ S.T), ks.L1(0.5)
        result = ks.minimize_penalized(
            loss, penalty, C=ks.L2Ball(), method="pdca", tol=1e-3, patience=1, x0=rng.standard_normal(8)
        )
        problem = Problem(loss, penalty, ks.L2Ball())
        at_L = problem.residual(problem.point(result.x), problem.lipschitz())
        assert (result.status is Status.STATIONARY) <= (at_L <= 1e-4)


def polynomial():
    t = np.linspace(0, 1, 50)
    return np.vander(t, 14, increasing=True), np.sin(6 * t) + 0.01 * np.random.default_rng(0).standard_normal(50)


def test_least_squares_on_nearly_dependent_columns_is_solved_from_the_data():
    A, b = polynomial()
    best = 0.5 * float(np.sum((A @ np.linalg.lstsq(A, b)[0] - b) ** 2))
    for result in (ks.minimize(ks.LeastSquares(A, b), 14), ks.k_path(ks.LeastSquares(A, b), [13, 14])[14]):
        assert result.fun == pytest.approx(best, rel=1e-6)
        assert result.status is not Status.OPTIMAL or result.fun <= best * (1 + 1e-7)


@pytest.mark.parametrize("condition", [1e2, 1e6, 1e8, 1e10, 1e13])
def test_a_proof_on_ill_conditioned_columns_is_one(condition, rng):
    """The value equals that of orthogonal arithmetic where optimality is claimed, and clear cases are claimed."""
    U, _ = np.linalg.qr(rng.standard_normal((40, 6)))
    V, _ = np.linalg.qr(rng.standard_normal((6, 6)))
    A, b = U @ np.diag(np.geomspace(1, 1 / condition, 6)) @ V, rng.standard_normal(40)
    best = 0.5 * float(b @ b - np.sum((U.T @ b) ** 2))
    result = ks.minimize(ks.LeastSquares(A, b), 6)
    if result.status is Status.OPTIMAL:
        assert result.fun <= best * (1 + 1e-7)
    assert (result.status is Status.OPTIMAL) >= (condition <= 1e6)


def test_small_curvature_beside_the_linear_part_on_a_polyhedron():
    loss = ks.MeanVariance(np.diag([3.0, 1.9, 1.4, 1.9]) * 1e-10, [-1e-5, 4.2e-5, 3e-5, 2.2e-5], 0.5)
    C = ks.Polyhedron(
        [[-1.0, 0.25, -1.1, 0.9], [-0.4, -2.5, 0, 0]], [-0.25, 0.0], np.ones((1, 4)), [-0.28], lower=np.full(4, -2.0)
    )  # fmt: skip
    result = ks.minimize(loss, 2, C)
    np.testing.assert_allclose(result.x, [0, 1.72, 0, -2], atol=1e-12)
    assert result.fun <= loss.value(np.array([0, 1.72, 0, -2.0])) + 1e-18


def test_the_shortfall_bounds_what_is_left_at_any_point(rng):
    """For any point and multipliers, no feasible point is better by more."""
    from ksparse.numerics.constraints import Linear
    from ksparse.numerics.qp import Objective

    for _ in range(200):
        Z = rng.standard_normal((5, 3))
        objective = Objective(Z.T @ Z, rng.standard_normal(3))
        linear = Linear.of(3, lower=-1.0, upper=2.0, G=rng.standard_normal((2, 3)), h=np.array([2.0, 2.0]))
        inside = rng.uniform(-1, 2, (400, 3))
        inside = inside[(inside @ linear.G.T <= linear.h).all(axis=1)]
        x, prices = inside[0], rng.standard_normal(2)
        best = min(objective.value(point) for point in inside)
        assert best >= objective.value(x) - suboptimality_bound(objective, linear, x, np.zeros(0), prices, Noise())


@pytest.mark.parametrize("set_name", ["whole", "nonnegative", "budget", "ball"])
def test_claims_of_swap_optimality_hold_for_nearly_dependent_columns(set_name):
    """Every neighbour is re-solved by orthogonal arithmetic: none may be better than the proof allows."""
    C = {"whole": None, "nonnegative": ks.Nonnegative(), "budget": ks.Hyperplane(), "ball": ks.L2Ball(50.0)}[set_name]
    for seed in range(6):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((30, 12))
        A[:, 6:] = A[:, :6] + 10.0 ** rng.uniform(-9, -2) * rng.standard_normal((30, 6))
        loss = ks.LeastSquares(A, A[:, 0] - A[:, 6] + 0.1 * rng.standard_normal(30))
        result = ks.minimize(loss, 3, C)
        if result.status not in (Status.SWAP_OPTIMAL, Status.OPTIMAL):
            continue
        for j in result.support:
            for i in np.setdiff1d(np.arange(12), result.support):
                support = np.sort(np.append(np.setdiff1d(result.support, [j]), i))
                other = ks.minimize(loss, 3, C, forced_in=support, forced_out=np.setdiff1d(np.arange(12), support))
                assert other.fun >= result.fun * (1 - 1e-6)


@pytest.mark.parametrize(
    ("support", "x", "right"),
    [
        ([0, 1], [1.0, 5.0], False),
        ([1], [5.0], False),
        ([2], [1.5], True),
        ([2], [0.4], False),
        ([2], [0.5 * (1 - 1e-10)], True),
    ],
)
def test_the_judge_looks_at_barred_variables_and_floors(support, x, right, monkeypatch):
    """Variable 0 is forced out, variable 1 is in a group with it, and nonzeros are at least 0.5."""
    request = check_request(
        ks.LeastSquares(np.eye(3), [1.0, 5.0, 1.5]), 1, None, None, Stopping(), rules=([0, 0, 1], None, None)
    )
    problem = support_problem(request, (), [0], 0.5)
    best = Candidate.without_multipliers(np.array(support), np.array(x), 0.0)
    monkeypatch.setattr(
        "ksparse.solve.judge.polish_candidate", lambda _, candidate: PolishedPoint(candidate.x, 0.0, 0.0)
    )
    assert judge_search(request, problem, Incumbent(best), Status.STATIONARY).success == right


@pytest.mark.parametrize(
    "set_name", ["WholeSpace", "Hyperplane", "Box", "BudgetBox of vectors", "Polyhedron", "Nonnegative"]
)
def test_no_false_proofs_on_dependent_columns(set_name):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((int(rng.integers(3, 7)), 14))
        A[:, 7:] = A[:, :7]
        loss, C = ks.LeastSquares(A, 10 * rng.standard_normal(len(A))), catalogue.SETS[set_name](14)
        result = ks.minimize(loss, 5, C, settings=SEARCHED)
        if not result.proved:
            continue
        for j, i in itertools.product(result.support, np.setdiff1d(np.arange(14), result.support)):
            support = np.union1d(np.setdiff1d(result.support, [j]), [i])
            try:
                assert polish(loss, C, support, np.zeros(support.size)).value >= result.fun - 1e-7
            except ks.InfeasibleError:
                continue


def test_a_proof_of_a_value_that_is_rounding():
    A, rng = np.array([[-1.08, 0.8, -0.26, -0.62, -1.75, -0.86, 0.19, -0.4]]), np.random.default_rng(0)
    C = ks.Polyhedron(rng.standard_normal((2, 8)), [0.5, 0.7], np.ones((1, 8)), [0.0], lower=-1.0, upper=1.0)
    found = ks.minimize(
        ks.LeastSquares(A, [0.0]), 3, C, gap=1e-9, max_nodes=50, settings=ks.SearchSettings(enumerated=0)
    )
    assert found.fun <= 1e-20


def test_few_exchanges_are_tried_where_none_can_be_proved():
    """The data are too small for a proof; the other of two variables is better."""
    loss = ks.MeanVariance(np.diag([2.0, 1.0]) * 1e-200, [-1e-100, 1e-100], 0.5)
    assert list(ks.minimize(loss, 1, ks.Simplex(0.1), settings=SEARCHED).support) == [1]


@pytest.mark.parametrize("kind", ["component", "regression"])
def test_a_tree_where_the_forced_variables_are_all_there_may_be(kind, rng):
    X = rng.standard_normal((12, 4))
    component = ks.PrincipalComponent.from_data(X, scale=False), 1, ks.L2Ball(0.7)
    loss, k, C = component if kind == "component" else (ks.LeastSquares(X, X @ np.ones(4)), 1, None)
    found = ks.minimize(loss, k, C, forced_in=[0], gap=0.05, settings=SEARCHED)
    assert list(found.support) == [0]
    assert found.status is ks.Status.OPTIMAL


def test_a_level_between_numbers_whose_product_vanishes():
    C = ks.BudgetBox(1.42e100, np.array([-1.22e100]), np.array([1.42e100]))
    loss = ks.Poisson(
        np.array([[2e-100], [0.0], [0.0], [0.0]]), [0.0, 2.0, 1.0, 1.0], sample_weight=[1.0, 0.0, 2.5, 1.5]
    )
    assert np.isfinite(ks.minimize(loss, 1, C, gap=1e-9, max_nodes=200).fun)
