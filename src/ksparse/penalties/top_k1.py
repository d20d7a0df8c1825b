"""The top-(k,1) penalty (Gotoh, Takeda, Tono 2017)."""

from __future__ import annotations

from ksparse.base.arrays import Array, drop, keep, namespace, norm_1
from ksparse.base.checks import check_integer
from ksparse.base.largest import top_k
from ksparse.penalties.base import L1Based, check_weight
from ksparse.sets.whole_space import soft_threshold


class TopK1(L1Based):
    """``ρ(‖x‖₁ − |||x|||_{k,1})``, the second the sum of the k largest sizes: zero exactly on the k-sparse points.

    It is that of Gotoh, Takeda and Tono (2017).

    Parameters
    ----------
    rho : float
        ρ > 0, the weight.
    k : int
        Nonzeros that cost nothing.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> x = np.array([0.5, -4.0])
    >>> ks.TopK1(1.0, 1).value(x)
    0.5
    """

    k: int

    shares = True

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
        return self._tail(x, self._largest(x))

    def subgradient_g2(self, x: Array) -> Array:
        return self._slope(x, self._largest(x))

    def at(self, x: Array) -> tuple[float, Array]:
        largest = self._largest(x)
        return self._tail(x, largest), self._slope(x, largest)

    def _tail(self, x: Array, largest: Array) -> float:
        return self.rho * norm_1(drop(x, largest))  # itself: no difference of two large sums

    def _slope(self, x: Array, largest: Array) -> Array:
        return self.rho * keep(namespace(x).sign(x), largest)

    def prox(self, u: Array, t: float) -> Array:
        # the cost of shrinking an entry grows with |uᵢ|, so the k largest are the ones to leave alone
        xp = namespace(u)
        return xp.where(self._largest(u), u, soft_threshold(u, self.rho * t))

    def __repr__(self) -> str:
        return f"TopK1({self.rho:g}, {self.k})"
