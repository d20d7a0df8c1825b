"""Negative binomial loss with the log link, for counts that vary more than Poisson's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ksparse.losses.data_fit import DataFit
from ksparse.util.arrays import Array, Matrix, namespace, to_float64
from ksparse.util.checks import check_number


class NegativeBinomial(DataFit):
    """``Σᵢ wᵢ ((yᵢ + θ)·log(θ + exp((Ax)ᵢ)) − yᵢ(Ax)ᵢ)``, counts y ≥ 0: the negative log-likelihood up to a constant.

    The mean is μ = exp(Ax), the variance μ + μ²/θ.

    Parameters
    ----------
    A : array, scipy.sparse, data by blocks, or any object with shape, @ and .T
        The data, one row per observation; its dtype and device are those of x.
    y : array-like
        Counts, at or above 0.
    sample_weight : array-like or None, default=None
        One weight per row, at or above 0.
    ridge : float or array-like, default=0.0
        ρ, one number or one per variable.
    theta : float, default=1.0
        θ > 0: the larger, the nearer to Poisson.

    Raises
    ------
    ValueError, TypeError
        If the data are not finite, do not fit each other, or are no numbers; the message names the argument.

    See Also
    --------
    Poisson : Counts whose variance is their mean.

    Examples
    --------
    >>> import numpy as np
    >>> import ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 20))
    >>> y = rng.poisson(rng.gamma(2.0, 2.0 * np.exp(A[:, 4] - A[:, 7])))
    >>> ks.minimize(ks.NegativeBinomial(A, y, theta=2.0), 2).support
    array([4, 7])
    """

    skip_self_check = True
    target = "y"

    def __init__(self, A: Matrix, y: Any, sample_weight: Any = None, ridge: Any = 0.0, *, theta: float = 1.0) -> None:
        super().__init__(A, y, sample_weight, ridge)
        self.theta = check_number(theta, "theta", above=0)
        xp = namespace(self.b)
        if float(xp.min(self.b)) < 0:
            raise ValueError(f"y must hold counts >= 0, got {float(xp.min(self.b)):g}")
        self.steepest = 0.25 * (float(xp.max(self.b)) + self.theta)  # type: ignore[misc]

    @property
    def least(self) -> float:  # type: ignore[override]
        """Each term at the mean y."""
        y = to_float64(self.b)
        terms = (y + self.theta) * np.log(y + self.theta) - y * np.log(np.where(y > 0, y, 1.0))
        return float(np.sum(terms if self.weight is None else to_float64(self.weight) * terms))

    def _share(self, image: Array) -> Array:
        """μ/(θ + μ)."""
        return 0.5 * (1.0 + namespace(image).tanh(0.5 * (image - math.log(self.theta))))

    def h(self, image: Array) -> Array:
        xp = namespace(image)
        return (self.b + self.theta) * xp.logaddexp(image, xp.full_like(image, math.log(self.theta))) - self.b * image

    def slope(self, image: Array) -> Array:
        return (self.b + self.theta) * self._share(image) - self.b

    def bend(self, image: Array) -> Array:
        share = self._share(image)
        return (self.b + self.theta) * share * (1.0 - share)
