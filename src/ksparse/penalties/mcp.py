"""Minimax concave penalty (Zhang 2010)."""

from __future__ import annotations

from ksparse.penalties.base import Separable, check_weight
from ksparse.util.arrays import Array, namespace
from ksparse.util.checks import check_number


class MCP(Separable):
    """``λ|xᵢ| − xᵢ²/(2θ)`` up to θλ, constant beyond, θ > 0: the minimax concave penalty (Zhang 2010).

    g₁ = ``λ‖x‖₁``; g₂ is ``xᵢ²/(2θ)`` up to θλ, ``λ|xᵢ| − θλ²/2`` beyond.

    Parameters
    ----------
    lam : float
        λ > 0, the weight.
    theta : float
        θ > 0, in units of λ where it is flat.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> x = np.array([0.5, -4.0])
    >>> ks.MCP(1.0, 2.0).value(x)
    1.4375
    """

    def __init__(self, lam: float, theta: float) -> None:
        self.lam, self.theta = check_weight(lam), check_number(theta, "theta", above=0)

    def g_of(self, size: Array) -> Array:
        c = namespace(size).clip(size, 0.0, self.theta * self.lam)
        return self.lam * c - c * c / (2.0 * self.theta)

    def g2_of(self, size: Array) -> Array:
        xp = namespace(size)
        c = xp.clip(size, 0.0, self.theta * self.lam)
        return c * c / (2.0 * self.theta) + self.lam * (size - c)

    def slope_of(self, size: Array) -> Array:
        return namespace(size).clip(size, 0.0, self.theta * self.lam) / self.theta

    def candidates(self, size: Array, t: float) -> list[Array]:
        xp = namespace(size)
        flat = self.theta * self.lam
        found = []
        if self.theta > t:  # else the first piece is concave and its ends, 0 and θλ, are best
            found.append(xp.clip((size - t * self.lam) / (1.0 - t / self.theta), 0.0, flat))
        return [*found, xp.where(size > flat, size, xp.full_like(size, flat))]
