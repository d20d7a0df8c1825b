"""Matrices of every kind behind three questions: its kind of vector, its columns, its largest eigenvalue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import array_api_compat as compat
import numpy as np
import scipy.sparse
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from ksparse.arrays import Array, Matrix, epsilon, is_array, like, namespace, to_numpy

SMALL = 32  # below this size a Lanczos basis would be as large as the matrix itself
MARGIN = 1e-4  # relative safety on top of what Lanczos found and of its residual


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


def largest_eigenvalue(apply: Callable[[Array], Array], n: int, kind: Array) -> float:
    """A bound on |λ|_max of the symmetric n × n operator v ↦ apply(v), never below it.

    Lanczos (`eigsh`) gives θ ≤ |λ|_max; its residual and a relative margin are added.
    """
    margin = 1 + max(MARGIN, 200 * epsilon(kind))  # products in float32 are themselves off by some roundings

    def matvec(v: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return to_numpy(apply(like(np.ravel(v), kind))).astype(np.float64)

    if n <= SMALL:
        matrix = np.column_stack([matvec(e) for e in np.eye(n)])
        return float(np.abs(np.linalg.eigvalsh((matrix + matrix.T) / 2)).max()) * margin
    start = np.random.default_rng(0).standard_normal(n)  # random: orthogonal to the eigenvector with probability 0
    first = matvec(start)
    if not first.any():
        return 0.0  # B·(random vector) = 0 only for B = 0
    scale = float(np.linalg.norm(first) / np.linalg.norm(start))  # ARPACK's tolerances expect numbers near 1
    operator = LinearOperator((n, n), matvec=lambda v: matvec(v) / scale, dtype=np.float64)
    try:
        values, vectors = eigsh(operator, k=1, which="LM", v0=start, tol=1e-6)
    except ArpackNoConvergence:  # rounding in float32 products, or hundreds of eigenvalues together: power iteration
        values, vectors = _power(operator, start)
    theta, v = abs(float(values[0])), vectors[:, 0]
    residual = float(np.linalg.norm(operator @ v - values[0] * v))
    return (theta + residual) * margin * scale


def has_negative_eigenvalue(apply: Callable[[Array], Array], n: int, kind: Array, size: float) -> bool:
    """Whether a symmetric operator of norm at most `size` has an eigenvalue that is negative beyond rounding, as far as Lanczos sees."""

    def matvec(v: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return to_numpy(apply(like(np.ravel(v), kind))).astype(np.float64) / max(size, 1e-300)

    if n <= SMALL:
        matrix = np.column_stack([matvec(e) for e in np.eye(n)])
        return bool(np.linalg.eigvalsh((matrix + matrix.T) / 2)[0] < -1e-6)
    operator = LinearOperator((n, n), matvec=matvec, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(n)
    try:
        values = eigsh(operator, k=1, which="SA", v0=start, tol=1e-5, return_eigenvectors=False)
    except ArpackNoConvergence as error:  # a cluster at 0; a negative value beyond it would have come out first
        values = error.eigenvalues
    return bool(len(values) and values.min() < -1e-6)


def _power(operator: LinearOperator, v: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    for _ in range(200):
        v = v / np.linalg.norm(v)
        v, previous = operator @ v, v
    return np.array([previous @ v]), previous[:, None]
