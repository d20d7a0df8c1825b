"""Small convex quadratic programs over a polyhedron, solved to rounding, or said to have no point, no end, or no answer.

An interior-point answer is off by its tolerance: a weight of 1e-9 where 0 is meant, a budget of 0.999999999. So PIQP only guesses the
active constraints, and `active_set` makes the answer exact. What comes back has been checked: feasible to rounding of each constraint's
own terms, and with prices of the right sign. Where that fails linear programming decides whether there is a point at all, and the slow
sure way starts from one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import piqp

from ksparse.base.arrays import Vector
from ksparse.errors import InfeasibleError, UndecidedError
from ksparse.linalg.active_set import DUST, FLAT, PULL, Active, Solution, descended, exchanged
from ksparse.linalg.constraints import Linear, contributions
from ksparse.linalg.objective import Objective, least_squares
from ksparse.linalg.scaling import unit_constraints, unit_rows, unit_scales

TRUSTED = 1e-9  # of a constraint's terms: broken by more, an answer is refused
MET = 1e-13  # of a constraint's terms: broken by no more, it is met
GUESS_ROUNDS = 3  # of exchanges from a neighbour's constraints: more cost as much as the interior-point solve that they were to save
OFF = 1e-3  # of a constraint's terms: broken by more, an interior-point answer is none
FAR = 1e20  # a right-hand side beyond this, where x is of size 1, does not matter
STATIONARY = 1e-9  # of the gradient's terms: pulled by more, a point is no optimum


def solve_qp(objective: Objective, linear: Linear, guess: Active | None = None, near: Vector | None = None) -> Solution:
    """The minimum over the polyhedron.

    `InfeasibleError` where there is no point, `UnboundedError` with no minimum, `UndecidedError` where arithmetic cannot tell. A guess of
    the active constraints, from a neighbouring problem, often saves the interior-point solve; a point `near` that meets them all saves the
    linear program before the slow way. Everything is scaled to size 1 first:
    variables to a unit diagonal of H, rows to largest entry 1, and the whole by how far x is pulled or held.
    """
    if linear.equations_only:
        found = _under_equations(objective, linear)
        if found is not None:
            return found
    unit = unit_scales(np.diag(objective.H))
    objective = objective.scaled(unit)
    G, h, by_G = unit_rows(linear.G / unit, linear.h)
    E, f, by_E = unit_rows(linear.E / unit, linear.f)
    low, high = linear.lower * unit, linear.upper * unit
    scale = _reach(objective.c, Linear(low, high, G, h, E, f))
    scaled = Linear(low / scale, high / scale, G, h / scale, E, f / scale)

    def some_point() -> Vector:
        met = near is not None and linear.broken(near) <= MET
        return np.asarray((near if met and near is not None else feasible_point(linear)) * unit / scale)

    found = _solve_scaled(objective.rescaled(1 / scale), scaled, guess, some_point)
    x = np.clip(found.x * scale / unit, linear.lower, linear.upper)
    return Solution(
        x, scale * unit * found.bound_price, scale * found.row_price / by_G, scale * found.equation_price / by_E, found.active
    )  # fmt: skip


def _under_equations(objective: Objective, linear: Linear) -> Solution | None:
    """One linear system, where nothing else is asked for; None where its solution is no optimum."""
    n, unit = objective.c.size, unit_scales(np.diag(objective.H))
    E, f, by_E = unit_rows(linear.E / unit, linear.f)
    scaled = objective.scaled(unit)
    x, price = scaled.minimum_under(E, f)
    pull = scaled.gradient(x) + E.T @ price
    terms = np.abs(scaled.H) @ np.abs(x) + np.abs(scaled.c) + np.abs(E.T) @ np.abs(price)
    if not np.abs(pull).max() <= STATIONARY * terms.max() or not np.isfinite(x).all():
        return None
    x = x / unit
    return Solution(x, np.zeros(n), np.zeros(0), price / by_E, Active.none(n, 0)) if linear.broken(x) <= TRUSTED else None


def _reach(c: Vector, linear: Linear) -> float:
    """How large x is likely to be: as constraints that exclude 0 make it; else as it is pulled or held, whichever is less."""
    apart = [linear.f, linear.h[linear.h < 0], linear.lower[linear.lower > 0], linear.upper[linear.upper < 0]]
    held = [*apart, linear.h, linear.lower, linear.upper]
    driven, held_at, pulled = (
        max(float(np.abs(side[np.isfinite(side)]).max(initial=0.0)) for side in sides) for sides in (apart, held, [c])
    )
    return max(driven, min((size for size in (pulled, held_at) if size > 0), default=0.0)) or 1.0


def _solve_scaled(objective: Objective, linear: Linear, guess: Active | None, some_point: Callable[[], Vector]) -> Solution:
    if not _rows_in_reach(linear):
        raise InfeasibleError("an equation or inequality cannot be met within the bounds")

    def from_guess() -> Solution | None:
        return None if guess is None else exchanged(objective, objective.c, linear, guess, GUESS_ROUNDS)

    def from_interior_point() -> Solution | None:
        rough = _interior_point(objective, linear)
        return None if rough is None else exchanged(objective, objective.c, linear, rough)

    def from_some_point() -> Solution | None:
        return descended(objective, linear, np.clip(some_point(), linear.lower, linear.upper))

    for way in (from_guess, from_interior_point, from_some_point):
        found = way()
        if found is None or (way is not from_some_point and _stopped_by_rounding(objective, found.x)):
            continue  # whether anything stops x there, the slow way decides
        for clean in (found, _swept(found, linear), _met(found, linear)):
            if _acceptable(objective, linear, clean):
                return clean
    raise UndecidedError("no optimum of the quadratic program could be found to rounding")


def _stopped_by_rounding(objective: Objective, x: Vector) -> bool:
    """Whether φ falls clearly on the way to x by its slope, and all the curvature on that way is rounding: there may be no end to it."""
    H, c, size = objective.H, objective.c, np.abs(x)
    if objective.R is not None or not float(c @ x) < -PULL * float(np.abs(c) @ size):
        return False
    return float(x @ H @ x) <= FLAT * x.size * float(size @ np.abs(H) @ size)


def _swept(found: Solution, linear: Linear) -> Solution:
    """What is rounding, in units of size 1, as 0: at the tip of a cone all of x is, and breaks each row by as much as the row's terms."""
    return replace(found, x=np.where(np.abs(found.x) <= DUST, np.clip(0.0, linear.lower, linear.upper), found.x))


def _met(found: Solution, linear: Linear) -> Solution:
    """The active rows met again, by the variables that have room: many steps, each rounded, drift away from them."""
    M, right = np.vstack([linear.E, linear.G[found.active.rows]]), np.concatenate([linear.f, linear.h[found.active.rows]])
    x, room = np.clip(found.x, linear.lower, linear.upper), (found.x > linear.lower) & (found.x < linear.upper)
    if not right.size or not room.any():
        return found
    x[room] += least_squares(M[:, room], right - M @ x)
    return replace(found, x=x)


def _acceptable(objective: Objective, linear: Linear, found: Solution) -> bool:
    """Whether a solution breaks no constraint, and no variable is still pulled to where it could go."""
    x = np.clip(found.x, linear.lower, linear.upper)
    if not np.isfinite(found.x).all() or linear.broken(x) > TRUSTED:
        return False
    size = np.abs(objective.H) @ np.abs(x) + np.abs(objective.c)
    size = size + np.abs(linear.E.T) @ np.abs(found.equation_price) + np.abs(linear.G.T) @ np.abs(found.row_price)
    pull = np.where((found.bound_price < 0) & (x < linear.upper) | (found.bound_price > 0) & (x > linear.lower), found.bound_price, 0.0)
    wrong = max(float(np.abs(pull).max(initial=0.0)), -float(found.row_price.min(initial=0.0)))
    return wrong <= STATIONARY * float(size.max(initial=0.0))


def _rows_in_reach(linear: Linear) -> bool:
    """Whether each row alone can be met within the bounds: a cheap look that spares the solver most infeasible problems."""
    for M, v, equation in ((linear.E, linear.f, True), (linear.G, linear.h, False)):
        if v.size:
            ends = np.stack(contributions(M, linear.lower, linear.upper))
            least, most = ends.sum(axis=2)
            slack = TRUSTED * np.maximum(np.abs(v), np.where(np.isfinite(ends), np.abs(ends), 0.0).max(axis=0).sum(axis=1))
            if (least > v + slack).any() or (equation and (most < v - slack).any()):
                return False
    return True


def project_polyhedron(u: Vector, linear: Linear, guess: Active | None) -> Solution:
    """The nearest point: the same exchange of constraints, where the equations of each guess are as few as its rows."""
    identity = Objective(np.eye(u.size), -u)
    found = None if guess is None else exchanged(None, -u, linear, guess)
    return found if found is not None and _acceptable(identity, linear, found) else solve_qp(identity, linear)


def _interior_point(objective: Objective, linear: Linear) -> Active | None:
    """The constraints that are active at PIQP's answer; None where it gives none."""
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-9
    solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = 1e-9
    solver.settings.max_iter = 100
    E, f = (np.asfortranarray(linear.E), linear.f) if linear.f.size else (None, None)
    near = linear.h < FAR  # the others PIQP would complain of
    G, h = (np.asfortranarray(linear.G[near]), linear.h[near]) if near.any() else (None, None)
    lower, upper = np.where(linear.lower > -FAR, linear.lower, -np.inf), np.where(linear.upper < FAR, linear.upper, np.inf)
    size = max(1.0, float(np.abs(objective.c).max(initial=0.0)))  # where bounds hold x far from where c pulls it: else PIQP loses its way
    solver.setup(np.asfortranarray(objective.H / size), objective.c / size, E, f, G, None, h, lower, upper)
    solver.solve()
    found = solver.result
    x, low, high = np.array(found.x), np.array(found.z_bl), np.array(found.z_bu)
    if not np.isfinite(x).all() or linear.broken(x) > OFF:  # there may be no point at all: linear programming will tell
        return None
    row_price = np.zeros(linear.h.size)
    row_price[near] = np.array(found.z_u) if near.any() else 0.0
    at_lower = (low > np.abs(x - linear.lower)) & np.isfinite(linear.lower)
    at_upper = (high > np.abs(linear.upper - x)) & np.isfinite(linear.upper) & ~at_lower
    return Active(at_lower, at_upper, row_price > np.abs(linear.h - linear.G @ x))


def feasible_point(linear: Linear) -> Vector:
    """A point of the polyhedron to rounding, by linear programming and a correction; of bounds alone, the one nearest to 0."""
    if not (linear.h.size or linear.f.size):
        return np.asarray(np.clip(0.0, linear.lower, linear.upper))
    (G, h, _), (E, f, _) = unit_rows(linear.G, linear.h), unit_rows(linear.E, linear.f)
    linear = Linear(linear.lower, linear.upper, G, h, E, f)
    found = linear_program(np.zeros(linear.lower.size), linear, lambda M: M, np.column_stack([linear.lower, linear.upper]))
    if found is None:
        raise InfeasibleError("linear programming proves that no point meets every constraint")
    x = np.clip(found, linear.lower, linear.upper)
    for _ in range(4):  # HiGHS keeps rows to 1e-7: what is broken or nearly so is met exactly, by the variables that have room
        if linear.broken(x) <= MET:
            return x
        near = linear.G @ x - linear.h > -1e-7 * np.maximum(np.abs(x).max(initial=0.0), np.abs(linear.h))
        M, gap = np.vstack([linear.E, linear.G[near]]), np.concatenate([linear.f - linear.E @ x, linear.h[near] - linear.G[near] @ x])
        room = (x > linear.lower) & (x < linear.upper)
        if not room.any():
            break
        x[room] += least_squares(M[:, room], gap)
        x = np.clip(x, linear.lower, linear.upper)
    if linear.broken(x) > TRUSTED:
        raise UndecidedError("linear programming finds a point, but none that meets every constraint to rounding")
    return x


def linear_program(cost: Vector, linear: Linear, widen: Callable[[Vector], Vector], bounds: Vector) -> Vector | None:
    """The point of least costᵀx under rows that `widen` fits to x, by HiGHS; None where it proves that there is none.

    HiGHS has absolute tolerances and drops small entries: columns, rows and right-hand sides are scaled to size 1, by powers of 2.
    """
    rows = unit_constraints(linear, widen)
    blocks = [M for M in (rows["A_ub"], rows["A_eq"]) if M is not None]
    from scipy.optimize import linprog  # here: scipy.optimize takes as long to import as all of ours

    largest = np.abs(np.vstack(blocks)).max(axis=0) if blocks else np.ones(cost.size)
    unit = np.exp2(-np.round(np.log2(np.where(largest > 0, largest, 1.0))))
    for key in ("ub", "eq"):
        M, v = rows[f"A_{key}"], rows[f"b_{key}"]
        if M is not None and v is not None:
            rows[f"A_{key}"], rows[f"b_{key}"], _ = unit_rows(M * unit, v)
    bounds = bounds / unit[:, None]
    sides = [side for side in (rows["b_ub"], rows["b_eq"], bounds[np.isfinite(bounds)]) if side is not None and side.any()]
    scale = float(np.abs(sides[0]).max()) if sides else 1.0
    rows |= {key: side / scale for key, side in rows.items() if key.startswith("b_") and side is not None}
    found = linprog(cost * unit, **rows, bounds=bounds / scale, method="highs")
    if found.status == 2:
        return None
    if found.x is None:
        raise UndecidedError(f"linear programming could not decide whether there is a point: {found.message}")
    return np.asarray(found.x * scale * unit)
