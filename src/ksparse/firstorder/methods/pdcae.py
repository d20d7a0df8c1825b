"""pDCAₑ: the proximal DC algorithm with extrapolation (paper, Algorithm pDCAe; Wen, Chen, Pong 2018).

With g2 = 0 it is FISTA with restarts; with β = 0 it is PDCA with the fixed step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from ksparse.errors import MissingPieceError
from ksparse.firstorder.methods.base import Method
from ksparse.firstorder.problem import Point, Problem, require_prox
from ksparse.firstorder.steps import FixedStep, Memory, StepRule, check_rule
from ksparse.util.arrays import dot, norms, read
from ksparse.util.checks import check_integer


@dataclass(frozen=True, slots=True)
class PDCAeState:
    """The listing's variables at step t."""

    x_prev: Point  # x⁽ᵗ⁻¹⁾
    x: Point  # x⁽ᵗ⁾
    theta_prev: float  # θ of FISTA at t − 1
    theta: float  # θ of FISTA at t
    t: int  # steps taken
    beta: float  # β of the last step
    memory: Memory  # l, and where the rule needs it y⁽ᵗ⁻¹⁾
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

    β = (θ⁽ᵗ⁻¹⁾ − 1)/θ⁽ᵗ⁾ as in FISTA, set back to 0 every `restart` steps and whenever ⟨y − x⁺, x⁺ − x⟩ > 0.

    Parameters
    ----------
    rule : step rule, default=FixedStep()
        How far a step goes.
    restart : int, default=200
        Steps after which β is set back to 0.
    adaptive : bool, default=True
        Whether it is set back when the momentum points uphill too.
    extrapolate : bool, default=True
        False keeps β = 0.

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
    >>> ks.minimize(ks.LeastSquares(A, b), 3, method=ks.PDCAe(restart=50)).support
    array([0, 1, 2])
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
        if t % self.restart == 0 or momentum > 0:  # it points uphill
            theta_prev = theta = 1.0
        return PDCAeState(s.x, x, theta_prev, theta, t, beta, step.memory, step.residual, change, length)
