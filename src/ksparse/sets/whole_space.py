"""ℝⁿ."""

from __future__ import annotations

from ksparse.numerics.constraints import Linear
from ksparse.sets.base import ConvexSet, soft_threshold
from ksparse.util.arrays import Array, Vector, namespace, top_k, zero_outside


class WholeSpace(ConvexSet):
    """ℝⁿ: no constraint.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> ks.minimize(ks.LeastSquares(np.eye(3), [3.0, -2.0, 1.0]), 2, ks.WholeSpace()).x
    array([ 3., -2.,  0.])
    """

    whole_space = has_shrink = has_joint = True

    def project(self, u: Array) -> Array:
        return u

    def violation(self, x: Array) -> float:
        return 0.0

    def contains(self, x: Array) -> bool:
        return True

    def restrict(self, support: Vector) -> WholeSpace:
        return self

    def shrink(self, u: Array, t: float) -> Array:
        return soft_threshold(u, t)

    def project_sparse(self, u: Array, k: int) -> Array:
        return zero_outside(u, top_k(namespace(u).abs(u), k))

    def as_linear(self, n: int) -> Linear:
        return Linear.of(n)
