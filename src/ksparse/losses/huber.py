"""Huber loss: least squares for small residuals, absolute values for large ones."""

from __future__ import annotations

from typing import Any

from ksparse.losses.data_fit import DataFit
from ksparse.util.arrays import Array, Matrix, copy_with, namespace
from ksparse.util.checks import check_number

SHARP = 1e-3  # of the majorant's curvature, where the second derivative is 0


class Huber(DataFit):
    """``Σᵢ wᵢ h((Ax)ᵢ − bᵢ)``, ``h(r) = ½r²`` for ``|r| ≤ δ`` and ``δ|r| − ½δ²`` beyond: outliers pull less.

    Parameters
    ----------
    A : array, scipy.sparse, data by blocks, or any object with shape, @ and .T
        The data, one row per observation; its dtype and device are those of x.
    b : array-like
        What Ax is to be near, one entry per row.
    delta : float
        δ > 0, the size of residual from which on the loss is linear.
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
    >>> b[:3] += 100.0  # outliers
    >>> ks.minimize(ks.Huber(A, b, delta=0.5), 3).support
    array([0, 1, 2])
    """

    skip_self_check = True
    least = 0.0  # no term is negative

    def __init__(self, A: Matrix, b: Any, delta: float, sample_weight: Any = None, ridge: Any = 0.0) -> None:
        super().__init__(A, b, sample_weight, ridge)
        self.delta = check_number(delta, "delta", above=0)
        self._beyond = 1.0  # of the majorant's curvature beyond δ

    def h(self, image: Array) -> Array:
        # with c = clip(r, −δ, δ): ½c² + δ(|r| − |c|) is both branches at once
        xp = namespace(image)
        r = image - self.b
        c = self.slope(image)
        return 0.5 * c * c + self.delta * (xp.abs(r) - xp.abs(c))

    def slope(self, image: Array) -> Array:
        return namespace(image).clip(image - self.b, -self.delta, self.delta)

    def bend(self, image: Array) -> Array:
        # h″ is 0 beyond δ, which says nothing about how far to step; the quadratic majorant at r has h′(r)/r
        xp = namespace(image)
        size = xp.abs(image - self.b)
        return xp.where(
            size > self.delta,
            self._beyond * self.delta / xp.maximum(size, xp.full_like(size, self.delta)),
            xp.ones_like(size),
        )

    def with_exact_hessian(self) -> Huber:
        # not quite h″: what has outliers alone still bends a little
        sharp: Huber = copy_with(self, _beyond=SHARP)
        return sharp
