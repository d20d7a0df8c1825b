"""What a penalty is: g = g1 − g2, both convex, g1 with a cheap prox, g2 with a cheap subgradient (paper, Table 1).

The prox of the whole g, which GIST and nmAPG need, is closed-form for every penalty here on the whole space.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import Any, Self

from ksparse.sets.base import ConvexSet, soft_threshold
from ksparse.util.arrays import Array, namespace, norm_1, norm_inf, sum_of, zero_outside, zeros_like
from ksparse.util.checks import check_number


class Penalty(ABC):
    """g = g₁ − g₂, both convex: the base of every penalty.

    A penalty of your own writes `g1`, `g2`, `subgradient_g2`, `prox_g1`, `prox_g1_on`, `prox` and `weight_max`; a sum over entries derives
    from `Separable`, which needs less.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> penalty = ks.MCP(1.0, 2.0)
    >>> x = np.array([0.5, -4.0])
    >>> penalty.value(x) == penalty.g1(x) - penalty.g2(x)
    True
    """

    smooth_curvature: float | None = None  # where g1 is smooth, the Lipschitz constant of its gradient: then it joins f
    k: int | None = None  # where g is 0 on the k-sparse points
    lam: float | None = None  # λ, where g1 has λ‖x‖₁ in it, so that a large one keeps x at 0
    constraint: bool = False  # whether g is the constraint ‖x‖₀ ≤ k itself, 0 or ∞
    indicators: bool = False  # whether g lives on indicators beside x

    @abstractmethod
    def g1(self, x: Array) -> float:
        """The first convex part."""

    def g2(self, x: Array) -> float:
        """The second convex part; 0 where g is convex."""
        return 0.0

    def subgradient_g2(self, x: Array) -> Array:
        """One element of ∂g2(x)."""
        return zeros_like(x)

    @abstractmethod
    def prox_g1(self, u: Array, t: float) -> Array:
        """argmin t·g1(x) + ½‖x − u‖²."""

    @abstractmethod
    def prox_g1_on(self, C: ConvexSet, u: Array, t: float) -> Array:
        """The prox of t·g1 + I_C; of I_C alone where g1 is smooth and has joined f."""

    @abstractmethod
    def prox(self, u: Array, t: float) -> Array:
        """One element of argmin t·g(x) + ½‖x − u‖²: the prox of the whole."""

    @abstractmethod
    def weight_max(self, gradient: Array) -> float:
        """The smallest weight at which 0 is stationary, given ∇φ(0): at 0 the proximal DC step then stays at 0."""

    def value(self, x: Array) -> float:
        """g(x)."""
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

    def squared_norm_with(self, x: Array, shared: Any) -> tuple[float, Array] | None:
        """Return c and v with g(x) = c·‖v‖², given `shared(x)`; None where g has another form."""
        return None

    def gradient_g1(self, x: Array) -> Array:
        """∇g1(x), where `smooth_curvature` is given."""
        raise NotImplementedError(f"g1 of {type(self).__name__} is not smooth")

    def plus_gradient_g1(self, gradient: Array, x: Array) -> Array:
        """A gradient and ∇g1(x), likewise."""
        return gradient + self.gradient_g1(x)

    def enter(self, C: ConvexSet, x: Array) -> Array:
        """The point of dom g1 ∩ C that a run started at x begins from."""
        return C.project(x)

    def supports(self, C: ConvexSet) -> bool:
        """Whether the prox of g1 + I_C is closed-form."""
        return True

    def with_lam(self, lam: float) -> Self:
        """The same penalty with another λ, where it has one."""
        raise NotImplementedError(f"{type(self).__name__} has no λ")

    def check_length(self, n: int) -> None:  # noqa: B027  # most penalties take any length
        """Refuse a number of variables this penalty cannot have."""


class NoPenalty(Penalty):
    """g = 0: what is left is min φ over C."""

    smooth_curvature = 0.0

    def g1(self, x: Array) -> float:
        return 0.0

    def gradient_g1(self, x: Array) -> Array:
        return zeros_like(x)

    def prox_g1(self, u: Array, t: float) -> Array:
        return u

    def prox_g1_on(self, C: ConvexSet, u: Array, t: float) -> Array:
        return C.project(u)

    def prox(self, u: Array, t: float) -> Array:
        return u

    def weight_max(self, gradient: Array) -> float:
        return 0.0


class Whole(Penalty):
    """Another penalty regrouped as (g, 0): its g1 is the whole g, its g2 is 0. GIST and nmAPG see every penalty so."""

    def __init__(self, penalty: Penalty) -> None:
        self.penalty = penalty

    def g1(self, x: Array) -> float:
        return self.penalty.value(x)

    def prox_g1(self, u: Array, t: float) -> Array:
        return self.penalty.prox(u, t)

    def prox_g1_on(self, C: ConvexSet, u: Array, t: float) -> Array:
        return self.penalty.prox(u, t)  # C is the whole space: `Problem.whole` sees to it

    def prox(self, u: Array, t: float) -> Array:
        return self.penalty.prox(u, t)

    def weight_max(self, gradient: Array) -> float:
        return self.penalty.weight_max(gradient)


class L1Based(Penalty):
    """A penalty with g1 = w‖x‖₁; on a set C its prox is that set's `shrink`."""

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
        """The same penalty with another λ."""
        twin = copy(self)
        twin.lam = check_weight(lam)
        return twin

    def __repr__(self) -> str:
        theta = getattr(self, "theta", None)
        return f"{type(self).__name__}({self.lam:g}{'' if theta is None else f', {theta:g}'})"


class Separable(L1Based):
    """A penalty that is a sum over the entries, given by functions of ``s = |xᵢ|`` for g, g₂, g₂′ and the candidates of its prox.

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
        """g of one entry, as a function of s = |xᵢ| ≥ 0: not the difference of its parts, which are large where s is."""

    @abstractmethod
    def g2_of(self, size: Array) -> Array:
        """g2 of one entry, as a function of s = |xᵢ| ≥ 0."""

    @abstractmethod
    def slope_of(self, size: Array) -> Array:
        """g2′ of one entry, as a function of s = |xᵢ| ≥ 0."""

    @abstractmethod
    def candidates(self, size: Array, t: float) -> list[Array]:
        """Points s ≥ 0 among which the best for t·g(s) + ½(s − |u|)² lies, the smaller first."""

    def g2(self, x: Array) -> float:
        xp = namespace(x)
        return sum_of(self.g2_of(xp.abs(x)))

    def value(self, x: Array) -> float:
        xp = namespace(x)
        return sum_of(self.g_of(xp.abs(x)))

    def subgradient_g2(self, x: Array) -> Array:
        xp = namespace(x)
        return xp.sign(x) * self.slope_of(xp.abs(x))

    def prox(self, u: Array, t: float) -> Array:
        # each piece of g has one candidate in closed form (Gong et al. 2013); the best of them, entry by entry
        xp = namespace(u)
        size = xp.abs(u)
        best, best_cost = zeros_like(u), 0.5 * size * size
        for s in self.candidates(size, t):
            cost = t * self.g_of(s) + 0.5 * (s - size) ** 2
            best = xp.where(cost < best_cost, s, best)
            best_cost = xp.where(cost < best_cost, cost, best_cost)
        return xp.sign(u) * best


def check_weight(value: float, name: str = "lam") -> float:
    """A penalty weight, > 0."""
    return check_number(value, name, above=0)


def positive_part(x: Array) -> Array:
    """max(x, 0)."""
    return zero_outside(x, x > 0)
