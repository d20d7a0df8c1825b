"""Whether a convex quadratic falls for ever over a polyhedron along few variables: a linear program for a sparse direction of that kind."""

from __future__ import annotations

import numpy as np

from ksparse.base.arrays import Vector
from ksparse.linalg.constraints import Linear
from ksparse.linalg.objective import Objective
from ksparse.linalg.presolve import implied_upper
from ksparse.linalg.scaling import unit_rows, unit_scales

FLAT = 1e-10  # of the largest eigenvalue, in variables of unit curvature: curvature that is rounding
CLEAR = 1e-7  # of the largest entry: smaller ones of a direction are the solver's tolerance


def falling_direction(H: Vector, r: Vector, linear: Linear) -> Vector | None:
    """The variables of a d with Hd = 0, rᵀd > 0, Ed = 0, Gd ≤ 0 and no bound on its way, of least Σ|dᵢ|; None where there is none."""
    up, down = np.isinf(np.minimum(linear.upper, implied_upper(linear))), np.isinf(linear.lower)
    if not (up | down).any() or not r.any():
        return None
    unit = unit_scales(np.diag(H))
    H = H / unit / unit[:, None]
    if Objective(H, r).well_conditioned:
        return None
    from scipy.optimize import linprog  # here: scipy.optimize takes as long to import as all of ours

    values, vectors = np.linalg.eigh(H)
    bent = vectors[:, values > FLAT * max(float(values[-1]), 1e-300)].T
    if len(bent) == r.size:
        return None
    slope = r / unit
    slope = slope / np.abs(slope).max()
    E, G = (unit_rows(M / unit, np.zeros(len(M)))[0] for M in (linear.E, linear.G))
    level = np.concatenate([np.zeros(len(bent) + len(E)), [1.0]])
    equal = np.vstack([bent, E, slope])
    found = linprog(
        np.ones(2 * r.size), A_ub=np.hstack([G, -G]) if len(G) else None, b_ub=np.zeros(len(G)) if len(G) else None,
        A_eq=np.hstack([equal, -equal]), b_eq=level,
        bounds=np.column_stack([np.zeros(2 * r.size), np.where(np.concatenate([up, down]), np.inf, 0.0)]), method="highs",
    )  # fmt: skip
    if found.x is None:
        return None
    d = found.x[: r.size] - found.x[r.size :]
    return np.flatnonzero(np.abs(d) > CLEAR * np.abs(d).max())
