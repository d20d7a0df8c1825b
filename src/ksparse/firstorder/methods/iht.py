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
    """Iterative hard thresholding: the projection of x⁽ᵗ⁾ − ∇φ(x⁽ᵗ⁾)/l onto the k-sparse points of C, again and again.

    It is PDCA's iteration with the constraint itself as g₁, and needs that projection in closed form.

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
    >>> ks.minimize(ks.LeastSquares(A, b), 3, method=ks.IHT()).support
    array([0, 1, 2])
    """

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
