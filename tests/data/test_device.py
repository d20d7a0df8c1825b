"""Rows on a device: same results as a NumPy array, same searches and proofs. Runs on CPU tensors."""

import numpy as np
import pytest

import ksparse as ks
from ksparse import data
from ksparse.data import Device, model
from ksparse.data.derived import Shifted
from ksparse.data.device import DeviceTable
from ksparse.data.model import products_with_row, quadratic_forms, schur_row

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.needs("torch")

SETS = [
    ks.WholeSpace(), ks.Nonnegative(), ks.Box(-0.5, 0.8), ks.Simplex(3.0), ks.BudgetBox(2.0, 0.0, 0.7), ks.L2Ball(1.5),
    ks.Polyhedron(np.vstack([np.ones(60), np.arange(60) % 3 == 0]), [2.0, 0.5]),
]  # fmt: skip


@pytest.fixture
def far_away(monkeypatch):
    """Treat CPU tensors as those of a device, for rows of any length."""
    monkeypatch.setattr(data, "LARGE", 1)
    monkeypatch.setattr(model, "on_device", lambda x: True)
    monkeypatch.setattr(model, "LONG", 1)


def test_a_table_seen_from_the_host(rng):
    B, rows = rng.standard_normal((2, 6, 9))
    far = DeviceTable(torch.tensor(B.copy()))
    places, columns, left = np.array([4, 1]), np.array([7, 0, 3]), rng.standard_normal((2, 4))
    np.testing.assert_array_equal(np.asarray(far[places]), B[places])
    np.testing.assert_array_equal(np.asarray(far[2]), B[2])
    np.testing.assert_array_equal(far[:4, columns], B[:4, columns])
    np.testing.assert_array_equal(far[:4, 5], B[:4, 5])
    np.testing.assert_array_equal(far[np.ix_(places, columns)], B[np.ix_(places, columns)])
    np.testing.assert_allclose(left @ far[:4], left @ B[:4])
    w, M = left[1], rng.standard_normal((4, 4))
    for row in (far[5], B[5]):
        np.testing.assert_allclose(schur_row(row, w, far[:4]), schur_row(B[5], w, B[:4]))
        np.testing.assert_allclose(
            products_with_row(row, 0.7, left, far[:4]), products_with_row(B[5], 0.7, left, B[:4])
        )
    np.testing.assert_allclose(quadratic_forms(M, far[:4]), quadratic_forms(M, B[:4]))
    far[places], B[places] = rows[:2], rows[:2]
    far[0], B[0] = far[3], B[3].copy()
    far[4:], B[4:] = rows[4:], rows[4:]
    np.testing.assert_array_equal(np.asarray(far), B)


@pytest.mark.parametrize(
    "options", [{}, {"ridge": 0.5}, {"sample_weight": np.linspace(0.5, 2.0, 100)}], ids=["plain", "ridge", "weight"]
)
@pytest.mark.parametrize("C", SETS, ids=lambda C: type(C).__name__)
def test_the_same_search_and_the_same_proof(C, options, rng, far_away, monkeypatch):
    A = rng.standard_normal((100, 60))
    b = A[:, :6].sum(axis=1) + 2.0 * rng.standard_normal(100)
    read = []
    monkeypatch.setattr(
        DeviceTable, "to_device", lambda self, value, move=DeviceTable.to_device: read.append(1) or move(self, value)
    )
    here = ks.minimize(ks.LeastSquares(A, b, **options), 6, C)
    assert not read
    there = ks.minimize(ks.LeastSquares(torch.tensor(A), torch.tensor(b), **options), 6, C)
    assert read
    np.testing.assert_array_equal(there.support, here.support)
    assert there.fun == pytest.approx(here.fun, rel=1e-10)
    assert there.status is here.status
    assert isinstance(there.x, torch.Tensor)


def test_paths_rules_and_little_memory(rng, far_away):
    A = rng.standard_normal((80, 40))
    b = A[:, :5].sum(axis=1) + rng.standard_normal(80)
    losses = ks.LeastSquares(A, b), ks.LeastSquares(torch.tensor(A), torch.tensor(b))
    for here, there in zip(*(ks.k_path(loss, [2, 5, 8]).results for loss in losses), strict=True):
        np.testing.assert_array_equal(there.support, here.support)
    groups = {"group_limits": (np.arange(40) % 4, dict.fromkeys(range(4), (0, 2)))}
    settings = ks.SearchSettings(memory=8 * 40 * 9)
    here, there = (ks.minimize(loss, 6, settings=settings, **groups) for loss in losses)
    np.testing.assert_array_equal(there.support, here.support)


@pytest.mark.parametrize("ones", [False, True])
def test_centred_on_the_device(ones, rng):
    A, w = rng.standard_normal((50, 7)) + 3.0, rng.uniform(0.5, 2.0, 50)
    mean, size = A.mean(axis=0), A.std(axis=0)
    slow = Shifted(data.Blocks(A), mean, 1.0 / size, ones=ones)
    half = Device(torch.tensor(A)).shifted(mean, np.full(7, 2.0)).shifted(np.zeros(7), size / 2.0)
    found = half.with_ones() if ones else half
    n = 7 + ones
    x, r, support = rng.standard_normal(n), rng.standard_normal(50), np.array([n - 1, 2, 0])
    for ours, theirs in (
        (found @ x, slow @ x), (found.T @ r, slow.T @ r), (found.columns(support), slow.columns(support)),
        (found.column_square_sums(w), slow.column_square_sums(w)), (found.dense(), slow.dense()),
        (found.column_square_sums(None), slow.column_square_sums(None)),
        (found.gram(support, w), slow.gram(support, w)),
    ):  # fmt: skip
        np.testing.assert_allclose(ours, theirs, atol=1e-10)
    share = w / w.sum()
    for ours, theirs in zip(found.moments(share, True), slow.moments(share, True), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)
    assert found.magnitude_scale() == pytest.approx(slow.magnitude_scale())
    rows = np.array([4, 1, 30])
    np.testing.assert_allclose(found[rows].dense(), slow.dense()[rows])
