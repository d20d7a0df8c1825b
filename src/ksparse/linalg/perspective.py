"""The perspective relaxation of a convex quadratic with at most k nonzeros: whom the whole problem wants in the support.

With H − diag(d) positive semidefinite, every zᵢ in {0, 1} saying whether i is in the support,

    min ½xᵀ(H − diag(d))x − rᵀx + Σ ½dᵢxᵢ²/zᵢ   s.t.  Ex = f,  Gx ≤ h,  lowᵢzᵢ ≤ xᵢ ≤ highᵢzᵢ,  Σzᵢ ≤ k,  0 ≤ z ≤ 1

is the problem itself, and convex once z may be anything between. It is solved by ADMM on x = y: the x-step is linear under Ex = f, with one
inverse for all steps, and the y-step is separable given the multiplier ν of Σz ≤ k: a reverse Huber function, linear up to y = 1/τ, where
z = τ|y| reaches 1, and ½dy² + ν beyond.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ksparse.base.arrays import Vector
from ksparse.linalg.constraints import Linear

TRIED = 12  # values of ν at a time
ROUNDS = 3  # of them, each closer
SINGULAR = 1e-3  # the sine of a variable's angle to those before it, below which the relaxation says little
SPREAD = 1e6  # of the variables' units: one method's weight for all of them says little beyond
SMALLEST = 1e-8  # ν, of the one that lets nobody in


@dataclass(frozen=True)
class Relaxed:
    """Where the relaxation ended."""

    x: Vector
    z: Vector  # in 0…1, at most k together


def diagonal_part(H: Vector) -> float | None:
    """A little less than the largest θ with H − θ·diag(H) positive semidefinite; None where H is singular, or nearly so."""
    unit = np.sqrt(np.diag(H))
    if not (unit > 0).all():
        return None
    if not unit.max() <= SPREAD * unit.min():
        return None
    H = H / unit / unit[:, None]
    try:
        if np.linalg.cholesky(H).diagonal().min() < SINGULAR:
            return None
        inverse = np.linalg.inv(H)
    except np.linalg.LinAlgError:
        return None
    x = np.random.default_rng(0).standard_normal(unit.size)
    size = 0.0
    for _ in range(30):  # power iterations: from below, so that θ comes out too large, which the factor mends in all but rare cases
        x = inverse @ (x / np.linalg.norm(x))
        size = float(np.linalg.norm(x))
    theta = 0.98 / size if size > 0 else 0.0
    return min(theta, 1.0) if theta > 0 else None


def relax(H: Vector, r: Vector, d: Vector, linear: Linear, k: int, steps: int) -> Relaxed:
    """The relaxation by so many steps; `linear` with the bounds of variables in the support."""
    n, rows = r.size, linear.h.size
    weight = float(np.median(np.diag(H)))  # of the distance between x and y
    G = linear.G * (1.0 / np.maximum(np.linalg.norm(linear.G, axis=1, keepdims=True), 1e-300)) if rows else linear.G
    h = linear.h / np.maximum(np.linalg.norm(linear.G, axis=1), 1e-300) if rows else linear.h
    K = np.linalg.inv(H - np.diag(d) + weight * (np.eye(n) + G.T @ G))
    KE = K @ linear.E.T
    S = np.linalg.pinv(linear.E @ KE)
    P, start = K - KE @ S @ KE.T, KE @ (S @ linear.f)
    y, u, z = np.clip(np.full(n, 1.0 / n), linear.lower.clip(max=0.0), linear.upper), np.zeros(n), np.zeros(n)
    slack, price = np.minimum(G @ y, h), np.zeros(rows)
    for _ in range(steps):
        x = P @ (r + weight * (y - u + G.T @ (slack - price))) + start
        y, z = _nearest(x + u, weight, d, linear, k)
        u += x - y
        if rows:
            slack = np.minimum(G @ x + price, h)
            price += G @ x - slack
    return Relaxed(y, z)


def _nearest(v: Vector, weight: float, d: Vector, linear: Linear, k: int) -> tuple[Vector, Vector]:
    """The y-step: y, z of least Σ ½dy²/z + ½weight(y − v)² under Σz ≤ k."""
    far = np.where(v >= 0, linear.upper, -linear.lower)  # how far y may go on v's side
    size, far = np.where(far > 0, np.abs(v), 0.0), np.where(far > 0, far, 1.0)
    near = np.where(v >= 0, np.maximum(linear.lower, 0.0), np.maximum(-linear.upper, 0.0))
    most = max(float((weight * weight * size * size / (2.0 * d)).max()), 1e-300)  # there every z is 0
    least = SMALLEST * most
    if _count(np.array([least]), size, weight, d, near, far)[0] <= k:
        most = least
    for _ in range(ROUNDS if most > least else 0):
        tried = np.geomspace(least, most, TRIED)
        first = int((_count(tried, size, weight, d, near, far) <= k).argmax())  # at the last there is none
        least, most = tried[max(first - 1, 0)], tried[first]
    nu = most
    tau = _slope(nu, d, near, far)
    s = size - (0.5 * d / np.maximum(tau, 1e-300) + nu * tau) / weight
    whole = s * tau > 1.0
    y = np.where(s <= 0, 0.0, np.where(whole, np.clip(weight * size / (weight + d), near, far), s))
    z = np.where(s <= 0, 0.0, np.where(whole, 1.0, tau * s))
    return np.where(v >= 0, y, -y), z


def _slope(nu: Vector | float, d: Vector, near: Vector, far: Vector) -> Vector:
    """τ: z = τ|y| where z < 1, within the bounds."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.clip(np.sqrt(d / (2.0 * nu)), 1.0 / far, 1.0 / near))


def _count(nu: Vector, size: Vector, weight: float, d: Vector, near: Vector, far: Vector) -> Vector:
    """Σz for each ν."""
    tau = _slope(nu[:, None], d, near, far)
    s = size - (0.5 * d / np.maximum(tau, 1e-300) + nu[:, None] * tau) / weight
    return np.asarray(np.clip(tau * s, 0.0, 1.0).sum(axis=1))
