"""First-order steps on a device: one read each, the same iterates, a recording that answers as the step does. On the CPU's tensors."""

import numpy as np
import pytest

import ksparse as ks
from ksparse.base import desk as desks
from ksparse.base import scalars
from ksparse.firstorder import ahead, drive
from ksparse.firstorder.problem import Problem

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from ksparse.firstorder.cuda import Watch  # noqa: E402

pytestmark = pytest.mark.needs("torch")

METHODS = {
    "pdca, fixed": ks.PDCA(ks.FixedStep()), "pdca": ks.PDCA(), "apdca, fixed": ks.APDCA(ks.FixedStep()), "apdca": ks.APDCA(),
    "pdcae": ks.PDCAe(), "gist": ks.GIST(), "nmapg": ks.NmAPG(), "apdca, adaptive": ks.APDCA(adaptive=True),
}  # fmt: skip
PENALTIES = [ks.TopK2(1.0, 5), ks.TopK1(0.5, 5), ks.L1(0.5), ks.MCP(0.5, 1.2), ks.SCAD(0.5, 3.0), ks.CappedL1(0.5, 1.0), ks.L1MinusL2(0.5)]
SETS = [ks.WholeSpace(), ks.Nonnegative(), ks.L2Ball(2.0), ks.Simplex(2.0), ks.L1Ball(2.0), ks.Box(-1.0, 1.0), ks.Hyperplane(b=2.0)]


class Reads(TorchDispatchMode):
    """Counts how often a number leaves its tensor."""

    def __init__(self, monkeypatch):
        super().__init__()
        self.alone = self.together = 0
        bring = desks.bring

        def counted(there):
            self.together += bool(there)
            return bring(there)

        monkeypatch.setattr(desks, "bring", counted)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.alone += function.overloadpacket.__name__ == "_local_scalar_dense"
        return function(*args, **(kwargs or {}))


class Again:
    """A graph of the CPU's: the work once more."""

    replays = 0

    def record(self, work):
        with Watch():
            self.work, self.given = work, work().clone()
        return self.given

    def replay(self):
        Again.replays += 1
        self.given.copy_(self.work())


@pytest.fixture
def on_device(monkeypatch):
    """The CPU's tensors are taken for a device's."""
    monkeypatch.setattr(ahead, "on_device", lambda x: not isinstance(x, np.ndarray))
    monkeypatch.setattr(ahead, "graph_for", lambda kind: None)


@pytest.fixture
def recording(on_device, monkeypatch):
    monkeypatch.setattr(ahead, "graph_for", lambda kind: Again())
    monkeypatch.setattr(ahead, "ALIKE", 4)
    monkeypatch.setattr(Again, "replays", 0)


def loss(dtype="float64", kind=ks.LeastSquares, m=60, n=80):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((m, n)) + 2.0 * rng.standard_normal((m, 1))  # one direction is long: steps are short
    b = A[:, :4] @ np.array([2.0, -1.5, 1.0, 0.8]) + 0.1 * rng.standard_normal(m)
    b = b if kind is ks.LeastSquares else np.sign(b + 3.0 * rng.standard_normal(m))  # labels that no plane separates
    return kind(*(torch.tensor(one, dtype=getattr(torch, dtype)) for one in (A, b)))


def run(one, penalty, method, C=None, steps=30):
    stopping = drive.Stopping(tol=0.0, max_iter=steps)
    problem = Problem(one, penalty, C)
    return drive.drive(method, problem, problem.zeros(), stopping), problem


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_step_reads_once(method, on_device, monkeypatch):
    penalty = ks.L1(0.5) if method.name in ("gist", "nmapg") else ks.TopK2(1.0, 5)
    counts = []
    for steps in (20, 120):
        with Reads(monkeypatch) as reads:
            found, problem = run(loss(), penalty, method, steps=steps)
        counts.append((reads.alone, reads.together, found.nit, problem.products.values))
    alone, together, steps, values = (after - before for before, after in zip(*counts, strict=True))
    assert steps == 100
    assert alone == 0
    again = values - steps  # trials that failed, and steps that were made again for a wrong guess
    assert together <= steps + 2 * again


def alike(found, slow):
    np.testing.assert_allclose(found.trace.F, slow.trace.F, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.x, slow.x, atol=1e-5)
    np.testing.assert_allclose(found.last, slow.last, atol=1e-5)
    assert found.status is slow.status


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize("how", ["on_device", "recording"])
def test_the_same_iterates(method, penalty, how, request):
    slow, _ = run(loss(), penalty, method)
    request.getfixturevalue(how)
    found, problem = run(loss(), penalty, method)
    alike(found, slow)
    assert isinstance(found.F, float)
    assert isinstance(found.l, float)
    best = problem.point(found.x)
    assert problem.F(best) == pytest.approx(found.F, rel=1e-9)  # the best point is still there when later steps are written
    assert found.F == pytest.approx(found.trace.F.min(), rel=1e-12)
    if how == "recording" and method.name == "pdca" and "Fixed" in repr(method):
        assert Again.replays >= 15


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_callback_sees_each_step_though_the_next_has_begun(method, request):
    penalty = ks.L1(0.5) if method.name in ("gist", "nmapg") else ks.TopK2(1.0, 5)

    def path():
        met = []
        given = {"method": method, "max_iter": 40, "tol": 0.0, "callback": lambda intermediate_result: met.append(intermediate_result)}
        ks.minimize_penalized(loss(), penalty, **given)
        return met

    slow = path()
    request.getfixturevalue("recording")
    found = path()
    assert len(found) == len(slow) == 40
    for one, other in zip(found, slow, strict=True):
        np.testing.assert_allclose(one.x, other.x, atol=1e-5)
        assert one.fun == pytest.approx(other.fun, rel=1e-6)


def test_trials_of_a_line_search_cost_no_product_where_there_is_no_prox(request):
    """TopK2 on the whole space: a shorter step goes the same way, and its image is known."""
    slow, problem = run(loss(), ks.TopK2(1.0, 5), METHODS["pdca"], steps=30)
    request.getfixturevalue("on_device")
    found, there = run(loss(), ks.TopK2(1.0, 5), METHODS["pdca"], steps=30)
    alike(found, slow)
    wrong = there.products.gradients - problem.products.gradients  # steps that were made again
    assert there.products.forward <= found.nit + wrong + 2 < problem.products.forward


def test_a_rare_step_that_was_recorded_gives_way_to_a_common_one(recording, monkeypatch):
    """The first steps of pDCAₑ have no momentum, and are recorded first where few alike suffice."""
    monkeypatch.setattr(ahead, "ALIKE", 1)
    found, _ = run(loss(), ks.TopK2(1.0, 5), ks.PDCAe(), steps=60)
    assert Again.replays >= 40
    monkeypatch.undo()
    alike(found, run(loss(), ks.TopK2(1.0, 5), ks.PDCAe(), steps=60)[0])


@pytest.mark.parametrize("how", ["at once", "on_device", "recording"])
@pytest.mark.parametrize("method", ["l1dca", "mipdca"])
@pytest.mark.parametrize("C", [None, ks.Nonnegative(), ks.L2Ball(2.0)], ids=repr)
def test_methods_with_a_solver_on_the_host(method, C, how, request):
    pytest.importorskip("clarabel", reason="Clarabel is not installed")
    one = loss()
    slow = ks.minimize(ks.LeastSquares(one.A.numpy(), one.b.numpy()), 4, C, method=method)
    if how != "at once":
        request.getfixturevalue(how)
    found = ks.minimize(one, 4, C, method=method)
    assert isinstance(found.x, torch.Tensor)
    assert found.fun == pytest.approx(slow.fun, rel=1e-6)
    np.testing.assert_array_equal(found.support, slow.support)


@pytest.mark.parametrize("C", SETS, ids=repr)
@pytest.mark.parametrize("method", [ks.PDCA(ks.FixedStep()), ks.APDCA(ks.FixedStep())], ids=["pdca", "apdca"])
def test_the_same_iterates_on_sets(method, C, request):
    slow, _ = run(loss(), ks.TopK2(1.0, 5), method, C)
    request.getfixturevalue("recording")
    alike(run(loss(), ks.TopK2(1.0, 5), method, C)[0], slow)


@pytest.mark.parametrize("kind", [ks.Logistic, lambda A, y: ks.Huber(A, y, 0.5), lambda A, y: ks.Poisson(A / 20.0, (y + 1.0))])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_other_losses(kind, dtype, request):
    penalty = ks.TopK2(0.1, 5)
    slow, _ = run(loss(dtype, kind, 200, 8), penalty, ks.APDCA(), steps=100)
    request.getfixturevalue("recording")
    found, _ = run(loss(dtype, kind, 200, 8), penalty, ks.APDCA(), steps=100)
    assert found.F == pytest.approx(slow.F, rel=1e-3 if dtype == "float32" else 1e-5)
    assert found.x.dtype == getattr(torch, dtype)


def test_a_wrong_guess_is_made_good(request):
    """Every fifteenth step begins anew: what was recorded does not know that."""
    slow, _ = run(loss(), ks.TopK2(1.0, 5), ks.PDCAe(restart=15), steps=60)
    request.getfixturevalue("recording")
    found, problem = run(loss(), ks.TopK2(1.0, 5), ks.PDCAe(restart=15), steps=60)
    alike(found, slow)
    assert Again.replays > 20
    assert problem.products.forward > 60  # steps that were made again


@pytest.mark.parametrize("how", ["on_device", "recording"])
def test_overflow_is_seen(how, request):
    """A step far too long runs off, on a device as elsewhere."""
    too_long = ks.PDCA(ks.FixedStep(1e-3))
    slow, _ = run(loss(), ks.TopK2(1.0, 5), too_long, steps=500)
    request.getfixturevalue(how)
    found, _ = run(loss(), ks.TopK2(1.0, 5), too_long, steps=500)
    assert found.status is slow.status is ks.Status.NUMERICAL_TROUBLE
    assert found.F == pytest.approx(slow.F)


@pytest.mark.parametrize("method", [ks.PDCA(ks.FixedStep()), ks.APDCA()], ids=["pdca, fixed", "apdca"])
def test_the_point_of_an_unbounded_run_is_the_one_whose_F_is_given(method, recording):
    """The loop keeps the one before the last there: no step that has begun may write over it."""
    one = ks.Quadratic(torch.tensor(np.diag([1.0, 2.0, -1.0, 3.0])), torch.ones(4, dtype=torch.float64))
    found, problem = run(one, ks.TopK2(1e-3, 2), method, steps=500)
    assert found.status is ks.Status.UNBOUNDED
    assert Again.replays > 0
    assert float(problem.F(problem.point(found.x))) == pytest.approx(float(found.F), rel=1e-12)


@pytest.mark.parametrize("number", [np.float32, np.int64, np.float64, int], ids=str)
def test_parameters_may_be_numbers_of_numpy(number):
    given = loss()
    for method in (ks.PDCA(ks.FixedStep(number(20_000))), ks.PDCA(ks.Backtracking(eta=number(2)))):
        assert ks.minimize(given, 4, method=method, rho=1.0, max_iter=20).support.size == 4


def test_a_weight_beyond_single_precision_is_numerical_trouble():
    found = ks.minimize_penalized(loss("float32"), ks.TopK2(3e38, 3))
    assert found.status is ks.Status.NUMERICAL_TROUBLE


def test_a_loss_of_the_users_that_reads_is_not_recorded(recording):
    one = loss()
    found = ks.minimize_penalized(
        ks.Custom(lambda x: float(0.5 * ((one.A @ x - one.b) ** 2).sum()), lambda x: one.A.T @ (one.A @ x - one.b)),
        ks.L1(0.5), x0=torch.zeros(80, dtype=torch.float64), max_iter=30,
    )  # fmt: skip
    assert Again.replays == 0
    assert found.fun == pytest.approx(ks.minimize_penalized(one, ks.L1(0.5), max_iter=30).fun, rel=1e-4)


def test_what_a_graph_cannot_hold_is_refused():
    x = torch.arange(4.0)
    with Watch():
        (x + x).sum()
        for reading in (lambda: x.sum().item(), lambda: x[x > 1], lambda: bool(x.any()), lambda: torch.nonzero(x)):
            with pytest.raises(desks.UnforeseenError):
                reading()


def test_numbers():
    """Arithmetic on the device is arithmetic, and what was known before is a float."""
    desk = desks.Desk()
    with desks.deferred(desk):
        a, b = (scalars.Number(torch.tensor(one, dtype=torch.float64)) for one in (3.0, -2.0))
        made = [a + b, a - 1.0, 2.0 * b, a / b, 1.0 / a, a**2, a % 2.0, -a, abs(b), scalars.root(a), scalars.larger(a, b),
                scalars.smaller(a, 1.0), scalars.larger(b, 7.0)]  # fmt: skip
        asked = [bool(a > b), bool(a <= 1.0), bool(b == -2.0), bool(a != a)]
        vector = torch.ones(2, dtype=torch.float32)
        assert all((one.dtype == torch.float32) for one in (a * vector, vector * a, vector / a, 1.0 - vector * b))
    expected = [1.0, 2.0, -4.0, -1.5, 1 / 3, 9.0, 1.0, -3.0, 2.0, 3**0.5, 3.0, 1.0, 7.0]
    assert [float(one) for one in made] == pytest.approx(expected)
    assert asked == [True, False, True, False]
    assert f"{a:.1f}" == "3.0"
    with desks.deferred(desks.Desk(blind=True)), pytest.raises(desks.UnforeseenError):
        float(scalars.Number(torch.tensor(1.0)))


@pytest.mark.parametrize(("method", "penalty", "C"), [("pdca", ks.TopK1(0.5, 5), ks.Nonnegative()), ("gist", ks.MCP(0.5, 1.2), None)])
def test_a_step_made_after_a_wrong_guess_is_not_written_over_by_the_next(method, penalty, C, recording, monkeypatch):
    """Its state is made of points that lie where the recording writes."""
    monkeypatch.setattr(ahead, "ALIKE", 3)
    for seed in range(6):
        rng = np.random.default_rng(seed)
        A, b = rng.standard_normal((30, 40)), rng.standard_normal(30)
        found = run(ks.LeastSquares(torch.asarray(A), torch.asarray(b)), penalty, METHODS[method], C, 60)[0]
        slow = run(ks.LeastSquares(A, b), penalty, METHODS[method], C, 60)[0]
        both = min(found.nit, slow.nit)  # one may stand still to the last digit sooner
        np.testing.assert_allclose(found.trace.F[:both], slow.trace.F[:both], rtol=1e-6, atol=1e-9)
        assert found.F == pytest.approx(slow.F, rel=1e-6)
