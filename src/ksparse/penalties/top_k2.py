"""The top-(k,2) penalty: the paper's own (eq. l2penalty)."""

from __future__ import annotations

import math

from ksparse.penalties.base import Penalty, check_weight
from ksparse.sets.base import ConvexSet
from ksparse.util.arrays import Array, axpy, namespace, sqnorm, without_largest
from ksparse.util.checks import check_integer


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

    def __init__(self, rho: float, k: int) -> None:
        self.rho, self.k = check_weight(rho, "rho"), check_integer(k, "k", 1)
        self.smooth_curvature = 2.0 * self.rho

    def check_length(self, n: int) -> None:
        check_integer(self.k, "k", 1, n)

    def shared(self, x: Array) -> Array:
        """Return all but the k largest entries."""
        return without_largest(x, self.k)

    def g1(self, x: Array) -> float:
        return self.rho * sqnorm(x)

    def gradient_g1(self, x: Array) -> Array:
        return (2.0 * self.rho) * x

    def plus_gradient_g1(self, gradient: Array, x: Array) -> Array:
        return axpy(gradient, 2.0 * self.rho, x)

    def g2(self, x: Array) -> float:
        return self.rho * sqnorm(x - self.shared(x))

    def value(self, x: Array) -> float:
        return self.value_with(x, self.shared(x))

    def value_with(self, x: Array, shared: Array) -> float:
        return self.rho * sqnorm(shared)  # no difference of two large sums

    def squared_norm_with(self, x: Array, shared: Array) -> tuple[float, Array]:
        return self.rho, shared

    def subgradient_with(self, x: Array, shared: Array) -> Array:
        return (2.0 * self.rho) * (x - shared)

    def prox_g1(self, u: Array, t: float) -> Array:
        return u / (1.0 + 2.0 * self.rho * t)

    def prox_g1_on(self, C: ConvexSet, u: Array, t: float) -> Array:
        return C.project(u)  # g1 itself has joined f

    def subgradient_g2(self, x: Array) -> Array:
        return self.subgradient_with(x, self.shared(x))

    def prox(self, u: Array, t: float) -> Array:
        xp = namespace(u)
        return xp.where(self.shared(u) == 0, u, self.prox_g1(u, t))

    def weight_max(self, gradient: Array) -> float:
        return 0.0 if sqnorm(gradient) == 0 else math.inf  # the penalty is flat at 0: no weight holds x there

    def __repr__(self) -> str:
        return f"TopK2({self.rho:g}, {self.k})"
