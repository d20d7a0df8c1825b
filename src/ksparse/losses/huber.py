"""Huber loss: least squares for small residuals, absolute values for large ones."""

from __future__ import annotations

from typing import Any

from ksparse.losses.data_fit import DataFit
from ksparse.util.arrays import Array, Matrix, at_least, copy_with, namespace
from ksparse.util.checks import check_number
from ksparse.util.display import fill_docstrings

SHARP = 1e-3  # of the majorant's curvature, used in place of a second derivative of 0


@fill_docstrings()
class Huber(DataFit):
    """``Σᵢ wᵢ h((Ax)ᵢ − bᵢ)``, ``h(r) = ½r²`` for ``|r| ≤ δ`` and ``δ|r| − ½δ²`` beyond: robust to outliers.

    Parameters
    ----------
    {A, b}
    delta : float
        δ > 0, the residual above which the loss is linear.
    {sample_weight, ridge}

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 20))
    >>> b = A[:, :3] @ [1.0, -2.0, 1.5] + 0.1 * rng.standard_normal(60)
    >>> b[:3] += 100.0  # outliers
    >>> ks.minimize(ks.Huber(A, b, delta=0.5), 3).support
    array([0, 1, 2])
    """

    least = 0.0  # no term is negative

    def __init__(self, A: Matrix, b: Any, delta: float, sample_weight: Any = None, ridge: Any = 0.0) -> None:
        super().__init__(A, b, sample_weight, ridge)
        self.delta = check_number(delta, "delta", above=0)
        self._beyond = 1.0  # fraction of the majorant's curvature used beyond δ

    def h(self, image: Array) -> Array:
        # with c = clip(r, −δ, δ), both branches are ½c² + δ(|r| − |c|)
        xp = namespace(image)
        c = self.slope(image)
        return 0.5 * c * c + self.delta * (xp.abs(image - self.b) - xp.abs(c))

    def slope(self, image: Array) -> Array:
        return namespace(image).clip(image - self.b, -self.delta, self.delta)

    def bend(self, image: Array) -> Array:
        # beyond δ h″ is 0, which gives no step length; use the curvature h′(r)/r of the quadratic majorant at r
        xp = namespace(image)
        size = xp.abs(image - self.b)
        majorant = self._beyond * self.delta / at_least(size, self.delta)
        return xp.where(size > self.delta, majorant, xp.ones_like(size))

    def with_exact_hessian(self) -> Huber:
        # nearly h″: a variable whose rows are all outliers keeps a little curvature
        return copy_with(self, _beyond=SHARP)
