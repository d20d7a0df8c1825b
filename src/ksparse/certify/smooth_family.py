"""Losses h(Ax) with a ridge, for the tree: the bound is that of h itself, at points that its second-order model leads to.

With g(x) = h(Ax) and D the ridge, convexity of h at any image u gives g(x) ≥ h(u) + ∇h(u)ᵀ(Ax − u): what `dual_bound`
needs of g, without a word of how u was found, nor of whether it is the image of anything. So the relaxation is that of
a quadratic model, taken anew at the root until that brings nothing, and how good the model is decides only how good the
bound is.

One variable may be without a ridge, an intercept: u is moved along its column a to where aᵀ∇h(u) = 0, so that nothing
is charged for it but rounding times the largest size it can have. That follows from a value that is known: h lies above
its tangent at a point far out along a.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from ksparse.certify.bound import DualBound, Linearised, Relaxation
from ksparse.certify.program import Program
from ksparse.certify.quadratic_family import QuadraticFamily
from ksparse.certify.tree import TreeSettings
from ksparse.data.model import Gram
from ksparse.data.products import columns, dense
from ksparse.losses.base import Composite
from ksparse.numerics.bound import rounding_of
from ksparse.numerics.qp import shortest
from ksparse.numerics.relaxation import NodeBatch
from ksparse.numerics.relaxation_kernels import IN, OUT
from ksparse.search.candidate import Candidate
from ksparse.search.problem import SupportProblem
from ksparse.util.arrays import Vector
from ksparse.util.evaluations import count
from ksparse.util.resources import OutOfTimeError, pause

DOUBLINGS = 40  # of a step along a column
MARGIN = 1e-9  # of the terms that an end is computed from: far more than their rounding


class SmoothBound(DualBound):
    """The bound of h(Ax) + ½xᵀDx."""

    def __init__(self, program: Program, composite: Composite) -> None:
        whole = program.names.size == composite.A.shape[1]
        self._composite, self._A = composite, composite.A if whole else columns(composite.A, program.names)
        zero = np.zeros(self._A.shape[0])
        self._h0, self._slope0 = composite.value(zero), np.asarray(composite.slope(zero))
        self._length = np.sqrt(Gram(self._A).diagonal()) * program.per / program.scale
        super().__init__(program, composite.ridge[program.names] * program.per**2 / program.scale)
        self._unheld = np.flatnonzero(composite.ridge[program.names] == 0)
        self._along = dense(columns(self._A, self._unheld))[:, 0] if self._unheld.size == 1 else None

    def linearised(self, w: Vector, state: Vector) -> Linearised:
        """g and its slope at the images of each w."""
        per, scale, nodes = self.program.per, self.program.scale, len(w)
        value, gradient, blur, off = np.zeros(nodes), np.zeros(w.shape), np.zeros(nodes), np.zeros(w.shape)
        count(nodes, nodes)
        for i, row in enumerate(w):
            u = np.asarray(self._A @ (row * per))
            if self._along is not None and state[i, self._unheld] != OUT:  # else it costs nothing anyway
                u = u + _level(self._composite, u, self._along) * self._along
            h, slope = self._composite.value(u), np.asarray(self._composite.slope(u))
            value[i], gradient[i] = (h - float(slope @ u)) / scale, np.asarray(self._A.T @ slope) * per / scale
            rounding, size = rounding_of(u.size), np.abs(u)
            terms = (
                np.abs(slope) + np.abs(slope - self._slope0) + np.abs(self._slope0)
            )  # a slope may be the difference of larger ones
            blur[i] = rounding * (abs(h) + abs(self._h0) + float(terms @ size)) / scale
            off[i] = rounding * float(np.sqrt(terms @ terms)) * self._length
        return Linearised(value, gradient, blur, off)


def _level(composite: Composite, u: Vector, a: Vector) -> float:
    """δ with aᵀ∇h(u + δa) = 0, or nearly; 0 where none is found. The sum rises with δ, since h is convex."""
    from scipy.optimize import brentq  # here: scipy.optimize takes as long to import as all of ours

    def pull(delta: float) -> float:
        return float(a @ composite.slope(u + delta * a))

    here, step = pull(0.0), 1.0 / float(np.abs(a).max(initial=1e-300))
    way = -np.sign(here)
    for _ in range(DOUBLINGS):
        if here == 0.0 or not np.isfinite(pull(way * step)):
            return 0.0
        if np.sign(pull(way * step)) != np.sign(here):  # not by their product, which may vanish
            return float(brentq(pull, *sorted((0.0, way * step)), xtol=1e-300, rtol=8.9e-16, maxiter=100, disp=False))
        step *= 2.0
    return 0.0


def _reach(composite: Composite, others: Vector, a: Vector, way: float, edge: float, room: float) -> float:
    """How far a variable without a ridge can be from 0 on one side at a value of at most `edge`, the others held by theirs.

    h(Ax) ≥ h(u) + sᵀ(Ax − u) with s = ∇h(u) and u on that side of its column a; sᵀA₋x ≤ ‖ρ^−½A₋ᵀs‖·√(2·room), for ½Σρx²
    ≤ room.
    """
    found, step = np.inf, 1.0 / float(np.abs(a).max(initial=1e-300))
    for _ in range(DOUBLINGS):
        u = way * step * a
        h, s = composite.value(u), np.asarray(composite.slope(u))
        pull = way * float(a @ s)
        if not np.isfinite(h) or not np.isfinite(s).all():
            break
        if pull > 0:
            pulls = np.asarray(composite.A.T @ s)[others] / np.sqrt(composite.ridge[others])
            held = float(np.linalg.norm(pulls)) * np.sqrt(2.0 * room)
            size = abs(h) + float(np.abs(s) @ np.abs(u)) + held + abs(edge)
            found = min(found, (edge - h + float(s @ u) + held + MARGIN * size) / pull)
        step *= 2.0
    return max(found, 0.0)


class SmoothFamily(QuadraticFamily):
    """One node is one row of `NodeBatch`, as for the model."""

    def __init__(
        self,
        problem: SupportProblem,
        composite: Composite,
        best: Candidate,
        settings: TreeSettings,
        n_jobs: int | None,
        edge: float,
    ) -> None:
        self.problem, self.composite, self.best = problem, composite, best
        self._ends = self._ends_of(edge)
        self.scale = abs(best.value) or 1.0  # one for all models: the tree compares their bounds
        super().__init__(self._program(best.full(problem.n)), settings, n_jobs)

    def _program(self, x: Vector) -> Program:
        """That of the second-order model at x."""
        problem = self.problem
        model = problem.model_at(x)
        assert model is not None
        program = Program.of(problem, model, self.problem.k, self.best, self.scale).ruled(problem, self.problem.asked)
        if self._ends is None:
            return program
        j, up, down = self._ends
        at, sizes = program.names == j, program.sizes
        bounded = [
            np.where(at, np.minimum(far, end / program.per), far)
            for far, end in ((sizes.max_above, up), (sizes.max_below, down))
        ]
        return replace(program, sizes=replace(sizes, max_above=bounded[0], max_below=bounded[1]))

    def _ends_of(self, edge: float) -> tuple[int, float, float] | None:
        """The one variable without a ridge, and how far from 0 it can be on either side; None where there is none, or nothing is known."""
        problem, names = self.problem, np.flatnonzero(self.problem.allowed)
        ridge, least = self.composite.ridge[names], problem.loss.least
        if (ridge == 0).sum() != 1 or least == -np.inf:
            return None
        j = int(names[ridge == 0][0])
        a = dense(columns(self.composite.A, np.array([j])))[:, 0]
        up, down = (
            _reach(self.composite, names[ridge > 0], a, way, edge, max(0.0, edge - least)) for way in (1.0, -1.0)
        )
        return j, up, down

    def root(self, cut: float, deadline: float) -> tuple[float, NodeBatch]:
        """Models at one answer of the relaxation after the other, while the bound rises."""
        best, found = -np.inf, None
        given = self.program.state
        state = self.program.followed().state
        for _ in range(self.settings.models):
            program = self.program.decided(state)
            try:
                pause()
                relaxation = Relaxation(program, SmoothBound(program, self.composite))
                pause()
            except OutOfTimeError:
                if found is None:
                    raise
                break
            node = relaxation.root()
            bound = float(
                relaxation.bound(node, cut, self.settings.root_steps, self.settings.root_patience, deadline)[0]
            )
            state = node.state[0]
            rises = bound > best + self.settings.rises * max(cut - best, 0.0)
            if found is None or bound > best:
                best, found = bound, (relaxation, node)
            if best >= cut or not rises or time.perf_counter() >= deadline:
                break
            x = np.zeros(self.problem.n)
            x[program.names] = node.y[0] * program.per
            if self.problem.model_at(x) is None:  # it overflows there
                break
            self.program = self._program(x)
        assert found is not None
        self.relaxation, node = found
        self.program, node.state = self.relaxation.program, state[None].copy()
        if not self.program.propagate(node.state[0]):
            return max(best, cut), node  # nothing below the cut obeys
        return min(best, cut) if (state != given).any() else best, node

    def leaf_bound(self, support: Vector, x: Vector) -> float:
        """The bound at the best point of a support, where it meets the value: q is Dx there, but for bounds that hold x."""
        program, dual = self.program, self.relaxation.dual
        inside = np.isin(program.names, support)
        w = np.zeros(self.problem.n)
        w[support] = x
        w = (w[program.names] / program.per)[None]
        state = np.where(inside, IN, OUT).astype(np.int8)
        pull = dual.linearised(w, state[None]).gradient[0] + dual.d * w[0]
        E = program.linear.E[:, inside]
        price = shortest(E.T, pull[inside]) if E.size else np.zeros(len(E))
        return float(dual.at(w, price[None], np.zeros((1, program.linear.h.size)), state[None]).value[0])
