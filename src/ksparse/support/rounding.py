"""Rounding (paper, Sec. 6.2): keep the k largest entries, re-solve the k-variable problem over C, the rest fixed to 0."""

from __future__ import annotations

from ksparse.arrays import Array, embed, like, namespace, take, to_float64
from ksparse.losses import Loss
from ksparse.sets import ConvexSet
from ksparse.support.polish import Polished, polish


def cut_to_sparse(C: ConvexSet, x: Array, k: int) -> Array:
    """A k-sparse point of C near x: the k largest entries, projected onto C on their support."""
    support = C.seats(namespace(x).abs(x), k)
    return embed(C.restrict(support).like(x).project(take(x, support)), support, int(x.shape[0]))


def round_to_sparse(loss: Loss, C: ConvexSet, x: Array, k: int) -> tuple[Array, Polished]:
    """An exactly k-sparse point of C from a nearly k-sparse one, of x's kind, and what the re-solve found.

    The support is the k largest entries, except where C has no point on them: bounds that exclude 0 and budgets come first.
    """
    support = C.seats(namespace(x).abs(x), k)
    polished = polish(loss, C, support, to_float64(x)[support])
    return like(embed(polished.z, support, int(x.shape[0])), x), polished
