"""The perspective relaxation of a convex quadratic with at most k nonzeros: whom the whole problem wants in the support.

With H − diag(d) positive semidefinite, every zᵢ in {0, 1} saying whether i is in the support,

    min ½xᵀ(H − diag(d))x − rᵀx + Σ ½dᵢxᵢ²/zᵢ   s.t.  Ex = f,  Gx ≤ h,  xᵢ/zᵢ of a size that is allowed,  Σzᵢ ≤ k,  0 ≤ z ≤ 1

is the problem itself, and convex once z may be anything between. It is solved by ADMM on x = y and Gx = s: the x-step is linear under
Ex = f, with one inverse for all steps and all nodes of a tree, and the y-step is separable given the multiplier ν of Σz ≤ k: a reverse
Huber function, linear up to |y| = 1/τ, where z = τ|y| reaches 1, and ½dy² + ν beyond. Rows of every array are nodes: problems that
differ by which variables are decided, and are solved side by side.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np

from ksparse.base.arrays import Vector
from ksparse.linalg.compiled import compiled, compiler_is_there
from ksparse.linalg.constraints import Linear
from ksparse.linalg.inverse import positive_inverse
from ksparse.linalg.nearest import nearest
from ksparse.linalg.states import FREE, IN, OUT

NEWTON = 10  # steps for σ = ν^−½, at most: z is piecewise linear in it where no bound is reached
SETTLED = 1e-6  # of Σz
FLATTEST = 1e5  # the largest σ, beside the one that lets nobody in: ν is 0 there
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
    sigma: Vector  # ν^−½
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

    def __init__(self, H: Vector, r: Vector, d: Vector, linear: Linear, sizes: Sizes, k: int, over: float = OVER) -> None:
        self.d, self.linear, self.sizes, self.k, self.over = d, linear, sizes, k, over
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
        return Nodes(state, y, zero, s, np.zeros_like(s), np.zeros(count), y, zero, price, up, down, np.zeros(count, dtype=np.intp))

    def step(self, nodes: Nodes) -> None:
        """One step of ADMM for every node."""
        G, weight = self.linear.G, self.weight
        v = nodes.y - nodes.u
        if nodes.s.size:
            v += (nodes.s - nodes.p) @ G
        nodes.x = v @ self._P + self._x0
        nodes.price = self._price0 - v @ self._L
        over = self.over * nodes.x + (1.0 - self.over) * nodes.y + nodes.u
        quick = (self.long or len(nodes) >= MANY) and compiler_is_there()
        nodes.y, nodes.z, nodes.sigma = (self._nearest_compiled if quick else self._nearest)(over, nodes, weight)
        nodes.u = over - nodes.y
        if nodes.s.size:
            reached = self.over * (nodes.x @ G.T) + (1.0 - self.over) * nodes.s + nodes.p
            nodes.s = np.minimum(reached, self.linear.h)
            nodes.p = reached - nodes.s

    def row_price(self, nodes: Nodes) -> Vector:
        """Multipliers of Gx ≤ h, never below 0."""
        return np.asarray(self.weight * nodes.p)

    def _nearest(self, v: Vector, nodes: Nodes, weight: float) -> tuple[Vector, Vector, Vector]:
        """The y-step: y, z of least Σ ½dy²/z + ½weight(y − v)² under Σz ≤ k, and the σ that belongs to them."""
        state, above = nodes.state, v >= 0
        far = np.where(above, nodes.up, nodes.down)
        size = np.abs(v)
        free = (state == FREE) & (far > 0)
        flat = 1.0 / np.where(far > 0, far, 1.0)
        room = self.k - (state == IN).sum(axis=1)
        pulled = np.where(free, size, 0.0)
        most = weight * pulled * np.minimum(far, 0.5 * weight * pulled / np.maximum(self.d, 1e-300))  # the ν that lets a variable in
        sigma = self._sigma(pulled, flat, room, nodes.sigma, 1.0 / np.sqrt(np.clip(most.max(axis=1), 1e-300, 1e200)), weight)
        z, tau, _ = self._indicators(size, flat, sigma, weight)
        z = np.where(free, np.clip(z, 0.0, 1.0), state == IN)
        whole = np.clip(weight * size / (weight + self.d), self.sizes.near, np.maximum(far, self.sizes.near))
        y = np.where(z >= 1.0, whole, z / np.where(tau > 0, tau, 1.0))
        y = np.where(above, y, -y)
        wrong = (far <= 0) & (state == IN)  # decided, and pulled to the side where it may not be: as near to 0 as it may
        if wrong.any():
            y = np.where(wrong, np.where(nodes.up > 0, self.sizes.near, -self.sizes.near), y)
        return y, z, sigma

    def _nearest_compiled(self, v: Vector, nodes: Nodes, weight: float) -> tuple[Vector, Vector, Vector]:
        """The same by a loop over the nodes."""
        y, z, sigma = np.empty_like(v), np.empty_like(v), nodes.sigma.copy()
        compiled(nearest)(
            v, nodes.state, sigma, self.d, self._half, self.sizes.near, nodes.up, nodes.down, self._steepest,
            self.k, weight, FLATTEST, SETTLED, NEWTON, y, z,
        )  # fmt: skip
        return y, z, sigma

    def _sigma(self, size: Vector, flat: Vector, room: Vector, sigma: Vector, least: Vector, weight: float) -> Vector:
        """σ with Σz = room for every node, by Newton's method between bounds that close in; the flattest where all fit."""
        most = FLATTEST * least
        sigma, low, high = np.clip(sigma, least, most), least.copy(), np.full(sigma.size, np.inf)
        open_ = np.arange(sigma.size)
        for _ in range(NEWTON):
            z, _, slope = self._indicators(size[open_], flat[open_], sigma[open_], weight)
            off = room[open_] - np.clip(z, 0.0, 1.0).sum(axis=1)
            rise = np.where((z > 0) & (z < 1), slope, 0.0).sum(axis=1)
            at = sigma[open_]
            low[open_], high[open_] = np.where(off > 0, at, low[open_]), np.where(off < 0, at, high[open_])
            unsettled = (np.abs(off) > SETTLED * np.maximum(room[open_], 1)) & ~((off > 0) & (at >= most[open_]))
            if not unsettled.any():
                break
            new = at + off / np.where(rise > 0, rise, np.inf)
            inside = (rise > 0) & (new > low[open_]) & (new < high[open_])
            half = np.where(np.isinf(high[open_]), 4.0 * at, 0.5 * (low[open_] + high[open_]))
            open_, new = open_[unsettled], np.where(inside, new, half)[unsettled]
            sigma[open_] = np.minimum(new, most[open_])
        return sigma

    def _indicators(self, size: Vector, flat: Vector, sigma: Vector, weight: float) -> tuple[Vector, Vector, Vector]:
        """z before it is cut to 0…1, τ, and dz/dσ."""
        sigma = sigma[:, None]
        bent = sigma * self._half
        tau = np.minimum(np.maximum(bent, flat), self._steepest)
        paid = (tau / sigma) ** 2  # ντ²
        z = tau * size - (0.5 * self.d + paid) / weight
        return z, tau, np.where(tau == bent, self._half * size, 2.0 * paid / (sigma * weight))


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
