"""Linear constraints lower ≤ x ≤ upper, Gx ≤ h, Ex = f: the polyhedron, its presolve and its scaling.

Presolve removes bounds and rows that other constraints imply, and finds variables that no k-sparse point can use. It does so only by a
margin above the rounding of the sums. An implied bound may be violated by rounding then, as the equation that implies it may be.

Scaling makes numbers close to 1, so that tolerances mean the same in any units.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ksparse.util.arrays import Vector, to_float64

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
    def of(
        cls,
        n: int,
        lower: Any = -np.inf,
        upper: Any = np.inf,
        G: Any = None,
        h: Any = None,
        E: Any = None,
        f: Any = None,
    ) -> Linear:
        """The polyhedron of the parts that are given."""

        def rows(M: Any, v: Any) -> tuple[Vector, Vector]:
            return (np.zeros((0, n)), np.zeros(0)) if M is None else (np.atleast_2d(M), np.atleast_1d(v))

        return cls(
            np.broadcast_to(to_float64(lower), n), np.broadcast_to(to_float64(upper), n), *rows(G, h), *rows(E, f)
        )

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
        return any(
            (least_beside(G, e, f, lower, upper) > self.right).any()
            for e, f in zip(whole.E[:, support], whole.f, strict=True)
        )


def least_beside(G: Vector, e: Vector, f: float, lower: Vector, upper: Vector) -> Vector:
    """What each row gᵀx is at least between bounds, where eᵀx = f as well.

    That is the largest λf + Σ min (gᵢ − λeᵢ)xᵢ over λ: concave, and linear between the λ = gᵢ/eᵢ, so that one of them is best. What
    rounding may have cost is taken off.
    """
    slopes = G[:, e != 0] / e[e != 0]  # rows, λ
    aside = ASIDE * np.abs(slopes).max(
        axis=1, initial=0.0, keepdims=True
    )  # just at λ the sign of a difference is rounding
    slopes = np.concatenate([slopes - aside, slopes + aside], axis=1)
    taken = slopes[:, :, None] * e
    left, off = (
        G[:, None, :] - taken,
        LOST * (np.abs(G[:, None, :]) + np.abs(taken)),
    )  # what the difference may be wrong by
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


MARGIN = 1e-9  # of a row's terms


EPS = float(np.finfo(np.float64).eps)


def presolved(linear: Linear) -> Linear:
    """The same polyhedron without upper bounds that an equation and the lower bounds imply, and without rows that the bounds imply."""
    upper = np.where(linear.upper >= implied_upper(linear), np.inf, linear.upper)
    least, most = contributions(linear.G, linear.lower, linear.upper)
    terms = np.maximum(np.abs(least), np.abs(most)).sum(axis=1)
    asks = ~(most.sum(axis=1) <= linear.h - MARGIN * (terms + np.abs(linear.h)))
    if (np.isinf(upper) & np.isfinite(linear.upper)).any() and not asks.all():
        upper = linear.upper  # a row may be implied by a bound that is implied by it: one of the two
    return replace(linear, upper=upper, G=linear.G[asks], h=linear.h[asks])


def implied_upper(linear: Linear) -> Vector:
    """What Σ eᵢxᵢ = f with e ≥ 0 and x ≥ lower, finite, leaves for each variable; ∞ where nothing is said."""
    implied = np.full(linear.lower.size, np.inf)
    for row, right in zip(linear.E, linear.f, strict=True):
        if (row >= 0).all() and np.isfinite(linear.lower[row > 0]).all():
            seen = row > 0
            terms = row * np.where(seen, linear.lower, 0.0)
            left = right - (terms.sum() - terms)
            implied[seen] = np.minimum(implied[seen], left[seen] / row[seen])
    return implied


def fixed_by_equations(linear: Linear) -> tuple[Vector, Vector]:
    """The values of variables that equations fix one after the other, and how wrong rounding may have made them; NaN and 0 for others."""
    value = np.where(linear.lower == linear.upper, linear.lower, np.nan)
    off = np.zeros(value.size)
    for _ in range(linear.f.size):
        known = np.isfinite(value)
        last = (linear.E[:, ~known] != 0).sum(axis=1) == 1  # one variable is left
        if not last.any():
            break
        for row, right in zip(linear.E[last], linear.f[last], strict=True):
            i = np.flatnonzero((row != 0) & ~known)[0]
            terms, blur = np.abs(row[known] * value[known]).sum() + abs(right), float(np.abs(row[known]) @ off[known])
            with np.errstate(over="ignore"):
                found, wrong = (
                    (right - row[known] @ value[known]) / row[i],
                    (EPS * (8.0 + known.sum()) * terms + blur) / abs(row[i]),
                )
            if np.isfinite(found) and np.isfinite(wrong):
                value[i], off[i] = found, wrong
    return value, off


def usable(linear: Linear, low: Vector, high: Vector, allowed: Vector, k: int) -> Vector:
    """Which of the allowed variables some point with at most k nonzeros may use, each between low and high where it is not 0.

    A row is judged alone: with a variable in the support, the k − 1 others that help most must be able to meet it.
    """
    low, high = np.where(allowed, low, 0.0), np.where(allowed, high, 0.0)
    least, from_, to = linear.reach(low, high)
    found = allowed & (low <= high)
    for brings, needed in [
        *zip(-least, -linear.h, strict=True),
        *zip(to, linear.f, strict=True),
        *zip(-from_, -linear.f, strict=True),
    ]:
        found &= _reached(brings, float(needed), k)
    return np.asarray(found)


def most_nonzeros(linear: Linear, low: Vector, high: Vector, allowed: Vector) -> int:
    """How many nonzeros fit, each between low and high: of a row that every variable fills, as many as the smallest fillings allow."""
    most = int(allowed.sum())
    for fills, room in _filled_rows(linear, low, high, allowed):
        most = min(most, int((np.cumsum(np.sort(fills[allowed])) <= room).sum()))
    return most


def fitting(linear: Linear, low: Vector, high: Vector, allowed: Vector, count: int) -> Vector:
    """Which of the allowed variables fit beside count − 1 others, each between low and high."""
    found = allowed.copy()
    for fills, room in _filled_rows(linear, low, high, allowed):
        smallest = np.sort(fills[allowed])[:count]
        beside = smallest[: count - 1].sum()
        found &= np.where(fills <= smallest[-1], smallest.sum(), beside + fills) <= room
    return found


def _filled_rows(linear: Linear, low: Vector, high: Vector, allowed: Vector) -> Iterator[tuple[Vector, float]]:
    """What each variable takes of a row at least, and what there is of it, with a margin; of rows to which none gives anything back."""
    least, from_, _ = linear.reach(low, high)
    for fills, room in [*zip(least, linear.h, strict=True), *zip(from_, linear.f, strict=True)]:
        if allowed.any() and np.isfinite(room) and fills[allowed].min() >= 0 and np.isfinite(fills[allowed]).all():
            yield fills, float(room) + MARGIN * (abs(float(room)) + float(fills[allowed].max()))


def _reached(brings: Vector, needed: float, k: int) -> Vector:
    """With which variable in the support the k − 1 largest contributions of the others reach what is needed."""
    if not np.isfinite(needed):
        return np.ones(brings.size, dtype=bool)
    helpful = np.maximum(brings, 0.0)
    top = np.sort(helpful)[::-1][:k]
    if np.isinf(top).any():
        return np.ones(brings.size, dtype=bool)
    among = helpful >= (top[-1] if top.size else np.inf)
    others = np.where(among, top.sum() - helpful, top[: k - 1].sum())
    return np.asarray(brings + others >= needed - MARGIN * (np.abs(brings) + others + abs(needed)))


def unit_scales(diagonal: Vector) -> Vector:
    """√H_ii, and the largest of them for variables that H does not see."""
    scales: Vector = np.sqrt(np.maximum(diagonal, 0.0))
    largest = float(scales.max(initial=0.0))
    scales[scales <= 1e-150 * largest] = largest if largest > 0 else 1.0
    return scales


def unit_rows(M: Vector, v: Vector) -> tuple[Vector, Vector, Vector]:
    """Rows Mx (=, ≤) v with each scaled to largest entry 1, and what they were divided by."""
    size = np.abs(M).max(axis=1, initial=0.0)
    size[size == 0] = 1.0
    return M / size[:, None], v / size, size


def unit_constraints(linear: Linear, widen: Callable[[Vector], Vector]) -> dict[str, Vector | None]:
    """The rows as scipy names them, each scaled to size 1: HiGHS has absolute tolerances."""
    parts: dict[str, Vector | None] = {}
    for key, M, v in (("ub", linear.G, linear.h), ("eq", linear.E, linear.f)):
        rows, right, _ = unit_rows(M, v)
        parts[f"A_{key}"] = widen(rows) if v.size else None
        parts[f"b_{key}"] = right if v.size else None
    return parts
