"""The top-(k,2) penalty: the paper's own (eq. l2penalty)."""

from __future__ import annotations

import math

from ksparse.base.arrays import Array, drop, keep, namespace, sqnorm
from ksparse.base.checks import check_integer
from ksparse.base.combine import along
from ksparse.base.largest import top_k
from ksparse.penalties.base import Penalty, check_weight
from ksparse.sets.base import ConvexSet


class TopK2(Penalty):
    """``ρ(‖x‖₂² − |||x|||²_{k,2})``, the second the sum of the k largest squares: zero exactly on the k-sparse points.

    g₁ = ``ρ‖x‖₂²`` is smooth, so it joins f, and what is left of g₁ on a set C is its projection: the paper's main idea.

    Parameters
    ----------
    rho : float
        ρ > 0, the weight.
    k : int
        Nonzeros that cost nothing.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> x = np.array([0.5, -4.0])
    >>> ks.TopK2(1.0, 1).value(x)
    0.25
    """

    k: int
    shares = True

    def __init__(self, rho: float, k: int) -> None:
        self.rho, self.k = check_weight(rho, "rho"), check_integer(k, "k", 1)
        self.smooth_curvature = 2.0 * self.rho

    def check_length(self, n: int) -> None:
        check_integer(self.k, "k", 1, n)

    def _largest(self, x: Array) -> Array:
        return top_k(namespace(x).abs(x), self.k)

    def g1(self, x: Array) -> float:
        return self.rho * sqnorm(x)

    def gradient_g1(self, x: Array) -> Array:
        return (2.0 * self.rho) * x

    def plus_gradient_g1(self, gradient: Array, x: Array) -> Array:
        return along(gradient, 2.0 * self.rho, x)

    def g2(self, x: Array) -> float:
        return self.rho * sqnorm(keep(x, self._largest(x)))

    def value(self, x: Array) -> float:
        return self._tail(x, self._largest(x))

    def at(self, x: Array) -> tuple[float, Array]:
        largest = self._largest(x)
        return self._tail(x, largest), self._slope(x, largest)

    def _tail(self, x: Array, largest: Array) -> float:
        return self.rho * sqnorm(drop(x, largest))  # itself: no difference of two large sums

    def _slope(self, x: Array, largest: Array) -> Array:
        return (2.0 * self.rho) * keep(x, largest)

    def prox_g1(self, u: Array, t: float) -> Array:
        return u / (1.0 + 2.0 * self.rho * t)

    def prox_g1_on(self, C: ConvexSet, u: Array, t: float) -> Array:
        return C.project(u)  # g1 itself has joined f

    def subgradient_g2(self, x: Array) -> Array:
        return self._slope(x, self._largest(x))

    def prox(self, u: Array, t: float) -> Array:
        xp = namespace(u)
        return xp.where(self._largest(u), u, self.prox_g1(u, t))

    def weight_max(self, gradient: Array) -> float:
        return 0.0 if sqnorm(gradient) == 0 else math.inf  # the penalty is flat at 0: no weight holds x there

    def __repr__(self) -> str:
        return f"TopK2({self.rho:g}, {self.k})"
