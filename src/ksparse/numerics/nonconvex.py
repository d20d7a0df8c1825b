"""Quadratics that are not convex over a small polyhedron, and any quadratic over a set that only projects.

`best_on_faces` finds the stationary points of all faces: a minimum lies inside some face, where it is stationary under the constraints
that are active there. That is one linear system per face, solved for many faces at once. Variables without bounds get distant ones; a
minimum there may mean that φ is unbounded along a ray, which is then checked.

`minimize_by_projection` is the spectral projected gradient method on H: a step is one projection and one product with H. The step length
is Barzilai and Borwein's; the line search is that of Birgin, Martínez and Raydan, where the best point of a segment has a formula.
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

FACES = 4_000  # at most


FAR = 1e4  # times the size of the right-hand sides


def best_on_faces(H: Vector, c: Vector, linear: Linear) -> Vector | None:
    """argmin ½xᵀHx + cᵀx over the polyhedron; None where it has too many faces, or none was found. `UnboundedError` on a ray."""
    n, size = c.size, max(float(np.abs(H).max()), float(np.abs(c).max(initial=0.0))) or 1.0
    H, c = H / size, c / size
    rows, right, far = _inequalities(linear)
    E, f, _ = unit_rows(linear.E, linear.f)
    most = max(0, n - f.size)
    if sum(comb(right.size, j) for j in range(most + 1)) > FACES:
        return None
    best, best_value, best_face = None, np.inf, ()
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
                best, best_value, best_face = points[i], float(values[i]), tuple(faces[i])
    if best is not None and far[list(best_face)].any():
        _refuse_ray(H, c, E, f, rows, right, far, np.array(best_face, dtype=np.intp))
        return None
    return None if best is None else np.clip(best, linear.lower, linear.upper)


def _inequalities(linear: Linear) -> tuple[Vector, Vector, Vector]:
    """Rows of size 1, their right-hand sides, and which of them are far bounds of ours."""
    eye = np.eye(linear.lower.size)
    G, h, _ = unit_rows(linear.G, linear.h)
    sides = [side[np.isfinite(side)] for side in (h, unit_rows(linear.E, linear.f)[1], linear.lower, linear.upper)]
    reach = FAR * (max(float(np.abs(side).max(initial=0.0)) for side in sides) or 1.0)
    open_low, open_high = np.isinf(linear.lower), np.isinf(linear.upper)
    low, high = np.where(open_low, -reach, linear.lower), np.where(open_high, reach, linear.upper)
    far = np.concatenate([np.zeros(h.size, dtype=bool), open_low, open_high])
    return np.vstack([G, -eye, eye]), np.concatenate([h, -low, high]), far


def _stationary(H: Vector, c: Vector, E: Vector, f: Vector, rows: Vector, right: Vector, faces: Vector) -> Vector:
    """The stationary point on each face (a row of `faces`: its inequalities that hold as equations); garbage where there is none."""
    count, n, q = len(faces), c.size, f.size + faces.shape[1]
    M = np.concatenate([np.broadcast_to(E, (count, *E.shape)), rows[faces]], axis=1)
    K = np.zeros((count, n + q, n + q))
    K[:, :n, :n], K[:, n:, :n], K[:, :n, n:] = H, M, M.transpose(0, 2, 1)
    K += 1e-15 * np.eye(n + q)  # never singular to the last digit: what that gives lies far outside
    d = np.concatenate([np.broadcast_to(-c, (count, n)), np.broadcast_to(f, (count, f.size)), right[faces]], axis=1)
    u = np.linalg.solve(K, d[:, :, None])
    u += np.linalg.solve(K, d[:, :, None] - K @ u)
    return np.asarray(u[:, :n, 0])


def _refuse_ray(
    H: Vector, c: Vector, E: Vector, f: Vector, rows: Vector, right: Vector, far: Vector, face: Vector
) -> None:
    """Whether φ falls for ever along the line on which a point of a face moves as the far bounds are moved: `UnboundedError` if so."""
    here, there = (
        _stationary(H, c, E, f, rows, np.where(far, factor * right, right), face[None])[0] for factor in (1.0, 2.0)
    )
    d = there - here
    d = d / max(float(np.abs(d).max()), 1e-300)
    rounding = 64.0 * float(np.finfo(np.float64).eps)  # of terms of size 1
    stays = (rows[~far] @ d <= rounding * d.size).all() and (np.abs(E @ d) <= rounding * d.size).all()
    bend, slope = float(d @ H @ d), float((H @ here + c) @ d)
    if stays and slope < 0 and (bend < -1e-9 or (bend <= 1e-12 and slope < -1e-9 * float(np.abs(c).max(initial=0.0)))):
        raise UnboundedError("φ falls without end along a direction that nothing bounds")


WINDOW = (
    10  # a step may rise to the worst of so many values before: spectral steps are good because they are not monotone
)


DESCENT = 1e-4  # of the slope: what a full step must gain over that worst


SPAN = 1e6  # steps reach from 1/(SPAN·L) to SPAN/L


RUNAWAY = 1e20  # entries this much larger than the start's: nothing holds x


RECESSION = (1e3, 1e6, 1e9)  # times the size of x: a way that goes down to there is taken to have no end


GLANCE = 64  # steps between two looks at the clock


@dataclass(frozen=True)
class Ended:
    """Where the steps led."""

    x: Vector
    before: Vector  # where they were halfway, to tell a drift by
    settled: bool  # whether the residual is within the target


def minimize_by_projection(
    H: Vector,
    c: Vector,
    project: Callable[[Vector], Vector],
    x: Vector,
    steps: int,
    target: float,
    deadline: float = math.inf,
) -> Ended:
    """A stationary point of ½xᵀHx + cᵀx over C, for convex H the minimum, from a point x of C.

    It has L‖x − P_C(x − g/L)‖ ≤ target·max(‖c‖, ‖g‖), g = Hx + c and L = ‖H‖, unless the steps are spent, the time is up or x runs away.
    """
    g = H @ x + c
    # where H is flat its slope is to lead about as far as x is large, not to the end of the numbers
    L = max(float(np.abs(np.linalg.eigvalsh(H)).max(initial=0.0)), 1e-3 * norm(g) / max(1.0, norm(x)), 1e-300)
    half, far, pull = x, RUNAWAY * max(1.0, float(np.abs(x).max(initial=0.0))), norm(c)
    value = 0.5 * float(x @ (g + c))
    recent, length = [value], 1.0 / L
    for step in range(steps):
        if step == steps // 2:
            half = x
        d = project(x - length * g) - x
        goal = target * max(pull, norm(g))
        if norm(d) <= goal * length and L * norm(project(x - g / L) - x) <= goal:
            return Ended(x, half, True)
        if (step % GLANCE == 0 and time.perf_counter() >= deadline) or not float(np.abs(x).max()) <= far:
            break
        Hd, slope = H @ d, float(g @ d)
        bend = float(d @ Hd)
        t = 1.0
        if value + slope + 0.5 * bend > max(recent) + DESCENT * slope and bend > 0:
            t = min(1.0, -slope / bend)
        x, g, value = x + t * d, g + t * Hd, value + t * slope + 0.5 * t * t * bend
        if step % GLANCE == 0:  # sums of steps gather rounding
            g = H @ x + c
        recent = [*recent[1 - WINDOW :], value]
        length = min(max(float(d @ d) / bend, 1.0 / (SPAN * L)), SPAN / L) if bend > 0 else SPAN / L
    return Ended(x, half, False)


def falls_for_ever(H: Vector, c: Vector, project: Callable[[Vector], Vector], ended: Ended) -> bool:
    """Whether the quadratic keeps falling at the rate of the last half of the steps as far as can be seen."""

    def value(x: Vector) -> float:
        return 0.5 * float(x @ (H @ x)) + float(c @ x)

    x, d = ended.x, ended.x - ended.before
    drop = value(ended.before) - value(x)
    if not np.isfinite(x).all() or not drop > 1e-12 * abs(value(x)):  # what overflowed says nothing
        return False
    if float(d @ (H @ d)) > 1e-12 * float(np.abs(H).max()) * float(d @ d):  # curvature turns it sooner or later
        return False
    reach = max(1.0, norm(x)) / norm(d)  # far beside x and beside 1: where steps are tiny, so is a million of them
    ends = [(factor * reach, x + factor * reach * d) for factor in RECESSION]
    last = x + (largest_safe_entry(x) / norm(d)) * d  # a bounded C, however large, does not reach so far
    held = any(norm(project(end) - end) > 0.1 * norm(end) for end in (*(end for _, end in ends), last))
    return not held and all(value(project(end)) <= value(x) - 0.5 * steps * drop for steps, end in ends)
