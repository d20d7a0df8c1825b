"""Losses h(Ax) with a ridge: the bound is that of h itself, at points that its second-order model leads to.

With g(x) = h(Ax) and D the ridge, convexity of h at any image u gives g(x) ≥ h(u) + ∇h(u)ᵀ(Ax − u), which is all that
`bound` needs of g, however u was found, and even if u is the image of no x. So the relaxation is that of a quadratic
model, taken anew at the root until that brings nothing; the model decides only how good the bound is.

One variable may be without a ridge, an intercept: u is moved along its column a to where aᵀ∇h(u) = 0, so that its
conjugate is only rounding times the largest size it can have. That size follows from a known value: h lies above its
tangent at a point far out along a.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from ksparse.certify.bound import DualBound, Relaxation
from ksparse.certify.program import ScaledProblem
from ksparse.certify.quadratic_family import ROOT_PATIENCE, ROOT_STEPS, QuadraticFamily
from ksparse.data.model import Gram
from ksparse.data.products import columns, dense
from ksparse.losses.base import Composite, count_evaluations
from ksparse.numerics.bound import rounding_of
from ksparse.numerics.qp import shortest
from ksparse.numerics.relaxation import NodeBatch
from ksparse.numerics.relaxation_kernels import IN, OUT
from ksparse.search.candidate import Candidate
from ksparse.search.problem import SupportProblem
from ksparse.util.arrays import Vector
from ksparse.util.resources import OutOfTimeError, pause

DOUBLINGS = 40  # maximum number of doublings of a step along a column
MARGIN = 1e-9  # relative to the terms of a largest size: far more than their rounding
MODELS = 10  # maximum number of second-order models tried at the root
MIN_PROGRESS = 0.01  # fraction of the distance to the cutoff that another model must close


class SmoothBound(DualBound):
    """The bound for h(Ax) + ½xᵀDx."""

    def __init__(self, problem: ScaledProblem, composite: Composite) -> None:
        variables, unit, scale = problem.supports.variables, problem.unit, problem.scale
        A, ridge = composite.A, composite.ridge[variables]
        self._composite, self._A = composite, A if variables.size == A.shape[1] else columns(A, variables)
        zero = np.zeros(self._A.shape[0])
        self._h0, self._slope0 = composite.value(zero), np.asarray(composite.slope(zero))
        self._length = np.sqrt(Gram(self._A).diagonal()) * unit / scale
        super().__init__(problem, ridge * unit**2 / scale)
        self._unpenalised = np.flatnonzero(ridge == 0)
        self._column = dense(columns(self._A, self._unpenalised))[:, 0] if self._unpenalised.size == 1 else None

    def affine_minorant(self, w: Vector, state: Vector) -> tuple[Vector, Vector, Vector, Vector]:
        """Return h linearised at the images of the rows of w, moved along the column without a ridge."""
        unit, scale, rows = self.problem.unit, self.problem.scale, []
        count_evaluations(len(w), len(w))
        for fixed, row in zip(state, w, strict=True):
            u = np.asarray(self._A @ (row * unit))
            if self._column is not None and fixed[self._unpenalised] != OUT:
                u = u + _step_to_stationary(self._composite, u, self._column) * self._column
            h, slope = self._composite.value(u), np.asarray(self._composite.slope(u))
            # slopes may cancel larger terms
            terms = np.abs(slope) + np.abs(slope - self._slope0) + np.abs(self._slope0)
            rounding, length = rounding_of(u.size), float(np.sqrt(terms @ terms))
            value_error = rounding * (abs(h) + abs(self._h0) + float(terms @ np.abs(u))) / scale
            gradient = np.asarray(self._A.T @ slope) * unit / scale
            rows.append(((h - float(slope @ u)) / scale, gradient, value_error, rounding * length * self._length))
        value, gradients, value_errors, gradient_errors = map(np.array, zip(*rows, strict=True))
        return value, gradients, value_errors, gradient_errors


def _step_to_stationary(composite: Composite, u: Vector, a: Vector) -> float:
    """Return δ with aᵀ∇h(u + δa) ≈ 0, which increases with δ, since h is convex; 0 if none is found."""
    from scipy.optimize import brentq  # here: scipy.optimize takes as long to import as all of ksparse

    def slope(delta: float) -> float:
        return float(a @ composite.slope(u + delta * a))

    here, step = slope(0.0), 1.0 / float(np.abs(a).max(initial=1e-300))
    way = -np.sign(here)
    for _ in range(DOUBLINGS):
        if here == 0.0 or not np.isfinite(slope(way * step)):
            return 0.0
        if np.sign(slope(way * step)) != np.sign(here):  # their product may underflow
            return float(brentq(slope, *sorted((0.0, way * step)), xtol=1e-300, rtol=8.9e-16, maxiter=100, disp=False))
        step *= 2.0
    return 0.0


def _largest_size(composite: Composite, others: Vector, a: Vector, way: float, threshold: float, room: float) -> float:
    """Bound how far a variable without a ridge can be from 0 on one side, for values up to `threshold`.

    h(Ax) ≥ h(u) + sᵀ(Ax − u) with s = ∇h(u) and u on that side of its column a; the other variables are held by their
    ridge: sᵀA₋x ≤ ‖ρ^−½A₋ᵀs‖·√(2·room), for ½Σρx² ≤ room.
    """
    found, step = np.inf, 1.0 / float(np.abs(a).max(initial=1e-300))
    for _ in range(DOUBLINGS):
        u = way * step * a
        h, s = composite.value(u), np.asarray(composite.slope(u))
        slope = way * float(a @ s)
        if not np.isfinite(h) or not np.isfinite(s).all():
            break
        if slope > 0:
            weighted = np.asarray(composite.A.T @ s)[others] / np.sqrt(composite.ridge[others])
            held = float(np.linalg.norm(weighted)) * np.sqrt(2.0 * room)
            size = abs(h) + float(np.abs(s) @ np.abs(u)) + held + abs(threshold)
            found = min(found, (threshold - h + float(s @ u) + held + MARGIN * size) / slope)
        step *= 2.0
    return max(found, 0.0)


class SmoothFamily(QuadraticFamily):
    """Losses h(Ax) with a ridge; a node is one row of `NodeBatch`, as for the second-order model."""

    def __init__(self, whole: SupportProblem, composite: Composite, best: Candidate, threshold: float) -> None:
        self.whole, self.composite, self.best = whole, composite, best
        self._sizes = self._unpenalised_sizes(threshold)
        model = self._model(best.full(whole.n))
        assert model is not None
        super().__init__(model)

    def _model(self, x: Vector) -> ScaledProblem | None:
        """Return the problem with the second-order model at x; None if it overflows there. All have one scale."""
        model = self.whole.can.model_at(x)
        if model is None:
            return None
        problem = ScaledProblem.of(self.whole, model, self.best, abs(self.best.value) or 1.0)
        if self._sizes is None:
            return problem
        j, up, down = self._sizes
        at, sizes, unit = problem.supports.variables == j, problem.sizes, problem.unit
        above = np.where(at, np.minimum(sizes.max_above, up / unit), sizes.max_above)
        below = np.where(at, np.minimum(sizes.max_below, down / unit), sizes.max_below)
        return replace(problem, sizes=replace(sizes, max_above=above, max_below=below))

    def _unpenalised_sizes(self, threshold: float) -> tuple[int, float, float] | None:
        """Return the one variable without a ridge and its largest sizes above and below 0, if known."""
        variables = np.flatnonzero(self.whole.allowed)
        ridge, least = self.composite.ridge[variables], self.whole.loss.least
        if (ridge == 0).sum() != 1 or least == -np.inf:
            return None
        j, others, room = int(variables[ridge == 0][0]), variables[ridge > 0], max(0.0, threshold - least)
        a = dense(columns(self.composite.A, np.array([j])))[:, 0]
        up, down = (_largest_size(self.composite, others, a, way, threshold, room) for way in (1.0, -1.0))
        return j, up, down

    def root(self, cutoff: float, deadline: float) -> tuple[float, NodeBatch]:
        """Bound the root with the models at one solution of the relaxation after another, while the bound rises."""
        best, found, given = -np.inf, None, self.problem.state
        state = self.problem.with_implied_fixings().state
        for _ in range(MODELS):
            try:
                pause()
                relaxation = Relaxation(SmoothBound(replace(self.problem, state=state), self.composite))
                pause()
            except OutOfTimeError:
                if found is None:
                    raise
                break
            node = relaxation.root()
            bound = float(relaxation.bound(node, cutoff, ROOT_STEPS, ROOT_PATIENCE, deadline)[0])
            state = node.state[0]
            rises = bound > best + MIN_PROGRESS * max(cutoff - best, 0.0)
            if found is None or bound > best:
                best, found = bound, (relaxation, node)
            if best >= cutoff or not rises or time.perf_counter() >= deadline:
                break
            x = np.zeros(self.whole.n)
            x[self.supports.variables] = node.y[0] * self.problem.unit
            model = self._model(x)
            if model is None:
                break
            self.problem = model
        assert found is not None
        self.relaxation, node = found
        self.problem, node.state = self.relaxation.problem, state[None].copy()
        if not self.supports.propagate(node.state[0]):
            return max(best, cutoff), node  # no support below the cutoff satisfies the rules
        return min(best, cutoff) if (state != given).any() else best, node

    def leaf_bound(self, support: Vector, x: Vector) -> float:
        """Return the bound at the best point of a support, where it is tight: q is Dx there, except at bounds of x."""
        problem, dual = self.problem, self.relaxation.dual
        inside = np.isin(problem.supports.variables, support)
        w = np.zeros(self.whole.n)
        w[support] = x
        w = (w[problem.supports.variables] / problem.unit)[None]
        state = np.where(inside, IN, OUT).astype(np.int8)[None]
        gradient = dual.affine_minorant(w, state)[1][0] + dual.d * w[0]
        E = problem.linear.E[:, inside]
        multipliers = shortest(E.T, gradient[inside]) if E.size else np.zeros(len(E))
        return float(dual.at(w, multipliers[None], np.zeros((1, problem.linear.h.size)), state).value[0])
