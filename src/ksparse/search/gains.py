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

from ksparse.base.arrays import Vector
from ksparse.linalg.scaling import unit_rows, unit_scales


@dataclass(frozen=True)
class Factor:
    """K⁻¹ and what follows from it, for one support, in variables scaled to a unit diagonal of H: gains do not depend on units."""

    inverse: Vector  # K⁻¹
    u: Vector  # [x_S; multipliers]
    W: Vector  # K⁻¹[H_S·; E], one column per variable
    h: Vector  # h_i for every variable, 0 where i lies in the span of the members
    s: Vector  # s_i for every variable, 0 where it is rounding
    value: float  # q(S), without the model's constant
    k: int
    singular: bool  # whether the members are dependent: then the gains rank, but prove nothing

    @property
    def x(self) -> Vector:
        """x_S, scaled; its signs are those of x_S."""
        return self.u[: self.k]

    @property
    def kappa(self) -> Vector:
        """κ_j of the members."""
        return np.diag(self.inverse)[: self.k]


def factor(rows: Vector, support: Vector, E: Vector, f: Vector, r: Vector, diagonal: Vector, shift: float = 0.0) -> Factor:
    """The factorisation on a support; rows = H[support, :]; `shift` adds shift·I to H (the multiplier of a ball)."""
    k = support.size
    unit = unit_scales(diagonal + shift)
    rows = rows / unit
    rows /= unit[support][:, None]
    E, f, _ = unit_rows(E / unit, f)
    r = r / unit
    H = rows[:, support]
    if shift:
        H = H + np.diag(shift / unit[support] ** 2)
    K = np.block([[H, E[:, support].T], [E[:, support], np.zeros((f.size, f.size))]])
    inverse, singular = _inverse(K)
    d = np.concatenate([r[support], f])
    u = inverse @ d
    B = np.vstack([rows, E]) if f.size else rows
    W = inverse @ B
    h = (diagonal + shift) / unit**2 - np.einsum("ij,ij->j", B, W)
    h[h <= 1e-10] = 0.0
    h[support] = 0.0
    s = r - u @ B
    s[np.abs(s) <= 1e-10 * max(float(np.abs(r).max()), float(np.abs(u).max(initial=0.0)))] = 0.0
    s[support] = 0.0
    return Factor(inverse, u, W, h, s, -0.5 * float(d @ u), k, singular)


def _inverse(K: Vector) -> tuple[Vector, bool]:
    """K⁻¹, or the pseudo-inverse where K is singular (duplicate columns, more variables than rows), and whether it is."""
    if not K.size:
        return K, False
    try:
        inverse = np.linalg.inv(K)
        if float(np.abs(inverse).max()) < 1e10:
            return inverse, False
    except np.linalg.LinAlgError:
        pass
    return np.asarray(np.linalg.pinv(K, rcond=1e-11, hermitian=True)), True


def add_gains(factor: Factor) -> Vector:
    """By how much each variable would lower q as a new member: 0 where it adds nothing new, ∞ where nothing would hold it."""
    useful = factor.h > 0
    gains = np.where(factor.s != 0, np.inf, 0.0)
    gains[useful] = factor.s[useful] ** 2 / (2.0 * factor.h[useful])
    return gains


def drop_losses(factor: Factor) -> Vector:
    """By how much q would rise without each member; ∞ where an equation needs it."""
    kappa = factor.kappa
    needed = kappa <= 1e-14 * np.abs(kappa).max(initial=0.0)
    return np.where(needed, np.inf, factor.x**2 / (2.0 * np.where(needed, 1.0, kappa)))


def swap_gains(factor: Factor, outsiders: Vector) -> Vector:
    """By how much each exchange of a member (row) for an outsider (column) would lower q; −∞ where the exchange is not possible."""
    W = factor.W[: factor.k, outsiders]
    h, s = factor.h[outsiders], factor.s[outsiders]
    kappa, x = factor.kappa, factor.x
    # few passes over the table, each in place: the outer products come as one product of rank two
    gains = np.column_stack([kappa, -x * x]) @ np.vstack([s * s, h])
    denominator = np.outer(2.0 * kappa, h)
    gains += (2.0 * x)[:, None] * W * s
    W *= W  # a copy, by its indices
    W *= 2.0
    denominator += W
    impossible = denominator <= 1e-12
    if impossible.any():  # dependent without j: nothing to gain, or nothing to hold it
        gains[impossible] = np.where(gains[impossible] > 0, np.inf, -np.inf)
        denominator[impossible] = 1.0
    gains /= denominator
    return np.asarray(gains)
