"""A quadratic on the Euclidean ball, convex or not."""

from __future__ import annotations

import numpy as np

from ksparse.base.arrays import Vector, norm


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
