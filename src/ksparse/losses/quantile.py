"""Quantile regression, its kink smoothed."""

from __future__ import annotations

from typing import Any

import numpy as np

from ksparse.losses.data_fit import DataFit
from ksparse.util.arrays import Array, Matrix, namespace, to_float64
from ksparse.util.checks import check_number

SMOOTH = 0.1  # of the target's spread


class Quantile(DataFit):
    """``Σᵢ wᵢ (τrᵢ + s·log(1 + exp(−rᵢ/s)))``, r = b − Ax: the check loss of the τ-quantile, smoothed over a width s around its kink.

    It lies above the check loss by at most s·log 2 per row.

    Parameters
    ----------
    A : array, scipy.sparse, data by blocks, or any object with shape, @ and .T
        The data, one row per observation; its dtype and device are those of x.
    b : array-like
        What Ax is to be near, one entry per row.
    sample_weight : array-like or None, default=None
        One weight per row, at or above 0.
    ridge : float or array-like, default=0.0
        ρ, one number or one per variable.
    tau : float, default=0.5
        τ, the share of rows that are to lie below, between 0 and 1; 0.5 for the median.
    width : float or None, default=None
        s > 0; None for a tenth of the target's standard deviation.

    Raises
    ------
    ValueError, TypeError
        If the data are not finite, do not fit each other, or are no numbers; the message names the argument.

    Examples
    --------
    >>> import numpy as np
    >>> import ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 20))
    >>> b = A[:, 4] - A[:, 7] + 0.1 * rng.standard_t(2, 60)
    >>> ks.minimize(ks.Quantile(A, b, tau=0.9), 2).support
    array([4, 7])
    """

    skip_self_check = True
    least = 0.0  # no term is negative

    def __init__(
        self,
        A: Matrix,
        b: Any,
        sample_weight: Any = None,
        ridge: Any = 0.0,
        *,
        tau: float = 0.5,
        width: float | None = None,
    ) -> None:
        super().__init__(A, b, sample_weight, ridge)
        self.tau = check_number(tau, "tau", above=0)
        if self.tau >= 1.0:
            raise ValueError(f"tau must be a share between 0 and 1, got {self.tau:g}")
        spread = float(np.std(to_float64(self.b)))
        self.width = SMOOTH * (spread or 1.0) if width is None else check_number(width, "width", above=0)
        self.steepest = 0.25 / self.width  # type: ignore[misc]

    def h(self, image: Array) -> Array:
        xp, r = namespace(image), self.b - image
        return self.tau * r + self.width * xp.logaddexp(xp.zeros_like(r), -r / self.width)

    def slope(self, image: Array) -> Array:
        return 0.5 * (1.0 + namespace(image).tanh(0.5 * (image - self.b) / self.width)) - self.tau

    def bend(self, image: Array) -> Array:
        t = namespace(image).tanh(0.5 * (image - self.b) / self.width)
        return self.steepest * (1.0 - t * t)
