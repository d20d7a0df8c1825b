"""Quantities computed from a data matrix of any kind: largest eigenvalue, triangular factor, equal columns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ksparse.data import design_of
from ksparse.numerics.eigen import largest_eigenvalue
from ksparse.util.arrays import Array, Matrix, Vector, namespace

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
    return design_of(A).kind


def columns(A: Matrix, support: Vector) -> Matrix:
    """A restricted to some columns, itself where that is all of an array: sparse where it is so, an operator's dense, one product each."""
    return design_of(A).columns(support)


def dense(A: Matrix) -> Vector:
    """A small matrix as a dense NumPy array."""
    return design_of(A).dense()


def check_symmetric(Q: Matrix, name: str) -> Matrix:
    """Refuse a square-looking matrix that is not symmetric, an operator by two random vectors; what is so but for rounding is made so."""
    n, m = Q.shape
    if n != m:
        raise ValueError(f"{name} must be square and symmetric, got shape {tuple(Q.shape)}")
    design = design_of(Q)
    gap, size = design.asymmetry()
    if gap > 1e-6 * size:
        raise ValueError(
            f"{name} must be symmetric, but |{name} - {name}.T| reaches {gap:.3g}; use ({name} + {name}.T) / 2"
        )
    return (Q + Q.T) / 2.0 if gap > 0 and design.shown else Q


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
    (m, n), design = A.shape, design_of(A)
    found = np.zeros((0, n + 1))
    height = max(2 * n, ROWS // (n + 1))
    for begin in range(0, m, height):
        rows = slice(begin, min(begin + height, m))
        block = np.column_stack([dense(design[rows]), b[rows]])
        if weight is not None:
            block *= np.sqrt(weight[rows])[:, None]
        found = np.asarray(np.linalg.qr(np.vstack([found, block]), mode="r"))
    if ridge is not None:
        found = np.asarray(
            np.linalg.qr(np.vstack([found, np.column_stack([np.diag(np.sqrt(ridge)), np.zeros(n)])]), mode="r")
        )
    return Root(found[:n, :n], found[:n, n], float(np.linalg.norm(found[n:, n])))


def first_of_equal(columns_of: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """For each column the place of the first one equal to it."""
    places: dict[bytes, int] = {}
    return np.array(
        [places.setdefault((column + 0.0).tobytes(), j) for j, column in enumerate(columns_of.T)], dtype=np.intp
    )
