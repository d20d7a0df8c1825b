"""Perspective relaxation of a convex quadratic with at most k nonzeros, solved by ADMM for many nodes at once.

With H − diag(d) positive semidefinite and indicators z ∈ {0, 1}ⁿ, the problem

    min ½xᵀ(H − diag(d))x − rᵀx + Σ ½dᵢxᵢ²/zᵢ   s.t.  Ex = f,  Gx ≤ h,  xᵢ/zᵢ of an allowed size,  Σzᵢ ≤ k

is exact. It becomes convex when z is relaxed to [0, 1]ⁿ.

ADMM splits x = y and Gx = s. The x-step is linear under Ex = f and uses one inverse for all steps and all nodes. The
y-step is separable given the multiplier ν of Σz ≤ k. Its function is a reverse Huber function: linear for |y| ≤ 1/τ,
where z = τ|y|, and ½dy² + ν beyond. With group limits, each label has its own ν: the common one, or the one at which
its maximum or minimum count is reached. All variables of a group share one z. A *member* is what k counts: a variable,
or a group of variables. Each row of an array is one node; nodes differ in which variables are fixed.

Let s = |y|/z for a variable of a member with indicator z. Then s minimises ½ds²z + ½weight(sz − |v|)² over the allowed
sizes. Let h(z) = Σ weight·s|v| − ½ds² − weight·s²z over the variables of the member; h decreases in z. The optimal z
solves h(z) = ν, or is 0 or 1 if there is no solution. For a single variable this is closed: z is linear in σ = ν^−½
where s is at no bound. For groups it is Newton's method on h(z)^−½ = σ, which is nearly linear, or on h itself where
h(z) < ν and may be nearly 0.

Under limits per label, the largest sum of values over k members is found by sorting: take the first min_count members
of each label, drop those beyond max_count, and fill the remaining places with the largest of the others. That is exact,
since the members of a label are taken in descending order.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Self

import numpy as np

from ksparse.numerics.constraints import Linear, unit_rows
from ksparse.numerics.eigen import positive_inverse
from ksparse.numerics.qp import least_sine
from ksparse.numerics.relaxation_kernels import FREE, IN, OUT, y_step, y_step_with_limits
from ksparse.util.arrays import Vector
from ksparse.util.compiled import compiled

NEWTON = 10  # maximum number of steps for σ: z is piecewise linear in it where no bound is reached
NEWTON_GROUP = 30  # maximum number of steps for z of a group: bisection where bounds are reached
SUM_TOL = 1e-6  # relative accuracy of Σz
GROUP_TOL = 1e-8  # accuracy of z of a group
MAX_SIGMA_RATIO = 1e5  # largest σ relative to the smallest one; ν is 0 there
SINGULAR = 1e-3  # sine of the angle of a variable to those before it, below which the relaxation is weak
MAX_SCALE_RATIO = 1e6  # of the variables' scales: beyond, one ADMM weight for all variables is useless
OVER_RELAXATION = 1.6
COMPILED_FROM = 16  # nodes: only a tree has so many, and compilation pays for a tree


@dataclass(frozen=True)
class TopSum:
    """The largest sum for each node (row), and what fixing one variable would change (columns)."""

    total: Vector
    values: Vector  # value of the member of each variable
    smallest_selected: Vector  # value that leaves the sum if an unselected variable enters; ∞ if there is no room
    largest_unselected: Vector  # value that enters the sum if a selected variable leaves
    selected: Vector  # mask of the variables in the sum


@dataclass(frozen=True, eq=False)
class GroupLimits:
    """At most k members, with a minimum and a maximum number of each label."""

    k: int
    label: Vector  # of each member; every label has members
    min_count: Vector  # of each label
    max_count: Vector
    member: Vector  # of each variable: itself, or its group

    @cached_property
    def single(self) -> bool:
        """Whether every member is one variable, in order."""
        return bool((self.member == np.arange(self.member.size)).all())

    @cached_property
    def order(self) -> Vector:
        """The members sorted by label."""
        return np.argsort(self.label, kind="stable")

    @cached_property
    def ends(self) -> Vector:
        """Positions in `order` at which each label begins, and its length."""
        return np.searchsorted(self.label[self.order], np.arange(self.min_count.size + 1))

    @cached_property
    def variables(self) -> Vector:
        """The variables sorted by member."""
        return np.argsort(self.member, kind="stable")

    @cached_property
    def starts(self) -> Vector:
        """Positions in `variables` at which each member begins."""
        return np.searchsorted(self.member[self.variables], np.arange(self.label.size))

    def sums(self, values: Vector) -> Vector:
        """Return the sum over the variables of each member, for each row."""
        return values if self.single else np.add.reduceat(values[:, self.variables], self.starts, axis=1)

    def states(self, state: Vector) -> Vector:
        """Return the states of the members: fixing one variable of a group fixes the group."""
        if self.single:
            return state
        ordered = state[:, self.variables]
        out, inside = (np.logical_or.reduceat(ordered == side, self.starts, axis=1) for side in (OUT, IN))
        return np.where(out, OUT, np.where(inside, IN, FREE))

    def counts(self, members: Vector) -> Vector:
        """Return how many members of each label (column) a mask has, for each row."""
        return np.add.reduceat(members[:, self.order], self.ends[:-1], axis=1, dtype=np.intp)

    def top_sum(self, values: Vector, state: Vector, exactly: bool = False) -> TopSum:
        """Return the largest sum of values over admissible supports, exact but for rounding.

        Values of free variables must be at least 0, unless exactly k members are needed; then fewer give −∞.
        """
        worth, state = self.sums(values), self.states(state)
        nothing = -np.inf if exactly else 0.0
        inside, n_free = self.counts(state == IN), self.counts(state == FREE)
        reserved = np.clip(self.min_count - inside, 0, n_free).astype(np.intp)  # places for the first of a label
        cap = np.maximum(np.clip(self.max_count - inside, 0, n_free).astype(np.intp), reserved)
        falling = np.where(state == FREE, -worth, np.inf)[:, self.order]
        for begin, end in pairwise(self.ends):
            falling[:, begin:end].sort(axis=1)
        falling = -falling
        own = self.label[self.order]
        place = np.arange(own.size) - self.ends[own]
        first = place < reserved[:, own]
        between = np.where(~first & (place < cap[:, own]), falling, -np.inf)
        room = np.maximum(self.k - inside.sum(axis=1) - reserved.sum(axis=1), 0)
        enters, ranked = np.zeros(between.shape, dtype=bool), np.argsort(-between, axis=1, kind="stable")
        np.put_along_axis(enters, ranked, np.arange(own.size) < room[:, None], axis=1)
        enters &= between > -np.inf
        chosen = reserved + np.add.reduceat(enters, self.ends[:-1], axis=1, dtype=np.intp)
        total = np.where(state == IN, worth, 0.0).sum(axis=1) + np.where(enters | first, falling, 0.0).sum(axis=1)
        if exactly:
            total = np.where(enters.sum(axis=1) < room, -np.inf, total)
        begin = self.ends[:-1]
        last = np.where(chosen > 0, np.take_along_axis(falling, np.maximum(begin + chosen - 1, 0), axis=1), np.inf)
        after = np.take_along_axis(falling, np.minimum(begin + chosen, own.size - 1), axis=1)
        following = np.where(chosen < n_free, np.maximum(after, nothing), nothing)
        comes = np.where(chosen < cap, following, nothing).max(axis=1)  # best entry of any label with room
        goes = np.where(chosen > reserved, last, np.inf).min(axis=1)  # cheapest exit of any label above its minimum
        largest_unselected = np.where(chosen > reserved, np.maximum(following, comes[:, None]), following)
        smallest_selected = np.where(chosen < cap, np.minimum(last, goes[:, None]), last)
        selected = (state == IN) | ((state == FREE) & (worth >= last[:, self.label]))
        member, label = self.member, self.label[self.member]
        bounds = smallest_selected[:, label], largest_unselected[:, label]
        return TopSum(total, worth[:, member], *bounds, selected[:, member])


@dataclass(frozen=True)
class _Indicators:
    """z of free variables as a function of σ = ν^−½, for nodes (rows) without limits per label."""

    size: Vector  # |v|; 0 for variables that are not free
    flat: Vector  # 1/(largest size)
    d: Vector
    half: Vector  # √(d/2)
    steepest: Vector  # 1/(smallest size)
    weight: float

    def at(self, sigma: Vector) -> tuple[Vector, Vector, Vector]:
        """Return z before it is clipped to [0, 1], τ = z/|y|, and ντ²."""
        tau = np.minimum(np.maximum(sigma * self.half, self.flat), self.steepest)
        paid = (tau / sigma) ** 2
        return tau * self.size - (0.5 * self.d + paid) / self.weight, tau, paid

    def smallest_sigma(self) -> Vector:
        """Return the σ below which every z is 0, for each node."""
        pulled = self.weight * self.size
        with np.errstate(divide="ignore", invalid="ignore"):
            most = pulled * np.minimum(1.0 / self.flat, 0.5 * pulled / np.maximum(self.d, 1e-300))
            most = np.where(self.flat + self.d > 0, most, 0.0)
        return np.asarray(1.0 / np.sqrt(np.clip(most.max(axis=1, initial=0.0), 1e-300, 1e200)))

    def solve_sigma(self, room: Vector, sigma: Vector) -> Vector:
        """Return σ with Σz = room for every node, by safeguarded Newton steps; the largest σ if all variables fit."""
        least = self.smallest_sigma()
        most = MAX_SIGMA_RATIO * least
        sigma, under, over = np.clip(sigma, least, most), least.copy(), np.full(sigma.size, np.inf)
        rows = np.arange(sigma.size)
        for _ in range(NEWTON):
            at = sigma[rows]
            part = self if rows.size == sigma.size else replace(self, size=self.size[rows], flat=self.flat[rows])
            z, tau, paid = part.at(at[:, None])
            s = at[:, None]
            slope = np.where(tau == s * self.half, self.half * part.size, 2.0 * paid / (s * self.weight))
            off = room[rows] - np.clip(z, 0.0, 1.0).sum(axis=1)
            rise = np.where((z > 0) & (z < 1), slope, 0.0).sum(axis=1)
            under[rows], over[rows] = np.where(off > 0, at, under[rows]), np.where(off < 0, at, over[rows])
            unsettled = (np.abs(off) > SUM_TOL * np.maximum(room[rows], 1)) & ~((off > 0) & (at >= most[rows]))
            if not unsettled.any():
                break
            new = at + off / np.where(rise > 0, rise, np.inf)
            inside = (rise > 0) & (new > under[rows]) & (new < over[rows])
            half = np.where(np.isinf(over[rows]), 4.0 * at, 0.5 * (under[rows] + over[rows]))
            rows, new = rows[unsettled], np.where(inside, new, half)[unsettled]
            sigma[rows] = np.minimum(new, most[rows])
        return sigma


@dataclass(frozen=True, eq=False)
class MagnitudeRange:
    """Allowed sizes of a nonzero: `min_abs` to `max_above` or, if negative, `max_below`; −1: sign not allowed."""

    min_abs: Vector
    max_above: Vector
    max_below: Vector

    @classmethod
    def between(cls, lower: Vector, upper: Vector, min_nonzero: Vector | float = 0.0) -> MagnitudeRange:
        """Return the sizes that bounds and a minimum size of nonzeros allow."""
        near = np.maximum(np.maximum(lower, -upper), min_nonzero)
        return cls(np.maximum(near, 0.0), np.where(upper > 0, upper, -1.0), np.where(lower < 0, -lower, -1.0))

    def on(self, kept: Vector) -> MagnitudeRange:
        """Return the sizes of some variables."""
        return MagnitudeRange(self.min_abs[kept], self.max_above[kept], self.max_below[kept])


@dataclass
class NodeBatch:
    """Iterates of ADMM, one row per node."""

    state: Vector  # FREE, IN or OUT
    y: Vector
    u: Vector  # multipliers of x = y, divided by the weight
    s: Vector  # Gx, at most h
    p: Vector  # multipliers of Gx = s, divided by the weight
    sigma: Vector  # ν^−½; under limits also those of the labels
    x: Vector
    z: Vector
    equation_multipliers: Vector
    max_above: Vector  # largest sizes, as in `MagnitudeRange`; a node may have tighter ones than the problem
    max_below: Vector
    n_out_when_tightened: Vector  # number of variables fixed out when these sizes were computed

    def __len__(self) -> int:
        return len(self.state)

    def gather(self, rows: Vector) -> Self:
        """Return a copy of some nodes."""
        return replace(self, **{field.name: getattr(self, field.name)[rows] for field in fields(self)})

    def scatter(self, rows: Vector, others: NodeBatch) -> None:
        """Overwrite some nodes."""
        for field in fields(self):
            getattr(self, field.name)[rows] = getattr(others, field.name)


class Perspective:
    """ADMM for the relaxation with one d; rows of E and G and the diagonal of H should be near 1, for one weight."""

    steps_per_bound = 10  # between two dual points
    many_steps = False  # whether the run is long enough for compilation to pay

    def __init__(
        self, H: Vector, r: Vector, d: Vector, linear: Linear, sizes: MagnitudeRange, k: int, *,
        over: float = OVER_RELAXATION, limits: GroupLimits | None = None, fixed_values: Vector | None = None,
    ) -> None:  # fmt: skip
        linear, self._by_G, self._by_E = substituted(linear, fixed_values)
        self.d, self.linear, self.sizes, self.k, self.over, self.limits = d, linear, sizes, k, over, limits
        self.weight = weight = float(np.median(np.diag(H))) or 1.0  # of the distance between x and y
        n, E, G = r.size, linear.E, linear.G
        K = positive_inverse(H - np.diag(d) + weight * (np.eye(n) + G.T @ G))
        KE = K @ E.T
        S = np.linalg.pinv(E @ KE)
        P = K - KE @ S @ KE.T
        self._P, self._x0 = weight * P, P @ r + KE @ (S @ linear.f)
        self._L, self._lambda0 = weight * (KE @ S), S @ (linear.f - KE.T @ r)
        self._half = np.sqrt(0.5 * np.maximum(d, 0.0))
        with np.errstate(divide="ignore"):
            self._steepest = 1.0 / sizes.min_abs

    def start(self, state: Vector) -> NodeBatch:
        """Return nodes (rows of `state`) at the starting point."""
        n, count, sizes = self.d.size, len(state), self.sizes
        y = np.where(state == OUT, 0.0, np.clip(1.0 / n, -sizes.max_below, np.maximum(sizes.max_above, 0.0)))
        s = np.minimum(y @ self.linear.G.T, self.linear.h)
        zero, multipliers = np.zeros_like(y), np.zeros((count, self.linear.f.size))
        above, below = np.tile(sizes.max_above, (count, 1)), np.tile(sizes.max_below, (count, 1))
        sigma = np.zeros(count) if self.limits is None else np.zeros((count, 1 + 2 * self.limits.min_count.size))
        tightened = np.zeros(count, dtype=np.intp)
        return NodeBatch(state, y, zero, s, np.zeros_like(s), sigma, y, zero, multipliers, above, below, tightened)

    def step(self, nodes: NodeBatch) -> None:
        """Make one ADMM step for every node, in place."""
        G = self.linear.G
        v = nodes.y - nodes.u
        if nodes.s.size:
            v += (nodes.s - nodes.p) @ G
        nodes.x = v @ self._P + self._x0
        nodes.equation_multipliers = (self._lambda0 - v @ self._L) / self._by_E
        over = self.over * nodes.x + (1.0 - self.over) * nodes.y + nodes.u
        use_compiled = self.many_steps or self.limits is not None or len(nodes) >= COMPILED_FROM
        nodes.y, nodes.z, nodes.sigma = (self._y_step_compiled if use_compiled else self._y_step)(over, nodes)
        nodes.u = over - nodes.y
        if nodes.s.size:
            reached = self.over * (nodes.x @ G.T) + (1.0 - self.over) * nodes.s + nodes.p
            nodes.s = np.minimum(reached, self.linear.h)
            nodes.p = reached - nodes.s

    def row_multipliers(self, nodes: NodeBatch) -> Vector:
        """Return the multipliers of Gx ≤ h; none is negative."""
        return np.asarray(self.weight * nodes.p / self._by_G)

    def _y_step(self, v: Vector, nodes: NodeBatch) -> tuple[Vector, Vector, Vector]:
        """Return y and z that minimise Σ ½dy²/z + ½weight(y − v)² under Σz ≤ k, and σ, without group limits."""
        state, positive, near = nodes.state, v >= 0, self.sizes.min_abs
        far = np.where(positive, nodes.max_above, nodes.max_below)
        size, free = np.abs(v), (state == FREE) & (far > 0)
        flat = 1.0 / np.where(far > 0, far, 1.0)
        indicators = _Indicators(np.where(free, size, 0.0), flat, self.d, self._half, self._steepest, self.weight)
        sigma = indicators.solve_sigma(self.k - (state == IN).sum(axis=1), nodes.sigma)
        z, tau, _ = indicators.at(sigma[:, None])
        z = np.where(free, np.clip(z, 0.0, 1.0), state == IN)
        whole = np.clip(self.weight * size / (self.weight + self.d), near, np.maximum(far, near))
        y = np.where(z >= 1.0, whole, z / np.where(tau > 0, tau, 1.0))
        y = np.where(positive, y, -y)
        wrong = (far <= 0) & (state == IN)  # v has the sign that is not allowed: as close to 0 as possible
        if wrong.any():
            y = np.where(wrong, np.where(nodes.max_above > 0, near, -near), y)
        return y, z, sigma

    def _y_step_compiled(self, v: Vector, nodes: NodeBatch) -> tuple[Vector, Vector, Vector]:
        """Return the result of `_y_step` from a compiled loop over the nodes, with group limits if there are any."""
        y, z, sigma = np.empty_like(v), np.empty_like(v), nodes.sigma.copy()
        common = v, nodes.state, sigma, self.d, self._half, self.sizes.min_abs, nodes.max_above, nodes.max_below
        limits = self.limits
        if limits is None:
            compiled(y_step)(*common, self._steepest, self.k, self.weight, MAX_SIGMA_RATIO, SUM_TOL, NEWTON, y, z)
        else:
            starts, numbers = np.append(limits.starts, v.shape[1]), (MAX_SIGMA_RATIO, SUM_TOL, NEWTON, NEWTON_GROUP)
            compiled(y_step_with_limits)(
                *common, limits.variables, starts, limits.order, limits.ends, limits.min_count, limits.max_count,
                limits.k, self.weight, *numbers, GROUP_TOL, y, z,
            )  # fmt: skip
        return y, z, sigma


def substituted(linear: Linear, fixed_values: Vector | None) -> tuple[Linear, Vector, Vector]:
    """Return the rows without the variables of known value (NaN: unknown), scaled to unit size again, and the scales.

    Otherwise a row with a large entry of a fixed variable would bind the other variables only by its small entries.
    """
    known = np.zeros(linear.lower.size, dtype=bool) if fixed_values is None else np.isfinite(fixed_values)
    if fixed_values is None or not known.any():
        return linear, np.ones(linear.h.size), np.ones(linear.f.size)
    G, h, by_G = unit_rows(np.where(known, 0.0, linear.G), linear.h - linear.G[:, known] @ fixed_values[known])
    E, f, by_E = unit_rows(np.where(known, 0.0, linear.E), linear.f - linear.E[:, known] @ fixed_values[known])
    return replace(linear, G=G, h=h, E=E, f=f), by_G, by_E


def diagonal_part(H: Vector) -> float | None:
    """Return a little less than the largest θ with H − θ·diag(H) positive semidefinite; None if H is near singular."""
    unit = np.sqrt(np.diag(H))
    if not (unit > 0).all() or not unit.max() <= MAX_SCALE_RATIO * unit.min():
        return None
    H = H / unit / unit[:, None]
    if not least_sine(H) >= SINGULAR:
        return None
    inverse = positive_inverse(H)
    x = np.random.default_rng(0).standard_normal(unit.size)
    size = 0.0
    for _ in range(30):  # power iteration converges from below; the factor 0.98 is almost always enough
        x = inverse @ (x / np.linalg.norm(x))
        size = float(np.linalg.norm(x))
    return min(0.98 / size, 1.0) if 0.0 < size < np.inf else None


def relax(H: Vector, r: Vector, d: Vector, linear: Linear, k: int, steps: int) -> tuple[Vector, Vector]:
    """Return x and z, in [0, 1] and at most k in sum, after ADMM steps; the bounds of `linear` hold in the support."""
    scale = max(float(np.median(np.diag(H))), 1e-300)
    H, r, d = H / scale, r / scale, d / scale
    size = np.maximum(np.linalg.norm(linear.G, axis=1), 1e-300)
    rows = replace(linear, G=linear.G / size[:, None], h=linear.h / size)
    fixed_out = (linear.lower == 0) & (linear.upper == 0)
    method = Perspective(H, r, d, rows, MagnitudeRange.between(linear.lower, linear.upper), k, over=1.0)
    nodes = method.start(np.where(fixed_out, OUT, FREE)[None])
    for _ in range(steps):
        method.step(nodes)
    return nodes.y[0], nodes.z[0]
