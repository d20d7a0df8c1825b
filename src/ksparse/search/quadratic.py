"""The minimum of a small quadratic over a set, by direct linear algebra: the inner problem of every polish."""

from __future__ import annotations

import numpy as np

from ksparse.errors import UnboundedError
from ksparse.numerics.constraints import Linear, unit_rows, unit_scales
from ksparse.numerics.nonconvex import ProjectedGradientRun, is_unbounded_below, minimize_by_projection
from ksparse.numerics.qp import Active, Objective, convex, least_squares, null_space, regular_minimum, solve_qp
from ksparse.search.cuts import by_cuts
from ksparse.sets import ConvexSet
from ksparse.util.arrays import Vector, norm

FLAT = 1e-14  # of the largest curvature, in variables of unit curvature, for each of them: less is none
MET = 1e-13  # of an equation's terms: broken by no more, it is met
PULL = 1e-9  # of the gradient's terms: less along a direction of no curvature is rounding
ROUGH = 10  # steps from each of several starts, before the best of them goes on alone


def minimize_quadratic(objective: Objective, C: ConvexSet, near: Vector) -> Vector | None:
    """argmin ½xᵀHx + cᵀx over C; None where H is not positive semidefinite and must be, or C only projects and holds x back.

    Of two equally good points (an eigenvector and its negative) the one on the side of `near`; where no constraint is active and H has
    no curvature along some direction, the one nearest to `near`. `UnboundedError` where there is no minimum.
    """
    linear = None if C.whole_space else C.as_linear(objective.c.size)
    unheld = C.whole_space or (linear is not None and linear.equations_only and not linear.f.size)
    if unheld and (x := regular_minimum(objective)) is not None:
        return x
    linear = linear or C.as_linear(objective.c.size)
    if linear is not None and (x := _nearest_minimum(objective, linear, near)) is not None:
        return x
    if linear is None:
        found = C.minimize_quadratic(objective.H, objective.c, near)
        return by_cuts(objective, C, near) if found is None else found.x
    if objective.R is not None or convex(objective.H):
        return solve_qp(objective, linear, _active_at(near, linear), near).x
    return _on_equations(objective.H, objective.c, linear) if linear.equations_only else None


def _nearest_minimum(objective: Objective, linear: Linear, near: Vector) -> Vector | None:
    """The minimum nearest to `near` of a quadratic with directions of no curvature, where no bound and no inequality is active.

    None where there is no such direction, no minimum, or an active constraint. The solution of a linear system with a singular H goes
    along such directions as far as rounding drives it.
    """
    if objective.R is not None or objective.well_conditioned:
        return None
    H, x, along = objective.H, near, np.eye(near.size)
    if linear.f.size:
        E, f, _ = unit_rows(linear.E, linear.f)
        x, along = near + least_squares(E, f - E @ near), null_space(E)
    along = along / unit_scales(np.einsum("ij,ij->j", along, H @ along))
    if not along.shape[1]:
        return None
    bends, vectors = np.linalg.eigh(along.T @ H @ along)
    flat = np.abs(bends) <= FLAT * bends.size * max(float(bends[-1]), 0.0)
    pull, terms = (
        vectors.T @ (along.T @ objective.gradient(x)),
        np.abs(along.T) @ (np.abs(H) @ np.abs(x) + np.abs(objective.c)),
    )
    if not flat.any() or (bends[~flat] < 0).any() or np.abs(pull[flat]).max() > PULL * norm(terms):
        return None
    x = x - along @ (vectors[:, ~flat] @ (pull[~flat] / bends[~flat]))
    return x if (x >= linear.lower).all() and (x <= linear.upper).all() and linear.broken(x) <= MET else None


def _active_at(x: Vector, linear: Linear) -> Active | None:
    """The constraints that x meets as equations; None where that says nothing."""
    active = Active(x == linear.lower, (x == linear.upper) & (linear.lower < linear.upper), linear.G @ x >= linear.h)
    return active if any(part.any() for part in (active.at_lower, active.at_upper, active.rows)) else None


def settled_by_projection(
    objective: Objective, C: ConvexSet, begins: list[Vector], steps: int, target: float, deadline: float = np.inf
) -> Vector:
    """A stationary point of a quadratic over a set that projects, from the best of several points of C after a few steps from each.

    To a relative residual of `target`, or as far as the steps go; `UnboundedError` where it falls without end.
    """
    H, c = objective.H, objective.c

    def ended(x: Vector, steps: int) -> ProjectedGradientRun:
        return minimize_by_projection(H, c, C.project, x, steps, 0.1 * target, deadline)

    x = begins[0]
    if len(begins) > 1:
        x = min((ended(begin, ROUGH).x for begin in begins), key=objective.value)
    found = ended(x, steps)
    if not found.settled and is_unbounded_below(H, c, C.project, found):
        raise UnboundedError("φ falls without end on this support")
    return found.x


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
