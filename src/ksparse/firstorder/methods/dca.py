"""DC algorithms whose subproblems need a convex solver: ℓ1-DCA and MIP-DCA.

ℓ1-DCA (Gotoh, Takeda, Tono 2017) uses the top-(k,1) penalty over any C, MIP-DCA (Thiao, Pham Dinh, Le Thi 2010) uses
relaxed indicators u ∈ [0, 1]ⁿ.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, cast

import numpy as np
import scipy.sparse as sp

from ksparse.firstorder.methods.base import Method
from ksparse.firstorder.methods.conic import ConicSubproblem, DualLasso
from ksparse.firstorder.methods.pdca import require_top_k1
from ksparse.firstorder.problem import Point, Problem, require_cardinality
from ksparse.penalties import BigM, Penalty, TopK1
from ksparse.sets import ConvexSet
from ksparse.util.arrays import Array, Vector, like, to_numpy
from ksparse.util.checks import check_number


@dataclass(frozen=True, slots=True)
class DCAState:
    """x⁽ᵗ⁾ and the solvers, which hold the data."""

    x: Point  # x⁽ᵗ⁾
    subproblem: ConicSubproblem
    lasso: DualLasso | None  # a faster solver, where it applies
    u: Vector = field(default_factory=lambda: np.zeros(0))  # u⁽ᵗ⁾ of MIP-DCA
    l: float = 1.0  # noqa: E741  # these methods have no step size
    residual: float = float("inf")


@dataclass(frozen=True)
class L1DCA(Method):
    """The DC algorithm on the top-(k,1) penalty over any C.

    ``x⁽ᵗ⁺¹⁾ = argmin γ(x) + ρ‖x‖₁ − ⟨s⁽ᵗ⁾, x⟩`` over C, where φ = γ − ι and s⁽ᵗ⁾ is a subgradient of ι + ρ|||·|||_{k,1}
    at x⁽ᵗ⁾.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> A = np.random.default_rng(0).standard_normal((60, 20))
    >>> ks.minimize(ks.LeastSquares(A, A[:, :3] @ [1.0, -2.0, 1.5]), 3, method=ks.L1DCA()).support
    array([0, 1, 2])
    """

    exact: ClassVar[bool] = True
    name: ClassVar[str] = "l1dca"

    def require(self, problem: Problem) -> None:
        require_top_k1(problem, self.name)

    def penalty(self, k: int, rho: float, C: ConvexSet) -> Penalty:
        return TopK1(rho, k)

    def init(self, problem: Problem, x: Point) -> DCAState:
        subproblem = ConicSubproblem(self.name, problem.loss, problem.C, problem.n)
        subproblem.absolute_values()  # |x| ≤ e
        return DCAState(x, subproblem, DualLasso.for_pieces(problem.loss, problem.C, problem.n))

    def step(self, problem: Problem, s: DCAState) -> DCAState:
        assert problem.penalty.lam is not None
        cost = _linearised(problem, s.x, s.subproblem.shift) - to_numpy(problem.subgradient_g2(s.x))
        rho = np.full(problem.n, problem.penalty.lam)
        x = None if s.lasso is None else s.lasso.solve(cost, rho)
        if x is None:
            x, _ = s.subproblem.solve(cost, rho)
        return DCAState(_point(problem, x), s.subproblem, s.lasso)


@dataclass(frozen=True)
class MIPDCA(Method):
    """The DC algorithm on relaxed indicators u.

    The problem is ``min φ(x) + ρ(1 − u)ᵀu`` over C, ``|x| ≤ Mu``, ``1ᵀu ≤ k``, ``0 ≤ u ≤ 1``. Each step linearises the
    concave −ρuᵀu (and −ι) and solves the rest by an interior-point solver (needs ksparse[baselines]).

    Parameters
    ----------
    M : float, default=100.0
        The big-M, an upper bound on the absolute values of x.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> loss = ks.LeastSquares(np.eye(3), [3.0, -4.0, 1.0])
    >>> ks.minimize(loss, 2, method=ks.MIPDCA(M=10.0)).support
    array([0, 1])
    """

    M: float = 100.0
    exact: ClassVar[bool] = True
    name: ClassVar[str] = "mipdca"

    def __post_init__(self) -> None:
        check_number(self.M, "M", above=0)

    def require(self, problem: Problem) -> None:
        require_cardinality(problem.penalty.indicators, problem, self.name)

    def penalty(self, k: int, rho: float, C: ConvexSet) -> Penalty:
        return BigM(rho, k)

    def init(self, problem: Problem, x: Point) -> DCAState:
        n, k = problem.n, _big_m(problem).k
        subproblem = ConicSubproblem(self.name, problem.loss, problem.C, n)
        subproblem.absolute_values(self.M)  # |x| ≤ Mu
        no_x, eye = sp.csr_matrix((n, n)), sp.eye_array(n)
        subproblem.add_rows(no_x, -eye, np.zeros(n))  # 0 ≤ u
        subproblem.add_rows(no_x, eye, np.ones(n))  # u ≤ 1
        subproblem.add_rows(sp.csr_matrix((1, n)), np.ones((1, n)), np.array([float(k)]))  # 1ᵀu ≤ k
        u, lasso = np.full(n, k / n), DualLasso.for_pieces(problem.loss, problem.C, n)
        return DCAState(self._point_with(problem, x.x, u), subproblem, lasso, u)

    def step(self, problem: Problem, s: DCAState) -> DCAState:
        penalty = _big_m(problem)
        cost, cost_u = _linearised(problem, s.x, s.subproblem.shift), penalty.rho * (1.0 - 2.0 * s.u)
        found = None if s.lasso is None else self._by_lasso(s.lasso, cost, cost_u, penalty.k)
        x, u = s.subproblem.solve(cost, cost_u) if found is None else found
        return DCAState(self._point_with(problem, x, u), s.subproblem, s.lasso, u)

    def _by_lasso(self, lasso: DualLasso, cost: Vector, cost_u: Vector, k: int) -> tuple[Vector, Vector] | None:
        """Return x and u if all costs of u are positive and 1ᵀu ≤ k is slack (u = |x|/M: a lasso), else None."""
        if cost_u.min() <= 0:
            return None
        x = lasso.solve(cost, cost_u / self.M)
        if x is None or np.abs(x).max() > self.M or np.abs(x).sum() > k * self.M:
            return None
        return x, np.abs(x) / self.M

    def _point_with(self, problem: Problem, x: Array, u: Vector) -> Point:
        """Return x as a point whose F includes the penalty on u."""
        point = _point(problem, x)
        point.F_value = point.phi + _big_m(problem).rho * float((1.0 - u) @ u)
        return point


def _big_m(problem: Problem) -> BigM:
    """Return the penalty, which `require` has checked."""
    return cast(BigM, problem.penalty)


def _linearised(problem: Problem, x: Point, shift: float) -> Vector:
    """Return −∇ι(x) for φ = γ − ι: 0 if φ is convex, ∇φ(x) if it is concave, −shift·x if γ = φ + (shift/2)‖·‖²."""
    if shift:
        return to_numpy(-shift * x.x)
    return to_numpy(x.gradient) if problem.loss.convex is False else np.zeros(problem.n)


def _point(problem: Problem, x: Array) -> Point:
    """Return a solver's x as a point, on the device of the data; on the host it keeps double precision."""
    kind = problem.loss.kind
    return problem.point(x if isinstance(kind, np.ndarray) else like(x, kind))
