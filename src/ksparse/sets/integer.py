"""The fewest nonzeros in a polyhedron, by mixed-integer programming (HiGHS): whether a k-sparse point exists, and where."""

from __future__ import annotations

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from ksparse.sets.base import Linear, Vector
from ksparse.sets.scaling import unit_constraints

SECONDS = 5.0  # for one such question


def fewest_nonzeros(
    linear: Linear, *, floor: float = 0.0, forced: Vector | None = None, preferred: Vector | None = None
) -> tuple[int, Vector] | None:
    """The least number of variables that a point needs, and such a support; None if unbounded variables or time left it undecided.

    `forced` variables count whether they are 0 or not; with a floor each counted variable is at least so large (for x ≥ 0). Of equally
    few the support with the larger `preferred` entries.
    """
    n = linear.lower.size
    low, high = _tightened(linear)
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        return None
    rows, eye = unit_constraints(linear, lambda M: np.hstack([M, np.zeros_like(M)])), np.eye(n)
    least = np.where(low >= 0, np.maximum(low, floor), low)
    constraints = [
        LinearConstraint(np.hstack([eye, -np.diag(high)]), -np.inf, 0.0),  # x ≤ high·u
        LinearConstraint(np.hstack([eye, -np.diag(least)]), 0.0, np.inf),  # x ≥ least·u
    ]
    if rows["A_ub"] is not None:
        constraints.append(LinearConstraint(rows["A_ub"], -np.inf, rows["b_ub"]))
    if rows["A_eq"] is not None:
        constraints.append(LinearConstraint(rows["A_eq"], rows["b_eq"], rows["b_eq"]))
    dislike = np.zeros(n) if preferred is None else 1.0 - preferred / max(float(preferred.max(initial=0.0)), 1e-300)
    needed = np.zeros(n)
    needed[forced if forced is not None else []] = 1.0
    found = milp(
        np.concatenate([np.zeros(n), 1.0 + 0.5 * dislike / n]),
        constraints=constraints,
        integrality=np.repeat([0, 1], n),
        bounds=Bounds(np.concatenate([np.minimum(low, 0.0), needed]), np.concatenate([np.maximum(high, 0.0), np.ones(n)])),
        options={"time_limit": SECONDS},
    )
    if found.status != 0 or found.x is None:
        return None
    support = np.flatnonzero(found.x[n:] > 0.5)
    return int(support.size), support


def _tightened(linear: Linear) -> tuple[Vector, Vector]:
    """Bounds, made finite where an equation of nonnegative terms caps a nonnegative variable (a budget does)."""
    low, high = linear.lower.copy(), linear.upper.copy()
    if (low >= 0).all():
        for row, right in zip(linear.E, linear.f, strict=True):
            if (row >= 0).all() and right >= 0:
                seen = row > 0
                high[seen] = np.minimum(high[seen], right / row[seen])
    return low, high
