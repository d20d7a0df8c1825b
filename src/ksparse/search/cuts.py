"""A convex quadratic over a set that only projects, by half-spaces around the set.

The projection z of a point u outside C shows a half-space with C in it and u not, its plane through z. The minimum over a few of these is
that over C if C has it; and if it has none, C may have the ray along which the quadratic falls for ever. Few are needed where few planes
bound C. A round C would ask for ever more, and is left to the first-order methods as soon as a half-space brings the answer little nearer.
"""

from __future__ import annotations

import numpy as np

from ksparse.errors import InfeasibleError, UnboundedError
from ksparse.numerics.constraints import Linear, unit_scales
from ksparse.numerics.qp import Objective, convex, solve_qp
from ksparse.sets import ConvexSet
from ksparse.util.arrays import Vector, largest_safe_entry, norm

CUTS = 8  # half-spaces
NEARER = 0.1  # how much nearer to C each must bring the answer
MET = 1e-13  # of the size of x: a cut's answer must lie in C to rounding; 1e-9 outside a ball it may be 3e-5 away along the sphere
FLAT = 1e-13  # of the largest curvature, in variables of unit curvature, for each of them: less is none
PULL = 1e-6  # of c: so much of it along flat directions is no rounding
FAR = (1e3, 1e6, 1e9)  # times the size of x: a ray that C has to there it is taken to have


def by_cuts(objective: Objective, C: ConvexSet, near: Vector) -> Vector | None:
    """The minimum over C, None where it takes too many half-spaces; `UnboundedError` where a ray from `near` shows that there is none."""
    n, outside = objective.c.size, np.inf
    G, h = np.zeros((0, n)), np.zeros(0)
    if objective.R is None and not convex(objective.H):
        return None
    for _ in range(CUTS):
        try:
            x = solve_qp(objective, Linear.of(n, G=G, h=h)).x
        except InfeasibleError:
            return None
        except UnboundedError:
            if _has_falling_ray(objective, C, near):
                raise
            return None
        before, outside = outside, C.violation(x)
        if outside <= MET * max(1.0, norm(x)) if h.size else C.contains(x):
            return x
        if outside > NEARER * before:
            return None
        a, b = C.separating_halfspace(x)
        G, h = np.vstack([G, a]), np.append(h, b)
    return None


def _has_falling_ray(objective: Objective, C: ConvexSet, x: Vector) -> bool:
    """Whether C has a ray from x without curvature and with slope: the steepest, turned along the planes that it runs into."""
    unit = unit_scales(np.diag(objective.H))
    values, vectors = np.linalg.eigh(objective.H / unit / unit[:, None])
    flat = vectors[:, values <= FLAT * values.size * max(float(values[-1]), 0.0)]
    steepest = -(flat.T @ (objective.c / unit))
    if norm(steepest) <= PULL * norm(objective.c / unit):
        return False
    walls, outside, size = np.zeros((0, steepest.size)), np.inf, max(1.0, norm(x))
    for _ in range(CUTS):
        way = steepest
        if walls.size:
            way = solve_qp(
                Objective(np.eye(way.size), -steepest), Linear.of(way.size, G=walls, h=np.zeros(len(walls)))
            ).x
        if float(way @ steepest) <= PULL * float(steepest @ steepest):
            return False
        ray = (flat @ way) / unit
        ends = [x + (far * size / norm(ray)) * ray for far in FAR]
        if all(C.contains(end) for end in (*ends, x + (largest_safe_entry(x) / norm(ray)) * ray)):
            return True
        before, outside = outside, C.violation(ends[-1])
        if outside > NEARER * before:
            return False
        wall = C.separating_halfspace(ends[-1])[0]
        walls = np.vstack([walls, flat.T @ (wall / unit)])
    return False
