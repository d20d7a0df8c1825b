"""The benchmark of scale: every kind of case at a tiny size, with plausible memory."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import scale
from suite import memory


@pytest.mark.parametrize("place", ["array, double", "array, single", "memmap", "parts", "SparseRegressor, memmap"])
def test_places(place, tmp_path):
    scale.make(tmp_path, 400, 60)
    row = scale.measure(place, folder=str(tmp_path))
    assert row["found"] == row["planted"] == 20
    assert row["status"] == "SWAP_OPTIMAL"


@pytest.mark.parametrize(
    ("kind", "size"),
    [
        ("csr", {"m": 2_000, "n": 3_000, "per": 10}),
        ("generated", {"m": 150, "n": 3_000, "k": 5}),
        ("cosines", {"m": 1_024, "n": 4_200}),
    ],
)
def test_kinds(kind, size):
    row = scale.measure(kind, **size)
    assert row["found"] == row["planted"]
    assert row["passes"] < 500


def test_rows_that_are_made_as_they_are_read():
    A = scale.Toeplitz(5, 20, step=3)
    np.testing.assert_array_equal(A[slice(1, 3)][1], A.vector[6:26])
    assert A[slice(0, 5)].shape == A.shape


@pytest.mark.skipif(not memory.STATUS.exists(), reason="the system does not tell")
def test_memory_is_what_was_held():
    with memory.Anonymous() as watched:
        held = np.ones(2**23)  # 64 MiB
        held += 1.0
        for _ in range(20):
            held *= 1.0
    assert 55 < watched.peak < 100
