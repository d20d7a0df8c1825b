"""Minimise a quadratic over a Euclidean ball by eigenvalues: exact, convex or not."""

from __future__ import annotations

import math

import numpy as np


def fit_in_ball(M, t, c, radius):
    """Solve min ½‖Mx − t‖² + cᵀx, ‖x‖ ≤ radius, by the singular values of M."""
    top = float(np.abs(M).max(initial=0.0)) or 1.0
    U, S, Vt = np.linalg.svd(M / top, full_matrices=True)
    n = M.shape[1]
    S = np.concatenate([S, np.zeros(n - len(S))])
    S[S <= 1e-13 * S.max(initial=0.0)] = 0.0
    level = max(float(np.abs(t).max(initial=0.0)), float(np.abs(c).max(initial=0.0)) / top) or 1.0
    part = np.zeros(n)
    live = min(n, U.shape[1])
    part[:live] = S[:live] * (U[:, :live].T @ (t / level))
    pull = part - Vt @ (c / level / top)
    return _secular(S**2, pull, radius * (top / level), Vt.T) * (level / top)


def form_in_ball(H, c, radius):
    """Solve min ½xᵀHx + cᵀx, ‖x‖ ≤ radius, by the eigenvalues of H."""
    top = float(np.abs(H).max(initial=0.0)) or float(np.abs(c).max(initial=0.0)) / radius or 1.0
    values, vectors = np.linalg.eigh(H / top)
    size = radius
    return _secular(values, -(vectors.T @ (c / top)) / size, 1.0, vectors) * size


def _secular(values, pull, radius, vectors):
    """Solve (values + μ)w = pull for the least μ ≥ max(0, −min) with ‖w‖ ≤ radius; extend w along the lowest vector."""
    floor = max(0.0, -float(values.min()))
    size = max(float(np.abs(values).max()), float(np.linalg.norm(pull)) / radius, 1e-300)

    lowest = values + floor <= 1e-14 * size

    def at(mu):
        w, live = np.zeros_like(pull), ~lowest if mu == floor else values + mu > 0
        w[live] = pull[live] / (values[live] + mu)
        return w

    if np.linalg.norm(pull[lowest]) <= 1e-13 * size * radius and np.linalg.norm(at(floor)) <= radius:
        w = at(floor)
        if floor > 0:
            w[int(np.argmin(values))] += np.sqrt(max(0.0, radius**2 - float(w @ w)))
    else:
        low, high = floor, floor + float(np.linalg.norm(pull)) / radius
        for _ in range(300):
            mu = 0.5 * (low + high)
            if mu in (low, high):
                break
            shifted = values + mu  # above 0: mu lies between floor and high
            w = pull / shifted if shifted.min() > 0 else at(mu)
            low, high = (mu, high) if math.sqrt(w @ w) > radius else (low, mu)
        w = at(high)
    x = vectors @ w
    return x * min(1.0, radius / max(float(np.linalg.norm(x)), 1e-300))
