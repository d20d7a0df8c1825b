"""The minimum of a small quadratic over a set, by direct linear algebra: the inner problem of every polish."""

from __future__ import annotations

import numpy as np

from ksparse.base.arrays import Vector
from ksparse.errors import InfeasibleError, UnboundedError
from ksparse.linalg.constraints import Linear
from ksparse.linalg.objective import Objective, convex, least_squares, null_space
from ksparse.linalg.qp import solve_qp
from ksparse.sets import ConvexSet


def minimize_quadratic(objective: Objective, C: ConvexSet, near: Vector) -> Vector | None:
    """argmin ½xᵀHx + cᵀx over C; None where H is not positive semidefinite and must be, or C only projects and holds x back.

    Of two equally good points (an eigenvector and its negative) the one on the side of `near`. `UnboundedError` where there is no minimum.
    """
    linear = C.as_linear(objective.c.size)
    if linear is None:
        found = C.minimize_quadratic(objective.H, objective.c, near)
        return _inside(objective, C) if found is None else found.x
    if objective.R is not None or convex(objective.H):
        return solve_qp(objective, linear).x
    return _on_equations(objective.H, objective.c, linear) if linear.equations_only else None


def _inside(objective: Objective, C: ConvexSet) -> Vector | None:
    """The minimum over all of space, where C has it: all that can be said of a set that only projects."""
    if objective.R is None and not convex(objective.H):
        return None
    try:
        x = solve_qp(objective, Linear.of(objective.c.size)).x
    except (InfeasibleError, UnboundedError):
        return None
    return x if C.contains(x) else None


def _on_equations(H: Vector, c: Vector, linear: Linear) -> Vector:
    """The minimum of a quadratic that is not convex, where it is along the solutions of Ex = f."""
    along, x = np.eye(c.size), np.zeros(c.size)
    if linear.f.size:
        along, x = null_space(linear.E), least_squares(linear.E, linear.f)
    along_H = along.T @ H @ along
    if along.shape[1] and not convex(along_H):
        raise UnboundedError("negative curvature along a direction that nothing bounds")
    inside = Objective(along_H, along.T @ (H @ x + c))
    return np.asarray(x + along @ solve_qp(inside, Linear.of(along.shape[1])).x) if along.shape[1] else x
