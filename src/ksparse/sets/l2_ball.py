"""The Euclidean ball."""

from __future__ import annotations

from ksparse.arrays import Array, keep, namespace, norm, top_k
from ksparse.checks import check_number
from ksparse.sets.base import ConvexSet, Vector
from ksparse.sets.whole_space import soft_threshold


class L2Ball(ConvexSet):
    """{x : ‖x‖₂ ≤ radius}."""

    has_shrink = True
    has_joint = True

    def __init__(self, radius: float = 1) -> None:
        self.radius = self.size = check_number(radius, "radius", above=0)

    def project(self, u: Array) -> Array:
        length = norm(u)
        return u if length <= self.radius else u * (self.radius / length)

    def violation(self, x: Array) -> float:
        return max(norm(x) - self.radius, 0.0)

    def restrict(self, support: Vector) -> L2Ball:
        return self

    def shrink(self, u: Array, t: float) -> Array:
        # scaling a soft-thresholded point keeps its subgradient of the norm, so the two maps compose (Yu 2013)
        return self.project(soft_threshold(u, t))

    def project_sparse(self, u: Array, k: int) -> Array:
        return self.project(keep(u, top_k(namespace(u).abs(u), k)))

    def __repr__(self) -> str:
        return f"L2Ball({self.radius:g})"
