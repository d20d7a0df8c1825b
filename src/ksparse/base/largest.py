"""The k largest entries of a vector."""

from __future__ import annotations

import math

import array_api_compat as compat
import numpy as np

from ksparse.base.arrays import Array, Vector, drop, namespace, on_device

LONG, PART, FEW = 2**15, 512, 2**21  # on a GPU: vectors longer than LONG are ranked in parts of PART entries where n·k is at most FEW
ROWS, FOLDED = 16, 4  # a vector is folded into so many rows where that leaves so many times k columns


def top_k(size: Array, k: int) -> Array:
    """Return the mask of the k largest entries of `size`; ties go to the lowest index. NaN has no rank and is refused.

    On a GPU nothing is read: NaN counts as large there, and whoever uses the entries meets it.
    """
    xp = namespace(size)
    n = size.shape[0]
    if k < n and type(size) is np.ndarray:
        return _top_k_here(size, k)
    if k < n and on_device(size) and compat.is_torch_array(size):
        return _top_k_there(size, k)
    if bool(xp.any(xp.isnan(size))):
        raise FloatingPointError("top-k of a vector with NaN")
    if k >= n:
        return xp.ones_like(size, dtype=xp.bool)
    threshold = _kth_largest(size, k)
    above = size > threshold
    tied = size == threshold
    seats = k - int(xp.sum(xp.astype(above, xp.int64)))
    return above | (tied & (xp.cumulative_sum(xp.astype(tied, xp.int64)) <= seats))


def without_largest(x: Array, k: int) -> Array:
    """Return x with its k entries of largest absolute value set to 0; ties go to the lowest index."""
    if k < x.shape[0] and on_device(x) and compat.is_torch_array(x):
        return x.index_fill(0, _places_there(abs(x), k), 0)
    return drop(x, top_k(namespace(x).abs(x), k))


def largest_places(size: Vector, k: int) -> Vector:
    """The places of k largest entries of a NumPy vector without NaN, in no order.

    Of some rows of entries below each other first the k columns with the largest: one of the k largest lies in each of the others' way
    only if its column does. That takes a third of the time of looking at all of them where k is small and n in the thousands.
    """
    wide = size.size // ROWS
    if wide < FOLDED * k:
        return np.asarray(size.argpartition(size.size - k)[size.size - k :])
    folded = ROWS * wide
    columns = size[:folded].reshape(ROWS, wide).max(axis=0).argpartition(wide - k)[wide - k :]
    places = np.concatenate([(columns + wide * np.arange(ROWS)[:, None]).ravel(), np.arange(folded, size.size)])
    return np.asarray(places[size[places].argpartition(places.size - k)[places.size - k :]])


def _top_k_here(size: Vector, k: int) -> Vector:
    """The same of a NumPy array, with one look for NaN and ties where there are few: among the largest."""
    largest = np.partition(size, size.size - k)[size.size - k :]  # NaN counts as large
    if np.isnan(largest).any():
        raise FloatingPointError("top-k of a vector with NaN")
    mask: Vector = size >= largest[0]
    tied = np.count_nonzero(mask) - k
    if tied:
        mask[np.flatnonzero(size == largest[0])[-tied:]] = False
    return mask


def _top_k_there(size: Array, k: int) -> Array:
    """Return the mask of the k largest entries of a vector on a GPU."""
    import torch

    return torch.zeros_like(size, dtype=torch.bool).index_fill_(0, _places_there(size, k), True)


def _places_there(size: Array, k: int) -> Array:
    """Return the places of the k largest entries of a vector on a GPU, whose selection takes the lowest index among ties.

    A long vector is ranked in parts at once, and then the largest of all parts.
    """
    import torch

    n, wide = size.shape[0], max(PART, 4 * k)
    if n < LONG or n < 8 * wide or n * k > FEW:
        return torch.topk(size, k, sorted=False).indices
    parts = -(-n // wide)
    padded = torch.nn.functional.pad(size, (0, parts * wide - n), value=-math.inf)
    largest, places = torch.topk(padded.reshape(parts, wide), k, dim=1, sorted=False)
    best = torch.topk(largest.reshape(-1), k, sorted=False).indices
    return places.reshape(-1)[best] + wide * (best // k)


def _kth_largest(size: Array, k: int) -> float:
    """The k-th largest value, 1 ≤ k ≤ n, in O(n) where the namespace has a selection routine."""
    n = size.shape[0]
    if compat.is_numpy_array(size):
        return float(np.partition(size, n - k)[n - k])
    if compat.is_torch_array(size):
        return float(namespace(size).topk(size, k, sorted=True).values[-1])
    return float(namespace(size).sort(size, descending=True)[k - 1])
