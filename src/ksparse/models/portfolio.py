"""Portfolio problems: αxᵀVx − rᵀx, or the variance alone under a target return, with a budget, bounds, group caps and trading costs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ksparse.base.arrays import Vector, is_array
from ksparse.base.checks import check_matrix, check_number, check_vector
from ksparse.errors import InfeasibleError, UnboundedError
from ksparse.losses import Loss, MeanVariance
from ksparse.models.trading import with_trading
from ksparse.result import Result, Status
from ksparse.sets import BudgetBox, ConvexSet, Hyperplane, Polyhedron, Simplex
from ksparse.solve.judge import restated
from ksparse.solve.minimize import minimize

RISK_AVERSION = 10.0  # the paper's α, where nothing else is asked for
FAINT = 1e-40  # a variance as small as this beside the returns counts for nothing in bounded weights; smaller ones the solvers do not see
FEASIBLE = 1e-6  # weights that miss the budget by more are no answer
PRICE, STEADY = 10.0, 0.05  # the typical price is larger, its typical change from row to row is a smaller part of it


@dataclass(frozen=True)
class Portfolio:
    """What is asked of the weights x, which sum to 1: min αxᵀVx − rᵀx (+ cost Σ|xᵢ − heldᵢ|) over C."""

    V: Any
    r: Vector  # 0 where the variance alone counts
    alpha: float
    lower: float
    upper: float
    G: Vector  # rows Gx ≤ h: the target return, the group caps
    h: Vector
    held: Vector | None = None  # weights before
    cost: float = 0.0  # per unit traded

    @property
    def loss(self) -> Loss:
        """φ without the trading cost."""
        return MeanVariance(self.V, self.r, self.alpha)

    @property
    def C(self) -> ConvexSet:
        """The set, as the simplest that describes it."""
        if self.h.size:
            n, bounds = len(self.r), {"lower": np.full(len(self.r), self.lower), "upper": np.full(len(self.r), self.upper)}
            try:
                return Polyhedron(self.G, self.h, np.ones((1, n)), np.ones(1), **bounds)
            except InfeasibleError:
                raise InfeasibleError("no weights meet the budget, the bounds, the target return and the group caps together") from None
        if np.isinf(self.upper):
            return Simplex() if self.lower == 0.0 else Hyperplane()
        return BudgetBox(1.0, self.lower, self.upper)

    def scaled(self) -> tuple[Portfolio, int]:
        """The same portfolios asked for in numbers near 1, and e: values are then 2⁻ᵉ times as large, and the weights the same.

        V, r and the cost are divided by powers of 2, which rounds nothing; each row of G is divided by one of its own.
        """
        V = np.asarray(self.V, dtype=float) if is_array(self.V) else self.V
        power = exponent(np.abs(V).max()) if is_array(V) else 0
        common = max(exponent(self.alpha) + power, exponent(np.abs(self.r).max()), exponent(self.cost))
        rows = np.array([exponent(np.abs(row).max()) for row in self.G], dtype=int)
        return replace(
            self, V=np.ldexp(V, -power) if is_array(V) else V, r=np.ldexp(self.r, -common), cost=math.ldexp(self.cost, -common),
            alpha=max(math.ldexp(self.alpha, power - common), FAINT), G=np.ldexp(self.G, -rows[:, None]), h=np.ldexp(self.h, -rows),
        ), common  # fmt: skip

    def value(self, x: Vector) -> float:
        """φ with the trading cost."""
        traded = 0.0 if self.held is None else self.cost * float(np.abs(x - self.held).sum())
        return float(self.alpha * (x @ (self.V @ x)) - self.r @ x) + traded


def exponent(size: Any) -> int:
    """e with size = m·2ᵉ, 1 ≤ m < 2; very small for 0, so that it counts for nothing."""
    return math.frexp(float(size))[1] - 1 if size > 0 else -2_000


def portfolio(
    V: Any,
    r: Any,
    *,
    risk_aversion: float | None = None,
    target_return: float | None = None,
    long_only: bool = False,
    max_weight: float | None = None,
    groups: list[tuple[Vector, float]] | None = None,
    held: Any = None,
    cost: float = 0.0,
) -> Portfolio:
    """A portfolio problem, checked.

    risk_aversion : α of αxᵀVx − rᵀx. target_return : the mean return that must be reached per period; without a risk aversion the
    variance alone is minimised. long_only : no weight below 0. max_weight : no weight above it, in size. groups : (assets, cap) pairs,
    the weights of the assets sum to the cap at most. held, cost : weights before, and what a unit of trade costs.
    """
    V = check_matrix(V, "V")
    n = int(V.shape[0])
    r = np.asarray(check_vector(r, "r", n), dtype=float)
    alpha = None if risk_aversion is None else check_number(risk_aversion, "risk_aversion", above=0)
    upper = np.inf if max_weight is None else check_number(max_weight, "max_weight", above=0)
    rows, right = [], []
    if target_return is not None:
        target = check_number(target_return, "target_return")
        reachable = _largest_return(r, upper) if long_only else np.inf
        if target > reachable + 1e-12 * abs(reachable):
            raise InfeasibleError(f"the target return {target:g} is above the largest within the bounds, {reachable:g}")
        rows, right = [-r], [-target]
    for assets, cap in groups or []:
        member = np.zeros(n)
        member[assets] = 1.0
        rows.append(member)
        right.append(check_number(cap, "group cap"))
    plain = target_return is not None and alpha is None  # the variance alone
    alpha = 1.0 if plain else RISK_AVERSION if alpha is None else alpha
    if is_array(V) and exponent(alpha) + exponent(np.abs(V).max()) > 1_000:
        raise ValueError(f"V must hold numbers of at most {1e300 / alpha:g} beside a risk aversion of {alpha:g}: use other units")
    return Portfolio(
        V, np.zeros(n) if plain else r, alpha, 0.0 if long_only else -upper, upper,
        np.array(rows).reshape(-1, n), np.array(right), None if held is None else np.asarray(check_vector(held, "held", n), dtype=float),
        check_number(cost, "cost", at_least=0),
    )  # fmt: skip


def looks_like_prices(X: Vector) -> bool:
    """Whether a table of returns is more likely one of prices: all above 0, of a size of 10 or more, each row near the one before.

    Returns in percent have losses among them or jump about; what a savings account pays does neither, but is small. Numbers around a
    level change from row to row by twice their variance, prices by far less (von Neumann's ratio).
    """
    if len(X) < 3 or not (X > 0).all() or np.median(X) < PRICE:
        return False
    changes, spread = np.diff(X, axis=0), np.square(X - X.mean(axis=0)).sum(axis=0)
    moved = spread > 0
    if not moved.any() or np.median(np.abs(changes) / X[1:]) >= STEADY:
        return False
    return bool(np.median(np.square(changes).sum(axis=0)[moved] / spread[moved]) < 1.0)


def solve_portfolio(wanted: Portfolio, k: int, *, min_weight: float = 0.0, C: ConvexSet | None = None, **options: Any) -> Result:
    """The best portfolio of at most k assets, each at least min_weight in size; C : a set instead of budget, bounds and rows.

    `UnboundedError` where the best weights are so large that in floating-point numbers they cannot sum to 1.
    """
    if check_number(min_weight, "min_weight", at_least=0) > wanted.upper:
        raise InfeasibleError(f"min_weight {min_weight:g} is above max_weight {wanted.upper:g}")
    near, power = wanted.scaled()
    if C is not None or wanted.held is None or wanted.cost == 0.0:
        found = minimize(near.loss, k, near.C if C is None else C, min_nonzero=min_weight, **options)
    else:
        found = with_trading(near, k, min_weight, options)
    if C is None and found.status is not Status.UNBOUNDED and not found.maxcv <= FEASIBLE:
        raise UnboundedError(
            "some portfolio has hardly any risk and as much return as one likes: bound the weights, or weigh the risk more"
        )
    x = np.asarray(found.x, dtype=float)
    fun = wanted.value(x) if C is None else wanted.loss.value(x)
    return restated(found, fun, lambda value: np.ldexp(value, power))


def _largest_return(r: Vector, most: float) -> float:
    """The largest mean return of weights in [0, most] that sum to 1: the best assets, filled up one by one."""
    if most >= 1.0:
        return float(r.max())
    weights = np.clip(1.0 - most * np.arange(r.size), 0.0, most)
    return float(np.sort(r)[::-1] @ weights) if weights.sum() >= 1.0 - 1e-12 else -np.inf
