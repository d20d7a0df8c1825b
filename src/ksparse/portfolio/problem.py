"""Portfolio problems: αxᵀVx − rᵀx, or the variance alone under a target return, with a budget, bounds, linear rules and trading costs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ksparse.errors import InfeasibleError
from ksparse.losses import Loss, MeanVariance
from ksparse.portfolio.rules import Cardinalities, Rows
from ksparse.search.settings import SearchSettings
from ksparse.sets import BudgetBox, ConvexSet, Hyperplane, Polyhedron, Simplex
from ksparse.util.arrays import Vector, is_array
from ksparse.util.checks import check_matrix, check_number, check_vector

RISK_AVERSION = 10.0  # the paper's α, where nothing else is asked for
FAINT = 1e-40  # a variance as small as this beside the returns counts for nothing in bounded weights; smaller ones the solvers do not see
WARM = SearchSettings(
    enumerated=100, relaxed=0, drawn=0, children=0, returns=2
)  # where a search begins near its end; the best of three that were tried on port5


@dataclass(frozen=True)
class Portfolio:
    """What is asked of the weights x: min αxᵀVx − rᵀx + Σ costᵢ|xᵢ − heldᵢ| over C."""

    V: Any
    r: Vector  # 0 where the variance alone counts
    alpha: float
    lower: Vector
    upper: Vector
    total: float | None  # what the weights sum to; None where the rows say between what
    rows: Rows  # the target return, group limits, sentences
    held: Vector | None  # weights before
    cost: Vector  # per unit traded
    max_turnover: float | None = None  # Σ|xᵢ − heldᵢ| at most
    max_short: float | None = None  # the short positions sum to this at most
    forced_in: tuple[int, ...] = ()
    forced_out: tuple[int, ...] = ()
    counts: Cardinalities | None = None  # how many names of each group
    index: Index | None = None  # whose returns the portfolio's stay near to

    @property
    def loss(self) -> Loss:
        """φ without the trading cost."""
        return MeanVariance(self.V, self.r, self.alpha)

    @property
    def before(self) -> Vector:
        """Weights before; 0 where none are known."""
        return np.zeros(self.lower.size) if self.held is None else self.held

    @property
    def trades(self) -> bool:
        """Whether the weights before matter."""
        return self.held is not None and (bool(self.cost.any()) or self.max_turnover is not None)

    @property
    def inside(self) -> Vector:
        """Who is held whatever else is: forced in, or with bounds that exclude 0."""
        return np.isin(np.arange(self.lower.size), self.forced_in) | (self.lower > 0) | (self.upper < 0)

    @property
    def group_limits(self) -> Any:
        """How many names of each group, as `minimize` wants it."""
        return None if self.counts is None else self.counts.for_core()

    @property
    def rules(self) -> Rows:
        """All rows, the budget's among them."""
        n = self.lower.size
        return self.rows if self.total is None else Rows.of(n, equations=[(np.ones(n), self.total)]).and_(self.rows)

    @property
    def C(self) -> ConvexSet:
        """Budget, bounds and rows, as the simplest set that describes them."""
        low, high = _one_number(self.lower), _one_number(self.upper)
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
            raise InfeasibleError(
                "no weights meet the budget, the bounds, the target return and the other rules together"
            ) from None

    def scaled(self) -> tuple[Portfolio, int]:
        """The same portfolios asked for in numbers near 1, and e: values are then 2⁻ᵉ times as large, and the weights the same.

        V, r and the cost are divided by powers of 2, which rounds nothing; each row is divided by one of its own.
        """
        V = np.asarray(self.V, dtype=float) if is_array(self.V) else self.V
        power = exponent(np.abs(V).max()) if is_array(V) else 0
        common = max(exponent(self.alpha) + power, exponent(np.abs(self.r).max()), exponent(self.cost.max()))
        own = [np.array([exponent(np.abs(row).max()) for row in M], dtype=int) for M in (self.rows.G, self.rows.E)]
        rows = Rows(
            np.ldexp(self.rows.G, -own[0][:, None]), np.ldexp(self.rows.h, -own[0]),
            np.ldexp(self.rows.E, -own[1][:, None]), np.ldexp(self.rows.f, -own[1]),
        )  # fmt: skip
        return replace(
            self, V=np.ldexp(V, -power) if is_array(V) else V, r=np.ldexp(self.r, -common), cost=np.ldexp(self.cost, -common),
            alpha=max(math.ldexp(self.alpha, power - common), FAINT), rows=rows,
        ), common  # fmt: skip

    def value(self, x: Vector) -> float:
        """φ with the trading cost."""
        traded = 0.0 if self.held is None else float(self.cost @ np.abs(x - self.held))
        return float(self.alpha * (x @ (self.V @ x)) - self.r @ x) + traded

    def violation(self, x: Vector) -> float:
        """By how much the worst rule is broken, the turnover and the short side among them."""
        worst = self.C.violation(x)
        if self.max_turnover is not None:
            worst = max(worst, float(np.abs(x - self.before).sum()) - self.max_turnover)
        if self.max_short is not None:
            worst = max(worst, float(-np.minimum(x, 0.0).sum()) - self.max_short)
        return worst if self.index is None else max(worst, self.index.error(x) - self.index.limit)


def _one_number(bound: Vector) -> float | None:
    """The bound of all assets, where it is the same."""
    return float(bound[0]) if (bound == bound[0]).all() else None


def exponent(size: Any) -> int:
    """e with size = m·2ᵉ, 1 ≤ m < 2; very small for 0, so that it counts for nothing."""
    return math.frexp(float(size))[1] - 1 if size > 0 else -2_000


def portfolio(
    V: Any,
    r: Any,
    *,
    objective: str | None = None,
    risk_aversion: float | None = None,
    target_return: float | None = None,
    long_only: bool = False,
    max_weight: float | None = None,
    min_weights: Vector | None = None,
    max_weights: Vector | None = None,
    budget: Any = 1.0,
    rows: Rows | None = None,
    held: Any = None,
    cost: Any = 0.0,
    max_turnover: float | None = None,
    max_short: float | None = None,
    forced_in: Any = (),
    forced_out: Any = (),
    counts: Cardinalities | None = None,
    index: Index | None = None,
) -> Portfolio:
    """A portfolio problem, checked.

    objective : "minimize_risk" for the variance alone, "maximize_utility" for αxᵀVx − rᵀx; None for the first where only a target return
    is given. risk_aversion : α. target_return : the mean return that must be reached per period. long_only : no weight below 0.
    max_weight : no weight above it, in size. min_weights, max_weights : bounds, one per asset. budget : what the weights sum to, or (least,
    most). rows : other linear rules. held, cost : weights before, and what a unit of trade costs, one number or one per asset.
    max_turnover : the sum of all trades, in size, at most. max_short : the sum of the short positions, in size, at most. counts : how many
    names of each group. index : what the returns must stay near to.
    """
    V = check_matrix(V, "V")
    n = int(V.shape[0])
    r = np.asarray(check_vector(r, "r", n), dtype=float)
    alpha = None if risk_aversion is None else check_number(risk_aversion, "risk_aversion", above=0)
    lower, upper = _bounds(n, long_only, max_weight, min_weights, max_weights)
    total, rules = _budget(budget, n)
    rules = rules if rows is None else rules.and_(rows)
    if target_return is not None:
        target = check_number(target_return, "target_return")
        reachable = _largest_return(r, lower, upper, total)
        if target > reachable + 1e-12 * abs(reachable):
            raise InfeasibleError(f"the target return {target:g} is above the largest within the bounds, {reachable:g}")
        rules = Rows.of(n, [(-r, -target)]).and_(rules)
    plain = _variance_alone(objective, alpha, target_return)
    alpha = 1.0 if plain else RISK_AVERSION if alpha is None else alpha
    if is_array(V) and exponent(alpha) + exponent(np.abs(V).max()) > 1_000:
        raise ValueError(
            f"absolute values in V must not exceed {1e300 / alpha:g} with a risk aversion of {alpha:g}: rescale the data"
        )
    costs = (
        np.full(n, check_number(cost, "cost", at_least=0))
        if np.ndim(cost) == 0
        else np.asarray(check_vector(cost, "cost", n), dtype=float)
    )
    if costs.min() < 0:
        raise ValueError(f"cost must be >= 0, got {costs.min():g} for asset {costs.argmin()}")
    return Portfolio(
        V, np.zeros(n) if plain else r, alpha, lower, upper, total, rules,
        None if held is None else np.asarray(check_vector(held, "held", n), dtype=float), costs,
        None if max_turnover is None else check_number(max_turnover, "max_turnover", at_least=0),
        None if max_short is None else check_number(max_short, "max_short", at_least=0),
        tuple(int(i) for i in forced_in), tuple(int(i) for i in forced_out), counts, index,
    )  # fmt: skip


def tracking(X: Vector, y: Vector, **rules: Any) -> Portfolio:
    """The portfolio whose returns are closest to those of an index: the mean squared distance, less that of holding nothing."""
    near = Index(X, y)
    return portfolio(near.gram, 2.0 * near.pull, objective="maximize_utility", risk_aversion=1.0, **rules)


def _variance_alone(objective: str | None, alpha: float | None, target: float | None) -> bool:
    if objective not in (None, "minimize_risk", "maximize_utility"):
        raise ValueError(f"objective must be 'minimize_risk', 'maximize_utility' or None, got {objective!r}")
    if objective == "minimize_risk" and alpha is not None:
        raise ValueError(
            "risk_aversion has no meaning with objective='minimize_risk', where the variance alone counts: leave one out"
        )
    return objective == "minimize_risk" or (objective is None and alpha is None and target is not None)


def _bounds(
    n: int, long_only: bool, most: float | None, low: Vector | None, high: Vector | None
) -> tuple[Vector, Vector]:
    """Each asset's bounds, from those of all and its own."""
    size = np.inf if most is None else check_number(most, "max_weight", above=0)
    lower = np.full(n, 0.0 if long_only else -size)
    upper = np.full(n, size)
    if low is not None:
        below = np.flatnonzero((low < 0) & np.isfinite(low))
        if long_only and below.size:
            raise ValueError(
                f"min_weights is below 0 for asset {below[0]}, which long_only=True forbids: say long_only=False"
            )
        lower = np.maximum(lower, low)
    if high is not None:
        upper = np.minimum(upper, high)
    crossed = np.flatnonzero(lower > upper)
    if crossed.size:
        i = int(crossed[0])
        raise InfeasibleError(f"the bounds of asset {i} leave no weight: at least {lower[i]:g}, at most {upper[i]:g}")
    return lower, upper


def _budget(given: Any, n: int) -> tuple[float | None, Rows]:
    """What the weights sum to, or rows for between what."""
    if np.ndim(given) == 0:
        return check_number(given, "budget"), Rows.of(n)
    if len(given) != 2:
        raise ValueError(f"budget must be one number or (least, most), got {given!r}")
    least, most = (check_number(side, "budget") for side in given)
    if least > most:
        raise ValueError(f"budget must be (least, most) with least <= most, got {given!r}")
    if least == most:
        return least, Rows.of(n)
    return None, Rows.of(n, [(np.ones(n), most), (-np.ones(n), -least)])


def _largest_return(r: Vector, lower: Vector, upper: Vector, total: float | None) -> float:
    """The largest mean return of weights within bounds that sum to the budget: the best assets, filled up one by one; ∞ where not known."""
    if total is None or not np.isfinite(lower).all():
        return np.inf
    order = np.argsort(-r, kind="stable")
    left = total - lower.sum()
    room = (upper - lower)[order]
    if left < 0 or room.sum() < left - 1e-12:
        return -np.inf
    before = np.concatenate([[0.0], np.cumsum(room)[:-1]])
    return float(r @ lower + r[order] @ np.clip(left - before, 0.0, room))


EPS = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class Index:
    """Returns y of an index over the periods of X: the tracking error of weights is √(‖Xx − y‖²/periods), at most `limit`."""

    X: Vector
    y: Vector
    limit: float = np.inf

    @cached_property
    def gram(self) -> Vector:
        """XᵀX/periods: error(x)² = xᵀ gram x − 2 pullᵀx + rest."""
        return np.asarray(self.X.T @ self.X / len(self.X))

    @cached_property
    def pull(self) -> Vector:
        """Xᵀy/periods."""
        return np.asarray(self.y @ self.X / len(self.X))

    @cached_property
    def rest(self) -> float:
        """The square of the error of holding nothing."""
        return float(np.mean(np.square(self.y)))

    def error(self, x: Vector) -> float:
        """The tracking error, from the returns themselves."""
        held = np.flatnonzero(x)
        return float(np.sqrt(np.mean(np.square(self.X[:, held] @ x[held] - self.y))))

    def rounding(self, x: Vector) -> float:
        """What summing the error in another order changes at most.

        Returns are sums of as many terms as names are held, and rounded as these are large, not as the distance to the index is.
        """
        terms = float(np.sqrt(np.diag(self.gram)) @ np.abs(x) + np.sqrt(self.rest))
        return EPS * ((np.count_nonzero(x) + 2) * terms + len(self.y) * self.error(x))

    def kept(self, x: Vector) -> bool:
        """Whether the error is within the limit: by whatever order of summation, or where that decides as all returns give it."""
        error = self.error(x)
        if abs(error - self.limit) > self.rounding(x):
            return error < self.limit
        return bool(np.sqrt(np.mean(np.square(self.X @ x - self.y))) <= self.limit)

    def between(self, far: Vector, near: Vector) -> Vector:
        """The first point within the limit on the way from one beyond it to one within; within by whatever order of summation."""
        a, b = self.X @ far - self.y, self.X @ (near - far)
        size, slope, excess = float(b @ b), float(a @ b), float(a @ a) - len(self.y) * self.limit**2
        root = np.sqrt(max(slope**2 - size * excess, 0.0)) if size > 0 else 0.0
        share = (
            min(max(excess / (root - slope), 0.0), 1.0) if root - slope > 0 else 1.0
        )  # of the way; the smaller root, without cancelling
        step = EPS
        while share < 1.0:
            x = far + share * (near - far)
            if self.error(x) + self.rounding(x) <= self.limit:
                return np.asarray(x)
            share, step = min(share + step, 1.0), 2.0 * step
        return near


PRICE, STEADY = 10.0, 0.05  # the typical price is larger, its typical change from row to row is a smaller part of it
LOSSES = 0.02  # of the entries: with so many below 0 it is no table of prices with mistakes in it
LEVEL = 0.05  # what is always above 0 and smaller may be what a savings account pays


def looks_like_prices(X: Vector) -> bool:
    """Whether a table of returns is more likely one of prices: all above 0, of a size of 10 or more, each row near the one before.

    Returns in percent have losses among them or jump about; what a savings account pays does neither, but is small. Numbers around a
    level change from row to row by twice their variance, prices by far less (von Neumann's ratio).
    """
    return len(X) >= 3 and bool((X > 0).all()) and float(np.median(X)) >= PRICE and _wanders(X)


def told_apart(X: Vector) -> str | None:
    """What a table holds, "prices" or "returns", from its numbers alone; None where they could be either.

    Returns have losses among them. Prices are above 0, and large, or go from row to row by small steps.
    """
    level = float(np.median(X))
    if (X < 0).any():
        return "prices" if (X < 0).mean() < LOSSES and level >= PRICE else "returns"
    return "prices" if level >= PRICE or (level >= LEVEL and len(X) >= 3 and (X > 0).all() and _wanders(X)) else None


def _wanders(X: Vector) -> bool:
    """Whether rows are near the ones before them, and not around a level."""
    changes, spread = np.diff(X, axis=0), np.square(X - X.mean(axis=0)).sum(axis=0)
    moved = spread > 0
    if not moved.any() or np.median(np.abs(changes) / X[1:]) >= STEADY:
        return False
    return bool(np.median(np.square(changes).sum(axis=0)[moved] / spread[moved]) < 1.0)
