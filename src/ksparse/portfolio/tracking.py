"""Portfolios whose tracking error is limited: min φ(x) s.t. error(x) ≤ τ, by a search for the one multiplier of that.

(1 − θ)φ + θ·error² is a portfolio problem like any other, whatever the other rules are. Among given names it is convex, its error falls as
θ grows, and the θ at which the error is τ gives the best weights of these names (`Names`). Which names: those that are best at some θ. At
the θ of the best answer so far all names are searched for again; where nothing is better there, no portfolio within the limit is better at
all, as far as the search can be trusted:

    φ(y) ≥ φ(y) + λ(error(y)² − τ²) ≥ φ(x) + λ(error(x)² − τ²) = φ(x),  λ = θ/(1 − θ).

So what is proved of the search there (a bound, no better exchange) is proved of the answer. Where names differ too much from one θ to the
next for that, several θ are tried, names are exchanged one by one, the best answer within the limit is kept, and nothing but its own
weights is claimed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from ksparse.errors import InfeasibleError, UnboundedError
from ksparse.numerics.qp import Objective, solve_qp
from ksparse.portfolio.extended_formulation import Lifted
from ksparse.portfolio.problem import WARM, Index, Portfolio
from ksparse.portfolio.rules import Rows
from ksparse.result import Result, Status
from ksparse.solve.judge import gap_between
from ksparse.util.arrays import Vector

TRIED = 8  # multipliers at most, the first among them, each of which is a search
CLOSE = 1e-3  # of θ: names that are best between multipliers as near as this are known
EXCHANGED = 300  # sets of names at most that are looked at one by one
CLAIMED = 1e-8  # of a value: what is proved of it is proved to this


@dataclass(frozen=True)
class Settled:
    """The best weights of some names within the limit."""

    x: Vector
    theta: float
    value: float  # φ


@dataclass(frozen=True)
class NearIndex:
    """min φ(x) s.t. error(x) ≤ τ under all other rules; solve : the same without that limit."""

    wanted: Portfolio
    k: int
    floor: float
    solve: Callable[..., Result]

    @property
    def index(self) -> Index:
        """What the returns stay near to."""
        assert self.wanted.index is not None
        return self.wanted.index

    @cached_property
    def sizes(self) -> tuple[float, float]:
        """Of φ and of error², so that θ = ½ weighs them alike."""
        wanted = self.wanted
        risk = max(
            wanted.alpha * float(np.abs(wanted.V).max()), float(np.abs(wanted.r).max()), float(wanted.cost.max())
        )
        return risk or 1.0, float(np.abs(self.index.gram).max()) or 1.0

    def weighed(self, theta: float) -> Portfolio:
        """(1 − θ)φ + θ·error², each over its size, but for a constant."""
        wanted, index = self.wanted, self.index
        own, other = (1.0 - theta) / self.sizes[0], theta / self.sizes[1]
        return replace(
            wanted, V=own * wanted.alpha * np.asarray(wanted.V, dtype=float) + other * index.gram, alpha=1.0,
            r=own * wanted.r + 2.0 * other * index.pull, cost=own * wanted.cost, index=None,
        )  # fmt: skip

    def settled(self, x: Vector, below: float = np.inf, theta: float = 1.0) -> Settled | None:
        """The best weights within the limit of the names of x, on their sides of 0; None where they have none.

        Nor where weak duality at θ shows that they are not below a value.
        """
        if not (x.any() or self.wanted.inside.any()):  # nothing is held: there are no weights to choose
            kept = self.wanted.violation(x) <= 0.0
            return Settled(x, 0.0, self.wanted.value(x)) if kept else None
        try:
            names = Names(self.wanted, x, self.floor, self.sizes)
            if below < np.inf and self._dual(names.at(theta), theta) >= below:
                return None
            found = names.best()
        except (InfeasibleError, UnboundedError):
            return None
        return None if found is None else Settled(found[0], found[1], self.wanted.value(found[0]))

    def _dual(self, x: Vector, theta: float) -> float:
        """φ + λ(error² − τ²), which φ within the limit is not below where x is the best at θ of some names."""
        off = self.index.error(x) ** 2 - self.index.limit**2
        return (
            -np.inf
            if theta == 1.0
            else self.wanted.value(x) + theta / (1.0 - theta) * self.sizes[0] / self.sizes[1] * off
        )

    def bound(self, least: float, theta: float) -> float:
        """The same from a bound of all values at θ."""
        if not np.isfinite(least) or theta == 1.0:
            return -np.inf
        less = theta * (self.index.limit**2 - self.index.rest) / self.sizes[1]
        return float((least - less) * self.sizes[0] / (1.0 - theta))

    def answer(self, **options: Any) -> Result:
        """The best that is found, and what is proved of it."""
        began, limit = time.perf_counter(), options.pop("max_time", None)
        gap, start = options.pop("gap", None), options.pop("x0", None)

        def solve(problem: Portfolio, x0: Vector | None, **more: Any) -> Result:
            left = None if limit is None else max(0.0, began + limit - time.perf_counter())
            return self.solve(problem, self.k, x0=x0, max_time=left, **options, **more)

        warm = {} if "settings" in options else {"settings": WARM}
        loose = replace(self.wanted, index=None)
        free = solve(loose, start)
        if gap is not None and not free.status.early and self.index.kept(np.asarray(free.x, dtype=float)):
            free = solve(loose, free.x, gap=gap)
        x = np.asarray(free.x, dtype=float)
        if free.status is Status.UNBOUNDED or self.index.kept(x):  # it costs nothing: what is proved without it holds
            return free
        near = solve(self.weighed(1.0), start)
        best = self._first(near, x, start)
        stopped = free if free.status.early else near
        low, high, sought, seen = 0.0, 1.0, Sought(self, 1.0, stopped), (x != 0) | (np.asarray(near.x) != 0)
        for _ in range(0 if stopped.status.early else TRIED):
            theta = best.theta if low < best.theta < high else 0.5 * (low + high)
            sought = Sought(self, theta, solve(self.weighed(theta), best.x, **warm))
            found = np.asarray(sought.found.x, dtype=float)
            seen = seen | (found != 0)
            if sought.found.status.early or sought.finds_none_below(best):
                break
            better = self.settled(found)
            if better is not None and better.value < best.value - SAME * abs(best.value):
                best = better
            low, high = (theta, high) if self.index.error(found) > self.index.limit else (low, theta)
            if high - low <= CLOSE:
                break
        if not (sought.found.status.early or sought.finds_none_below(best)):
            best = self._exchanged(best, seen, sought.theta, np.inf if limit is None else began + limit)
        if gap is not None and not sought.found.status.early:
            asked = (
                0.5 * gap * abs(best.value) * (1.0 - sought.theta) / self.sizes[0]
            )  # half of what is asked of φ; weak duality has the rest
            share = asked / abs(sought.found.fun) if sought.found.fun else gap
            sought = replace(sought, found=solve(self.weighed(sought.theta), best.x, gap=share))
        bound = max(free.lower_bound, sought.bound)
        return replace(self._told(best, sought, bound, gap), elapsed=time.perf_counter() - began)

    def _first(self, near: Result, free: Vector, start: Vector | None) -> Settled:
        """The best of the names that follow the index best, of those that would be taken without the limit, and of where to begin."""
        closest = self.index.error(np.asarray(near.x, dtype=float))
        starts = [np.asarray(near.x, dtype=float), free, *([] if start is None else [np.asarray(start, dtype=float)])]
        settled = [found for x in starts if self._possible(x) and (found := self.settled(x)) is not None]
        if not settled:
            known = "the least" if near.status is Status.OPTIMAL else "the least that was found"
            known += " before the search was stopped" if near.status.early else ""
            raise InfeasibleError(
                f"max_tracking_error {self.index.limit:g} cannot be kept: {known} with at most {self.k} assets under these rules is "
                f"{closest:g}"
            )
        return min(settled, key=lambda found: found.value)

    def _possible(self, x: Vector) -> bool:
        """Whether the names of weights may be held together."""
        held = (x != 0) | self.wanted.inside
        shut = bool(held[list(self.wanted.forced_out)].any())
        return (
            bool(np.count_nonzero(held) <= self.k)
            and not shut
            and (self.wanted.counts is None or self.wanted.counts.obeyed(held))
        )

    def _exchanged(self, best: Settled, seen: Vector, theta: float, deadline: float) -> Settled:
        """The best after names have left for others while that helped: for those that were best at some θ, or all where they are few.

        Who pulls most at θ enters first, and small positions leave first.
        """
        wanted, inside, ahead, looked = self.wanted, self.wanted.inside, self.weighed(theta), 0
        if self.k * seen.size <= EXCHANGED:
            seen = np.ones(seen.size, dtype=bool)
        while True:
            held = np.flatnonzero(best.x)
            slope = ahead.loss.gradient(best.x)
            level = slope[held].mean() if held.size else 0.0
            entered = sorted(np.flatnonzero(seen & (best.x == 0)), key=lambda j: -abs(slope[j] - level))
            for entering, side, leaving in product(entered, (1.0, -1.0), (-1, *held[np.argsort(np.abs(best.x[held]))])):
                if (leaving >= 0 and inside[leaving]) or (wanted.upper if side > 0 else -wanted.lower)[entering] <= 0:
                    continue
                x = best.x.copy()
                x[entering] = side
                x[[leaving] if leaving >= 0 else []] = 0.0
                if not self._possible(x):
                    continue
                looked += 1
                if looked > EXCHANGED or time.perf_counter() > deadline:
                    return best
                found = self.settled(x, best.value - SAME * abs(best.value), theta)
                if found is not None and found.value < best.value - SAME * abs(best.value):
                    best = found
                    break
            else:
                return best

    def _told(self, best: Settled, sought: Sought, bound: float, gap: float | None) -> Result:
        """The Result of the best weights: status and bound are those of the search for names, as far as they speak of these."""
        x, last = best.x, sought.found
        held = np.flatnonzero(x)
        others = np.setdiff1d(np.arange(x.size), np.union1d(held, self.wanted.forced_in))
        among = self.solve(
            replace(self.weighed(best.theta), forced_out=tuple(others), counts=None), self.k, x0=x
        )  # how stationary x is
        status, proved = among.status.without_proof, False
        if last.status.early:
            status = last.status
        elif (
            last.status is Status.SWAP_OPTIMAL and sought.finds_none_below(best) and np.array_equal(last.support, held)
        ):
            status, proved = last.status, last.proved
        elif last.status is Status.OPTIMAL and gap is None:  # every support was tried
            bound = max(bound, self.bound(last.fun, sought.theta))
        bound = min(bound, best.value)
        apart = gap_between(best.value, bound)
        if not status.early and apart <= (CLAIMED if gap is None else gap):
            status, proved = Status.OPTIMAL, True
        return replace(
            among, x=x, fun=best.value, support=held, k=self.k, maxcv=max(self.wanted.violation(x), 0.0), lower_bound=bound, gap=apart,
            nodes=last.nodes, swaps=last.swaps, status=status, message=status.message, success=bool(status.good and among.success),
            proved=proved,
        )  # fmt: skip


@dataclass(frozen=True)
class Sought:
    """A search among all names at θ."""

    near: NearIndex
    theta: float
    found: Result

    def finds_none_below(self, best: Settled) -> bool:
        """Whether the search found no smaller value at θ than that of weights on the limit whose θ this is."""
        if self.theta != best.theta:
            return False
        here = self.near.weighed(self.theta).value(best.x)
        return self.found.fun >= here - SAME * abs(here)

    @property
    def bound(self) -> float:
        """What no φ within the limit is below."""
        return self.near.bound(self.found.lower_bound, self.theta)


NARROW = 1e-7  # of θ: what lies between two multipliers as near as this is taken from the line between their weights
SAME = 1e-9  # of a value: less is no difference


class Names:
    """The convex problem among the names of some weights, each on its side of 0 and beyond the floor."""

    def __init__(self, wanted: Portfolio, x: Vector, floor: float, sizes: tuple[float, float]) -> None:
        index = wanted.index
        assert index is not None
        self.index, self.n, self.held = index, x.size, np.flatnonzero((x != 0) | wanted.inside)
        S, rows = self.held, wanted.rows
        short = (x[S] < 0) | (wanted.upper[S] < 0)
        away = np.abs(np.delete(wanted.before, S)).sum()
        few = replace(
            wanted, V=np.asarray(wanted.V, dtype=float)[np.ix_(S, S)], r=wanted.r[S], cost=wanted.cost[S], index=None, counts=None,
            lower=np.where(short, wanted.lower[S], np.maximum(wanted.lower[S], floor)),
            upper=np.where(short, np.minimum(wanted.upper[S], -floor), wanted.upper[S]),
            rows=Rows(rows.G[:, S], rows.h, rows.E[:, S], rows.f), held=None if wanted.held is None else wanted.held[S],
            max_turnover=None if wanted.max_turnover is None else wanted.max_turnover - away, forced_in=(), forced_out=(),
        )  # fmt: skip
        self.lifted = Lifted(few)
        M = self.lifted.to_weights
        self.own, self.other = (
            self.lifted.quadratic,
            (2.0 * (M.T @ index.gram[np.ix_(S, S)] @ M), -2.0 * index.pull[S] @ M),
        )
        self.sizes, self.linear = sizes, self.lifted.C.as_linear(M.shape[1])

    def at(self, theta: float) -> Vector:
        """The best weights at θ."""
        a, b = (1.0 - theta) / self.sizes[0], theta / self.sizes[1]
        z = solve_qp(Objective(a * self.own[0] + b * self.other[0], a * self.own[1] + b * self.other[1]), self.linear).x
        x = np.zeros(self.n)
        x[self.held] = self.lifted.weights(z)
        return x

    def best(self) -> tuple[Vector, float] | None:
        """The best weights within the limit, and their θ; None where there are none.

        The error falls as θ grows: a bracket of θ is cut where a line through its ends says, the weight of an end that stays being halved
        (the Illinois rule), until the weights at its ends are as good as alike.
        """
        limit, index = self.index.limit, self.index
        far, near = self.at(0.0), self.at(1.0)
        if index.kept(far):
            return far, 0.0
        if not index.kept(near):
            return None
        low, high, theta = 0.0, 1.0, 1.0
        over, under, side = index.error(far) ** 2 - limit**2, index.error(near) ** 2 - limit**2, 0
        while high - low > NARROW and over > under:
            theta = low + (high - low) * float(np.clip(over / (over - under), NARROW, 1.0 - NARROW))
            x = self.at(theta)
            off = index.error(x) ** 2 - limit**2
            if not index.kept(x):
                low, far, over, under, side = theta, x, off, under * (0.5 if side == 1 else 1.0), 1
            else:
                high, near, under, over, side = theta, x, off, over * (0.5 if side == -1 else 1.0), -1
            if abs(off) <= SAME * limit**2:
                break
        return index.between(far, near), theta
