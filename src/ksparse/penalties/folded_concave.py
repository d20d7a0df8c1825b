"""Penalties that grow like λ|xᵢ| near 0 and more slowly for large entries: capped ℓ1, log-sum, MCP and SCAD."""

from __future__ import annotations

from typing import ClassVar

from ksparse.penalties.base import Separable
from ksparse.sets.base import positive_part
from ksparse.util.arrays import Array, at_least, namespace, norm_inf
from ksparse.util.checks import check_number


class FoldedConcave(Separable):
    """A separable penalty with weight λ and shape θ."""

    theta_above: ClassVar[float] = 0.0

    def __init__(self, lam: float, theta: float) -> None:
        self.lam, self.theta = check_number(lam, "lam", above=0), check_number(theta, "theta", above=self.theta_above)


class CappedL1(FoldedConcave):
    """``λ Σ min(|xᵢ|, θ)``: g₁ = ``λ‖x‖₁``, g₂ = ``λ Σ max(|xᵢ| − θ, 0)`` (Zhang 2010).

    Parameters
    ----------
    lam : float
        λ > 0, the weight.
    theta : float
        θ > 0, the absolute value beyond which the penalty is constant.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> x = np.array([0.5, -4.0])
    >>> ks.CappedL1(2.0, 1.0).value(x)
    3.0
    """

    def g_of(self, size: Array) -> Array:
        return self.lam * namespace(size).clip(size, 0.0, self.theta)

    def g2_of(self, size: Array) -> Array:
        return self.lam * positive_part(size - self.theta)

    def slope_of(self, size: Array) -> Array:
        return self.lam * namespace(size).astype(size > self.theta, size.dtype)

    def candidates(self, size: Array, t: float) -> list[Array]:
        return [namespace(size).clip(size - t * self.lam, 0.0, self.theta), at_least(size, self.theta)]


class LogSum(FoldedConcave):
    """``λ Σ log(1 + |xᵢ|/θ)``: g₁ = ``(λ/θ)‖x‖₁``, g₂ = ``λ Σ (|xᵢ|/θ − log(1 + |xᵢ|/θ))`` (Candès, Wakin, Boyd 2008).

    The paper's Table 1 has ``λ‖x‖₁`` in both parts. Its g₂ then has the slope λ(1 − 1/θ) at 0 and is not convex for
    θ < 1; with λ/θ it is convex, and smooth at 0, for every θ > 0. The difference g is the same.

    Parameters
    ----------
    lam : float
        λ > 0, the weight.
    theta : float
        θ > 0, the scale of the logarithm.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> x = np.array([0.5, -4.0])
    >>> round(ks.LogSum(1.0, 1.0).value(x), 4)
    2.0149
    """

    @property
    def weight(self) -> float:
        return self.lam / self.theta

    def g_of(self, size: Array) -> Array:
        return self.lam * namespace(size).log1p(size / self.theta)

    def g2_of(self, size: Array) -> Array:
        ratio = size / self.theta
        return self.lam * (ratio - namespace(size).log1p(ratio))

    def slope_of(self, size: Array) -> Array:
        return self.lam * (1.0 / self.theta - 1.0 / (self.theta + size))

    def candidates(self, size: Array, t: float) -> list[Array]:
        # stationary points solve (s − |u|)(θ + s) + tλ = 0; the larger root is the minimum, the smaller a maximum
        half = 0.5 * (size - self.theta)
        discriminant = half * half + size * self.theta - t * self.lam
        return [positive_part(half + namespace(size).sqrt(positive_part(discriminant)))]

    def weight_max(self, gradient: Array) -> float:
        return self.theta * norm_inf(gradient)


class MCP(FoldedConcave):
    """``λ|xᵢ| − xᵢ²/(2θ)`` up to θλ, constant beyond, θ > 0: the minimax concave penalty (Zhang 2010).

    g₁ = ``λ‖x‖₁``; g₂ is ``xᵢ²/(2θ)`` up to θλ, ``λ|xᵢ| − θλ²/2`` beyond.

    Parameters
    ----------
    lam : float
        λ > 0, the weight.
    theta : float
        θ > 0: the penalty is constant beyond θλ.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> x = np.array([0.5, -4.0])
    >>> ks.MCP(1.0, 2.0).value(x)
    1.4375
    """

    def g_of(self, size: Array) -> Array:
        c = namespace(size).clip(size, 0.0, self.theta * self.lam)
        return self.lam * c - c * c / (2.0 * self.theta)

    def g2_of(self, size: Array) -> Array:
        c = namespace(size).clip(size, 0.0, self.theta * self.lam)
        return c * c / (2.0 * self.theta) + self.lam * (size - c)

    def slope_of(self, size: Array) -> Array:
        return namespace(size).clip(size, 0.0, self.theta * self.lam) / self.theta

    def candidates(self, size: Array, t: float) -> list[Array]:
        flat = self.theta * self.lam
        found = [at_least(size, flat)]
        if self.theta > t:  # else the first piece is concave and its ends, 0 and θλ, are best
            found.insert(0, namespace(size).clip((size - t * self.lam) / (1.0 - t / self.theta), 0.0, flat))
        return found


class SCAD(FoldedConcave):
    """``λ|xᵢ|`` up to λ, concave up to θλ, constant beyond, θ > 2: smoothly clipped absolute deviation (Fan, Li 2001).

    g₁ = ``λ‖x‖₁``; g₂ is 0 up to λ, ``(|xᵢ| − λ)²/(2(θ − 1))`` up to θλ, ``λ|xᵢ| − (θ + 1)λ²/2`` beyond.

    Parameters
    ----------
    lam : float
        λ > 0, the weight.
    theta : float
        θ > 2: the penalty is constant beyond θλ.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> x = np.array([0.5, -4.0])
    >>> ks.SCAD(1.0, 3.0).value(x)
    2.5
    """

    theta_above = 2.0

    def g_of(self, size: Array) -> Array:
        c = namespace(size).clip(size, 0.0, self.theta * self.lam)
        return self.lam * c - positive_part(c - self.lam) ** 2 / (2.0 * (self.theta - 1.0))

    def g2_of(self, size: Array) -> Array:
        # with c = clip(s, λ, θλ), all three branches are the middle one at c plus the slope λ beyond
        c = namespace(size).clip(size, self.lam, self.theta * self.lam)
        return (c - self.lam) ** 2 / (2.0 * (self.theta - 1.0)) + self.lam * positive_part(size - c)

    def slope_of(self, size: Array) -> Array:
        return (namespace(size).clip(size, self.lam, self.theta * self.lam) - self.lam) / (self.theta - 1.0)

    def candidates(self, size: Array, t: float) -> list[Array]:
        xp, flat = namespace(size), self.theta * self.lam
        found = [xp.clip(size - t * self.lam, 0.0, self.lam)]
        if self.theta - 1.0 > t:  # else the middle piece is concave and its ends, which the other pieces hold, are best
            middle = (size * (self.theta - 1.0) - t * flat) / (self.theta - 1.0 - t)
            found.append(xp.clip(middle, self.lam, flat))
        return [*found, at_least(size, flat)]
