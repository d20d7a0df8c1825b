"""IHT: iterative hard thresholding (Bertsimas, King, Mazumder 2016; paper, eq. IHTsubprob)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from ksparse.errors import MissingPieceError
from ksparse.methods.pdca import PDCA, PDCAState
from ksparse.penalties import Cardinality
from ksparse.problem import Point, Problem
from ksparse.steps import Backtracking, StepRule, check_rule


@dataclass(frozen=True)
class IHT:
    """x⁽ᵗ⁺¹⁾ = the projection of x⁽ᵗ⁾ − ∇φ(x⁽ᵗ⁾)/l onto {‖x‖₀ ≤ k} ∩ C: PDCA's iteration with the constraint itself as g1."""

    rule: StepRule = field(default_factory=Backtracking)
    name: ClassVar[str] = "iht"
    stop: ClassVar[str] = "objective"
    patience: ClassVar[int] = 2

    def __post_init__(self) -> None:
        check_rule(self.rule)

    def require(self, problem: Problem) -> None:
        penalty = problem.penalty
        if not isinstance(penalty, Cardinality):
            raise MissingPieceError(f"IHT needs the constraint of at most k nonzeros, not the penalty {penalty}: use minimize(loss, k)")
        if not penalty.C.has_joint:
            raise MissingPieceError(
                f"IHT needs the projection onto the k-sparse points of C; {penalty.C} has none in closed form: use apdca"
            )

    def init(self, problem: Problem, x: Point) -> PDCAState:
        return PDCA(self.rule).init(problem, x)

    def step(self, problem: Problem, s: PDCAState) -> PDCAState:
        return PDCA(self.rule).step(problem, s)
