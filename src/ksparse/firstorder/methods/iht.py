"""IHT: iterative hard thresholding (Bertsimas, King, Mazumder 2016; paper, eq. IHTsubprob)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from ksparse.errors import MissingPieceError
from ksparse.firstorder.methods.base import Method
from ksparse.firstorder.methods.pdca import PDCA, PDCAState
from ksparse.firstorder.problem import Point, Problem
from ksparse.firstorder.steps import Backtracking, StepRule, check_rule
from ksparse.penalties import Cardinality, Penalty
from ksparse.sets import ConvexSet


@dataclass(frozen=True)
class IHT(Method):
    """x⁽ᵗ⁺¹⁾ = the projection of x⁽ᵗ⁾ − ∇φ(x⁽ᵗ⁾)/l onto {‖x‖₀ ≤ k} ∩ C: PDCA's iteration with the constraint itself as g1."""

    rule: StepRule = field(default_factory=Backtracking)
    name: ClassVar[str] = "iht"
    patience: ClassVar[int] = 2
    weighted: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_rule(self.rule)

    def require(self, problem: Problem) -> None:
        if not problem.penalty.constraint:
            raise MissingPieceError(
                f"IHT needs the constraint of at most k nonzeros, not the penalty {problem.penalty}: use minimize(loss, k)"
            )
        if not problem.penalty.supports(problem.C):
            raise MissingPieceError(
                f"IHT needs the projection onto the k-sparse points of C; {problem.C} has none in closed form: use apdca"
            )

    def penalty(self, k: int, rho: float, C: ConvexSet) -> Penalty:
        return Cardinality(k, C)

    def init(self, problem: Problem, x: Point) -> PDCAState:
        return PDCA(self.rule).init(problem, x)

    def step(self, problem: Problem, s: PDCAState) -> PDCAState:
        return PDCA(self.rule).step(problem, s)
