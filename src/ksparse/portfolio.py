"""Portfolio problems: αxᵀVx − rᵀx, or the variance alone under a target return, with a budget, bounds, group caps and trading costs."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from ksparse.arrays import is_array
from ksparse.checks import check_matrix, check_number, check_vector
from ksparse.errors import InfeasibleError, UnboundedError
from ksparse.losses import Loss, MeanVariance
from ksparse.minimize import minimize
from ksparse.result import Result, Status
from ksparse.sets import BudgetBox, ConvexSet, Hyperplane, Linear, Polyhedron, Simplex
from ksparse.sets.qp import solve_qp

RISK_AVERSION = 10.0  # the paper's α, where nothing else is asked for
ROUNDS = 5  # of the majorised trading cost
FEW = 500  # so many supports are all tried
NEWCOMERS = 8  # outsiders tried for each member
FAINT = 1e-40  # a variance as small as this beside the returns counts for nothing in bounded weights; smaller ones the solvers do not see
FEASIBLE = 1e-6  # weights that miss the budget by more are no answer
PRICE, STEADY = 10.0, 0.05  # the typical price is larger, its typical change from row to row is a smaller part of it
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
        found = _with_trading(near, k, min_weight, options)
    if C is None and found.status is not Status.UNBOUNDED and not found.maxcv <= FEASIBLE:
        raise UnboundedError(
            "some portfolio has hardly any risk and as much return as one likes: bound the weights, or weigh the risk more"
        )
    x = np.asarray(found.x, dtype=float)
    fun = wanted.value(x) if C is None else wanted.loss.value(x)
    rows = [row | {"fun": np.ldexp(row["fun"], power)} if "fun" in row else row for row in found.outcomes]
    return replace(found, fun=fun, trace=replace(found.trace, F=np.ldexp(found.trace.F, power)), outcomes=rows)


def _with_trading(wanted: Portfolio, k: int, floor: float, options: dict[str, Any]) -> Result:
    """The same with cost Σ|xᵢ − heldᵢ|: supports from several starts, each valued exactly, exchanged one for one until none helps.

    The starts: the answer without cost, what is held, and answers under quadratic majorants of the kinks, |t| ≤ t²/(2s) + s/2. Where
    there are few supports all are tried.
    """
    assert wanted.held is not None
    began = time.perf_counter()
    limit = options.get("max_time")
    values = _Values(wanted, floor, np.inf if limit is None else began + limit)
    n = len(wanted.r)
    found = minimize(wanted.loss, k, wanted.C, min_nonzero=floor, **options)
    values.ask(found.support)
    sizes = range(1, k + 1) if floor else (k,)  # without a floor a smaller support is a larger one with zeros
    few = sum(comb(n, size) for size in sizes) <= FEW
    if found.status.good and few:
        values.any_of(np.array(support) for size in sizes for support in combinations(range(n), size))
    elif found.status.good:
        values.ask(np.sort(np.argsort(-np.abs(wanted.held), kind="stable")[:k]))
        _majorised(wanted, k, floor, options, values)
        _exchange(wanted, k, floor, values)
    status = found.status
    if status.good:
        tried_all = few and not values.late and (not floor or wanted.lower == 0.0)  # a floor on both sides of 0: which, is a guess
        status = Status.OPTIMAL if tried_all else Status.TIME_LIMIT if values.late else Status.STATIONARY
    x = np.asarray(found.x, dtype=float) if values.best is None else values.best
    return replace(
        found, x=x, fun=wanted.value(x), support=np.flatnonzero(x), maxcv=wanted.C.violation(x), status=status, message=status.message,
        proved=status is Status.OPTIMAL, success=found.success and status.good, elapsed=time.perf_counter() - began,
    )  # fmt: skip


class _Values:
    """The exact value of every support asked for, and the best weights so far."""

    def __init__(self, wanted: Portfolio, floor: float, deadline: float) -> None:
        self.wanted, self.floor, self.deadline = wanted, floor, deadline
        self.seen: set[bytes] = set()
        self.best: Vector | None = None
        self.least = np.inf

    @property
    def late(self) -> bool:
        return time.perf_counter() >= self.deadline

    def ask(self, support: Vector) -> bool:
        """Whether a support is better than all before."""
        support = np.sort(np.asarray(support, dtype=np.intp))
        if support.tobytes() in self.seen or (self.late and self.best is not None):
            return False
        self.seen.add(support.tobytes())
        x = _exact(self.wanted, support, self.floor)
        if x is None or not self.wanted.value(x) < self.least - 1e-12 * abs(self.least if np.isfinite(self.least) else 0.0):
            return False
        self.best, self.least = x, self.wanted.value(x)
        return True

    def any_of(self, supports: Iterable[Vector]) -> bool:
        """Whether one of several supports, all of which are asked, is better."""
        return sum(self.ask(support) for support in supports) > 0


def _majorised(wanted: Portfolio, k: int, floor: float, options: dict[str, Any], values: _Values) -> None:
    """Supports under majorants of the cost, each round bent at the trades of the last."""
    assert wanted.held is not None
    linear = (wanted.held == 0) & (wanted.lower == 0.0)  # bought only: the cost needs no majorant
    near = np.maximum(np.abs(wanted.held), 1.0 / k)
    for _ in range(ROUNDS):
        bend = np.where(linear, 0.0, wanted.cost / near)
        r = wanted.r - np.where(linear, wanted.cost, 0.0) + bend * wanted.held
        loss = MeanVariance(np.asarray(wanted.V, dtype=float) + np.diag(bend) / (2.0 * wanted.alpha), r, wanted.alpha)
        found = minimize(loss, k, wanted.C, min_nonzero=floor, x0=values.best, **options)
        if not found.status.good or not values.ask(found.support):
            return
        near = np.maximum(np.abs(np.asarray(found.x) - wanted.held), NEAR)


def _exchange(wanted: Portfolio, k: int, floor: float, values: _Values) -> None:
    """Members of the best support for outsiders with the strongest pull, a free seat for one of them, with a floor also one fewer."""
    assert wanted.held is not None
    better = True
    while better and not values.late:
        better, x = False, values.best
        if x is None:
            return
        members = np.flatnonzero(x)
        gradient = 2.0 * wanted.alpha * (wanted.V @ x) - wanted.r + wanted.cost * np.sign(x - wanted.held)
        outside = np.setdiff1d(np.arange(len(x)), members)
        pull = np.abs(gradient[outside] - np.median(gradient[members])) if wanted.lower < 0 else -gradient[outside]
        pull = pull + wanted.cost * (wanted.held[outside] != 0)
        newcomers = outside[np.argsort(-pull, kind="stable")[:NEWCOMERS]]
        if members.size < k:
            better = values.any_of(np.append(members, i) for i in newcomers)
        if floor:
            better = values.any_of(members[members != j] for j in members) or better
        for j in members[np.argsort(np.abs(x[members]), kind="stable")]:
            better = values.any_of(np.append(members[members != j], i) for i in newcomers) or better


def _exact(wanted: Portfolio, support: Vector, floor: float) -> Vector | None:
    """The best weights on a support: xᵢ = heldᵢ + buyᵢ − sellᵢ with buy, sell ≥ 0, a quadratic program in three variables per asset.

    None where there are no such weights. A floor is put on the side that the optimum without it chooses.
    """
    x = _program(wanted, support, None)
    if x is None or not floor:
        return x
    return _program(wanted, support, np.where(x[support] >= 0, floor, -floor))


def _program(wanted: Portfolio, support: Vector, floor: Vector | None) -> Vector | None:
    assert wanted.held is not None
    k, held = support.size, wanted.held[support]
    if not k:
        return None
    H, zero, eye = 2.0 * wanted.alpha * np.asarray(wanted.V, dtype=float)[np.ix_(support, support)], np.zeros((k, k)), np.eye(k)
    lower, upper = np.full(k, wanted.lower), np.full(k, wanted.upper)
    if floor is not None:
        lower, upper = np.where(floor > 0, np.maximum(lower, floor), lower), np.where(floor < 0, np.minimum(upper, floor), upper)
    whole = Linear(
        np.concatenate([lower, np.zeros(2 * k)]), np.concatenate([upper, np.full(2 * k, np.inf)]),
        np.hstack([wanted.G[:, support], np.zeros((wanted.h.size, 2 * k))]), wanted.h,
        np.vstack([np.hstack([np.ones((1, k)), np.zeros((1, 2 * k))]), np.hstack([eye, -eye, eye])]), np.concatenate([[1.0], held]),
    )  # fmt: skip
    costs = np.concatenate([-wanted.r[support], np.full(2 * k, wanted.cost)])
    try:
        found = solve_qp(np.block([[H, zero, zero], [zero, zero, zero], [zero, zero, zero]]), costs, whole).x[:k]
    except (InfeasibleError, UnboundedError):
        return None
    out = np.zeros(len(wanted.r))
    out[support] = np.where(np.abs(found - held) <= 1e-12, held, found)  # no trade is none
    return out if wanted.C.violation(out) <= 1e-9 else None


def _largest_return(r: Vector, most: float) -> float:
    """The largest mean return of weights in [0, most] that sum to 1: the best assets, filled up one by one."""
    if most >= 1.0:
        return float(r.max())
    weights = np.clip(1.0 - most * np.arange(r.size), 0.0, most)
    return float(np.sort(r)[::-1] @ weights) if weights.sum() >= 1.0 - 1e-12 else -np.inf
