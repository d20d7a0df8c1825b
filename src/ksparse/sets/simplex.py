"""Nonnegative variables with a given sum."""

from __future__ import annotations

import array_api_compat as compat
import numpy as np

from ksparse.numerics.constraints import Linear
from ksparse.sets.base import ConvexSet, ScaledSet, positive_part
from ksparse.util.arrays import Array, embed, indices_of, larger, namespace, norm, sum_of, take, top_k
from ksparse.util.checks import check_number


class Simplex(ScaledSet):
    """``{x : x ≥ 0, Σx = total}``: portfolios without short positions, mixtures.

    Parameters
    ----------
    total : float, default=1
        The sum > 0.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> ks.minimize(ks.LeastSquares(np.eye(3), [3.0, -2.0, 1.0]), 2, ks.Simplex(3.0)).x.round(9)
    array([2.5, 0. , 0.5])
    """

    has_shrink = has_joint = True

    def __init__(self, total: float = 1) -> None:
        self.total = self.size = check_number(total, "total", above=0)

    def project(self, u: Array) -> Array:
        return project_simplex(u, self.total)

    def violation(self, x: Array) -> float:
        return larger(norm(positive_part(-x)), abs(sum_of(x) - self.total))

    def shrink(self, u: Array, t: float) -> Array:
        return self.project(u)  # ‖x‖₁ = total on the set: a constant

    def project_sparse(self, u: Array, k: int) -> Array:
        return project_on_largest(self, u, k)

    def as_linear(self, n: int) -> Linear:
        return Linear.of(n, lower=0.0, E=np.ones(n), f=self.total)


def project_simplex(u: Array, total: float) -> Array:
    """Return max(u − τ, 0) with τ such that the sum is `total`, found from the sums of the largest entries."""
    xp = namespace(u)
    u = u - xp.max(u)  # same answer, and the sums below have the size of the answer
    falling = xp.sort(u, descending=True)
    count = xp.astype(xp.arange(1, u.shape[0] + 1, device=compat.device(u)), u.dtype)
    tau = (xp.cumulative_sum(falling) - total) / count
    x = positive_part(u - xp.max(tau))  # τ increases while the entries counted exceed it, then decreases
    size = sum_of(x)
    return x * (total / size) if size > 0 else xp.full_like(x, total / u.shape[0])  # corrects the rounding of the sum


def project_on_largest(C: ConvexSet, u: Array, k: int) -> Array:
    """Return the joint projection if all variables have the same bounds [0, b] (Kyrillidis et al. 2013)."""
    support = indices_of(top_k(u, k))
    return embed(C.restrict(support).project(take(u, support)), support, int(u.shape[0]))
