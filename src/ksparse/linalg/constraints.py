"""A polyhedron spelled out: bounds, inequalities, equations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ksparse.base.arrays import Vector, to_float64

ROUNDED = 1e-9  # of the terms of a row: broken by less is rounding
LOST = 1e-15  # of two numbers, where they are subtracted
ASIDE = 1e-12  # of the largest λ: a step to either side


@dataclass(frozen=True)
class Linear:
    """A polyhedron spelled out: lower ≤ x ≤ upper, Gx ≤ h, Ex = f, all float64. What `ConvexSet.as_linear` gives.

    `Linear.of(n, ...)` takes the parts that there are.

    Parameters
    ----------
    lower : array
        Least values.
    upper : array
        Greatest values.
    G : array
        Rows of the inequalities.
    h : array
        Their right-hand sides.
    E : array
        Rows of the equations.
    f : array
        Their right-hand sides.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> ks.Linear.of(2, lower=0.0, E=[[1.0, 1.0]], f=[1.0]).violation(np.array([0.5, 0.25]))
    0.25
    """

    lower: Vector
    upper: Vector
    G: Vector
    h: Vector
    E: Vector
    f: Vector

    @classmethod
    def of(cls, n: int, lower: Any = -np.inf, upper: Any = np.inf, G: Any = None, h: Any = None, E: Any = None, f: Any = None) -> Linear:
        """The polyhedron of the parts that are given."""

        def rows(M: Any, v: Any) -> tuple[Vector, Vector]:
            return (np.zeros((0, n)), np.zeros(0)) if M is None else (np.atleast_2d(M), np.atleast_1d(v))

        return cls(np.broadcast_to(to_float64(lower), n), np.broadcast_to(to_float64(upper), n), *rows(G, h), *rows(E, f))

    @property
    def equations_only(self) -> bool:
        """Whether there is no inequality and no bound."""
        return not (self.h.size or np.isfinite(self.lower).any() or np.isfinite(self.upper).any())

    @property
    def bounds_only(self) -> bool:
        """Whether no variable's room depends on another's."""
        return not (self.h.size or self.f.size)

    def on(self, support: Vector) -> Linear | None:
        """The polyhedron on a support, the other variables fixed to 0; None where a bound forbids that."""
        off = np.ones(self.lower.size, dtype=bool)
        off[support] = False
        if (self.lower[off] > 0).any() or (self.upper[off] < 0).any():
            return None
        return Linear(self.lower[support], self.upper[support], self.G[:, support], self.h, self.E[:, support], self.f)

    def above(self, floor: Vector | float) -> tuple[Vector, Vector]:
        """The bounds of variables that are at least their `floor` in size; one with room on both sides of 0 keeps its own."""
        lower = np.where(self.lower >= 0, np.maximum(self.lower, floor), self.lower)
        return lower, np.where((self.upper <= 0) & (self.lower < 0), np.minimum(self.upper, -floor), self.upper)

    def reachable(self, floor: Vector) -> Vector:
        """Return the floors, those that exceed a bound by no more than rounding lowered to the size of that bound."""
        for bound in (np.abs(self.lower), np.abs(self.upper)):
            floor = np.where((bound < floor) & (floor * (1.0 - ROUNDED) <= bound), bound, floor)
        return floor

    def without(self, shut: Vector) -> Linear:
        """The polyhedron with some variables (a mask) fixed to 0."""
        return Linear(np.where(shut, 0.0, self.lower), np.where(shut, 0.0, self.upper), self.G, self.h, self.E, self.f)

    def reach(self, lower: Vector, upper: Vector) -> tuple[Vector, Vector, Vector]:
        """What each variable brings at least to each row of G, and at least and at most to each row of E, between other bounds."""
        return contributions(self.G, lower, upper)[0], *contributions(self.E, lower, upper)

    @property
    def provably_empty(self) -> bool:
        """Whether some row or equation, or a row beside an equation, shows that there is no point; False says nothing."""
        return bool((self.lower > self.upper).any()) or Reach(self).misses(slice(None))

    def violation(self, x: Vector) -> float:
        """The largest amount by which one constraint is broken."""
        gaps = [self.lower - x, x - self.upper, self.G @ x - self.h, np.abs(self.E @ x - self.f)]
        return max(float(gap.max(initial=0.0)) for gap in gaps)

    def broken(self, x: Vector) -> float:
        """By how much the worst constraint is broken, relative to its own terms; of a bound those are itself and the largest of x."""
        size = np.abs(x)
        worst, top = 0.0, float(size.max(initial=0.0))
        for M, v, excess in (
            (self.G, self.h, self.G @ x - self.h),
            (self.E, self.f, np.abs(self.E @ x - self.f)),
            (None, self.lower, self.lower - x),
            (None, self.upper, x - self.upper),
        ):
            if (excess > 0).any():
                terms = np.maximum(np.abs(v), top if M is None else np.abs(M) @ size)
                worst = max(worst, float(np.max(excess[excess > 0] / terms[excess > 0])))
        return worst


class Reach:
    """What each variable between its bounds brings at least to every row and both sides of every equation: for looks at many supports."""

    def __init__(self, linear: Linear) -> None:
        self.linear, right = linear, np.concatenate([linear.h, linear.f, -linear.f])
        self.least = contributions(np.vstack([linear.G, linear.E, -linear.E]), linear.lower, linear.upper)[0]
        self.sure = self.least - ROUNDED * np.abs(self.least)  # without what may be rounding
        self.most = right + ROUNDED * np.abs(right)
        self.right = self.most[: linear.h.size]

    def misses(self, support: Vector | slice) -> bool:
        """Whether a row or an equation, or a row beside an equation, cannot be met on a support."""
        if (self.sure[:, support].sum(axis=1) > self.most).any():
            return True
        whole = self.linear
        if not (whole.h.size and whole.f.size):
            return False
        G, lower, upper = whole.G[:, support], whole.lower[support], whole.upper[support]
        return any((least_beside(G, e, f, lower, upper) > self.right).any() for e, f in zip(whole.E[:, support], whole.f, strict=True))


def least_beside(G: Vector, e: Vector, f: float, lower: Vector, upper: Vector) -> Vector:
    """What each row gᵀx is at least between bounds, where eᵀx = f as well.

    That is the largest λf + Σ min (gᵢ − λeᵢ)xᵢ over λ: concave, and linear between the λ = gᵢ/eᵢ, so that one of them is best. What
    rounding may have cost is taken off.
    """
    slopes = G[:, e != 0] / e[e != 0]  # rows, λ
    aside = ASIDE * np.abs(slopes).max(axis=1, initial=0.0, keepdims=True)  # just at λ the sign of a difference is rounding
    slopes = np.concatenate([slopes - aside, slopes + aside], axis=1)
    taken = slopes[:, :, None] * e
    left, off = G[:, None, :] - taken, LOST * (np.abs(G[:, None, :]) + np.abs(taken))  # what the difference may be wrong by
    nearer = np.where(left > off, lower, upper)
    with np.errstate(invalid="ignore"):  # 0 · ∞
        clear = left * nearer - off * np.abs(nearer)
        unclear = np.where(off > 0, -off * np.maximum(np.abs(lower), np.abs(upper)), 0.0)
        brought = np.where(np.abs(left) > off, clear, unclear)
    terms = np.abs(slopes * f) + np.abs(brought).sum(axis=2)
    return np.asarray((slopes * f + brought.sum(axis=2) - ROUNDED * terms).max(axis=1, initial=-np.inf))


def contributions(M: Vector, lower: Vector, upper: Vector) -> tuple[Vector, Vector]:
    """What each variable between its bounds brings to each row of M, at least and at most."""
    with np.errstate(invalid="ignore"):
        one, other = (np.where(M == 0, 0.0, M * side) for side in (lower, upper))  # 0·∞ is 0
    return np.minimum(one, other), np.maximum(one, other)
