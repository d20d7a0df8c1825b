"""Bounds on every variable and a given sum."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ksparse.errors import InfeasibleError
from ksparse.numerics.constraints import Linear
from ksparse.sets.base import ConvexSet
from ksparse.sets.box import Box, clip_to, forced_first
from ksparse.sets.simplex import project_on_largest
from ksparse.util.arrays import Array, Vector, copy_with, larger, namespace, sum_of, to_float64
from ksparse.util.checks import check_number


class BudgetBox(ConvexSet):
    """``{x : lower ≤ x ≤ upper, Σx = total}``. A variable whose bounds exclude 0 is always selected.

    Parameters
    ----------
    total : float
        The sum.
    lower : float or array-like
        Lower bounds.
    upper : float or array-like
        Upper bounds.

    Raises
    ------
    InfeasibleError
        If the set is empty.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> ks.minimize(ks.LeastSquares(np.eye(3), [3.0, -2.0, 1.0]), 2, ks.BudgetBox(1.0, -0.5, 0.75)).x.sum().round(9)
    np.float64(1.0)
    """

    def __init__(self, total: float, lower: Any, upper: Any) -> None:
        self.total = check_number(total, "total")
        self.box = Box(lower, upper)
        self.n, self.size = self.box.n, abs(self.total)
        low, high = self.box.bounds(self.n or 1)
        self.has_joint = bool((low == 0).all() and (high == high[0]).all())  # the variables then differ in u alone
        if self.n is not None:
            self._require_reach(self.n)

    def _require_reach(self, n: int) -> None:
        low, high = self.box.bounds(n)
        least, most, slack = float(low.sum()), float(high.sum()), self._slack(low, high)
        if not least - slack <= self.total <= most + slack:
            allowed = f"{least:g} to {most:g}, as the bounds allow"
            raise InfeasibleError(f"BudgetBox is empty: total must be {allowed}, got {self.total:g}")

    def _slack(self, low: Vector, high: Vector) -> float:
        """Return the rounding of a sum of bounds."""
        sizes = [abs(self.total), *(float(np.abs(bound[np.isfinite(bound)]).sum()) for bound in (low, high))]
        return 1e-12 * max(sizes[0], min(sizes[1], sizes[2]))

    def project(self, u: Array) -> Array:
        if self.n is None:
            self._require_reach(int(u.shape[0]))
        return project_budget_box(u, self.total, *self.box.bounds_like(u))

    def violation(self, x: Array) -> float:
        return larger(self.box.violation(x), abs(sum_of(x) - self.total))

    def restrict(self, support: Vector) -> BudgetBox:
        bounds = self.box.restrict(support).bounds(support.size)
        try:
            return BudgetBox(self.total, *bounds)
        except InfeasibleError as error:
            raise InfeasibleError(f"{self} has no point on a support of {support.size}: {error}") from error

    def why_no_sparse_member(self, n: int, k: int) -> str | None:
        reason = self.box.why_no_sparse_member(n, k)
        if reason is not None:
            return reason
        (low, high), forced = self.box.bounds(n), self.box.forced(n)
        free, room = np.setdiff1d(np.arange(n), forced), k - forced.size
        # the other bounds allow 0, so the totals of all supports form one interval
        most = high[forced].sum() + np.sort(high[free])[::-1][:room].sum()
        least = low[forced].sum() + np.sort(low[free])[:room].sum()
        total, slack = self.total, self._slack(low, high)
        if total > most + slack:
            return f"{k} variables within their upper bounds sum to at most {most:g}, less than the total {total:g}"
        if total < least - slack:
            return f"{k} variables within their lower bounds sum to at least {least:g}, more than the total {total:g}"
        return None

    def sparse_support(self, size: Array, k: int) -> Vector:
        """Return the forced variables and then the largest.

        While the bounds of the chosen variables exclude the total, swap the chosen variable with the smallest reach for
        the one with the largest reach.
        """
        size = np.abs(to_float64(size))
        (low, high), forced = self.box.bounds(size.size), self.box.forced(size.size)
        order = np.argsort(-forced_first(size, forced), kind="stable")
        chosen, waiting = order[:k].copy(), order[k:].copy()
        slack = self._slack(low, high)
        for bound, wanted in ((high, self.total), (-low, -self.total)):
            while waiting.size and bound[chosen].sum() + slack < wanted:
                free = np.flatnonzero(~np.isin(chosen, forced))
                if not free.size:
                    break
                out = free[np.lexsort((size[chosen[free]], bound[chosen[free]]))[0]]
                into = int(np.argmax(bound[waiting]))
                if bound[waiting[into]] <= bound[chosen[out]]:
                    break
                chosen[out], waiting[into] = waiting[into], chosen[out]
        return np.sort(chosen)

    def project_sparse(self, u: Array, k: int) -> Array:
        return project_on_largest(self, u, k) if self.has_joint else super().project_sparse(u, k)

    def as_linear(self, n: int) -> Linear:
        return Linear.of(n, *self.box.bounds(n), E=np.ones(n), f=self.total)

    def like(self, x: Array) -> Self:
        return copy_with(self, box=self.box.like(x))

    def without(self, indices: Vector) -> BudgetBox:
        if self.n is None or not indices.size:
            return self
        return BudgetBox(self.total, *self.box.without(indices).bounds(self.n))

    def for_length(self, n: int) -> Self:
        self._require_reach(n)
        return copy_with(self, box=self.box.for_length(n), n=n)

    def __repr__(self) -> str:
        return f"BudgetBox(total {self.total:g}, {self.box!r})"


def project_budget_box(u: Array, total: float, low: Array, high: Array) -> Array:
    """Return clip(u − τ, low, high) with τ such that the sum is `total`.

    The sum decreases in τ, linearly between the 2n values at which a variable leaves its upper or reaches its lower
    bound. Sort these values and find the piece that contains the total by bisection.
    """
    xp = namespace(u)
    places = xp.concat([u - high, u - low])
    places = xp.sort(places[xp.isfinite(places)])
    left, right = -1, int(places.shape[0])  # the sum at `left` is ≥ total, at `right` ≤ total
    while right - left > 1:
        middle = (left + right) // 2
        if float(xp.sum(clip_to(u - float(places[middle]), low, high))) >= total:
            left = middle
        else:
            right = middle
    tau = _on_piece(places, left, right, abs(total) or 1.0)
    x = clip_to(u - tau, low, high)
    free = (u - tau > low) & (u - tau < high)
    count = int(xp.sum(xp.astype(free, xp.int64)))
    for _ in range(2 if count else 0):  # the second round corrects the rounding of the first
        x = xp.where(free, clip_to(x + (total - float(xp.sum(x))) / count, low, high), x)
    return x


def _on_piece(places: Array, left: int, right: int, unit: float) -> float:
    """Return a τ between two neighbouring places, or one unit outside beyond the last one."""
    size = int(places.shape[0])
    if size == 0:
        return 0.0
    first, last = float(places[max(left, 0)]), float(places[min(right, size - 1)])
    if left < 0:
        return first - unit - abs(first)
    return last + unit + abs(last) if right >= size else 0.5 * (first + last)
