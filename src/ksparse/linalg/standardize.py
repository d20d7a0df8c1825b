"""Columns centred and scaled: Z with ZᵀZ the covariance or correlation matrix of a data table, sparse tables left sparse."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from ksparse.base.arrays import Array, Matrix, is_array, namespace
from ksparse.linalg.designs.sparse import CentredSparse, centred_squares


def standardize(X: Matrix, name: str, *, scale: bool) -> tuple[Matrix, Array]:
    """Z with ZᵀZ the sample covariance of X, or its correlation matrix, and the column means.

    A constant column has no correlation: its column of Z is 0.
    """
    m = X.shape[0]
    if m < 2:
        raise ValueError(f"{name} must have at least 2 rows to have a variance, got {m}")
    if scipy.sparse.issparse(X):
        mean = np.asarray(X.T @ np.ones(m) / m, dtype=X.dtype)  # SciPy's own divides first, and sums single precision as such
        variance = centred_squares(X, mean) / m
        rounding = (10 * float(np.finfo(X.dtype).eps)) ** 2
        variance[variance <= rounding * mean.astype(np.float64) ** 2] = 0.0  # what is left of a constant column is rounding
        factor = _inverse_root(variance * m) if scale else np.where(variance > 0, (m - 1) ** -0.5, 0.0)
        return CentredSparse(X, mean, factor.astype(X.dtype)), mean
    if not is_array(X):
        raise TypeError(f"{name} must be a dense array or a scipy.sparse matrix: an operator does not show its columns")
    xp = namespace(X)
    mean = xp.mean(X, axis=0)
    Z = X - mean
    top = xp.max(xp.abs(Z), axis=0)  # so that squares neither overflow nor vanish
    safe = xp.where(top > 0, top, xp.ones_like(top))
    size = top * xp.sqrt(xp.sum((Z / safe) ** 2, axis=0))
    level = float(m) ** 0.5 * xp.abs(mean)
    constant = size <= 10 * float(xp.finfo(X.dtype).eps) * level  # what is left of a constant column is rounding
    divisor = xp.where(constant, xp.ones_like(size), size) if scale else float(m - 1) ** 0.5
    return xp.where(constant, xp.zeros_like(Z), Z / divisor), mean


def _inverse_root(variance: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    out = np.zeros_like(variance)
    positive = variance > 0
    out[positive] = variance[positive] ** -0.5
    return out
