"""The top-(k,1) penalty (Gotoh, Takeda, Tono 2017)."""

from __future__ import annotations

from ksparse.base.arrays import Array, keep, namespace, norm_1, top_k
from ksparse.base.checks import check_integer
from ksparse.penalties.base import L1Based, check_weight
from ksparse.sets.whole_space import soft_threshold


class TopK1(L1Based):
    """ρ(‖x‖₁ − |||x|||_{k,1}), the second the sum of the k largest |xᵢ|: zero exactly on the k-sparse points."""

    k: int

    def __init__(self, rho: float, k: int) -> None:
        self.lam, self.k = check_weight(rho, "rho"), check_integer(k, "k", 1)

    @property
    def rho(self) -> float:
        """ρ, which is λ of the ℓ1 norm."""
        return self.lam

    def check_length(self, n: int) -> None:
        check_integer(self.k, "k", 1, n)

    def _largest(self, x: Array) -> Array:
        return top_k(namespace(x).abs(x), self.k)

    def g2(self, x: Array) -> float:
        return self.rho * norm_1(keep(x, self._largest(x)))

    def value(self, x: Array) -> float:
        return self.rho * norm_1(keep(x, ~self._largest(x)))  # the tail itself: no difference of two large sums

    def subgradient_g2(self, x: Array) -> Array:
        return self.rho * keep(namespace(x).sign(x), self._largest(x))

    def prox(self, u: Array, t: float) -> Array:
        # the cost of shrinking an entry grows with |uᵢ|, so the k largest are the ones to leave alone
        xp = namespace(u)
        return xp.where(self._largest(u), u, soft_threshold(u, self.rho * t))

    def __repr__(self) -> str:
        return f"TopK1({self.rho:g}, {self.k})"
