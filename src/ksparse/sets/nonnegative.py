"""Nonnegative variables."""

from __future__ import annotations

from typing import Any, Self

import array_api_compat as compat
import numpy as np

from ksparse.numerics.constraints import Linear
from ksparse.sets.base import ConvexSet, soft_threshold
from ksparse.util.arrays import Array, Vector, copy_with, namespace, norm, top_k, zero_outside
from ksparse.util.checks import check_indices


class Nonnegative(ConvexSet):
    """``{x : xᵢ ≥ 0 for i in indices}``; without `indices` for all i.

    Parameters
    ----------
    indices : array-like of int or None, default=None
        The nonnegative variables; None for all.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> ks.minimize(ks.LeastSquares(np.eye(3), [3.0, -2.0, 1.0]), 2, ks.Nonnegative([1])).x
    array([3., 0., 1.])
    """

    size = 0.0  # projected points satisfy the signs exactly
    has_shrink = has_joint = True

    def __init__(self, indices: Any = None) -> None:
        self.indices = None if indices is None else check_indices(indices, "indices")
        self._mask: Array | None = None  # the indices as a mask in the namespace of x, made by `like`

    def _signed(self, x: Array) -> Array:
        """Return the mask of the nonnegative variables."""
        if self._mask is not None and self._mask.shape == x.shape:
            return self._mask
        n = x.shape[0]
        if self.indices is not None and self.indices.size and self.indices[-1] >= n:
            raise ValueError(f"indices must be below the number of variables {n}, got {self.indices[-1]}")
        mask = np.full(n, self.indices is None)
        if self.indices is not None:
            mask[self.indices] = True
        return namespace(x).asarray(mask, device=compat.device(x))

    def project(self, u: Array) -> Array:
        xp = namespace(u)
        return xp.where((u < 0) & self._signed(u), xp.zeros_like(u), u)

    def violation(self, x: Array) -> float:
        xp = namespace(x)
        return norm(xp.where((x < 0) & self._signed(x), x, xp.zeros_like(x)))

    def restrict(self, support: Vector) -> Nonnegative:
        return self if self.indices is None else Nonnegative(np.flatnonzero(np.isin(support, self.indices)))

    def shrink(self, u: Array, t: float) -> Array:
        # in one dimension, a convex prox then clipped is the prox on an interval
        return self.project(soft_threshold(u, t))

    def project_sparse(self, u: Array, k: int) -> Array:
        v = self.project(u)  # keeping entry i decreases the squared distance by vᵢ²
        return zero_outside(v, top_k(namespace(v).abs(v), k))

    def as_linear(self, n: int) -> Linear:
        return Linear.of(n, lower=np.where(self._signed(np.zeros(n)), 0.0, -np.inf))

    def like(self, x: Array) -> Self:
        return copy_with(super().like(x), _mask=self._signed(x))

    def __repr__(self) -> str:
        return "Nonnegative" if self.indices is None else f"Nonnegative({self.indices.size} indices)"
