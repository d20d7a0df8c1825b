"""PDCA: the proximal DC algorithm (paper, Algorithms PDCA and PDCAbt).

SCP of Lu (2012) is the same iteration; with g2 = 0 it is the proximal gradient method.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from ksparse.firstorder.methods.base import Method
from ksparse.firstorder.problem import Point, Problem, require_prox
from ksparse.firstorder.steps import Backtracking, Memory, StepRule, check_rule


@dataclass(frozen=True, slots=True)
class PDCAState:
    """x⁽ᵗ⁾ and what the step rule remembers."""

    x: Point  # x⁽ᵗ⁾
    memory: Memory  # l⁽ᵗ⁻¹⁾, and for the Barzilai–Borwein rule x⁽ᵗ⁻¹⁾
    residual: float = float("inf")

    @property
    def l(self) -> float:  # noqa: E743
        """l⁽ᵗ⁻¹⁾."""
        return self.memory.l


@dataclass(frozen=True)
class PDCA(Method):
    """x⁽ᵗ⁺¹⁾ = prox_{g1/l}(x⁽ᵗ⁾ − (∇f(x⁽ᵗ⁾) − s(x⁽ᵗ⁾))/l), l fixed at L or found by backtracking."""

    rule: StepRule = field(default_factory=Backtracking)
    name: ClassVar[str] = "pdca"
    patience: ClassVar[int] = 2

    def __post_init__(self) -> None:
        check_rule(self.rule)

    def require(self, problem: Problem) -> None:
        require_prox(problem, self.name)

    def init(self, problem: Problem, x: Point) -> PDCAState:
        return PDCAState(x, self.rule.start(problem, x))

    def step(self, problem: Problem, s: PDCAState) -> PDCAState:
        step = self.rule.from_point(problem, s.x, s.memory)  # eq. (PDCAbtsubprob)
        return PDCAState(step.z, step.memory, step.residual)
