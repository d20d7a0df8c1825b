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
    """``x⁽ᵗ⁺¹⁾ = prox_{g/l}(x⁽ᵗ⁾ − ∇f(x⁽ᵗ⁾)/l)``: PDCA's iteration on F regrouped as (g, 0) (Gong et al. 2013).

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
    >>> ks.minimize(ks.LeastSquares(A, b), 3, method=ks.GIST()).support
    array([0, 1, 2])
    """

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
