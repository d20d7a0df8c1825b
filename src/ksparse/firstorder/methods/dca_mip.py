"""MIP-DCA (Thiao, Pham Dinh, Le Thi 2010; paper, eq. concavepenalty): the DC algorithm on relaxed indicators u ∈ [0, 1]ⁿ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
import scipy.sparse as sp

from ksparse.errors import MissingPieceError
from ksparse.firstorder.methods.base import Method
from ksparse.firstorder.methods.conic import Subproblem
from ksparse.firstorder.methods.dca_l1 import DCAState, linearised, placed
from ksparse.firstorder.methods.dual_lasso import DualLasso
from ksparse.firstorder.problem import Point, Problem
from ksparse.penalties import BigM, Penalty
from ksparse.sets import ConvexSet
from ksparse.util.arrays import Array, Vector
from ksparse.util.checks import check_number


@dataclass(frozen=True)
class MIPDCA(Method):
    """The DC algorithm on relaxed indicators u: ``min φ(x) + ρ(1 − u)ᵀu`` over C, ``|x| ≤ Mu``, ``1ᵀu ≤ k``, ``0 ≤ u ≤ 1``.

    The concave −ρuᵀu (and ι) is linearised, the rest left to an interior-point solver (needs ksparse[baselines]).

    Parameters
    ----------
    M : float, default=100.0
        The big-M, above the size of every entry of x.

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
    >>> ks.minimize(ks.LeastSquares(A, b), 3, method=ks.MIPDCA(M=10.0)).support
    array([0, 1, 2])
    """

    M: float = 100.0  # the big-M
    exact: ClassVar[bool] = True
    name: ClassVar[str] = "mipdca"

    def __post_init__(self) -> None:
        check_number(self.M, "M", above=0)

    def require(self, problem: Problem) -> None:
        if not problem.penalty.indicators:
            raise MissingPieceError(
                f"mipdca needs the constraint of at most k nonzeros, not the penalty {problem.penalty}: use minimize(loss, k)"
            )

    def penalty(self, k: int, rho: float, C: ConvexSet) -> Penalty:
        return BigM(rho, k)

    def init(self, problem: Problem, x: Point) -> DCAState:
        n, k = problem.n, _asked(problem).k
        subproblem = Subproblem(self.name, problem.loss, problem.C, n)
        subproblem.absolute_values(self.M)  # |x| ≤ Mu
        none, eye = sp.csr_matrix((n, n)), sp.eye_array(n)
        subproblem.on_extra(none, -eye, np.zeros(n))
        subproblem.on_extra(none, eye, np.ones(n))
        subproblem.on_extra(sp.csr_matrix((1, n)), np.ones((1, n)), np.array([float(k)]))
        u = np.full(n, k / n)
        return DCAState(self._at(problem, x.x, u), subproblem, DualLasso.for_pieces(problem.loss, problem.C, n), u)

    def step(self, problem: Problem, s: DCAState) -> DCAState:
        assert s.u is not None
        asked = _asked(problem)
        cost, cost_u = linearised(problem, s.x, s.subproblem.shift), asked.rho * (1.0 - 2.0 * s.u)
        found = None if s.lasso is None else self._without_indicators(s.lasso, cost, cost_u, asked.k)
        x, u = s.subproblem.solve(cost, cost_u) if found is None else found
        return DCAState(self._at(problem, x, u), s.subproblem, s.lasso, u)

    def _without_indicators(self, lasso: DualLasso, cost: Vector, cost_u: Vector, k: int) -> tuple[Vector, Vector] | None:
        """x and u where every indicator has a price and 1ᵀu ≤ k does not bind: then u = |x|/M, and the subproblem is a lasso."""
        if cost_u.min() <= 0:
            return None
        x = lasso.solve(cost, cost_u / self.M)
        if x is None or np.abs(x).max() > self.M or np.abs(x).sum() > k * self.M:
            return None
        return x, np.abs(x) / self.M

    def _at(self, problem: Problem, x: Array, u: Vector) -> Point:
        """x as a point whose F counts the indicators too."""
        point = placed(problem, x)
        point.F_value = point.phi + _asked(problem).rho * float((1.0 - u) @ u)
        return point


def _asked(problem: Problem) -> BigM:
    """The penalty, which `require` has looked at."""
    return cast(BigM, problem.penalty)
