"""ℓ1-PDCA (Gotoh, Takeda, Tono 2017; paper, eq. l1PDCAsubprob): PDCA on the top-(k,1) penalty, whose step is a soft threshold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from ksparse.errors import MissingPieceError
from ksparse.firstorder.methods.base import Method
from ksparse.firstorder.methods.pdca import PDCA, PDCAState
from ksparse.firstorder.problem import Point, Problem, require_prox
from ksparse.firstorder.steps import Backtracking, StepRule, check_rule
from ksparse.penalties import Penalty, TopK1
from ksparse.sets import ConvexSet


@dataclass(frozen=True)
class L1PDCA(Method):
    """PDCA on the top-(k,1) penalty: on the whole space, and on sets that shrink in closed form.

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
    >>> ks.minimize(ks.LeastSquares(A, b), 3, method=ks.L1PDCA()).support
    array([0, 1, 2])
    """

    rule: StepRule = field(default_factory=Backtracking)
    exact: ClassVar[bool] = True
    name: ClassVar[str] = "l1pdca"
    patience: ClassVar[int] = 2

    def __post_init__(self) -> None:
        check_rule(self.rule)

    def require(self, problem: Problem) -> None:
        if problem.penalty.k is None or problem.penalty.lam is None:
            raise MissingPieceError(f"l1pdca needs the penalty TopK1, not {problem.penalty}")
        require_prox(problem, self.name)

    def penalty(self, k: int, rho: float, C: ConvexSet) -> Penalty:
        return TopK1(rho, k)

    def init(self, problem: Problem, x: Point) -> PDCAState:
        return PDCA(self.rule).init(problem, x)

    def step(self, problem: Problem, s: PDCAState) -> PDCAState:
        return PDCA(self.rule).step(problem, s)
