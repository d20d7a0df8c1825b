"""Logistic loss for two classes."""

from __future__ import annotations

from typing import Any

from ksparse.losses.data_fit import DataFit
from ksparse.util.arrays import Array, Matrix, namespace
from ksparse.util.display import fill_docstrings


@fill_docstrings()
class Logistic(DataFit):
    """``Σᵢ wᵢ log(1 + exp(−yᵢ(Ax)ᵢ))``, labels y in {−1, 1} or {0, 1}.

    Parameters
    ----------
    {A}
    y : array-like
        Labels, −1 and 1 or 0 and 1.
    {sample_weight, ridge}

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 20))
    >>> y = np.sign(A[:, 0] - A[:, 1] + 0.3 * rng.standard_normal(60))
    >>> ks.minimize(ks.Logistic(A, y, ridge=0.1), 2).support
    array([0, 1])
    """

    least = 0.0  # no term is negative
    steepest = 0.25
    target = "y"

    def __init__(self, A: Matrix, y: Any, sample_weight: Any = None, ridge: Any = 0.0) -> None:
        super().__init__(A, y, sample_weight, ridge)
        xp = namespace(self.b)
        if bool(xp.all((self.b == 0) | (self.b == 1))):
            self.b = 2.0 * self.b - 1.0
        elif not bool(xp.all((self.b == -1) | (self.b == 1))):
            raise ValueError("y must hold labels in {-1, 1} or in {0, 1}")

    def h(self, image: Array) -> Array:
        xp = namespace(image)
        return xp.logaddexp(xp.zeros_like(image), -self.b * image)

    def slope(self, image: Array) -> Array:
        return -0.5 * self.b * (1.0 - namespace(image).tanh(0.5 * self.b * image))

    def bend(self, image: Array) -> Array:
        t = namespace(image).tanh(0.5 * image)
        return 0.25 * (1.0 - t * t)
