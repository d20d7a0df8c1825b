"""Small convex quadratic programs over a polyhedron: PIQP finds the active constraints, linear algebra makes the answer exact.

An interior-point answer is off by its tolerance: a weight of 1e-9 where 0 is meant, a budget of 0.999999999. So its active
constraints are taken as equations and the equality-constrained problem is solved directly; violated constraints enter, those
with a multiplier of the wrong sign leave, until none is left. The point that comes back has been checked either way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import piqp

from ksparse.errors import InfeasibleError, UnboundedError
from ksparse.sets.base import Linear, Vector
from ksparse.sets.scaling import unit_rows, unit_scales

ROUNDS = 30  # of the active-set clean-up
TRUSTED = 1e-6  # a violation, relative to the size of the data, beyond which an answer is refused


@dataclass(frozen=True)
class Active:
    """Which constraints hold as equations: variables at a bound, rows of G."""

    at_lower: Vector
    at_upper: Vector
    rows: Vector


@dataclass(frozen=True)
class Solution:
    """The optimum and its multipliers."""

    x: Vector
    bound_price: Vector  # Hx + c + rowsᵀλ: > 0 at an active lower bound, < 0 at an active upper one
    row_price: Vector  # one per row of G, ≥ 0
    active: Active


def solve_qp(H: Vector, c: Vector, linear: Linear, guess: Active | None = None) -> Solution:
    """min ½xᵀHx + cᵀx over the polyhedron, H positive semidefinite. `InfeasibleError` if no trustworthy point is found.

    A guess of the active constraints, from a neighbouring problem, often saves the interior-point solve. Everything is scaled to size 1
    first: variables to a unit diagonal of H, rows to largest entry 1, and the whole by its right-hand sides.
    """
    unit = unit_scales(np.diag(H))
    H, c = H / unit / unit[:, None], c / unit
    G, h, by_G = unit_rows(linear.G / unit, linear.h)
    E, f, _ = unit_rows(linear.E / unit, linear.f)
    low, high = linear.lower * unit, linear.upper * unit
    sides = [c, f, low[np.isfinite(low) & (low > 0)], high[np.isfinite(high) & (high < 0)]]
    scale = max(float(np.abs(side).max(initial=0.0)) for side in sides) or 1.0
    found = _solve_scaled(H, c / scale, Linear(low / scale, high / scale, G, h / scale, E, f / scale), guess)
    x = np.clip(found.x * scale / unit, linear.lower, linear.upper)
    return Solution(x, scale * unit * found.bound_price, scale * found.row_price / by_G, found.active)


def _solve_scaled(H: Vector, c: Vector, linear: Linear, guess: Active | None) -> Solution:
    if not _rows_in_reach(linear):
        raise InfeasibleError("an equation or inequality cannot be met within the bounds")
    found = None if guess is None else _active_set(H, c, linear, guess)
    if found is None:
        rough = _interior_point(H, c, linear)
        found = _active_set(H, c, linear, rough.active) or rough
    size = max(1.0, float(np.abs(found.x).max(initial=0.0)))
    inside = (found.x > linear.lower + 1e-6) & (found.x < linear.upper - 1e-6)
    if not np.abs(found.bound_price[inside]).max(initial=0.0) <= 1e-4 * max(1.0, float(np.abs(c).max(initial=0.0))):
        # a variable between its bounds still has somewhere to go: far out nothing holds it, nearby the solver failed
        raise (
            UnboundedError("the quadratic program falls without end") if not size <= 1e3 else InfeasibleError("the solver gave no optimum")
        )
    if not np.isfinite(found.x).all() or linear.violation(found.x) > TRUSTED * size:
        raise InfeasibleError("the quadratic program has no feasible point, or none could be found to rounding")
    return found


def _rows_in_reach(linear: Linear) -> bool:
    """Whether each row alone can be met within the bounds: a cheap look that spares the solver most infeasible problems."""
    with np.errstate(invalid="ignore"):
        for M, v, equation in ((linear.E, linear.f, True), (linear.G, linear.h, False)):
            if v.size:
                ends = np.stack([M * linear.lower, M * linear.upper])
                ends[:, M == 0] = 0.0  # 0·∞
                least, most = ends.min(axis=0).sum(axis=1), ends.max(axis=0).sum(axis=1)
                slack = 1e-9 * np.maximum(1.0, np.abs(v))
                if (least > v + slack).any() or (equation and (most < v - slack).any()):
                    return False
    return True


def project_polyhedron(u: Vector, linear: Linear, guess: Active | None) -> Solution:
    """The nearest point: the same exchange of constraints, where the equations of each guess are as few as its rows."""
    found = None if guess is None else _active_set(None, -u, linear, guess)
    return found if found is not None else solve_qp(np.eye(u.size), -u, linear)


def _interior_point(H: Vector, c: Vector, linear: Linear) -> Solution:
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-9
    solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = 1e-9
    solver.settings.max_iter = 100
    E, f = (np.asfortranarray(linear.E), linear.f) if linear.f.size else (None, None)
    G, h = (np.asfortranarray(linear.G), linear.h) if linear.h.size else (None, None)
    solver.setup(np.asfortranarray(H), c, E, f, G, None, h, np.array(linear.lower), np.array(linear.upper))
    solver.solve()
    found = solver.result
    x, low, high = np.array(found.x), np.array(found.z_bl), np.array(found.z_bu)
    row_price = np.array(found.z_u) if linear.h.size else np.zeros(0)
    at_lower = (low > np.abs(x - linear.lower)) & np.isfinite(linear.lower)
    at_upper = (high > np.abs(linear.upper - x)) & np.isfinite(linear.upper) & ~at_lower
    rows = row_price > np.abs(linear.h - linear.G @ x)
    price = H @ x + c + (linear.E.T @ np.array(found.y) if linear.f.size else 0.0) + linear.G.T @ row_price
    return Solution(np.clip(x, linear.lower, linear.upper), price, row_price, Active(at_lower, at_upper, rows))


def _active_set(H: Vector | None, c: Vector, linear: Linear, active: Active) -> Solution | None:
    """The exact optimum reached by exchanging constraints from a guess, or None where that cycles."""
    for _ in range(ROUNDS):
        found = _on_active(H, c, linear, active)
        x, bound_price, row_price = found.x, found.bound_price, found.row_price
        if not np.isfinite(x).all():
            return None
        free = ~(active.at_lower | active.at_upper)
        if np.abs(bound_price[free]).max(initial=0.0) > 1e-6 * max(1.0, float(np.abs(c).max(initial=0.0))):
            return None  # no curvature and still a pull: there is no optimum on this face
        size = max(1.0, float(np.abs(x).max(initial=0.0)))
        tiny, cheap = 1e-11 * size, 1e-11 * max(1.0, float(np.abs(bound_price).max(initial=0.0)))
        enter_low, enter_high = linear.lower - x > tiny, x - linear.upper > tiny
        enter_rows = linear.G @ x - linear.h > tiny
        leave_low, leave_high = active.at_lower & (bound_price < -cheap), active.at_upper & (bound_price > cheap)
        leave_rows = active.rows & (row_price < -cheap)
        if not any(change.any() for change in (enter_low, enter_high, enter_rows, leave_low, leave_high, leave_rows)):
            if linear.f.size and np.abs(linear.E @ x - linear.f).max() > 1e-9 * max(size, float(np.abs(linear.f).max())):
                return None  # the equations contradict the active bounds
            return Solution(np.clip(x, linear.lower, linear.upper), bound_price, row_price, active)
        active = Active(
            (active.at_lower & ~leave_low) | enter_low,
            (active.at_upper & ~leave_high) | enter_high,
            (active.rows & ~leave_rows) | enter_rows,
        )
    return None


def _on_active(H: Vector | None, c: Vector, linear: Linear, active: Active) -> Solution:
    """The optimum with the active constraints as equations; H = None is the identity."""
    x = np.where(active.at_lower, linear.lower, np.where(active.at_upper, linear.upper, 0.0))
    free = ~(active.at_lower | active.at_upper)
    M = np.vstack([linear.E, linear.G[active.rows]])
    right = np.concatenate([linear.f, linear.h[active.rows]]) - M[:, ~free] @ x[~free]
    q, r = int(free.sum()), M.shape[0]
    if H is None:
        prices = solve_symmetric(M[:, free] @ M[:, free].T, -M[:, free] @ c[free] - right)
        x[free] = -c[free] - M[:, free].T @ prices
        gradient = x + c
    else:
        K = np.block([[H[np.ix_(free, free)], M[:, free].T], [M[:, free], np.zeros((r, r))]])
        solution = solve_symmetric(K, np.concatenate([-c[free] - H[np.ix_(free, ~free)] @ x[~free], right]))
        x[free], prices = solution[:q], solution[q:]
        gradient = H @ x + c
    row_price = np.zeros(linear.h.size)
    row_price[active.rows] = prices[linear.f.size :]
    return Solution(x, gradient + M.T @ prices, row_price, active)


def solve_symmetric(K: Vector, d: Vector) -> Vector:
    """K⁻¹d with one step of refinement; the least-squares answer where K is singular.

    NumPy's linear algebra, here and in the search: where SciPy brings a BLAS of its own, the threads of the two wait for each other.
    """
    if not d.size:
        return d
    try:
        u = np.linalg.solve(K, d)
        if float(np.abs(u).max()) * float(np.abs(K).max()) < 1e13 * max(float(np.abs(d).max()), 1e-300):
            return np.asarray(u + np.linalg.solve(K, d - K @ u))
    except np.linalg.LinAlgError:
        pass
    return np.asarray(np.linalg.lstsq(K, d, rcond=1e-13)[0])
