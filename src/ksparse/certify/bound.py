"""Lower bounds of many nodes at once: a bound from any dual point, and the steps that lead to good dual points.

Split φ(x) = g(x) + ½xᵀDx with D = diag(d) and g convex: of a quadratic g(x) = ½xᵀMx − rᵀx + constant with M = H − D
positive semidefinite. For any w, λ and any μ ≥ 0, with q = −∇g(w) + Eᵀλ − Gᵀμ, every x of the problem has

    φ(x) ≥ g(w) + ∇g(w)ᵀ(x − w) + λᵀ(f − Ex) + μᵀ(Gx − h) + ½xᵀDx        (convexity of g; Ex = f; Gx ≤ h)
         = g(w) − ∇g(w)ᵀw + λᵀf − μᵀh − Σ (qᵢxᵢ − ½dᵢxᵢ²)
         ≥ g(w) − ∇g(w)ᵀw + λᵀf − μᵀh − Σ_{i in} cᵢ(qᵢ) − (the sum of the t largest cᵢ(qᵢ) of the free i),

with t = k − #in, where the conjugate cᵢ(q) is the largest qx − ½dᵢx² over the sizes that xᵢ may have. For a free i it
is at least 0, since xᵢ = 0 is allowed (unless exactly k variables are to be nonzero). This is the Fenchel dual of the
perspective relaxation, whose value the best dual point reaches. It holds at every dual point, so that no solver's
tolerance can make it wrong. Rounding is subtracted: where qᵢ may be wrong by some amount, cᵢ rises by that amount times
the largest |xᵢ|.

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
from ksparse.certify.program import ScaledProblem
from ksparse.numerics.relaxation import MagnitudeRange, NodeBatch, Perspective, TopSum
from ksparse.numerics.relaxation_kernels import FREE, IN, OUT
from ksparse.util.arrays import Vector
from ksparse.util.resources import report_pause

NEWTON_STEPS = 2  # on the multipliers of Ex = f
MIN_PROGRESS = 1e-3  # relative to the distance to the cutoff: a smaller rise counts as none
COMPACT_BELOW = 0.7  # if a smaller fraction of a batch is unfinished, continue with these nodes alone


@dataclass
class Bounds:
    """Bounds of several nodes (rows), with what fixing one variable would change."""

    value: Vector
    conjugates: Vector  # cᵢ of each variable, or of its group, with its rounding
    smallest_selected: Vector  # as in `TopSum`
    largest_unselected: Vector
    selected: Vector
    x: Vector  # at which the conjugates are attained


class DualBound(ABC):
    """The bound for one split of φ; the subclasses define g."""

    def __init__(self, problem: ScaledProblem, d: Vector) -> None:
        self.problem, self.d = problem, d

    @abstractmethod
    def affine_minorant(self, w: Vector, state: Vector) -> tuple[Vector, Vector, Vector, Vector]:
        """Return affine functions below g, one for each row of w, for nodes with these fixings.

        These are g(w) − ∇g(w)ᵀw and ∇g(w), then the errors of both due to rounding.
        """

    def at(self, w: Vector, lam: Vector, mu: Vector, state: Vector, sizes: MagnitudeRange | None = None) -> Bounds:
        """Return the bound at (w, λ, μ) for each node after steps on λ; `sizes`: of each node, or the problem's."""
        sizes = sizes or self.problem.sizes
        best = self._at(w, lam, mu, state, sizes)
        for _ in range(NEWTON_STEPS if lam.size else 0):
            lam = lam + self._newton_step(best, sizes)
            found = self._at(w, lam, mu, state, sizes)
            worse = ~(found.value > best.value)
            if worse.all():
                break
            for new, old in zip(vars(found).values(), vars(best).values(), strict=True):
                new[worse] = old[worse]
            best = found
        return best

    def _at(self, w: Vector, lam: Vector, mu: Vector, state: Vector, sizes: MagnitudeRange) -> Bounds:
        problem, rounding, size = self.problem, self.problem.rounding, np.abs(lam)
        E, f, G, h = problem.linear.E, problem.linear.f, problem.linear.G, problem.linear.h
        constant, gradient, error, q_error = self.affine_minorant(w, state)
        q = lam @ E - mu @ G - gradient
        q_error = q_error + rounding * (np.abs(gradient) + size @ np.abs(E) + mu @ np.abs(G))
        error = error + rounding * (size @ np.abs(f) + mu @ np.abs(h))
        conjugates, x = self.conjugates(q, q_error, state, sizes)
        limits = problem.supports.limits
        if limits is None:
            top = top_sum(conjugates, state, problem.supports.k, problem.exactly)
        else:
            top = limits.top_sum(conjugates, state, problem.exactly)
        counted = np.where(top.selected & np.isfinite(conjugates), conjugates, 0.0)  # conjugates may be of either sign
        error += rounding * np.abs(counted).sum(axis=1)
        value = constant + (lam @ f - mu @ h) - top.total - error
        value = np.where(np.isnan(value), -np.inf, value)  # overflow proves nothing
        return Bounds(value, top.values, top.smallest_selected, top.largest_unselected, top.selected, x)

    def conjugates(self, q: Vector, q_error: Vector, state: Vector, sizes: MagnitudeRange) -> tuple[Vector, Vector]:
        """Return cᵢ(q), with its rise where q is wrong by `q_error`, and the x at which it is attained."""
        d = self.d
        best, at = np.full(q.shape, -np.inf), np.zeros(q.shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            for slope, far, sign in ((q, sizes.max_above, 1.0), (-q, sizes.max_below, -1.0)):
                end = np.where(slope > 0.5 * d * (far + sizes.min_abs), np.inf, 0.0)  # without curvature
                x = np.minimum(np.maximum(np.where(d > 0, slope / d, end), sizes.min_abs), far)
                value = np.where(np.isinf(x), np.inf, x * (slope - 0.5 * d * x))
                better = (far > 0) & (far >= sizes.min_abs) & ~(value <= best)
                best, at = np.where(better, value, best), np.where(better, sign * x, at)
            may_be_0 = (state == OUT) | ((state == FREE) & (not self.problem.exactly)) | self.problem.vanishes
            zero = may_be_0 & ~(best > 0)
            best, at = np.where(zero, 0.0, best), np.where(zero, 0.0, at)
            largest = np.where(d > 0, np.maximum((np.abs(q) + q_error) / d, sizes.min_abs), np.inf)
            largest = np.minimum(largest, np.maximum(sizes.max_above, sizes.max_below))
            rise = np.where(q_error > 0, q_error * np.maximum(largest, 0.0), 0.0)
        return best + np.where(np.isnan(rise), np.inf, rise), at

    def _newton_step(self, at: Bounds, sizes: MagnitudeRange) -> Vector:
        """Return a step of λ from the bound's slope f − Ex and its curvature E·diag(1/d)·Eᵀ, at no bound of x."""
        E, d = self.problem.linear.E, self.d
        x = np.where(at.selected & np.isfinite(at.x), at.x, 0.0)
        slope, size = self.problem.linear.f - x @ E.T, np.abs(x)
        inner = at.selected & (size > sizes.min_abs) & (d > 0)
        inner &= size < np.where(x > 0, sizes.max_above, sizes.max_below)
        K = np.einsum("bi,ri,si->brs", np.where(inner, 1.0 / np.where(d > 0, d, 1.0), 0.0), E, E)
        K += 1e-9 * (1.0 + np.trace(K, axis1=1, axis2=2))[:, None, None] * np.eye(len(E))
        return np.linalg.solve(K, slope[:, :, None])[:, :, 0]


class QuadraticBound(DualBound):
    """The bound for g(x) = ½xᵀMx − rᵀx + constant, M = H − D."""

    def __init__(self, problem: ScaledProblem, d: Vector) -> None:
        super().__init__(problem, d)
        self.M = problem.H - np.diag(d)

    def affine_minorant(self, w: Vector, state: Vector) -> tuple[Vector, Vector, Vector, Vector]:
        """Return g linearised at w. As no entry of M exceeds 1, (Mw)ᵢ is wrong by at most the rounding times Σ|wⱼ|."""
        problem, rounding = self.problem, self.problem.rounding
        Mw, size = w @ self.M, np.abs(w).sum(axis=1)
        constant = problem.constant - 0.5 * np.einsum("ij,ij->i", w, Mw)
        gradient_error = rounding * (np.abs(problem.r) + size[:, None]) + problem.noise.linear_error
        return constant, Mw - problem.r, rounding * (abs(problem.constant) + size**2), gradient_error


def top_sum(conjugates: Vector, state: Vector, k: int, exactly: bool = False) -> TopSum:
    """Return the sum over the fixed-in and the t largest of the free variables; `GroupLimits.top_sum` without limits.

    Values of free variables must be at least 0, unless there must be exactly k; then the sum is −∞ if there are fewer.
    """
    inside, (nodes, n) = state == IN, state.shape
    falling = -np.sort(-np.where(state == FREE, conjugates, -np.inf if exactly else 0.0), axis=1)
    running = np.concatenate([np.zeros((nodes, 1)), np.cumsum(falling, axis=1)], axis=1)
    rows, t = np.arange(nodes), np.clip(k - inside.sum(axis=1), 0, n)
    total = np.where(inside, conjugates, 0.0).sum(axis=1) + running[rows, t]
    last = np.where(t > 0, falling[rows, np.maximum(t - 1, 0)], np.inf)[:, None]
    following = np.where(t < n, falling[rows, np.minimum(t, n - 1)], 0.0)[:, None]
    selected = inside | ((state == FREE) & (conjugates >= last))
    return TopSum(total, conjugates, last, following, selected)


class Relaxation:
    """The perspective relaxation of a problem, with a bound at its dual points."""

    def __init__(self, dual: DualBound) -> None:
        self.problem, self.dual = dual.problem, dual
        problem, supports = dual.problem, dual.problem.supports
        self.method = Perspective(
            problem.H, problem.r, dual.d, problem.linear, problem.sizes, supports.k,
            limits=supports.limits, fixed_values=problem.fixed_values,
        )  # fmt: skip
        self.method.many_steps = problem.n >= COMPILED

    def root(self) -> NodeBatch:
        """Return the node with no fixings but the problem's own."""
        return self.method.start(self.problem.state[None].copy())

    def bound(self, nodes: NodeBatch, cutoff: float, steps: int, patience: int, deadline: float = np.inf) -> Vector:
        """Return bounds of the nodes, each as high as it rises below the cutoff; update the nodes and fix variables.

        The values that a fixing excludes are known only to be at least the cutoff, so the bound of a node with new
        fixings is capped there.
        """
        best, state_before = np.full(len(nodes), -np.inf), nodes.state.copy()
        every = self.method.steps_per_bound
        places, now, last = np.arange(len(nodes)), nodes.gather(np.arange(len(nodes))), np.zeros(len(nodes), dtype=int)
        for step in range(1, steps + 1):
            self.method.step(now)
            if step % every:
                continue
            report_pause()
            sizes = replace(self.problem.sizes, max_above=now.max_above, max_below=now.max_below)
            found = self.dual.at(now.x, now.equation_multipliers, self.method.row_multipliers(now), now.state, sizes)
            before = best[places]
            best[places] = np.maximum(before, found.value)
            with np.errstate(invalid="ignore"):
                rises = (best[places] > before + MIN_PROGRESS * np.maximum(cutoff - before, 0.0)) | (step == every)
            last[rises | fix_by_bound(now.state, found, self.problem.supports.k, cutoff)] = step
            over = (best[places] >= cutoff) | (step - last > patience) | ~(now.state == FREE).any(axis=1)
            if over.all() or time.perf_counter() >= deadline:
                break
            if (~over).mean() < COMPACT_BELOW:
                nodes.scatter(places[over], now.gather(over))
                places, now, last = places[~over], now.gather(~over), last[~over]
        nodes.scatter(places, now)
        return np.where((nodes.state != state_before).any(axis=1), np.minimum(best, cutoff), best)


def fix_by_bound(state: Vector, found: Bounds, k: int, cutoff: float) -> Vector:
    """Fix variables, in place, if the other choice raises the bound to the cutoff; return which nodes changed."""
    free, value, conjugates = state == FREE, found.value[:, None], found.conjugates
    last, following = found.smallest_selected, found.largest_unselected
    room = k - (state == IN).sum(axis=1)
    usable = ((free.sum(axis=1) > room) & np.isfinite(found.value))[:, None]
    with np.errstate(invalid="ignore"):
        enter = (conjugates >= last) & (conjugates > following) & (value + conjugates - following >= cutoff)
        leave = (conjugates < last) & (value + last - conjugates >= cutoff)
    enter, leave = enter & free & usable, leave & free & usable
    full = (room - enter.sum(axis=1) <= 0)[:, None] & usable
    leave |= free & full & ~enter
    state[enter], state[leave] = IN, OUT
    return np.asarray((enter | leave).any(axis=1))
