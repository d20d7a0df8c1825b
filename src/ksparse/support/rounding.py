"""Rounding (paper, Sec. 6.2): keep the k largest entries, re-solve the k-variable problem over C, the rest fixed to 0."""

from __future__ import annotations

import math

from ksparse.arrays import Array, embed, namespace, take, to_float64
from ksparse.losses import Loss
from ksparse.sets import ConvexSet
from ksparse.sets.base import Vector
from ksparse.support.polish import Polished, polish


def cut_to_sparse(C: ConvexSet, x: Array, k: int) -> Array:
    """A k-sparse point of C near x: the k largest entries, projected onto C on their support."""
    support = C.seats(namespace(x).abs(x), k)
    return embed(C.restrict(support).like(x).project(take(x, support)), support, int(x.shape[0]))


def round_to_sparse(loss: Loss, C: ConvexSet, x: Array, k: int, deadline: float = math.inf) -> tuple[Vector, Polished]:
    """The support that a nearly k-sparse x is rounded to, and the best point on it.

    The support is the k largest entries, except where C has no point on them: bounds that exclude 0 and budgets come first.
    """
    support = C.seats(namespace(x).abs(x), k)
    return support, polish(loss, C, support, to_float64(take(x, support)), deadline)
