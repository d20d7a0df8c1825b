"""What dropping, adding and swapping variables does to the best value on a support: all of it from one factorisation.

For ½xᵀHx − rᵀx under Ex = f on the support S write K = [H_SS E_Sᵀ; E_S 0], d = [r_S; f], u = K⁻¹d, so the best value is
q(S) = −½dᵀu. For members j let κ_j = (K⁻¹)_jj, for any i let b_i = [H_Si; E_i], w_i = K⁻¹b_i, h_i = H_ii − b_iᵀw_i, s_i = r_i − b_iᵀu. Then

    drop j         raises q by  u_j²/(2κ_j)
    add i          lowers q by  s_i²/(2h_i)
    swap j for i   lowers q by  (s_i²κ_j + 2 s_i w_ij u_j − u_j²h_i) / (2(h_iκ_j + w_ij²))

The last is add after drop, with κ_j multiplied out: it holds for κ_j = 0 too, where j alone meets an equation and cannot go
without a successor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ksparse.sets.base import Vector


@dataclass(frozen=True)
class Factor:
    """K⁻¹ and what follows from it, for one support."""

    inverse: Vector  # K⁻¹
    u: Vector  # [x_S; multipliers]
    W: Vector  # K⁻¹[H_S·; E], one column per variable
    h: Vector  # h_i for every variable, 0 where i adds nothing new
    s: Vector  # s_i for every variable
    value: float  # q(S), without the model's constant
    k: int

    @property
    def x(self) -> Vector:
        """x_S."""
        return self.u[: self.k]

    @property
    def kappa(self) -> Vector:
        """κ_j of the members."""
        return np.diag(self.inverse)[: self.k]


def factor(rows: Vector, support: Vector, E: Vector, f: Vector, r: Vector, diagonal: Vector, shift: float = 0.0) -> Factor:
    """The factorisation on a support; rows = H[support, :]; `shift` adds shift·I to H (the multiplier of a ball)."""
    k = support.size
    H = rows[:, support]
    if shift:
        H = H + shift * np.eye(k)
    K = np.block([[H, E[:, support].T], [E[:, support], np.zeros((f.size, f.size))]])
    inverse = _inverse(K)
    d = np.concatenate([r[support], f])
    u = inverse @ d
    B = np.vstack([rows, E]) if f.size else rows
    W = inverse @ B
    own = diagonal + shift
    h = own - np.einsum("ij,ij->j", B, W)
    h[h <= 1e-10 * np.abs(own)] = 0.0
    h[support] = 0.0
    return Factor(inverse, u, W, h, r - u @ B, -0.5 * float(d @ u), k)


def _inverse(K: Vector) -> Vector:
    """K⁻¹, or the pseudo-inverse where K is singular: duplicate columns, more variables than rows."""
    if not K.size:
        return K
    scale = float(np.abs(K).max())
    if scale == 0.0:
        return np.zeros_like(K)
    try:
        inverse = np.linalg.inv(K / scale)
        if float(np.abs(inverse).max()) < 1e12:
            return np.asarray(inverse / scale)
    except np.linalg.LinAlgError:
        pass
    return np.asarray(np.linalg.pinv(K, rcond=1e-11, hermitian=True))


def add_gains(factor: Factor) -> Vector:
    """By how much each variable would lower q as a new member; −∞ where it adds nothing new."""
    useful = factor.h > 0
    gains = np.full(factor.h.size, -np.inf)
    gains[useful] = factor.s[useful] ** 2 / (2.0 * factor.h[useful])
    return gains


def drop_losses(factor: Factor) -> Vector:
    """By how much q would rise without each member; ∞ where an equation needs it."""
    kappa = factor.kappa
    needed = kappa <= 1e-14 * np.abs(kappa).max(initial=0.0)
    return np.where(needed, np.inf, factor.x**2 / (2.0 * np.where(needed, 1.0, kappa)))


def swap_gains(factor: Factor, outsiders: Vector) -> Vector:
    """By how much each exchange of a member (row) for an outsider (column) would lower q; 0 where the exchange is not possible."""
    W = factor.W[: factor.k, outsiders]
    h, s = factor.h[outsiders], factor.s[outsiders]
    kappa, x = factor.kappa, factor.x
    # few passes over the table, each in place: the outer products come as one product of rank two
    gains = np.column_stack([kappa, -x * x]) @ np.vstack([s * s, h])
    denominator = np.outer(2.0 * kappa, h)
    size = float(np.abs(denominator).max(initial=0.0)) + 1.0
    gains += (2.0 * x)[:, None] * W * s
    W *= W  # a copy, by its indices
    W *= 2.0
    denominator += W
    denominator[denominator <= 2e-12 * size] = np.inf  # nothing to gain where the exchange is not possible
    gains /= denominator
    return np.asarray(gains)
