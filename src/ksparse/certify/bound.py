"""Lower bounds of many nodes at once: a bound from any dual point, and the steps that lead to good dual points.

Split φ(x) = g(x) + ½xᵀDx with D = diag(d) and g convex: of a quadratic g(x) = ½xᵀMx − rᵀx + constant with M = H − D
positive semidefinite. For any w, λ and any μ ≥ 0, with q = −∇g(w) + Eᵀλ − Gᵀμ, every x of the problem has

    φ(x) ≥ g(w) + ∇g(w)ᵀ(x − w) + λᵀ(f − Ex) + μᵀ(Gx − h) + ½xᵀDx        (convexity of g; Ex = f; Gx ≤ h)
         = g(w) − ∇g(w)ᵀw + λᵀf − μᵀh − Σ (qᵢxᵢ − ½dᵢxᵢ²) ≥ g(w) − ∇g(w)ᵀw + λᵀf − μᵀh − Σ_{i in} cᵢ(qᵢ) − (the sum of
         the t largest cᵢ(qᵢ) of the free i),      t = k − #in,

where the conjugate cᵢ(q) is the largest qx − ½dᵢx² over the sizes that xᵢ may have. For a free i it is at least 0,
since xᵢ = 0 is allowed (unless exactly k variables are to be nonzero). This is the Fenchel dual of the perspective
relaxation, whose value the best dual point reaches. It holds at every dual point, so that no solver's tolerance can
make it wrong. Rounding is subtracted: where qᵢ may be wrong by some amount, cᵢ rises by that amount times the largest
|xᵢ|.

Where rules limit how many variables of a label may or must be in a support, or groups count as one, the sum is the
largest under those limits (`numerics/relaxation.py`). What variables require of others is left out of it, which makes
it no smaller.

With the conjugates sorted, the absence of one of the t largest raises the bound by cᵢ − c₍ₜ₊₁₎, the presence of another
by c₍ₜ₎ − cⱼ. If the bound then reaches the cutoff, the variable is fixed for the whole subtree. Under limits per label
the variable that would replace i depends on its label, and a group is fixed as a whole.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from ksparse.certify.diagonal import COMPILED
from ksparse.certify.program import Program
from ksparse.numerics.relaxation import MagnitudeRange, NodeBatch, Perspective, TopSum
from ksparse.numerics.relaxation_kernels import FREE, IN, OUT
from ksparse.util.arrays import Vector
from ksparse.util.resources import report_pause

IMPROVEMENTS = 2  # Newton steps on the multipliers of Ex = f
GAIN = 1e-3  # of the way to the cut: a bound that rises less does not rise
FEW = 0.7  # of the nodes of a batch are left: the others are put aside


@dataclass
class Bounds:
    """Of several nodes, one row each."""

    value: Vector  # the bound
    charge: Vector  # cᵢ, with its rounding
    last_in: Vector  # the smallest cᵢ among the t largest of the free; ∞ where t = 0; under limits what cᵢ would take the place of
    first_out: Vector  # the largest of the others; 0 where there are none; under limits what would take the place of cᵢ

    def of(self, rows: Vector) -> Bounds:
        """Some of them."""
        return Bounds(self.value[rows], self.charge[rows], self.last_in[rows], self.first_out[rows])


@dataclass
class Linearised:
    """g from below by a linear function, for several w."""

    value: Vector  # g(w) − ∇g(w)ᵀw
    gradient: Vector  # ∇g(w)
    blur: Vector  # what rounding may have cost the first,
    off: Vector  # and each entry of the second


class DualBound(ABC):
    """The bound for one split of φ; the subclasses know g."""

    def __init__(self, program: Program, d: Vector) -> None:
        self.program, self.d = program, d

    @abstractmethod
    def linearised(self, w: Vector, state: Vector) -> Linearised:
        """g at the rows of w, for nodes of which so much is decided."""

    def at(
        self, w: Vector, price: Vector, row_multipliers: Vector, state: Vector, sizes: MagnitudeRange | None = None
    ) -> Bounds:
        """The bound at (w, λ, μ) for each node, λ improved a little; `sizes`: those of each node, if not those of the problem."""
        sizes = sizes or self.program.sizes
        best = self._at(w, price, row_multipliers, state, sizes)
        for _ in range(IMPROVEMENTS if price.size else 0):
            price = price + self._newton(*best[1:], sizes)
            better = self._at(w, price, row_multipliers, state, sizes)
            if not (better[0].value > best[0].value).any():
                break
            worse = ~(better[0].value > best[0].value)
            for new, old in zip(
                (*vars(better[0]).values(), *better[1:]), (*vars(best[0]).values(), *best[1:]), strict=True
            ):
                new[worse] = old[worse]
            best = better
        return best[0]

    def _at(
        self, w: Vector, price: Vector, row_multipliers: Vector, state: Vector, sizes: MagnitudeRange
    ) -> tuple[Bounds, Vector, Vector]:
        """The bounds, the x that the charges are reached at, and which of them count."""
        linear, rounding = self.program.linear, self.program.rounding
        g = self.linearised(w, state)
        q = price @ linear.E - row_multipliers @ linear.G - g.gradient
        off = g.off + rounding * (
            np.abs(g.gradient) + np.abs(price) @ np.abs(linear.E) + row_multipliers @ np.abs(linear.G)
        )
        paid = price @ linear.f - row_multipliers @ linear.h
        blur = g.blur + rounding * (np.abs(price) @ np.abs(linear.f) + row_multipliers @ np.abs(linear.h))
        charge, x = self.charges(q, off, state, sizes)
        most = self._most(charge, state)
        counted = most.selected
        blur += rounding * np.abs(np.where(counted & np.isfinite(charge), charge, 0.0)).sum(
            axis=1
        )  # charges may be of either sign
        value = g.value + paid - most.total - blur
        value = np.where(np.isnan(value), -np.inf, value)  # what overflowed says nothing
        return Bounds(value, most.values, most.smallest_selected, most.largest_unselected), x, counted

    def _most(self, charge: Vector, state: Vector) -> TopSum:
        """What the charges of a support can sum to."""
        program = self.program
        if program.limits is not None:
            return program.limits.top_sum(charge, state, program.exactly)
        total, last_in, first_out = top_sum(charge, state, program.k, program.exactly)
        counted = (state == IN) | ((state == FREE) & (charge >= last_in[:, None]))
        return TopSum(total, charge, last_in[:, None], first_out[:, None], counted)

    def charges(self, q: Vector, off: Vector, state: Vector, sizes: MagnitudeRange) -> tuple[Vector, Vector]:
        """cᵢ at q, with what it rises where q is off by as much as that; and the x it is reached at."""
        d = self.d
        best, at = np.full(q.shape, -np.inf), np.zeros(q.shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            for pull, far, sign in ((q, sizes.max_above, 1.0), (-q, sizes.max_below, -1.0)):
                free = np.where(
                    d > 0, pull / d, np.where(pull > 0.5 * d * (far + sizes.min_abs), np.inf, 0.0)
                )  # of no curvature: an end
                x = np.minimum(np.maximum(free, sizes.min_abs), far)
                value = np.where(np.isinf(x), np.inf, x * (pull - 0.5 * d * x))
                better = (far > 0) & (far >= sizes.min_abs) & ~(value <= best)
                best, at = np.where(better, value, best), np.where(better, sign * x, at)
            may_be_0 = (state == OUT) | ((state == FREE) & (not self.program.exactly)) | self.program.vanishes
            nothing = may_be_0 & ~(best > 0)
            best, at = np.where(nothing, 0.0, best), np.where(nothing, 0.0, at)
            reach = np.minimum(
                np.where(d > 0, np.maximum((np.abs(q) + off) / d, sizes.min_abs), np.inf),
                np.maximum(sizes.max_above, sizes.max_below),
            )
            risen = np.where(off > 0, off * np.maximum(reach, 0.0), 0.0)
        return best + np.where(np.isnan(risen), np.inf, risen), at

    def _newton(self, x: Vector, counted: Vector, sizes: MagnitudeRange) -> Vector:
        """A step of λ: the bound's slope is f − Ex over what counts, its curvature E·diag(1/d)·Eᵀ over what is not at a bound."""
        E = self.program.linear.E
        x = np.where(counted & np.isfinite(x), x, 0.0)
        slope = self.program.linear.f - x @ E.T
        size = np.abs(x)
        inner = (
            counted & (size > sizes.min_abs) & (size < np.where(x > 0, sizes.max_above, sizes.max_below)) & (self.d > 0)
        )
        bend = np.where(inner, 1.0 / np.where(self.d > 0, self.d, 1.0), 0.0)
        K = np.einsum("bi,ri,si->brs", bend, E, E)
        K += 1e-9 * (1.0 + np.trace(K, axis1=1, axis2=2))[:, None, None] * np.eye(len(E))
        return np.linalg.solve(K, slope[:, :, None])[:, :, 0]


class QuadraticBound(DualBound):
    """g(x) = ½xᵀMx − rᵀx + constant, M = H − D."""

    def __init__(self, program: Program, d: Vector) -> None:
        super().__init__(program, d)
        self.M = program.H - np.diag(d)

    def linearised(self, w: Vector, state: Vector) -> Linearised:
        """In variables of unit curvature (Mw)ᵢ is wrong by at most the rounding times Σ|wⱼ|, since no entry of M exceeds 1."""
        program, rounding = self.program, self.program.rounding
        Mw, size = w @ self.M, np.abs(w).sum(axis=1)
        return Linearised(
            program.constant - 0.5 * np.einsum("ij,ij->i", w, Mw),
            Mw - program.r,
            rounding * (abs(program.constant) + size**2),
            rounding * (np.abs(program.r) + size[:, None]) + program.noise.linear_error,
        )


def top_sum(charge: Vector, state: Vector, k: int, exactly: bool = False) -> tuple[Vector, Vector, Vector]:
    """Σ over those in and the t largest of the free, the last of these, and the first after them.

    Charges of the free are not below 0, unless there must be exactly k; then the sum is −∞ where there are fewer.
    """
    inside = state == IN
    room = k - inside.sum(axis=1)
    falling = -np.sort(-np.where(state == FREE, charge, -np.inf if exactly else 0.0), axis=1)
    running = np.concatenate([np.zeros((len(charge), 1)), np.cumsum(falling, axis=1)], axis=1)
    rows, last = np.arange(len(charge)), np.clip(room, 0, charge.shape[1])
    total = np.where(inside, charge, 0.0).sum(axis=1) + running[rows, last]
    last_in = np.where(last > 0, falling[rows, np.maximum(last - 1, 0)], np.inf)
    first_out = np.where(last < charge.shape[1], falling[rows, np.minimum(last, charge.shape[1] - 1)], 0.0)
    return total, last_in, first_out


class Relaxation:
    """The relaxation of a program, and a bound at its dual points."""

    def __init__(self, program: Program, dual: DualBound) -> None:
        self.program, self.dual = program, dual
        self.method = Perspective(
            program.H,
            program.r,
            dual.d,
            program.linear,
            program.sizes,
            program.k,
            limits=program.limits,
            fixed_values=program.held,
        )
        self.method.many_steps = program.n >= COMPILED

    def root(self) -> NodeBatch:
        """The node where nothing is decided but what the problem decides."""
        return self.method.start(self.program.state[None].copy())

    def bound(self, nodes: NodeBatch, cut: float, steps: int, patience: int, deadline: float = np.inf) -> Vector:
        """Bounds of the nodes, each as far as it rises below the cut; the nodes move, and what is decided on the way stays so.

        What was decided against is known not to fall below the cut, and no more: a node where that happened has no
        higher bound.
        """
        best, before_all = np.full(len(nodes), -np.inf), nodes.state.copy()
        every = self.method.steps_per_bound
        places, now, last = np.arange(len(nodes)), nodes.gather(np.arange(len(nodes))), np.zeros(len(nodes), dtype=int)
        for step in range(1, steps + 1):
            self.method.step(now)
            if step % every:
                continue
            report_pause()
            sizes = replace(self.program.sizes, max_above=now.max_above, max_below=now.max_below)
            found = self.dual.at(now.x, now.equation_multipliers, self.method.row_multipliers(now), now.state, sizes)
            before = best[places]
            best[places] = np.maximum(before, found.value)
            rises = (
                best[places] > before + GAIN * np.maximum(cut - before, 0.0)
                if step > every
                else np.ones(len(now), dtype=bool)
            )
            last[rises | screen(now.state, found, self.program.k, cut)] = step
            over = (best[places] >= cut) | (step - last > patience) | ~(now.state == FREE).any(axis=1)
            if over.all() or time.perf_counter() >= deadline:
                break
            if (~over).mean() < FEW:
                nodes.scatter(places[over], now.gather(over))
                places, now, last = places[~over], now.gather(~over), last[~over]
        nodes.scatter(places, now)
        return np.where((nodes.state != before_all).any(axis=1), np.minimum(best, cut), best)


def screen(state: Vector, found: Bounds, k: int, cut: float) -> Vector:
    """Decide, in place, what the bounds alone decide; which nodes that changed."""
    free, value, charge = state == FREE, found.value[:, None], found.charge
    last_in, first_out = found.last_in, found.first_out
    room = k - (state == IN).sum(axis=1)
    many = (free.sum(axis=1) > room) & np.isfinite(found.value)
    with np.errstate(invalid="ignore"):
        enter = free & many[:, None] & (charge >= last_in) & (charge > first_out) & (value + charge - first_out >= cut)
        leave = free & many[:, None] & (charge < last_in) & (value + last_in - charge >= cut)
    full = (room - enter.sum(axis=1) <= 0) & many
    leave |= free & full[:, None] & ~enter
    state[enter], state[leave] = IN, OUT
    return np.asarray((enter | leave).any(axis=1))
