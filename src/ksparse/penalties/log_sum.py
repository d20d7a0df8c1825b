"""Log-sum penalty (Candès, Wakin, Boyd 2008)."""

from __future__ import annotations

from ksparse.penalties.base import Separable, check_weight, positive_part
from ksparse.util.arrays import Array, namespace, norm_inf
from ksparse.util.checks import check_number


class LogSum(Separable):
    """``λ Σ log(1 + |xᵢ|/θ)``: g₁ = ``(λ/θ)‖x‖₁``, g₂ = ``λ Σ (|xᵢ|/θ − log(1 + |xᵢ|/θ))``.

    The paper's Table 1 has ``λ‖x‖₁`` in both parts. Its g₂ then has the slope λ(1 − 1/θ) at 0 and is not convex for θ < 1; with λ/θ it is
    convex, and smooth at 0, for every θ > 0. The difference g is the same.

    Parameters
    ----------
    lam : float
        λ > 0, the weight.
    theta : float
        θ > 0, how soon the logarithm bends.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> x = np.array([0.5, -4.0])
    >>> round(ks.LogSum(1.0, 1.0).value(x), 4)
    2.0149
    """

    def __init__(self, lam: float, theta: float) -> None:
        self.lam, self.theta = check_weight(lam), check_number(theta, "theta", above=0)

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
        # stationary: (s − |u|)(θ + s) + tλ = 0; the larger root is the minimum, the smaller a maximum
        xp = namespace(size)
        half = 0.5 * (size - self.theta)
        discriminant = half * half + size * self.theta - t * self.lam
        return [positive_part(half + xp.sqrt(positive_part(discriminant)))]

    def weight_max(self, gradient: Array) -> float:
        return self.theta * norm_inf(gradient)
