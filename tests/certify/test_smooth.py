"""Bounds of losses that are not quadratic, compared with enumeration."""

import numpy as np
import pytest

import ksparse as ks
from conftest import sweep
from ksparse.certify.program import ScaledProblem
from ksparse.certify.smooth_family import SmoothBound, _largest_size
from ksparse.search.candidate import Candidate
from ksparse.search.problem import SupportProblem

NONE = np.zeros(0, dtype=int)
SEARCHED = ks.SearchSettings(enumerated=0)
SETS = {"whole": None, "signs": ks.Nonnegative(), "box": ks.Box(-0.4, 0.6), "budget": ks.Hyperplane(b=0.5)}


def losses(seed, ridge):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((40, 7)) + 0.5 * rng.standard_normal((40, 1))
    image = A[:, :3] @ np.array([1.0, -0.8, 0.6])
    yield ks.Logistic(A, (rng.random(40) < 1 / (1 + np.exp(-image))).astype(float), ridge=ridge)
    yield ks.Huber(A, image + rng.standard_normal(40), delta=0.5, ridge=ridge)
    yield ks.Poisson(A, rng.poisson(np.exp(np.clip(0.5 * image, -3, 3))), ridge=ridge)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("seed", range(2))
def test_trees_of_smooth_losses_agree_with_enumeration(seed, name):
    for loss in losses(seed, 1.0):
        best = ks.minimize(loss, 3, SETS[name], settings=ks.SearchSettings(enumerated=3_300)).fun
        found = ks.minimize(loss, 3, SETS[name], gap=1e-3, max_nodes=2000, settings=SEARCHED)
        assert found.lower_bound <= best + 1e-6 * abs(best)
        assert found.fun == pytest.approx(best, rel=1.1e-3, abs=1e-9) or found.status is not ks.Status.OPTIMAL
        assert found.status is ks.Status.OPTIMAL


@pytest.mark.parametrize("seed", range(4))
def test_no_dual_point_is_above_a_point_of_the_problem(seed):
    rng = np.random.default_rng(seed)
    for loss in losses(seed, 10.0 ** rng.uniform(-2, 1)):
        problem = SupportProblem.of(loss, ks.Box(-1.0, 1.0), 7, 3)
        start = np.zeros(7)
        known = Candidate.without_multipliers(NONE, np.zeros(0), loss.value(start))
        program = ScaledProblem.of(problem, problem.can.model_at(start), known)
        dual = SmoothBound(program, loss.composite())
        points = np.zeros((200, 7))
        for point in points:
            point[rng.choice(7, 3, replace=False)] = rng.uniform(-1, 1, 3)
        lowest = min(loss.value(point) for point in points) / program.scale
        w = rng.standard_normal((30, 7)) * 10.0 ** rng.uniform(-2, 1, (30, 1))
        state = np.zeros((30, 7), dtype=np.int8)
        assert (dual.at(w, np.zeros((30, 0)), np.zeros((30, 0)), state).value <= lowest + 1e-12).all()


def test_without_a_ridge_the_message_says_what_would_help():
    for loss in losses(0, 0.0):
        found = ks.minimize(loss, 3, gap=0.01, settings=SEARCHED)
        assert found.lower_bound == -np.inf
        assert "a ridge term" in found.message
    own = ks.Custom(lambda x: 1.0 + float(x @ x), lambda x: 2 * x, n=20, convex=True)
    assert "none is implemented for this loss" in ks.minimize(own, 3, gap=0.1, settings=SEARCHED).message


def test_a_slope_that_is_a_difference_is_not_trusted_beyond_its_terms():
    """1 − σ(40) rounds to 0: a value of 1e-17 cannot be bounded by slopes with errors of 1e-16."""
    A = np.array(
        [[48.9, 0.16, -0.4], [93.3, -1.46, -0.09], [150.6, 0.05, -0.62], [39.4, -1.0, -0.47], [-64.0, 0.9, -0.41]]
    )
    loss = ks.Logistic(A, [0.0, 0.0, 0.0, 0.0, 1.0])
    found = ks.minimize(loss, 3, ks.Box([-1.0, 0.2, -0.17], [-0.5, 0.7, 0.14]), gap=0.05)
    assert found.lower_bound <= loss.value(np.array([-1.0, 0.7, 0.14])) * (1 + 1e-9)


def test_nothing_to_bound():
    loss = ks.Huber([[-0.97, 1.34]], [0.06], delta=0.7)
    found = ks.minimize(loss, 2, forced_out=[0, 1], settings=SEARCHED, gap=0.05)
    assert "no variable may be used" in found.message


@pytest.mark.parametrize("kind", ["logistic", "huber", "poisson"])
@pytest.mark.parametrize("seed", range(4))
def test_an_intercept_without_a_ridge(kind, seed):
    """With enumeration switched off, the tree proves the enumerated optimum; no bound is above it."""
    rng = np.random.default_rng(seed)
    A = np.column_stack([rng.standard_normal((40, 6)), np.ones(40)])
    score, ridge = A[:, [1, 4, 6]] @ np.array([1.0, -1.0, 0.7]), np.append(np.full(6, 0.5), 0.0)
    losses = {
        "logistic": lambda: ks.Logistic(A, (rng.random(40) < 1 / (1 + np.exp(-score))).astype(float), ridge=ridge),
        "huber": lambda: ks.Huber(A, score + rng.standard_t(2, 40), delta=1.0, ridge=ridge),
        "poisson": lambda: ks.Poisson(A, rng.poisson(np.exp(0.5 * score)).astype(float), ridge=ridge),
    }
    loss = losses[kind]()
    best = ks.minimize(loss, 3, forced_in=[6], settings=ks.SearchSettings(enumerated=33_000)).fun
    found = ks.minimize(loss, 3, forced_in=[6], gap=1e-4, settings=ks.SearchSettings(enumerated=0))
    assert found.status is ks.Status.OPTIMAL
    assert found.lower_bound <= best + 1e-9 * abs(best)
    assert found.fun <= best + 1.1e-4 * abs(best)


@pytest.mark.parametrize("seed", sweep(range(6), 2))
def test_how_far_an_intercept_can_be(seed):
    """No point with a value below the edge has a larger intercept."""
    rng = np.random.default_rng(seed)
    A, ridge = np.column_stack([rng.standard_normal((30, 3)), np.ones(30)]), np.array([0.3, 0.3, 0.3, 0.0])
    loss = ks.Logistic(A, rng.integers(0, 2, 30).astype(float), ridge=ridge)
    composite, edge = loss.composite(), 1.3 * loss.value(np.zeros(4))
    up, down = (_largest_size(composite, np.arange(3), A[:, 3], way, edge, edge) for way in (1.0, -1.0))
    for x in rng.standard_normal((3000, 4)) * 10.0 ** rng.uniform(-2, 1.5, (3000, 1)):
        if loss.value(x) <= edge:
            assert -down <= x[3] <= up
    for side, end in ((1.0, up), (-1.0, down)):  # the furthest there is, without the others
        far = max(c for c in np.linspace(0, 50, 2000) if loss.value(np.array([0, 0, 0, side * c])) <= edge)
        assert far <= end


def test_a_classifier_with_its_intercept_is_proved(rng):
    X = rng.standard_normal((120, 12))
    y = rng.random(120) < 1 / (1 + np.exp(-(X[:, 0] - X[:, 5] + 1.0)))
    found = ks.SparseClassifier(2, alpha=0.05, gap=1e-3).fit(X, y).result_
    assert found.status is ks.Status.OPTIMAL
    assert 0 < found.lower_bound <= found.fun


def test_a_loss_without_a_ridge_is_told_what_would_give_a_bound(rng):
    A, y = rng.standard_normal((60, 9)), np.arange(60) % 2
    options = {"gap": 0.1, "settings": ks.SearchSettings(enumerated=0)}
    message = ks.minimize(ks.Logistic(A, y), 3, **options).message
    assert message.endswith(
        "; no lower bound: this loss needs a ridge term on every variable but one, or bounds on the variables"
    )
    for loss, C in (
        (ks.Logistic(A, y, ridge=np.append(np.full(8, 0.1), 0.0)), None),
        (ks.Logistic(A, y), ks.Box(-1, 1)),
    ):
        assert ks.minimize(loss, 3, C, **options).status is ks.Status.OPTIMAL
