"""ℓ1−2 (Yin, Lou, He, Xin 2015)."""

from __future__ import annotations

from ksparse.penalties.base import L1Based, check_weight
from ksparse.sets.base import soft_threshold
from ksparse.util.arrays import Array, larger, namespace, norm, norm_inf, top_k, zero_outside


class L1MinusL2(L1Based):
    """``λ(‖x‖₁ − ‖x‖₂)``: g₁ = ``λ‖x‖₁``, g₂ = ``λ‖x‖₂`` (its subgradient at 0 is taken to be 0; Yin, Lou, He, Xin 2015).

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
    >>> round(ks.L1MinusL2(1.0).value(x), 4)
    0.4689
    """

    def __init__(self, lam: float) -> None:
        self.lam = check_weight(lam)

    def g2(self, x: Array) -> float:
        return self.lam * norm(x)

    def subgradient_g2(self, x: Array) -> Array:
        least = float(namespace(x).finfo(x.dtype).smallest_normal)
        return (self.lam * x) / larger(norm(x), least)  # 0 at 0

    def prox(self, u: Array, t: float) -> Array:
        # Lou, Yan 2018, Lemma 1: shrink, then stretch by the shrinkage; below the threshold the largest entry alone stays
        t = t * self.lam
        if norm_inf(u) > t:
            v = soft_threshold(u, t)
            return v * (1.0 + t / norm(v))
        return zero_outside(u, top_k(namespace(u).abs(u), 1))
