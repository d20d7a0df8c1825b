"""Rounding (paper, Sec. 6.2): keep the k largest entries, re-solve the k-variable problem over C, the rest fixed to 0."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ksparse.errors import InfeasibleError
from ksparse.losses import Loss
from ksparse.search.polish import PolishedPoint, polish, residual_at_zero, restricted_problem
from ksparse.sets import ConvexSet
from ksparse.util.arrays import Array, Vector, embed, namespace, take, to_float64

DUST = 1e-5  # relative to the largest entry
NEGLIGIBLE = 1e-8  # of φ(0): what a step from 0 must lower φ by to show that 0 is not stationary


def cut_to_sparse(C: ConvexSet, x: Array, k: int) -> Array:
    """A k-sparse point of C near x: the k largest entries, projected onto C on their support."""
    support = C.sparse_support(namespace(x).abs(x), k)
    return embed(C.restrict(support).like(x).project(take(x, support)), support, int(x.shape[0]))


@dataclass(frozen=True)
class Rounded:
    """A k-sparse point of C, by its support."""

    support: Vector
    polished: PolishedPoint
    k_sparse: bool  # whether the method's own point had at most k nonzeros, but for dust
    solved: bool = True  # whether φ was minimised anew on the support


def round_to_sparse(loss: Loss, C: ConvexSet, x: Array, k: int, deadline: float = math.inf) -> Rounded:
    """The support that a nearly k-sparse x is rounded to, and the best point on it.

    The support is the k largest entries, except where C has no point on them: bounds that exclude 0 and budgets come first.
    """
    support = C.sparse_support(namespace(x).abs(x), k)
    return Rounded(
        support, polish(loss, C, support, to_float64(take(x, support)), deadline), _without_dust(x).size <= k
    )


def _without_dust(x: Array) -> Vector:
    """The indices of entries that are not negligible next to the largest."""
    size = np.abs(to_float64(x))
    return np.flatnonzero(size > DUST * size.max(initial=0.0))


def take_as_sparse(loss: Loss, C: ConvexSet, x: Array, k: int, deadline: float = math.inf) -> Rounded:
    """x as it is, its dust swept, where at most k entries are more than dust; else rounded like any other.

    The methods with an exact penalty end at k-sparse points, but an interior-point solver leaves 1e-7 where 0 is meant.
    """
    support = _without_dust(x)
    if support.size and support.size <= k:
        try:
            problem = restricted_problem(loss, C, support)
        except InfeasibleError:
            return _rounded(loss, C, x, k, deadline)
        point = problem.point(problem.C.project(to_float64(x)[support]))
        found = PolishedPoint(point.x, problem.F(point), problem.residual(point), problem.products)
        return Rounded(support, found, k_sparse=True, solved=False)
    return _rounded(loss, C, x, k, deadline)


def _rounded(loss: Loss, C: ConvexSet, x: Array, k: int, deadline: float) -> Rounded:
    """x rounded; or 0, where C has it and all of x is dust beside what the re-solve finds: a support of noise is no answer."""
    found = round_to_sparse(loss, C, x, k, deadline)
    largest, zero = float(np.abs(to_float64(x)).max(initial=0.0)), 0.0 * x
    if largest > DUST * np.abs(found.polished.z).max(initial=0.0) or not C.contains(zero):
        return found
    value = loss.value(zero)
    residual = residual_at_zero(loss, C, found.support, NEGLIGIBLE * abs(value))
    at_zero = PolishedPoint(np.zeros(0), value, residual, found.polished.products)
    return Rounded(np.zeros(0, dtype=np.intp), at_zero, found.k_sparse, solved=False)
