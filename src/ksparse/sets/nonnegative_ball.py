"""The part of the Euclidean ball where no entry is negative."""

from __future__ import annotations

from ksparse.arrays import Array, keep, namespace, norm, top_k
from ksparse.checks import check_number
from ksparse.sets.base import ConvexSet, Vector


class NonnegativeBall(ConvexSet):
    """{x : x ≥ 0, ‖x‖₂ ≤ radius}; the projection clips, then scales: the orthant is a cone."""

    has_shrink = True
    has_joint = True

    def __init__(self, radius: float = 1) -> None:
        self.radius = self.size = check_number(radius, "radius", above=0)

    def project(self, u: Array) -> Array:
        return self._into_ball(_positive(u))

    def _into_ball(self, x: Array) -> Array:
        length = norm(x)
        return x if length <= self.radius else x * (self.radius / length)

    def violation(self, x: Array) -> float:
        return max(norm(x) - self.radius, -float(namespace(x).min(x)), 0.0)

    def restrict(self, support: Vector) -> NonnegativeBall:
        return self

    def shrink(self, u: Array, t: float) -> Array:
        return self._into_ball(_positive(u - t))

    def project_sparse(self, u: Array, k: int) -> Array:
        x = _positive(u)
        return self._into_ball(keep(x, top_k(x, k)))

    def __repr__(self) -> str:
        return f"NonnegativeBall({self.radius:g})"


def _positive(u: Array) -> Array:
    xp = namespace(u)
    return xp.where(u > 0, u, xp.zeros_like(u))
