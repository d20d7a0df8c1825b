"""The fewest nonzeros in a polyhedron, by mixed-integer programming (HiGHS): whether a k-sparse point exists, and where."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, diags_array, eye_array, hstack

from ksparse.base.arrays import Vector
from ksparse.base.deadline import GRACE, time_left
from ksparse.base.silence import silenced
from ksparse.linalg.constraints import Linear
from ksparse.linalg.presolve import implied_upper
from ksparse.linalg.scaling import unit_constraints

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
    from scipy.optimize import Bounds, LinearConstraint, milp  # here: scipy.optimize takes as long to import as all of ours

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
            bounds=Bounds(np.concatenate([np.minimum(low, 0.0), needed]), np.concatenate([np.maximum(high, 0.0), np.ones(n)])),
            options={"time_limit": seconds},
        )
    if found.x is None:
        return None
    return Fewest(np.flatnonzero(found.x[n:] > 0.5), proved=bounded and found.status == 0, in_time=found.status == 0)
