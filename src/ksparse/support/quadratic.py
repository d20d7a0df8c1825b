"""The minimum of a small quadratic over a set, by direct linear algebra: the inner problem of every polish."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from ksparse.arrays import norm
from ksparse.errors import InfeasibleError, UnboundedError
from ksparse.sets import ConvexSet, L1Ball, L2Ball, Linear, NonnegativeBall
from ksparse.sets.base import Vector
from ksparse.sets.objective import Objective, least_squares, null_space
from ksparse.sets.qp import solve_qp

SIGNED = 6  # variables up to which all choices of free ones are tried on the nonnegative ball
EXCHANGES = 200  # of free and fixed entries on the nonnegative ball


def minimize_quadratic(objective: Objective, C: ConvexSet, near: Vector) -> Vector | None:
    """argmin ½xᵀHx + cᵀx over C; None where H is not positive semidefinite and must be, or C only projects and holds x back.

    Of two equally good points (an eigenvector and its negative) the one on the side of `near`. `UnboundedError` where there is no minimum.
    """
    H, c = objective.H, objective.c
    if isinstance(C, L2Ball):
        return minimize_on_ball(H, c, C.radius, near)
    convex = objective.R is not None or _convex(H)
    if isinstance(C, NonnegativeBall):
        return _on_nonnegative_ball(H, c, C.radius, near)
    if isinstance(C, L1Ball):
        return _on_l1_ball(H, c, C.radius) if convex else None
    linear = C.linear(c.size)
    if linear is None:
        return _inside(objective, C) if convex else None
    if convex:
        return solve_qp(objective, linear).x
    return _on_equations(H, c, linear) if linear.equations_only else None


def _inside(objective: Objective, C: ConvexSet) -> Vector | None:
    """The minimum over all of space, where C has it: all that can be said of a set that only projects."""
    try:
        x = solve_qp(objective, Linear.of(objective.c.size)).x
    except (InfeasibleError, UnboundedError):
        return None
    return x if C.contains(x) else None


def _convex(H: Vector) -> bool:
    values = np.linalg.eigvalsh(H / (float(np.abs(H).max(initial=0.0)) or 1.0))  # squares may overflow
    return bool(values[0] >= -1e-10 * float(np.abs(values).max()))


def _on_equations(H: Vector, c: Vector, linear: Linear) -> Vector:
    """The minimum of a quadratic that is not convex, where it is along the solutions of Ex = f."""
    along, x = np.eye(c.size), np.zeros(c.size)
    if linear.f.size:
        along, x = null_space(linear.E), least_squares(linear.E, linear.f)
    along_H = along.T @ H @ along
    if along.shape[1] and not _convex(along_H):
        raise UnboundedError("negative curvature along a direction that nothing bounds")
    inside = Objective(along_H, along.T @ (H @ x + c))
    return np.asarray(x + along @ solve_qp(inside, Linear.of(along.shape[1])).x) if along.shape[1] else x


def _on_l1_ball(H: Vector, c: Vector, radius: float) -> Vector:
    """x = p − q with p, q ≥ 0 and Σ(p + q) ≤ radius: a quadratic program of twice the size."""
    n = c.size
    split = Objective(np.block([[H, -H], [-H, H]]), np.concatenate([c, -c]))
    both = solve_qp(split, Linear.of(2 * n, lower=0.0, G=np.ones(2 * n), h=radius)).x
    x = both[:n] - both[n:]
    return np.asarray(x * min(1.0, radius / max(float(np.abs(x).sum()), 1e-300)))


def _on_nonnegative_ball(H: Vector, c: Vector, radius: float, near: Vector) -> Vector | None:
    """The ball on the entries that are free, which are exchanged by the signs of x and of the gradient; None where that cycles.

    A point that keeps its signs and pulls no entry up from 0 is optimal if H is positive semidefinite, and stationary if not.
    """
    free = near > 0 if (near > 0).any() else c < 0
    for _ in range(EXCHANGES):
        x = np.zeros_like(c)
        if free.any():
            x[free] = minimize_on_ball(H[np.ix_(free, free)], c[free], radius, near[free])
        if x.min(initial=0.0) < 0:
            free[np.argmin(x)] = False
            continue
        gradient = np.where(free, 0.0, H @ x + c)
        size = max(float(np.abs(H @ x).max(initial=0.0)), float(np.abs(c).max(initial=0.0)))
        if gradient.min(initial=0.0) >= -1e-12 * size:
            return x
        free[np.argmin(gradient)] = True
    return None


def on_every_face_of_the_orthant(H: Vector, c: Vector, radius: float) -> Vector | None:
    """The least value on the nonnegative ball where H is not positive semidefinite: the ball on every choice of free entries.

    None where there are too many.
    """
    if c.size > SIGNED:
        return None
    best = np.zeros_like(c)
    for count in range(1, c.size + 1):
        for chosen in combinations(range(c.size), count):
            free = list(chosen)
            found = minimize_on_ball(H[np.ix_(free, free)], c[free], radius, np.ones(count))
            for part in (found, -found) if not c[free].any() else (found,):
                if part.min() >= 0:
                    x = np.zeros_like(c)
                    x[free] = part
                    best = min(best, x, key=lambda x: float(0.5 * x @ H @ x + c @ x))
    return best


def minimize_on_ball(H: Vector, c: Vector, radius: float, near: Vector) -> Vector:
    """The trust-region problem, convex or not: (H + μI)x = −c with μ ≥ max(0, −λ_min) and ‖x‖ = radius unless μ = 0."""
    values, vectors = np.linalg.eigh(H)
    pull = -(vectors.T @ c)
    size = max(float(np.abs(values).max()), norm(c) / radius, 1e-300)
    floor = max(0.0, -float(values[0]))
    tight = np.abs(values + floor) <= 1e-12 * size  # directions that vanish at μ = floor

    def coordinates(mu: float) -> Vector:
        out: Vector = np.zeros_like(pull)
        live = ~tight if mu == floor else np.ones_like(tight)
        out[live] = pull[live] / (values[live] + mu)
        return out

    hard = not (np.abs(pull[tight]) > 1e-14 * size * radius).any()
    if hard and norm(coordinates(floor)) <= radius:
        x = vectors @ coordinates(floor)
        if floor > 0:  # the rest of the radius goes along the lowest eigenvector, on the side of `near`
            v = vectors[:, 0] if vectors[:, 0] @ near >= 0 else -vectors[:, 0]
            along, room = float(x @ v), radius**2 - float(x @ x)
            x = x + (-along + np.sqrt(along**2 + room)) * v
        return np.asarray(x * min(1.0, radius / max(norm(x), radius)))
    low, high = floor, floor + norm(c) / radius
    for _ in range(200):  # ‖x(μ)‖ falls in μ
        mu = 0.5 * (low + high)
        if mu in (low, high):
            break
        low, high = (mu, high) if norm(coordinates(mu)) > radius else (low, mu)
    x = vectors @ coordinates(high)
    return np.asarray(x * min(1.0, radius / norm(x)))
