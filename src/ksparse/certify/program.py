"""The problem as the bound sees it: a convex quadratic over a polyhedron, in variables of unit curvature and values near 1."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ksparse.data.model import QuadraticModel
from ksparse.numerics.bound import EPS, Noise, rounding_of
from ksparse.numerics.constraints import Linear, fixed_by_equations, implied_upper, unit_rows, unit_scales
from ksparse.numerics.relaxation import GroupLimits, MagnitudeRange
from ksparse.numerics.relaxation_kernels import FREE, IN, OUT
from ksparse.search.candidate import Candidate
from ksparse.search.pieces import Pieces
from ksparse.search.support_rules import NO_RULES, Rules
from ksparse.util.arrays import Vector

WIDER = 1.0 + 1e-5  # what an implied bound is multiplied by: its own arithmetic's rounding is far below
HELD = 1e-12  # of a variable's size: with no more room it has one value
WIDER_SQUARE = 1.0 + 1e-12  # the same for the square of a radius, which is multiplied out


@dataclass(frozen=True, eq=False)
class Program:
    """min ½xᵀHx − rᵀx + constant s.t. Ex = f, Gx ≤ h, at most k nonzeros, each of a size that is allowed."""

    H: Vector  # ones on its diagonal, but for variables that it does not see
    r: Vector
    constant: float
    linear: Linear  # rows of largest entry 1; its bounds are not used
    sizes: MagnitudeRange
    vanishes: Vector  # whether a variable that is in the support may be 0: one that bounds fix there may only be that
    state: Vector  # IN where a variable is in every support
    k: int
    exactly: bool  # k nonzeros, and not fewer
    noise: Noise  # of H and r
    names: Vector  # which variables of the whole problem these are
    per: Vector  # their units: x there is per·x here
    scale: float  # of values
    least: float = 0.0  # not above any eigenvalue of H, and nearly the least; 0 where that is not known
    largest: float = np.inf  # not below any
    rules: Rules = NO_RULES  # what supports must obey
    asked: int = 0  # how many that may be, as they count

    @classmethod
    def of(cls, pieces: Pieces, model: QuadraticModel, k: int, best: Candidate, scale: float | None = None) -> Program:
        """That of a convex quadratic over a polyhedron or a ball, of which a k-sparse point is known; in a unit of values, if one is given.

        On a ball of radius R, φ(x) ≥ φ(x) + ½ν(‖x‖² − R²) for any ν ≥ 0, which is a quadratic without the ball: ν is what that point has.
        """
        names, linear, shift = np.flatnonzero(pieces.allowed), pieces.linear, max(0.0, best.shift)
        constant = model.constant
        if linear is None:
            assert pieces.radius is not None
            linear = Linear.of(pieces.n, -WIDER * pieces.radius, WIDER * pieces.radius)
            constant -= 0.5 * shift * (WIDER_SQUARE * pieces.radius**2)
        H = model.block(names)
        H[np.diag_indices_from(H)] += shift
        unit = unit_scales(model.diagonal[names] + shift)
        scale = scale or max(abs(best.value), abs(best.value - constant)) or 1.0
        per = np.sqrt(scale) / unit  # a variable over its own unit
        implied = implied_upper(linear.without(~pieces.allowed))  # as presolve left it out
        most = np.minimum(linear.upper, implied + np.where(np.isinf(implied), 0.0, (WIDER - 1.0) * np.abs(implied)))
        value, off = fixed_by_equations(linear.without(~pieces.allowed))
        least = np.fmax(linear.lower, value - off - 2.0 * EPS * np.abs(value))
        most = np.fmin(most, value + off + 2.0 * EPS * np.abs(value))
        lower, upper = least[names] / per, most[names] / per
        G, h, _ = unit_rows(linear.G[:, names] * per, linear.h)
        E, f, _ = unit_rows(linear.E[:, names] * per, linear.f)
        forced = np.isin(names, pieces.forced)
        return cls(
            H / unit / unit[:, None],
            model.r[names] / unit / np.sqrt(scale),
            constant / scale,
            Linear(lower, upper, G, h, E, f),
            MagnitudeRange.between(lower, upper, pieces.floor[names] / per),
            (lower <= 0) & (upper >= 0) & (pieces.floor[names] == 0),
            np.where(forced, IN, FREE if forced.sum() < k else OUT).astype(np.int8),
            k,
            False,
            Noise(model.noise.entries, model.noise.pull / np.sqrt(scale), model.noise.convex),
            names,
            per,
            scale,
        )

    @property
    def n(self) -> int:
        """The number of variables."""
        return self.r.size

    @property
    def rounding(self) -> float:
        """Of a product with H or of a sum over all variables, with what was lost in H itself."""
        return rounding_of(self.n) + self.noise.entries

    @property
    def floored(self) -> bool:
        """Whether a variable in the support may be held away from 0."""
        return bool(self.sizes.min_abs.any())

    @cached_property
    def held(self) -> Vector:
        """The value of each variable in every support that can have no other; NaN for the others."""
        sizes = self.sizes
        above = (sizes.max_above - sizes.min_abs <= HELD * sizes.max_above) & (sizes.max_below <= 0)
        below = (sizes.max_below - sizes.min_abs <= HELD * sizes.max_below) & (sizes.max_above <= 0)
        return np.where(
            (self.state == IN) & (sizes.min_abs > 0) & (above | below),
            np.where(above, sizes.min_abs, -sizes.min_abs),
            np.nan,
        )

    def on(self, kept: Vector) -> Program:
        """The same where only some variables may be nonzero."""
        linear = self.linear
        linear = Linear(
            linear.lower[kept], linear.upper[kept], linear.G[:, kept], linear.h, linear.E[:, kept], linear.f
        )
        return replace(
            self, H=self.H[np.ix_(kept, kept)], r=self.r[kept], linear=linear, sizes=self.sizes.on(kept), vanishes=self.vanishes[kept],
            state=self.state[kept], names=self.names[kept], per=self.per[kept],
            rules=self.rules.on(kept),
        )  # fmt: skip

    @cached_property
    def limits(self) -> GroupLimits | None:
        """What the rules leave of numbers: so many of each label, and groups that count as one; None where they say nothing of that."""
        return self.rules.limits(self.asked if self.rules.grouped else self.k)

    def ruled(self, pieces: Pieces, asked: int) -> Program:
        """The same with the rules of the whole problem."""
        return replace(self, rules=pieces.rules.on(self.names), asked=asked)

    def propagate(self, state: Vector) -> bool:
        """Decide, in place, what follows from what is decided; False where no support can be so."""
        return self.rules.propagate(state, self.asked)

    def followed(self) -> Program:
        """The same with what follows from what it decides; that some support obeys has been seen."""
        state = self.state.copy()
        return self.decided(state) if self.propagate(state) else self

    def decided(self, state: Vector) -> Program:
        """The same with what is known of variables."""
        return replace(self, state=state)
