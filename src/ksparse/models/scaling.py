"""Data of any size brought near 1 for a search: columns each by a factor of their own, or all by one power of 2."""

from __future__ import annotations

from typing import Any

import numpy as np

from ksparse.data import design_of
from ksparse.util.arrays import Vector

ORDINARY = (1e-6, 1e6)  # data of such a size are not touched where columns are not scaled


def scaled(X: Any, weight: Vector | None, *, centre: bool, how: str) -> tuple[Any, Vector, Vector]:
    """X with columns of root mean square 1, the means that were taken off and the factors; sparse columns stay where they are.

    how : "columns", each by its own factor; "all" by one, where they are not of an ordinary size; "none". A mean far from 0 would make
    the column nearly that of the intercept. What is left of a constant column is rounding: it becomes 0.
    """
    design = design_of(X)
    mean, rms = design.moments(shares(X.shape[0], weight), centre)
    common = power_of_two(float(rms.max())) if how == "all" else 1.0
    size = np.where(rms == 0, 1.0, rms) if how == "columns" else np.full(X.shape[1], common)
    return design.shifted(mean, np.where(rms == 0, np.inf, size)), mean, size


def shares(m: int, weight: Vector | None) -> Vector:
    """What each row counts for, in all 1."""
    return np.full(m, 1.0 / m) if weight is None or not weight.sum() > 0 else weight / weight.sum()


def power_of_two(size: float) -> float:
    """1 for data of an ordinary size, else about that size: dividing by it rounds nothing."""
    return 1.0 if size == 0.0 or ORDINARY[0] <= size <= ORDINARY[1] else float(2.0 ** np.floor(np.log2(size)))
