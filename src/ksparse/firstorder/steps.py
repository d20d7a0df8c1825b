"""Step rules: a step is z = prox_{g1/l}(y − (∇f(y) − s)/l), and a rule chooses l."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from ksparse.errors import MissingPieceError
from ksparse.firstorder.problem import Point, Problem
from ksparse.util.arrays import Array, dot, epsilon, minus_scaled, norm, norms, on_device, read, sqnorm
from ksparse.util.checks import check_number

SPAN = 1e60  # largest factor by which a line search raises l: l_max / l_min
VANISHED = 1e-15  # a curvature below this fraction of ‖∇f − s‖/max(‖x‖, 1) is rounding, as for a saturated loss


@dataclass(frozen=True, slots=True)
class StepMemory:
    """What a rule keeps of the last step: its l and, if the rule needs them, its base point and ∇f there."""

    point: Point | None
    l: float  # noqa: E741
    gradient: Array | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """Result of a step."""

    z: Point  # the new point
    memory: StepMemory
    residual: float  # l‖z − y‖, relative: the stationarity residual at y
    moved: float  # ‖z − y‖

    @property
    def l(self) -> float:  # noqa: E743
        """The accepted 1/step."""
        return self.memory.l


class StepRule(Protocol):
    """Rule that chooses l for one step from a point."""

    def start(self, problem: Problem, x: Point) -> StepMemory:
        """Return the memory before the first step."""

    def from_point(self, problem: Problem, y: Point, memory: StepMemory, s: Array | None = None) -> Step:
        """Return the step from y; s is the subgradient of g2 to use, by default that at y."""


def check_rule(rule: object, name: str = "rule") -> None:
    """Raise TypeError if `rule` is not a step rule."""
    if isinstance(rule, type) or not hasattr(rule, "from_point"):
        raise TypeError(f"{name} must be a step rule such as FixedStep(L) or Backtracking(), got {rule!r}")


def _prox_step(problem: Problem, y: Point, gradient: Array, s: Array, l: float) -> Point:  # noqa: E741
    z = problem.point(problem.prox_g1(minus_scaled(y.x, gradient - s, l), l))
    z.in_C = True
    return z


def _finish(problem: Problem, z: Point, memory: StepMemory, moved: float, gradient_norm: float) -> Step:
    # l‖z − y‖ falls with l, and a long step would look stationary: use at least the curvature of the first step
    residual = max(memory.l, problem.reference_curvature) * moved
    return Step(z, memory, problem.relative_to(residual, gradient_norm), moved)


@dataclass(frozen=True)
class FixedStep:
    """Fixed step size 1/L.

    Parameters
    ----------
    L : float or None, default=None
        Inverse step size; None to compute a Lipschitz constant of ∇f.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> loss = ks.LeastSquares(np.eye(3), [3.0, -4.0, 1.0])
    >>> ks.minimize(loss, 2, method=ks.PDCA(ks.FixedStep())).support
    array([0, 1])
    """

    L: float | None = None

    def __post_init__(self) -> None:
        if self.L is not None:
            check_number(self.L, "L", above=0)

    def start(self, problem: Problem, x: Point) -> StepMemory:
        L = problem.lipschitz() if self.L is None else self.L
        if not math.isfinite(L):
            name = type(problem.loss).__name__
            needed = "a Lipschitz constant of the gradient"
            raise MissingPieceError(f"FixedStep needs {needed}; {name} has none: use Backtracking()")
        return StepMemory(None, max(L, 1e-300))  # a linear f has L = 0, and any step is right

    def from_point(self, problem: Problem, y: Point, memory: StepMemory, s: Array | None = None) -> Step:
        s = problem.subgradient_g2(y) if s is None else s
        gradient = problem.grad_f(y)
        z = _prox_step(problem, y, gradient, s, memory.l)
        moved, gradient_norm = problem.read(z, *norms(z.x - y.x, gradient))
        # y is not stored: the rule does not need it, and it would cost memory
        return _finish(problem, z, memory, moved, gradient_norm)


@dataclass(frozen=True)
class Backtracking:
    """Backtracking line search from a Barzilai–Borwein start (the paper's PDCA with backtracking).

    Start at ``l = ⟨Δx, Δ∇f⟩/⟨Δx, Δx⟩`` and set ``l ← ηl`` until ``F(z) ≤ F(y) − (σl/2)‖z − y‖²``. The factor l is
    GIST's; without it, as printed in the paper, the rule depends on the units of φ. The test is the descent lemma if
    F(y) = ∞ (y outside C or the domain of g1), or if s is taken at another point (pDCAₑ).

    Parameters
    ----------
    sigma : float, default=1e-5
        σ in (0, 1), the required decrease of F.
    eta : float, default=2.0
        η > 1, the factor by which l grows.
    shrink : float, default=16.0
        Largest factor by which l may fall from one step to the next. If it falls too far, trials must raise it again,
        and each costs a product with the data.
    l_min : float, default=1e-30
        Smallest l, relative to the curvature along the first direction (or to ‖∇f − s‖/max(‖x‖, 1), s ∈ ∂g2(x), if
        that curvature is 0 to rounding).
    l_max : float, default=1e30
        Largest l, in the same unit.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> loss = ks.LeastSquares(np.eye(3), [3.0, -4.0, 1.0])
    >>> ks.minimize(loss, 2, method=ks.PDCA(ks.Backtracking(eta=4.0))).support
    array([0, 1])
    """

    sigma: float = 1e-5
    eta: float = 2.0
    shrink: float = 16.0
    l_min: float = 1e-30
    l_max: float = 1e30

    def __post_init__(self) -> None:
        check_number(self.sigma, "sigma", above=0, below=1)
        check_number(self.eta, "eta", above=1)
        check_number(self.shrink, "shrink", above=1)
        check_number(self.l_min, "l_min", above=0)
        check_number(self.l_max, "l_max", above=self.l_min)

    def start(self, problem: Problem, x: Point) -> StepMemory:
        """Return l from the curvature of f along the first direction, in the units of the data."""
        direction = problem.grad_f(x) - problem.subgradient_g2(x)
        size = float(norm(direction))
        if size == 0 or not math.isfinite(size):
            return StepMemory(None, 1.0)
        curvature = float(abs(problem.curvature(x, problem.point(direction / size))))
        slope_per_length = size / max(float(norm(x.x)), 1.0)
        problem.curvature_unit = curvature if curvature > VANISHED * slope_per_length else slope_per_length
        problem.reference_curvature = self._clip(problem, curvature)
        return StepMemory(None, problem.reference_curvature)

    def _clip(self, problem: Problem, l: float) -> float:  # noqa: E741
        return min(max(l, self.l_min * problem.curvature_unit), self.l_max * problem.curvature_unit)

    def _barzilai_borwein(self, problem: Problem, memory: StepMemory, dx_dx: float, dx_dg: float) -> float:
        """Return the initial l from ⟨Δx, Δx⟩ and ⟨Δx, Δ∇f⟩; the paper's Barzilai–Borwein rule gives 1/l."""
        if dx_dx == 0:
            return memory.l
        # along a direction of zero or negative curvature the last l is too large: halve it
        l = dx_dg / dx_dx if dx_dg / dx_dx > 0 else memory.l / 2.0  # noqa: E741
        return self._clip(problem, max(l, memory.l / self.shrink))

    def from_point(self, problem: Problem, y: Point, memory: StepMemory, s: Array | None = None) -> Step:
        at_y = s is None  # pDCAₑ takes s at another point, and the model is then no majorant of F at y
        s = problem.subgradient_g2(y) if s is None else s
        gradient = problem.grad_f(y)
        compare_F = at_y and (y.in_C or bool(problem.C.contains(y.x)))
        dx = None if memory.point is None else y.x - memory.point.x
        dx_dx = 0.0 if dx is None else sqnorm(dx)
        dx_dg = 0.0 if dx is None else dot(dx, gradient - memory.gradient)
        dx_dx, dx_dg, value = read(dx_dx, dx_dg, problem.F(y) if compare_F else problem.f(y))
        if compare_F and value == math.inf:  # y is outside the domain of g1
            compare_F, value = False, float(problem.f(y))
        allowed = value + 8.0 * epsilon(y.x) * abs(value)  # plus rounding
        l = first = self._barzilai_borwein(problem, memory, dx_dx, dx_dg)  # noqa: E741
        moved = gradient_norm = 0.0
        first_move: Point | None = None  # later trials are fractions of it
        for trial in range(math.ceil(math.log(SPAN) / math.log(self.eta))):
            z = _prox_step(problem, y, gradient, s, l) if first_move is None else y.along(self.eta**-trial, first_move)
            d = z.x - y.x
            if compare_F:
                moved, gradient_norm = problem.read(z, *norms(d, gradient))
                good = problem.F(z) <= allowed - 0.5 * self.sigma * l * (moved * moved)
            else:  # the descent lemma: f(z) ≤ f(y) + ⟨∇f(y), z − y⟩ + (l/2)‖z − y‖²
                f_z, slope = problem.f(z), dot(gradient, d)
                moved, gradient_norm, f_z, slope = problem.read(z, *norms(d, gradient), f_z, slope)
                good = f_z <= allowed + slope + 0.5 * l * (moved * moved)
            if good:
                break
            if trial == 0 and problem.prox_is_identity and on_device(y.x):  # so that a trial costs no product
                first_move = Point(problem, d, z.image - y.image)
            l *= self.eta  # noqa: E741
        else:  # the smallest step does not descend: y is stationary to rounding
            z, l, moved = (y, first, 0.0) if compare_F else (z, l, moved)  # noqa: E741
        return _finish(problem, z, StepMemory(y, l, gradient), moved, gradient_norm)
