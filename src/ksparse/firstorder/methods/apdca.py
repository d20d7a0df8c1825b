"""APDCA, the accelerated proximal DC algorithm (paper, Algorithm APDCA), and nmAPG (Li, Lin 2015)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar

from ksparse.firstorder.methods.base import Method, WithUndividedPenalty
from ksparse.firstorder.problem import Point, Problem, require_prox
from ksparse.firstorder.steps import Backtracking, StepMemory, StepRule, check_rule
from ksparse.util.arrays import dot
from ksparse.util.checks import check_number


@dataclass(frozen=True, slots=True)
class APDCAState:
    """The variables of the listing at step t."""

    x_prev: Point  # x⁽ᵗ⁻¹⁾
    x: Point  # x⁽ᵗ⁾
    z: Point  # z⁽ᵗ⁾, the accelerated sequence
    theta_prev: float  # θ⁽ᵗ⁻¹⁾
    theta: float  # θ⁽ᵗ⁾
    q: float  # q⁽ᵗ⁾, the total weight in c
    c: float  # c⁽ᵗ⁾, the weighted mean of past F(x)
    y_memory: StepMemory  # l_y and, if the rule needs it, y⁽ᵗ⁻¹⁾
    x_memory: StepMemory  # l_x, and y⁽ᵗ⁻¹⁾ again: the v-step measures curvature from y⁽ᵗ⁻¹⁾ to x⁽ᵗ⁾
    l: float  # noqa: E741  # l of the step that gave x⁽ᵗ⁾
    residual: float = math.inf


@dataclass(frozen=True)
class APDCA(Method):
    """PDCA with Nesterov's extrapolation, safeguarded by the nonmonotone test of Li and Lin.

    Parameters
    ----------
    rule : step rule, default=Backtracking()
        `Backtracking` or `FixedStep`.
    delta : float, default=1e-5
        δ of the nonmonotone test.
    eta : float, default=0.8
        η in (0, 1], the weight of the past in the mean c.
    adaptive : bool, default=False
        Whether to restart the extrapolation when it points in an ascent direction, as in `PDCAe`; the paper leaves
        this open.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> loss = ks.LeastSquares(np.eye(3), [3.0, -4.0, 1.0])
    >>> ks.minimize(loss, 2, method=ks.APDCA(eta=0.9)).support
    array([0, 1])
    """

    rule: StepRule = field(default_factory=Backtracking)
    delta: float = 1e-5
    eta: float = 0.8
    adaptive: bool = False
    name: ClassVar[str] = "apdca"

    def __post_init__(self) -> None:
        check_rule(self.rule)
        check_number(self.delta, "delta", above=0)
        check_number(self.eta, "eta", above=0, at_most=1)

    def require(self, problem: Problem) -> None:
        require_prox(problem, self.name)

    def init(self, problem: Problem, x: Point) -> APDCAState:
        memory = self.rule.start(problem, x)
        return APDCAState(x, x, x, 0.0, 1.0, 1.0, problem.F(x), memory, memory, memory.l)

    def step(self, problem: Problem, s: APDCAState) -> APDCAState:
        y = s.x if s.z is s.x else s.x.along(s.theta_prev / s.theta, s.z - s.x)  # z⁽ᵗ⁾ = x⁽ᵗ⁾ if the z-step was taken
        y = y.along((s.theta_prev - 1.0) / s.theta, s.x - s.x_prev)  # eq. (APDCAtop)
        z_step = self.rule.from_point(problem, y, s.y_memory)  # eq. (computez)
        z, taken, l_x = z_step.z, z_step, s.x_memory.l
        if not problem.F(z) + self.delta * (z_step.moved * z_step.moved) <= s.c:  # eq. (nmcriteria)
            v_step = self.rule.from_point(problem, s.x, s.x_memory)  # eq. (computev)
            l_x = v_step.l
            taken = min(z_step, v_step, key=lambda step: problem.F(step.z))  # eq. (APDCAbottom)
        x, x_memory = taken.z, replace(z_step.memory, l=l_x)
        q = self.eta * s.q + 1.0
        c = (self.eta * s.q * s.c + problem.F(x)) / q  # below eq. (nmcriteria)
        theta = (math.sqrt(4.0 * s.theta**2 + 1.0) + 1.0) / 2.0  # eq. (APDCAupdateT)
        after = APDCAState(s.x, x, z, s.theta, theta, q, c, z_step.memory, x_memory, taken.l, taken.residual)
        uphill = self.adaptive and dot(y.x - z.x, z.x - s.x.x) > 0
        return replace(after, x_prev=x, z=x, theta_prev=0.0, theta=1.0) if uphill else after


@dataclass(frozen=True)
class NmAPG(WithUndividedPenalty, APDCA):
    """APDCA with g₁ = g and g₂ = 0: both steps use the prox of the whole penalty (Li, Lin 2015).

    Parameters
    ----------
    rule : step rule, default=Backtracking()
        `Backtracking` or `FixedStep`.
    delta : float, default=1e-5
        δ of the nonmonotone test.
    eta : float, default=0.8
        η in (0, 1], the weight of the past in the mean c.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> loss = ks.LeastSquares(np.eye(3), [3.0, -4.0, 1.0])
    >>> ks.minimize(loss, 2, method=ks.NmAPG()).support
    array([0, 1])
    """

    adaptive: bool = field(default=False, init=False, repr=False)
    name: ClassVar[str] = "nmapg"
