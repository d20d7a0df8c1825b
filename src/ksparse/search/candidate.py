"""Candidates: a support with the best point on it; outcomes of searches; and the best candidate so far."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ksparse.data.model import QuadraticModel
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
    shift: float = 0.0  # of the ball: H + shift·I replaces H
    radius: float = 0.0  # of that ball
    at_lower: Vector = field(default_factory=lambda: NONE)  # variables at their lower bound
    at_upper: Vector = field(default_factory=lambda: NONE)
    rounding: float = 0.0  # of the value

    @classmethod
    def without_multipliers(cls, support: Vector, x: Vector, value: float, linear: Linear | None = None) -> Candidate:
        """Return a point without multipliers; `linear` is C if it is a polyhedron."""
        return cls(support, x, value, np.zeros(support.size), np.zeros(0 if linear is None else linear.h.size))

    @classmethod
    def of(cls, support: Vector, found: Solution, value: float, rounding: float, forced: Vector) -> Candidate:
        """Return what was found on a support, without the variables at 0 unless forced in."""
        keep = (found.x != 0) | np.isin(support, forced)
        low, high, multipliers = found.active.at_lower, found.active.at_upper, found.bound_multipliers
        multipliers = np.where((low & (multipliers > 0)) | (high & (multipliers < 0)), multipliers, 0.0)[keep]
        return cls(
            support[keep], found.x[keep], value, multipliers, found.row_multipliers, found.equation_multipliers,
            found.shift, found.radius, support[low & keep], support[high & keep], rounding,
        )  # fmt: skip

    def full(self, n: int) -> Vector:
        """Return the point as a vector of length n; of a matrix the entries of its n rows, one row after the other."""
        x = np.zeros((n, *self.x.shape[1:]))
        x[self.support] = self.x
        return x.ravel()

    def active_on(self, support: Vector, linear: Linear) -> Active:
        """Return the constraints that are active here and exist on another support: a warm start."""
        low = np.isin(support, self.at_lower) & np.isfinite(linear.lower)
        high = np.isin(support, self.at_upper) & np.isfinite(linear.upper)
        return Active(low, high, self.row_multipliers > 0)

    def slopes_with_multipliers(self, model: QuadraticModel, linear: Linear | None) -> tuple[Vector, float]:
        """Return r with the multipliers of rows and bounds, and the constant of the dual value."""
        r = model.r.copy()
        if linear is None:
            return r, model.constant - 0.5 * self.shift * self.radius**2
        rows = np.maximum(self.row_multipliers, 0.0)
        if rows.size:
            r -= linear.G.T @ rows
        r[self.support] += self.bound_multipliers
        return r, model.constant - float(rows @ linear.h)


@dataclass(frozen=True)
class SearchOutcome:
    """Where a search ended."""

    best: Candidate
    swaps: int = 0  # moves made
    proved: bool = False  # whether it is proved that no add, drop or swap improves


Improvements = Iterator[tuple[str, SearchOutcome]]  # better and better candidates, each with what led to it


@dataclass
class Incumbent:
    """The best candidate so far, and a record of each stage that led to it."""

    best: Candidate | None = None
    proved: bool = False
    swaps: int = 0
    iterations: int = 0
    bound: float = -math.inf  # a lower bound of φ on all supports, if all were tried
    records: list[dict[str, Any]] = field(default_factory=list)  # starts, perturbations and proofs with a candidate

    @property
    def found(self) -> Candidate:
        """The best candidate, once there is one."""
        assert self.best is not None
        return self.best

    def record(self, name: str, outcome: SearchOutcome, elapsed: float) -> None:
        """Record where a search ended, and keep its candidate if it is better."""
        found = outcome.best
        self.swaps += outcome.swaps
        if self.best is not None and np.array_equal(found.support, self.best.support):
            self.proved |= outcome.proved  # the same answer up to rounding
        elif self.best is None or found.value < self.best.value:
            self.best, self.proved = found, outcome.proved
        record = {"start": name, "fun": found.value, "swaps": outcome.swaps, "proved": outcome.proved}
        self.records.append(record | {"elapsed": elapsed})
