"""pDCAₑ, the proximal DC algorithm with extrapolation (paper, Algorithm pDCAe; Wen, Chen, Pong 2018).

With g2 = 0 it is FISTA with restarts; with β = 0 it is PDCA with the fixed step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from ksparse.errors import MissingPieceError
from ksparse.firstorder.methods.base import Method
from ksparse.firstorder.problem import Point, Problem, require_prox
from ksparse.firstorder.steps import FixedStep, StepMemory, StepRule, check_rule
from ksparse.util.arrays import dot, norms, read
from ksparse.util.checks import check_integer


@dataclass(frozen=True, slots=True)
class PDCAeState:
    """The variables of the listing at step t."""

    x_prev: Point  # x⁽ᵗ⁻¹⁾
    x: Point  # x⁽ᵗ⁾
    theta_prev: float  # θ⁽ᵗ⁻¹⁾ of FISTA
    theta: float  # θ⁽ᵗ⁾
    t: int  # steps taken
    beta: float  # β of the last step
    memory: StepMemory  # l and, if the rule needs it, y⁽ᵗ⁻¹⁾
    residual: float = math.inf
    change: float = math.inf  # ‖x⁽ᵗ⁾ − x⁽ᵗ⁻¹⁾‖
    length: float = math.inf  # ‖x⁽ᵗ⁾‖

    @property
    def l(self) -> float:  # noqa: E743
        """l of the last step."""
        return self.memory.l


@dataclass(frozen=True)
class PDCAe(Method):
    """``x⁽ᵗ⁺¹⁾ = prox_{g₁/L}(y − (∇f(y) − s(x⁽ᵗ⁾))/L)``, ``y = x⁽ᵗ⁾ + β(x⁽ᵗ⁾ − x⁽ᵗ⁻¹⁾)``; f convex.

    β = (θ⁽ᵗ⁻¹⁾ − 1)/θ⁽ᵗ⁾ as in FISTA, reset to 0 every `restart` steps and whenever ⟨y − x⁽ᵗ⁺¹⁾, x⁽ᵗ⁺¹⁾ − x⁽ᵗ⁾⟩ > 0.

    Parameters
    ----------
    rule : step rule, default=FixedStep()
        `FixedStep` or `Backtracking`.
    restart : int, default=200
        Number of steps between resets of β to 0.
    adaptive : bool, default=True
        Whether to reset β also when the extrapolation points in an ascent direction.
    extrapolate : bool, default=True
        Whether to extrapolate; False keeps β = 0.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> loss = ks.LeastSquares(np.eye(3), [3.0, -4.0, 1.0])
    >>> ks.minimize(loss, 2, method=ks.PDCAe(restart=50)).support
    array([0, 1])
    """

    rule: StepRule = field(default_factory=FixedStep)
    restart: int = 200
    adaptive: bool = True
    extrapolate: bool = True
    name: ClassVar[str] = "pdcae"
    stop: ClassVar[str] = "step"

    def __post_init__(self) -> None:
        check_rule(self.rule)
        check_integer(self.restart, "restart", 1)

    def require(self, problem: Problem) -> None:
        require_prox(problem, self.name)
        if problem.loss.convex is False:
            name = type(problem.loss).__name__
            raise MissingPieceError(f"pdcae needs a convex loss; {name} is not convex here: use apdca")

    def init(self, problem: Problem, x: Point) -> PDCAeState:
        return PDCAeState(x, x, 1.0, 1.0, 0, 0.0, self.rule.start(problem, x))

    def step(self, problem: Problem, s: PDCAeState) -> PDCAeState:
        beta = (s.theta_prev - 1.0) / s.theta if self.extrapolate else 0.0
        y = s.x.along(beta, s.x - s.x_prev) if beta else s.x  # x + β(x − x_prev)
        step = self.rule.from_point(problem, y, s.memory, problem.subgradient_g2(s.x))
        x = step.z
        theta_prev, theta, t = s.theta, (1.0 + math.sqrt(1.0 + 4.0 * s.theta**2)) / 2.0, s.t + 1
        d = x.x - s.x.x
        momentum, change, length = read(dot(y.x - x.x, d) if self.adaptive else 0.0, *norms(d, x.x))
        if t % self.restart == 0 or momentum > 0:  # the extrapolation points in an ascent direction
            theta_prev = theta = 1.0
        return PDCAeState(s.x, x, theta_prev, theta, t, beta, step.memory, step.residual, change, length)
