"""A set of the user's, tried out at a few points: what it says of itself is held against its projection."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ksparse.util.arrays import Array, dot, epsilon, like, norm, sqnorm, to_float64

if TYPE_CHECKING:
    from ksparse.sets.base import ConvexSet


def try_out(C: ConvexSet, zero: Array) -> float:
    """Refuse what cannot be a projection onto C, or constraints that are not those of C. Returns how far from C it was seen to end.

    It leaves its points where they are, and ⟨Pu − Pv, u − v⟩ ≥ ‖Pu − Pv‖² for all u, v: both together hold for projections onto convex
    sets, and for no other map.
    """
    rng, n = np.random.default_rng(0), int(zero.shape[0])
    points = [like(size * rng.standard_normal(n), zero) for size in (0.1, 1.0, 10.0)] + [zero]
    images = [_projected(C, u) for u in points]
    slack = 1e-6 if epsilon(zero) < 1e-10 else 1e-3
    accuracy = max(_accuracy(C, u, Pu, slack) for u, Pu in zip(points, images, strict=True))
    for u, Pu in zip(points, images, strict=True):
        for v, Pv in zip(points, images, strict=True):
            if dot(Pu - Pv, u - v) < sqnorm(Pu - Pv) - slack * max(norm(u - v), norm(Pu - Pv)) ** 2:
                raise ValueError("project must be the projection onto a convex set: of two points it gave ones that no such set has")
    cut = C.restrict(np.arange(n))
    if not callable(getattr(cut, "project", None)):
        raise TypeError(f"restrict(support) must return a set, got {type(cut).__name__}")
    _try_constraints(C, points, images, slack)
    return accuracy


def _projected(C: ConvexSet, u: Array) -> Array:
    x = C.project(u + 0.0)
    if tuple(getattr(x, "shape", ())) != tuple(u.shape):
        raise ValueError(f"project(u) must have shape {tuple(u.shape)}, got {getattr(x, 'shape', type(x).__name__)}")
    return x


def _accuracy(C: ConvexSet, u: Array, Pu: Array, slack: float) -> float:
    """How far project(u) is from C, beside its size."""
    size = max(norm(u), norm(Pu), 1e-300)
    moved, outside = norm(_projected(C, Pu) - Pu), C.violation(Pu)
    if moved > slack * size:
        raise ValueError(f"project must leave the points of C where they are: project(project(u)) is {moved:.3g} away from project(u)")
    if outside > slack * max(1.0, size):
        raise ValueError(f"violation must be 0 on C, but violation(project(u)) = {outside:.3g}")
    return max(moved, outside) / max(1.0, size)


def _try_constraints(C: ConvexSet, points: list[Array], images: list[Array], slack: float) -> None:
    """The linear constraints that proofs rest on against C, where there are any."""
    linear = C.as_linear(int(points[0].shape[0]))
    if linear is None:
        return
    for u, Pu in zip(points, images, strict=True):
        size = slack * max(1.0, norm(u), norm(Pu))
        broken, missed = linear.violation(to_float64(Pu)), linear.violation(to_float64(u))
        if broken > size:
            raise ValueError(f"as_linear must be C itself, but project(u) breaks it by {broken:.3g}")
        if norm(u - Pu) > size >= missed and C.violation(u) > size:
            raise ValueError(f"as_linear must be C itself, but it holds a point that project moves by {norm(u - Pu):.3g}")
