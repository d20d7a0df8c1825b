"""Portfolio problems: αxᵀVx − rᵀx, or the variance alone under a target return, with a budget, bounds, group caps and trading costs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ksparse.checks import check_matrix, check_number, check_vector
from ksparse.errors import InfeasibleError
from ksparse.losses import Loss, MeanVariance
from ksparse.minimize import minimize
from ksparse.result import Result
from ksparse.sets import BudgetBox, ConvexSet, Hyperplane, Linear, Polyhedron, Simplex
from ksparse.sets.qp import solve_qp

RISK_AVERSION = 10.0  # the paper's α, where nothing else is asked for
ROUNDS = 8  # of the majorised trading cost
NEAR = 1e-4  # a trade smaller than this is majorised as if it were this large
Vector = np.ndarray[Any, Any]


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
            n = len(self.r)
            return Polyhedron(self.G, self.h, np.ones((1, n)), np.ones(1), lower=np.full(n, self.lower), upper=np.full(n, self.upper))
        if np.isinf(self.upper):
            return Simplex() if self.lower == 0.0 else Hyperplane()
        return BudgetBox(1.0, self.lower, self.upper)

    def value(self, x: Vector) -> float:
        """φ with the trading cost."""
        traded = 0.0 if self.held is None else self.cost * float(np.abs(x - self.held).sum())
        return float(self.alpha * (x @ (self.V @ x)) - self.r @ x) + traded


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
    return Portfolio(
        V, np.zeros(n) if plain else r, 1.0 if plain else RISK_AVERSION if alpha is None else alpha, 0.0 if long_only else -upper, upper,
        np.array(rows).reshape(-1, n), np.array(right), None if held is None else np.asarray(check_vector(held, "held", n), dtype=float),
        check_number(cost, "cost", at_least=0),
    )  # fmt: skip


def solve_portfolio(wanted: Portfolio, k: int, *, min_weight: float = 0.0, **options: Any) -> Result:
    """The best portfolio of at most k assets, each at least min_weight in size."""
    if wanted.held is None or wanted.cost == 0.0:
        return minimize(wanted.loss, k, wanted.C, min_nonzero=min_weight, **options)
    return _with_trading(wanted, k, min_weight, options)


def _with_trading(wanted: Portfolio, k: int, floor: float, options: dict[str, Any]) -> Result:
    """The same with cost Σ|xᵢ − heldᵢ|: by quadratic majorants of the kinks, then exactly on the support that they lead to.

    |t| ≤ t²/(2s) + s/2 with equality at |t| = s, so each round's answer is no worse than the last one's. Where nothing is held and
    nothing may be sold short the cost is linear and needs no majorant.
    """
    assert wanted.held is not None
    V, n = np.asarray(wanted.V, dtype=float), len(wanted.r)
    linear = (wanted.held == 0) & (wanted.lower == 0.0)
    best: Result | None = None
    near = np.maximum(np.abs(wanted.held), 1.0 / n)  # how far each is expected to trade
    for _ in range(ROUNDS):
        bend = np.where(linear, 0.0, wanted.cost / near)
        r = wanted.r - np.where(linear, wanted.cost, 0.0) + bend * wanted.held
        loss = MeanVariance(V + np.diag(bend) / (2.0 * wanted.alpha), r, wanted.alpha)
        start = None if best is None else best.x
        found = minimize(loss, k, wanted.C, min_nonzero=floor, x0=start, **options)
        x = _exact(wanted, np.asarray(found.support), np.asarray(found.x), floor)
        found = replace(found, x=x, fun=wanted.value(x), support=np.flatnonzero(x), maxcv=wanted.C.violation(x))
        if best is not None and found.fun >= best.fun - 1e-12 * abs(best.fun):
            break
        best, near = found, np.maximum(np.abs(x - wanted.held), NEAR)
        if not found.status.good:
            break
    assert best is not None
    return best


def _exact(wanted: Portfolio, support: Vector, x: Vector, floor: float) -> Vector:
    """The best weights on a support: xᵢ = heldᵢ + buyᵢ − sellᵢ with buy, sell ≥ 0, a quadratic program in three variables per asset."""
    assert wanted.held is not None
    k, held = support.size, wanted.held[support]
    if not k:
        return x
    H, zero, eye = 2.0 * wanted.alpha * np.asarray(wanted.V, dtype=float)[np.ix_(support, support)], np.zeros((k, k)), np.eye(k)
    lower, upper = np.full(k, wanted.lower), np.full(k, wanted.upper)
    if floor:
        lower = np.where(x[support] > 0, np.maximum(lower, floor), lower)
        upper = np.where(x[support] < 0, np.minimum(upper, -floor), upper)
    whole = Linear(
        np.concatenate([lower, np.zeros(2 * k)]), np.concatenate([upper, np.full(2 * k, np.inf)]),
        np.hstack([wanted.G[:, support], np.zeros((wanted.h.size, 2 * k))]), wanted.h,
        np.vstack([np.hstack([np.ones((1, k)), np.zeros((1, 2 * k))]), np.hstack([eye, -eye, eye])]), np.concatenate([[1.0], held]),
    )  # fmt: skip
    costs = np.concatenate([-wanted.r[support], np.full(2 * k, wanted.cost)])
    try:
        found = solve_qp(np.block([[H, zero, zero], [zero, zero, zero], [zero, zero, zero]]), costs, whole).x[:k]
    except InfeasibleError:
        return x
    out = np.zeros_like(x)
    out[support] = np.where(np.abs(found - held) <= 1e-12, held, found)  # no trade is none
    return out if wanted.value(out) <= wanted.value(x) else x


def _largest_return(r: Vector, most: float) -> float:
    """The largest mean return of weights in [0, most] that sum to 1: the best assets, filled up one by one."""
    left, total = 1.0, 0.0
    for mean in np.sort(r)[::-1]:
        weight = min(most, left)
        left, total = left - weight, total + weight * float(mean)
    return total if left <= 1e-12 else -np.inf
