"""Quantile regression with a smoothed check loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from ksparse.losses.data_fit import DataFit
from ksparse.util.arrays import Array, Matrix, namespace, to_float64
from ksparse.util.checks import check_number
from ksparse.util.display import fill_docstrings

SMOOTH = 0.1  # default width, in standard deviations of the target


@fill_docstrings()
class Quantile(DataFit):
    """``Σᵢ wᵢ (τrᵢ + s·log(1 + exp(−rᵢ/s)))``, r = b − Ax: the check loss of the τ-quantile, smoothed.

    The check loss is smoothed over a width s around its kink; this adds at most s·log 2 per row.

    Parameters
    ----------
    {A, b, sample_weight, ridge}
    tau : float, default=0.5
        τ, the quantile, between 0 and 1; 0.5 for the median.
    width : float or None, default=None
        s > 0; None for a tenth of the target's standard deviation.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 20))
    >>> b = A[:, 4] - A[:, 7] + 0.1 * rng.standard_t(2, 60)
    >>> ks.minimize(ks.Quantile(A, b, tau=0.9), 2).support
    array([4, 7])
    """

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
        self.tau = check_number(tau, "tau", above=0, below=1)
        spread = float(np.std(to_float64(self.b)))
        self.width = SMOOTH * (spread or 1.0) if width is None else check_number(width, "width", above=0)
        self.steepest = 0.25 / self.width

    def h(self, image: Array) -> Array:
        xp, r = namespace(image), self.b - image
        return self.tau * r + self.width * xp.logaddexp(xp.zeros_like(r), -r / self.width)

    def slope(self, image: Array) -> Array:
        return 0.5 * (1.0 + namespace(image).tanh(0.5 * (image - self.b) / self.width)) - self.tau

    def bend(self, image: Array) -> Array:
        t = namespace(image).tanh(0.5 * (image - self.b) / self.width)
        return self.steepest * (1.0 - t * t)
