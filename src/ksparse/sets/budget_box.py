"""Bounds on every variable and a budget."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ksparse.errors import InfeasibleError
from ksparse.numerics.constraints import Linear
from ksparse.sets.base import ConvexSet
from ksparse.sets.box import Box, forced_first
from ksparse.sets.simplex import project_on_largest
from ksparse.util.arrays import Array, Vector, copy_with, larger, namespace, sum_of, to_float64
from ksparse.util.checks import check_number


class BudgetBox(ConvexSet):
    """``{x : lower ≤ x ≤ upper, Σx = total}``. A variable whose bounds exclude 0 is forced in.

    Parameters
    ----------
    total : float
        The sum.
    lower : float or array-like
        Least values.
    upper : float or array-like
        Greatest values.

    Raises
    ------
    InfeasibleError
        If the set is empty.
    ValueError
        If an argument is not what it must be.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> ks.minimize(ks.LeastSquares(np.eye(3), [3.0, -2.0, 1.0]), 2, ks.BudgetBox(1.0, -0.5, 0.75)).x.sum().round(9)
    np.float64(1.0)
    """

    skip_self_check = True

    def __init__(self, total: float, lower: Any, upper: Any) -> None:
        self.total = check_number(total, "total")
        self.box = Box(lower, upper)
        self.n, self.size = self.box.n, abs(self.total)
        if self.n is not None:
            self._require_reach(self.n)

    def _require_reach(self, n: int) -> None:
        low, high = self.box.bounds(n)
        least, most = float(low.sum()), float(high.sum())
        slack = self._slack(low, high)
        if not least - slack <= self.total <= most + slack:
            raise InfeasibleError(
                f"BudgetBox is empty: total must be {least:g} to {most:g}, as the bounds allow, got {self.total:g}"
            )

    def _slack(self, low: Vector, high: Vector) -> float:
        """What is rounding in a sum of bounds."""
        sizes = [abs(self.total), *(float(np.abs(bound[np.isfinite(bound)]).sum()) for bound in (low, high))]
        return 1e-12 * max(sizes[0], min(sizes[1], sizes[2]))

    def project(self, u: Array) -> Array:
        if self.n is None:
            self._require_reach(int(u.shape[0]))
        low, high = self.box._bounds_like(u)
        return project_budget_box(u, self.total, low, high)

    def violation(self, x: Array) -> float:
        return larger(self.box.violation(x), abs(sum_of(x) - self.total))

    def restrict(self, support: Vector) -> BudgetBox:
        cut = self.box.restrict(support)
        low, high = cut.bounds(support.size)
        try:
            return BudgetBox(self.total, low, high)
        except InfeasibleError as error:
            raise InfeasibleError(f"{self} has no point on a support of {support.size}: {error}") from error

    def why_no_sparse_member(self, n: int, k: int) -> str | None:
        reason = self.box.why_no_sparse_member(n, k)
        if reason is not None:
            return reason
        low, high = self.box.bounds(n)
        forced = self.box.forced(n)
        free = np.setdiff1d(np.arange(n), forced)
        room = k - forced.size
        # the other bounds hold 0, so the totals of all supports together form one interval
        most = high[forced].sum() + np.sort(high[free])[::-1][:room].sum()
        least = low[forced].sum() + np.sort(low[free])[:room].sum()
        slack = self._slack(low, high)
        if self.total > most + slack:
            return (
                f"{k} variables within their upper bounds sum to at most {most:g}, less than the total {self.total:g}"
            )
        if self.total < least - slack:
            return (
                f"{k} variables within their lower bounds sum to at least {least:g}, more than the total {self.total:g}"
            )
        return None

    def sparse_support(self, size: Array, k: int) -> Vector:
        """The k largest, forced ones first.

        While their bounds miss the total, the one that reaches least leaves for the one outside that reaches furthest.
        """
        size = np.abs(to_float64(size))
        n = size.size
        low, high = self.box.bounds(n)
        forced = self.box.forced(n)
        order = np.argsort(-forced_first(size, forced), kind="stable")
        chosen, waiting = order[:k].copy(), order[k:].copy()
        slack = self._slack(low, high)
        for bound, wanted in ((high, self.total), (-low, -self.total)):
            while waiting.size and bound[chosen].sum() + slack < wanted:
                free = np.flatnonzero(~np.isin(chosen, forced))
                if not free.size:
                    break
                out, into = (
                    free[np.lexsort((size[chosen[free]], bound[chosen[free]]))[0]],
                    int(np.argmax(bound[waiting])),
                )
                if bound[waiting[into]] <= bound[chosen[out]]:
                    break
                chosen[out], waiting[into] = waiting[into], chosen[out]
        return np.sort(chosen)

    @property
    def has_joint(self) -> bool:
        """Exact where all variables share the bounds [0, b]: then they differ in u alone."""
        low, high = self.box.bounds(self.n or 1)
        return bool((low == 0).all() and (high == high[0]).all())

    def project_sparse(self, u: Array, k: int) -> Array:
        return project_on_largest(self, u, k) if self.has_joint else super().project_sparse(u, k)

    def as_linear(self, n: int) -> Linear:
        low, high = self.box.bounds(n)
        return Linear.of(n, low, high, E=np.ones(n), f=self.total)

    def like(self, x: Array) -> Self:
        moved: Self = copy_with(self, box=self.box.like(x))
        return moved

    def without(self, indices: Vector) -> BudgetBox:
        if self.n is None or not indices.size:
            return self
        low, high = self.box.without(indices).bounds(self.n)
        return BudgetBox(self.total, low, high)

    def for_length(self, n: int) -> Self:
        self._require_reach(n)
        told: Self = copy_with(self, box=self.box.for_length(n), n=n)
        return told

    def __repr__(self) -> str:
        return f"BudgetBox(total {self.total:g}, {self.box!r})"


def project_budget_box(u: Array, total: float, low: Array, high: Array) -> Array:
    """clip(u − τ, low, high) with τ such that the sum is `total`.

    The sum falls in τ, linearly between the places where one variable leaves its upper or reaches its lower bound. Those
    2n places are sorted, and a bisection over them finds the piece on which the total lies.
    """
    xp = namespace(u)

    def at(tau: float) -> Array:
        moved = u - tau
        return xp.where(moved < low, low, xp.where(moved > high, high, moved))

    def total_at(tau: float) -> float:
        return float(xp.sum(at(tau)))

    places = xp.concat([u - high, u - low])
    places = xp.sort(places[xp.isfinite(places)])
    left, right = -1, int(places.shape[0])  # the total at `left` is ≥ the wanted one, at `right` ≤ it
    while right - left > 1:
        middle = (left + right) // 2
        if total_at(float(places[middle])) >= total:
            left = middle
        else:
            right = middle
    tau = _on_piece(places, left, right, abs(total) or 1.0)
    x = at(tau)
    free = (u - tau > low) & (u - tau < high)
    count = int(xp.sum(xp.astype(free, xp.int64)))
    for _ in range(2):  # the second round takes what the first rounded away
        if count:
            moved = x + (total - float(xp.sum(x))) / count
            x = xp.where(free, xp.where(moved < low, low, xp.where(moved > high, high, moved)), x)
    return x


def _on_piece(places: Array, left: int, right: int, unit: float) -> float:
    """A τ inside the piece between two neighbouring places (beyond the last one: a unit outside)."""
    size = int(places.shape[0])
    if size == 0:
        return 0.0
    if left < 0:
        return float(places[0]) - unit - abs(float(places[0]))
    if right >= size:
        return float(places[size - 1]) + unit + abs(float(places[size - 1]))
    return 0.5 * (float(places[left]) + float(places[right]))
