"""One linear equation."""

from __future__ import annotations

from typing import Any

import numpy as np

from ksparse.errors import InfeasibleError
from ksparse.numerics.constraints import Linear
from ksparse.sets.base import ConvexSet
from ksparse.util.arrays import (
    Array,
    Vector,
    dot,
    embed,
    indices_of,
    like,
    namespace,
    norm,
    sqnorm,
    sum_of,
    take,
    to_float64,
    to_numpy,
    top_k,
)
from ksparse.util.checks import check_number, check_vector


class Hyperplane(ConvexSet):
    """``{x : aᵀx = b}``; without `a` the budget ``Σx = b``.

    Parameters
    ----------
    a : array-like or None, default=None
        Coefficients; None for all 1.
    b : float, default=1
        Right-hand side.

    Raises
    ------
    InfeasibleError
        If the set is empty.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> ks.minimize(ks.LeastSquares(np.eye(3), [3.0, -2.0, 1.0]), 2, ks.Hyperplane()).x.round(9)
    array([ 3., -2.,  0.])
    """

    has_joint = True  # if the coefficients are equal
    _data = ("a",)

    def __init__(self, a: Any = None, b: float = 1) -> None:
        self.a = None if a is None else check_vector(a, "a")
        self.b = check_number(b, "b")
        self.size = abs(self.b) / (1.0 if self.a is None else norm(self.a) or 1.0)
        if self.a is not None:
            self.n = int(self.a.shape[0])
            if sqnorm(self.a) == 0 and self.b != 0:
                raise InfeasibleError(f"Hyperplane is empty: a = 0 but b = {self.b:g}")
            a = to_float64(self.a)
            self.has_joint = bool(a.any() and (a == a[0]).all())

    def _normal(self, u: Array) -> tuple[Array, float]:
        """Return a, or 1 for a vector of ones, and ‖a‖²."""
        if self.a is None:
            return 1.0, u.shape[0]
        a = like(self.a, u)
        return a, sqnorm(a)

    def _excess(self, x: Array) -> float:
        return (sum_of(x) if self.a is None else dot(like(self.a, x), x)) - self.b

    def project(self, u: Array) -> Array:
        a, size = self._normal(u)
        if size == 0:
            return u
        x = u - (self._excess(u) / size) * a
        return x - (self._excess(x) / size) * a  # the second step corrects the rounding of the first

    def violation(self, x: Array) -> float:
        size = self._normal(x)[1] ** 0.5
        return abs(self._excess(x)) / size if size else 0.0

    def restrict(self, support: Vector) -> Hyperplane:
        if self.a is None:
            return self
        if not to_float64(self.a)[support].any() and self.b != 0:
            raise InfeasibleError(f"Hyperplane has no point on this support: a is 0 there but b = {self.b:g}")
        return Hyperplane(to_float64(self.a)[support], self.b)

    def sparse_support(self, size: Array, k: int) -> Vector:
        if self.a is None or self.b == 0:
            return super().sparse_support(size, k)
        chosen = indices_of(top_k(size, k))
        a = np.abs(to_float64(self.a))
        if not a[chosen].any():  # the equation needs a variable with a nonzero coefficient
            smallest = int(np.argmin(np.abs(to_float64(size))[chosen]))
            chosen[smallest] = int(np.argmax(a))
        return np.sort(chosen)

    def project_sparse(self, u: Array, k: int) -> Array:
        """Return the projection onto the k-sparse points if all coefficients are equal.

        Keeping S decreases the squared distance by Σ_S uᵢ² − (Σ_S uᵢ − b)²/k, which is convex in each uᵢ. So for some p
        the best S holds the p largest and the k − p smallest entries.
        """
        if not self.has_joint:
            return super().project_sparse(u, k)
        n, xp = int(u.shape[0]), namespace(u)
        k = min(k, n)
        b = self.b if self.a is None else self.b / float(self.a[0])
        order = to_numpy(xp.argsort(u, stable=True))
        rising = to_float64(u)[order]
        low, low2 = (_running_sums(part) for part in (rising[:k], rising[:k] ** 2))
        high, high2 = (_running_sums(part) for part in (rising[::-1][:k], rising[::-1][:k] ** 2))
        p = np.arange(k + 1)
        saved = high2[p] + low2[k - p] - (high[p] + low[k - p] - b) ** 2 / k
        best = int(np.argmax(saved))
        support = np.sort(np.concatenate([order[: k - best], order[n - best :]]))
        return embed(self.restrict(support).project(take(u, support)), support, n)

    def as_linear(self, n: int) -> Linear:
        return Linear.of(n, E=np.ones(n) if self.a is None else to_float64(self.a), f=self.b)

    def __repr__(self) -> str:
        return f"Hyperplane({'1' if self.a is None else 'a'}ᵀx = {self.b:g})"


def _running_sums(x: Vector) -> Vector:
    """Return 0, x₁, x₁ + x₂, …"""
    return np.concatenate([[0.0], np.cumsum(x)])
