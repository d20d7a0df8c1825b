"""Gamma and Tweedie losses with the log link, for amounts: insurance claims, rainfall, durations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ksparse.losses.data_fit import DataFit
from ksparse.util.arrays import Array, Matrix, namespace, to_float64
from ksparse.util.checks import check_number


class Tweedie(DataFit):
    """``Σᵢ wᵢ (μᵢ^(2−p)/(2−p) − yᵢμᵢ^(1−p)/(1−p))``, μ = exp(Ax), y ≥ 0, 1 < p < 2: half the deviance up to a constant.

    For p = 1 that is `Poisson`, for p = 2 `Gamma`; beyond 2 it is not convex. Its gradient has no global Lipschitz constant.

    Parameters
    ----------
    A : array, scipy.sparse, data by blocks, or any object with shape, @ and .T
        The data, one row per observation; its dtype and device are those of x.
    y : array-like
        Amounts, at or above 0.
    sample_weight : array-like or None, default=None
        One weight per row, at or above 0.
    ridge : float or array-like, default=0.0
        ρ, one number or one per variable.
    power : float, default=1.5
        p, between 1 and 2: the variance is the mean to this power.

    Raises
    ------
    ValueError, TypeError
        If the data are not finite, do not fit each other, or are no numbers; the message names the argument.

    See Also
    --------
    Gamma : Amounts above 0.
    Poisson : Counts.

    Examples
    --------
    >>> import numpy as np
    >>> import ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 20))
    >>> mean = np.exp(A[:, 4] - A[:, 7])
    >>> y = np.array([rng.gamma(1.0, 1.0, rng.poisson(2.0 * m)).sum() for m in mean])  # sums of claims, some of none
    >>> ks.minimize(ks.Tweedie(A, y, power=1.5), 2).support
    array([4, 7])
    """

    skip_self_check = True
    steepest = math.inf
    target = "y"

    def __init__(self, A: Matrix, y: Any, sample_weight: Any = None, ridge: Any = 0.0, *, power: float = 1.5) -> None:
        super().__init__(A, y, sample_weight, ridge)
        self.power = check_number(power, "power", above=1.0)
        if self.power >= 2.0:
            raise ValueError(f"power must lie between 1 (Poisson) and 2 (Gamma), got {self.power:g}")
        xp = namespace(self.b)
        if float(xp.min(self.b)) < 0:
            raise ValueError(f"y must hold amounts >= 0, got {float(xp.min(self.b)):g}")
        # beyond it exp continues as its tangent: see `Poisson`
        self.cap = 300.0 if float(xp.finfo(self.b.dtype).eps) < 1e-10 else 40.0

    @property
    def least(self) -> float:  # type: ignore[override]
        """Each term at μ = y."""
        y, p = to_float64(self.b), self.power
        terms = y ** (2.0 - p) / (2.0 - p) + y ** (2.0 - p) / (p - 1.0)
        return float(np.sum(terms if self.weight is None else to_float64(self.weight) * terms))

    def _exp(self, exponent: Array) -> Array:
        xp = namespace(exponent)
        return xp.exp(xp.where(exponent > self.cap, xp.full_like(exponent, self.cap), exponent))

    def _beyond(self, exponent: Array) -> Array:
        """exp, as its tangent beyond the cap."""
        xp = namespace(exponent)
        return self._exp(exponent) * (1.0 + xp.where(exponent > self.cap, exponent - self.cap, xp.zeros_like(exponent)))

    def h(self, image: Array) -> Array:
        p = self.power
        return self._beyond((2.0 - p) * image) / (2.0 - p) + self.b * self._beyond((1.0 - p) * image) / (p - 1.0)

    def slope(self, image: Array) -> Array:
        return self._exp((2.0 - self.power) * image) - self.b * self._exp((1.0 - self.power) * image)

    def bend(self, image: Array) -> Array:
        p = self.power
        return (2.0 - p) * self._exp((2.0 - p) * image) + (p - 1.0) * self.b * self._exp((1.0 - p) * image)

    def lipschitz(self) -> float:
        return math.inf


class Gamma(Tweedie):
    """``Σᵢ wᵢ ((Ax)ᵢ + yᵢexp(−(Ax)ᵢ))``, y > 0: half the deviance of amounts whose standard deviation grows with their mean, log link.

    Its gradient has no global Lipschitz constant.

    Parameters
    ----------
    A : array, scipy.sparse, data by blocks, or any object with shape, @ and .T
        The data, one row per observation; its dtype and device are those of x.
    y : array-like
        Amounts, above 0.
    sample_weight : array-like or None, default=None
        One weight per row, at or above 0.
    ridge : float or array-like, default=0.0
        ρ, one number or one per variable.

    Raises
    ------
    ValueError, TypeError
        If the data are not finite, do not fit each other, or are no numbers; the message names the argument.

    See Also
    --------
    Tweedie : Amounts of which some are 0.

    Examples
    --------
    >>> import numpy as np
    >>> import ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 20))
    >>> y = rng.gamma(2.0, np.exp(A[:, 4] - A[:, 7]))
    >>> ks.minimize(ks.Gamma(A, y), 2).support
    array([4, 7])
    """

    skip_self_check = True

    def __init__(self, A: Matrix, y: Any, sample_weight: Any = None, ridge: Any = 0.0) -> None:
        super().__init__(A, y, sample_weight, ridge)
        lowest = float(namespace(self.b).min(self.b))
        if lowest <= 0:
            raise ValueError(f"y must hold amounts > 0, got {lowest:g}: for zeros use Tweedie")

    @property
    def least(self) -> float:  # type: ignore[override]
        """Each term at its own amount."""
        terms = 1.0 + np.log(to_float64(self.b))
        return float(np.sum(terms if self.weight is None else to_float64(self.weight) * terms))

    def h(self, image: Array) -> Array:
        return image + self.b * self._beyond(-image)

    def slope(self, image: Array) -> Array:
        return 1.0 - self.b * self._exp(-image)

    def bend(self, image: Array) -> Array:
        return self.b * self._exp(-image)
