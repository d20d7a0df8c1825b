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
    """``x⁽ᵗ⁺¹⁾ = prox_{g₁/l}(x⁽ᵗ⁾ − (∇f(x⁽ᵗ⁾) − s(x⁽ᵗ⁾))/l)``, l fixed at L or found by backtracking: the proximal DC algorithm.

    Parameters
    ----------
    rule : step rule, default=Backtracking()
        How far a step goes: `Backtracking` or `FixedStep`.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of its range.

    Examples
    --------
    >>> import numpy as np
    >>> import ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 20))
    >>> b = A[:, :3] @ [1.0, -2.0, 1.5] + 0.1 * rng.standard_normal(60)
    >>> ks.minimize(ks.LeastSquares(A, b), 3, method=ks.PDCA(ks.FixedStep())).support
    array([0, 1, 2])
    """

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
