"""What a polyhedron asks that its other constraints ask already, and variables that no k-sparse point of it can use.

Rows and variables are left out only by a margin above the rounding of the sums. A bound that is implied may be broken by rounding then, as
the equation that implies it may be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ksparse.base.arrays import Vector
from ksparse.linalg.constraints import Linear, contributions

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
                found, wrong = (right - row[known] @ value[known]) / row[i], (EPS * (8.0 + known.sum()) * terms + blur) / abs(row[i])
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
    for brings, needed in [*zip(-least, -linear.h, strict=True), *zip(to, linear.f, strict=True), *zip(-from_, -linear.f, strict=True)]:
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
