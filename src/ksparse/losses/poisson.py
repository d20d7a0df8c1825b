"""Poisson loss with the log link, for counts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ksparse.losses.data_fit import DataFit
from ksparse.util.arrays import Array, Matrix, namespace, to_float64


class Poisson(DataFit):
    """``Σᵢ wᵢ (exp((Ax)ᵢ) − yᵢ(Ax)ᵢ)``, counts y ≥ 0: the negative log-likelihood up to a constant.

    Its gradient has no global Lipschitz constant: step rules that need one say so.

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
    >>> b = A[:, :3] @ [1.0, -2.0, 1.5] + 0.1 * rng.standard_normal(60)
    >>> y = rng.poisson(np.exp(A[:, 4] - A[:, 7]))
    >>> ks.minimize(ks.Poisson(A, y), 2).support
    array([4, 7])
    """

    skip_self_check = True
    steepest = math.inf
    target = "y"

    def __init__(self, A: Matrix, y: Any, sample_weight: Any = None, ridge: Any = 0.0) -> None:
        super().__init__(A, y, sample_weight, ridge)
        xp = namespace(self.b)
        if float(xp.min(self.b)) < 0:
            raise ValueError(f"y must hold counts >= 0, got {float(xp.min(self.b)):g}")
        # beyond it exp continues as its tangent: a trial step far uphill stays finite, convex and refused; the same for copies in double
        self.cap = 300.0 if float(xp.finfo(self.b.dtype).eps) < 1e-10 else 40.0

    @property
    def least(self) -> float:  # type: ignore[override]
        """Σ wᵢ(yᵢ − yᵢ log yᵢ), and 0 for yᵢ = 0: the least of each term."""
        y = to_float64(self.b)
        return float(
            np.sum(
                to_float64(self._weighted(self.b))
                - to_float64(self._weighted(self.b)) * np.log(np.where(y > 0, y, 1.0))
            )
        )

    def _exp(self, image: Array) -> Array:
        xp = namespace(image)
        return xp.exp(xp.where(image > self.cap, xp.full_like(image, self.cap), image))

    def h(self, image: Array) -> Array:
        xp = namespace(image)
        past = xp.where(image > self.cap, image - self.cap, xp.zeros_like(image))
        return self._exp(image) * (1.0 + past) - self.b * image

    def slope(self, image: Array) -> Array:
        return self._exp(image) - self.b

    def bend(self, image: Array) -> Array:
        return self._exp(image)

    def lipschitz(self) -> float:
        return math.inf
