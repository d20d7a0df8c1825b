"""The problem that a bound is computed for: a convex quadratic over a polyhedron, with unit curvature and values near 1.

Bounds on single variables are implied by an upper bound v on φ. Let x̂ minimise φ subject to Ex = f over the variables
that are not fixed out, and let P be the inverse of H on {x : Ex = 0}. Since φ(x) = φ(x̂) + ½(x − x̂)ᵀH(x − x̂) on Ex =
f, every such x with φ(x) ≤ v satisfies |xᵢ − x̂ᵢ| ≤ √(2(v − φ(x̂)))·√Pᵢᵢ. If a gradient ρ remains at the computed x̂,
the first factor becomes ℓ + √(ℓ² + 2(v − φ(x̂))) with ℓ = √(ρᵀH⁻¹ρ). Rounding is added to it. Fixing variables out
raises φ(x̂) and shrinks P. With nearly dependent columns a few fixings change the bounds a lot, so each
branch-and-bound node has its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ksparse.data.model import QuadraticModel
from ksparse.numerics.bound import EPS, Noise, rounding_of
from ksparse.numerics.constraints import Linear, fixed_by_equations, implied_upper, unit_rows, unit_scales
from ksparse.numerics.eigen import largest_eigenvalue, positive_inverse
from ksparse.numerics.qp import shortest
from ksparse.numerics.relaxation import GroupLimits, MagnitudeRange, NodeBatch
from ksparse.numerics.relaxation_kernels import FREE, IN, OUT
from ksparse.search.candidate import Candidate
from ksparse.search.problem import SupportProblem
from ksparse.search.support_rules import NO_RULES, Rules
from ksparse.util.arrays import Vector
from ksparse.util.resources import pause

WIDER = 1.0 + 1e-5  # what an implied bound is multiplied by: its own arithmetic's rounding is far below
HELD = 1e-12  # of a variable's size: with no more room it has one value
WIDER_SQUARE = 1.0 + 1e-12  # the same for the square of a radius, which is multiplied out
INVERTED = 1e-2  # of an entry of H⁻¹: where rounding may cost more, nothing is implied by it


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
    def of(
        cls, problem: SupportProblem, model: QuadraticModel, k: int, best: Candidate, scale: float | None = None
    ) -> Program:
        """That of a convex quadratic over a polyhedron or a ball, of which a k-sparse point is known; in a unit of values, if one is given.

        On a ball of radius R, φ(x) ≥ φ(x) + ½ν(‖x‖² − R²) for any ν ≥ 0, which is a quadratic without the ball: ν is
        what that point has.
        """
        names, linear, shift = np.flatnonzero(problem.allowed), problem.linear, max(0.0, best.shift)
        constant = model.constant
        if linear is None:
            assert problem.can.radius is not None
            linear = Linear.of(problem.n, -WIDER * problem.can.radius, WIDER * problem.can.radius)
            constant -= 0.5 * shift * (WIDER_SQUARE * problem.can.radius**2)
        H = model.block(names)
        H[np.diag_indices_from(H)] += shift
        unit = unit_scales(model.diagonal[names] + shift)
        scale = scale or max(abs(best.value), abs(best.value - constant)) or 1.0
        per = np.sqrt(scale) / unit  # a variable over its own unit
        implied = implied_upper(linear.fixed_to_zero(~problem.allowed))  # as presolve left it out
        most = np.minimum(linear.upper, implied + np.where(np.isinf(implied), 0.0, (WIDER - 1.0) * np.abs(implied)))
        value, off = fixed_by_equations(linear.fixed_to_zero(~problem.allowed))
        least = np.fmax(linear.lower, value - off - 2.0 * EPS * np.abs(value))
        most = np.fmin(most, value + off + 2.0 * EPS * np.abs(value))
        lower, upper = least[names] / per, most[names] / per
        G, h, _ = unit_rows(linear.G[:, names] * per, linear.h)
        E, f, _ = unit_rows(linear.E[:, names] * per, linear.f)
        forced = np.isin(names, problem.forced)
        return cls(
            H / unit / unit[:, None],
            model.r[names] / unit / np.sqrt(scale),
            constant / scale,
            Linear(lower, upper, G, h, E, f),
            MagnitudeRange.between(lower, upper, problem.floors.size[names] / per),
            (lower <= 0) & (upper >= 0) & (problem.floors.size[names] == 0),
            np.where(forced, IN, FREE if forced.sum() < k else OUT).astype(np.int8),
            k,
            False,
            Noise(model.noise.entry_error, model.noise.linear_error / np.sqrt(scale), model.noise.is_gram),
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
        return rounding_of(self.n) + self.noise.entry_error

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

    def ruled(self, problem: SupportProblem, asked: int) -> Program:
        """The same with the rules of the whole problem."""
        return replace(self, rules=problem.rules.on(self.names), asked=asked)

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


def boxed(program: Program, best: float) -> Program:
    """The same with the sizes that a value of at most `best` implies."""
    try:
        inverse = positive_inverse(program.H)
    except np.linalg.LinAlgError:
        return program
    pause()
    ends = [largest_eigenvalue(lambda v, M=M: M @ v, program.n, program.r) for M in (program.H, inverse)]  # type: ignore[misc]
    known = replace(program, largest=ends[0], least=1.0 / ends[1])
    if not trusted(known):
        return program
    return replace(known, sizes=MagnitudeRange(program.sizes.min_abs, *reach(known, np.arange(program.n), best)))


def trusted(program: Program) -> bool:
    """Whether an inverse of H says something, after rounding."""
    return program.least > 10.0 * _lost(program) and _wrong(program) <= INVERTED


def _lost(program: Program) -> float:
    """By how much an eigenvalue of H may be wrong."""
    return program.n * (program.noise.entry_error + rounding_of(program.n))


def _wrong(program: Program) -> float:
    """By how much an entry of H⁻¹ may be, about."""
    return program.n * program.rounding * program.largest / program.least


def reach(program: Program, kept: Vector, best: float) -> tuple[Vector, Vector]:
    """The largest sizes above and below 0 of the variables that are kept, all others being 0, where the value is at most `best`."""
    H, E, r, f, rounding = (
        program.H[np.ix_(kept, kept)],
        program.linear.E[:, kept],
        program.r[kept],
        program.linear.f,
        program.rounding,
    )
    sizes, wrong = program.sizes, _wrong(program)
    P = K = positive_inverse(H)
    x, price, unmet, follows = K @ r, f, f, np.zeros((kept.size, f.size))
    if f.size:
        KE = K @ E.T
        S = E @ KE
        wrong += (
            program.n * rounding * float(np.linalg.cond(S))
        )  # equations at a small angle cost P digits, whatever H is like
        if not wrong <= INVERTED:
            return sizes.max_above[kept], sizes.max_below[kept]
        follows = KE @ np.linalg.inv(S)  # what x follows f by
        P = K - follows @ KE.T
        x = P @ r + follows @ f
        price = shortest(E.T, H @ x - r)
        unmet = np.abs(f - E @ x) + rounding * (np.abs(E) @ np.abs(x) + np.abs(f))
    left = H @ x - r - E.T @ price
    value, size, most = (
        0.5 * float(x @ H @ x) - float(r @ x) + program.constant,
        float(np.abs(x).sum()),
        float(np.abs(program.r).max()),
    )
    blur = rounding * (abs(program.constant) + (size + most) ** 2) + float(np.abs(price) @ unmet)
    off = rounding * (size + most + float(np.abs(price).sum())) + program.noise.linear_error  # of the gradient
    shrunk = np.sqrt(1.0 - _lost(program) / program.least)
    length = np.sqrt(max(0.0, float(left @ K @ left)) * (1.0 + wrong)) + off * np.sqrt(program.n / program.least)
    far = (length + np.sqrt(length**2 + 2.0 * (max(0.0, best - value) + blur))) / shrunk
    spread = np.maximum(np.diag(P), 0.0) + wrong * np.diag(K)  # the second where an equation nearly fixes a variable
    apart = WIDER * (far * np.sqrt(spread) + np.abs(follows) @ unmet + rounding * np.abs(x))
    return np.minimum(sizes.max_above[kept], np.maximum(x + apart, 0.0)), np.minimum(
        sizes.max_below[kept], np.maximum(apart - x, 0.0)
    )


def narrow(program: Program, nodes: NodeBatch, best: float) -> None:
    """Give each node the box of the variables that are not out there, where more of them are than when it got the one it has."""
    out = nodes.state == OUT
    count = out.sum(axis=1)
    for node in np.flatnonzero(count > nodes.n_out_when_tightened):
        kept = np.flatnonzero(~out[node])
        nodes.max_above[node, kept], nodes.max_below[node, kept] = reach(program, kept, best)
    nodes.n_out_when_tightened = count
