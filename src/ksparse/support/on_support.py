"""The best point on one support, where a small dense computation gives it: under equations, above a floor, on the sphere."""

from __future__ import annotations

import numpy as np

from ksparse.errors import InfeasibleError, UnboundedError
from ksparse.sets import Linear
from ksparse.sets.base import Vector
from ksparse.sets.qp import Active, Solution, solve_qp, solve_symmetric
from ksparse.sets.scaling import unit_rows, unit_scales

POWER_STEPS = 40
_START = np.random.default_rng(0).standard_normal(1024)


def on_equations(H: Vector, c: Vector, linear: Linear) -> Solution:
    """The KKT system, in variables scaled to a unit diagonal."""
    k, unit = c.size, unit_scales(np.diag(H))
    E, f, _ = unit_rows(linear.E / unit, linear.f)
    H, c = H / unit / unit[:, None], c / unit
    K = np.block([[H, E.T], [E, np.zeros((f.size, f.size))]])
    u = solve_symmetric(K, np.concatenate([-c, f]))
    size = float(np.abs(u).max(initial=0.0))
    if f.size and np.abs(E @ u[:k] - f).max() > 1e-9 * max(float(np.abs(f).max()), size):
        raise InfeasibleError("the equations have no solution on this support")
    if np.abs(K[:k] @ u + c).max() > 1e-6 * max(float(np.abs(c).max()), size):
        raise UnboundedError("the linear part falls along a direction of no curvature")
    return Solution(u[:k] / unit, np.zeros(k), np.zeros(0), nothing_active(k))


def floored(H: Vector, c: Vector, linear: Linear, floor: float) -> Linear:
    """The polyhedron with each variable at least `floor` in size, on the side that its bounds or the optimum without floor choose."""
    lower, upper = linear.lower.copy(), linear.upper.copy()
    positive = lower >= 0
    negative = (upper <= 0) & ~positive
    either = ~(positive | negative)
    if either.any():
        x = solve_qp(H, c, linear).x
        positive |= either & (x >= 0)
        negative |= either & (x < 0)
    lower[positive] = np.maximum(lower[positive], floor)
    upper[negative] = np.minimum(upper[negative], -floor)
    if (lower > upper).any():
        raise InfeasibleError("an upper bound is below the least position")
    return Linear(lower, upper, linear.G, linear.h, linear.E, linear.f)


def leading_eigenvector(block: Vector, start: Vector | None) -> tuple[float, Vector]:
    """λ_max and its eigenvector of a positive semidefinite matrix: by power iteration from a near one, where that settles soon."""
    if start is not None and start.any():
        x = start + 1e-3 * np.abs(start).max() * _START[np.arange(start.size) % _START.size]  # not blind to any direction
        x /= np.linalg.norm(x)
        for _ in range(POWER_STEPS):
            y = block @ x
            value = float(x @ y)
            if float(np.abs(y - value * x).max()) <= 1e-12 * abs(value):
                return value, x
            x = y / max(float(np.linalg.norm(y)), 1e-300)
    values, vectors = np.linalg.eigh(block)
    return float(values[-1]), np.asarray(vectors[:, -1])


def nothing_active(k: int) -> Active:
    """No bound and no row active, of k variables without rows."""
    off = np.zeros(k, dtype=bool)
    return Active(off, off, np.zeros(0, dtype=bool))
