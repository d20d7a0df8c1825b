"""Quantities computed from a data matrix of any kind: largest eigenvalue, triangular factor, equal columns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ksparse.data import design_of
from ksparse.numerics.eigen import largest_eigenvalue
from ksparse.util.arrays import Array, Matrix, Vector, namespace

DENSE_BLOCK = 2**22  # entries of a block that is made dense


class Squares(NamedTuple):
    """The data of a sum of squares ``φ(x) = ½ Σ wᵢ((Ax)ᵢ − bᵢ)² + ½ Σ ρⱼxⱼ²``: the result of `Loss.squares`.

    Parameters
    ----------
    A : matrix
        The data.
    b : array
        Values to be approximated by Ax.
    weight : array or None, default=None
        w, one number per row; None for 1.
    ridge : array or None, default=None
        ρ, one number per column; None for 0.

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


class LeastSquaresRoot(NamedTuple):
    """R, q and rest of φ(x) = ½‖Rx − q‖² + ½·rest²."""

    R: Vector
    q: Vector
    rest: float


def columns(A: Matrix, support: Vector) -> Matrix:
    """Return A[:, support]: an array itself if that is all, sparse if A is, dense for operators."""
    return design_of(A).columns(support)


def dense(A: Matrix) -> Vector:
    """Return a small matrix as a dense NumPy array."""
    return design_of(A).dense()


def check_symmetric(Q: Matrix, name: str) -> Matrix:
    """Return a symmetric matrix, averaged with its transpose if they differ by rounding; refuse another one."""
    n, m = Q.shape
    if n != m:
        raise ValueError(f"{name} must be square and symmetric, got shape {tuple(Q.shape)}")
    design = design_of(Q)
    gap, size = design.asymmetry()
    if gap > 1e-6 * size:
        found = f"|{name} - {name}.T| reaches {gap:.3g}; use ({name} + {name}.T) / 2"
        raise ValueError(f"{name} must be symmetric, but {found}")
    return (Q + Q.T) / 2.0 if gap > 0 and design.entries_in_memory else Q


def largest_gram_eigenvalue(A: Matrix, weight: Array | None, kind: Array) -> float:
    """Return an upper bound on λ_max(Aᵀ diag(w) A), from products with A."""
    m, n = A.shape
    root = None if weight is None else namespace(weight).sqrt(weight)

    def down(r: Array) -> Array:
        return A.T @ (r if root is None else root * r)

    def up(x: Array) -> Array:
        return A @ x if root is None else root * (A @ x)

    apply = (lambda v: up(down(v))) if m < n else (lambda v: down(up(v)))
    return largest_eigenvalue(apply, min(m, n), kind)


def qr_root(A: Matrix, b: Vector, weight: Any, ridge: Any) -> LeastSquaresRoot:
    """Return ½‖Rx − q‖² + ½·rest² = ½ Σ wᵢ((Ax)ᵢ − bᵢ)² + ½ Σ ρⱼxⱼ² by a QR factorisation of blocks of rows."""
    (m, n), design = A.shape, design_of(A)
    found = np.zeros((0, n + 1))
    height = max(2 * n, DENSE_BLOCK // (n + 1))
    for begin in range(0, m, height):
        rows = slice(begin, min(begin + height, m))
        block = np.column_stack([dense(design[rows]), b[rows]])
        if weight is not None:
            block *= np.sqrt(weight[rows])[:, None]
        found = np.asarray(np.linalg.qr(np.vstack([found, block]), mode="r"))
    if ridge is not None:
        block = np.column_stack([np.diag(np.sqrt(ridge)), np.zeros(n)])
        found = np.asarray(np.linalg.qr(np.vstack([found, block]), mode="r"))
    return LeastSquaresRoot(found[:n, :n], found[:n, n], float(np.linalg.norm(found[n:, n])))


def first_of_equal(M: Vector) -> Vector:
    """Return for each column the index of the first column equal to it."""
    seen: dict[bytes, int] = {}
    return np.array([seen.setdefault((column + 0.0).tobytes(), j) for j, column in enumerate(M.T)], dtype=np.intp)
