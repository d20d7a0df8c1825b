"""A loss, a set, a penalty and a method by the recipes of CONTRIBUTING.md pass the checks of built-in pieces."""

import importlib.util
import inspect
import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

import catalogue
import ksparse as ks
from conftest import MATRIX_KINDS, NAMESPACES
from ksparse.errors import MissingPieceError
from ksparse.firstorder.methods import State
from ksparse.firstorder.problem import Point, Problem, require_prox
from ksparse.losses import QuadraticForm
from ksparse.penalties import L1Based
from ksparse.util.arrays import namespace, sqnorm

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
KINDS = [name for name in NAMESPACES if "torch" not in name and "cuda" not in name]


# --- what a contributor writes ----------------------------------------------------------------------------------------


class SquaredHinge(ks.DataFit):
    """Σᵢ wᵢ ½ max(0, 1 − yᵢ(Ax)ᵢ)², labels y in {−1, 1}."""

    skip_self_check = True  # automatic for classes in ksparse
    target = "y"
    steepest = 1.0

    def __init__(self, A, y, sample_weight=None, ridge=0.0):
        super().__init__(A, y, sample_weight, ridge)
        xp = namespace(self.b)
        if not bool(xp.all((self.b == -1) | (self.b == 1))):
            raise ValueError("y must hold labels in {-1, 1}")

    def _short(self, image):
        gap = 1.0 - self.b * image
        return namespace(image).where(gap > 0, gap, 0.0 * gap)

    def h(self, image):
        return 0.5 * self._short(image) ** 2

    def slope(self, image):
        return -self.b * self._short(image)

    def bend(self, image):
        xp = namespace(image)
        return xp.astype(self._short(image) > 0, image.dtype)


class HalfSpace(ks.ConvexSet):
    """aᵀx ≤ b, b ≥ 0."""

    skip_self_check = True  # automatic for classes in ksparse
    _data = ("a",)

    def __init__(self, a, b):
        self.a, self.b = np.asarray(a, dtype=float), float(b)
        self.n = int(self.a.size)
        if self.b < 0:
            raise ValueError(f"b must be >= 0, got {self.b:g}")

    def _over(self, x):
        return float(namespace(x).sum(self.like(x).a * x)) - self.b

    def project(self, u):
        over, a = self._over(u), self.like(u).a
        return u if over <= 0 else u - (over / sqnorm(a)) * a

    def violation(self, x):
        return max(0.0, self._over(x)) / float(np.linalg.norm(np.asarray(self.a, dtype=float)))

    def restrict(self, support):
        return HalfSpace(self.a[support], self.b)

    def as_linear(self, n):
        return ks.Linear.of(n, G=self.a, h=self.b)


class TwoSlopes(ks.Separable):
    """λ|xᵢ| up to θ, half as steep beyond: g2 = λ/2·max(|xᵢ| − θ, 0)."""

    def __init__(self, lam, theta):
        self.lam, self.theta = lam, theta

    def _beyond(self, size):
        return namespace(size).where(size > self.theta, size - self.theta, 0.0 * size)

    def g_of(self, size):
        return self.lam * (size - 0.5 * self._beyond(size))

    def g2_of(self, size):
        return 0.5 * self.lam * self._beyond(size)

    def slope_of(self, size):
        return namespace(size).where(size > self.theta, 0.5 * self.lam + 0.0 * size, 0.0 * size)

    def candidates(self, size, t):
        xp = namespace(size)
        low, high = size - t * self.lam, size - 0.5 * t * self.lam
        theta = xp.full_like(size, self.theta)
        return [xp.clip(low, 0.0, self.theta), xp.where(high > theta, high, theta)]


@dataclass(frozen=True)
class HeavyBallState:
    x: Point  # x⁽ᵗ⁾
    x_prev: Point  # x⁽ᵗ⁻¹⁾
    l: float  # noqa: E741
    residual: float = float("inf")


@dataclass(frozen=True)
class HeavyBall(ks.Method):
    """x⁽ᵗ⁺¹⁾ = prox_{g1/l}(x⁽ᵗ⁾ − (∇f − s)/l + β(x⁽ᵗ⁾ − x⁽ᵗ⁻¹⁾)) with l = L."""

    beta: float = field(default=0.0)
    name = "heavyball"

    def require(self, problem):
        require_prox(problem, self.name)

    def init(self, problem, x):
        return HeavyBallState(x, x, problem.lipschitz())

    def step(self, problem, s):
        pull = problem.grad_f(s.x) - problem.subgradient_g2(s.x)
        z = problem.point(problem.prox_g1(s.x.x - pull / s.l + self.beta * (s.x.x - s.x_prev.x), s.l))
        return HeavyBallState(z, s.x, s.l, problem.relative(s.l * float(np.linalg.norm(z.x - s.x.x)), s.x.gradient))


LINES = {  # the one line each in the catalogue
    "LOSSES": lambda rng, matrix: SquaredHinge(
        matrix(rng.standard_normal((catalogue.M, catalogue.N))), np.sign(rng.standard_normal(9))
    ),
    "SETS": lambda n: HalfSpace(np.linspace(0.5, 2, n), 0.7),
    "PENALTIES": lambda n: TwoSlopes(0.4, 0.8),
    "METHODS": lambda: HeavyBall(0.2),
}


# --- the checks of built-in pieces ------------------------------------------------------------------------------------


def module_of(where):
    """Import a test module afresh, with the current catalogue."""
    spec = importlib.util.spec_from_file_location(f"with_own_{Path(where).stem}", ROOT / "tests" / where)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(test, **given):
    """Call a test with the arguments in its signature."""
    takes = inspect.signature(test).parameters
    test(**{name: value for name, value in given.items() if name in takes})


@pytest.fixture
def with_own_pieces(monkeypatch):
    for name, line in LINES.items():
        monkeypatch.setitem(getattr(catalogue, name), "own", line)
    return module_of


@pytest.mark.parametrize(
    "test",
    [
        "test_gradient_is_that_of_finite_differences",
        "test_curvature_is_that_of_finite_differences_or_above_for_huber",
        "test_lipschitz_bound_is_never_below_an_observed_ratio_and_tight_for_quadratics",
        "test_dense_sparse_and_operator_agree",
        "test_restriction_is_the_loss_with_zeros_elsewhere",
        "test_other_array_namespaces_keep_kind_and_agree",
    ],
)
def test_the_loss_passes(with_own_pieces, test, rng):
    test = getattr(with_own_pieces("losses/test_losses.py"), test)
    takes = inspect.signature(test).parameters
    for kind in MATRIX_KINDS if "kind" in takes else KINDS if "asarray" in takes else [None]:
        run(test, name="own", rng=rng, seed=3, kind=kind, asarray=NAMESPACES.get(kind, lambda: None)())


@pytest.mark.parametrize(
    "test",
    [
        "test_projection_is_one",
        "test_other_array_namespaces_keep_kind_and_agree",
        "test_restriction_is_the_set_cut_by_the_subspace",
        "test_linear_description_and_shrink_agree_with_the_set",
    ],
)
def test_the_set_passes(with_own_pieces, test, rng):
    test = getattr(with_own_pieces("sets/test_sets.py"), test)
    for kind in KINDS if "asarray" in inspect.signature(test).parameters else [KINDS[0]]:
        run(test, name="own", rng=rng, asarray=NAMESPACES[kind]())


@pytest.mark.parametrize(
    "test",
    [
        "test_g1_and_g2_are_convex_and_the_subgradient_is_one",
        "test_prox_of_g1_meets_the_three_point_inequality",
        "test_prox_of_the_whole_beats_a_fine_grid",
    ],
)
def test_the_penalty_passes(with_own_pieces, test):
    run(getattr(with_own_pieces("penalties/test_penalties.py"), test), name="own")


def test_the_method_iterates_like_one_already_trusted(rng):
    A = rng.standard_normal((30, 12))
    problem = Problem(ks.LeastSquares(A, A[:, 0]), TwoSlopes(0.5, 0.3))
    own, ours = HeavyBall(0.0), ks.PDCA(ks.FixedStep())
    begin = problem.point(rng.standard_normal(12))
    s, t = own.init(problem, begin), ours.init(problem, begin)
    shown = [name for name, value in vars(State).items() if isinstance(value, property)]
    assert all(hasattr(s, name) for name in shown)
    for _ in range(30):
        s, t = own.step(problem, s), ours.step(problem, t)
        np.testing.assert_allclose(s.x.x, t.x.x, atol=1e-12)


def test_the_pieces_work_together_in_minimize(rng, monkeypatch):
    A = rng.standard_normal((80, 15))
    y = np.sign(A[:, 0] - A[:, 1] + 0.3 * rng.standard_normal(80))
    loss, C = SquaredHinge(A, y, ridge=0.1), HalfSpace(np.ones(15), 0.1)
    for method in ("auto", "apdca", HeavyBall(0.2)):
        result = ks.minimize(loss, 2, C, method=method)
        assert result.success
        np.testing.assert_array_equal(result.support, [0, 1])
        assert C.contains(result.x)
    assert ks.minimize_penalized(loss, TwoSlopes(2.0, 0.1), method=HeavyBall()).success
    with pytest.raises(MissingPieceError, match="heavyball needs the prox of g1 on C"):
        ks.minimize_penalized(loss, TwoSlopes(2.0, 0.1), C=C, method=HeavyBall())
    from ksparse.solve import penalty_grid

    monkeypatch.setitem(penalty_grid.METHODS, "heavyball", lambda rule: HeavyBall(0.2))
    assert ks.minimize(loss, 2, method="heavyball", rho=1.0).method == "heavyball"


# --- the page ---------------------------------------------------------------------------------------------------------


def section(title):
    return re.search(rf"## {title}\n(.*?)(?=\n## |\Z)", PAGE, re.DOTALL).group(1)


def test_every_path_on_the_page_exists():
    paths = re.findall(r"`((?:src|tests|benchmarks|docs)/[\w./]*)`", PAGE)
    assert len(paths) >= 8
    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.parametrize(
    ("title", "bases", "others"),
    [
        ("Add a loss", [ks.DataFit, QuadraticForm], {"inf", "check_loss_of_target", "_target"}),
        ("Add a set", [ks.ConvexSet], set()),
        ("Add a penalty", [ks.Separable, L1Based], set()),
        ("Add a method", [ks.Method, State], set()),
    ],
)
def test_every_name_of_a_recipe_is_one_that_a_piece_has(title, bases, others):
    names = set(re.findall(r"`([a-z_0-9]+)`", section(title))) - others
    assert len(names) >= 4
    assert {name for name in names if not any(hasattr(base, name) for base in bases)} == set()
    classes = re.findall(r"`([A-Z]\w*[a-z]\w*)`", section(title))
    assert classes
    assert all(hasattr(ks, name) or name in ("QuadraticForm", "L1Based") for name in classes)


@pytest.mark.parametrize(
    ("title", "folders"),
    [
        ("Add a kind of data", ["src/ksparse/data", "tests/data"]),
        ("Add a kind of move", ["src/ksparse/search", "benchmarks"]),
        ("Add a rule for portfolios", ["src/ksparse/portfolio", "src/ksparse/cli"]),
        ("Add a lower bound for a family of problems", ["src/ksparse/certify"]),
        ("Add an experiment or a command", ["src/ksparse/experiments", "src/ksparse/cli", "tests"]),
    ],
)
def test_every_name_and_file_of_a_recipe_exists(title, folders):
    files = [path for folder in folders for path in (ROOT / folder).glob("*.py")]
    words = {word for path in files for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))}
    assert set(re.findall(r"`([A-Za-z_]\w*)`", section(title))) <= words | {path.stem for path in files}
    assert set(re.findall(r"`(\w+\.py)`", section(title))) <= {path.name for path in files}


def test_abstract_methods_are_those_that_the_page_asks_for():
    for title, base in (
        ("Add a loss", ks.DataFit),
        ("Add a loss", ks.Loss),
        ("Add a set", ks.ConvexSet),
        ("Add a penalty", ks.Separable),
        ("Add a method", ks.Method),
    ):
        assert all(f"`{name}`" in section(title) for name in base.__abstractmethods__), (title, base)


def test_what_is_called_tested_is_in_the_catalogue(rng):
    made = {type(line(rng, lambda A: A)) for line in (catalogue.LOSSES | catalogue.TABLE_LOSSES).values()}
    made |= {type(line(6)) for line in catalogue.SETS.values()}
    public = [getattr(ks, name) for name in ks.__all__]
    pieces = [
        piece
        for piece in public
        if inspect.isclass(piece) and issubclass(piece, ks.Loss | ks.ConvexSet) and not inspect.isabstract(piece)
    ]
    assert {piece.__name__ for piece in pieces if piece.skip_self_check} == {piece.__name__ for piece in made} - {
        "CustomSet"
    }
    assert {piece.__name__ for piece in pieces if not piece.skip_self_check} == {"Custom", "CustomSet"}
