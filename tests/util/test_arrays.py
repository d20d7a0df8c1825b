"""Top-k, embedding and norms on every namespace."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksparse.util.arrays import embed, like, norm, on_device, take, to_numpy, top_k, top_k_indices


@given(values=st.lists(st.integers(0, 4), min_size=1, max_size=20), k=st.integers(1, 20))
def test_top_k_takes_the_largest_and_of_ties_the_lowest_index(values, k):
    size = np.array(values, dtype=float)
    order = sorted(range(len(values)), key=lambda i: (-values[i], i))
    np.testing.assert_array_equal(np.flatnonzero(top_k(size, k)), sorted(order[:k]))


def test_top_k_on_other_namespaces(asarray):
    mask = top_k(asarray([1.0, 3.0, 3.0, 0.0, 3.0]), 2)
    np.testing.assert_array_equal(to_numpy(mask), [False, True, True, False, False])
    assert to_numpy(top_k(asarray([1.0, 2.0]), 5)).all()


def test_top_k_refuses_nan(asarray):
    if on_device(asarray([1.0])):
        pytest.skip("on a GPU nothing is read: NaN shows in the values that follow")
    with pytest.raises(FloatingPointError, match="NaN"):
        top_k(asarray([1.0, np.nan, 2.0]), 1)


def test_embed_undoes_take(asarray):
    x = asarray([0.0, 5.0, 0.0, 7.0])
    support = np.array([1, 3])
    z = take(x, support)
    np.testing.assert_array_equal(to_numpy(z), [5, 7])
    np.testing.assert_array_equal(to_numpy(embed(z, support, 4)), to_numpy(x))
    assert embed(z, support, 4).dtype == x.dtype


def test_like_copies_only_when_something_differs():
    x = np.ones(3)
    assert like(x, np.zeros(0)) is x
    assert like(x, np.zeros(0, dtype=np.float32)).dtype == np.float32


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1.0, 1e200, 1e300])
def test_norm_neither_overflows_nor_vanishes(scale):
    assert norm(np.array([3.0, -4.0]) * scale) == pytest.approx(5.0 * scale)


@pytest.mark.needs("torch")
@pytest.mark.parametrize(("n", "k"), [(5_000, 20), (5_120, 1), (9_999, 200), (700, 600)])
def test_the_largest_by_parts_are_the_largest(n, k, rng):
    import torch

    from ksparse.util.arrays import _top_k_there

    size = np.round(np.abs(rng.standard_normal(n)), 1)  # with ties
    size[rng.integers(n, size=3)] = np.inf
    mask = _top_k_there(torch.asarray(size), k).numpy()
    assert mask.sum() == k
    np.testing.assert_array_equal(np.sort(size[mask]), np.sort(size)[n - k :])
    size[7] = np.nan
    assert bool(_top_k_there(torch.asarray(size), k)[7])


@pytest.mark.parametrize("n", [5, 1000, 1023, 1024, 5000])
@pytest.mark.parametrize("k", [1, 5, 16])
def test_places_of_the_largest(n, k, rng):
    for size in (
        rng.random(n),
        rng.integers(4, size=n).astype(float),
        np.zeros(n),
        -np.arange(n, dtype=float),
        np.full(n, -np.inf),
    ):
        k = min(k, n)
        places = top_k_indices(size, k)
        assert np.unique(places).size == k
        np.testing.assert_array_equal(np.sort(size[places]), np.sort(size)[n - k :])
