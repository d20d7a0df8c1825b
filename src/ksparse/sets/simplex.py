"""Nonnegative numbers with a given sum."""

from __future__ import annotations

import array_api_compat as compat
import numpy as np

from ksparse.numerics.constraints import Linear
from ksparse.sets.base import ConvexSet
from ksparse.util.arrays import Array, Vector, embed, indices_of, larger, namespace, norm, sum_of, take, top_k
from ksparse.util.checks import check_number


class Simplex(ConvexSet):
    """``{x : x ≥ 0, Σx = total}``: portfolios without short positions, mixtures.

    Parameters
    ----------
    total : float, default=1
        The sum, at or above 0.

    Raises
    ------
    ValueError
        If the total is below 0.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> ks.minimize(ks.LeastSquares(np.eye(3), [3.0, -2.0, 1.0]), 2, ks.Simplex(3.0)).x.round(9)
    array([2.5, 0. , 0.5])
    """

    skip_self_check = True
    has_shrink = True
    has_joint = True

    def __init__(self, total: float = 1) -> None:
        self.total = self.size = check_number(total, "total", above=0)

    def project(self, u: Array) -> Array:
        return project_simplex(u, self.total)

    def violation(self, x: Array) -> float:
        xp = namespace(x)
        negative = norm(xp.where(x < 0, x, xp.zeros_like(x)))
        return larger(negative, abs(sum_of(x) - self.total))

    def restrict(self, support: Vector) -> Simplex:
        return self

    def shrink(self, u: Array, t: float) -> Array:
        return self.project(u)  # ‖x‖₁ = total on the set: a constant

    def project_sparse(self, u: Array, k: int) -> Array:
        return project_on_largest(self, u, k)

    def as_linear(self, n: int) -> Linear:
        return Linear.of(n, lower=0.0, E=np.ones(n), f=self.total)

    def __repr__(self) -> str:
        return f"Simplex({self.total:g})"


def project_simplex(u: Array, total: float) -> Array:
    """max(u − τ, 0) with τ such that the sum is `total`: one sort finds it among the sums of the largest."""
    xp = namespace(u)
    u = u - xp.max(u)  # the answer does not change, and the sums below stay of the size of the answer
    falling = xp.sort(u, descending=True)
    count = xp.astype(xp.arange(1, u.shape[0] + 1, device=compat.device(u)), u.dtype)
    tau = (xp.cumulative_sum(falling) - total) / count
    x = _positive_part(u - xp.max(tau))  # τ rises as long as entries above it are counted in, and then falls
    size = sum_of(x)
    return (
        x * (total / size) if size > 0 else xp.full_like(x, total / u.shape[0])
    )  # what rounding left of the sum, in proportion


def project_on_largest(C: ConvexSet, u: Array, k: int) -> Array:
    """The joint projection where every variable has the same bounds [0, b]: the k largest entries, projected (Kyrillidis et al. 2013)."""
    support = indices_of(top_k(u, k))
    return embed(C.restrict(support).project(take(u, support)), support, int(u.shape[0]))


def _positive_part(x: Array) -> Array:
    xp = namespace(x)
    return xp.where(x > 0, x, xp.zeros_like(x))
