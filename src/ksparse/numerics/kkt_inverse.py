"""Gains of dropping, adding and swapping variables of a support, from one inverse.

For ½xᵀHx − rᵀx under Ex = f on the support S write K = [H_SS E_Sᵀ; E_S 0], d = [r_S; f], u = K⁻¹d, so the best value is
q(S) = −½dᵀu. For j in S let κ_j = (K⁻¹)_jj, for any i let b_i = [H_Si; E_i], w_i = K⁻¹b_i, h_i = H_ii − b_iᵀw_i, s_i =
r_i − b_iᵀu. Then

    drop j         raises q by  u_j²/(2κ_j)
    add i          lowers q by  s_i²/(2h_i)
    swap j for i   lowers q by  ½((s_i + vy)²/(h_i + v²) − y²)   with v = w_ij/√κ_j, y = u_j/√κ_j

The last is an add after a drop, and s_i + vy has the sign of the entering variable. If κ_j = 0, some equation has only
j on the support, so j cannot leave unless i takes its place: the limit is (2 s_i w_ij u_j − u_j²h_i)/(2w_ij²). By the
Cauchy–Schwarz inequality no swap gains more than its entering variable would alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from ksparse.numerics.constraints import unit_rows, unit_scales
from ksparse.util.arrays import Vector

PART = 2**17  # entries of a table that are computed at a time
FLAT = 1e-12  # h + v² (at most 1 for variables of unit curvature) below which a variable adds nothing new


def add_gains(s: Vector, h: Vector, least: Vector | float) -> Vector:
    """Return by how much each variable would lower q; 0 where h is at most `least`, and so rounding."""
    gains: Vector = s / np.sqrt(np.where(h > least, h, np.inf))  # first: squares may overflow
    gains *= gains
    gains *= 0.5
    return gains


def bounded_gains(pull: Vector, curvature: Vector, least: Vector, low: Vector, high: Vector) -> Vector:
    """Return the gains of variables within bounds: the maximum of pull·t − ½curvature·t² over low ≤ t ≤ high."""
    with np.errstate(over="ignore"):
        t = np.clip(pull / np.maximum(curvature, least), low, high)
    return np.asarray(np.where(curvature <= least, 0.0, t * (pull - 0.5 * curvature * t)))


def drop_losses(x: Vector, kappa: Vector, needed: Vector | None) -> Vector:
    """Return by how much q would rise without each variable; ∞ where it is `needed` (None: nowhere)."""
    losses: Vector = x / np.sqrt(2.0 * (kappa if needed is None else np.where(needed, 1.0, kappa)))
    losses *= losses
    if needed is not None:
        losses[needed] = np.inf
    return losses


def swap_gains(
    x: Vector, kappa: Vector, W: Vector, s: Vector, h: Vector, needed: Vector | None, least: float = 0.0
) -> tuple[Vector, Vector]:
    """Return the gain of each swap of a variable of the support (row) for another (column), and its s + vy.

    Rows of `needed` variables (None: there are none) are −∞; h + v² is at least `least`. W is overwritten.
    """
    root = np.sqrt(kappa if needed is None else np.where(needed, 1.0, kappa))
    y = x / root
    W /= root[:, None]
    pull: Vector = W * y[:, None]
    pull += s
    W *= W
    W += h
    gains: Vector = pull / np.sqrt(np.maximum(W, least, out=W) if least else W)
    gains *= gains
    gains -= (y * y)[:, None]
    gains *= 0.5
    if needed is not None and needed.any():
        gains[needed] = -np.inf
    return gains, pull


def swap_terms(
    x: Vector, kappa: Vector, W: Vector, s: Vector, h: Vector, needed: Vector | None
) -> tuple[Vector, Vector, Vector]:
    """Return s and h of entering variables (columns) once one of the support (row) has left, and its loss."""
    safe = kappa if needed is None else np.where(needed, 1.0, kappa)
    return W * (x / safe)[:, None] + s, W * W / safe[:, None] + h, drop_losses(x, kappa, needed)


@dataclass(frozen=True)
class KKTInverse:
    """K⁻¹ and the gains of one support, in variables scaled to a unit diagonal of H, on which gains do not depend."""

    inverse: Vector  # K⁻¹
    u: Vector  # [x_S; multipliers]
    B: Vector  # [H_S·; E], one column per variable
    h: Vector  # h_i for every variable, 0 where i lies in the span of the support
    s: Vector  # s_i for every variable, 0 where it is rounding
    value: float  # q(S), without the model's constant
    k: int
    singular: bool  # whether the variables are dependent: then the gains rank, but prove nothing

    @classmethod
    def of(
        cls, rows: Vector, support: Vector, E: Vector, f: Vector, r: Vector, diagonal: Vector, shift: float = 0.0
    ) -> KKTInverse:
        """Return the inverse for a support; rows = H[support, :] are scaled in place; `shift` is added to the diagonal.

        k × n numbers are held once: products with B are made for some columns at a time.
        """
        k, unit = support.size, unit_scales(diagonal + shift)
        rows /= unit
        rows /= unit[support][:, None]
        E, f, _ = unit_rows(E / unit, f)
        r = r / unit
        H = rows[:, support]
        if shift:
            H = H + np.diag(shift / unit[support] ** 2)
        inverse, singular = _inverse(np.block([[H, E[:, support].T], [E[:, support], np.zeros((f.size, f.size))]]))
        d = np.concatenate([r[support], f])
        u = inverse @ d
        B = np.vstack([rows, E]) if f.size else rows
        h = (diagonal + shift) / unit**2
        for part in parts(B.shape[1], len(B)):
            h[part] -= np.einsum("ij,ij->j", B[:, part], inverse @ B[:, part])
        h[h <= 1e-10] = 0.0
        h[support] = 0.0
        s = r - u @ B
        s[np.abs(s) <= 1e-10 * max(float(np.abs(r).max()), float(np.abs(u).max(initial=0.0)))] = 0.0
        s[support] = 0.0
        return cls(inverse, u, B, h, s, -0.5 * float(d @ u), k, singular)

    @property
    def x(self) -> Vector:
        """x_S, scaled."""
        return self.u[: self.k]

    @property
    def kappa(self) -> Vector:
        """κ_j of the support."""
        return np.diag(self.inverse)[: self.k]

    @property
    def needed(self) -> Vector:
        """Mask of the variables of the support that an equation needs."""
        return np.asarray(self.kappa <= max(1e-12, 1e-14 * np.abs(self.kappa).max(initial=0.0)))

    def adds(self) -> Vector:
        """Return the gain of each variable, ∞ where it has a slope and no curvature."""
        gains = add_gains(self.s, self.h, 1e-300)
        gains[(self.h <= 0) & (self.s != 0)] = np.inf
        return gains

    def drops(self) -> Vector:
        """Return the loss of each variable of the support."""
        return drop_losses(self.x, self.kappa, self.needed)

    def swaps(self, entering: Vector) -> tuple[Vector, Vector]:
        """Return the gain of each swap, and a number with the sign that the entering variable would have."""
        W, s, h, needed = self.inverse[: self.k] @ self.B[:, entering], self.s[entering], self.h[entering], self.needed
        alone, flat = np.flatnonzero(needed), W * W + np.outer(self.kappa, h) <= FLAT
        succeeded = W[alone]
        with np.errstate(over="ignore"):
            gains, pull = swap_gains(self.x, self.kappa, W.copy(), s, h, needed, 1e-300)
        if alone.size:
            safe = np.where(succeeded == 0, 1.0, succeeded)
            x = self.x[alone][:, None]
            gains[alone] = (x * s) / safe - 0.5 * x * x * h / (safe * safe)
            pull[alone] = safe * x
        if flat.any():  # i is dependent on the others even without j: no gain, or no curvature
            top = np.outer(self.kappa, s * s) + 2.0 * self.x[:, None] * W * s - np.outer(self.x**2, h)
            gains[flat] = np.where(top[flat] > 0, np.inf, -np.inf)
        return gains, pull


def parts(n: int, height: int, room: int | None = None) -> Iterator[slice]:
    """Yield slices of n columns of a table, few enough that the part stays in the processor's cache."""
    width = max(1, (room or PART) // max(1, height))
    return (slice(begin, min(begin + width, n)) for begin in range(0, n, width))


def _inverse(K: Vector) -> tuple[Vector, bool]:
    """Return K⁻¹, or the pseudo-inverse if K is singular (as for duplicate columns), and whether it is."""
    if not K.size:
        return K, False
    with suppress(np.linalg.LinAlgError):
        inverse = np.linalg.inv(K)
        if float(np.abs(inverse).max()) < 1e10:
            return inverse, False
    return np.asarray(np.linalg.pinv(K, rcond=1e-11, hermitian=True)), True
