"""Capped ℓ1 (Zhang 2010)."""

from __future__ import annotations

from ksparse.penalties.base import Separable, check_weight, positive_part
from ksparse.util.arrays import Array, namespace
from ksparse.util.checks import check_number


class CappedL1(Separable):
    """``λ Σ min(|xᵢ|, θ)``: g₁ = ``λ‖x‖₁``, g₂ = ``λ Σ max(|xᵢ| − θ, 0)`` (Zhang 2010).

    Parameters
    ----------
    lam : float
        λ > 0, the weight.
    theta : float
        θ > 0, the size beyond which nothing more is charged.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> x = np.array([0.5, -4.0])
    >>> ks.CappedL1(2.0, 1.0).value(x)
    3.0
    """

    def __init__(self, lam: float, theta: float) -> None:
        self.lam, self.theta = check_weight(lam), check_number(theta, "theta", above=0)

    def g_of(self, size: Array) -> Array:
        return self.lam * namespace(size).clip(size, 0.0, self.theta)

    def g2_of(self, size: Array) -> Array:
        return self.lam * positive_part(size - self.theta)

    def slope_of(self, size: Array) -> Array:
        xp = namespace(size)
        return xp.where(size > self.theta, xp.full_like(size, self.lam), xp.zeros_like(size))

    def candidates(self, size: Array, t: float) -> list[Array]:
        xp = namespace(size)
        return [
            xp.clip(size - t * self.lam, 0.0, self.theta),
            xp.where(size > self.theta, size, xp.full_like(size, self.theta)),
        ]
