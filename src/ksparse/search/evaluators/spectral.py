"""−xᵀVx on a Euclidean ball: the leading eigenvector of V_SS, as long as the ball allows."""

from __future__ import annotations

import numpy as np

from ksparse.data.model import QuadraticModel
from ksparse.numerics.bound import EPS
from ksparse.numerics.eigen import leading_eigenvector
from ksparse.search.candidate import Candidate
from ksparse.util.arrays import Vector


class Spectral:
    """constant − λ_max(V_SS)·radius²."""

    direct = True

    def __init__(self, model: QuadraticModel, radius: float) -> None:
        self.model, self.radius = model, radius

    def solve(self, support: Vector, hint: Candidate | None) -> Candidate:
        start = None if hint is None else hint.full(self.model.n)[support]
        value, x = leading_eigenvector(-0.5 * self.model.block(support), start)
        if value <= 0:  # no variance: 0 is as good as anything
            return Candidate.unpriced(support, np.zeros(support.size), self.model.constant)
        x = x * (
            self.radius if x[np.argmax(np.abs(x))] > 0 else -self.radius
        )  # the sign is free: the largest entry is positive
        return Candidate.unpriced(support, x, self.model.constant - value * self.radius**2)

    def distinct(self, support: Vector) -> Vector:
        return support

    def lower_bound(self, support: Vector, found: Candidate) -> float:
        V = -0.5 * self.model.block(support)
        blur = (8.0 * EPS + self.model.noise.entry_error) * support.size * float(np.abs(V).max())
        return self.model.constant - max(0.0, float(np.linalg.eigvalsh(V)[-1]) + blur) * self.radius**2
