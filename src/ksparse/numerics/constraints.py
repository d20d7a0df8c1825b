"""Linear constraints lower ≤ x ≤ upper, Gx ≤ h, Ex = f: the polyhedron, its presolve and its scaling.

Presolve removes bounds and rows that other constraints imply, and finds variables that no k-sparse point can use. It
does so only by a margin above the rounding of the sums. An implied bound may be violated by rounding then, as the
equation that implies it may be.

Scaling makes numbers close to 1, so that tolerances mean the same in any units.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ksparse.util.arrays import Vector, to_float64

EPS = float(np.finfo(np.float64).eps)
ROUNDED = 1e-9  # of the terms of a row: a smaller violation is rounding
LOST = 1e-15  # of two numbers, the rounding error of their difference
ASIDE = 1e-12  # of the largest λ: a step to either side


@dataclass(frozen=True)
class Linear:
    """A polyhedron lower ≤ x ≤ upper, Gx ≤ h, Ex = f, all float64: the result of `ConvexSet.as_linear`.

    `Linear.of(n, ...)` makes one from some of these parts.

    Parameters
    ----------
    lower : array
        Lower bounds.
    upper : array
        Upper bounds.
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
        cls, n: int, lower: Any = -np.inf, upper: Any = np.inf, G: Any = None, h: Any = None, E: Any = None,
        f: Any = None,
    ) -> Linear:  # fmt: skip
        """Return the polyhedron of the given parts in n variables."""
        low, high = (np.broadcast_to(to_float64(bound), n) for bound in (lower, upper))
        G, h = (np.zeros((0, n)), np.zeros(0)) if G is None else (np.atleast_2d(G), np.atleast_1d(h))
        E, f = (np.zeros((0, n)), np.zeros(0)) if E is None else (np.atleast_2d(E), np.atleast_1d(f))
        return cls(low, high, G, h, E, f)

    @property
    def equations_only(self) -> bool:
        """Whether there are no inequalities and no finite bounds."""
        return not (self.h.size or np.isfinite(self.lower).any() or np.isfinite(self.upper).any())

    def on(self, support: Vector) -> Linear | None:
        """Return the polyhedron on a support, with the other variables fixed to 0; None if a bound forbids 0."""
        off = np.ones(self.lower.size, dtype=bool)
        off[support] = False
        if (self.lower[off] > 0).any() or (self.upper[off] < 0).any():
            return None
        return Linear(self.lower[support], self.upper[support], self.G[:, support], self.h, self.E[:, support], self.f)

    def fixed_to_zero(self, mask: Vector) -> Linear:
        """Return the polyhedron with some variables fixed to 0."""
        return replace(self, lower=np.where(mask, 0.0, self.lower), upper=np.where(mask, 0.0, self.upper))

    @property
    def provably_empty(self) -> bool:
        """Whether a row or equation, or one of each, shows that there is no point; False proves nothing."""
        return bool((self.lower > self.upper).any()) or ActivityBounds(self).proves_infeasible(slice(None))

    def violation(self, x: Vector) -> float:
        """Return the largest violation of a constraint."""
        gaps = [self.lower - x, x - self.upper, self.G @ x - self.h, np.abs(self.E @ x - self.f)]
        return max(float(gap.max(initial=0.0)) for gap in gaps)

    def broken(self, x: Vector) -> float:
        """Return the largest violation relative to the constraint's terms; those of a bound are itself and max |xᵢ|."""
        size = np.abs(x)
        worst, top = 0.0, float(size.max(initial=0.0))
        rows = (self.G, self.h, self.G @ x - self.h), (self.E, self.f, np.abs(self.E @ x - self.f))
        for M, v, excess in (*rows, (None, self.lower, self.lower - x), (None, self.upper, x - self.upper)):
            if (excess > 0).any():
                terms = np.maximum(np.abs(v), top if M is None else np.abs(M) @ size)
                worst = max(worst, float(np.max(excess[excess > 0] / terms[excess > 0])))
        return worst


class ActivityBounds:
    """Least terms of variables in rows and both sides of equations, to find infeasible supports quickly."""

    def __init__(self, linear: Linear) -> None:
        self.linear, right = linear, np.concatenate([linear.h, linear.f, -linear.f])
        least = activity_terms(np.vstack([linear.G, linear.E, -linear.E]), linear.lower, linear.upper)[0]
        self.least = least - ROUNDED * np.abs(least)
        self.most = right + ROUNDED * np.abs(right)

    def proves_infeasible(self, support: Vector | slice) -> bool:
        """Return whether a row or an equation, or a row together with an equation, cannot be satisfied on a support."""
        if (self.least[:, support].sum(axis=1) > self.most).any():
            return True
        whole, right = self.linear, self.most[: self.linear.h.size]
        if not (whole.h.size and whole.f.size):
            return False
        G, lower, upper = whole.G[:, support], whole.lower[support], whole.upper[support]
        equations = zip(whole.E[:, support], whole.f, strict=True)
        return any((min_activity_given_equation(G, e, f, lower, upper) > right).any() for e, f in equations)


def min_activity_given_equation(G: Vector, e: Vector, f: float, lower: Vector, upper: Vector) -> Vector:
    """Return a lower bound on each row gᵀx between bounds and subject to eᵀx = f, less the rounding.

    It is the maximum over λ of λf + Σ min (gᵢ − λeᵢ)xᵢ: concave, and linear between the λ = gᵢ/eᵢ: one is optimal.
    """
    slopes = G[:, e != 0] / e[e != 0]  # one row of λ per row of G
    aside = ASIDE * np.abs(slopes).max(axis=1, initial=0.0, keepdims=True)
    slopes = np.concatenate([slopes - aside, slopes + aside], axis=1)  # at λ the sign of a difference is rounding
    taken = slopes[:, :, None] * e
    left, off = G[:, None, :] - taken, LOST * (np.abs(G[:, None, :]) + np.abs(taken))  # the difference and its error
    nearer = np.where(left > off, lower, upper)
    with np.errstate(invalid="ignore"):  # 0 · ∞
        clear = left * nearer - off * np.abs(nearer)
        unclear = np.where(off > 0, -off * np.maximum(np.abs(lower), np.abs(upper)), 0.0)
        least = np.where(np.abs(left) > off, clear, unclear)
    terms = np.abs(slopes * f) + np.abs(least).sum(axis=2)
    return np.asarray((slopes * f + least.sum(axis=2) - ROUNDED * terms).max(axis=1, initial=-np.inf))


def activity_terms(M: Vector, lower: Vector, upper: Vector) -> tuple[Vector, Vector]:
    """Return the least and the largest term of each variable between its bounds in each row of M."""
    with np.errstate(invalid="ignore"):
        one, other = (np.where(M == 0, 0.0, M * side) for side in (lower, upper))  # 0·∞ is 0
    return np.minimum(one, other), np.maximum(one, other)


def presolved(linear: Linear) -> Linear:
    """Remove upper bounds that an equation and the lower bounds imply, and rows that the bounds imply."""
    upper = np.where(linear.upper >= implied_upper(linear), np.inf, linear.upper)
    least, most = activity_terms(linear.G, linear.lower, linear.upper)
    terms = np.maximum(np.abs(least), np.abs(most)).sum(axis=1)
    kept = ~(most.sum(axis=1) <= linear.h - ROUNDED * (terms + np.abs(linear.h)))
    if (np.isinf(upper) & np.isfinite(linear.upper)).any() and not kept.all():
        upper = linear.upper  # a row and a bound may imply each other: remove only one of them
    return replace(linear, upper=upper, G=linear.G[kept], h=linear.h[kept])


def implied_upper(linear: Linear) -> Vector:
    """Return upper bounds implied by equations Σ eᵢxᵢ = f with e ≥ 0 and finite lower bounds; ∞ if there are none."""
    implied = np.full(linear.lower.size, np.inf)
    for row, right in zip(linear.E, linear.f, strict=True):
        if (row >= 0).all() and np.isfinite(linear.lower[row > 0]).all():
            seen = row > 0
            terms = row * np.where(seen, linear.lower, 0.0)
            left = right - (terms.sum() - terms)
            implied[seen] = np.minimum(implied[seen], left[seen] / row[seen])
    return implied


def fixed_by_equations(linear: Linear) -> tuple[Vector, Vector]:
    """Return the values that equations fix one after the other (NaN if none), and bounds on their rounding errors."""
    value = np.where(linear.lower == linear.upper, linear.lower, np.nan)
    off = np.zeros(value.size)
    for _ in range(linear.f.size):
        known = np.isfinite(value)
        last = (linear.E[:, ~known] != 0).sum(axis=1) == 1  # one variable is left
        if not last.any():
            break
        for row, right in zip(linear.E[last], linear.f[last], strict=True):
            i = np.flatnonzero((row != 0) & ~known)[0]
            terms = np.abs(row[known] * value[known]).sum() + abs(right)
            error = EPS * (8.0 + known.sum()) * terms + float(np.abs(row[known]) @ off[known])
            with np.errstate(over="ignore"):
                found, error = (right - row[known] @ value[known]) / row[i], error / abs(row[i])
            if np.isfinite(found) and np.isfinite(error):
                value[i], off[i] = found, error
    return value, off


def reachable_variables(linear: Linear, low: Vector, high: Vector, allowed: Vector, k: int) -> Vector:
    """Return which allowed variables may be nonzero, between low and high, in a point with at most k nonzeros.

    Each row is considered alone: the variable and the k − 1 others of largest terms must satisfy it.
    """
    low, high = np.where(allowed, low, 0.0), np.where(allowed, high, 0.0)
    least, (least_equal, most_equal) = activity_terms(linear.G, low, high)[0], activity_terms(linear.E, low, high)
    found = allowed & (low <= high)
    right = np.concatenate([-linear.h, linear.f, -linear.f])
    for terms, needed in zip(np.vstack([-least, most_equal, -least_equal]), right, strict=True):
        positive = np.maximum(terms, 0.0)
        top = np.sort(positive)[::-1][:k]
        if not np.isfinite(needed) or np.isinf(top).any():
            continue
        among = positive >= (top[-1] if top.size else np.inf)
        others = np.where(among, top.sum() - positive, top[: k - 1].sum())
        found &= terms + others >= needed - ROUNDED * (np.abs(terms) + others + abs(needed))
    return np.asarray(found)


def most_nonzeros(linear: Linear, low: Vector, high: Vector, allowed: Vector) -> int:
    """Return a bound on the number of nonzeros, each between low and high, from rows without negative terms."""
    most = int(allowed.sum())
    for terms, right in _positive_rows(linear, low, high, allowed):
        most = min(most, int((np.cumsum(np.sort(terms[allowed])) <= right).sum()))
    return most


def variables_that_fit(linear: Linear, low: Vector, high: Vector, allowed: Vector, count: int) -> Vector:
    """Return which allowed variables fit together with count − 1 others, each between low and high."""
    found = allowed.copy()
    for terms, right in _positive_rows(linear, low, high, allowed):
        smallest = np.sort(terms[allowed])[:count]
        found &= np.where(terms <= smallest[-1], smallest.sum(), smallest[: count - 1].sum() + terms) <= right
    return found


def _positive_rows(linear: Linear, low: Vector, high: Vector, allowed: Vector) -> Iterator[tuple[Vector, float]]:
    """Yield the least terms and the right-hand side, with a margin, of rows and equations without negative terms."""
    least, least_equal = (activity_terms(M, low, high)[0] for M in (linear.G, linear.E))
    for terms, right in zip(np.vstack([least, least_equal]), np.concatenate([linear.h, linear.f]), strict=True):
        if allowed.any() and np.isfinite(right) and terms[allowed].min() >= 0 and np.isfinite(terms[allowed]).all():
            yield terms, float(right) + ROUNDED * (abs(float(right)) + float(terms[allowed].max()))


def unit_scales(diagonal: Vector) -> Vector:
    """Return √Hᵢᵢ, or the largest of them if it is 0."""
    scales: Vector = np.sqrt(np.maximum(diagonal, 0.0))
    largest = float(scales.max(initial=0.0))
    scales[scales <= 1e-150 * largest] = largest if largest > 0 else 1.0
    return scales


def unit_rows(M: Vector, v: Vector) -> tuple[Vector, Vector, Vector]:
    """Return rows Mx (=, ≤) v, each divided by its largest absolute entry, and these entries."""
    size = np.abs(M).max(axis=1, initial=0.0)
    size[size == 0] = 1.0
    return M / size[:, None], v / size, size
