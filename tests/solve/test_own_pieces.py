"""Pieces written by a user: answers, status and proofs of the built-in ones, and clear errors for invalid pieces."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

import ksparse as ks
from ksparse.firstorder.problem import Problem


class OwnSquares(ks.Loss):
    """½‖Ax − b‖²."""

    convex = True

    def __init__(self, A, b):
        self.A, self.b, self.n = A, b, A.shape[1]

    def image(self, x):
        return self.A @ x

    def value_at(self, x, image):
        return 0.5 * float(np.sum((image - self.b) ** 2))

    def gradient_at(self, x, image):
        return self.A.T @ (image - self.b)

    def curvature_at(self, x, image, d, image_d):
        return float(image_d @ image_d)

    def lipschitz(self):
        return float(np.linalg.norm(self.A, 2) ** 2)

    def squares(self):
        return ks.Squares(self.A, self.b)


class OwnQuadratic(ks.Loss):
    """½xᵀQx + cᵀx + constant, by `quadratic` alone."""

    def __init__(self, Q, c, constant=0.0, sign=0, convex=None):
        self.Q, self.c, self.constant = Q, c, constant
        self.n, self.sign, self.convex = len(Q), sign, convex

    def image(self, x):
        return self.Q @ x

    def value_at(self, x, image):
        return float(0.5 * x @ image + self.c @ x) + self.constant

    def gradient_at(self, x, image):
        return image + self.c

    def curvature_at(self, x, image, d, image_d):
        return float(d @ image_d)

    def lipschitz(self):
        return float(np.linalg.norm(self.Q, 2))

    def quadratic(self):
        return ks.QuadraticModel.of_matrix(self.Q, 1.0, self.c, self.constant, sign=self.sign)


class ThinBall(ks.ConvexSet):
    def __init__(self, radius):
        self.ball = ks.L2Ball(radius)

    def project(self, u):
        return self.ball.project(u)

    def violation(self, x):
        return self.ball.violation(x)

    def restrict(self, support):
        return self.ball


class WholeBall(ThinBall):
    has_multipliers = True

    def restrict(self, support):
        return self

    def minimize_quadratic(self, H, c, near):
        return self.ball.minimize_quadratic(H, c, near)

    def shortfall(self, H, c, found, noise):
        return self.ball.shortfall(H, c, found, noise)

    def as_norm_ball(self):
        return self.ball.as_norm_ball()


class HalfSpace(ks.ConvexSet):
    """aᵀx ≤ b."""

    def __init__(self, a, b):
        self.a, self.b = np.asarray(a, dtype=float), float(b)
        self.n = self.a.size

    def project(self, u):
        return u - max(0.0, self.a @ u - self.b) / (self.a @ self.a) * self.a

    def violation(self, x):
        return max(0.0, float(self.a @ x - self.b)) / float(np.linalg.norm(self.a))

    def restrict(self, support):
        return HalfSpace(self.a[support], self.b)

    def as_linear(self, n):
        return ks.Linear.of(n, G=self.a, h=self.b)


class TwoSlopes(ks.Separable):
    """λ|xᵢ| up to θ, half as steep beyond."""

    def __init__(self, lam, theta):
        self.lam, self.theta = lam, theta

    def g_of(self, size):
        return self.lam * (np.minimum(size, self.theta) + 0.5 * np.maximum(size - self.theta, 0))

    def g2_of(self, size):
        return 0.5 * self.lam * np.maximum(size - self.theta, 0)

    def slope_of(self, size):
        return 0.5 * self.lam * (size > self.theta)

    def candidates(self, size, t):
        return [np.clip(size - t * self.lam, 0, self.theta), np.maximum(size - 0.5 * t * self.lam, self.theta)]


@dataclass(frozen=True)
class State:
    x: object
    l: float  # noqa: E741
    residual: float = math.inf


class Plain(ks.Method):
    """The proximal DC step with l = L."""

    def init(self, problem, x):
        return State(x, problem.lipschitz())

    def step(self, problem, s):
        pull = problem.grad_f(s.x) - problem.subgradient_g2(s.x)
        z = problem.point(problem.prox_g1(s.x.x - pull / s.l, s.l))
        return State(z, s.l, problem.relative(s.l * np.linalg.norm(z.x - s.x.x), s.x.gradient))


class WithTopK1(Plain):
    name = "with top-(k,1)"

    def __init__(self):
        self.seen = []

    def penalty(self, k, rho, C):
        return ks.TopK1(rho, k)

    def step(self, problem, s):
        self.seen.append(type(problem.penalty))
        return super().step(problem, s)


@pytest.fixture
def data(rng):
    A = rng.standard_normal((60, 30))
    return A, A[:, :6] @ np.array([1.0, -2, 1, 0.7, -0.5, 1]) + 0.8 * rng.standard_normal(60)


def assert_same(own, ours):
    np.testing.assert_allclose(own.x, ours.x, atol=1e-9)
    np.testing.assert_array_equal(own.support, ours.support)
    assert own.fun == pytest.approx(ours.fun, rel=1e-12)
    assert own.status is ours.status
    assert own.proved == ours.proved


SETS = [
    None,
    ks.Nonnegative(),
    ks.Box(-1, 0.8),
    ks.Simplex(2),
    ks.L2Ball(1.5),
    ks.Polyhedron(np.ones((1, 30)), [1.0]),
    ks.L1Ball(2.0),
]


# --- losses -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("C", SETS, ids=str)
@pytest.mark.parametrize("k", [2, 6])
def test_own_squares_are_least_squares(data, C, k):
    ours, own = ks.minimize(ks.LeastSquares(*data), k, C), ks.minimize(OwnSquares(*data), k, C)
    assert_same(own, ours)
    assert own.proved or str(C) == "L1Ball(2)"  # which gives no multipliers


@pytest.mark.parametrize("method", ["apdca", "pdca", "iht", "gist"])
def test_own_squares_in_the_papers_methods(data, method):
    ours, own = (ks.minimize(loss(*data), 6, method=method) for loss in (ks.LeastSquares, OwnSquares))
    assert_same(own, ours)


def test_own_squares_along_a_path(data):
    ours, own = (ks.k_path(loss(*data), range(1, 7)) for loss in (ks.LeastSquares, OwnSquares))
    for first, second in zip(ours.results, own.results, strict=True):
        assert_same(second, first)


def test_nearly_dependent_and_repeated_columns_are_told_apart_by_the_data(data):
    A, b = data
    A = A.copy()
    A[:, 1] = A[:, 0] + 1e-7 * A[:, 2]
    A[:, 4] = A[:, 3]
    for C in (None, ks.Box(-10.0, 10.0)):
        ours, own = (ks.minimize(loss(A, b), 5, C) for loss in (ks.LeastSquares, OwnSquares))
        assert_same(own, ours)


def test_restricted_squares_cost_what_few_columns_cost(data):
    class Counting(OwnSquares):
        products = 0

        def image(self, x):
            Counting.products += 1
            return super().image(x)

    ks.minimize(Counting(*data), 6)
    assert Counting.products < 20  # the try-out and the judge; the search runs on the squares


def test_defaults_of_a_loss_follow_from_its_squares(data):
    A, b = data
    own, ours = OwnSquares(A, b), ks.LeastSquares(A, b)
    assert own.is_quadratic
    assert own.least == 0.0
    assert own.entries == ours.entries == A.size
    assert not own.hides_columns
    assert own.has_hessian
    np.testing.assert_allclose(own.hessian_at(np.zeros(30), None), A.T @ A)
    np.testing.assert_array_equal(own.first_duplicates(np.array([1, 2])), [0, 1])


@pytest.mark.parametrize("C", [None, ks.Hyperplane(), ks.Simplex(), ks.BudgetBox(1.0, 0.0, 0.4)], ids=str)
def test_an_own_quadratic_is_searched_like_ours(data, C):
    A, b = data
    Q, c = A.T @ A / 60, -A.T @ b / 60
    ours, own = ks.minimize(ks.Quadratic(Q, c), 5, C), ks.minimize(OwnQuadratic(Q, c, 3.0, sign=1, convex=True), 5, C)
    np.testing.assert_allclose(own.x, ours.x, atol=1e-9)
    assert own.fun == pytest.approx(ours.fun + 3.0)
    assert own.status is ours.status


def test_an_own_principal_component_on_an_own_ball(data):
    V = np.corrcoef(data[0].T)
    ours = ks.minimize(ks.PrincipalComponent(V), 5, ks.L2Ball())
    own = ks.minimize(OwnQuadratic(-2 * V, np.zeros(30), sign=-1, convex=False), 5, WholeBall(1.0))
    np.testing.assert_allclose(np.abs(own.x), np.abs(ours.x), atol=1e-7)
    assert own.status is ours.status


def test_a_smooth_loss_without_a_word_on_its_curvature(data):
    class Quiet(OwnSquares):
        def squares(self):
            return None

    ours, own = ks.minimize(ks.LeastSquares(*data), 4), ks.minimize(Quiet(*data), 4)
    np.testing.assert_allclose(own.x, ours.x, atol=1e-6)
    assert own.status is ks.Status.STATIONARY  # nothing was proved


def test_second_order_models_of_a_smooth_loss_are_used(data):
    class Modelled(OwnSquares):
        models = 0

        def squares(self):
            return None

        def model_at(self, x):
            Modelled.models += 1
            return ks.QuadraticModel.of_squares(self.A, self.b)

    own = ks.minimize(Modelled(*data), 4)
    np.testing.assert_allclose(own.x, ks.minimize(ks.LeastSquares(*data), 4).x, atol=1e-8)
    assert Modelled.models > 1


def test_a_loss_of_any_length_learns_it_from_x0():
    class Cosh(ks.Loss):
        convex = True

        def image(self, x):
            return x

        def value_at(self, x, image):
            return float(np.sum(np.cosh(x - np.arange(x.size))))

        def gradient_at(self, x, image):
            return np.sinh(x - np.arange(x.size))

        def curvature_at(self, x, image, d, image_d):
            return float(np.cosh(x - np.arange(x.size)) @ d**2)

        def lipschitz(self):
            return math.inf

    with pytest.raises(ValueError, match="number of variables is not known: give x0, or n to the loss"):
        ks.minimize(Cosh(), 2)
    np.testing.assert_allclose(ks.minimize(Cosh(), 2, x0=np.zeros(5)).x, [0, 0, 0, 3, 4], atol=1e-6)


# --- sets -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("own", [WholeBall, ThinBall])
@pytest.mark.parametrize("radius", [1.0, 100.0])
@pytest.mark.parametrize("loss", [ks.LeastSquares, OwnSquares])
def test_a_wrapped_ball_is_the_ball(data, own, radius, loss):
    assert_same(ks.minimize(loss(*data), 5, own(radius)), ks.minimize(ks.LeastSquares(*data), 5, ks.L2Ball(radius)))


def test_an_own_polyhedron_is_proved_by_its_constraints(data, rng):
    a = rng.uniform(0.5, 2, 30)
    ours = ks.minimize(ks.LeastSquares(*data), 5, ks.Polyhedron(a[None], [0.3]))
    own = ks.minimize(ks.LeastSquares(*data), 5, HalfSpace(a, 0.3))
    assert_same(own, ours)
    assert own.proved


# --- penalties and methods --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["pdca", "apdca", "pdcae", "gist", "nmapg"])
def test_an_own_penalty_in_every_method(data, method):
    loss, penalty = ks.LeastSquares(*data), TwoSlopes(8.0, 0.4)
    result = ks.minimize_penalized(loss, penalty, method=method, tol=0, tol_residual=1e-8)
    assert result.status is ks.Status.STATIONARY
    x, g = result.x, loss.gradient(result.x)
    slope = 8.0 * np.where(np.abs(x) > 0.4, 0.5, 1.0) * np.sign(x)
    assert np.abs((g + slope)[(x != 0) & (np.abs(x) != 0.4)]).max() < 1e-3
    assert np.abs(g[x == 0]).max() <= 8.0 + 1e-3
    assert result.fun == pytest.approx(loss.value(x) + float(np.sum(penalty.g_of(np.abs(x)))))


def test_an_own_penalty_with_two_equal_slopes_is_l1(data):
    class OneSlope(TwoSlopes):
        def g_of(self, size):
            return self.lam * size

        def g2_of(self, size):
            return 0.0 * size

        slope_of = g2_of

        def candidates(self, size, t):
            return [np.maximum(size - t * self.lam, 0)]

    loss = ks.LeastSquares(*data)
    for method in ("apdca", "gist"):
        ours, own = (ks.minimize_penalized(loss, g, method=method) for g in (ks.L1(3.0), OneSlope(3.0, 1.0)))
        np.testing.assert_allclose(own.x, ours.x, atol=1e-12)


def test_an_own_method_is_pdca_with_a_fixed_step(data):
    loss, penalty = ks.LeastSquares(*data), ks.MCP(5.0, 1.5)
    ours = ks.minimize_penalized(loss, penalty, method="pdca", step="fixed", patience=1)
    own = ks.minimize_penalized(loss, penalty, method=Plain())
    np.testing.assert_allclose(own.x, ours.x, atol=1e-12)
    assert own.nit == ours.nit
    assert own.method == "own"


def test_a_method_gets_the_penalty_it_asks_for(data):
    method = WithTopK1()
    result = ks.minimize(ks.LeastSquares(*data), 5, method=method, rho=[1.0, 10.0])
    assert set(method.seen) == {ks.TopK1}
    assert result.method == "with top-(k,1)"
    assert np.count_nonzero(result.x) <= 5
    assert isinstance(Plain().penalty(3, 1.0, ks.WholeSpace()), ks.TopK2)  # what a method gets that does not ask


def test_a_method_without_a_weight_runs_once(data):
    class Once(Plain):
        weighted = False
        exact = True

    result = ks.minimize(ks.LeastSquares(*data), 5, method=Once())
    assert len(result.outcomes) == 1
    assert result.rho is None


# --- wrong declarations -----------------------------------------------------------------------------------------------


def changed(piece, **methods):
    """Return the class with some of its methods replaced."""
    return type(piece.__name__, (piece,), methods)


@pytest.mark.parametrize(
    ("methods", "error", "words"),
    [
        (
            {"image": lambda self, x: self.A @ x - self.b},
            ValueError,
            r"image must be linear in x, but OwnSquares.image\(0\) is not 0",
        ),
        (
            {"gradient_at": lambda self, x, image: 2 * self.A.T @ (image - self.b)},
            ValueError,
            "gradient does not match value",
        ),
        (
            {"gradient_at": lambda self, x, image: image - self.b},
            ValueError,
            r"gradient_at must have shape \(30,\), got \(60,\)",
        ),
        (
            {"value_at": lambda self, x, image: image},
            TypeError,
            "OwnSquares.value_at must return one number, got ndarray",
        ),
        ({"value_at": lambda self, x, image: math.nan}, ValueError, r"value\(x\) must be a finite number, got nan"),
        ({"squares": lambda self: ks.Squares(2 * self.A, self.b)}, ValueError, "must equal φ, constant included"),
        (
            {"squares": lambda self: ks.Squares(self.A, self.b[:9])},
            ValueError,
            r"squares\(\) needs a b of shape \(60,\)",
        ),
        ({"squares": lambda self: ks.Squares(self.A, self.b, ridge=0.5)}, ValueError, r"a ridge of shape \(30,\)"),
        (
            {"squares": lambda self: None, "quadratic": lambda self: ks.QuadraticModel.of_matrix(np.eye(3))},
            ValueError,
            "must have 30 var",
        ),
    ],
)
@pytest.mark.parametrize("method", ["auto", "apdca"])
def test_a_loss_with_wrong_declarations_is_refused(data, methods, error, words, method):
    with pytest.raises(error, match=words):
        ks.minimize(changed(OwnSquares, **methods)(*data), 3, method=method)


def test_a_bend_beyond_the_steepest_is_refused(data):
    class Steep(ks.DataFit):
        steepest = 1.0

        def h(self, image):
            return (image - self.b) ** 2

        def slope(self, image):
            return 2 * (image - self.b)

        def bend(self, image):
            return 2 * np.ones_like(image)

    with pytest.raises(ValueError, match=r"bend must lie in 0..steepest = 1, but Steep has 2: set steepest"):
        ks.minimize(Steep(*data), 3)
    Steep.steepest = 2.0
    np.testing.assert_allclose(ks.minimize(Steep(*data), 3).x, ks.minimize(ks.LeastSquares(*data), 3).x, atol=1e-6)


@pytest.mark.parametrize(
    ("methods", "error", "words"),
    [
        ({"project": lambda self, u: u[:2]}, ValueError, r"project\(u\) must have shape \(30,\), got \(2,\)"),
        ({"project": lambda self, u: 0.5 * u}, ValueError, "project must not move points of C"),
        ({"violation": lambda self, x: 1.0}, ValueError, "violation must be 0 on C"),
        ({"restrict": lambda self, support: None}, TypeError, r"restrict\(support\) must return a set, got NoneType"),
        (
            {"as_linear": lambda self, n: ks.Linear.of(n, upper=-5.0)},
            ValueError,
            "as_linear must describe C, but project.u. violates it",
        ),
        (
            {"as_linear": lambda self, n: ks.Linear.of(n)},
            ValueError,
            "as_linear must describe C, but it contains a point that project moves",
        ),
    ],
)
def test_a_set_with_wrong_declarations_is_refused(data, methods, error, words):
    with pytest.raises(error, match=words):
        ks.minimize(ks.LeastSquares(*data), 3, changed(HalfSpace, **methods)(np.ones(30), 0.3))


def test_classes_are_no_objects_and_other_things_no_pieces(data):
    loss = ks.LeastSquares(*data)
    with pytest.raises(
        TypeError, match=r"loss must be an instance of ksparse.Loss, got the class OwnSquares: write OwnSquares\(...\)"
    ):
        ks.minimize(OwnSquares, 3)
    with pytest.raises(
        TypeError, match=r"C must be an instance of ksparse.ConvexSet, got the class ThinBall: write ThinBall\(...\)"
    ):
        ks.minimize(loss, 3, ThinBall)
    with pytest.raises(TypeError, match=r"penalty must be an instance of ksparse.Penalty, got str"):
        ks.minimize_penalized(loss, "l1")
    with pytest.raises(TypeError, match="got the class Plain: write Plain"):
        ks.minimize(loss, 3, method=Plain)
    with pytest.raises(TypeError, match=r"method must be a name or an object derived from ksparse.Method"):
        ks.minimize(loss, 3, method=object())
    with pytest.raises(TypeError, match="Can't instantiate abstract class"):
        changed(ks.Loss)()
    with pytest.raises(TypeError, match=r"own.penalty\(k, rho, C\) must be an instance of ksparse.Penalty, got float"):
        ks.minimize(loss, 3, method=changed(Plain, penalty=lambda self, k, rho, C: rho)())


def test_built_in_pieces_are_not_tried_out(data):
    loss = ks.LeastSquares(*data)
    before = Problem(loss, ks.TopK2(1.0, 3)).products.total
    loss.self_check(np.ones(30), lambda u: 1 / 0)
    ks.L2Ball().self_check(None)
    assert before == 0


def test_a_component_beside_a_constant_is_proved_as_without(rng):
    class Shifted(ks.PrincipalComponent):
        """−xᵀVx + 3."""

        skip_self_check = False

        def value_at(self, x, image):
            return super().value_at(x, image) + 3.0

        def quadratic(self):
            return ks.QuadraticModel.of_matrix(self.matrix, -2.0, sign=-1, constant=3.0)

    V = np.corrcoef(rng.standard_normal((20, 9)).T)
    plain, shifted = (ks.minimize(loss, 3, ks.L2Ball()) for loss in (ks.PrincipalComponent(V), Shifted(V)))
    assert shifted.fun == pytest.approx(plain.fun + 3.0)
    assert shifted.status is plain.status is ks.Status.OPTIMAL


class LogCoshFrom(ks.DataFit):
    """Σ (log cosh rᵢ + level): negative below 0 for a level below 0."""

    level = 0.0

    def h(self, image):
        return np.logaddexp(image - self.b, self.b - image) - np.log(2) + self.level

    def slope(self, image):
        return np.tanh(image - self.b)

    def bend(self, image):
        return 1 - np.tanh(image - self.b) ** 2


def intercept_without_ridge():
    """Return A, b, and a ridge on every variable but the last, an intercept."""
    rng = np.random.default_rng(0)
    A = np.column_stack([rng.standard_normal((60, 8)), np.ones(60)])
    return A, A[:, :2] @ [1.0, -2.0] + 1.5 + 0.1 * rng.standard_normal(60), np.append(np.full(8, 0.1), 0.0)


def prove(loss):
    return ks.minimize(loss, 3, forced_in=[8], gap=0.01, settings=ks.SearchSettings(enumerated=0))


def test_no_proof_rests_on_a_bound_that_a_loss_of_the_users_does_not_claim():
    class Lower(LogCoshFrom):
        level = -50.0

    result = prove(Lower(*intercept_without_ridge()[:2], ridge=intercept_without_ridge()[2]))
    assert result.fun < -2900
    assert result.lower_bound == -np.inf
    assert "no lower bound" in result.message


def test_a_lower_bound_that_a_loss_of_the_users_claims_gives_a_proof():
    class Claimed(LogCoshFrom):
        least = 0.0

    A, b, ridge = intercept_without_ridge()
    result = prove(Claimed(A, b, ridge=ridge))
    assert result.status is ks.Status.OPTIMAL
    assert 0.99 * result.fun <= result.lower_bound <= result.fun


@pytest.mark.parametrize("level", [-50.0, -1.5], ids=["at the first point", "at the solution"])
def test_a_value_below_the_claimed_lower_bound_is_an_error(level):
    class Claimed(LogCoshFrom):
        least = 0.0

    Claimed.level = level
    A, b, ridge = intercept_without_ridge()
    with pytest.raises(ValueError, match=r"least must be a lower bound on φ, but Claimed\.least is 0 and φ is -"):
        prove(Claimed(A, b, ridge=ridge))


def test_a_subclass_of_a_built_in_loss_is_checked_like_any_other():
    class Shifted(ks.Logistic):
        def h(self, image):
            return super().h(image) - 5.0

    class Wrong(ks.Logistic):
        def slope(self, image):
            return 2.0 * super().slope(image)

    A, y = np.random.default_rng(0).standard_normal((60, 8)), np.arange(60) % 2
    with pytest.raises(ValueError, match=r"Shifted\.least is 0"):
        ks.minimize(Shifted(A, y), 2)
    with pytest.raises(ValueError, match="gradient does not match value"):
        ks.minimize(Wrong(A, y), 2)


def test_squares_with_a_negative_weight_are_refused():
    class Negative(ks.LeastSquares):
        def squares(self):
            return ks.Squares(self.A, self.b, -np.ones(len(self.b)))

    with pytest.raises(ValueError, match=r"squares\(\) needs a weight >= 0, got -1"):
        ks.minimize(Negative(np.eye(3), np.ones(3)), 1)


@pytest.mark.parametrize("seed", [10, 63, 80])
def test_no_swap_optimality_is_claimed_where_nothing_is_known_of_convexity(seed):
    rng = np.random.default_rng(seed)
    M = rng.standard_normal((5, 5))
    Q, c = M @ M.T - rng.uniform(0, 2) * np.eye(5), rng.standard_normal(5) * rng.choice([0.1, 1])
    settings = ks.SearchSettings(enumerated=0)
    result = ks.minimize(OwnQuadratic(Q, c), 2, ks.Box(-1, 1), settings=settings)
    better = ks.minimize(ks.Quadratic(Q, c), 2, ks.Box(-1, 1))  # known to be nonconvex: all faces are tried
    assert better.fun < result.fun - 0.1
    assert result.status is ks.Status.STATIONARY
    assert (
        ks.minimize(OwnQuadratic(M @ M.T, c, convex=True), 2, ks.Box(-1, 1), settings=settings).status
        is ks.Status.SWAP_OPTIMAL
    )
