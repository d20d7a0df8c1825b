"""What a method is: `init` and `step`, pure, on a state whose fields are the paper's symbols. No loop, stop, print or clock."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from ksparse.problem import Point, Problem


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


class Method(Protocol):
    """An algorithm."""

    name: ClassVar[str]
    stop: ClassVar[str]  # the paper's stopping rule for it: "objective" or "step"
    patience: ClassVar[int]  # how many small changes in a row end it: 2 where a Barzilai–Borwein step may stand still by accident

    def require(self, problem: Problem) -> None:
        """Say what the method lacks in this problem's pieces."""

    def init(self, problem: Problem, x: Point) -> Any:
        """The state at t = 0."""

    def step(self, problem: Problem, s: Any) -> Any:
        """The state at t + 1."""
