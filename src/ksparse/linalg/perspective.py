"""The perspective relaxation of a convex quadratic with at most k nonzeros: whom the whole problem wants in the support.

With H − diag(d) positive semidefinite, every zᵢ in {0, 1} saying whether i is in the support,

    min ½xᵀ(H − diag(d))x − rᵀx + Σ ½dᵢxᵢ²/zᵢ   s.t.  Ex = f,  Gx ≤ h,  xᵢ/zᵢ of a size that is allowed,  Σzᵢ ≤ k,  0 ≤ z ≤ 1

is the problem itself, and convex once z may be anything between. It is solved by ADMM on x = y and Gx = s: the x-step is linear under
Ex = f, with one inverse for all steps and all nodes of a tree, and the y-step is separable given the multiplier ν of Σz ≤ k: a reverse
Huber function, linear up to |y| = 1/τ, where z = τ|y| reaches 1, and ½dy² + ν beyond. Where labels have limits each has
a ν of its own, that of all or one at which it is full or has its least (`shares.py`); the variables of a group have one z. Rows of every
array are nodes: problems that differ by which variables are decided, and are solved side by side.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np

from ksparse.base.arrays import Vector
from ksparse.linalg.compiled import compiled, compiler_is_there
from ksparse.linalg.constraints import Linear
from ksparse.linalg.inverse import positive_inverse
from ksparse.linalg.limits import Limits
from ksparse.linalg.nearest import nearest
from ksparse.linalg.nearest_limited import nearest_limited
from ksparse.linalg.scaling import unit_rows
from ksparse.linalg.shares import CLOSE, FLATTEST, INNER, NEWTON, SETTLED, GroupShares, SingleShares, filling, filling_limits
from ksparse.linalg.states import FREE, IN, OUT

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
