"""First-order steps on a device: few reads, same iterates as with NumPy. CPU tensors are treated as those of a GPU."""

import numpy as np
import pytest

import ksparse as ks
from ksparse.firstorder import loop, methods, problem, steps
from ksparse.firstorder.problem import Problem, Stopping
from ksparse.losses.base import counting_evaluations, evaluations_since
from ksparse.util import arrays

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

pytestmark = pytest.mark.needs("torch")

METHODS = {
    "pdca, fixed": ks.PDCA(ks.FixedStep()), "pdca": ks.PDCA(), "apdca, fixed": ks.APDCA(ks.FixedStep()),
    "apdca": ks.APDCA(), "pdcae": ks.PDCAe(), "gist": ks.GIST(), "nmapg": ks.NmAPG(),
    "apdca, adaptive": ks.APDCA(adaptive=True),
}  # fmt: skip
PENALTIES = [
    ks.TopK2(1.0, 5),
    ks.TopK1(0.5, 5),
    ks.L1(0.5),
    ks.MCP(0.5, 1.2),
    ks.SCAD(0.5, 3.0),
    ks.CappedL1(0.5, 1.0),
    ks.L1MinusL2(0.5),
]
SETS = [
    ks.WholeSpace(),
    ks.Nonnegative(),
    ks.L2Ball(2.0),
    ks.Simplex(2.0),
    ks.L1Ball(2.0),
    ks.Box(-1.0, 1.0),
    ks.Hyperplane(b=2.0),
]


class Reads(TorchDispatchMode):
    """Counter of the numbers that are read from tensors, one at a time or by one call of `read`."""

    def __init__(self, monkeypatch):
        super().__init__()
        self.count = 0

        def counted(*numbers):
            self.count += any(isinstance(one, torch.Tensor) for one in numbers)
            return arrays_read(*numbers)

        arrays_read = arrays.read
        for module in (problem, steps, loop, methods.pdcae):
            monkeypatch.setattr(module, "read", counted)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.count += function.overloadpacket.__name__ == "_local_scalar_dense"
        return function(*args, **(kwargs or {}))


@pytest.fixture
def on_device(monkeypatch):
    """Treat CPU tensors as those of a GPU."""
    for module in (arrays, loop, arrays, steps):
        monkeypatch.setattr(module, "on_device", lambda x: not isinstance(x, np.ndarray))


def loss(dtype="float64", kind=ks.LeastSquares, m=60, n=80):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((m, n)) + 2.0 * rng.standard_normal((m, 1))  # one direction is long: steps are short
    b = A[:, :4] @ np.array([2.0, -1.5, 1.0, 0.8]) + 0.1 * rng.standard_normal(m)
    b = b if kind is ks.LeastSquares else np.sign(b + 3.0 * rng.standard_normal(m))  # labels that no plane separates
    return kind(*(torch.tensor(one, dtype=getattr(torch, dtype)) for one in (A, b)))


def run(one, penalty, method, C=None, steps=30):
    stopping = Stopping(tol=0.0, max_iter=steps)
    problem = Problem(one, penalty, C)
    # no ties, which CPUs break otherwise
    start = problem.zeros() + 1e-3 * torch.cos(torch.arange(problem.n, dtype=problem.zeros().dtype))
    return loop.drive(method, problem, start, stopping), problem


@pytest.mark.parametrize("C", [None, ks.Nonnegative(), ks.L2Ball(2.0), ks.Box(-1.0, 1.0)], ids=repr)
@pytest.mark.parametrize("name", ["pdca, fixed", "pdca", "apdca, fixed", "pdcae", "gist"])
def test_a_step_reads_at_most_twice_and_once_more_for_each_rejected_trial(name, C, on_device, monkeypatch):
    if name == "gist" and C is not None:
        pytest.skip("GIST supports no sets")
    penalty = ks.L1(0.5) if name == "gist" else ks.TopK2(1.0, 5)
    counts = []
    for steps_taken in (10, 50):
        with Reads(monkeypatch) as reads, counting_evaluations():
            found, there = run(loss(), penalty, METHODS[name], C, steps_taken)
            counts.append((reads.count, found.nit, evaluations_since((0, 0), there.loss)["nfev"]))
    read, taken, values = (after - before for before, after in zip(*counts, strict=True))
    assert taken == 40
    assert read <= 2 * taken + (values - taken)


def alike(found, slow):
    both = min(found.nit, slow.nit)  # one run may stop changing earlier
    np.testing.assert_allclose(found.trace.F[:both], slow.trace.F[:both], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.x, slow.x, atol=1e-5)
    np.testing.assert_allclose(found.last, slow.last, atol=1e-5)
    assert found.F == pytest.approx(slow.F, rel=1e-6)
    assert isinstance(found.F, float)
    assert isinstance(found.l, float)


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_the_same_iterates(method, penalty, request):
    slow, _ = run(loss(), penalty, method)
    request.getfixturevalue("on_device")
    alike(run(loss(), penalty, method)[0], slow)


@pytest.mark.parametrize("C", SETS, ids=repr)
@pytest.mark.parametrize(
    "method", [ks.PDCA(ks.FixedStep()), ks.PDCA(), ks.APDCA()], ids=["pdca, fixed", "pdca", "apdca"]
)
def test_the_same_iterates_on_sets(method, C, request):
    slow, _ = run(loss(), ks.TopK2(1.0, 5), method, C)
    request.getfixturevalue("on_device")
    alike(run(loss(), ks.TopK2(1.0, 5), method, C)[0], slow)


def test_trials_of_a_line_search_cost_no_product_where_there_is_no_prox(request):
    """TopK2 on the whole space: a shorter step has the same direction, so its image is already computed."""
    slow, there = run(loss(), ks.TopK2(1.0, 5), METHODS["pdca"], steps=30)
    request.getfixturevalue("on_device")
    found, here = run(loss(), ks.TopK2(1.0, 5), METHODS["pdca"], steps=30)
    alike(found, slow)
    assert here.products.forward <= found.nit + 2 < there.products.forward


@pytest.mark.parametrize("method", ["l1dca", "mipdca"])
@pytest.mark.parametrize("C", [None, ks.Nonnegative()], ids=repr)
def test_methods_with_a_solver_on_the_host(method, C, on_device):
    pytest.importorskip("clarabel", reason="Clarabel is not installed")
    one = loss()
    slow = ks.minimize(ks.LeastSquares(one.A.numpy(), one.b.numpy()), 4, C, method=method)
    found = ks.minimize(one, 4, C, method=method)
    assert isinstance(found.x, torch.Tensor)
    assert found.fun == pytest.approx(slow.fun, rel=1e-6)
    np.testing.assert_array_equal(found.support, slow.support)


@pytest.mark.parametrize(
    "kind", [ks.Logistic, lambda A, y: ks.Huber(A, y, 0.5), lambda A, y: ks.Poisson(A / 20.0, (y + 1.0))]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_other_losses(kind, dtype, request):
    penalty = ks.TopK2(0.1, 5)
    slow, _ = run(loss(dtype, kind, 200, 8), penalty, ks.APDCA(), steps=100)
    request.getfixturevalue("on_device")
    found, _ = run(loss(dtype, kind, 200, 8), penalty, ks.APDCA(), steps=100)
    assert found.F == pytest.approx(slow.F, rel=1e-3 if dtype == "float32" else 1e-5)
    assert found.x.dtype == getattr(torch, dtype)


def test_overflow_is_seen(request):
    """A step that is far too long diverges, on a device as on the CPU."""
    too_long = ks.PDCA(ks.FixedStep(1e-3))
    slow, _ = run(loss(), ks.TopK2(1.0, 5), too_long, steps=500)
    request.getfixturevalue("on_device")
    found, _ = run(loss(), ks.TopK2(1.0, 5), too_long, steps=500)
    assert found.status is slow.status is ks.Status.NUMERICAL_TROUBLE
    assert found.F == pytest.approx(slow.F)


@pytest.mark.parametrize("method", [ks.PDCA(ks.FixedStep()), ks.APDCA()], ids=["pdca, fixed", "apdca"])
def test_the_point_of_an_unbounded_run_is_the_one_whose_F_is_given(method, on_device):
    one = ks.Quadratic(torch.tensor(np.diag([1.0, 2.0, -1.0, 3.0])), torch.ones(4, dtype=torch.float64))
    found, problem = run(one, ks.TopK2(1e-3, 2), method, steps=500)
    assert found.status is ks.Status.UNBOUNDED
    assert float(problem.F(problem.point(found.x))) == pytest.approx(found.F, rel=1e-12)


@pytest.mark.parametrize("number", [np.float32, np.int64, np.float64, int], ids=str)
def test_parameters_may_be_numbers_of_numpy(number):
    given = loss()
    for method in (ks.PDCA(ks.FixedStep(number(20_000))), ks.PDCA(ks.Backtracking(eta=number(2)))):
        assert ks.minimize(given, 4, method=method, rho=1.0, max_iter=20).support.size == 4


def test_a_weight_beyond_single_precision_is_numerical_trouble():
    found = ks.minimize_penalized(loss("float32"), ks.TopK2(3e38, 3))
    assert found.status is ks.Status.NUMERICAL_TROUBLE


def test_results_hold_floats(on_device):
    found = ks.minimize_penalized(loss(), ks.L1(0.5), max_iter=30)
    assert all(isinstance(one, float) for one in (found.fun, found.maxcv, found.residual))


def test_a_custom_loss_gives_what_a_built_in_one_gives(on_device):
    one = loss()
    found = ks.minimize_penalized(
        ks.Custom(lambda x: float(0.5 * ((one.A @ x - one.b) ** 2).sum()), lambda x: one.A.T @ (one.A @ x - one.b)),
        ks.L1(0.5), x0=torch.zeros(80, dtype=torch.float64), max_iter=30,
    )  # fmt: skip
    assert found.fun == pytest.approx(ks.minimize_penalized(one, ks.L1(0.5), max_iter=30).fun, rel=1e-4)


@pytest.mark.parametrize("x", [[3.0, -4.0], [0.0, 0.0], [3e200, 4e200], [3e-200, 4e-200], [np.inf, 1.0]], ids=str)
def test_norms_stay_on_the_device_and_are_those_of_the_host(x, on_device):
    there = torch.tensor(x, dtype=torch.float64)
    for norm in (arrays.norm, arrays.norm_1, arrays.norm_inf, arrays.sum_of):
        found = norm(there)
        assert isinstance(found, torch.Tensor)
        assert arrays.read(found, 1.0) == [pytest.approx(norm(np.array(x)), rel=1e-12), 1.0]
    assert float(arrays.larger(arrays.norm_1(there), -1.0)) == pytest.approx(arrays.norm_1(np.array(x)))
    assert float(arrays.larger(2.0, torch.tensor(3.0))) == 3.0


@pytest.mark.parametrize(("n", "k"), [(50, 7), (5_000, 9), (5_000, 4_999)])
def test_the_largest_entries_are_k_also_among_ties(n, k, on_device):
    size = np.random.default_rng(n).integers(0, 40, n).astype(np.float64)
    mask = arrays.top_k(torch.tensor(size), k).numpy()
    assert mask.sum() == k
    assert np.sort(size[mask]).tolist() == np.sort(size)[n - k :].tolist()
