"""The ℓ1 norm."""

from __future__ import annotations

from ksparse.base.arrays import Array
from ksparse.penalties.base import L1Based, check_weight


class L1(L1Based):
    """λ‖x‖₁: g1 = λ‖x‖₁, g2 = 0."""

    def __init__(self, lam: float) -> None:
        self.lam = check_weight(lam)

    def prox(self, u: Array, t: float) -> Array:
        return self.prox_g1(u, t)
