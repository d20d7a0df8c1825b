"""The constraint of at most k nonzeros as a penalty."""

from __future__ import annotations

import math

from ksparse.penalties.base import NoPenalty, Penalty
from ksparse.sets.base import ConvexSet
from ksparse.util.arrays import Array, namespace, sum_of
from ksparse.util.checks import check_integer, check_number


class Cardinality(Penalty):
    """0 if ‖x‖₀ ≤ k and x ∈ C, else ∞: the constraint itself, with g1 = g. Its prox is the joint projection."""

    constraint = True
    k: int

    def __init__(self, k: int, C: ConvexSet) -> None:
        self.k, self.C = check_integer(k, "k", 1), C

    def g1(self, x: Array) -> float:
        xp = namespace(x)
        return 0.0 if sum_of(xp.astype(x != 0, xp.int64)) <= self.k else math.inf

    def enter(self, C: ConvexSet, x: Array) -> Array:
        return self.C.project_sparse(x, self.k)

    def prox(self, u: Array, t: float) -> Array:
        return self.enter(self.C, u)

    def prox_g1(self, u: Array, t: float) -> Array:
        return self.enter(self.C, u)

    def prox_g1_on(self, C: ConvexSet, u: Array, t: float) -> Array:
        return self.enter(self.C, u)

    def supports(self, C: ConvexSet) -> bool:
        return self.C.has_joint

    def weight_max(self, gradient: Array) -> float:
        return math.inf


class BigM(NoPenalty):
    """Weight and cardinality of MIP-DCA; its penalty ρ(1 − u)ᵀu is a function of indicators u, and 0 on x itself."""

    indicators = True
    k: int

    def __init__(self, rho: float, k: int) -> None:
        self.rho, self.k = check_number(rho, "rho", above=0), check_integer(k, "k", 1)
