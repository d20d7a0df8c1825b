"""The exact optimum of a small quadratic program: which constraints hold as equations, and linear algebra for the rest.

Two ways. `exchanged` goes from a guess to the next by what breaks and what pays the wrong price, all at once: a few solves where the guess
is near, but it may cycle. `descended` is the textbook's primal active-set method from a feasible point, one constraint at a time: slow, and
it ends at the optimum or on a ray along which the objective falls for ever. Numbers are in units of size 1 here (see `qp`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ksparse.base.arrays import Vector
from ksparse.errors import UnboundedError
from ksparse.linalg.constraints import Linear
from ksparse.linalg.objective import Objective, least_squares, null_space, solve_symmetric, svd

ROUNDS = 30  # of exchanges
TINY = 1e-11  # of a constraint's terms: broken by less is rounding
DUST = 1e-14  # of the largest entry of x: less is rounding
FLAT = 1e-15  # of the largest curvature, for each variable: less is rounding
PULL = 1e-9  # of the gradient's terms: less does not move along a flat direction


@dataclass(frozen=True)
class Active:
    """Which constraints hold as equations: variables at a bound, rows of G."""

    at_lower: Vector
    at_upper: Vector
    rows: Vector

    @classmethod
    def none(cls, n: int, rows: int) -> Active:
        """Not one, of n variables and so many rows."""
        return cls(np.zeros(n, dtype=bool), np.zeros(n, dtype=bool), np.zeros(rows, dtype=bool))


@dataclass(frozen=True)
class Solution:
    """The optimum and its multipliers."""

    x: Vector
    bound_price: Vector  # Hx + c + rowsᵀλ: > 0 at an active lower bound, < 0 at an active upper one
    row_price: Vector  # one per row of G, ≥ 0
    equation_price: Vector  # one per row of E
    active: Active
    shift: float = 0.0  # price of a ball: the Lagrangian has ½·shift·(‖x‖² − radius²) in it, so that H + shift·I is what is felt
    radius: float = 0.0

    @classmethod
    def unpriced(cls, x: Vector, rows: int = 0) -> Solution:
        """A point of which nothing more is known."""
        return cls(x, np.zeros(x.size), np.zeros(rows), np.zeros(0), Active.none(x.size, rows))


def exchanged(objective: Objective | None, c: Vector, linear: Linear, active: Active, rounds: int = ROUNDS) -> Solution | None:
    """The optimum reached by exchanging constraints from a guess, or None where that cycles; no objective means H = I."""
    for _ in range(rounds):
        found, gradient = _on_active(objective, c, linear, active)
        x, price = found.x, found.bound_price
        if not np.isfinite(x).all():
            return None
        free = ~(active.at_lower | active.at_upper)
        pull = max(float(np.abs(c).max(initial=0.0)), float(np.abs(gradient).max(initial=0.0)))  # what the prices are made of
        if np.abs(price[free]).max(initial=0.0) > 1e-6 * pull:
            return None  # no curvature and still a pull: there is no optimum on this face
        tiny, cheap = TINY * float(np.abs(x).max(initial=0.0)), TINY * pull
        enter_low, enter_high = linear.lower - x > tiny, x - linear.upper > tiny
        terms = np.maximum(np.abs(linear.h), np.abs(linear.G) @ np.abs(x))  # a row on small entries of x knows nothing of the large ones
        enter_rows = linear.G @ x - linear.h > np.maximum(TINY * terms, DUST * float(np.abs(x).max(initial=0.0)))
        leave_low, leave_high = active.at_lower & (price < -cheap), active.at_upper & (price > cheap)
        leave_rows = active.rows & (found.row_price < -cheap)
        if not any(change.any() for change in (enter_low, enter_high, enter_rows, leave_low, leave_high, leave_rows)):
            return found
        active = Active(
            (active.at_lower & ~leave_low) | enter_low,
            (active.at_upper & ~leave_high) | (enter_high & ~enter_low),
            (active.rows & ~leave_rows) | enter_rows,
        )
    return None


def _on_active(objective: Objective | None, c: Vector, linear: Linear, active: Active) -> tuple[Solution, Vector]:
    """The optimum with the active constraints as equations, and the gradient there."""
    x = np.where(active.at_lower, linear.lower, np.where(active.at_upper, linear.upper, 0.0))
    free = ~(active.at_lower | active.at_upper)
    M = np.vstack([linear.E, linear.G[active.rows]])
    right = np.concatenate([linear.f, linear.h[active.rows]]) - M[:, ~free] @ x[~free]
    if objective is None:
        prices = solve_symmetric(M[:, free] @ M[:, free].T, -M[:, free] @ c[free] - right)
        x[free] = -c[free] - M[:, free].T @ prices
        gradient = x + c
    else:
        x[free], prices = objective.on(free, x).minimum_under(M[:, free], right)
        gradient = objective.gradient(x)
    row_price = np.zeros(linear.h.size)
    row_price[active.rows] = prices[linear.f.size :]
    return Solution(x, gradient + M.T @ prices, row_price, prices[: linear.f.size], active), gradient


def descended(objective: Objective, linear: Linear, x: Vector) -> Solution | None:
    """The optimum by the primal active-set method from a feasible x; None where rounding keeps it from ending."""
    rows, right, side = _as_rows(linear)
    working: list[int] = []
    for turn in range(20 * (x.size + right.size) + 50):
        M = np.vstack([linear.E, rows[working]])
        step, endless = _step(objective, x, M)
        if step is None:
            prices = least_squares(M.T, -objective.gradient(x)) if M.size else np.zeros(len(M))
            own = prices[linear.f.size :]
            wrong = np.flatnonzero(own < -TINY * float(np.abs(objective.gradient(x)).max(initial=0.0)))
            if not wrong.size:
                return _solution(objective, linear, x, working, prices, side)
            working.pop(int(wrong[0]) if turn > 10 * x.size + 25 else int(wrong[np.argmin(own[wrong])]))  # late: Bland's rule, no cycles
            continue
        rate = rows @ step
        rate[working] = 0.0
        ahead = np.flatnonzero(rate > 1e-12 * np.abs(rows).max(axis=1, initial=0.0) * np.abs(step).max())
        room = np.maximum(right[ahead] - rows[ahead] @ x, 0.0) / rate[ahead]
        length = float(room.min(initial=np.inf if endless else 1.0))
        if np.isinf(length):
            raise UnboundedError("the quadratic program falls without end")
        x = x + length * step
        if room.size and length == room.min():
            working.append(int(ahead[np.argmin(room)]))
    return None


def _step(objective: Objective, x: Vector, M: Vector) -> tuple[Vector | None, bool]:
    """Where to go with the rows of M held: to the minimum there, or along a flat direction that falls (then without end); None: nowhere."""
    along = null_space(M) if M.size else np.eye(x.size)
    gradient = objective.gradient(x)
    terms = float((np.abs(objective.H) @ np.abs(x) + np.abs(objective.c)).max(initial=0.0))
    pull = along.T @ gradient
    if not pull.size or float(np.abs(pull).max()) <= 1e-13 * terms:
        return None, False
    if objective.R is not None:
        _, sizes, vectors = svd(objective.R @ along)
        curvature = np.zeros(pull.size)
        curvature[: sizes.size] = sizes**2
        flat, vectors = curvature <= (1e-15 * float(sizes.max(initial=0.0))) ** 2, vectors.T
    else:
        curvature, vectors = np.linalg.eigh(along.T @ objective.H @ along)
        flat = curvature <= FLAT * x.size * float(np.abs(objective.H).max())
    parts = vectors.T @ pull
    if objective.R is None and float(np.abs(parts[flat]).max(initial=0.0)) > PULL * terms:
        return -along @ (vectors[:, flat] @ parts[flat]), True
    step = -along @ (vectors[:, ~flat] @ (parts[~flat] / curvature[~flat]))
    return (None, False) if float(np.abs(step).max(initial=0.0)) <= 1e-15 * float(np.abs(x).max()) else (step, False)


def _as_rows(linear: Linear) -> tuple[Vector, Vector, list[tuple[str, int]]]:
    """Every inequality as a row, its right-hand side, and what it is."""
    n, eye = linear.lower.size, np.eye(linear.lower.size)
    low, high = np.flatnonzero(np.isfinite(linear.lower)), np.flatnonzero(np.isfinite(linear.upper))
    side = [("row", i) for i in range(linear.h.size)] + [("low", int(i)) for i in low] + [("high", int(i)) for i in high]
    rows = np.vstack([linear.G.reshape(-1, n), -eye[low], eye[high]])
    return rows, np.concatenate([linear.h, -linear.lower[low], linear.upper[high]]), side


def _solution(objective: Objective, linear: Linear, x: Vector, working: list[int], prices: Vector, side: list[tuple[str, int]]) -> Solution:
    """The optimum as `exchanged` gives it."""
    active = Active.none(x.size, linear.h.size)
    row_price = np.zeros(linear.h.size)
    for price, place in zip(prices[linear.f.size :], working, strict=True):
        kind, i = side[place]
        if kind == "row":
            active.rows[i], row_price[i] = True, price
        else:
            (active.at_lower if kind == "low" else active.at_upper)[i] = True
    x = np.where(active.at_lower, linear.lower, np.where(active.at_upper, linear.upper, x))
    equation_price = prices[: linear.f.size]
    bound_price = objective.gradient(x) + linear.E.T @ equation_price + linear.G.T @ row_price
    return Solution(x, bound_price, row_price, equation_price, active)
