"""Step sizes: how far to go from a point. A step is z = prox_{g1/l}(y − (∇f(y) − s)/l), and a rule chooses l."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from ksparse.errors import MissingPieceError
from ksparse.firstorder.problem import Point, Problem
from ksparse.util.arrays import Array, against, dot, epsilon, norm, norms, on_device, read, sqnorm
from ksparse.util.checks import check_number

SPAN = 1e60  # a line search may raise l by so much before it gives up: from the least l to the greatest
VANISHED = 1e-15  # of the curvature that turns the slope within the size of x: less is rounding, as where a loss is saturated


@dataclass(frozen=True, slots=True)
class Memory:
    """What a rule remembers of the last step: its l, and if needed the point it began at, with ∇f there."""

    point: Point | None
    l: float  # noqa: E741
    gradient: Array | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """Where a step led."""

    z: Point  # the new point
    memory: Memory  # for the next step
    residual: float  # l‖z − y‖, relative: how far the base point was from stationary
    moved: float  # ‖z − y‖

    @property
    def l(self) -> float:  # noqa: E743
        """The accepted 1/step."""
        return self.memory.l


class StepRule(Protocol):
    """Chooses l for one step from a point."""

    def start(self, problem: Problem, x: Point) -> Memory:
        """The memory before the first step."""

    def from_point(self, problem: Problem, y: Point, memory: Memory, s: Array | None = None) -> Step:
        """The step from y; s is the subgradient of g2 to use, that at y where none is given."""


def check_rule(rule: object, name: str = "rule") -> None:
    """Refuse what is no step rule."""
    if isinstance(rule, type) or not hasattr(rule, "from_point"):
        raise TypeError(f"{name} must be a step rule such as FixedStep(L) or Backtracking(), got {rule!r}")


def _prox_step(problem: Problem, y: Point, gradient: Array, s: Array, l: float) -> Point:  # noqa: E741
    z = problem.point(problem.prox_g1(against(y.x, gradient - s, l), l))
    z.in_C = True
    return z


def _finish(problem: Problem, z: Point, memory: Memory, moved: float, gradient_norm: float) -> Step:
    # l‖z − y‖ falls with l, so that a long step would look stationary: the curvature of the first step is the least yardstick
    return Step(z, memory, problem.relative_to(max(memory.l, problem.yardstick) * moved, gradient_norm), moved)


@dataclass(frozen=True)
class FixedStep:
    """The step 1/L.

    Parameters
    ----------
    L : float or None, default=None
        The inverse step; None for the Lipschitz constant of ∇f, which is computed (never too small).

    Raises
    ------
    ValueError
        If L is not above 0.

    Examples
    --------
    >>> import numpy as np
    >>> import ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 20))
    >>> b = A[:, :3] @ [1.0, -2.0, 1.5] + 0.1 * rng.standard_normal(60)
    >>> ks.minimize(ks.LeastSquares(A, b), 3, method=ks.PDCA(ks.FixedStep())).support
    array([0, 1, 2])
    """

    L: float | None = None

    def __post_init__(self) -> None:
        if self.L is not None:
            check_number(self.L, "L", above=0)

    def start(self, problem: Problem, x: Point) -> Memory:
        L = problem.lipschitz() if self.L is None else self.L
        if not math.isfinite(L):
            name = type(problem.loss).__name__
            raise MissingPieceError(f"FixedStep needs a Lipschitz constant of the gradient; {name} has none: use Backtracking()")
        return Memory(None, max(L, 1e-300))  # a linear f has L = 0: any step will do

    def from_point(self, problem: Problem, y: Point, memory: Memory, s: Array | None = None) -> Step:
        s = problem.subgradient_g2(y) if s is None else s
        gradient = problem.grad_f(y)
        z = _prox_step(problem, y, gradient, s, memory.l)
        # nothing of y is remembered: vectors, where the data are a sparse matrix, are what memory goes to
        moved, gradient_norm = problem.measure(z, z.x - y.x, gradient)
        return _finish(problem, z, memory, moved, gradient_norm)


@dataclass(frozen=True)
class Backtracking:
    """Barzilai–Borwein start ``l = ⟨Δx, Δ∇f⟩/⟨Δx, Δx⟩``, then ``l ← ηl`` until the step is good (paper, eqs. backtracking, BBrule).

    Good is ``F(z) ≤ F(y) − (σl/2)‖z − y‖²``. The factor l is GIST's; the paper drops it, and with it the rule's indifference to the units
    of φ. Where y lies outside C, F(y) = ∞ says nothing, and the descent lemma is asked for instead.

    Parameters
    ----------
    sigma : float, default=1e-5
        σ in (0, 1), how much F must fall.
    eta : float, default=2.0
        η > 1, by which l grows.
    shrink : float, default=16.0
        l falls by no more than this at once: each doubling back costs a product with the data.
    l_min : float, default=1e-30
        Least l, in units of the curvature along the first direction (where that vanishes, of the slope over the size of x).
    l_max : float, default=1e30
        Greatest l, in the same units.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Examples
    --------
    >>> import numpy as np
    >>> import ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 20))
    >>> b = A[:, :3] @ [1.0, -2.0, 1.5] + 0.1 * rng.standard_normal(60)
    >>> ks.minimize(ks.LeastSquares(A, b), 3, method=ks.PDCA(ks.Backtracking(eta=4.0))).support
    array([0, 1, 2])
    """

    sigma: float = 1e-5  # σ ∈ (0, 1)
    eta: float = 2.0  # η > 1
    shrink: float = 16.0  # l falls by no more than this at once: each doubling back costs a product with the data
    l_min: float = 1e-30  # in units of the curvature along the first direction
    l_max: float = 1e30

    def __post_init__(self) -> None:
        check_number(self.sigma, "sigma", above=0, below=1)
        check_number(self.eta, "eta", above=1)
        check_number(self.shrink, "shrink", above=1)
        check_number(self.l_min, "l_min", above=0)
        check_number(self.l_max, "l_max", above=self.l_min)

    def start(self, problem: Problem, x: Point) -> Memory:
        """l from the curvature of f along the first direction, so that the first step fits the units of the data."""
        pull = problem.grad_f(x) - problem.subgradient_g2(x)
        size = float(norm(pull))
        if size == 0 or not math.isfinite(size):
            return Memory(None, 1.0)
        curvature = float(abs(problem.curvature(x, problem.point(pull / size))))
        turning = size / max(float(norm(x.x)), 1.0)
        problem.unit = curvature if curvature > VANISHED * turning else turning
        problem.yardstick = self._clip(problem, curvature)
        return Memory(None, problem.yardstick)

    def _clip(self, problem: Problem, l: float) -> float:  # noqa: E741
        return min(max(l, self.l_min * problem.unit), self.l_max * problem.unit)

    def _barzilai_borwein(self, problem: Problem, memory: Memory, size: float, turn: float) -> float:
        """l from the last step by ⟨Δx, Δx⟩ and ⟨Δx, Δ∇f⟩."""
        if size == 0:
            return memory.l
        curvature = turn / size
        # along a direction of no or negative curvature the last l is too careful: go twice as far
        l = curvature if curvature > 0 else memory.l / 2.0  # noqa: E741
        return self._clip(problem, max(l, memory.l / self.shrink))

    def from_point(self, problem: Problem, y: Point, memory: Memory, s: Array | None = None) -> Step:
        at_y = s is None  # pDCAₑ takes s elsewhere, where F(y) is no majorant's value
        s = problem.subgradient_g2(y) if s is None else s
        gradient = problem.grad_f(y)
        compare_F = at_y and problem.contains(y)
        dx = None if memory.point is None else y.x - memory.point.x
        size = 0.0 if dx is None else sqnorm(dx)
        turn = 0.0 if dx is None else dot(dx, gradient - memory.gradient)
        size, turn, value = read(size, turn, problem.F(y) if compare_F else problem.f(y))
        if compare_F and value == math.inf:  # a penalty that y does not obey
            compare_F, value = False, float(problem.f(y))
        allowed = value + 8.0 * epsilon(y.x) * abs(value)  # with rounding
        l = first = self._barzilai_borwein(problem, memory, size, turn)  # noqa: E741
        moved = gradient_norm = 0.0
        longest: Point | None = None  # the first trial's move, of which the others are fractions
        for trial in range(math.ceil(math.log(SPAN) / math.log(self.eta))):
            z = _prox_step(problem, y, gradient, s, l) if longest is None else y.along(self.eta**-trial, longest)
            d = z.x - y.x
            if compare_F:
                moved, *rest = problem.measure(z, d, gradient) if trial == 0 else problem.measure(z, d)
                gradient_norm = rest[0] if rest else gradient_norm
                good = problem.F(z) <= allowed - 0.5 * self.sigma * l * (moved * moved)
            else:  # the descent lemma: f(z) ≤ f(y) + ⟨∇f(y), z − y⟩ + (l/2)‖z − y‖²
                f_z, slope = problem.f(z), dot(gradient, d)
                moved, gradient_norm, f_z, slope = problem.read(z, *norms(d, gradient), f_z, slope)
                good = f_z <= allowed + slope + 0.5 * l * (moved * moved)
            if good:
                break
            if trial == 0 and problem.straight and on_device(y.x):  # a shorter step goes the same way, and costs no product
                longest = Point(problem, d, z.image - y.image)
            l *= self.eta  # noqa: E741
        else:  # not even the smallest step descends: y is stationary to rounding
            z, l, moved = (y, first, 0.0) if compare_F else (z, l, moved)  # noqa: E741
        return _finish(problem, z, Memory(y, l, gradient), moved, gradient_norm)
