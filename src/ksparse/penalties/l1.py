"""The ℓ1 norm."""

from __future__ import annotations

from ksparse.penalties.base import L1Based, check_weight
from ksparse.util.arrays import Array


class L1(L1Based):
    """``λ‖x‖₁``: g₁ = λ‖x‖₁, g₂ = 0.

    Parameters
    ----------
    lam : float
        λ > 0, the weight.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> x = np.array([0.5, -4.0])
    >>> ks.L1(2.0).value(x)
    9.0
    """

    def __init__(self, lam: float) -> None:
        self.lam = check_weight(lam)

    def prox(self, u: Array, t: float) -> Array:
        return self.prox_g1(u, t)
