"""Smoothly clipped absolute deviation (Fan, Li 2001)."""

from __future__ import annotations

from ksparse.penalties.base import Separable, check_weight, positive_part
from ksparse.util.arrays import Array, namespace
from ksparse.util.checks import check_number


class SCAD(Separable):
    """``λ|xᵢ|`` up to λ, then bending until it is flat beyond θλ, θ > 2 (Fan, Li 2001).

    g₁ = ``λ‖x‖₁``; g₂ is 0 up to λ, ``(|xᵢ| − λ)²/(2(θ − 1))`` up to θλ, ``λ|xᵢ| − (θ + 1)λ²/2`` beyond.

    Parameters
    ----------
    lam : float
        λ > 0, the weight.
    theta : float
        θ > 2, in units of λ where it is flat.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> x = np.array([0.5, -4.0])
    >>> ks.SCAD(1.0, 3.0).value(x)
    2.5
    """

    def __init__(self, lam: float, theta: float) -> None:
        self.lam, self.theta = check_weight(lam), check_number(theta, "theta", above=2)

    def g_of(self, size: Array) -> Array:
        c = namespace(size).clip(size, 0.0, self.theta * self.lam)
        return self.lam * c - positive_part(c - self.lam) ** 2 / (2.0 * (self.theta - 1.0))

    def g2_of(self, size: Array) -> Array:
        # with c = clip(s, λ, θλ): the middle branch at c plus the slope λ beyond is all three branches at once
        xp = namespace(size)
        c = xp.clip(size, self.lam, self.theta * self.lam)
        beyond = xp.where(size > c, size - c, xp.zeros_like(size))
        return (c - self.lam) ** 2 / (2.0 * (self.theta - 1.0)) + self.lam * beyond

    def slope_of(self, size: Array) -> Array:
        return (namespace(size).clip(size, self.lam, self.theta * self.lam) - self.lam) / (self.theta - 1.0)

    def candidates(self, size: Array, t: float) -> list[Array]:
        xp = namespace(size)
        flat = self.theta * self.lam
        found = [xp.clip(size - t * self.lam, 0.0, self.lam)]
        if self.theta - 1.0 > t:  # else the middle piece is concave and its ends, which the other pieces hold, are best
            middle = (size * (self.theta - 1.0) - t * flat) / (self.theta - 1.0 - t)
            found.append(xp.clip(middle, self.lam, flat))
        return [*found, xp.where(size > flat, size, xp.full_like(size, flat))]
