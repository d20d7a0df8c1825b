"""Portfolio problems: mean and variance, variance alone or distance to an index, under rules and trading costs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ksparse.datasets import Assets
from ksparse.errors import InfeasibleError
from ksparse.losses import Loss, MeanVariance
from ksparse.portfolio.rules import AssetCountLimits, LinearRules, Universe, portfolio_arguments
from ksparse.search.settings import SearchSettings
from ksparse.sets import BudgetBox, ConvexSet, Hyperplane, Polyhedron, Simplex
from ksparse.util.arrays import Vector
from ksparse.util.checks import check_matrix, check_number, check_size, check_vector

RISK_AVERSION = 10.0  # the paper's α, and the default
FAINT = 1e-40  # smallest weight of the variance relative to the returns; smaller ones have no effect on bounded weights
GOALS = ("objective", "risk_aversion", "target_return")  # parameters of `SparsePortfolio`
WEIGHTS = ("long_only", "max_weight", "budget", "max_short")  # those that `portfolio` takes unchanged
# for a start near the optimum; best of three on port5
WARM = SearchSettings(enumerated=100, relaxed=0, drawn=0, returns=2)
EPS = float(np.finfo(float).eps)
PRICE, STEADY = 10.0, 0.05  # prices have a larger median, and a smaller median relative change from row to row
LOSSES = 0.02  # share of negative entries from which a table holds no prices, not even with errors
LEVEL = 0.05  # positive numbers with a smaller median may be interest rates


@dataclass(frozen=True, eq=False)
class Benchmark:
    """Returns y of an index over the periods of X; the tracking error of weights x is √(‖Xx − y‖²/periods)."""

    X: Vector
    y: Vector
    limit: float = np.inf

    @cached_property
    def gram(self) -> Vector:
        """XᵀX/periods: error(x)² = xᵀ gram x − 2 cross_momentᵀx + mean_square."""
        return np.asarray(self.X.T @ self.X / len(self.X))

    @cached_property
    def cross_moment(self) -> Vector:
        """Xᵀy/periods."""
        return np.asarray(self.y @ self.X / len(self.X))

    @cached_property
    def mean_square(self) -> float:
        """‖y‖²/periods."""
        return float(np.mean(np.square(self.y)))

    def error(self, x: Vector) -> float:
        """Return the tracking error, from the returns themselves."""
        held = np.flatnonzero(x)
        return float(np.sqrt(np.mean(np.square(self.X[:, held] @ x[held] - self.y))))

    def rounding(self, x: Vector) -> float:
        """Return a bound on the change of the error by another order of summation.

        The rounding of returns is relative to their terms, one per asset held, not to the distance from the index.
        """
        terms = float(np.sqrt(np.diag(self.gram)) @ np.abs(x) + np.sqrt(self.mean_square))
        return EPS * ((np.count_nonzero(x) + 2) * terms + len(self.y) * self.error(x))

    def within_limit(self, x: Vector) -> bool:
        """Return whether the error is within the limit in any summation order; if it decides, over all assets."""
        error = self.error(x)
        if abs(error - self.limit) > self.rounding(x):
            return error < self.limit
        return bool(np.sqrt(np.mean(np.square(self.X @ x - self.y))) <= self.limit)

    def first_within_limit(self, far: Vector, near: Vector) -> Vector:
        """Return the first point from `far`, beyond the limit, to `near`, within it, that is within it in any order."""
        a, b = self.X @ far - self.y, self.X @ (near - far)
        size, slope, excess = float(b @ b), float(a @ b), float(a @ a) - len(self.y) * self.limit**2
        root = np.sqrt(max(slope**2 - size * excess, 0.0)) if size > 0 else 0.0
        # the smaller root of the quadratic, without cancellation
        share = min(max(excess / (root - slope), 0.0), 1.0) if root - slope > 0 else 1.0
        step = EPS
        while share < 1.0:
            x = far + share * (near - far)
            if self.error(x) + self.rounding(x) <= self.limit:
                return np.asarray(x)
            share, step = min(share + step, 1.0), 2.0 * step
        return near


@dataclass(frozen=True)
class Portfolio:
    """min αxᵀVx − rᵀx + constant + Σ costᵢ|xᵢ − heldᵢ| under a budget, bounds and rules."""

    V: Vector
    r: Vector  # 0 if the variance alone counts
    alpha: float
    lower: Vector
    upper: Vector
    total: float | None  # sum of the weights; None if the rows bound it
    rows: LinearRules  # target return, group limits, linear constraints
    counts: AssetCountLimits
    held: Vector  # weights before trading, 0 if none are known
    cost: Vector  # per unit traded
    max_turnover: float | None = None  # limit of Σ|xᵢ − heldᵢ|
    max_short: float | None = None  # limit of the sum of the short positions
    forced_in: tuple[int, ...] = ()
    forced_out: tuple[int, ...] = ()
    benchmark: Benchmark | None = None  # index with a limit on the tracking error
    tracked: Benchmark | None = None  # index to track: φ is error(x)² plus the costs
    constant: float = 0.0

    @property
    def loss(self) -> Loss:
        """φ without trading costs and constant."""
        return MeanVariance(self.V, self.r, self.alpha)

    @property
    def trades(self) -> bool:
        """Whether the weights before trading matter."""
        return bool(self.cost.any()) or self.max_turnover is not None

    @property
    def forced(self) -> Vector:
        """Mask of the assets that are always held: forced in, or with bounds that exclude 0."""
        return np.isin(np.arange(self.lower.size), self.forced_in) | (self.lower > 0) | (self.upper < 0)

    @property
    def rules(self) -> LinearRules:
        """All linear rules, the budget among them."""
        n = self.lower.size
        return LinearRules.of(n, equations=[] if self.total is None else [(np.ones(n), self.total)]).and_(self.rows)

    @property
    def C(self) -> ConvexSet:
        """Budget, bounds and rows, as the simplest set that describes them."""
        low, high = (float(bound[0]) if (bound == bound[0]).all() else None for bound in (self.lower, self.upper))
        if self.total is not None and not (self.rows.h.size or self.rows.f.size):
            if high == np.inf and low == -np.inf:
                return Hyperplane(b=self.total)
            if high == np.inf and low == 0.0 and self.total > 0:
                return Simplex(self.total)
            if np.isfinite(self.lower).all() and np.isfinite(self.upper).all():
                return BudgetBox(self.total, self.lower if low is None else low, self.upper if high is None else high)
        rules = self.rules
        try:
            return Polyhedron(rules.G, rules.h, rules.E, rules.f, self.lower, self.upper)
        except InfeasibleError:
            together = "the budget, the bounds, the target return and the other rules together"
            raise InfeasibleError(f"no weights meet {together}") from None

    def scaled(self) -> tuple[Portfolio, int]:
        """Return the problem in numbers near 1, and e: its values are 2⁻ᵉ times those of this one, at the same weights.

        V, r and the cost are divided by powers of 2, which is exact; so is each row.
        """
        G, h, E, f = self.rows.G, self.rows.h, self.rows.E, self.rows.f
        power = exponent(self.V)
        common = max(exponent(self.alpha) + power, exponent(self.r), exponent(self.cost))
        g, e = (np.array([exponent(row) for row in M], dtype=int) for M in (G, E))
        rows = LinearRules(np.ldexp(G, -g[:, None]), np.ldexp(h, -g), np.ldexp(E, -e[:, None]), np.ldexp(f, -e))
        alpha = max(math.ldexp(self.alpha, power - common), FAINT)
        return replace(
            self, V=np.ldexp(self.V, -power), r=np.ldexp(self.r, -common), cost=np.ldexp(self.cost, -common),
            alpha=alpha, constant=math.ldexp(self.constant, -common), rows=rows, tracked=None,
        ), common  # fmt: skip

    def on(self, assets: Vector) -> Portfolio:
        """Return the problem with these assets only."""
        benchmark, place = self.benchmark, {int(i): j for j, i in enumerate(assets)}
        forced_in, forced_out = (tuple(place[i] for i in A if i in place) for A in (self.forced_in, self.forced_out))
        return replace(
            self, V=self.V[np.ix_(assets, assets)], r=self.r[assets], cost=self.cost[assets], held=self.held[assets],
            lower=self.lower[assets], upper=self.upper[assets], rows=self.rows.on(assets),
            counts=self.counts.on(assets), forced_in=forced_in, forced_out=forced_out,
            benchmark=None if benchmark is None else replace(benchmark, X=benchmark.X[:, assets]),
        )  # fmt: skip

    def value(self, x: Vector) -> float:
        """Return φ with trading costs."""
        if self.tracked is not None:
            risk = self.tracked.error(x) ** 2
        else:
            risk = float(self.alpha * (x @ (self.V @ x)) - self.r @ x) + self.constant
        return risk + float(self.cost @ np.abs(x - self.held))

    def violation(self, x: Vector) -> float:
        """Return the largest violation of a rule."""
        worst = self.C.violation(x)
        if self.max_turnover is not None:
            worst = max(worst, float(np.abs(x - self.held).sum()) - self.max_turnover)
        if self.max_short is not None:
            worst = max(worst, float(-np.minimum(x, 0.0).sum()) - self.max_short)
        return worst if self.benchmark is None else max(worst, self.benchmark.error(x) - self.benchmark.limit)


def exponent(values: Any) -> int:
    """Return e with max|values| = m·2ᵉ, 1 ≤ m < 2; for 0 a number below every other exponent."""
    size = float(np.abs(values).max())
    return math.frexp(size)[1] - 1 if size > 0 else -2_000


def portfolio(
    V: Any, r: Any, *,
    objective: str | None = None, risk_aversion: float | None = None, target_return: float | None = None,
    long_only: bool = False, max_weight: float | None = None, min_weights: Any = -np.inf, max_weights: Any = np.inf,
    budget: Any = 1.0, rows: LinearRules | None = None, held: Any = None, cost: Any = 0.0,
    max_turnover: float | None = None, max_short: float | None = None, forced_in: Any = (), forced_out: Any = (),
    counts: AssetCountLimits | None = None, benchmark: Benchmark | None = None, tracked: Benchmark | None = None,
) -> Portfolio:  # fmt: skip
    """Return a portfolio problem, checked.

    objective : "minimize_risk" for the variance alone, "maximize_utility" for αxᵀVx − rᵀx; None for the first if only a
    target return is given. risk_aversion : α. target_return : minimum mean return per period. long_only : no negative
    weights. max_weight : maximum absolute weight. min_weights, max_weights : bounds, one per asset. budget : sum of the
    weights, or (minimum, maximum). rows : other linear rules. held, cost : weights before trading, and cost per unit
    traded, one number or one per asset. max_turnover, max_short : limits of the sum of all trades and of the short
    positions, in absolute value. counts : limits on the number of assets per group. benchmark, tracked : index with a
    limited tracking error, or to track.
    """
    V = np.asarray(check_matrix(V, "V"), dtype=float)
    n = V.shape[0]

    def vector(value: Any, name: str) -> Vector:
        return np.asarray(check_vector(value, name, n), dtype=float)

    def limit(value: Any, name: str) -> float | None:
        return None if value is None else check_number(value, name, at_least=0)

    r = vector(r, "r")
    alpha = None if risk_aversion is None else check_number(risk_aversion, "risk_aversion", above=0)
    lower, upper = _bounds(n, long_only, max_weight, min_weights, max_weights)
    total, rules = _budget(budget, n)
    rules = rules if rows is None else rules.and_(rows)
    if target_return is not None:
        target = check_number(target_return, "target_return")
        reachable = _largest_return(r, lower, upper, total)
        if target > reachable + 1e-12 * abs(reachable):
            raise InfeasibleError(f"the target return {target:g} is above the largest within the bounds, {reachable:g}")
        rules = LinearRules.of(n, [(-r, -target)]).and_(rules)
    if objective not in (None, "minimize_risk", "maximize_utility"):
        raise ValueError(f"objective must be 'minimize_risk', 'maximize_utility' or None, got {objective!r}")
    if objective == "minimize_risk" and alpha is not None:
        raise ValueError("risk_aversion cannot be combined with objective='minimize_risk', which is the variance alone")
    if objective == "minimize_risk" or (objective is None and alpha is None and target_return is not None):
        r, alpha = np.zeros(n), 1.0
    alpha = RISK_AVERSION if alpha is None else alpha
    if exponent(alpha) + exponent(V) > 1_000:
        most = f"{1e300 / alpha:g} with a risk aversion of {alpha:g}"
        raise ValueError(f"absolute values in V must not exceed {most}: rescale the data")
    cost = vector(np.full(n, cost) if np.ndim(cost) == 0 else cost, "cost")
    if cost.min() < 0:
        raise ValueError(f"cost must be >= 0, got {cost.min():g} for asset {cost.argmin()}")
    return Portfolio(
        V, r, alpha, lower, upper, total, rules, AssetCountLimits.read(None, {}, n) if counts is None else counts,
        np.zeros(n) if held is None else vector(held, "held"), cost, limit(max_turnover, "max_turnover"),
        limit(max_short, "max_short"), tuple(map(int, forced_in)), tuple(map(int, forced_out)), benchmark, tracked,
        0.0 if tracked is None else tracked.mean_square,
    )  # fmt: skip


def portfolio_of(assets: Assets, y: Vector | None, *, max_tracking_error: float | None, **parameters: Any) -> Portfolio:
    """Return the problem that the parameters of `SparsePortfolio` describe; y : returns of an index to follow."""
    n, X = len(assets.r), assets.returns
    goals = {name: parameters.pop(name) for name in GOALS}
    given = {name: parameters.pop(name) for name in WEIGHTS}
    given |= portfolio_arguments(Universe(n, assets.names or None), **parameters)
    if max_tracking_error is not None:
        limit = check_number(max_tracking_error, "max_tracking_error", above=0)
        if y is None or X is None:
            raise ValueError("max_tracking_error needs y, the returns of the index")
        given["benchmark"] = Benchmark(X, y, limit)
    elif y is not None and X is not None:
        check_size(y, "y")
        for name, goal in goals.items():
            if goal is not None:
                raise ValueError(f"{name} cannot be used when y (an index) is given, unless max_tracking_error is set")
        near = Benchmark(X, y)
        return portfolio(near.gram, 2.0 * near.cross_moment, risk_aversion=1.0, tracked=near, **given)
    return portfolio(assets.V, assets.r, **goals, **given)


def _bounds(n: int, long_only: bool, max_weight: float | None, low: Any, high: Any) -> tuple[Vector, Vector]:
    """Return the bounds of each asset, from those of all and its own."""
    size = np.inf if max_weight is None else check_number(max_weight, "max_weight", above=0)
    negative = np.flatnonzero(np.less(low, 0) & np.isfinite(low))
    if long_only and negative.size:
        raise ValueError(f"min_weights is below 0 for asset {negative[0]}, which long_only=True forbids")
    lower = np.maximum(np.full(n, 0.0 if long_only else -size), low)
    upper = np.minimum(np.full(n, size), high)
    crossed = np.flatnonzero(lower > upper)
    if crossed.size:
        i = int(crossed[0])
        raise InfeasibleError(f"the bounds of asset {i} leave no weight: at least {lower[i]:g}, at most {upper[i]:g}")
    return lower, upper


def _budget(given: Any, n: int) -> tuple[float | None, LinearRules]:
    """Return the sum of the weights, or rows that bound it."""
    if np.ndim(given) == 0:
        return check_number(given, "budget"), LinearRules.of(n)
    if len(given) != 2:
        raise ValueError(f"budget must be one number or (least, most), got {given!r}")
    least, most = (check_number(side, "budget") for side in given)
    if least > most:
        raise ValueError(f"budget must be (least, most) with least <= most, got {given!r}")
    if least == most:
        return least, LinearRules.of(n)
    return None, LinearRules.of(n, [(np.ones(n), most), (-np.ones(n), -least)])


def _largest_return(r: Vector, lower: Vector, upper: Vector, total: float | None) -> float:
    """Return the largest mean return within bounds and budget, by filling up the best assets first; ∞ if unknown."""
    if total is None or not np.isfinite(lower).all():
        return np.inf
    order, left = np.argsort(-r, kind="stable"), total - lower.sum()
    room = (upper - lower)[order]
    if left < 0 or room.sum() < left - 1e-12:
        return -np.inf
    before = np.concatenate([[0.0], np.cumsum(room)[:-1]])
    return float(r @ lower + r[order] @ np.clip(left - before, 0.0, room))


def looks_like_prices(X: Vector) -> bool:
    """Return whether a table of returns is more likely one of prices: positive, of size 10 or more, changing slowly.

    Returns in percent have losses among them or change a lot; those of a savings account do neither, but are small.
    Numbers around a level change from row to row by twice their variance, prices by far less (von Neumann's ratio).
    """
    return len(X) >= 3 and bool((X > 0).all()) and float(np.median(X)) >= PRICE and _changes_slowly(X)


def guess_table_kind(X: Vector) -> str | None:
    """Return "prices" or "returns", guessed from the numbers alone; None if they could be either.

    Returns have losses among them. Prices are positive, and large or slow to change.
    """
    level = float(np.median(X))
    if (X < 0).any():
        return "prices" if (X < 0).mean() < LOSSES and level >= PRICE else "returns"
    small = level >= LEVEL and len(X) >= 3 and (X > 0).all() and _changes_slowly(X)
    return "prices" if level >= PRICE or small else None


def _changes_slowly(X: Vector) -> bool:
    """Return whether rows are close to the rows before them, and not around a level."""
    changes, spread = np.diff(X, axis=0), np.square(X - X.mean(axis=0)).sum(axis=0)
    moved = spread > 0
    if not moved.any() or np.median(np.abs(changes) / X[1:]) >= STEADY:
        return False
    return bool(np.median(np.square(changes).sum(axis=0)[moved] / spread[moved]) < 1.0)
