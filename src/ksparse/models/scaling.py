"""Data of any size brought near 1 for a search: columns each by a factor of their own, or all by one power of 2."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from ksparse.base.arrays import Vector
from ksparse.base.checks import check_array
from ksparse.linalg.designs import Design, Shifted, moments
from ksparse.linalg.standardize import Centred

ORDINARY = (1e-6, 1e6)  # data of such a size are not touched where columns are not scaled


def scaled(X: Any, weight: Vector | None, *, centre: bool, how: str) -> tuple[Any, Vector, Vector]:
    """X with columns of root mean square 1, the means that were taken off and the factors; sparse columns stay where they are.

    how : "columns", each by its own factor; "all" by one, where they are not of an ordinary size; "none". A mean far from 0 would make
    the column nearly that of the intercept. What is left of a constant column is rounding: it becomes 0.
    """
    share = shares(X.shape[0], weight)
    if isinstance(X, Design):
        return _shifted(X.as_float64(), share, centre, how)
    if scipy.sparse.issparse(X):
        size = _sparse_sizes(X, share) if how == "columns" else np.full(X.shape[1], power_of_two(largest(X)) if how == "all" else 1.0)
        return X @ scipy.sparse.diags_array(1.0 / size), np.zeros(X.shape[1]), size
    X = np.asarray(check_array(X, "X", 2))
    mean = share @ X.astype(float) if centre else np.zeros(X.shape[1])
    Z = X - mean
    rms = root_mean_square(Z, share)
    constant = rms <= 10 * np.finfo(X.dtype).eps * np.abs(mean)
    common = power_of_two(float(rms.max())) if how == "all" else 1.0
    size = np.where(constant, 1.0, rms) if how == "columns" else np.full(X.shape[1], common)
    return np.where(constant, 0.0, Z / size), mean, size


def _shifted(X: Design, share: Vector, centre: bool, how: str) -> tuple[Design, Vector, Vector]:
    """The same block by block, as they are read."""
    mean, square = moments(X, share)
    if not centre:
        mean, square = np.zeros_like(mean), square + mean**2
    rms = np.sqrt(square)
    constant = rms <= 10 * np.finfo(np.float64).eps * np.abs(mean)
    common = power_of_two(float(rms.max())) if how == "all" else 1.0
    size = np.where(constant, 1.0, rms) if how == "columns" else np.full(X.shape[1], common)
    return Shifted(X, mean, np.where(constant, 0.0, 1.0 / size)), mean, size


def _sparse_sizes(X: Any, share: Vector) -> Vector:
    """The root mean square of each column, 1 for an empty one."""
    top = np.asarray(abs(X).max(axis=0).toarray(), dtype=float).ravel()
    top = np.where(top > 0, top, 1.0)  # so that squares neither overflow nor vanish
    near = X @ scipy.sparse.diags_array(1.0 / top)
    square = np.asarray(near.multiply(near).T @ share, dtype=float).ravel()
    return np.where(square > 0, top * np.sqrt(square), 1.0)


def shares(m: int, weight: Vector | None) -> Vector:
    """What each row counts for, in all 1."""
    return np.full(m, 1.0 / m) if weight is None or not weight.sum() > 0 else weight / weight.sum()


def root_mean_square(Z: Vector, share: Vector) -> Vector:
    """By column, without overflow or underflow of the squares."""
    top = np.abs(Z).max(axis=0)
    return np.asarray(top * np.sqrt(share @ np.square(Z / np.where(top > 0, top, 1.0))))


def largest(A: Any) -> float:
    """max |Aᵢⱼ|, of what is stored where it is sparse."""
    if isinstance(A, Design):
        return A.seen.largest
    stored = A.X.data * float(np.abs(A.scale).max()) if isinstance(A, Centred) else A.data if scipy.sparse.issparse(A) else A
    return float(np.abs(stored).max(initial=0.0))


def power_of_two(size: float) -> float:
    """1 for data of an ordinary size, else about that size: dividing by it rounds nothing."""
    return 1.0 if size == 0.0 or ORDINARY[0] <= size <= ORDINARY[1] else float(2.0 ** np.floor(np.log2(size)))


def divided(A: Any, by: float) -> Any:
    """A/by, for a matrix of any kind that `scaled` gives."""
    if isinstance(A, Shifted):
        return A.over(by)
    return Centred(A.X, A.mean, A.scale / by, A.adjoint) if isinstance(A, Centred) else A / by
