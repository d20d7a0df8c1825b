"""The least value of a quadratic that is not convex over a small polyhedron: the stationary points of all its faces.

A minimum lies inside some face, where it is stationary under the constraints that hold there as equations: one linear system a face,
solved for many faces at once. Variables without bounds get far ones; a least value there may mean that φ falls for ever along a ray, which
is then checked as such.
"""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

from ksparse.base.arrays import Vector
from ksparse.errors import UnboundedError
from ksparse.linalg.constraints import Linear
from ksparse.linalg.scaling import unit_rows

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


def _refuse_ray(H: Vector, c: Vector, E: Vector, f: Vector, rows: Vector, right: Vector, far: Vector, face: Vector) -> None:
    """Whether φ falls for ever along the line on which a point of a face moves as the far bounds are moved: `UnboundedError` if so."""
    here, there = (_stationary(H, c, E, f, rows, np.where(far, factor * right, right), face[None])[0] for factor in (1.0, 2.0))
    d = there - here
    d = d / max(float(np.abs(d).max()), 1e-300)
    rounding = 64.0 * float(np.finfo(np.float64).eps)  # of terms of size 1
    stays = (rows[~far] @ d <= rounding * d.size).all() and (np.abs(E @ d) <= rounding * d.size).all()
    bend, slope = float(d @ H @ d), float((H @ here + c) @ d)
    if stays and slope < 0 and (bend < -1e-9 or (bend <= 1e-12 and slope < -1e-9 * float(np.abs(c).max(initial=0.0)))):
        raise UnboundedError("φ falls without end along a direction that nothing bounds")
