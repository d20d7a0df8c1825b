"""Losses with the log link μ = exp(Ax): Poisson and negative binomial for counts, Gamma and Tweedie for amounts."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np

from ksparse.losses.data_fit import DataFit
from ksparse.util.arrays import Array, Matrix, Vector, epsilon, namespace, to_float64
from ksparse.util.checks import check_number
from ksparse.util.display import fill_docstrings


class LogLink(DataFit):
    """A negative log-likelihood with mean exp(Ax), whose gradient has no global Lipschitz constant."""

    steepest = math.inf
    target = "y"

    def __init__(self, A: Matrix, y: Any, sample_weight: Any = None, ridge: Any = 0.0) -> None:
        super().__init__(A, y, sample_weight, ridge)
        # beyond the cap exp continues as its tangent, so that a trial step far uphill stays finite, convex and
        # rejected; copies in double precision keep the cap
        self.cap = 300.0 if epsilon(self.b) < 1e-10 else 40.0

    @property
    def least(self) -> float:  # type: ignore[override]
        """Sum of the minima of the terms."""
        return self._weighted_sum(self._minima(to_float64(self.b)))

    @abstractmethod
    def _minima(self, y: Vector) -> Vector:
        """Return the minimum of each term."""

    def _exp(self, exponent: Array) -> Array:
        """Return exp, constant beyond the cap."""
        xp = namespace(exponent)
        return xp.exp(xp.where(exponent > self.cap, xp.full_like(exponent, self.cap), exponent))

    def _exp_with_tangent(self, exponent: Array) -> Array:
        """Return exp, continued as its tangent beyond the cap."""
        xp = namespace(exponent)
        return self._exp(exponent) * (1.0 + xp.where(exponent > self.cap, exponent - self.cap, xp.zeros_like(exponent)))


@fill_docstrings()
class Poisson(LogLink):
    """``Σᵢ wᵢ (exp((Ax)ᵢ) − yᵢ(Ax)ᵢ)``, counts y ≥ 0: the negative log-likelihood up to a constant.

    Its gradient has no global Lipschitz constant.

    Parameters
    ----------
    {A}
    y : array-like
        Counts >= 0.
    {sample_weight, ridge}

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 20))
    >>> y = rng.poisson(np.exp(A[:, 4] - A[:, 7]))
    >>> ks.minimize(ks.Poisson(A, y), 2).support
    array([4, 7])
    """

    def __init__(self, A: Matrix, y: Any, sample_weight: Any = None, ridge: Any = 0.0) -> None:
        super().__init__(A, y, sample_weight, ridge)
        self._require_target("counts >= 0")

    def _minima(self, y: Vector) -> Vector:
        return np.asarray(y - y * np.log(np.where(y > 0, y, 1.0)))

    def h(self, image: Array) -> Array:
        return self._exp_with_tangent(image) - self.b * image

    def slope(self, image: Array) -> Array:
        return self._exp(image) - self.b

    def bend(self, image: Array) -> Array:
        return self._exp(image)


@fill_docstrings()
class NegativeBinomial(DataFit):
    """``Σᵢ wᵢ ((yᵢ + θ)·log(θ + exp((Ax)ᵢ)) − yᵢ(Ax)ᵢ)``, counts y ≥ 0: the negative log-likelihood up to a constant.

    The mean is μ = exp(Ax), the variance μ + μ²/θ.

    Parameters
    ----------
    {A}
    y : array-like
        Counts >= 0.
    {sample_weight, ridge}
    theta : float, default=1.0
        θ > 0. The limit θ → ∞ is Poisson.

    See Also
    --------
    Poisson : Counts whose variance is their mean.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 20))
    >>> y = rng.poisson(rng.gamma(2.0, 2.0 * np.exp(A[:, 4] - A[:, 7])))
    >>> ks.minimize(ks.NegativeBinomial(A, y, theta=2.0), 2).support
    array([4, 7])
    """

    target = "y"

    def __init__(self, A: Matrix, y: Any, sample_weight: Any = None, ridge: Any = 0.0, *, theta: float = 1.0) -> None:
        super().__init__(A, y, sample_weight, ridge)
        self.theta = check_number(theta, "theta", above=0)
        self._require_target("counts >= 0")
        self.steepest = 0.25 * (float(namespace(self.b).max(self.b)) + self.theta)

    @property
    def least(self) -> float:  # type: ignore[override]
        """Sum of the minima of the terms, each at the mean y."""
        y = to_float64(self.b)
        return self._weighted_sum((y + self.theta) * np.log(y + self.theta) - y * np.log(np.where(y > 0, y, 1.0)))

    def _share(self, image: Array) -> Array:
        """Return μ/(θ + μ)."""
        return 0.5 * (1.0 + namespace(image).tanh(0.5 * (image - math.log(self.theta))))

    def h(self, image: Array) -> Array:
        xp = namespace(image)
        return (self.b + self.theta) * xp.logaddexp(image, xp.full_like(image, math.log(self.theta))) - self.b * image

    def slope(self, image: Array) -> Array:
        return (self.b + self.theta) * self._share(image) - self.b

    def bend(self, image: Array) -> Array:
        share = self._share(image)
        return (self.b + self.theta) * share * (1.0 - share)


@fill_docstrings()
class Tweedie(LogLink):
    """``Σᵢ wᵢ (μᵢ^(2−p)/(2−p) − yᵢμᵢ^(1−p)/(1−p))``, μ = exp(Ax), y ≥ 0, 1 < p < 2: half the deviance up to a constant.

    For p = 1 it is `Poisson`, for p = 2 `Gamma`; for p > 2 it is not convex. Its gradient has no global Lipschitz
    constant.

    Parameters
    ----------
    {A}
    y : array-like
        Amounts >= 0.
    {sample_weight, ridge}
    power : float, default=1.5
        p, between 1 and 2: the variance is proportional to the mean to this power.

    See Also
    --------
    Gamma : Amounts > 0.
    Poisson : Counts.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 20))
    >>> mean = np.exp(A[:, 4] - A[:, 7])
    >>> y = np.array([rng.gamma(1.0, 1.0, rng.poisson(2.0 * m)).sum() for m in mean])  # sums of claims, some of none
    >>> ks.minimize(ks.Tweedie(A, y, power=1.5), 2).support
    array([4, 7])
    """

    def __init__(self, A: Matrix, y: Any, sample_weight: Any = None, ridge: Any = 0.0, *, power: float = 1.5) -> None:
        super().__init__(A, y, sample_weight, ridge)
        self.power = check_number(power, "power", above=1.0)
        if self.power >= 2.0:
            raise ValueError(f"power must lie between 1 (Poisson) and 2 (Gamma), got {self.power:g}")
        self._require_target("amounts >= 0")

    def _minima(self, y: Vector) -> Vector:
        p = self.power
        return np.asarray(y ** (2.0 - p) / (2.0 - p) + y ** (2.0 - p) / (p - 1.0))

    def h(self, image: Array) -> Array:
        up, down = 2.0 - self.power, 1.0 - self.power
        return self._exp_with_tangent(up * image) / up - self.b * self._exp_with_tangent(down * image) / down

    def slope(self, image: Array) -> Array:
        return self._exp((2.0 - self.power) * image) - self.b * self._exp((1.0 - self.power) * image)

    def bend(self, image: Array) -> Array:
        p = self.power
        return (2.0 - p) * self._exp((2.0 - p) * image) + (p - 1.0) * self.b * self._exp((1.0 - p) * image)


@fill_docstrings()
class Gamma(LogLink):
    """``Σᵢ wᵢ ((Ax)ᵢ + yᵢexp(−(Ax)ᵢ))``, y > 0: half the deviance of Gamma distributed amounts, log link.

    Its gradient has no global Lipschitz constant.

    Parameters
    ----------
    {A}
    y : array-like
        Amounts > 0.
    {sample_weight, ridge}

    See Also
    --------
    Tweedie : Amounts of which some are 0.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 20))
    >>> y = rng.gamma(2.0, np.exp(A[:, 4] - A[:, 7]))
    >>> ks.minimize(ks.Gamma(A, y), 2).support
    array([4, 7])
    """

    def __init__(self, A: Matrix, y: Any, sample_weight: Any = None, ridge: Any = 0.0) -> None:
        super().__init__(A, y, sample_weight, ridge)
        self._require_target("amounts > 0 (for zeros use Tweedie)", positive=True)

    def _minima(self, y: Vector) -> Vector:
        return np.asarray(1.0 + np.log(y))

    def h(self, image: Array) -> Array:
        return image + self.b * self._exp_with_tangent(-image)

    def slope(self, image: Array) -> Array:
        return 1.0 - self.b * self._exp(-image)

    def bend(self, image: Array) -> Array:
        return self.b * self._exp(-image)
