"""Base class of methods: `init` and `step`, pure functions on a frozen state whose fields are the paper's symbols."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Protocol

from ksparse.errors import MissingPieceError
from ksparse.firstorder.problem import Point, Problem
from ksparse.penalties import Penalty, TopK2
from ksparse.sets import ConvexSet


class State(Protocol):
    """What the loop reads of every state."""

    @property
    def x(self) -> Point:
        """x⁽ᵗ⁾."""

    @property
    def l(self) -> float:  # noqa: E743
        """The l of the last step."""

    @property
    def residual(self) -> float:
        """The relative stationarity residual computed by the last step."""


class Method(ABC):
    """Base class of every first-order method: `init` and `step` on a state of its own.

    A custom method returns from `penalty` the penalty that replaces the constraint ‖x‖₀ ≤ k; see the guide to custom
    components.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> loss = ks.LeastSquares(np.eye(3), [3.0, -4.0, 1.0])
    >>> ks.minimize(loss, 2, method=ks.PDCA()).support
    array([0, 1])
    """

    name: ClassVar[str] = "own"  # in results and messages
    stop: ClassVar[str] = "objective"  # the paper's stopping rule for it: "objective" or "step"
    patience: ClassVar[int] = 1  # consecutive small changes to stop at: 2 for Barzilai–Borwein steps

    weighted: ClassVar[bool] = True  # whether its penalty has a weight, chosen from a grid
    exact: ClassVar[bool] = False  # whether its points are k-sparse without rounding, for weights that are large enough

    def require(self, problem: Problem) -> None:  # noqa: B027  # many methods need nothing
        """Raise MissingPieceError if the loss, set or penalty lacks a capability that the method needs."""

    def penalty(self, k: int, rho: float, C: ConvexSet) -> Penalty:
        """Return the penalty of weight ρ for at most k nonzeros over C."""
        return TopK2(rho, k)

    def residual(self, problem: Problem, point: Point) -> float:
        """Return the relative stationarity residual of a point, by the method's notion of stationarity."""
        return problem.residual(point)

    @abstractmethod
    def init(self, problem: Problem, x: Point) -> Any:
        """Return the state at t = 0."""

    @abstractmethod
    def step(self, problem: Problem, s: Any) -> Any:
        """Return the state at t + 1."""


class WithUndividedPenalty(Method):
    """Mixin that runs a method with g1 = g and g2 = 0, that is, with the prox of the whole penalty."""

    def require(self, problem: Problem) -> None:
        if not problem.C.whole_space:
            lacks = f"{type(problem.penalty).__name__} on a set has none: use apdca"
            raise MissingPieceError(f"{self.name} needs the prox of the whole penalty; {lacks}")

    def residual(self, problem: Problem, point: Point) -> float:
        return problem.with_undivided_penalty.residual(point)

    def init(self, problem: Problem, x: Point) -> Any:
        return super().init(problem.with_undivided_penalty, x)  # type: ignore[safe-super]

    def step(self, problem: Problem, s: Any) -> Any:
        return super().step(problem.with_undivided_penalty, s)  # type: ignore[safe-super]
