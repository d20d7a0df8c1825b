"""Linear and mixed-integer programs: sparsest point of a polyhedron, sparse recession direction of a quadratic."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, diags_array, eye_array, hstack

from ksparse.numerics.constraints import Linear, implied_upper, unit_rows, unit_scales
from ksparse.numerics.qp import Objective
from ksparse.util.arrays import Vector
from ksparse.util.resources import GRACE, time_left

SECONDS = 5.0  # time limit of a mixed-integer program
BIG_BOUND = 1e3  # bounds given to unbounded variables, relative to the right-hand sides
FLAT = 1e-10  # of the largest eigenvalue in variables of unit curvature: smaller curvature is rounding
ZERO_TOL = 1e-7  # of the largest entry: smaller ones of a direction are the solver's tolerance

_lock = threading.Lock()  # file descriptor 1 belongs to the whole process
_users = 0  # how many threads suppress output now
_stdout = -1  # duplicate of file descriptor 1


@contextmanager
def suppress_native_stdout() -> Iterator[None]:
    """Discard what is written to file descriptor 1 within the block: HiGHS prints lines that no option turns off."""
    global _users, _stdout
    with _lock:
        _users += 1
        if _users == 1:
            _stdout = -1
            with suppress(OSError, ValueError, AttributeError):  # standard output is missing or closed
                sys.stdout.flush()
                _stdout = os.dup(1)
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, 1)
                os.close(nowhere)
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users and _stdout >= 0:
                with suppress(OSError, AttributeError, TypeError):
                    ctypes.CDLL(None).fflush(None)  # text that the library still buffers
                os.dup2(_stdout, 1)
                os.close(_stdout)


@dataclass(frozen=True)
class SparsestSupport:
    """A support on which the polyhedron has a point."""

    support: Vector
    proved: bool  # whether every smaller support has none
    in_time: bool  # whether the solver finished


def sparsest_support(
    linear: Linear, *, floor: Vector | float = 0.0, forced: Vector | None = None, preferred: Vector | None = None,
    rows: tuple[csr_array, Vector, Vector] | None = None,
) -> SparsestSupport | None:  # fmt: skip
    """Return the smallest support of a point; None if the time limit left it undecided.

    `forced` variables count even if they are 0. With a floor, counted variables are at least so large (for x ≥ 0).
    Among smallest supports, larger `preferred` entries decide. `rows` (M, low, high) require low ≤ Mu ≤ high of the
    indicators u. Unbounded variables are given large bounds, so that nothing is proved for them.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp  # slow to import

    n, seconds = linear.lower.size, min(SECONDS, max(GRACE, time_left()))
    low, high = linear.lower, np.minimum(linear.upper, implied_upper(linear))  # a budget makes bounds finite
    (G, h, _), (E, f, _) = unit_rows(linear.G, linear.h), unit_rows(linear.E, linear.f)
    scale = max(float(np.abs(side[np.isfinite(side)]).max(initial=0.0)) for side in (h, f, low, high)) or 1.0
    bounded = bool(np.isfinite(low).all() and np.isfinite(high).all())
    low, high = np.maximum(low / scale, -BIG_BOUND), np.minimum(high / scale, BIG_BOUND)  # absolute tolerances
    least, eye = np.where(low >= 0, np.maximum(low, floor / scale), low), eye_array(n)
    constraints = [
        LinearConstraint(hstack([eye, -diags_array(high)], format="csc"), -np.inf, 0.0),  # x ≤ high·u
        LinearConstraint(hstack([eye, -diags_array(least)], format="csc"), 0.0, np.inf),  # x ≥ least·u
    ]
    for M, lower, upper in ((G, np.full(h.size, -np.inf), h / scale), (E, f / scale, f / scale)):
        if len(M):
            constraints.append(LinearConstraint(np.hstack([M, np.zeros_like(M)]), lower, upper))
    if rows is not None:
        constraints.append(LinearConstraint(hstack([csr_array(rows[0].shape), rows[0]], format="csc"), *rows[1:]))
    dislike = np.zeros(n) if preferred is None else 1.0 - preferred / max(float(preferred.max(initial=0.0)), 1e-300)
    needed = np.zeros(n)
    needed[forced if forced is not None else []] = 1.0
    lower, upper = np.append(np.minimum(low, 0.0), needed), np.append(np.maximum(high, 0.0), np.ones(n))
    cost, integrality = np.append(np.zeros(n), 1.0 + 0.5 * dislike / n), np.repeat([0, 1], n)
    with suppress_native_stdout():
        bounds, options = Bounds(lower, upper), {"time_limit": seconds}
        found = milp(cost, constraints=constraints, integrality=integrality, bounds=bounds, options=options)
    if found.x is None:
        return None
    complete = found.status == 0
    return SparsestSupport(np.flatnonzero(found.x[n:] > 0.5), proved=bounded and complete, in_time=complete)


def falling_direction(H: Vector, r: Vector, linear: Linear) -> Vector | None:
    """Return the support of the d of least Σ|dᵢ| with Hd = 0, rᵀd > 0, Ed = 0, Gd ≤ 0 and no bound; None if none is."""
    up, down = np.isinf(np.minimum(linear.upper, implied_upper(linear))), np.isinf(linear.lower)
    if not (up | down).any() or not r.any():
        return None
    unit = unit_scales(np.diag(H))
    H = H / unit / unit[:, None]
    if Objective(H, r).well_conditioned:
        return None
    from scipy.optimize import linprog  # slow to import

    values, vectors = np.linalg.eigh(H)
    curved = vectors[:, values > FLAT * max(float(values[-1]), 1e-300)].T
    if len(curved) == r.size:
        return None
    slope = r / unit
    slope = slope / np.abs(slope).max()
    E, G = (unit_rows(M / unit, np.zeros(len(M)))[0] for M in (linear.E, linear.G))
    equal, right = np.vstack([curved, E, slope]), np.append(np.zeros(len(curved) + len(E)), 1.0)
    rows = {"A_ub": np.hstack([G, -G]), "b_ub": np.zeros(len(G))} if len(G) else {}
    bounds = np.column_stack([np.zeros(2 * r.size), np.where(np.append(up, down), np.inf, 0.0)])
    rows |= {"A_eq": np.hstack([equal, -equal]), "b_eq": right}
    found = linprog(np.ones(2 * r.size), bounds=bounds, method="highs", **rows)
    if found.x is None:
        return None
    d = found.x[: r.size] - found.x[r.size :]
    return np.flatnonzero(np.abs(d) > ZERO_TOL * np.abs(d).max())
