"""What a method is: `init` and `step`, pure, on a state whose fields are the paper's symbols. No loop, stop, print or clock."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Protocol

from ksparse.firstorder.problem import Point, Problem
from ksparse.penalties import Penalty, TopK2
from ksparse.sets import ConvexSet


class State(Protocol):
    """What every state shows to the driver."""

    @property
    def x(self) -> Point:
        """x⁽ᵗ⁾."""

    @property
    def l(self) -> float:  # noqa: E743
        """The l of the last step."""

    @property
    def residual(self) -> float:
        """The relative stationarity residual met by the last step."""


class Method(ABC):
    """An algorithm: `init` and `step` on a state of its own. The base of every method.

    A method of your own says by `penalty` how it asks for at most k nonzeros; see the guide to own pieces.

    Examples
    --------
    >>> import numpy as np
    >>> import ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 20))
    >>> b = A[:, :3] @ [1.0, -2.0, 1.5] + 0.1 * rng.standard_normal(60)
    >>> ks.minimize(ks.LeastSquares(A, b), 3, method=ks.PDCA()).support
    array([0, 1, 2])
    """

    name: ClassVar[str] = "own"  # in results and messages
    stop: ClassVar[str] = "objective"  # the paper's stopping rule for it: "objective" or "step"
    patience: ClassVar[int] = 1  # how many small changes in a row end it: 2 where a Barzilai–Borwein step may stand still by accident

    weighted: ClassVar[bool] = True  # whether its penalty has a weight, of which a grid is tried
    exact: ClassVar[bool] = False  # whether its answers are k-sparse by themselves, for weights that are large enough

    def require(self, problem: Problem) -> None:  # noqa: B027  # many lack nothing
        """Say what the method lacks in this problem's pieces."""

    def penalty(self, k: int, rho: float, C: ConvexSet) -> Penalty:
        """The penalty by which it asks for at most k nonzeros over C, of weight ρ."""
        return TopK2(rho, k)

    def residual(self, problem: Problem, point: Point) -> float:
        """How far a point is from being stationary in the method's sense, relative."""
        return problem.residual(point)

    @abstractmethod
    def init(self, problem: Problem, x: Point) -> Any:
        """The state at t = 0."""

    @abstractmethod
    def step(self, problem: Problem, s: Any) -> Any:
        """The state at t + 1."""
