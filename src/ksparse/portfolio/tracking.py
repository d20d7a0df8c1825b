"""Portfolios with a tracking-error limit: min φ(x) s.t. error(x) ≤ τ, by a search over the multiplier of the limit.

For fixed θ ∈ [0, 1], min (1 − θ)φ + θ·error² is an ordinary portfolio problem (φ and error² each divided by a typical
size). On a fixed set of assets it is convex and its error decreases in θ; the θ with error = τ gives the optimal
weights (`FixedAssetProblem`).

To choose the assets, search over all assets at the θ of the incumbent x. If the search finds nothing better there, then
by weak duality, for every y within the limit and λ = θ/(1 − θ) in the scaled units,

    φ(y) ≥ φ(y) + λ(error(y)² − τ²) ≥ φ(x) + λ(error(x)² − τ²) = φ(x).

So a bound or a proof of swap-optimality for the weighted problem carries over to x. If the best assets change too much
with θ, try several θ, swap assets one by one, keep the best portfolio within the limit, and claim only that its weights
are optimal.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from ksparse.errors import InfeasibleError, UnboundedError
from ksparse.numerics.qp import Objective, solve_qp
from ksparse.portfolio.extended_formulation import ExtendedPortfolio
from ksparse.portfolio.problem import WARM, Benchmark, Portfolio
from ksparse.portfolio.rules import AssetCountLimits
from ksparse.result import Result, Status
from ksparse.solve.judge import gap_between
from ksparse.util.arrays import Vector

MAX_SEARCHES = 8  # maximum number of searches, each at another multiplier
MAX_SWAPS = 300  # maximum number of sets of assets that are tried one by one
THETA_TOL = 1e-3  # length of the interval of θ at which the searches end
LINE_TOL = 1e-7  # length of an interval of θ on which the weights are taken as linear
VALUE_TOL = 1e-9  # relative; smaller differences of values are ignored
CLAIMED = 1e-8  # relative gap up to which weights are called optimal


@dataclass(frozen=True)
class LimitedWeights:
    """The best weights within the limit on some assets."""

    x: Vector
    theta: float
    value: float  # φ


class FixedAssetProblem:
    """The convex problem on the assets of given weights, each on its side of 0 and at least min_weight in size."""

    def __init__(self, search: TrackingLimitedSearch, x: Vector) -> None:
        problem, benchmark, min_weight = search.problem, search.benchmark, search.min_weight
        self.benchmark, self.n, self.held = benchmark, x.size, np.flatnonzero((x != 0) | problem.forced)
        S, few = self.held, replace(problem, benchmark=None).on(self.held)
        short = (x[S] < 0) | (few.upper < 0)
        sold = np.abs(np.delete(problem.held, S)).sum()
        self.extended = ExtendedPortfolio(replace(
            few, lower=np.where(short, few.lower, np.maximum(few.lower, min_weight)),
            upper=np.where(short, np.minimum(few.upper, -min_weight), few.upper),
            max_turnover=None if few.max_turnover is None else few.max_turnover - sold,
        ))  # fmt: skip
        M = self.extended.to_weights
        self.own, self.linear = self.extended.quadratic, self.extended.C.as_linear(M.shape[1])
        self.error = 2.0 * (M.T @ benchmark.gram[np.ix_(S, S)] @ M), -2.0 * benchmark.cross_moment[S] @ M
        self.sizes = search.sizes

    def at(self, theta: float) -> Vector:
        """Return the best weights at θ."""
        a, b = (1.0 - theta) / self.sizes[0], theta / self.sizes[1]
        H, c = (a * own + b * error for own, error in zip(self.own, self.error, strict=True))
        x = np.zeros(self.n)
        x[self.held] = self.extended.weights(solve_qp(Objective(H, c), self.linear).x)
        return x

    def best(self) -> tuple[Vector, float] | None:
        """Return the best weights within the limit and their θ; None if there are none.

        The error decreases in θ, so regula falsi with the Illinois rule finds θ: it halves the value at an end of the
        bracket that two steps in a row have kept.
        """
        limit, benchmark = self.benchmark.limit, self.benchmark
        far, near = self.at(0.0), self.at(1.0)
        if benchmark.within_limit(far):
            return far, 0.0
        if not benchmark.within_limit(near):
            return None
        low, high, theta = 0.0, 1.0, 1.0
        over, under, side = benchmark.error(far) ** 2 - limit**2, benchmark.error(near) ** 2 - limit**2, 0
        while high - low > LINE_TOL and over > under:
            theta = low + (high - low) * float(np.clip(over / (over - under), LINE_TOL, 1.0 - LINE_TOL))
            x = self.at(theta)
            excess = benchmark.error(x) ** 2 - limit**2
            if not benchmark.within_limit(x):
                low, far, over, under, side = theta, x, excess, under * (0.5 if side == 1 else 1.0), 1
            else:
                high, near, under, over, side = theta, x, excess, over * (0.5 if side == -1 else 1.0), -1
            if abs(excess) <= VALUE_TOL * limit**2:
                break
        return benchmark.first_within_limit(far, near), theta


@dataclass(frozen=True)
class TrackingLimitedSearch:
    """min φ(x) s.t. error(x) ≤ τ under all other rules; solve : `solve_portfolio` for problems without that limit."""

    problem: Portfolio
    benchmark: Benchmark
    k: int
    min_weight: float
    solve: Callable[..., Result]

    @cached_property
    def sizes(self) -> tuple[float, float]:
        """Typical sizes of φ and of error², so that θ = ½ gives both equal weight."""
        problem = self.problem
        risk, gain = problem.alpha * float(np.abs(problem.V).max()), float(np.abs(problem.r).max())
        return max(risk, gain, float(problem.cost.max())) or 1.0, float(np.abs(self.benchmark.gram).max()) or 1.0

    def weighted(self, theta: float) -> Portfolio:
        """Return the problem (1 − θ)φ + θ·error², each divided by its size, up to a constant."""
        problem, benchmark = self.problem, self.benchmark
        own, other = (1.0 - theta) / self.sizes[0], theta / self.sizes[1]
        return replace(
            problem, V=own * problem.alpha * problem.V + other * benchmark.gram, alpha=1.0,
            r=own * problem.r + 2.0 * other * benchmark.cross_moment, cost=own * problem.cost, benchmark=None,
        )  # fmt: skip

    def best_weights_on(self, x: Vector, below: float = np.inf, theta: float = 1.0) -> LimitedWeights | None:
        """Return the best weights within the limit on the assets of x, on their sides of 0; None if there are none.

        Return None too if weak duality at θ shows that their value is not below `below`.
        """
        if not (x.any() or self.problem.forced.any()):  # no asset is held
            return LimitedWeights(x, 0.0, self.problem.value(x)) if self.problem.violation(x) <= 0.0 else None
        with suppress(InfeasibleError, UnboundedError):
            fixed = FixedAssetProblem(self, x)
            if below < np.inf and theta < 1.0:
                near, ratio = fixed.at(theta), theta / (1.0 - theta) * self.sizes[0] / self.sizes[1]
                excess = self.benchmark.error(near) ** 2 - self.benchmark.limit**2
                if self.problem.value(near) + ratio * excess >= below:  # φ + λ(error² − τ²), by weak duality
                    return None
            found = fixed.best()
            return None if found is None else LimitedWeights(*found, self.problem.value(found[0]))
        return None

    def lower_bound(self, bound: float, theta: float) -> float:
        """Return a lower bound of φ within the limit from a lower bound of the weighted problem at θ."""
        if not np.isfinite(bound) or theta == 1.0:
            return -np.inf
        shift = theta * (self.benchmark.limit**2 - self.benchmark.mean_square) / self.sizes[1]
        return float((bound - shift) * self.sizes[0] / (1.0 - theta))

    def finds_nothing_better(self, search: Result, theta: float, best: LimitedWeights) -> bool:
        """Return whether a search at θ found no smaller value than that of weights on the limit with the same θ."""
        if theta != best.theta:
            return False
        value = self.weighted(theta).value(best.x)
        return search.fun >= value - VALUE_TOL * abs(value)

    def run(self, **options: Any) -> Result:
        """Return the best portfolio found, and what is proved of it."""
        began, limit = time.perf_counter(), options.pop("max_time", None)
        gap, start = options.pop("gap", None), options.pop("x0", None)

        def solve(problem: Portfolio, x0: Vector | None, **more: Any) -> Result:
            left = None if limit is None else max(0.0, began + limit - time.perf_counter())
            return self.solve(problem, self.k, x0=x0, max_time=left, **options, **more)

        warm = {} if "settings" in options else {"settings": WARM}
        unlimited = replace(self.problem, benchmark=None)
        free = solve(unlimited, start)
        if gap is not None and not free.status.early and self.benchmark.within_limit(free.x):
            free = solve(unlimited, free.x, gap=gap)
        if self.benchmark.within_limit(free.x):  # the limit is not active: what is proved without it holds
            return free
        near = solve(self.weighted(1.0), start)
        best = self._first(near, free.x, start)
        theta, search = 1.0, free if free.status.early else near
        low, high, seen = 0.0, 1.0, (free.x != 0) | (near.x != 0)
        for _ in range(0 if search.status.early else MAX_SEARCHES):
            theta = best.theta if low < best.theta < high else 0.5 * (low + high)
            search = solve(self.weighted(theta), best.x, **warm)
            seen |= search.x != 0
            if search.status.early or self.finds_nothing_better(search, theta, best):
                break
            better = self.best_weights_on(search.x)
            if better is not None and better.value < best.value - VALUE_TOL * abs(best.value):
                best = better
            low, high = (theta, high) if self.benchmark.error(search.x) > self.benchmark.limit else (low, theta)
            if high - low <= THETA_TOL:
                break
        if not (search.status.early or self.finds_nothing_better(search, theta, best)):
            best = self._swap_assets(best, seen, theta, np.inf if limit is None else began + limit)
        if gap is not None and not search.status.early:
            # half of the gap: duality may need the other half
            half = 0.5 * gap * abs(best.value) * (1.0 - theta) / self.sizes[0]
            search = solve(self.weighted(theta), best.x, gap=half / abs(search.fun) if search.fun else gap)
        bound = max(free.lower_bound, self.lower_bound(search.lower_bound, theta))
        return replace(self._result(best, search, theta, bound, gap), elapsed=time.perf_counter() - began)

    def _first(self, near: Result, free: Vector, start: Vector | None) -> LimitedWeights:
        """Return the best weights on the assets that track best, those best without the limit or those of the start."""
        starts = [near.x, free, *([] if start is None else [np.asarray(start, dtype=float)])]
        found = [best for x in starts if self._allowed(x) and (best := self.best_weights_on(x)) is not None]
        if not found:
            known = "possible" if near.status is Status.OPTIMAL else "found"
            known += " before the search was stopped" if near.status.early else ""
            known += f" with at most {self.k} assets under these rules is {self.benchmark.error(near.x):g}"
            limit = f"max_tracking_error {self.benchmark.limit:g}"
            raise InfeasibleError(f"{limit} is infeasible: the smallest one {known}")
        return min(found, key=lambda best: best.value)

    def _allowed(self, x: Vector) -> bool:
        """Return whether the assets of x may be held together."""
        held = (x != 0) | self.problem.forced
        few = bool(np.count_nonzero(held) <= self.k) and not held[list(self.problem.forced_out)].any()
        return few and self.problem.counts.is_satisfied(held)

    def _swap_assets(self, best: LimitedWeights, seen: Vector, theta: float, deadline: float) -> LimitedWeights:
        """Return the best weights after swaps of single assets, with assets of earlier answers or, if few, with all.

        Assets whose gradient at θ differs most from that of the held ones enter first; small positions leave first.
        """
        problem, loss, tried = self.problem, self.weighted(theta).loss, 0
        if self.k * seen.size <= MAX_SWAPS:
            seen = np.ones(seen.size, dtype=bool)
        while True:
            held = np.flatnonzero(best.x)
            slope = loss.gradient(best.x)
            level = slope[held].mean() if held.size else 0.0
            entering = sorted(np.flatnonzero(seen & (best.x == 0)), key=lambda j: -abs(slope[j] - level))
            for i, side, j in product(entering, (1.0, -1.0), (-1, *held[np.argsort(np.abs(best.x[held]))])):
                if (j >= 0 and problem.forced[j]) or (problem.upper if side > 0 else -problem.lower)[i] <= 0:
                    continue
                x = best.x.copy()
                x[i] = side
                x[[j] if j >= 0 else []] = 0.0
                if not self._allowed(x):
                    continue
                tried += 1
                if tried > MAX_SWAPS or time.perf_counter() > deadline:
                    return best
                below = best.value - VALUE_TOL * abs(best.value)
                found = self.best_weights_on(x, below, theta)
                if found is not None and found.value < below:
                    best = found
                    break
            else:
                return best

    def _result(self, best: LimitedWeights, search: Result, theta: float, bound: float, gap: float | None) -> Result:
        """Return the result of the best weights: status and bound are those of the last search if they carry over."""
        x, held = best.x, np.flatnonzero(best.x)
        others = np.setdiff1d(np.arange(x.size), np.union1d(held, self.problem.forced_in))
        free = AssetCountLimits.read(None, {}, x.size)
        among = self.solve(replace(self.weighted(best.theta), forced_out=tuple(others), counts=free), self.k, x0=x)
        status, proved = among.status.without_proof, False
        if search.status.early:
            status = search.status
        elif search.status is Status.SWAP_OPTIMAL:
            if self.finds_nothing_better(search, theta, best) and np.array_equal(search.support, held):
                status, proved = search.status, search.proved
        elif search.status is Status.OPTIMAL and gap is None:  # every support was tried
            bound = max(bound, self.lower_bound(search.fun, theta))
        bound = min(bound, best.value)
        apart = gap_between(best.value, bound)
        if not status.early and apart <= (CLAIMED if gap is None else gap):
            status, proved = Status.OPTIMAL, True
        return replace(
            among, x=x, fun=best.value, support=held, k=self.k, maxcv=max(self.problem.violation(x), 0.0),
            lower_bound=bound, gap=apart, nodes=search.nodes, swaps=search.swaps, status=status, message=status.message,
            success=bool(status.good and among.success), proved=proved,
        )  # fmt: skip
