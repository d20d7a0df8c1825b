"""ℓ1-DCA (Gotoh, Takeda, Tono 2017; paper, eq. naiveDCdecomp): the DC algorithm on the top-(k,1) penalty, over any C."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ksparse.errors import MissingPieceError
from ksparse.firstorder.methods.base import Method
from ksparse.firstorder.methods.conic import Subproblem
from ksparse.firstorder.methods.dual_lasso import DualLasso
from ksparse.firstorder.problem import Point, Problem
from ksparse.penalties import Penalty, TopK1
from ksparse.sets import ConvexSet
from ksparse.util.arrays import Array, like, to_numpy


@dataclass(frozen=True, slots=True)
class DCAState:
    """x⁽ᵗ⁾ and the solvers that hold the data."""

    x: Point  # x⁽ᵗ⁾
    subproblem: Subproblem
    lasso: DualLasso | None  # the faster one, where it fits
    u: np.ndarray[Any, Any] | None = None  # u⁽ᵗ⁾ of MIP-DCA
    l: float = 1.0  # noqa: E741  # there is no step size
    residual: float = float("inf")


def linearised(problem: Problem, x: Point, shift: float) -> np.ndarray[Any, Any]:
    """−∇ι(x) for φ = γ − ι: 0 where φ is convex, ∇φ(x) where it is concave, −shift·x where γ = φ + (shift/2)‖·‖²."""
    if shift:
        return to_numpy(-shift * x.x)
    return to_numpy(x.gradient) if problem.loss.convex is False else np.zeros(problem.n)


def placed(problem: Problem, x: Array) -> Point:
    """A solver's x beside the data; NumPy's stays in double precision."""
    kind = problem.loss.kind
    return problem.point(x if isinstance(kind, np.ndarray) else like(x, kind))


@dataclass(frozen=True)
class L1DCA(Method):
    """The DC algorithm on the top-(k,1) penalty over any C, each step by an interior-point solver (needs ksparse[baselines]).

    ``x⁽ᵗ⁺¹⁾ = argmin γ(x) + ρ‖x‖₁ − ⟨s⁽ᵗ⁾, x⟩`` over C, with φ = γ − ι and s⁽ᵗ⁾ a subgradient of ι + the k largest sizes at x⁽ᵗ⁾.

    Examples
    --------
    >>> import numpy as np
    >>> import ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 20))
    >>> b = A[:, :3] @ [1.0, -2.0, 1.5] + 0.1 * rng.standard_normal(60)
    >>> ks.minimize(ks.LeastSquares(A, b), 3, method=ks.L1DCA()).support
    array([0, 1, 2])
    """

    exact: ClassVar[bool] = True
    name: ClassVar[str] = "l1dca"

    def require(self, problem: Problem) -> None:
        if problem.penalty.k is None or problem.penalty.lam is None:
            raise MissingPieceError(f"l1dca needs the penalty TopK1, not {problem.penalty}")

    def penalty(self, k: int, rho: float, C: ConvexSet) -> Penalty:
        return TopK1(rho, k)

    def init(self, problem: Problem, x: Point) -> DCAState:
        subproblem = Subproblem(self.name, problem.loss, problem.C, problem.n)
        subproblem.absolute_values()  # |x| ≤ e
        return DCAState(x, subproblem, DualLasso.for_pieces(problem.loss, problem.C, problem.n))

    def step(self, problem: Problem, s: DCAState) -> DCAState:
        assert problem.penalty.lam is not None
        cost = linearised(problem, s.x, s.subproblem.shift) - to_numpy(problem.subgradient_g2(s.x))
        rho = np.full(problem.n, problem.penalty.lam)
        x = None if s.lasso is None else s.lasso.solve(cost, rho)
        if x is None:
            x, _ = s.subproblem.solve(cost, rho)
        return DCAState(placed(problem, x), s.subproblem, s.lasso)
