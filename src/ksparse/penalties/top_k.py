"""The top-(k,1) penalty (Gotoh, Takeda, Tono 2017) and the paper's top-(k,2) penalty."""

from __future__ import annotations

import math

from ksparse.penalties.base import L1Based, Penalty
from ksparse.sets.base import ConvexSet
from ksparse.util.arrays import Array, axpy, namespace, norm_1, sqnorm, without_largest
from ksparse.util.checks import check_integer, check_number


class TopKPenalty(Penalty):
    """A penalty on all but the k largest entries, which `shared` returns."""

    rho: float
    k: int

    def shared(self, x: Array) -> Array:
        """Return all but the k largest entries."""
        return without_largest(x, self.k)

    def value(self, x: Array) -> float:
        return self.value_with(x, self.shared(x))  # no difference of two large sums

    def subgradient_g2(self, x: Array) -> Array:
        return self.subgradient_with(x, self.shared(x))

    def prox(self, u: Array, t: float) -> Array:
        # the cost of changing an entry grows with |uᵢ|, so the k largest are the ones to keep
        return namespace(u).where(self.shared(u) == 0, u, self.prox_g1(u, t))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.rho:g}, {self.k})"


class TopK1(TopKPenalty, L1Based):
    """``ρ(‖x‖₁ − |||x|||_{k,1})``, where |||x|||_{k,1} is the sum of the k largest absolute values.

    It is 0 exactly on the k-sparse points (Gotoh, Takeda, Tono 2017).

    Parameters
    ----------
    rho : float
        ρ > 0, the weight.
    k : int
        Number of nonzeros without cost.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> x = np.array([0.5, -4.0])
    >>> ks.TopK1(1.0, 1).value(x)
    0.5
    """

    def __init__(self, rho: float, k: int) -> None:
        self.lam, self.k = check_number(rho, "rho", above=0), check_integer(k, "k", 1)

    @property
    def rho(self) -> float:  # type: ignore[override]
        """ρ, which is λ of the ℓ1 norm."""
        return self.lam

    def g2(self, x: Array) -> float:
        return self.rho * norm_1(x - self.shared(x))

    def value_with(self, x: Array, shared: Array) -> float:
        return self.rho * norm_1(shared)

    def subgradient_with(self, x: Array, shared: Array) -> Array:
        return self.rho * namespace(x).sign(x - shared)


class TopK2(TopKPenalty):
    """``ρ(‖x‖₂² − |||x|||²_{k,2})``, where |||x|||²_{k,2} is the sum of the k largest squares.

    It is 0 exactly on the k-sparse points. g₁ = ``ρ‖x‖₂²`` is smooth and is therefore part of f, so that the prox on a
    set C is the projection onto C: the paper's main idea.

    Parameters
    ----------
    rho : float
        ρ > 0, the weight.
    k : int
        Number of nonzeros without cost.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> x = np.array([0.5, -4.0])
    >>> ks.TopK2(1.0, 1).value(x)
    0.25
    """

    def __init__(self, rho: float, k: int) -> None:
        self.rho, self.k = check_number(rho, "rho", above=0), check_integer(k, "k", 1)
        self.smooth_curvature = 2.0 * self.rho

    def g1(self, x: Array) -> float:
        return self.rho * sqnorm(x)

    def gradient_g1(self, x: Array) -> Array:
        return (2.0 * self.rho) * x

    def plus_gradient_g1(self, gradient: Array, x: Array) -> Array:
        return axpy(gradient, 2.0 * self.rho, x)

    def g2(self, x: Array) -> float:
        return self.rho * sqnorm(x - self.shared(x))

    def value_with(self, x: Array, shared: Array) -> float:
        return self.rho * sqnorm(shared)

    def subgradient_with(self, x: Array, shared: Array) -> Array:
        return (2.0 * self.rho) * (x - shared)

    def prox_g1(self, u: Array, t: float) -> Array:
        return u / (1.0 + 2.0 * self.rho * t)

    def prox_g1_on(self, C: ConvexSet, u: Array, t: float) -> Array:
        return C.project(u)  # g1 is part of f

    def weight_max(self, gradient: Array) -> float:
        return 0.0 if sqnorm(gradient) == 0 else math.inf  # the penalty is flat at 0: no weight keeps x there
