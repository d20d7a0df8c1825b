"""Nonconvex quadratics over a small polyhedron, and any quadratic over a set that is known by its projection.

`best_on_faces` finds the stationary points of all faces: a minimum lies inside a face, where it is stationary under the
constraints that are active there. That is one linear system per face, solved for many faces at once. Variables without
bounds get distant ones; if a minimum lies there, φ may be unbounded along a ray, which is then tested.

`minimize_by_projection` is the spectral projected gradient method on H: a step is one projection and one product with
H. The step length is that of Barzilai and Borwein, the line search that of Birgin, Martínez and Raydan, with the best
point of a segment in closed form.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from ksparse.errors import UnboundedError
from ksparse.numerics.constraints import Linear, unit_rows
from ksparse.util.arrays import Vector, largest_safe_entry, norm

MAX_FACES = 4_000
FAR_BOUND = 1e4  # bounds given to unbounded variables, relative to the right-hand sides
WINDOW = 10  # a step may increase φ up to the largest of so many earlier values: spectral steps are not monotone
DESCENT = 1e-4  # fraction of the slope that a full step must gain relative to that value
SPAN = 1e6  # steps are between 1/(SPAN·L) and SPAN/L
RUNAWAY = 1e20  # size of x relative to its start at which the iteration has diverged
RECESSION = (1e3, 1e6, 1e9)  # multiples of the size of x: a direction in which φ decreases so far has no end
CHECK_INTERVAL = 64  # steps between checks of the time and recomputations of g


def best_on_faces(H: Vector, c: Vector, linear: Linear) -> Vector | None:
    """Return argmin ½xᵀHx + cᵀx over the polyhedron; None if it has too many faces. Raise `UnboundedError` on a ray."""
    n, size = c.size, max(float(np.abs(H).max()), float(np.abs(c).max(initial=0.0))) or 1.0
    H, c = H / size, c / size
    rows, right, far = _inequalities(linear)
    E, f, _ = unit_rows(linear.E, linear.f)
    most = max(0, n - f.size)
    if sum(comb(right.size, j) for j in range(most + 1)) > MAX_FACES:
        return None
    best, best_value, best_face = None, np.inf, np.zeros(0, dtype=np.intp)
    for j in range(most + 1):
        faces = np.array(list(combinations(range(right.size), j)), dtype=np.intp).reshape(comb(right.size, j), j)
        points = _stationary(H, c, E, f, rows, right, faces)
        reach = np.maximum(np.abs(points).max(axis=1, initial=0.0), 1e-300)
        inside = (points @ rows.T <= right + 1e-9 * np.maximum(np.abs(right), reach[:, None])).all(axis=1)
        inside &= (np.abs(points @ E.T - f) <= 1e-9 * np.maximum(np.abs(f), reach[:, None])).all(axis=1)
        if inside.any():
            values = np.where(inside, 0.5 * np.einsum("ij,jk,ik->i", points, H, points) + points @ c, np.inf)
            i = int(np.argmin(values))
            if values[i] < best_value:
                best, best_value, best_face = points[i], float(values[i]), faces[i]
    if best is not None and far[best_face].any():
        _raise_if_unbounded(H, c, E, f, rows, right, far, best_face)
        return None
    return None if best is None else np.clip(best, linear.lower, linear.upper)


def _inequalities(linear: Linear) -> tuple[Vector, Vector, Vector]:
    """Return rows of size 1, their right-hand sides, and the mask of added bounds."""
    eye = np.eye(linear.lower.size)
    G, h, _ = unit_rows(linear.G, linear.h)
    sides = [side[np.isfinite(side)] for side in (h, unit_rows(linear.E, linear.f)[1], linear.lower, linear.upper)]
    reach = FAR_BOUND * (max(float(np.abs(side).max(initial=0.0)) for side in sides) or 1.0)
    open_low, open_high = np.isinf(linear.lower), np.isinf(linear.upper)
    low, high = np.where(open_low, -reach, linear.lower), np.where(open_high, reach, linear.upper)
    far = np.concatenate([np.zeros(h.size, dtype=bool), open_low, open_high])
    return np.vstack([G, -eye, eye]), np.concatenate([h, -low, high]), far


def _stationary(H: Vector, c: Vector, E: Vector, f: Vector, rows: Vector, right: Vector, faces: Vector) -> Vector:
    """Return the stationary point on each face, a row of active inequalities in `faces`; arbitrary if there is none."""
    count, n, q = len(faces), c.size, f.size + faces.shape[1]
    M = np.concatenate([np.broadcast_to(E, (count, *E.shape)), rows[faces]], axis=1)
    K = np.zeros((count, n + q, n + q))
    K[:, :n, :n], K[:, n:, :n], K[:, :n, n:] = H, M, M.transpose(0, 2, 1)
    d = np.concatenate([np.broadcast_to(-c, (count, n)), np.broadcast_to(f, (count, f.size)), right[faces]], axis=1)
    shift = 1e-15  # a solution of a nearly singular system lies far outside
    while True:
        shifted = K + shift * np.eye(n + q)
        try:
            u = np.linalg.solve(shifted, d[:, :, None])
            u += np.linalg.solve(shifted, d[:, :, None] - shifted @ u)
        except np.linalg.LinAlgError:  # exactly singular even so
            shift *= 1.7
        else:
            return np.asarray(u[:, :n, 0])


def _raise_if_unbounded(
    H: Vector, c: Vector, E: Vector, f: Vector, rows: Vector, right: Vector, far: Vector, face: Vector
) -> None:
    """Raise `UnboundedError` if φ is unbounded along the line on which a face's point moves with the added bounds."""
    rights = right, np.where(far, 2.0 * right, right)
    x, moved = (_stationary(H, c, E, f, rows, bounds, face[None])[0] for bounds in rights)
    d = moved - x
    d = d / max(float(np.abs(d).max()), 1e-300)
    rounding = 64.0 * float(np.finfo(np.float64).eps)  # of terms of size 1
    feasible = (rows[~far] @ d <= rounding * d.size).all() and (np.abs(E @ d) <= rounding * d.size).all()
    curvature, slope = float(d @ H @ d), float((H @ x + c) @ d)
    flat = curvature <= 1e-12 and slope < -1e-9 * float(np.abs(c).max(initial=0.0))
    if feasible and slope < 0 and (curvature < -1e-9 or flat):
        raise UnboundedError("φ falls without end along a direction that nothing bounds")


@dataclass(frozen=True)
class ProjectedGradientRun:
    """The last iterate and the one halfway."""

    x: Vector
    before: Vector
    settled: bool  # whether the residual is within the target


def minimize_by_projection(
    H: Vector, c: Vector, project: Callable[[Vector], Vector], x: Vector, steps: int, target: float,
    deadline: float = math.inf,
) -> ProjectedGradientRun:  # fmt: skip
    """Return a stationary point of ½xᵀHx + cᵀx over C (the minimum if H is convex), from a point x of C.

    It has L‖x − P_C(x − g/L)‖ ≤ target·max(‖c‖, ‖g‖), g = Hx + c, L = ‖H‖, unless steps or time end, or x diverges.
    """
    g = H @ x + c
    # if H is flat, a step must not be much longer than x is large
    L = max(float(np.abs(np.linalg.eigvalsh(H)).max(initial=0.0)), 1e-3 * norm(g) / max(1.0, norm(x)), 1e-300)
    half, far, scale = x, RUNAWAY * max(1.0, float(np.abs(x).max(initial=0.0))), norm(c)
    value = 0.5 * float(x @ (g + c))
    recent, length = [value], 1.0 / L
    for step in range(steps):
        if step == steps // 2:
            half = x
        d = project(x - length * g) - x
        goal = target * max(scale, norm(g))
        if norm(d) <= goal * length and L * norm(project(x - g / L) - x) <= goal:
            return ProjectedGradientRun(x, half, True)
        if (step % CHECK_INTERVAL == 0 and time.perf_counter() >= deadline) or not float(np.abs(x).max()) <= far:
            break
        Hd, slope = H @ d, float(g @ d)
        curvature = float(d @ Hd)
        t = 1.0
        if value + slope + 0.5 * curvature > max(recent) + DESCENT * slope and curvature > 0:
            t = min(1.0, -slope / curvature)
        x, g, value = x + t * d, g + t * Hd, value + t * slope + 0.5 * t * t * curvature
        if step % CHECK_INTERVAL == 0:  # remove the rounding that sums of steps accumulate
            g = H @ x + c
        recent = [*recent[1 - WINDOW :], value]
        length = min(max(float(d @ d) / curvature, 1.0 / (SPAN * L)), SPAN / L) if curvature > 0 else SPAN / L
    return ProjectedGradientRun(x, half, False)


def is_unbounded_below(H: Vector, c: Vector, project: Callable[[Vector], Vector], ended: ProjectedGradientRun) -> bool:
    """Return whether the quadratic keeps decreasing in C at the rate of the second half of the steps."""

    def value(x: Vector) -> float:
        return 0.5 * float(x @ (H @ x)) + float(c @ x)

    x, d = ended.x, ended.x - ended.before
    drop = value(ended.before) - value(x)
    if not np.isfinite(x).all() or not drop > 1e-12 * abs(value(x)):  # overflow proves nothing
        return False
    if float(d @ (H @ d)) > 1e-12 * float(np.abs(H).max()) * float(d @ d):  # the curvature ends the decrease
        return False
    reach = max(1.0, norm(x)) / norm(d)  # in steps: far relative to x and to 1, however small the steps are
    ends = [(factor * reach, x + factor * reach * d) for factor in RECESSION]
    last = x + (largest_safe_entry(x) / norm(d)) * d  # outside of every bounded C
    bounded = any(norm(project(end) - end) > 0.1 * norm(end) for end in (*(end for _, end in ends), last))
    return not bounded and all(value(project(end)) <= value(x) - 0.5 * steps * drop for steps, end in ends)
