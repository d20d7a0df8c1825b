"""Cost of the methods: products with the data, and steps on the paper's own problem."""

import numpy as np
import pytest

import catalogue
import ksparse as ks
from ksparse.datasets import table2
from ksparse.firstorder.problem import Problem


class Counting:
    """A matrix that counts its products."""

    def __init__(self, A, count=None, key="forward"):
        self._A, self.key = A, key
        self.count = {"forward": 0, "adjoint": 0} if count is None else count
        self.shape = A.shape

    @property
    def T(self):
        return Counting(self._A.T, self.count, "adjoint" if self.key == "forward" else "forward")

    def __matmul__(self, v):
        self.count[self.key] += 1
        return self._A @ v


def regression(rng, m=30, n=12):
    A = rng.standard_normal((m, n))
    return A, ks.LeastSquares(A, A @ np.where(np.arange(n) < 3, 2.0, 0.0) + 0.1 * rng.standard_normal(m))


@pytest.mark.parametrize("name", [*catalogue.METHODS, "IHT"])
def test_products_with_the_data(name, rng):
    """Count one forward and one adjoint product per accepted step, one forward per further trial, both per v-step."""
    A, _ = regression(rng, 60, 40)
    counting = Counting(A)
    loss = ks.LeastSquares(counting, A[:, :3].sum(1))
    penalty = ks.penalties.Cardinality(4, ks.WholeSpace()) if name == "IHT" else ks.MCP(0.5, 1.2)
    method = ks.IHT() if name == "IHT" else catalogue.METHODS[name]()
    problem = Problem(loss, penalty)
    loss.lipschitz()  # a fixed step's own products come before the run
    counting.count.update(forward=0, adjoint=0)
    trials, base_points = [], []

    class Watched:
        def __init__(self, rule):
            self.rule = rule

        def start(self, problem, x):
            return self.rule.start(problem, x)

        def from_point(self, problem, y, memory, s=None):
            base_points.append(y)
            step = self.rule.from_point(problem, y, memory, s)
            return step

    original = Problem.prox_g1
    method = type(method)(rule=Watched(method.rule))
    s = method.init(problem, problem.point(np.zeros(40)))
    problem.F(s.x)
    for _ in range(25):
        before = dict(counting.count)
        base_points.clear()
        trials.clear()

        def watch(self, *args, trials=trials):
            trials.append(args)
            return original(self, *args)

        Problem.prox_g1 = watch
        try:
            s = method.step(problem, s)
            problem.F(s.x)
        finally:
            Problem.prox_g1 = original
        steps, extra = len(base_points), len(trials) - len(base_points)
        assert steps in (1, 2)  # 2 when the v-step is taken
        assert counting.count["forward"] - before["forward"] <= steps + extra
        assert counting.count["adjoint"] - before["adjoint"] <= steps
    assert problem.products.forward + problem.products.adjoint == sum(counting.count.values())


@pytest.mark.parametrize("name", ["PDCA backtracking", "PDCA fixed", "APDCA fixed", "APDCA backtracking", "pDCAe"])
def test_a_symmetric_form_is_touched_once_per_step_and_trial(name, rng):
    counting = Counting(np.cov(rng.standard_normal((50, 20)).T))
    loss = ks.Quadratic(counting, rng.standard_normal(20))
    counting.count.update(forward=0, adjoint=0)
    result = ks.minimize_penalized(loss, ks.TopK2(0.1, 5), method=catalogue.METHODS[name](), tol=0.0, max_iter=30)
    assert counting.count["adjoint"] == 0
    first, last = result.trace.products[0], result.trace.products[-1]
    if "fixed" in name or name == "pDCAe":
        assert last - first <= 30 * (2 if "APDCA" in name else 1)
    assert (np.diff(result.trace.products) >= 1).all()


def test_combining_points_costs_no_product(rng):
    counting = Counting(rng.standard_normal((9, 5)))
    problem = Problem(ks.LeastSquares(counting, np.ones(9)), ks.L1(1.0))
    counting.count.update(forward=0, adjoint=0)  # the loss checks once that there is a transpose
    x, z = problem.point(rng.standard_normal(5)), problem.point(rng.standard_normal(5))
    _ = x.image, z.image
    assert counting.count == {"forward": 2, "adjoint": 0}
    y = x + 0.7 * (z - x)
    np.testing.assert_allclose(y.image, counting._A @ y.x)
    assert y.phi == pytest.approx(0.5 * np.sum((counting._A @ y.x - 1) ** 2))
    assert counting.count == {"forward": 2, "adjoint": 0}
    _ = y.gradient, y.gradient
    assert counting.count == {"forward": 2, "adjoint": 1}


# --- the paper's own problem ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table2_problem():
    data = table2(1, seed=0)
    return ks.LeastSquares(data.A, data.b)


@pytest.mark.parametrize(
    ("method", "step", "most", "least_F", "most_F"),
    [
        ("apdca", "fixed", 450, 3.05e-2, 3.25e-2),
        ("apdca", "backtracking", 500, 2.9e-2, 3.15e-2),
        ("pdcae", "fixed", 1002, 2.9e-2, 2.97e-2),
        ("gist", "backtracking", 3000, 2.9e-2, 3.0e-2),
        ("nmapg", "backtracking", 1000, 2.9e-2, 3.25e-2),
        ("pdca", "backtracking", 3000, 2.9e-2, 3.0e-2),
    ],
)
def test_table_2(table2_problem, method, step, most, least_F, most_F):
    result = ks.minimize_penalized(table2_problem, ks.L1MinusL2(5e-4), method=method, step=step)
    assert result.success
    assert 300 <= result.nit <= most
    assert least_F <= result.fun <= most_F
