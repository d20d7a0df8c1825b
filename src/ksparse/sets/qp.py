"""Small convex quadratic programs over a polyhedron: PIQP finds the active constraints, linear algebra makes the answer exact.

An interior-point answer is off by its tolerance: a weight of 1e-9 where 0 is meant, a budget of 0.999999999. So its active
constraints are taken as equations and the equality-constrained problem is solved directly; violated constraints enter, those
with a multiplier of the wrong sign leave, until none is left. The point that comes back has been checked either way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import piqp
import scipy.linalg

from ksparse.errors import InfeasibleError
from ksparse.sets.base import Linear, Vector

ROUNDS = 30  # of the active-set clean-up
TRUSTED = 1e-6  # a violation, relative to the size of the data, beyond which an answer is refused


@dataclass
class _Active:
    """Which constraints hold as equations: variables at a bound, rows of G."""

    at_lower: Vector
    at_upper: Vector
    rows: Vector


def solve_qp(H: Vector, c: Vector, linear: Linear) -> Vector:
    """min ½xᵀHx + cᵀx over the polyhedron, H positive semidefinite. `InfeasibleError` if no trustworthy point is found."""
    scale = max(float(np.abs(H).max(initial=0.0)), float(np.abs(c).max(initial=0.0)))
    if scale > 0:  # PIQP's tolerances are absolute
        H, c = H / scale, c / scale
    rough, active = _interior_point(H, c, linear)
    exact = _active_set(H, c, linear, active)
    candidates = [x for x in (exact, np.clip(rough, linear.lower, linear.upper)) if x is not None and np.isfinite(x).all()]
    size = max([1.0] + [float(np.abs(x).max(initial=0.0)) for x in candidates])
    for x in candidates:  # the exact one first
        if linear.violation(x) <= TRUSTED * size:
            return x
    raise InfeasibleError("the quadratic program has no feasible point, or none could be found to rounding")


def _interior_point(H: Vector, c: Vector, linear: Linear) -> tuple[Vector, _Active]:
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-9
    solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = 1e-9
    solver.settings.max_iter = 200
    E, f = (np.asfortranarray(linear.E), linear.f) if linear.f.size else (None, None)
    G, h = (np.asfortranarray(linear.G), linear.h) if linear.h.size else (None, None)
    solver.setup(np.asfortranarray(H), c, E, f, G, None, h, np.array(linear.lower), np.array(linear.upper))
    solver.solve()
    found = solver.result
    x = np.array(found.x)
    at_lower = (np.array(found.z_bl) > np.abs(x - linear.lower)) & np.isfinite(linear.lower)
    at_upper = (np.array(found.z_bu) > np.abs(linear.upper - x)) & np.isfinite(linear.upper) & ~at_lower
    rows = np.array(found.z_u) > np.abs(linear.h - linear.G @ x) if linear.h.size else np.zeros(0, dtype=bool)
    return x, _Active(at_lower, at_upper, rows)


def _active_set(H: Vector, c: Vector, linear: Linear, active: _Active) -> Vector | None:
    """The exact optimum reached by exchanging constraints from a guess, or None where that cycles."""
    for _ in range(ROUNDS):
        x, bound_price, row_price = _on_active(H, c, linear, active)
        if not np.isfinite(x).all():
            return None
        size = max(1.0, float(np.abs(x).max(initial=0.0)))
        tiny, cheap = 1e-11 * size, 1e-11 * max(1.0, float(np.abs(bound_price).max(initial=0.0)))
        enter_low, enter_high = linear.lower - x > tiny, x - linear.upper > tiny
        enter_rows = linear.G @ x - linear.h > tiny
        leave_low, leave_high = active.at_lower & (bound_price < -cheap), active.at_upper & (bound_price > cheap)
        leave_rows = active.rows & (row_price < -cheap)
        if not any(change.any() for change in (enter_low, enter_high, enter_rows, leave_low, leave_high, leave_rows)):
            return np.clip(x, linear.lower, linear.upper)
        active = _Active(
            (active.at_lower & ~leave_low) | enter_low,
            (active.at_upper & ~leave_high) | enter_high,
            (active.rows & ~leave_rows) | enter_rows,
        )
    return None


def _on_active(H: Vector, c: Vector, linear: Linear, active: _Active) -> tuple[Vector, Vector, Vector]:
    """The optimum with the active constraints as equations, the price of each bound (Hx + c + rowsᵀλ) and of each row of G."""
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
    return x, H @ x + c + M.T @ solution[q:], price_rows


def solve_symmetric(K: Vector, d: Vector) -> Vector:
    """K⁻¹d with one step of refinement; the least-squares answer where K is singular."""
    if not d.size:
        return d
    try:
        factor = scipy.linalg.lu_factor(K, check_finite=False)
        diagonal = np.abs(np.diag(factor[0]))
        if diagonal.min() > 1e-13 * diagonal.max():
            u = np.asarray(scipy.linalg.lu_solve(factor, d, check_finite=False))
            return np.asarray(u + scipy.linalg.lu_solve(factor, d - K @ u, check_finite=False))
    except (np.linalg.LinAlgError, scipy.linalg.LinAlgWarning):
        pass
    answer: Any = np.linalg.lstsq(K, d, rcond=1e-13)[0]
    return np.asarray(answer)
