"""Bounds on every variable."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ksparse.errors import InfeasibleError
from ksparse.numerics.constraints import Linear
from ksparse.sets.base import ConvexSet, soft_threshold
from ksparse.util.arrays import (
    Array,
    Vector,
    copy_with,
    is_array,
    like,
    namespace,
    norm,
    to_float64,
    top_k,
    zero_outside,
)
from ksparse.util.checks import check_bound


class Box(ConvexSet):
    """``{x : lower ≤ x ≤ upper}``, each a number or a vector, ±inf for none.

    A variable whose bounds exclude 0 is always selected.

    Parameters
    ----------
    lower : float or array-like
        Lower bounds.
    upper : float or array-like
        Upper bounds.

    Raises
    ------
    InfeasibleError
        If the set is empty.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> ks.minimize(ks.LeastSquares(np.eye(3), [3.0, -2.0, 1.0]), 2, ks.Box(-1.0, 2.0)).x
    array([ 2., -1.,  0.])
    """

    size = 0.0  # projected points satisfy the bounds exactly
    has_shrink = has_joint = True
    _data = ("lower", "upper")

    def __init__(self, lower: Any, upper: Any) -> None:
        self.lower, self.upper = check_bound(lower, "lower"), check_bound(upper, "upper")
        lengths = {len(bound) for bound in (self.lower, self.upper) if not isinstance(bound, float)}
        if len(lengths) > 1:
            raise ValueError(f"lower and upper must have the same length, got {sorted(lengths)}")
        self.n = lengths.pop() if lengths else None
        low, high = self.bounds(self.n or 1)
        if (low > high).any() or (low == np.inf).any() or (high == -np.inf).any():
            i = int(np.argmax(~(low <= high) | (low == np.inf) | (high == -np.inf)))
            raise InfeasibleError(f"{type(self).__name__} is empty: lower {low[i]:g} > upper {high[i]:g} at index {i}")

    def bounds(self, n: int) -> tuple[Vector, Vector]:
        """Return lower and upper as float64 vectors of length n."""
        low, high = (np.broadcast_to(to_float64(bound), n) for bound in (self.lower, self.upper))
        return low, high

    def bounds_like(self, u: Array) -> tuple[Array, Array]:
        """Return lower and upper as vectors of the kind of u."""
        full = namespace(u).full_like
        low, high = (like(bound, u) if is_array(bound) else full(u, bound) for bound in (self.lower, self.upper))
        return low, high

    def project(self, u: Array) -> Array:
        return clip_to(u, *self.bounds_like(u))

    def violation(self, x: Array) -> float:
        low, high = self.bounds_like(x)
        xp = namespace(x)
        zero = xp.zeros_like(x)
        return norm(xp.where(x < low, low - x, zero) + xp.where(x > high, x - high, zero))

    def forced(self, n: int) -> Vector:
        """Return the indices of the variables whose bounds exclude 0."""
        low, high = self.bounds(n)
        return np.flatnonzero((low > 0) | (high < 0))

    def restrict(self, support: Vector) -> Box:
        if self.n is None:
            return self
        missing = np.setdiff1d(self.forced(self.n), support)
        if missing.size:
            raise InfeasibleError(f"{self} has no point on this support: the bounds of variable {missing[0]} exclude 0")
        return Box(*(bound[support] for bound in self.bounds(self.n)))

    def without(self, indices: Vector) -> Box:
        if self.n is None or not indices.size:
            return self
        low, high = (bound.copy() for bound in self.bounds(self.n))
        low[indices] = high[indices] = 0.0
        return Box(low, high)

    def for_length(self, n: int) -> Self:
        return copy_with(self, n=n)

    def why_no_sparse_member(self, n: int, k: int) -> str | None:
        forced = self.forced(n).size
        return f"the bounds of {forced} variables exclude 0" if forced > k else None

    def sparse_support(self, size: Array, k: int) -> Vector:
        size = np.abs(to_float64(size))
        return super().sparse_support(forced_first(size, self.forced(size.size)), k)

    def shrink(self, u: Array, t: float) -> Array:
        return self.project(soft_threshold(u, t))

    def project_sparse(self, u: Array, k: int) -> Array:
        xp = namespace(u)
        low, high = self.bounds_like(u)
        v = clip_to(u, low, high)
        saved = u * u - (u - v) * (u - v)  # decrease of the squared distance from keeping an entry, ≥ 0 if it may be 0
        forced = (low > 0) | (high < 0)
        return zero_outside(v, top_k(xp.where(forced, xp.full_like(u, float("inf")), saved), k))

    def as_linear(self, n: int) -> Linear:
        return Linear.of(n, *self.bounds(n))

    def __repr__(self) -> str:
        shown = [f"{bound:g}" if isinstance(bound, float) else "vector" for bound in (self.lower, self.upper)]
        return f"{type(self).__name__}({', '.join(shown)})"


def clip_to(u: Array, low: Array, high: Array) -> Array:
    """Return u with its entries moved into [low, high]."""
    xp = namespace(u)
    return xp.where(u < low, low, xp.where(u > high, high, u))


def forced_first(size: Vector, forced: Vector) -> Vector:
    """Return sizes in which the forced variables (indices or a mask) are larger than all others."""
    ranked = size.copy()
    ranked[forced] += size.max(initial=0.0) + 1.0
    return ranked
