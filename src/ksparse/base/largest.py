"""The k largest entries of a vector."""

from __future__ import annotations

import math

import array_api_compat as compat
import numpy as np

from ksparse.base.arrays import Array, Vector, namespace, on_its_device
from ksparse.base.desk import deferring

ROWS, FOLDED = 16, 4  # a vector is folded into so many rows where that leaves so many times k columns
PART, FEW = 512, 2**21  # entries of a vector on a device that are ranked by themselves first, where n·k is no more (device.py)


def top_k(size: Array, k: int) -> Array:
    """The mask of the k largest entries of `size`; ties go to the lowest index. NaN has no rank and is refused."""
    xp = namespace(size)
    n = size.shape[0]
    if k < n and type(size) is np.ndarray:
        return _top_k_here(size, k)
    if k < n and deferring():
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
    """The same with no number read on the way: whether there is NaN, and whether there are ties, are questions to be asked of a desk."""
    xp = namespace(size)
    falling = _largest_there(size, k + 1)  # one more, to see ties by; NaN first
    ends = xp.astype(falling, xp.float64)
    first, last, next_one = (on_its_device(ends[i]) for i in (0, k - 1, k))
    if first != first:
        raise FloatingPointError("top-k of a vector with NaN")
    threshold = falling[k - 1]
    if last > next_one:
        return size >= threshold
    above, tied = size > threshold, size == threshold
    seats = k - xp.sum(xp.astype(above, xp.int64))
    return above | (tied & (xp.cumulative_sum(xp.astype(tied, xp.int64)) <= seats))


def _largest_there(size: Array, k: int) -> Array:
    """The k largest, falling: of PyTorch those of many parts at once, and of them, where one after the other would be slow."""
    if not compat.is_torch_array(size):
        return namespace(size).sort(size, descending=True)[:k]
    import torch

    parts = size.shape[0] // max(PART, 4 * k)
    if parts > 1 and size.shape[0] * k <= FEW:
        wide = -(-size.shape[0] // parts)
        short = parts * wide - size.shape[0]
        apart = torch.nn.functional.pad(size, (0, short), value=-math.inf) if short else size
        size = torch.topk(apart.reshape(parts, wide), k, dim=1, sorted=False).values.reshape(-1)
    return torch.topk(size, k, sorted=True).values


def _kth_largest(size: Array, k: int) -> float:
    """The k-th largest value, 1 ≤ k ≤ n, in O(n) where the namespace has a selection routine."""
    n = size.shape[0]
    if compat.is_numpy_array(size):
        return float(np.partition(size, n - k)[n - k])
    if compat.is_torch_array(size):
        return float(namespace(size).topk(size, k, sorted=True).values[-1])
    return float(namespace(size).sort(size, descending=True)[k - 1])
