"""PDCA, the proximal DC algorithm, and the methods with the same iteration: GIST, ℓ1-PDCA and IHT.

PDCA is from the paper (Algorithms PDCA and PDCAbt). SCP (Lu 2012) is PDCA; with g2 = 0 PDCA is the proximal gradient
method.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from ksparse.errors import MissingPieceError
from ksparse.firstorder.methods.base import Method, WithUndividedPenalty
from ksparse.firstorder.problem import Point, Problem, require_cardinality, require_prox
from ksparse.firstorder.steps import Backtracking, StepMemory, StepRule, check_rule
from ksparse.penalties import Cardinality, Penalty, TopK1
from ksparse.sets import ConvexSet


@dataclass(frozen=True, slots=True)
class PDCAState:
    """x⁽ᵗ⁾ and the memory of the step rule."""

    x: Point  # x⁽ᵗ⁾
    memory: StepMemory  # l⁽ᵗ⁻¹⁾ and, for the Barzilai–Borwein rule, x⁽ᵗ⁻¹⁾
    residual: float = float("inf")

    @property
    def l(self) -> float:  # noqa: E743
        """l⁽ᵗ⁻¹⁾."""
        return self.memory.l


@dataclass(frozen=True)
class PDCA(Method):
    """The proximal DC algorithm: ``x⁽ᵗ⁺¹⁾ = prox_{g₁/l}(x⁽ᵗ⁾ − (∇f(x⁽ᵗ⁾) − s(x⁽ᵗ⁾))/l)``.

    Parameters
    ----------
    rule : step rule, default=Backtracking()
        `Backtracking` or `FixedStep`.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> loss = ks.LeastSquares(np.eye(3), [3.0, -4.0, 1.0])
    >>> ks.minimize(loss, 2, method=ks.PDCA(ks.FixedStep())).support
    array([0, 1])
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


class GIST(WithUndividedPenalty, PDCA):
    """``x⁽ᵗ⁺¹⁾ = prox_{g/l}(x⁽ᵗ⁾ − ∇f(x⁽ᵗ⁾)/l)``: PDCA with g₁ = g and g₂ = 0 (Gong et al. 2013; paper, Sec. 4).

    Parameters
    ----------
    rule : step rule, default=Backtracking()
        `Backtracking` or `FixedStep`.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> loss = ks.LeastSquares(np.eye(3), [3.0, -4.0, 1.0])
    >>> ks.minimize(loss, 2, method=ks.GIST()).support
    array([0, 1])
    """

    name: ClassVar[str] = "gist"


class L1PDCA(PDCA):
    """PDCA on the top-(k,1) penalty, over sets with a closed-form soft threshold (Gotoh, Takeda, Tono 2017).

    Parameters
    ----------
    rule : step rule, default=Backtracking()
        `Backtracking` or `FixedStep`.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> loss = ks.LeastSquares(np.eye(3), [3.0, -4.0, 1.0])
    >>> ks.minimize(loss, 2, method=ks.L1PDCA()).support
    array([0, 1])
    """

    name: ClassVar[str] = "l1pdca"
    exact: ClassVar[bool] = True

    def require(self, problem: Problem) -> None:
        require_top_k1(problem, self.name)
        super().require(problem)

    def penalty(self, k: int, rho: float, C: ConvexSet) -> Penalty:
        return TopK1(rho, k)


class IHT(PDCA):
    """Iterative hard thresholding: project x⁽ᵗ⁾ − ∇φ(x⁽ᵗ⁾)/l onto the k-sparse points of C.

    It is PDCA with the constraint ‖x‖₀ ≤ k as g₁ (Bertsimas, King, Mazumder 2016). The
    projection onto the k-sparse points of C must have a closed form.

    Parameters
    ----------
    rule : step rule, default=Backtracking()
        `Backtracking` or `FixedStep`.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> loss = ks.LeastSquares(np.eye(3), [3.0, -4.0, 1.0])
    >>> ks.minimize(loss, 2, method=ks.IHT()).support
    array([0, 1])
    """

    name: ClassVar[str] = "iht"
    weighted: ClassVar[bool] = False

    def require(self, problem: Problem) -> None:
        require_cardinality(problem.penalty.constraint, problem, "IHT")
        if not problem.penalty.supports(problem.C):
            lacks = f"{problem.C} has none in closed form: use apdca"
            raise MissingPieceError(f"IHT needs the projection onto the k-sparse points of C; {lacks}")

    def penalty(self, k: int, rho: float, C: ConvexSet) -> Penalty:
        return Cardinality(k, C)


def require_top_k1(problem: Problem, method: str) -> None:
    """Raise MissingPieceError if the penalty is not the top-(k,1) penalty."""
    if problem.penalty.k is None or problem.penalty.lam is None:
        raise MissingPieceError(f"{method} needs the penalty TopK1, not {problem.penalty}")
