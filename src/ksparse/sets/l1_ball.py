"""The ℓ1 ball."""

from __future__ import annotations

from ksparse.arrays import Array, namespace, norm_1
from ksparse.checks import check_number
from ksparse.sets.base import ConvexSet, Vector
from ksparse.sets.simplex import project_simplex


class L1Ball(ConvexSet):
    """{x : ‖x‖₁ ≤ radius}."""

    def __init__(self, radius: float) -> None:
        self.radius = self.size = check_number(radius, "radius", above=0)

    def project(self, u: Array) -> Array:
        if norm_1(u) <= self.radius:
            return u
        xp = namespace(u)
        return xp.sign(u) * project_simplex(xp.abs(u), self.radius)

    def violation(self, x: Array) -> float:
        return max(norm_1(x) - self.radius, 0.0)

    def restrict(self, support: Vector) -> L1Ball:
        return self

    def __repr__(self) -> str:
        return f"L1Ball({self.radius:g})"
