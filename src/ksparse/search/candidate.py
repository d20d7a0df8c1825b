"""A support with the best point on it, and where a search ended."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ksparse.numerics.constraints import Linear
from ksparse.numerics.qp import Active, Solution
from ksparse.util.arrays import Vector

NONE = np.zeros(0, dtype=np.intp)


@dataclass(frozen=True)
class Candidate:
    """A support, the best point on it, and the multipliers that certify it."""

    support: Vector  # sorted indices
    x: Vector  # entries on the support; of a matrix its rows there
    value: float  # φ there
    bound_multipliers: Vector  # multipliers of the bounds on the support, 0 where there are none
    row_multipliers: Vector  # of the rows of G
    equation_multipliers: Vector = field(default_factory=lambda: np.zeros(0))  # of the rows of E
    shift: float = 0.0  # of the ball: H + shift·I is what is felt
    radius: float = 0.0  # of that ball
    at_lower: Vector = field(default_factory=lambda: NONE)  # variables at their lower bound
    at_upper: Vector = field(default_factory=lambda: NONE)
    rounding: float = 0.0  # of the value

    @classmethod
    def without_multipliers(cls, support: Vector, x: Vector, value: float, linear: Linear | None = None) -> Candidate:
        """Return a point without multipliers; `linear` is C if it is a polyhedron."""
        rows = 0 if linear is None else linear.h.size
        return cls(support, x, value, np.zeros(support.size), np.zeros(rows))

    @classmethod
    def of(cls, support: Vector, found: Solution, value: float, rounding: float, forced: Vector) -> Candidate:
        """What was found on a support, without the variables at 0: they are free again, unless forced in."""
        keep = (found.x != 0) | np.isin(support, forced)
        low, high, multipliers = found.active.at_lower, found.active.at_upper, found.bound_multipliers
        multipliers = np.where((low & (multipliers > 0)) | (high & (multipliers < 0)), multipliers, 0.0)[keep]
        return cls(
            support[keep], found.x[keep], value, multipliers, found.row_multipliers, found.equation_multipliers,
            found.shift, found.radius, support[low & keep], support[high & keep], rounding,
        )  # fmt: skip

    def full(self, n: int) -> Vector:
        """The point as a vector of length n; of a matrix the entries of its n rows, one row after the other."""
        x = np.zeros((n, *self.x.shape[1:]))
        x[self.support] = self.x
        return x.ravel()

    def active_on(self, support: Vector, linear: Linear) -> Active:
        """The constraints that are active here, where another support has them: a warm start."""
        return Active(
            np.isin(support, self.at_lower) & np.isfinite(linear.lower),
            np.isin(support, self.at_upper) & np.isfinite(linear.upper),
            self.row_multipliers > 0,
        )


@dataclass(frozen=True)
class Found:
    """Where a search ended."""

    best: Candidate
    swaps: int = 0  # moves made
    proved: bool = False  # whether no add, drop or swap improves, by proof
