"""Losses h(Ax) with a ridge, for the tree: the bound is that of h itself, at points that its second-order model leads to.

With g(x) = h(Ax) and D the ridge, convexity of h at any image u gives g(x) ≥ h(u) + ∇h(u)ᵀ(Ax − u): what `dual_bound` needs of g, without a
word of how u was found, nor of whether it is the image of anything. So the relaxation is that of a quadratic model, taken anew at the root
until that brings nothing, and how good the model is decides only how good the bound is.
"""

from __future__ import annotations

import time

import numpy as np

from ksparse.base.arrays import Vector
from ksparse.certify.dual_bound import DualBound, Linearised
from ksparse.certify.program import Program
from ksparse.certify.quadratic import QuadraticFamily
from ksparse.certify.relaxation import Relaxation
from ksparse.certify.settings import TreeSettings
from ksparse.linalg.bound import rounding_of
from ksparse.linalg.composite import Composite
from ksparse.linalg.curvature import Gram
from ksparse.linalg.matrix import columns
from ksparse.linalg.perspective import Nodes
from ksparse.linalg.states import IN, OUT
from ksparse.search.candidate import Candidate
from ksparse.search.problem import SupportProblem


class SmoothBound(DualBound):
    """The bound of h(Ax) + ½xᵀDx."""

    def __init__(self, program: Program, composite: Composite) -> None:
        self._composite, self._A = composite, columns(composite.A, program.names)
        zero = np.zeros(self._A.shape[0])
        self._h0, self._slope0 = composite.value(zero), np.asarray(composite.slope(zero))
        self._length = np.sqrt(Gram(self._A).diagonal()) * program.per / program.scale
        super().__init__(program, composite.ridge[program.names] * program.per**2 / program.scale)

    def linearised(self, w: Vector) -> Linearised:
        """g and its slope at the images of each w."""
        per, scale, count = self.program.per, self.program.scale, len(w)
        value, gradient, blur, off = np.zeros(count), np.zeros(w.shape), np.zeros(count), np.zeros(w.shape)
        for i, row in enumerate(w):
            u = np.asarray(self._A @ (row * per))
            h, slope = self._composite.value(u), np.asarray(self._composite.slope(u))
            value[i], gradient[i] = (h - float(slope @ u)) / scale, np.asarray(self._A.T @ slope) * per / scale
            rounding, size = rounding_of(u.size), np.abs(u)
            terms = np.abs(slope) + np.abs(slope - self._slope0) + np.abs(self._slope0)  # a slope may be the difference of larger ones
            blur[i] = rounding * (abs(h) + abs(self._h0) + float(terms @ size)) / scale
            off[i] = rounding * float(np.sqrt(terms @ terms)) * self._length
        return Linearised(value, gradient, blur, off)


class SmoothFamily(QuadraticFamily):
    """One node is one row of `Nodes`, as for the model."""

    def __init__(self, problem: SupportProblem, composite: Composite, best: Candidate, settings: TreeSettings, n_jobs: int | None) -> None:
        self.problem, self.composite, self.best = problem, composite, best
        self.scale = abs(best.value) or 1.0  # one for all models: the tree compares their bounds
        super().__init__(self._program(best.full(problem.n)), settings, n_jobs)

    def _program(self, x: Vector) -> Program:
        """That of the second-order model at x."""
        pieces = self.problem.pieces
        model = pieces.model_at(x)
        assert model is not None
        return Program.of(pieces, model, self.problem.k, self.best, self.scale)

    def root(self, cut: float, deadline: float) -> tuple[float, Nodes]:
        """Models at one answer of the relaxation after the other, while the bound rises."""
        best, found = -np.inf, None
        given = state = self.program.state
        for _ in range(self.settings.models):
            program = self.program.decided(state)
            relaxation = Relaxation(program, SmoothBound(program, self.composite))
            node = relaxation.root()
            bound = float(relaxation.bound(node, cut, self.settings.root_steps, self.settings.root_patience, deadline)[0])
            state = node.state[0]
            rises = bound > best + self.settings.rises * max(cut - best, 0.0)
            if found is None or bound > best:
                best, found = bound, (relaxation, node)
            if best >= cut or not rises or time.perf_counter() >= deadline:
                break
            x = np.zeros(self.problem.n)
            x[program.names] = node.y[0] * program.per
            if self.problem.pieces.model_at(x) is None:  # it overflows there
                break
            self.program = self._program(x)
        assert found is not None
        self.relaxation, node = found
        self.program, node.state = self.relaxation.program, state[None].copy()
        return min(best, cut) if (state != given).any() else best, node

    def leaf_bound(self, support: Vector, x: Vector) -> float:
        """The bound at the best point of a support, where it meets the value: q is Dx there, but for bounds that hold x."""
        program, dual = self.program, self.relaxation.dual
        inside = np.isin(program.names, support)
        w = np.zeros(self.problem.n)
        w[support] = x
        w = (w[program.names] / program.per)[None]
        pull = dual.linearised(w).gradient[0] + dual.d * w[0]
        E = program.linear.E[:, inside]
        price = np.linalg.lstsq(E.T, pull[inside], rcond=None)[0] if E.size else np.zeros(len(E))
        state = np.where(inside, IN, OUT).astype(np.int8)
        return float(dual.at(w, price[None], np.zeros((1, program.linear.h.size)), state[None]).value[0])
