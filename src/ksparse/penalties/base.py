"""Base classes of penalties g = g1 − g2, both convex; the prox of g1 and a subgradient of g2 are cheap.

The prox of the whole g, which GIST and nmAPG use, has a closed form for every penalty here on the whole space.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

from ksparse.sets.base import ConvexSet, soft_threshold
from ksparse.util.arrays import Array, copy_with, namespace, norm_1, norm_inf, sum_of, zeros_like
from ksparse.util.checks import check_integer, check_number


class Penalty(ABC):
    """g = g₁ − g₂, both convex: the base class of every penalty.

    A custom penalty writes `g1`, `g2`, `subgradient_g2`, `prox_g1`, `prox_g1_on`, `prox` and `weight_max`. A sum over
    entries derives from `Separable`, which needs less.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> penalty = ks.MCP(1.0, 2.0)
    >>> x = np.array([0.5, -4.0])
    >>> penalty.value(x) == penalty.g1(x) - penalty.g2(x)
    True
    """

    smooth_curvature: float | None = None  # Lipschitz constant of ∇g1 if g1 is smooth: g1 is then part of f
    k: int | None = None  # if g is 0 on the k-sparse points
    lam: float | None = None  # λ, if g1 contains λ‖x‖₁, so that a large λ keeps x at 0
    constraint: bool = False  # whether g is the constraint ‖x‖₀ ≤ k itself, 0 or ∞
    indicators: bool = False  # whether g is a function of indicators in addition to x

    @abstractmethod
    def g1(self, x: Array) -> float:
        """Return the first convex part."""

    def g2(self, x: Array) -> float:
        """Return the second convex part, 0 if g is convex."""
        return 0.0

    def subgradient_g2(self, x: Array) -> Array:
        """Return one element of ∂g2(x)."""
        return zeros_like(x)

    @abstractmethod
    def prox_g1(self, u: Array, t: float) -> Array:
        """Return argmin t·g1(x) + ½‖x − u‖²."""

    @abstractmethod
    def prox_g1_on(self, C: ConvexSet, u: Array, t: float) -> Array:
        """Return the prox of t·g1 + I_C at u, or of I_C alone if g1 is smooth and part of f."""

    @abstractmethod
    def prox(self, u: Array, t: float) -> Array:
        """Return one element of argmin t·g(x) + ½‖x − u‖², the prox of the whole g."""

    @abstractmethod
    def weight_max(self, gradient: Array) -> float:
        """Return the smallest weight at which 0 is stationary (a fixed point of the proximal DC step), given ∇φ(0)."""

    def value(self, x: Array) -> float:
        """Return g(x)."""
        return self.g1(x) - self.g2(x)

    def shared(self, x: Array) -> Any:
        """Return what `value_with` and `subgradient_with` both need at x, computed once; None for nothing."""
        return None

    def value_with(self, x: Array, shared: Any) -> float:
        """Return g(x), given `shared(x)`."""
        return self.value(x)

    def subgradient_with(self, x: Array, shared: Any) -> Array:
        """Return one element of ∂g2(x), given `shared(x)`."""
        return self.subgradient_g2(x)

    def gradient_g1(self, x: Array) -> Array:
        """Return ∇g1(x), if `smooth_curvature` is given."""
        raise NotImplementedError(f"g1 of {type(self).__name__} is not smooth")

    def plus_gradient_g1(self, gradient: Array, x: Array) -> Array:
        """Return gradient + ∇g1(x)."""
        return gradient + self.gradient_g1(x)

    def enter(self, C: ConvexSet, x: Array) -> Array:
        """Return the point of dom g1 ∩ C at which a run from x starts."""
        return C.project(x)

    def supports(self, C: ConvexSet) -> bool:
        """Return whether the prox of g1 + I_C has a closed form."""
        return True

    def with_lam(self, lam: float) -> Self:
        """Return the penalty with another λ."""
        raise NotImplementedError(f"{type(self).__name__} has no λ")

    def check_length(self, n: int) -> None:
        """Raise ValueError if the penalty is not defined for n variables."""
        if self.k is not None:
            check_integer(self.k, "k", 1, n)


class NoPenalty(Penalty):
    """g = 0: the problem is min φ over C."""

    smooth_curvature = 0.0

    def g1(self, x: Array) -> float:
        return 0.0

    def gradient_g1(self, x: Array) -> Array:
        return zeros_like(x)

    def plus_gradient_g1(self, gradient: Array, x: Array) -> Array:
        return gradient

    def prox_g1(self, u: Array, t: float) -> Array:
        return u

    def prox_g1_on(self, C: ConvexSet, u: Array, t: float) -> Array:
        return C.project(u)

    def prox(self, u: Array, t: float) -> Array:
        return u

    def weight_max(self, gradient: Array) -> float:
        return 0.0


class Undivided(Penalty):
    """Another penalty split as g1 = g, g2 = 0, as GIST and nmAPG use it; C is the whole space."""

    def __init__(self, penalty: Penalty) -> None:
        self.penalty = penalty

    def g1(self, x: Array) -> float:
        return self.penalty.value(x)

    def prox(self, u: Array, t: float) -> Array:
        return self.penalty.prox(u, t)

    def prox_g1(self, u: Array, t: float) -> Array:
        return self.prox(u, t)

    def prox_g1_on(self, C: ConvexSet, u: Array, t: float) -> Array:
        return self.prox(u, t)

    def weight_max(self, gradient: Array) -> float:
        return self.penalty.weight_max(gradient)


class L1Based(Penalty):
    """A penalty with g1 = w‖x‖₁; on a set C the prox of g1 is that set's `shrink`."""

    lam: float

    @property
    def weight(self) -> float:
        """w, the factor of ‖x‖₁ in g1."""
        return self.lam

    def g1(self, x: Array) -> float:
        return self.weight * norm_1(x)

    def prox_g1(self, u: Array, t: float) -> Array:
        return soft_threshold(u, self.weight * t)

    def prox_g1_on(self, C: ConvexSet, u: Array, t: float) -> Array:
        return C.shrink(u, self.weight * t)

    def supports(self, C: ConvexSet) -> bool:
        return C.has_shrink

    def weight_max(self, gradient: Array) -> float:
        return norm_inf(gradient)

    def with_lam(self, lam: float) -> Self:
        return copy_with(self, lam=check_number(lam, "lam", above=0))

    def __repr__(self) -> str:
        theta = getattr(self, "theta", None)
        return f"{type(self).__name__}({self.lam:g}{'' if theta is None else f', {theta:g}'})"


class Separable(L1Based):
    """A sum over the entries, given by functions of ``s = |xᵢ|`` for g, g₂, g₂′ and the candidates of its prox.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> class Capped(ks.Separable):
    ...     def __init__(self, lam):
    ...         self.lam = lam
    ...
    ...     def g_of(self, size):
    ...         return self.lam * np.minimum(size, 1.0)
    ...
    ...     def g2_of(self, size):
    ...         return self.lam * np.maximum(size - 1.0, 0.0)
    ...
    ...     def slope_of(self, size):
    ...         return np.where(size > 1.0, self.lam, 0.0)
    ...
    ...     def candidates(self, size, t):
    ...         return [np.clip(size - t * self.lam, 0.0, 1.0), np.maximum(size, 1.0)]
    >>> Capped(0.5).prox(np.array([0.3, 4.0]), 1.0)
    array([0., 4.])
    """

    @abstractmethod
    def g_of(self, size: Array) -> Array:
        """Return g of one entry as a function of s = |xᵢ|, not as g1 − g2, which cancel for large s."""

    @abstractmethod
    def g2_of(self, size: Array) -> Array:
        """Return g2 of one entry as a function of s = |xᵢ|."""

    @abstractmethod
    def slope_of(self, size: Array) -> Array:
        """Return g2′ of one entry as a function of s = |xᵢ|."""

    @abstractmethod
    def candidates(self, size: Array, t: float) -> list[Array]:
        """Return points s ≥ 0 that include the minimum of t·g(s) + ½(s − |u|)², the smaller first."""

    def g2(self, x: Array) -> float:
        return sum_of(self.g2_of(namespace(x).abs(x)))

    def value(self, x: Array) -> float:
        return sum_of(self.g_of(namespace(x).abs(x)))

    def subgradient_g2(self, x: Array) -> Array:
        xp = namespace(x)
        return xp.sign(x) * self.slope_of(xp.abs(x))

    def prox(self, u: Array, t: float) -> Array:
        # each piece of g has one candidate in closed form (Gong et al. 2013); take the best one for each entry
        xp = namespace(u)
        size = xp.abs(u)
        best, best_cost = zeros_like(u), 0.5 * size * size
        for s in self.candidates(size, t):
            cost = t * self.g_of(s) + 0.5 * (s - size) ** 2
            best = xp.where(cost < best_cost, s, best)
            best_cost = xp.where(cost < best_cost, cost, best_cost)
        return xp.sign(u) * best
