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

    A guess of the active constraints, from a neighbouring problem, often saves the interior-point solve.
    """
    scale = max(float(np.abs(H).max(initial=0.0)), float(np.abs(c).max(initial=0.0)))
    scale = scale if scale > 0 else 1.0  # PIQP's tolerances are absolute
    H, c = H / scale, c / scale
    found = None if guess is None else _active_set(H, c, linear, guess)
    if found is None:
        rough = _interior_point(H, c, linear)
        found = _active_set(H, c, linear, rough.active) or rough
    size = max(1.0, float(np.abs(found.x).max(initial=0.0)))
    falls = float(c @ found.x) < 0 and float(np.abs(H @ found.x).max(initial=0.0)) <= 1e-9 * float(np.abs(found.x).max(initial=0.0))
    if size > 1e8 and falls:  # far out, along a direction of no curvature and still downhill
        raise UnboundedError("the quadratic program falls without end")
    if not np.isfinite(found.x).all() or linear.violation(found.x) > TRUSTED * size:
        raise InfeasibleError("the quadratic program has no feasible point, or none could be found to rounding")
    return Solution(found.x, scale * found.bound_price, scale * found.row_price, found.active)


def _interior_point(H: Vector, c: Vector, linear: Linear) -> Solution:
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-9
    solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = 1e-9
    solver.settings.max_iter = 200
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
    return Solution(np.clip(x, linear.lower, linear.upper), low - high, row_price, Active(at_lower, at_upper, rows))


def _active_set(H: Vector, c: Vector, linear: Linear, active: Active) -> Solution | None:
    """The exact optimum reached by exchanging constraints from a guess, or None where that cycles."""
    for _ in range(ROUNDS):
        found = _on_active(H, c, linear, active)
        x, bound_price, row_price = found.x, found.bound_price, found.row_price
        if not np.isfinite(x).all():
            return None
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


def _on_active(H: Vector, c: Vector, linear: Linear, active: Active) -> Solution:
    """The optimum with the active constraints as equations."""
    x = np.where(active.at_lower, linear.lower, np.where(active.at_upper, linear.upper, 0.0))
    free = ~(active.at_lower | active.at_upper)
    M = np.vstack([linear.E, linear.G[active.rows]])
    right = np.concatenate([linear.f, linear.h[active.rows]]) - M[:, ~free] @ x[~free]
    q, r = int(free.sum()), M.shape[0]
    K = np.block([[H[np.ix_(free, free)], M[:, free].T], [M[:, free], np.zeros((r, r))]])
    d = np.concatenate([-c[free] - H[np.ix_(free, ~free)] @ x[~free], right])
    solution = solve_symmetric(K, d)
    x[free] = solution[:q]
    price_rows = np.zeros(linear.h.size)
    price_rows[active.rows] = solution[q + linear.f.size :]
    return Solution(x, H @ x + c + M.T @ solution[q:], price_rows, active)


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
