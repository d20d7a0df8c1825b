"""The perspective relaxation of a convex quadratic with at most k nonzeros, solved by ADMM.

With H − diag(d) positive semidefinite, every zᵢ in {0, 1} saying whether i is in the support,

    min ½xᵀ(H − diag(d))x − rᵀx + Σ ½dᵢxᵢ²/zᵢ   s.t.  Ex = f,  Gx ≤ h,  xᵢ/zᵢ of a size that is allowed,  Σzᵢ ≤ k,  0 ≤ z ≤ 1

is the problem itself, and convex once z may be anything between. It is solved by ADMM on x = y and Gx = s: the x-step is linear under
Ex = f, with one inverse for all steps and all nodes of a tree, and the y-step is separable given the multiplier ν of Σz ≤ k: a reverse
Huber function, linear up to |y| = 1/τ, where z = τ|y| reaches 1, and ½dy² + ν beyond. Where labels have limits, each label has a ν of its
own: that of all members, or the one at which the label is full or has its least number. The variables of a group share one z. Rows of
every array are nodes: problems that differ by which variables are decided, solved side by side.

A member with share z has y = sz, s being the size |y|/z: the minimum of ½ds²z + ½weight(sz − |v|)². It falls with z, by
h(z) = Σ weight·s|v| − ½ds² − weight·s²z over its variables, and z is where h(z) = ν, or 0 or 1 beyond. For a single variable this is
closed: z is linear in σ = ν^−½ where s meets no bound. For groups it is Newton's method, on h(z)^−½ = σ, which is nearly linear, or
beyond, where h may be nearly 0, on h itself.

Under limits per label, with charges c of the members, the largest Σc over k members is found by sorting: of each label the first leastₗ
members are taken, those beyond mostₗ are not, and the largest of the others fill the remaining places. That is exact, since further
members of a label are worth less and less.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Protocol, Self

import numpy as np

from ksparse.numerics.constraints import Linear, unit_rows
from ksparse.numerics.eigen import positive_inverse
from ksparse.numerics.relaxation_kernels import FREE, IN, OUT, nearest, nearest_limited
from ksparse.util.arrays import Vector
from ksparse.util.compiled import compiled, compiler_is_there


@dataclass(frozen=True)
class Largest:
    """The largest sum for each node (row), and what one variable's absence or presence would change (columns)."""

    total: Vector
    charge: Vector  # of each variable's member
    last_in: Vector  # what would have to go for a variable that does not count; ∞ where there is no place for it at all
    first_out: Vector  # what would come for one that does
    counted: Vector  # who is in the sum


@dataclass(frozen=True, eq=False)
class Limits:
    """At most k members, and so many of each label."""

    k: int
    label: Vector  # of each member; every label has some
    least: Vector  # of each label
    most: Vector
    member: Vector  # of each variable: itself, or its group

    @cached_property
    def single(self) -> bool:
        """Whether every member is one variable, in their order."""
        return bool((self.member == np.arange(self.member.size)).all())

    @cached_property
    def order(self) -> Vector:
        """The members, one label after the other."""
        return np.argsort(self.label, kind="stable")

    @cached_property
    def ends(self) -> Vector:
        """Where each label begins among those, and the last one ends."""
        return np.searchsorted(self.label[self.order], np.arange(self.least.size + 1))

    @cached_property
    def variables(self) -> Vector:
        """The variables, one member after the other."""
        return np.argsort(self.member, kind="stable")

    @cached_property
    def starts(self) -> Vector:
        """Where each member's variables begin among those."""
        return np.searchsorted(self.member[self.variables], np.arange(self.label.size))

    def sums(self, values: Vector) -> Vector:
        """The sum of every member's variables, for each row."""
        return values if self.single else np.add.reduceat(values[:, self.variables], self.starts, axis=1)

    def states(self, state: Vector) -> Vector:
        """What is decided of the members: what one of its variables decides it decides for all of a group."""
        if self.single:
            return state
        out, inside = (np.logical_or.reduceat(state[:, self.variables] == side, self.starts, axis=1) for side in (OUT, IN))
        return np.where(out, OUT, np.where(inside, IN, FREE))

    def counts(self, members: Vector) -> Vector:
        """How many of each label (column) are in a mask of members, for each row."""
        return np.add.reduceat(members[:, self.order], self.ends[:-1], axis=1, dtype=np.intp)

    def largest(self, charge: Vector, state: Vector, exactly: bool = False) -> Largest:
        """The largest sum of charges, exact but for rounding.

        Those of the free are not below 0, unless there must be exactly k; then the sum is −∞ where there are fewer.
        """
        worth, state = self.sums(charge), self.states(state)
        nothing = -np.inf if exactly else 0.0
        inside, many = self.counts(state == IN), self.counts(state == FREE)
        kept = np.clip(self.least - inside, 0, many).astype(np.intp)  # places that a label's first have
        cap = np.maximum(np.clip(self.most - inside, 0, many).astype(np.intp), kept)
        falling = np.where(state == FREE, -worth, np.inf)[:, self.order]
        for begin, end in pairwise(self.ends):
            falling[:, begin:end].sort(axis=1)
        falling = -falling
        own = self.label[self.order]
        place = np.arange(own.size) - self.ends[own]
        first = place < kept[:, own]
        between = np.where(~first & (place < cap[:, own]), falling, -np.inf)
        room = np.maximum(self.k - inside.sum(axis=1) - kept.sum(axis=1), 0)
        enters = np.zeros(between.shape, dtype=bool)
        np.put_along_axis(enters, np.argsort(-between, axis=1, kind="stable"), np.arange(own.size) < room[:, None], axis=1)
        enters &= between > -np.inf
        chosen = kept + np.add.reduceat(enters, self.ends[:-1], axis=1, dtype=np.intp)
        total = np.where(state == IN, worth, 0.0).sum(axis=1) + np.where(enters | first, falling, 0.0).sum(axis=1)
        if exactly:
            total = np.where(enters.sum(axis=1) < room, -np.inf, total)
        begin = self.ends[:-1]
        last = np.where(chosen > 0, np.take_along_axis(falling, np.maximum(begin + chosen - 1, 0), axis=1), np.inf)
        after = np.take_along_axis(falling, np.minimum(begin + chosen, own.size - 1), axis=1)
        following = np.where(chosen < many, np.maximum(after, nothing), nothing)
        comes = np.where(chosen < cap, following, nothing).max(axis=1)  # wherever there is room
        goes = np.where(chosen > kept, last, np.inf).min(axis=1)  # wherever it can be spared
        first_out = np.where(chosen > kept, np.maximum(following, comes[:, None]), following)
        last_in = np.where(chosen < cap, np.minimum(last, goes[:, None]), last)
        counted = (state == IN) | ((state == FREE) & (worth >= last[:, self.label]))
        label = self.label[self.member]
        return Largest(total, worth[:, self.member], last_in[:, label], first_out[:, label], counted[:, self.member])


NEWTON = 10  # steps for σ, at most: z is piecewise linear in it where no bound is reached


SETTLED = 1e-6  # of Σz


FLATTEST = 1e5  # the largest σ, beside the one that lets nobody in: ν is 0 there


INNER = 30  # steps for the share of a group, at most: where bounds are met it is halving


CLOSE = 1e-8  # of a share


class Shares(Protocol):
    """What z is at σ, for nodes (rows) and members (columns)."""

    def at(self, sigma: Vector) -> tuple[Vector, Vector]:
        """z before it is cut to 0…1, and dz/dσ."""
        ...

    def of(self, rows: Vector) -> Shares:
        """Those of some nodes."""
        ...

    def on(self, members: Vector) -> Shares:
        """Those of some members."""
        ...

    @property
    def least(self) -> Vector:
        """The σ that lets nobody in, for each node."""
        ...


@dataclass(frozen=True)
class SingleShares:
    """Those of variables, each by itself."""

    size: Vector  # |v|, 0 for those that are not free
    flat: Vector  # 1 over the largest size
    d: Vector
    half: Vector  # √(d/2)
    steepest: Vector  # 1 over the least size
    weight: float

    def at(self, sigma: Vector) -> tuple[Vector, Vector]:
        """Piecewise linear, up to bounds."""
        z, tau, paid = self.slopes(sigma)
        return z, np.where(tau == sigma * self.half, self.half * self.size, 2.0 * paid / (sigma * self.weight))

    def slopes(self, sigma: Vector) -> tuple[Vector, Vector, Vector]:
        """z, τ = z/|y|, and ντ²."""
        tau = np.minimum(np.maximum(sigma * self.half, self.flat), self.steepest)
        paid = (tau / sigma) ** 2
        return tau * self.size - (0.5 * self.d + paid) / self.weight, tau, paid

    def of(self, rows: Vector) -> SingleShares:
        """Those of some nodes."""
        return replace(self, size=self.size[rows], flat=self.flat[rows])

    def on(self, members: Vector) -> SingleShares:
        """Those of some variables."""
        return SingleShares(
            self.size[:, members], self.flat[:, members], self.d[members], self.half[members], self.steepest[members], self.weight
        )

    @property
    def least(self) -> Vector:
        """From the ν that lets a variable in."""
        pulled = self.weight * self.size
        with np.errstate(divide="ignore", invalid="ignore"):
            most = np.where(self.flat + self.d > 0, pulled * np.minimum(1.0 / self.flat, 0.5 * pulled / np.maximum(self.d, 1e-300)), 0.0)
        return np.asarray(1.0 / np.sqrt(np.clip(most.max(axis=1, initial=0.0), 1e-300, 1e200)))


@dataclass(frozen=True)
class GroupShares:
    """Those of groups: their variables have one share."""

    size: Vector
    near: Vector  # the sizes that a variable may have; 0 and 0 for those that are not free
    far: Vector
    d: Vector
    weight: float
    starts: Vector  # where each group begins; the variables are in the order of their groups

    def sizes(self, z: Vector) -> tuple[Vector, Vector]:
        """s of each variable, where it would be without bounds too, for shares of the variables."""
        with np.errstate(divide="ignore", invalid="ignore"):
            loose = np.where(self.size > 0, self.weight * self.size / (self.weight * z + self.d), 0.0)
        return np.minimum(np.maximum(loose, self.near), self.far), loose

    def fall(self, z: Vector) -> tuple[Vector, Vector]:
        """h of every group, and −h'."""
        z = np.repeat(z, np.diff([*self.starts, self.size.shape[1]]), axis=1)
        s, loose = self.sizes(z)
        with np.errstate(invalid="ignore"):
            inner = s == loose
            h = np.where(
                inner, np.where(self.d > 0, 0.5 * self.d * s * s, 0.0), self.weight * s * (self.size - s * z) - 0.5 * self.d * s * s
            )
            bend = self.weight * s * s * np.where(inner, self.d / (self.weight * z + self.d), 1.0)
        return tuple(np.add.reduceat(np.where(np.isnan(part), 0.0, part), self.starts, axis=1) for part in (h, bend))  # type: ignore[return-value]

    def at(self, sigma: Vector) -> tuple[Vector, Vector]:
        """Newton's method on h^−½ = σ, between 0 and 1."""
        shape = (len(self.size), self.starts.size)
        sigma = np.broadcast_to(sigma, shape)
        nu, low, high = sigma**-2.0, np.zeros(shape), np.ones(shape)
        none, all_ = self.fall(low)[0] <= nu, self.fall(high)[0] >= nu
        z, bend = np.full(shape, 0.5), np.ones(shape)
        for _ in range(INNER):
            h, bend = self.fall(z)
            low, high = np.where(h > nu, z, low), np.where(h > nu, high, z)
            with np.errstate(divide="ignore", invalid="ignore"):
                new = z + np.where(h > nu, (sigma - h**-0.5) * 2.0 * h**1.5, h - nu) / bend
            new = np.where((new > low) & (new < high), new, 0.5 * (low + high))
            still = (none | all_ | (np.abs(new - z) <= CLOSE)).all()
            z = new
            if still:
                break
        z = np.where(none, 0.0, np.where(all_, 1.0, z))
        with np.errstate(divide="ignore"):
            return z, np.where(none | all_, 0.0, 2.0 * nu / (sigma * np.maximum(bend, 1e-300)))

    def of(self, rows: Vector) -> GroupShares:
        """Those of some nodes."""
        return replace(self, size=self.size[rows], near=self.near[rows], far=self.far[rows])

    def on(self, members: Vector) -> GroupShares:
        """Those of some groups."""
        ends = np.append(self.starts, self.size.shape[1])
        chosen = [np.arange(ends[g], ends[g + 1]) for g in members]
        variables = np.concatenate(chosen)
        starts = np.cumsum([0, *(len(some) for some in chosen[:-1])])
        return GroupShares(self.size[:, variables], self.near[:, variables], self.far[:, variables], self.d[variables], self.weight, starts)

    @property
    def least(self) -> Vector:
        """From h(0)."""
        most = self.fall(np.zeros((len(self.size), self.starts.size)))[0]
        return np.asarray(1.0 / np.sqrt(np.clip(most.max(axis=1, initial=0.0), 1e-300, 1e200)))


def filling(shares: Shares, room: Vector, sigma: Vector, ends: tuple[Vector, Vector] | None = None) -> Vector:
    """σ with Σz = room for every node, by Newton's method between bounds that close in; the flattest where all fit.

    `ends`: what σ is cut to for each member.
    """
    least = shares.least
    most = FLATTEST * least
    sigma, under, over = np.clip(sigma, least, most), least.copy(), np.full(sigma.size, np.inf)
    open_ = np.arange(sigma.size)
    for _ in range(NEWTON):
        at = sigma[open_]
        own = at[:, None] if ends is None else np.clip(at[:, None], ends[0][open_], ends[1][open_])
        z, slope = (shares if open_.size == sigma.size else shares.of(open_)).at(own)
        off = room[open_] - np.clip(z, 0.0, 1.0).sum(axis=1)
        rise = np.where((z > 0) & (z < 1) & (own == at[:, None]), slope, 0.0).sum(axis=1)
        under[open_], over[open_] = np.where(off > 0, at, under[open_]), np.where(off < 0, at, over[open_])
        unsettled = (np.abs(off) > SETTLED * np.maximum(room[open_], 1)) & ~((off > 0) & (at >= most[open_]))
        if not unsettled.any():
            break
        new = at + off / np.where(rise > 0, rise, np.inf)
        inside = (rise > 0) & (new > under[open_]) & (new < over[open_])
        half = np.where(np.isinf(over[open_]), 4.0 * at, 0.5 * (under[open_] + over[open_]))
        open_, new = open_[unsettled], np.where(inside, new, half)[unsettled]
        sigma[open_] = np.minimum(new, most[open_])
    return sigma


def filling_limits(shares: Shares, limits: Limits, state: Vector, sigma: Vector) -> tuple[Vector, Vector]:
    """The same where labels have limits, and each member's σ: not above where its label is full, nor below where it has its least.

    In each row of `sigma` that of all, then those at which each label is full, then those at which it has its least.
    """
    taken, free, count = limits.counts(state == IN), limits.counts(state == FREE), limits.least.size
    found, low, high = sigma.copy(), np.zeros((len(state), count)), np.full((len(state), count), np.inf)
    for label in range(count):
        most, least = limits.most[label] - taken[:, label], limits.least[label] - taken[:, label]
        of = limits.order[limits.ends[label] : limits.ends[label + 1]]
        cases = ((np.flatnonzero(free[:, label] > most), most, high, 1), (np.flatnonzero(least > 0), least, low, 1 + count))
        for rows, room, ends, place in cases:
            if rows.size:
                found[rows, place + label] = ends[rows, label] = filling(shares.of(rows).on(of), room[rows], sigma[rows, place + label])
    low, high = low[:, limits.label], high[:, limits.label]
    found[:, 0] = filling(shares, limits.k - taken.sum(axis=1), sigma[:, 0], (low, high))
    return found, np.clip(found[:, [0]], low, high)


SINGULAR = 1e-3  # the sine of a variable's angle to those before it, below which the relaxation says little


SPREAD = 1e6  # of the variables' units: one method's weight for all of them says little beyond


OVER = 1.6  # over-relaxation of ADMM


MANY = 16  # nodes side by side: those of a tree, which is worth a compiler's second


@dataclass(frozen=True)
class Relaxed:
    """Where the relaxation ended."""

    x: Vector
    z: Vector  # in 0…1, at most k together


@dataclass(frozen=True, eq=False)
class Sizes:
    """Which sizes a nonzero may have: from `near` to `up` above 0, from `near` to `down` below; −1 where it may not be on that side."""

    near: Vector
    up: Vector
    down: Vector

    @classmethod
    def between(cls, lower: Vector, upper: Vector, floor: Vector | float = 0.0) -> Sizes:
        """Those between bounds, and above a floor."""
        near = np.maximum(np.maximum(lower, -upper), floor)
        return cls(np.maximum(near, 0.0), np.where(upper > 0, upper, -1.0), np.where(lower < 0, -lower, -1.0))

    def on(self, kept: Vector) -> Sizes:
        """Those of some variables."""
        return Sizes(self.near[kept], self.up[kept], self.down[kept])


@dataclass
class Nodes:
    """Where the method stands, one row per node."""

    state: Vector  # FREE, IN or OUT
    y: Vector
    u: Vector  # multipliers of x = y, over the weight
    s: Vector  # Gx, at most h
    p: Vector  # their multipliers, over the weight
    sigma: Vector  # ν^−½; under limits those of the labels too
    x: Vector
    z: Vector
    price: Vector  # multipliers of Ex = f
    up: Vector  # the largest sizes above 0,
    down: Vector  # and below: at a node they may be less than they are for all
    boxed: Vector  # how many variables were out when these were found

    def __len__(self) -> int:
        return len(self.state)

    def of(self, rows: Vector) -> Self:
        """Some of the nodes, copied."""
        return replace(self, **{field.name: getattr(self, field.name)[rows] for field in fields(self)})

    def put(self, rows: Vector, others: Nodes) -> None:
        """Others in the place of some."""
        for field in fields(self):
            getattr(self, field.name)[rows] = getattr(others, field.name)


class Perspective:
    """The relaxation for one d; the rows of E and G of about unit size, and so H, in which one weight suits all variables."""

    every = 10  # steps between two bounds
    long = False  # whether so many steps are to come that they are worth a compiler's second

    def __init__(
        self, H: Vector, r: Vector, d: Vector, linear: Linear, sizes: Sizes, k: int, over: float = OVER, limits: Limits | None = None,
        held: Vector | None = None,
    ) -> None:  # fmt: skip
        linear, self._by_G, self._by_E = substituted(linear, held)
        self.d, self.linear, self.sizes, self.k, self.over, self.limits = d, linear, sizes, k, over, limits
        self.weight = weight = float(np.median(np.diag(H))) or 1.0  # of the distance between x and y
        n, E, G = r.size, linear.E, linear.G
        K = positive_inverse(H - np.diag(d) + weight * (np.eye(n) + G.T @ G))
        KE = K @ E.T
        S = np.linalg.pinv(E @ KE)
        P = K - KE @ S @ KE.T
        self._P, self._x0 = weight * P, P @ r + KE @ (S @ linear.f)
        self._L, self._price0 = weight * (KE @ S), S @ (linear.f - KE.T @ r)
        self._half = np.sqrt(0.5 * np.maximum(d, 0.0))
        with np.errstate(divide="ignore"):
            self._steepest = 1.0 / sizes.near

    def start(self, state: Vector) -> Nodes:
        """Nodes (rows) of which nothing is known."""
        n, count = self.d.size, len(state)
        y = np.where(state == OUT, 0.0, np.clip(1.0 / n, -self.sizes.down, np.maximum(self.sizes.up, 0.0)))
        s = np.minimum(y @ self.linear.G.T, self.linear.h)
        zero = np.zeros_like(y)
        price, up, down = np.zeros((count, self.linear.f.size)), np.tile(self.sizes.up, (count, 1)), np.tile(self.sizes.down, (count, 1))
        sigma = np.zeros(count) if self.limits is None else np.zeros((count, 1 + 2 * self.limits.least.size))
        return Nodes(state, y, zero, s, np.zeros_like(s), sigma, y, zero, price, up, down, np.zeros(count, dtype=np.intp))

    def step(self, nodes: Nodes) -> None:
        """One step of ADMM for every node."""
        G, weight = self.linear.G, self.weight
        v = nodes.y - nodes.u
        if nodes.s.size:
            v += (nodes.s - nodes.p) @ G
        nodes.x = v @ self._P + self._x0
        nodes.price = (self._price0 - v @ self._L) / self._by_E
        over = self.over * nodes.x + (1.0 - self.over) * nodes.y + nodes.u
        quick = (self.long or self.limits is not None or len(nodes) >= MANY) and compiler_is_there()  # under limits arrays are slow
        nodes.y, nodes.z, nodes.sigma = (self._nearest_compiled if quick else self._nearest)(over, nodes, weight)
        nodes.u = over - nodes.y
        if nodes.s.size:
            reached = self.over * (nodes.x @ G.T) + (1.0 - self.over) * nodes.s + nodes.p
            nodes.s = np.minimum(reached, self.linear.h)
            nodes.p = reached - nodes.s

    def row_price(self, nodes: Nodes) -> Vector:
        """Multipliers of Gx ≤ h, never below 0."""
        return np.asarray(self.weight * nodes.p / self._by_G)

    def _nearest(self, v: Vector, nodes: Nodes, weight: float) -> tuple[Vector, Vector, Vector]:
        """The y-step: y, z of least Σ ½dy²/z + ½weight(y − v)² under Σz ≤ k, and the σ that belongs to them."""
        state, above = nodes.state, v >= 0
        far = np.where(above, nodes.up, nodes.down)
        size = np.abs(v)
        free = (state == FREE) & (far > 0)
        if self.limits is not None and not self.limits.single:
            y, z, sigma = self._nearest_groups(size, far, free, nodes, self.limits)
        else:
            flat = 1.0 / np.where(far > 0, far, 1.0)
            shares = SingleShares(np.where(free, size, 0.0), flat, self.d, self._half, self._steepest, weight)
            if self.limits is None:
                sigma = filling(shares, self.k - (state == IN).sum(axis=1), nodes.sigma)
                own = sigma[:, None]
            else:
                sigma, own = filling_limits(shares, self.limits, np.where(free | (state == IN), state, OUT), nodes.sigma)
            z, tau, _ = shares.slopes(own)
            z = np.where(free, np.clip(z, 0.0, 1.0), state == IN)
            y = np.where(z >= 1.0, self._whole(size, far), z / np.where(tau > 0, tau, 1.0))
        y = np.where(above, y, -y)
        wrong = (far <= 0) & (state == IN)  # decided, and pulled to the side where it may not be: as near to 0 as it may
        if wrong.any():
            y = np.where(wrong, np.where(nodes.up > 0, self.sizes.near, -self.sizes.near), y)
        return y, z, sigma

    def _whole(self, size: Vector, far: Vector) -> Vector:
        """|y| of those that are in."""
        return np.clip(self.weight * size / (self.weight + self.d), self.sizes.near, np.maximum(far, self.sizes.near))

    def _nearest_groups(self, size: Vector, far: Vector, free: Vector, nodes: Nodes, limits: Limits) -> tuple[Vector, Vector, Vector]:
        """|y|, z and σ where groups have one share."""
        order, state = limits.variables, limits.states(nodes.state)
        open_ = free & (state == FREE)[:, limits.member]
        pulled, near, most = (np.where(open_, part, 0.0)[:, order] for part in (size, self.sizes.near, np.maximum(far, self.sizes.near)))
        shares = GroupShares(pulled, near, most, self.d[order], self.weight, limits.starts)
        sigma, own = filling_limits(shares, limits, state, nodes.sigma)
        share = np.where(state == FREE, np.clip(shares.at(own)[0], 0.0, 1.0), state == IN)
        z = share[:, limits.member]
        s = np.empty_like(size)
        s[:, order] = shares.sizes(z[:, order])[0]
        y = np.where(open_, z * np.where(z > 0, s, 0.0), np.where(nodes.state == IN, self._whole(size, far), 0.0))
        return y, np.where(nodes.state == OUT, 0.0, z), sigma

    def _nearest_compiled(self, v: Vector, nodes: Nodes, weight: float) -> tuple[Vector, Vector, Vector]:
        """The same by a loop over the nodes."""
        y, z, sigma = np.empty_like(v), np.empty_like(v), nodes.sigma.copy()
        limits = self.limits
        if limits is not None:
            compiled(nearest_limited)(
                v, nodes.state, sigma, self.d, self._half, self.sizes.near, nodes.up, nodes.down,
                limits.variables, np.append(limits.starts, v.shape[1]), limits.order, limits.ends, limits.least, limits.most,
                limits.k, weight, FLATTEST, SETTLED, NEWTON, INNER, CLOSE, y, z,
            )  # fmt: skip
            return y, z, sigma
        compiled(nearest)(
            v, nodes.state, sigma, self.d, self._half, self.sizes.near, nodes.up, nodes.down, self._steepest,
            self.k, weight, FLATTEST, SETTLED, NEWTON, y, z,
        )  # fmt: skip
        return y, z, sigma


def substituted(linear: Linear, held: Vector | None) -> tuple[Linear, Vector, Vector]:
    """The rows without the variables that are held at a value (NaN: not held), of unit size again, and what they were divided by.

    A row in which a held variable is large would hold the others by entries that are small.
    """
    known = np.zeros(linear.lower.size, dtype=bool) if held is None else np.isfinite(held)
    if held is None or not known.any():
        return linear, np.ones(linear.h.size), np.ones(linear.f.size)
    G, h, by_G = unit_rows(np.where(known, 0.0, linear.G), linear.h - linear.G[:, known] @ held[known])
    E, f, by_E = unit_rows(np.where(known, 0.0, linear.E), linear.f - linear.E[:, known] @ held[known])
    return replace(linear, G=G, h=h, E=E, f=f), by_G, by_E


def diagonal_part(H: Vector) -> float | None:
    """A little less than the largest θ with H − θ·diag(H) positive semidefinite; None where H is singular, or nearly so."""
    unit = np.sqrt(np.diag(H))
    if not (unit > 0).all():
        return None
    if not unit.max() <= SPREAD * unit.min():
        return None
    H = H / unit / unit[:, None]
    try:
        if np.linalg.cholesky(H).diagonal().min() < SINGULAR:
            return None
        inverse = positive_inverse(H)
    except np.linalg.LinAlgError:
        return None
    x = np.random.default_rng(0).standard_normal(unit.size)
    size = 0.0
    for _ in range(30):  # power iterations: from below, so that θ comes out too large, which the factor mends in all but rare cases
        x = inverse @ (x / np.linalg.norm(x))
        size = float(np.linalg.norm(x))
    theta = 0.98 / size if size > 0 else 0.0
    return min(theta, 1.0) if theta > 0 else None


def relax(H: Vector, r: Vector, d: Vector, linear: Linear, k: int, steps: int) -> Relaxed:
    """The relaxation by so many steps; `linear` with the bounds of variables in the support."""
    per = max(float(np.median(np.diag(H))), 1e-300)  # values of any size
    H, r, d = H / per, r / per, d / per
    size = np.maximum(np.linalg.norm(linear.G, axis=1), 1e-300)
    rows = replace(linear, G=linear.G / size[:, None], h=linear.h / size)
    shut = (linear.lower == 0) & (linear.upper == 0)
    method = Perspective(H, r, d, rows, Sizes.between(linear.lower, linear.upper), k, over=1.0)
    nodes = method.start(np.where(shut, OUT, FREE)[None])
    for _ in range(steps):
        method.step(nodes)
    return Relaxed(nodes.y[0], nodes.z[0])
