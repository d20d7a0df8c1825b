"""Linear and mixed-integer programs: the fewest nonzeros in a polyhedron (HiGHS), and sparse directions of recession of a quadratic."""

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

from ksparse.numerics.constraints import Linear, implied_upper, unit_constraints, unit_rows, unit_scales
from ksparse.numerics.qp import Objective
from ksparse.util.arrays import Vector
from ksparse.util.resources import GRACE, time_left

_lock = threading.Lock()  # the terminal is that of the whole process


_within = 0  # how many ask for silence now


_terminal = -1  # where file descriptor 1 led before the first of them


@contextmanager
def silenced() -> Iterator[None]:
    """Nothing written to file descriptor 1 within is seen: HiGHS has lines that no option of its own turns off."""
    _begin()
    try:
        yield
    finally:
        _end()


def _begin() -> None:
    global _within, _terminal
    with _lock:
        _within += 1
        if _within > 1:
            return
        _terminal = -1
        with suppress(OSError, ValueError, AttributeError):  # no terminal, or one that is closed
            sys.stdout.flush()
            _terminal = os.dup(1)
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.close(nowhere)


def _end() -> None:
    global _within
    with _lock:
        _within -= 1
        if _within or _terminal < 0:
            return
        with suppress(OSError, AttributeError, TypeError):
            ctypes.CDLL(None).fflush(None)  # what the library still holds back
        os.dup2(_terminal, 1)
        os.close(_terminal)


SECONDS = 5.0  # for one such question


FAR = 1e3  # times the size of the right-hand sides: a guess at how far an unbounded variable goes


@dataclass(frozen=True)
class Fewest:
    """A support on which the polyhedron has a point, and whether there is provably none of fewer variables."""

    support: Vector
    proved: bool
    in_time: bool  # whether the search for it came to its end


def fewest_nonzeros(
    linear: Linear,
    *,
    floor: Vector | float = 0.0,
    forced: Vector | None = None,
    preferred: Vector | None = None,
    rows: tuple[csr_array, Vector, Vector] | None = None,
) -> Fewest | None:
    """The fewest variables that a point needs; None if time left it undecided.

    `forced` variables count whether they are 0 or not; with a floor each counted variable is at least so large (for x ≥ 0). Of equally
    few the support with the larger `preferred` entries, of indicators u with low ≤ M·u ≤ high where `rows` has M, low and high. Unbounded
    variables are given far bounds, which prove nothing.
    """
    from scipy.optimize import (
        Bounds,
        LinearConstraint,
        milp,
    )  # here: scipy.optimize takes as long to import as all of ours

    n, seconds = linear.lower.size, min(SECONDS, max(GRACE, time_left()))
    low, high = linear.lower, np.minimum(linear.upper, implied_upper(linear))  # a budget makes bounds finite
    told = unit_constraints(linear, lambda M: np.hstack([M, np.zeros_like(M)]))
    sides = [side for side in (told["b_ub"], told["b_eq"], low, high) if side is not None]
    scale = max(float(np.abs(side[np.isfinite(side)]).max(initial=0.0)) for side in sides) or 1.0
    bounded = bool(np.isfinite(low).all() and np.isfinite(high).all())
    low, high = np.maximum(low / scale, -FAR), np.minimum(high / scale, FAR)  # HiGHS has absolute tolerances
    least, eye = np.where(low >= 0, np.maximum(low, floor / scale), low), eye_array(n)
    constraints = [
        LinearConstraint(hstack([eye, -diags_array(high)], format="csc"), -np.inf, 0.0),  # x ≤ high·u
        LinearConstraint(hstack([eye, -diags_array(least)], format="csc"), 0.0, np.inf),  # x ≥ least·u
    ]
    if told["A_ub"] is not None and told["b_ub"] is not None:
        constraints.append(LinearConstraint(told["A_ub"], -np.inf, told["b_ub"] / scale))
    if told["A_eq"] is not None and told["b_eq"] is not None:
        constraints.append(LinearConstraint(told["A_eq"], told["b_eq"] / scale, told["b_eq"] / scale))
    if rows is not None:
        M, least_of, most_of = rows
        constraints.append(LinearConstraint(hstack([csr_array(M.shape), M], format="csc"), least_of, most_of))
    dislike = np.zeros(n) if preferred is None else 1.0 - preferred / max(float(preferred.max(initial=0.0)), 1e-300)
    needed = np.zeros(n)
    needed[forced if forced is not None else []] = 1.0
    with silenced():
        found = milp(
            np.concatenate([np.zeros(n), 1.0 + 0.5 * dislike / n]),
            constraints=constraints,
            integrality=np.repeat([0, 1], n),
            bounds=Bounds(
                np.concatenate([np.minimum(low, 0.0), needed]), np.concatenate([np.maximum(high, 0.0), np.ones(n)])
            ),
            options={"time_limit": seconds},
        )
    if found.x is None:
        return None
    return Fewest(np.flatnonzero(found.x[n:] > 0.5), proved=bounded and found.status == 0, in_time=found.status == 0)


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
