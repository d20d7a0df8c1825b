"""Portfolios that pay for their trades: cost Σ|xᵢ − heldᵢ| on top, exactly on each support that is asked about."""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from ksparse.base.arrays import Vector
from ksparse.errors import InfeasibleError, UnboundedError
from ksparse.linalg.constraints import Linear
from ksparse.linalg.objective import Objective
from ksparse.linalg.qp import solve_qp
from ksparse.losses import MeanVariance
from ksparse.result import Result, Status
from ksparse.solve.by_search import one_search
from ksparse.solve.judge import rejudged
from ksparse.solve.minimize import minimize

if TYPE_CHECKING:
    from ksparse.models.portfolio import Portfolio

ROUNDS = 5  # of the majorised trading cost
FEW = 500  # so many supports are all tried
NEWCOMERS = 8  # outsiders tried for each member
NEAR = 1e-4  # a trade smaller than this is majorised as if it were this large


def with_trading(wanted: Portfolio, k: int, floor: float, options: dict[str, Any]) -> Result:
    """The same with cost Σ|xᵢ − heldᵢ|: supports from several starts, each valued exactly, exchanged one for one until none helps.

    The starts: the answer without cost, what is held, and answers under quadratic majorants of the kinks, |t| ≤ t²/(2s) + s/2. Where
    there are few supports all are tried.
    """
    assert wanted.held is not None
    began = time.perf_counter()
    limit, options = options.get("max_time"), one_search(options)
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
        status = Status.TIME_LIMIT if values.late else Status.STATIONARY  # every support may have been tried: but no bound was proved
    x = np.asarray(found.x, dtype=float) if values.best is None else values.best
    return rejudged(found, x, wanted.value(x), wanted.C, status, time.perf_counter() - began)


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
        x = exact(self.wanted, support, self.floor)
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


def exact(wanted: Portfolio, support: Vector, floor: float) -> Vector | None:
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
        found = solve_qp(Objective(np.block([[H, zero, zero], [zero, zero, zero], [zero, zero, zero]]), costs), whole).x[:k]
    except (InfeasibleError, UnboundedError):
        return None
    out = np.zeros(len(wanted.r))
    out[support] = np.where(np.abs(found - held) <= 1e-12, held, found)  # no trade is none
    return out if wanted.C.violation(out) <= 1e-9 else None
