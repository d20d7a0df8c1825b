"""How far the best point found on a support can be from the optimum there: weak duality, with the rounding of its own arithmetic.

Let x be feasible, λ and μ ≥ 0 any prices of the equations and rows, and ρ = Hx + c + Eᵀλ + Gᵀμ. For every feasible x + d, by convexity,

    φ(x + d) − φ(x) ≥ ρᵀd + ½dᵀHd − λᵀ(f − Ex) − μᵀ(h − Gx),

and ρᵀd is bounded variable by variable: 0 where dᵢ can only go up and ρᵢ > 0, |ρᵢ| times the room where that is finite. What is left is
bounded by the curvature, min over d of tᵀd + ½dᵀHd ≥ −½‖t‖²/λ_min in variables of unit curvature. Wherever a number of the right-hand
side is computed, its rounding is added to the side that makes the claim weaker. So no solver's tolerance can make the bound wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ksparse.numerics.constraints import Linear, unit_scales
from ksparse.numerics.qp import Objective, svd
from ksparse.util.arrays import Vector, norm

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Noise:
    """How far H and c, as computed, are from those of the data."""

    entry_error: float = 0.0  # |ΔHᵢⱼ| is at most this times √(HᵢᵢHⱼⱼ)
    linear_error: float = 0.0  # |Δcᵢ| is at most this times √Hᵢᵢ
    is_gram: bool = False  # whether the H of the data is a Gram matrix, hence positive semidefinite


def shortfall(
    objective: Objective, linear: Linear, x: Vector, equation_price: Vector, row_price: Vector, noise: Noise
) -> float:
    """How far φ can fall below φ(x) over the polyhedron, at most; ∞ where that cannot be told."""
    unit = unit_scales(np.diag(objective.H))
    row_price = np.maximum(row_price, 0.0)
    gradient, terms = objective.gradient(x), np.abs(objective.H) @ np.abs(x) + np.abs(objective.c)
    priced = linear.E.T @ equation_price + linear.G.T @ row_price
    terms = terms + np.abs(linear.E.T) @ np.abs(equation_price) + np.abs(linear.G.T) @ row_price
    rounding = (
        rounding_of(x.size) * terms + noise.entry_error * unit * float(unit @ np.abs(x)) + noise.linear_error * unit
    )
    up, down = _pulls(gradient + priced, rounding, linear, x)
    slack = _unmet(linear, x, equation_price, row_price)
    room_up, room_down = linear.upper - x, x - linear.lower
    with np.errstate(invalid="ignore"):
        by_room = np.nan_to_num(up * room_up, nan=0.0, posinf=np.inf) + np.nan_to_num(
            down * room_down, nan=0.0, posinf=np.inf
        )
    pulled = np.maximum(up, down) / unit
    least = _least_curvature(objective, unit, noise)
    if least < 0:  # not quite convex, as far as arithmetic tells: the room bounds what that may bring
        with np.errstate(invalid="ignore", over="ignore"):
            by_room = by_room - 0.5 * least * (unit * np.maximum(room_up, room_down)) ** 2
    if objective.R is not None and objective.q is not None:
        pull = gradient + priced
        at_bound = ((x <= linear.lower) & (pull > 0)) | ((x >= linear.upper) & (pull < 0))  # held there: d can only pay
        return slack + min(
            float(by_room.sum()), _in_the_image(objective, x, priced - np.where(at_bound, pull, 0.0), terms, unit)
        )
    open_ended = np.isinf(by_room)
    bounds = [by_room.sum() if not open_ended.any() else np.inf]
    if least > 0:
        bounds.append(0.5 * float(pulled @ pulled) / least)
        bounds.append(0.5 * float(pulled[open_ended] @ pulled[open_ended]) / least + float(by_room[~open_ended].sum()))
    return slack + float(min(bounds))


def rounding_of(terms: int) -> float:
    """The relative rounding of a sum of so many terms: 4√n units with all but certainty (Higham and Mary 2019), never less than 8."""
    return EPS * (8.0 + 4.0 * math.sqrt(terms))


def _pulls(pull: Vector, rounding: Vector, linear: Linear, x: Vector) -> tuple[Vector, Vector]:
    """How steeply φ may fall where each variable goes up, and down; 0 where it cannot go there."""
    up = np.where(x < linear.upper, np.maximum(-pull + rounding, 0.0), 0.0)
    down = np.where(x > linear.lower, np.maximum(pull + rounding, 0.0), 0.0)
    return up, down


def _unmet(linear: Linear, x: Vector, equation_price: Vector, row_price: Vector) -> float:
    """λᵀ(f − Ex) + μᵀ(h − Gx) at most."""
    total, size = 0.0, np.abs(x)
    for M, v, price in ((linear.E, linear.f, equation_price), (linear.G, linear.h, row_price)):
        if v.size:
            off = np.abs(M @ x - v) + rounding_of(x.size) * (np.abs(M) @ size + np.abs(v))
            total += float(np.abs(price) @ off)
    return total


def _least_curvature(objective: Objective, unit: Vector, noise: Noise) -> float:
    """λ_min in variables of unit curvature, less its rounding and that of H's entries; not below 0 where H is a Gram matrix."""
    if objective.R is not None:
        return 0.0
    n = unit.size
    least = float(np.linalg.eigvalsh(objective.H / unit / unit[:, None])[0]) - n * (noise.entry_error + 8.0 * EPS)
    return max(0.0, least) if noise.is_gram else least


def _in_the_image(objective: Objective, x: Vector, priced: Vector, terms: Vector, unit: Vector) -> float:
    """½‖(Rᵀ)⁺ρ‖²: with R = USVᵀ and r = Rx − q that is ½‖Uᵀr + S⁻¹Vᵀπ‖², π the prices; r is projected, not divided by a small S."""
    assert objective.R is not None
    assert objective.q is not None
    R = objective.R / unit
    U, sizes, V = svd(R, full_matrices=False)
    if R.shape[0] < R.shape[1] or not sizes[-1] > 64.0 * EPS * R.shape[1]:
        return np.inf
    r = objective.R @ x - objective.q
    blur = rounding_of(x.size) * (norm(np.abs(objective.R) @ np.abs(x) + np.abs(objective.q)))
    turned = 64.0 * EPS * R.shape[1] / sizes[-1]  # by how much rounding may have turned the columns' space
    prices = priced / unit
    off = norm(U.T @ r + (V @ prices) / sizes) + blur + turned * ((norm(r)) + objective.rest)
    off += norm(rounding_of(x.size) * terms / unit) / sizes[-1]
    return 0.5 * float(off) ** 2
