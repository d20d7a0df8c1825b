"""nmAPG (Li, Lin 2015; paper, Algorithm nmAPG): the accelerated proximal gradient method for nonconvex problems."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from ksparse.firstorder.methods.apdca import APDCA, APDCAState
from ksparse.firstorder.methods.base import Method
from ksparse.firstorder.problem import Point, Problem, require_whole_prox
from ksparse.firstorder.steps import Backtracking, StepRule


@dataclass(frozen=True)
class NmAPG(Method):
    """APDCA's iteration on F regrouped as (g, 0): both proxes are those of the whole penalty (Li, Lin 2015).

    Parameters
    ----------
    rule : step rule, default=Backtracking()
        How far a step goes: `Backtracking` or `FixedStep`.
    delta : float, default=1e-5
        δ of the nonmonotone test.
    eta : float, default=0.8
        η in (0, 1], the weight of the past in its mean c.

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
    >>> ks.minimize(ks.LeastSquares(A, b), 3, method=ks.NmAPG()).support
    array([0, 1, 2])
    """

    rule: StepRule = field(default_factory=Backtracking)
    delta: float = 1e-5  # δ of the nonmonotone test
    eta: float = 0.8  # η ∈ (0, 1]: weight of the past in c
    name: ClassVar[str] = "nmapg"

    def __post_init__(self) -> None:
        self._inner()  # APDCA checks δ and η

    def _inner(self) -> APDCA:
        return APDCA(self.rule, self.delta, self.eta)

    def require(self, problem: Problem) -> None:
        require_whole_prox(problem, "nmAPG")

    def residual(self, problem: Problem, point: Point) -> float:
        return problem.whole.residual(point)

    def init(self, problem: Problem, x: Point) -> APDCAState:
        return self._inner().init(problem.whole, x)

    def step(self, problem: Problem, s: APDCAState) -> APDCAState:
        return self._inner().step(problem.whole, s)
