"""Matrices of every kind behind three questions: its kind of vector, its columns, its largest eigenvalue."""

from __future__ import annotations

from typing import Any

import array_api_compat as compat
import numpy as np
import scipy.sparse

from ksparse.arrays import Array, Matrix, is_array, namespace, to_numpy
from ksparse.losses.lanczos import largest_eigenvalue


def kind_of(A: Matrix) -> Array:
    """An empty vector of the namespace, dtype and device that A's products have."""
    if is_array(A):
        return namespace(A).zeros(0, dtype=A.dtype, device=compat.device(A))
    dtype = getattr(A, "dtype", None)
    return np.zeros(0, dtype=np.float32 if dtype == np.float32 else np.float64)


def columns(A: Matrix, support: np.ndarray[Any, Any]) -> Matrix:
    """A restricted to some columns; an operator's columns come out dense, one product each."""
    if is_array(A):
        xp = namespace(A)
        return xp.take(A, xp.asarray(support, device=compat.device(A)), axis=1)
    if scipy.sparse.issparse(A):
        return A[:, support]
    unit = np.zeros(A.shape[1], dtype=kind_of(A).dtype)
    out = np.empty((A.shape[0], support.size), dtype=unit.dtype)
    for j, i in enumerate(support):
        unit[i] = 1.0
        out[:, j] = A @ unit
        unit[i] = 0.0
    return out


def dense(A: Matrix) -> np.ndarray[Any, Any]:
    """A small matrix as a dense NumPy array."""
    if scipy.sparse.issparse(A):
        return np.asarray(A.toarray())
    return to_numpy(A) if is_array(A) else to_numpy(columns(A, np.arange(A.shape[1])))


def check_symmetric(Q: Matrix, name: str) -> None:
    """Refuse a square-looking matrix that is not symmetric; an operator is probed with two random vectors."""
    n, m = Q.shape
    if n != m:
        raise ValueError(f"{name} must be square and symmetric, got shape {tuple(Q.shape)}")
    if is_array(Q):
        xp = namespace(Q)
        gap, size = float(xp.max(xp.abs(Q - Q.T))), float(xp.max(xp.abs(Q)))
    elif scipy.sparse.issparse(Q):
        gap, size = float(abs(Q - Q.T).max()), float(abs(Q).max())
    else:
        u, v = np.random.default_rng(0).standard_normal((2, n))
        Qu, Qv = Q @ u, Q @ v
        gap, size = abs(float(v @ Qu - u @ Qv)), float(np.linalg.norm(Qu) * np.linalg.norm(v))
    if gap > 1e-6 * size:
        raise ValueError(f"{name} must be symmetric, but |{name} - {name}.T| reaches {gap:.3g}; use ({name} + {name}.T) / 2")


def largest_gram_eigenvalue(A: Matrix, weight: Array | None, kind: Array) -> float:
    """A bound on λ_max(Aᵀ diag(w) A) from above, by products with A alone, on A's shorter side."""
    m, n = A.shape
    root = None if weight is None else namespace(weight).sqrt(weight)

    def down(r: Array) -> Array:
        return A.T @ (r if root is None else root * r)

    def up(x: Array) -> Array:
        return A @ x if root is None else root * (A @ x)

    apply = (lambda v: up(down(v))) if m < n else (lambda v: down(up(v)))
    return largest_eigenvalue(apply, min(m, n), kind)
