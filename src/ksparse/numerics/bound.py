"""A bound on how far a point is from the optimum on its support: weak duality, rounding included.

Let x be feasible, λ and μ ≥ 0 any multipliers of the equations and rows, and ρ = Hx + c + Eᵀλ + Gᵀμ. For every feasible
x + d, by convexity,

    φ(x + d) − φ(x) ≥ ρᵀd + ½dᵀHd − λᵀ(f − Ex) − μᵀ(h − Gx),

and ρᵀd is bounded for each variable: by 0 if dᵢ can only increase and ρᵢ > 0, by |ρᵢ| times the distance to the bound
if that is finite. The other terms are bounded by the curvature, min over d of tᵀd + ½dᵀHd ≥ −½‖t‖²/λ_min in variables
of unit curvature. The rounding of every computed number is added to the side that weakens the bound, so no tolerance of
a solver can make it wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ksparse.numerics.constraints import Linear, unit_scales
from ksparse.numerics.qp import Objective, svd
from ksparse.util.arrays import Vector, norm

EPS = float(np.finfo(np.float64).eps)
PIVOTS = 12  # solves in which bounds of many supports look for the signs that are active
REGULAR = 1e-8  # least curvature, of variables of unit curvature, from which the bounds of many supports are computed


@dataclass(frozen=True)
class Noise:
    """Bounds on the errors of the computed H and c."""

    entry_error: float = 0.0  # |ΔHᵢⱼ| is at most this times √(HᵢᵢHⱼⱼ)
    linear_error: float = 0.0  # |Δcᵢ| is at most this times √Hᵢᵢ
    is_gram: bool = False  # whether the H of the data is a Gram matrix, hence positive semidefinite


def suboptimality_bound(
    objective: Objective, linear: Linear, x: Vector, equation_multipliers: Vector, row_multipliers: Vector, noise: Noise
) -> float:
    """Return a bound on φ(x) − min φ over the polyhedron; ∞ if none is known."""
    unit = unit_scales(np.diag(objective.H))
    row_multipliers = np.maximum(row_multipliers, 0.0)
    gradient, terms = objective.gradient(x), np.abs(objective.H) @ np.abs(x) + np.abs(objective.c)
    priced = linear.E.T @ equation_multipliers + linear.G.T @ row_multipliers
    terms = terms + np.abs(linear.E.T) @ np.abs(equation_multipliers) + np.abs(linear.G.T) @ row_multipliers
    errors = noise.entry_error * unit * float(unit @ np.abs(x)) + noise.linear_error * unit
    rounding = rounding_of(x.size) * terms + errors
    slope = gradient + priced
    up = np.where(x < linear.upper, np.maximum(-slope + rounding, 0.0), 0.0)  # largest decrease per unit upwards
    down = np.where(x > linear.lower, np.maximum(slope + rounding, 0.0), 0.0)
    slack = _complementarity_gap(linear, x, equation_multipliers, row_multipliers)
    room_up, room_down = linear.upper - x, x - linear.lower
    with np.errstate(invalid="ignore"):  # 0 · ∞ counts as 0
        by_room = sum(np.nan_to_num(rate, nan=0.0, posinf=np.inf) for rate in (up * room_up, down * room_down))
    steepest = np.maximum(up, down) / unit
    least = _least_curvature(objective, unit, noise)
    if least < 0:  # not clearly convex: the distances to the bounds limit the effect
        with np.errstate(invalid="ignore", over="ignore"):
            by_room = by_room - 0.5 * least * (unit * np.maximum(room_up, room_down)) ** 2
    if objective.R is not None:
        at_bound = ((x <= linear.lower) & (slope > 0)) | ((x >= linear.upper) & (slope < 0))  # d can only increase φ
        by_image = _bound_in_image(objective, x, priced - np.where(at_bound, slope, 0.0), terms, unit)
        return slack + min(float(by_room.sum()), by_image)
    unbounded = np.isinf(by_room)
    bounds = [float(by_room.sum())]
    if least > 0:
        bounds.append(0.5 * float(steepest @ steepest) / least)
        bounds.append(0.5 * float(steepest[unbounded] @ steepest[unbounded]) / least + float(by_room[~unbounded].sum()))
    return slack + min(bounds)


def lower_bounds_on_supports(
    H: Vector, r: Vector, linear: Linear, supports: Vector, noise: Noise, constant: float = 0.0
) -> Vector:
    """Return lower bounds of ½xᵀHx − rᵀx + constant over a polyhedron, one for each support (row); −∞ where unknown.

    Rows of G are left out, and bounds other than signs. All supports are computed at once, in variables of unit
    curvature. On a support let λ be any multipliers of the equations and π those of the signs, x near the minimum of
    the Lagrangian, and ρ = Hx − r + Eᵀλ − π. The Lagrangian exceeds its minimum at x by at most ½‖ρ‖²/λ_min.
    """
    k, unit, f = supports.shape[1], unit_scales(np.diag(H)), linear.f
    sign = np.where(linear.lower >= 0, 1.0, np.where(linear.upper <= 0, -1.0, 0.0))[supports]
    H = (H / unit / unit[:, None])[supports[:, :, None], supports[:, None, :]]
    c, E = (r / unit)[supports], (linear.E / unit)[:, supports].swapaxes(0, 1)
    least = np.linalg.eigvalsh(H)[:, 0] - k * (noise.entry_error + 8.0 * EPS)
    bounds, regular = np.full(len(supports), -np.inf), least > REGULAR
    H, c, E, sign, least = H[regular], c[regular], E[regular], sign[regular], least[regular]
    x, multipliers, price = _minima_under_signs(H, c, E, f, sign)
    slope = c - (multipliers[:, None] @ E)[:, 0] + price
    off = np.abs(c) + (np.abs(multipliers[:, None]) @ np.abs(E))[:, 0] + np.abs(price)
    Hx, terms = _times(H, x), _times(np.abs(H), np.abs(x)) + off
    size, rounding = np.abs(x).sum(axis=1), rounding_of(k + f.size + 1)
    residual = np.abs(Hx - slope) + rounding * terms + (noise.entry_error * size + noise.linear_error)[:, None]
    value = constant + (x * (0.5 * Hx - slope)).sum(axis=1) - multipliers @ f
    error = rounding * ((np.abs(x) * terms).sum(axis=1) + np.abs(multipliers) @ np.abs(f) + abs(constant))
    error += size * (0.5 * noise.entry_error * size + noise.linear_error)
    found = value - error - 0.5 * (residual**2).sum(axis=1) / least
    bounds[regular] = np.where(np.isfinite(found), found, -np.inf)
    return bounds


def _minima_under_signs(H: Vector, c: Vector, E: Vector, f: Vector, sign: Vector) -> tuple[Vector, Vector, Vector]:
    """Return x, the multipliers of the equations and those of the signs of many small quadratic programs, nearly.

    Block pivoting: variables of the wrong sign are held at 0, those with a multiplier of the wrong sign are released.
    """
    free = np.ones(c.shape, dtype=bool)
    for _ in range(PIVOTS):
        held = ~free
        masked = np.where(free[:, :, None] & free[:, None, :], H, 0.0)
        masked[:, np.arange(c.shape[1]), np.arange(c.shape[1])] += held
        x, multipliers = np.linalg.solve(masked, np.where(free, c, 0.0)[:, :, None])[:, :, 0], np.zeros((len(c), 0))
        if f.size:
            active = np.where(free[:, None], E, 0.0)
            W = np.linalg.solve(masked, active.swapaxes(1, 2))
            multipliers = _times(np.linalg.pinv(active @ W), _times(active, x) - f)
            x = x - _times(W, multipliers)
        slope = sign * (_times(H, x) - c + (multipliers[:, None] @ E)[:, 0])
        changed = np.where(held, slope < 0, sign * x < 0)
        if not changed.any():
            break
        free ^= changed
    return x, multipliers, np.where(held & (slope > 0), sign * slope, 0.0)


def _times(M: Vector, x: Vector) -> Vector:
    """Return the product of each matrix with its vector."""
    return np.asarray((M @ x[:, :, None])[:, :, 0])


def rounding_of(terms: int) -> float:
    """Return the relative rounding of a sum of n terms: 8 + 4√n units, with high probability (Higham, Mary 2019)."""
    return EPS * (8.0 + 4.0 * math.sqrt(terms))


def _complementarity_gap(linear: Linear, x: Vector, equation_multipliers: Vector, row_multipliers: Vector) -> float:
    """Return an upper bound on λᵀ(f − Ex) + μᵀ(h − Gx)."""
    total, size = 0.0, np.abs(x)
    for M, v, multipliers in ((linear.E, linear.f, equation_multipliers), (linear.G, linear.h, row_multipliers)):
        off = np.abs(M @ x - v) + rounding_of(x.size) * (np.abs(M) @ size + np.abs(v))
        total += float(np.abs(multipliers) @ off)
    return total


def _least_curvature(objective: Objective, unit: Vector, noise: Noise) -> float:
    """Return a lower bound on λ_min in variables of unit curvature, rounding included; at least 0 for a Gram matrix."""
    if objective.R is not None:
        return 0.0
    n = unit.size
    least = float(np.linalg.eigvalsh(objective.H / unit / unit[:, None])[0]) - n * (noise.entry_error + 8.0 * EPS)
    return max(0.0, least) if noise.is_gram else least


def _bound_in_image(objective: Objective, x: Vector, priced: Vector, terms: Vector, unit: Vector) -> float:
    """Return ½‖(Rᵀ)⁺ρ‖² = ½‖Uᵀr + S⁻¹Vᵀπ‖² for R = USVᵀ, r = Rx − q, `priced` π = ρ − Rᵀr: r is not divided by S."""
    assert objective.R is not None
    assert objective.q is not None
    R = objective.R / unit
    U, sizes, V = svd(R, full_matrices=False)
    if R.shape[0] < R.shape[1] or not sizes[-1] > 64.0 * EPS * R.shape[1]:
        return np.inf
    r = objective.R @ x - objective.q
    error = rounding_of(x.size) * norm(np.abs(objective.R) @ np.abs(x) + np.abs(objective.q))
    rotation = 64.0 * EPS * R.shape[1] / sizes[-1]  # of the space of the columns, by rounding
    length = norm(U.T @ r + (V @ (priced / unit)) / sizes) + error + rotation * (norm(r) + objective.rest)
    length += norm(rounding_of(x.size) * terms / unit) / sizes[-1]
    return 0.5 * float(length) ** 2
