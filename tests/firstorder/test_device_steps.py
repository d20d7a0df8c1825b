"""First-order steps on a device: one read each, the same iterates, and a recording that answers as the step itself. On the CPU's tensors."""

import numpy as np
import pytest

import ksparse as ks
from ksparse.base import scalars
from ksparse.firstorder import ahead, drive, recorded
from ksparse.firstorder.problem import Problem

torch = pytest.importorskip("torch")
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

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
        bring = scalars.bring

        def counted(there):
            self.together += bool(there)
            return bring(there)

        monkeypatch.setattr(scalars, "bring", counted)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.alone += function.overloadpacket.__name__ == "_local_scalar_dense"
        return function(*args, **(kwargs or {}))


class Again:
    """A graph of the CPU's: the work once more."""

    replays = 0

    def record(self, work):
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
    monkeypatch.setattr(Again, "replays", 0)


def loss(dtype="float64", kind=ks.LeastSquares, m=60, n=80):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((m, n)) + 2.0 * rng.standard_normal((m, 1))  # one direction is long: steps are short
    b = A[:, :4] @ np.array([2.0, -1.5, 1.0, 0.8]) + 0.1 * rng.standard_normal(m)
    b = b if kind is ks.LeastSquares else np.sign(b)
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
        counts.append((reads.alone, reads.together, found.nit, problem.products.forward))
    alone, together, steps, images = (after - before for before, after in zip(*counts, strict=True))
    assert steps == 100
    assert alone == 0
    again = images - steps  # trials that failed, and steps that were made again for a wrong guess
    print(method.name, together, images)
    assert together <= steps + 2 * again


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize("how", ["on_device", "recording"])
def test_the_same_iterates(method, penalty, how, request):
    slow, before = run(loss(), penalty, method)
    request.getfixturevalue(how)
    found, problem = run(loss(), penalty, method)
    np.testing.assert_allclose(found.trace.F, slow.trace.F, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.x, slow.x, atol=1e-5)
    np.testing.assert_allclose(found.last, slow.last, atol=1e-5)
    assert isinstance(found.F, float)
    assert isinstance(found.l, float)


@pytest.mark.parametrize("C", SETS, ids=repr)
@pytest.mark.parametrize("method", [ks.PDCA(), ks.APDCA(ks.FixedStep())], ids=["pdca", "apdca"])
def test_the_same_iterates_on_sets(method, C, recording):
    found, _ = run(loss(), ks.TopK2(1.0, 5), method, C)
    on_host = ks.LeastSquares(*(one.numpy() for one in (loss().A, loss().b)))
    slow, _ = run(on_host, ks.TopK2(1.0, 5), method, C)
    np.testing.assert_allclose(found.trace.F, slow.trace.F, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.x, slow.x, atol=1e-5)
