"""Extreme eigenvalues, a leading eigenvector, the trust-region problem, and the inverse of a positive definite matrix.

The three-term recurrence of Lanczos keeps three vectors and takes one product per step. Without reorthogonalisation,
rounding creates copies of eigenvalues already found, which do not move the ends of the spectrum. So no basis is kept,
and no restart is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from ksparse.util.arrays import Array, Vector, epsilon, like, norm, to_numpy
from ksparse.util.resources import require_time, scipy_linalg

DECOMPOSITION_SECONDS = 1e-10  # of a symmetric matrix, about, for each cube of its size
SMALL = 32  # size up to which an eigendecomposition costs no more
CHECK_INTERVAL = 4  # steps between two computations of the Ritz values
LIMIT = 1_000  # steps; then θ is within (log n / steps)² of the end for any spectrum (Kuczyński and Woźniakowski 1992)
TOL = 1e-6  # of the residual, relative to θ
MARGIN = 1e-4  # relative safety margin in addition to the residual
POWER_STEPS = 40

_START = np.random.default_rng(0).standard_normal(1024)

Apply = Callable[[Array], Array]


class End(NamedTuple):
    """Estimate of one end of the spectrum: an eigenvalue lies within `residual` of the Ritz value θ."""

    theta: float
    residual: float


def largest_eigenvalue(apply: Apply, n: int, kind: Array) -> float:
    """Return an upper bound on |λ|_max of the symmetric operator `apply` of size n; ∞ if products overflow.

    Lanczos gives θ ≤ |λ|_max; the residual and a relative margin are added.
    """
    noise, bound = 200 * epsilon(kind), 0.0  # rounding of products in the precision of `kind`
    for ends in _ends(apply, n, kind):
        best = max(ends, key=lambda end: abs(end.theta))
        bound = max(abs(end.theta) + end.residual for end in ends)
        if bound <= (1.0 + max(TOL, noise)) * abs(best.theta):
            break
    return bound * (1.0 + max(MARGIN, noise))


def is_positive_definite(H: Vector) -> bool:
    """Return whether H has a Cholesky factorisation."""
    with suppress(np.linalg.LinAlgError):
        np.linalg.cholesky(H)
        return True
    return False


def has_negative_eigenvalue(apply: Apply, n: int, kind: Array, size: float) -> bool:
    """Return whether Lanczos finds a negative eigenvalue, beyond rounding, of a symmetric operator of norm ≤ `size`."""
    for low, _ in _ends(apply, n, kind):
        if low.theta < -TOL * size:
            return True  # Ritz values lie inside the spectrum
        if low.residual <= TOL * size:
            break
    return False


def _ends(apply: Apply, n: int, kind: Array) -> Iterator[tuple[End, End]]:
    """Yield improving estimates of the lower and the upper end."""

    def image(v: Vector) -> Vector:
        return to_numpy(apply(like(v, kind))).astype(np.float64)  # a copy: the operator may return v itself

    if n <= SMALL:
        matrix = np.array([image(unit) for unit in np.eye(n)])
        values = np.linalg.eigvalsh((matrix + matrix.T) / 2)
        yield End(float(values[0]), 0.0), End(float(values[-1]), 0.0)
        return
    v: Vector = np.random.default_rng(0).standard_normal(n)  # random: orthogonal to the eigenvector with probability 0
    v /= norm(v)
    before, beta = np.zeros(n), 0.0
    diagonal, off_diagonal = list[float](), list[float]()
    for step in range(1, LIMIT + 1):
        require_time()
        w = image(v)
        w -= beta * before
        diagonal.append(float(v @ w))
        w -= diagonal[-1] * v
        beta = norm(w)
        if not math.isfinite(beta):  # products overflow
            yield End(-math.inf, 0.0), End(math.inf, 0.0)
            return
        complete = beta <= 1e-14 * max(map(abs, diagonal))  # the Krylov space is invariant
        if step % CHECK_INTERVAL == 0 or complete:
            yield _end(diagonal, off_diagonal, beta, 0), _end(diagonal, off_diagonal, beta, step - 1)
        if complete:
            return
        off_diagonal.append(beta)
        before, v = v, w / beta


def _end(diagonal: list[float], off_diagonal: list[float], beta: float, i: int) -> End:
    """Return the i-th Ritz value; its residual is β times the last entry of the tridiagonal matrix's eigenvector."""
    scale = max(map(abs, (*diagonal, *off_diagonal))) or 1.0  # LAPACK squares the entries
    d, e = np.array(diagonal) / scale, np.array(off_diagonal) / scale
    values, vectors = scipy_linalg().eigh_tridiagonal(d, e, select="i", select_range=(i, i))
    return End(scale * float(values[0]), beta * abs(float(vectors[-1, 0])))


def leading_eigenvector(block: Vector, start: Vector | None) -> tuple[float, Vector]:
    """Return λ_max and its eigenvector of a positive semidefinite matrix, by power iteration if that converges soon."""
    if start is not None and start.any():
        x = start + 1e-3 * np.abs(start).max() * _START[np.arange(start.size) % _START.size]  # in no invariant subspace
        x /= norm(x)
        for _ in range(POWER_STEPS):
            y = block @ x
            value = float(x @ y)
            if float(np.abs(y - value * x).max()) <= 1e-12 * abs(value):
                return value, x
            x = y / max(norm(y), 1e-300)
    values, vectors = np.linalg.eigh(block)
    return float(values[-1]), np.asarray(vectors[:, -1])


def minimize_on_ball(H: Vector, c: Vector, radius: float, near: Vector) -> Vector:
    """Solve the trust-region problem: (H + μI)x = −c, μ ≥ max(0, −λ_min), ‖x‖ = radius unless μ = 0."""
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
        if floor > 0:  # reach the radius along the lowest eigenvector, on the side of `near`
            v = vectors[:, 0] if vectors[:, 0] @ near >= 0 else -vectors[:, 0]
            along, room = float(x @ v), radius**2 - float(x @ x)
            x = x + (-along + np.sqrt(along**2 + room)) * v
        return np.asarray(x * min(1.0, radius / max(norm(x), radius)))
    low, high = floor, floor + norm(c) / radius
    for _ in range(200):  # ‖x(μ)‖ decreases in μ
        mu = 0.5 * (low + high)
        if mu in (low, high):
            break
        low, high = (mu, high) if norm(coordinates(mu)) > radius else (low, mu)
    x = vectors @ coordinates(high)
    return np.asarray(x * min(1.0, radius / norm(x)))


def positive_inverse(H: Vector) -> Vector:
    """Return H⁻¹; raise `LinAlgError` if H is not positive definite up to rounding."""
    if not H.size:
        return np.zeros(H.shape)
    lapack = scipy_linalg().lapack
    factor, failed = lapack.dpotrf(H)  # of the upper triangle
    if not failed:
        factor, failed = lapack.dpotri(factor, overwrite_c=True)
    if failed or not np.isfinite(factor.diagonal()).all():
        raise np.linalg.LinAlgError("not positive definite")
    inverse = factor + factor.T  # entries below the diagonal are 0
    inverse[np.diag_indices_from(inverse)] *= 0.5
    return np.asarray(inverse)
