"""The ℓ1 norm, and the difference of the ℓ1 and ℓ2 norms."""

from __future__ import annotations

from ksparse.penalties.base import L1Based
from ksparse.sets.base import soft_threshold
from ksparse.util.arrays import Array, larger, namespace, norm, norm_inf, top_k, zero_outside
from ksparse.util.checks import check_number


class L1(L1Based):
    """``λ‖x‖₁``: g₁ = λ‖x‖₁, g₂ = 0.

    Parameters
    ----------
    lam : float
        λ > 0, the weight.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> x = np.array([0.5, -4.0])
    >>> ks.L1(2.0).value(x)
    9.0
    """

    def __init__(self, lam: float) -> None:
        self.lam = check_number(lam, "lam", above=0)

    def prox(self, u: Array, t: float) -> Array:
        return self.prox_g1(u, t)


class L1MinusL2(L1):
    """``λ(‖x‖₁ − ‖x‖₂)``: g₁ = ``λ‖x‖₁``, g₂ = ``λ‖x‖₂``, with subgradient 0 at 0 (Yin, Lou, He, Xin 2015).

    Parameters
    ----------
    lam : float
        λ > 0, the weight.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> x = np.array([0.5, -4.0])
    >>> round(ks.L1MinusL2(1.0).value(x), 4)
    0.4689
    """

    def g2(self, x: Array) -> float:
        return self.lam * norm(x)

    def subgradient_g2(self, x: Array) -> Array:
        least = float(namespace(x).finfo(x.dtype).smallest_normal)
        return (self.lam * x) / larger(norm(x), least)  # 0 at 0

    def prox(self, u: Array, t: float) -> Array:
        # Lou, Yan 2018, Lemma 1: soft-threshold, then lengthen by the threshold; below it, keep the largest entry only
        t = t * self.lam
        if norm_inf(u) > t:
            v = soft_threshold(u, t)
            return v * (1.0 + t / norm(v))
        return zero_outside(u, top_k(namespace(u).abs(u), 1))
