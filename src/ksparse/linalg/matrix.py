"""Matrices of every kind behind three questions: its kind of vector, its columns, its largest eigenvalue."""

from __future__ import annotations

from typing import Any, NamedTuple

import array_api_compat as compat
import numpy as np
import scipy.sparse

from ksparse.base.arrays import Array, Matrix, is_array, namespace, to_numpy
from ksparse.linalg.designs import Design
from ksparse.linalg.lanczos import largest_eigenvalue

ROWS = 2**22  # entries of a block that is made dense


class Squares(NamedTuple):
    """``φ(x) = ½ Σ wᵢ((Ax)ᵢ − bᵢ)² + ½ Σ ρⱼxⱼ²``, by its data: what `Loss.squares` of a sum of squares gives.

    Parameters
    ----------
    A : matrix
        The data.
    b : array
        What Ax is compared with.
    weight : array or None, default=None
        w; None for 1 each.
    ridge : array or None, default=None
        ρ; None for 0.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> ks.LeastSquares(np.eye(2), [1.0, 2.0]).squares().weight is None
    True
    """

    A: Matrix
    b: Array
    weight: Array | None = None  # w
    ridge: Array | None = None  # ρ


class Root(NamedTuple):
    """φ(x) = ½‖Rx − q‖² + ½·rest²."""

    R: np.ndarray[Any, Any]
    q: np.ndarray[Any, Any]
    rest: float


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
    if isinstance(A, Design):
        return A.columns(support)
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


def check_symmetric(Q: Matrix, name: str) -> Matrix:
    """Refuse a square-looking matrix that is not symmetric, an operator by two random vectors; what is so but for rounding is made so."""
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
    shown = is_array(Q) or scipy.sparse.issparse(Q)
    return (Q + Q.T) / 2.0 if gap > 0 and shown else Q


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


def triangle(A: Matrix, b: np.ndarray[Any, Any], weight: Any, ridge: Any) -> Root:
    """½‖Rx − q‖² + ½·rest² = ½ Σ wᵢ((Ax)ᵢ − bᵢ)² + ½ Σ ρⱼxⱼ² by a QR factorisation, a block of rows at a time."""
    m, n = A.shape
    A = A.tocsr() if scipy.sparse.issparse(A) else A
    found = np.zeros((0, n + 1))
    height = max(2 * n, ROWS // (n + 1))
    for begin in range(0, m, height):
        rows = slice(begin, min(begin + height, m))
        block = np.column_stack([dense(A[rows]), b[rows]])
        if weight is not None:
            block *= np.sqrt(weight[rows])[:, None]
        found = np.asarray(np.linalg.qr(np.vstack([found, block]), mode="r"))
    if ridge is not None:
        found = np.asarray(np.linalg.qr(np.vstack([found, np.column_stack([np.diag(np.sqrt(ridge)), np.zeros(n)])]), mode="r"))
    return Root(found[:n, :n], found[:n, n], float(np.linalg.norm(found[n:, n])))


def first_of_equal(columns_of: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """For each column the place of the first one equal to it."""
    places: dict[bytes, int] = {}
    return np.array([places.setdefault((column + 0.0).tobytes(), j) for j, column in enumerate(columns_of.T)], dtype=np.intp)
