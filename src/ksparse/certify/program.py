"""The problem that a bound is computed for: a convex quadratic over a polyhedron, scaled; the supports of its tree.

Bounds on single variables are implied by an upper bound v on φ. Let x̂ minimise φ subject to Ex = f over the variables
that are not fixed out, and let P be the inverse of H on {x : Ex = 0}. Since φ(x) = φ(x̂) + ½(x − x̂)ᵀH(x − x̂) on Ex =
f, every such x with φ(x) ≤ v satisfies |xᵢ − x̂ᵢ| ≤ √(2(v − φ(x̂)))·√Pᵢᵢ. If a gradient ρ remains at the computed x̂,
the first factor becomes ℓ + √(ℓ² + 2(v − φ(x̂))) with ℓ = √(ρᵀH⁻¹ρ). Rounding is added to it. Fixing variables out
raises φ(x̂) and shrinks P. With nearly dependent columns a few fixings change the bounds a lot, so each
branch-and-bound node has its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

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
from ksparse.search.support_rules import Rules
from ksparse.util.arrays import Vector
from ksparse.util.resources import pause

WIDER = 1.0 + 1e-5  # factor of implied bounds: the rounding of their own arithmetic is far below
WIDER_SQUARE = 1.0 + 1e-12  # factor of a squared radius, which is multiplied out
FIXED = 1e-12  # relative width of the range of a variable below which it has one value
INVERSE_ERROR = 1e-2  # relative error of an entry of H⁻¹ above which it implies nothing


@dataclass(frozen=True, eq=False)
class Supports:
    """The supports that a tree searches: at most k of some variables, under rules; states are FREE, IN or OUT."""

    variables: Vector  # indices in the whole problem
    k: int
    rules: Rules
    cardinality: int  # as the rules count: groups count once

    @classmethod
    def of(cls, problem: SupportProblem) -> Supports:
        """Return those of a problem, among its allowed variables."""
        variables = np.flatnonzero(problem.allowed)
        return cls(variables, problem.k, problem.rules.on(variables), problem.asked)

    def on(self, kept: Vector) -> Supports:
        """Return the supports among some of the variables."""
        return replace(self, variables=self.variables[kept], rules=self.rules.on(kept))

    @cached_property
    def limits(self) -> GroupLimits | None:
        """Limits on counts: per label, and with groups that count once; None if there are none but k."""
        return self.rules.limits(self.k if self.rules.group is None else self.cardinality)

    def propagate(self, state: Vector) -> bool:
        """Fix, in place, what the rules imply; return False if no support is left."""
        return self.rules.propagate(state, self.cardinality)

    def branches(self, state: Vector, i: int) -> Iterator[Vector]:
        """Yield the states with variable i fixed in and fixed out, where a support is left."""
        for side in (IN, OUT):
            branch = state.copy()
            branch[i] = side
            if (branch == IN).sum() >= self.k:
                branch[branch == FREE] = OUT
            if self.propagate(branch):
                yield branch

    def leaf(self, state: Vector, all_fixed: bool) -> Vector | None:
        """Return the variables that are not out, if they are a support; with `all_fixed` only if none is free."""
        n_free, kept = int((state == FREE).sum()), np.flatnonzero(state != OUT)
        allowed = self.rules.is_satisfied(kept) and self.rules.is_extendable(kept, self.cardinality)
        if n_free and (all_fixed or kept.size > self.k or not allowed):
            return None
        return self.variables[kept]

    def rounded(self, state: Vector, z: Vector) -> Vector:
        """Return at most k variables: those fixed in, then those of the largest z > 0."""
        rank = np.where(state == IN, 2.0, np.where(state == OUT, -1.0, z))
        order = np.argsort(-rank, kind="stable")
        return np.asarray(self.variables[order[rank[order] > 0][: self.k]])


@dataclass(frozen=True, eq=False)
class ScaledProblem:
    """min ½xᵀHx − rᵀx + constant s.t. Ex = f, Gx ≤ h, at most k nonzeros of allowed sizes, scaled."""

    H: Vector  # ones on its diagonal, except for variables without curvature
    r: Vector
    constant: float
    linear: Linear  # rows of largest entry 1; its bounds are not used
    sizes: MagnitudeRange
    vanishes: Vector  # whether a variable in the support may be 0
    state: Vector  # IN where a variable is in every support
    noise: Noise  # of H and r
    supports: Supports
    unit: Vector  # of the variables: x of the whole problem is unit·x here
    scale: float  # of values
    exactly: bool = False  # whether supports have exactly k variables
    min_eigenvalue: float = 0.0  # of H, not above it; 0 if unknown
    max_eigenvalue: float = np.inf  # not below it

    @classmethod
    def of(cls, problem: SupportProblem, model: QuadraticModel, best: Candidate, scale: float | None = None) -> Self:
        """Return the scaled form of a convex quadratic over a polyhedron or a ball, of which a k-sparse point is known.

        On a ball of radius R, φ(x) ≥ φ(x) + ½ν(‖x‖² − R²) for any ν ≥ 0, a quadratic without the ball; ν is that of
        the known point.
        """
        supports, linear, shift = Supports.of(problem), problem.linear, max(0.0, best.shift)
        kept, constant = supports.variables, model.constant
        if linear is None:
            linear = Linear.of(problem.n, -WIDER * problem.can.radius, WIDER * problem.can.radius)
            constant -= 0.5 * shift * (WIDER_SQUARE * problem.can.radius**2)
        H = model.block(kept)
        H[np.diag_indices_from(H)] += shift
        root = unit_scales(model.diagonal[kept] + shift)
        scale = scale or max(abs(best.value), abs(best.value - constant)) or 1.0
        unit = np.sqrt(scale) / root
        among = linear.fixed_to_zero(~problem.allowed)  # as presolve left it out
        implied = implied_upper(among)
        most = np.minimum(linear.upper, implied + np.where(np.isinf(implied), 0.0, (WIDER - 1.0) * np.abs(implied)))
        value, off = fixed_by_equations(among)
        least = np.fmax(linear.lower, value - off - 2.0 * EPS * np.abs(value))
        most = np.fmin(most, value + off + 2.0 * EPS * np.abs(value))
        lower, upper, min_nonzero = least[kept] / unit, most[kept] / unit, problem.floors.size[kept] / unit
        G, h, _ = unit_rows(linear.G[:, kept] * unit, linear.h)
        E, f, _ = unit_rows(linear.E[:, kept] * unit, linear.f)
        forced = np.isin(kept, problem.forced)
        return cls(
            H=H / root / root[:, None], r=model.r[kept] / root / np.sqrt(scale), constant=constant / scale,
            linear=Linear(lower, upper, G, h, E, f), sizes=MagnitudeRange.between(lower, upper, min_nonzero),
            vanishes=(lower <= 0) & (upper >= 0) & (min_nonzero == 0),
            state=np.where(forced, IN, FREE if forced.sum() < problem.k else OUT).astype(np.int8),
            noise=replace(model.noise, linear_error=model.noise.linear_error / np.sqrt(scale)),
            supports=supports, unit=unit, scale=scale,
        )  # fmt: skip

    @property
    def n(self) -> int:
        """The number of variables."""
        return len(self.r)

    @property
    def rounding(self) -> float:
        """Relative rounding of a sum over the variables, and of H itself."""
        return rounding_of(self.n) + self.noise.entry_error

    @cached_property
    def fixed_values(self) -> Vector:
        """The value of each variable in every support if it can have no other; NaN for the other variables."""
        sizes = self.sizes
        above = (sizes.max_above - sizes.min_abs <= FIXED * sizes.max_above) & (sizes.max_below <= 0)
        below = (sizes.max_below - sizes.min_abs <= FIXED * sizes.max_below) & (sizes.max_above <= 0)
        fixed = (self.state == IN) & (sizes.min_abs > 0) & (above | below)
        return np.where(fixed, np.where(above, sizes.min_abs, -sizes.min_abs), np.nan)

    def on(self, kept: Vector) -> ScaledProblem:
        """Return the problem where only some variables may be nonzero."""
        all_ = self.linear
        linear = Linear(all_.lower[kept], all_.upper[kept], all_.G[:, kept], all_.h, all_.E[:, kept], all_.f)
        return replace(
            self, H=self.H[np.ix_(kept, kept)], r=self.r[kept], linear=linear, sizes=self.sizes.on(kept),
            vanishes=self.vanishes[kept], state=self.state[kept], supports=self.supports.on(kept), unit=self.unit[kept],
        )  # fmt: skip

    def with_implied_fixings(self) -> ScaledProblem:
        """Return the problem with what the rules imply; they have been checked to leave a support."""
        state = self.state.copy()
        return replace(self, state=state) if self.supports.propagate(state) else self

    def tightened(self, best: float) -> ScaledProblem:
        """Return the problem with the sizes that a value of at most `best` implies, if H⁻¹ is accurate enough."""
        try:
            inverse = positive_inverse(self.H)
        except np.linalg.LinAlgError:
            return self
        pause()
        largest = largest_eigenvalue(lambda v: self.H @ v, self.n, self.r)
        smallest = 1.0 / largest_eigenvalue(lambda v: inverse @ v, self.n, self.r)
        error = self.n * self.rounding  # of eigenvalues; with the condition number about that of entries of H⁻¹
        if smallest <= 10.0 * error or not error * largest / smallest <= INVERSE_ERROR:
            return self
        known = replace(self, max_eigenvalue=largest, min_eigenvalue=smallest)
        sizes = known.implied_sizes(np.arange(self.n), best)
        return replace(known, sizes=replace(self.sizes, max_above=sizes[0], max_below=sizes[1]))

    def implied_sizes(self, kept: Vector, best: float) -> tuple[Vector, Vector]:
        """Return the largest sizes above and below 0 of some variables, all others being 0, for values up to `best`."""
        H, r, E, f = self.H[np.ix_(kept, kept)], self.r[kept], self.linear.E[:, kept], self.linear.f
        sizes, rounding, error = self.sizes.on(kept), self.rounding, self.n * self.rounding
        wrong = error * self.max_eigenvalue / self.min_eigenvalue  # about, of entries of H⁻¹
        P = K = positive_inverse(H)
        x, multipliers, unmet, follows = K @ r, f, f, np.zeros((kept.size, f.size))
        if f.size:
            KE = K @ E.T
            S = E @ KE
            wrong += self.n * rounding * float(np.linalg.cond(S))  # nearly parallel equations cost digits for any H
            if not wrong <= INVERSE_ERROR:
                return sizes.max_above, sizes.max_below
            follows = KE @ np.linalg.inv(S)  # how x changes with f
            P = K - follows @ KE.T
            x = P @ r + follows @ f
            multipliers = shortest(E.T, H @ x - r)
            unmet = np.abs(f - E @ x) + rounding * (np.abs(E) @ np.abs(x) + np.abs(f))
        left = H @ x - r - E.T @ multipliers
        value = 0.5 * float(x @ H @ x) - float(r @ x) + self.constant
        size, most = float(np.abs(x).sum()), float(np.abs(self.r).max())
        value_error = rounding * (abs(self.constant) + (size + most) ** 2) + float(np.abs(multipliers) @ unmet)
        gradient_error = rounding * (size + most + float(np.abs(multipliers).sum())) + self.noise.linear_error
        shrunk = np.sqrt(1.0 - error / self.min_eigenvalue)
        length = np.sqrt(max(0.0, float(left @ K @ left)) * (1.0 + wrong))
        length += gradient_error * np.sqrt(self.n / self.min_eigenvalue)
        radius = (length + np.sqrt(length**2 + 2.0 * (max(0.0, best - value) + value_error))) / shrunk
        spread = np.maximum(np.diag(P), 0.0) + wrong * np.diag(K)  # the second if an equation nearly fixes a variable
        apart = WIDER * (radius * np.sqrt(spread) + np.abs(follows) @ unmet + rounding * np.abs(x))
        above, below = np.maximum(x + apart, 0.0), np.maximum(apart - x, 0.0)
        return np.minimum(sizes.max_above, above), np.minimum(sizes.max_below, below)

    def tighten_nodes(self, nodes: NodeBatch, best: float) -> None:
        """Give each node the sizes that its variables imply, if more are out than at its last update."""
        out = nodes.state == OUT
        count = out.sum(axis=1)
        for node in np.flatnonzero(count > nodes.n_out_when_tightened):
            kept = np.flatnonzero(~out[node])
            nodes.max_above[node, kept], nodes.max_below[node, kept] = self.implied_sizes(kept, best)
        nodes.n_out_when_tightened = count
