"""GIST (Gong et al. 2013; paper, Sec. 4): the proximal gradient method with the prox of the whole, nonconvex penalty."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from ksparse.firstorder.methods.base import Method
from ksparse.firstorder.methods.pdca import PDCA, PDCAState
from ksparse.firstorder.problem import Point, Problem, require_whole_prox
from ksparse.firstorder.steps import Backtracking, StepRule, check_rule


@dataclass(frozen=True)
class GIST(Method):
    """x⁽ᵗ⁺¹⁾ = prox_{g/l}(x⁽ᵗ⁾ − ∇f(x⁽ᵗ⁾)/l): PDCA's iteration on F regrouped as (g, 0)."""

    rule: StepRule = field(default_factory=Backtracking)
    name: ClassVar[str] = "gist"
    patience: ClassVar[int] = 2

    def __post_init__(self) -> None:
        check_rule(self.rule)

    def require(self, problem: Problem) -> None:
        require_whole_prox(problem, "GIST")

    def residual(self, problem: Problem, point: Point) -> float:
        return problem.whole.residual(point)

    def init(self, problem: Problem, x: Point) -> PDCAState:
        return PDCA(self.rule).init(problem.whole, x)

    def step(self, problem: Problem, s: PDCAState) -> PDCAState:
        return PDCA(self.rule).step(problem.whole, s)
