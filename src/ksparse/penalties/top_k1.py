"""The top-(k,1) penalty (Gotoh, Takeda, Tono 2017)."""

from __future__ import annotations

from ksparse.penalties.base import L1Based, check_weight
from ksparse.sets.base import soft_threshold
from ksparse.util.arrays import Array, namespace, norm_1, without_largest
from ksparse.util.checks import check_integer


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

    def __init__(self, rho: float, k: int) -> None:
        self.lam, self.k = check_weight(rho, "rho"), check_integer(k, "k", 1)

    @property
    def rho(self) -> float:
        """ρ, which is λ of the ℓ1 norm."""
        return self.lam

    def check_length(self, n: int) -> None:
        check_integer(self.k, "k", 1, n)

    def shared(self, x: Array) -> Array:
        """Return all but the k largest entries."""
        return without_largest(x, self.k)

    def g2(self, x: Array) -> float:
        return self.rho * norm_1(x - self.shared(x))

    def value(self, x: Array) -> float:
        return self.value_with(x, self.shared(x))

    def subgradient_g2(self, x: Array) -> Array:
        return self.subgradient_with(x, self.shared(x))

    def value_with(self, x: Array, shared: Array) -> float:
        return self.rho * norm_1(shared)  # no difference of two large sums

    def subgradient_with(self, x: Array, shared: Array) -> Array:
        return self.rho * namespace(x).sign(x - shared)

    def prox(self, u: Array, t: float) -> Array:
        # the cost of shrinking an entry grows with |uᵢ|, so the k largest are the ones to leave alone
        xp = namespace(u)
        return xp.where(self.shared(u) == 0, u, soft_threshold(u, self.rho * t))

    def __repr__(self) -> str:
        return f"TopK1({self.rho:g}, {self.k})"
