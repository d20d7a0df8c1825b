"""The composite problem min F = f + g1 − g2 over C, a point with its image, and the stopping rules of a run.

Where g1 is smooth (the paper's ℓ2 penalty), f = φ + g1 and the prox is that of the indicator of C alone. Otherwise
f = φ, and g1 and the indicator of C have a joint prox.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ksparse.errors import MissingPieceError
from ksparse.losses import Loss
from ksparse.losses.base import count_evaluations
from ksparse.penalties import Penalty, Undivided
from ksparse.sets import ConvexSet, WholeSpace, require_length
from ksparse.util.arrays import Array, axpy, epsilon, namespace, norm, norm_inf, read
from ksparse.util.checks import check_integer, check_number


@dataclass
class Products:
    """Numbers of products with the data and of evaluations of φ."""

    forward: int = 0
    adjoint: int = 0

    @property
    def total(self) -> int:
        """Forward and adjoint products."""
        return self.forward + self.adjoint


@dataclass(frozen=True)
class Stopping:
    """Stopping rules; a run ends when the first of them holds."""

    tol: float = 1e-5  # relative change of F, or of x for rule "step"
    tol_residual: float = -1.0  # relative stationarity residual; negative: never
    max_iter: int = 10_000
    max_time: float | None = None  # seconds
    rule: str | None = None  # "objective" or "step"; None: the method's own
    patience: int | None = None  # consecutive small changes; None: the method's own

    def __post_init__(self) -> None:
        check_number(self.tol, "tol", at_least=0)
        check_number(self.tol_residual, "tol_residual")
        check_integer(self.max_iter, "max_iter", 0)
        check_number(0.0 if self.max_time is None else self.max_time, "max_time", at_least=0)
        check_integer(1 if self.patience is None else self.patience, "patience", 1)
        if self.rule not in (None, "objective", "step"):
            raise ValueError(f"stop must be 'objective' or 'step', got {self.rule!r}")

    def until(self, deadline: float) -> Stopping:
        """Return the rules with the time that is left."""
        return replace(self, max_time=None if math.isinf(deadline) else max(0.0, deadline - time.perf_counter()))


class Point:
    """x with its image. A linear combination of points is a point and costs no product with the data.

    The other quantities are computed on first use and kept; g, the subgradient of g2 and what they share are those
    of the penalty of `problem`. On a GPU, φ and F may stay there until `Problem.read` copies them to the host.
    """

    def __init__(self, problem: Problem, x: Array, image: Array | None = None) -> None:
        self.problem, self.x = problem, x
        if image is not None:
            self.image = image
        self.F_value: float | None = None
        self.in_C = False  # whether x is the result of a projection onto C

    @cached_property
    def size(self) -> float:
        """max |xᵢ|."""
        return norm_inf(self.x)

    @cached_property
    def image(self) -> Array:
        """The image of x under the loss: one forward product."""
        self.problem.products.forward += self.problem.loss.forward_cost
        return self.problem.loss.image(self.x)

    @cached_property
    def phi(self) -> float:
        """φ(x)."""
        count_evaluations(values=1)
        return self.problem.loss.value_at(self.x, self.image)

    @cached_property
    def gradient(self) -> Array:
        """∇φ(x): at most one adjoint product."""
        count_evaluations(gradients=1)
        self.problem.products.adjoint += self.problem.loss.adjoint_cost
        return self.problem.loss.gradient_at(self.x, self.image)

    @cached_property
    def shared(self) -> Any:
        """What g(x) and the subgradient of g2 both need."""
        return self.problem.penalty.shared(self.x)

    @cached_property
    def g(self) -> float:
        """g(x)."""
        return self.problem.penalty.value_with(self.x, self.shared)

    @cached_property
    def subgradient(self) -> Array:
        """One element of ∂g2(x)."""
        return self.problem.penalty.subgradient_with(self.x, self.shared)

    def __add__(self, other: Point) -> Point:
        return Point(self.problem, self.x + other.x, self.image + other.image)

    def __sub__(self, other: Point) -> Point:
        return Point(self.problem, self.x - other.x, self.image - other.image)

    def __rmul__(self, factor: float) -> Point:
        return Point(self.problem, factor * self.x, factor * self.image)

    def along(self, a: float, d: Point) -> Point:
        """Return the point x + a·d."""
        return Point(self.problem, axpy(self.x, a, d.x), axpy(self.image, a, d.image))


class Problem:
    """min F(x) = f(x) + g1(x) − g2(x) over C."""

    def __init__(self, loss: Loss, penalty: Penalty, C: ConvexSet | None = None, n: int | None = None) -> None:
        C = WholeSpace() if C is None else C
        length = loss.n or C.n or n
        if length is None:
            raise ValueError("the number of variables is not known: give x0, or n to the loss")
        require_length(C, length)
        penalty.check_length(length)
        self.loss, self.penalty, self.n = loss, penalty, int(length)
        self.smooth = penalty.smooth_curvature is not None  # whether g1 is smooth and part of f
        self.curvature_g1 = penalty.smooth_curvature or 0.0
        self.products = Products()
        self._scale: float | None = None  # ‖∇f(0)‖, set by `measure_scale`
        self.curvature_unit = 1.0  # of l_min and l_max; set by a step rule, as is `reference_curvature`
        self.reference_curvature = 0.0  # curvature of f along the first direction
        self.C = C.for_length(self.n).like(self.zeros())

    def zeros(self) -> Array:
        """Return 0 in the namespace, dtype and device of x."""
        return self.loss.zeros(self.n)

    def point(self, x: Array) -> Point:
        """Return x as a point; its image is computed on first use."""
        return Point(self, x)

    def point_from(self, point: Point) -> Point:
        """Convert a point of another problem with the same φ and C into one of this problem; keep image, φ and ∇φ."""
        copied, known = Point(self, point.x), vars(point)
        vars(copied).update({name: known[name] for name in ("image", "phi", "gradient") if name in known})
        return copied

    def f(self, point: Point) -> float:
        """Return f(x): φ plus the penalty's smooth part."""
        return point.phi + self.penalty.g1(point.x) if self.smooth else point.phi

    def grad_f(self, point: Point) -> Array:
        """Return ∇f(x)."""
        return self.penalty.plus_gradient_g1(point.gradient, point.x) if self.smooth else point.gradient

    def F(self, point: Point) -> float:
        """Return F(x) = f(x) + g1(x) − g2(x), for x in C."""
        # a point of the problem whose penalty is not split into g1 − g2 (`Undivided`) has the same g
        if point.F_value is None:
            own = point.problem is self
            point.F_value = point.phi + (point.g if own else self.penalty.value(point.x))
        return point.F_value

    def read(self, point: Point, *numbers: float) -> list[float]:
        """Return the numbers as floats, and store F(point) as a float; all are read from the device at once.

        If φ may be unbounded below, max |xᵢ| is read with them.
        """
        if self.loss.least > -math.inf:
            point.F_value, *found = read(self.F(point), *numbers)
        else:
            point.F_value, point.size, *found = read(self.F(point), point.size, *numbers)
        return found

    def prox_g1(self, u: Array, l: float) -> Array:  # noqa: E741
        """Return the prox of (g1 + I_C)/l at u."""
        return self.penalty.prox_g1_on(self.C, u, 1.0 / l)

    def subgradient_g2(self, point: Point) -> Array:
        """Return one s(x) ∈ ∂g2(x)."""
        # a point of the problem with `Undivided` has another g2
        return point.subgradient if point.problem is self else self.penalty.subgradient_g2(point.x)

    @property
    def prox_is_identity(self) -> bool:
        """Whether prox_g1 is the identity, so that steps of all lengths go in the same direction."""
        return self.smooth and self.C.whole_space

    def project_to_domain(self, x: Array) -> Point:
        """Return the point of the domain of g1 + I_C where a run from x starts."""
        return self.point(self.penalty.enter(self.C, x))

    def curvature(self, point: Point, d: Point) -> float:
        """Return dᵀ∇²f(x)d: one forward product, or two gradients if φ has no second derivatives."""
        count_evaluations(gradients=self.loss.curvature_gradients)
        return self.loss.curvature_at(point.x, point.image, d.x, d.image) + self.curvature_g1 * norm(d.x) ** 2

    def lipschitz(self) -> float:
        """Return L, a Lipschitz constant of ∇f: L_φ, plus 2ρ for `TopK2`, whose g1 is part of f."""
        return self.loss.lipschitz() + self.curvature_g1

    def measure_scale(self, point: Point) -> None:
        """Compute ‖∇f(0)‖, the scale of relative residuals, without a product for the image of 0.

        If 0 is not in C, a custom φ may be undefined at 0: use the point of C nearest to 0.
        """
        if self._scale is not None:
            return
        zero = self.zeros()
        if not bool(namespace(zero).any(point.x != 0)):
            reference = point
        elif self.loss.defined_everywhere or self.C.contains(zero):
            reference = 0.0 * point
        else:
            reference = self.point(self.C.project(zero))
        self._scale = float(norm(self.grad_f(reference)))

    def relative(self, residual: float, gradient: Array) -> float:
        """Return a stationarity residual at x divided by the larger of ‖∇f(0)‖ and ‖∇f(x)‖."""
        return self.relative_to(residual, float(norm(gradient)))

    def relative_to(self, residual: float, gradient_norm: float, least: float = 0.0) -> float:
        """Return a stationarity residual divided by the largest of ‖∇f(0)‖, ‖∇f(x)‖ and `least`."""
        scale = max(self._scale or 0.0, least, gradient_norm)
        return residual / scale if scale > 0 else residual

    def floored_curvature(self, curvature: float, point: Point) -> float:
        """Return the larger of `curvature` and 1e-3·‖∇φ‖/‖x‖, which a linear φ has too."""
        length, slope = read(norm(point.x), norm(point.gradient))
        return max(curvature, 1e-3 * slope / (max(length, self.C.size) or 1.0), 1e-300)

    def residual(self, point: Point, l: float | None = None) -> float:  # noqa: E741
        """Return the relative residual l‖x − prox_{(g1 + I_C)/l}(x − (∇f(x) − s(x))/l)‖, 0 at stationary points only.

        By default l is the curvature of f along ∇f(x) − s(x).
        """
        self.measure_scale(point)
        gradient = self.grad_f(point)
        direction = gradient - self.subgradient_g2(point)
        size = float(norm(direction))
        if size == 0:
            return 0.0
        if l is None:
            curvature = float(abs(self.curvature(point, self.point(direction / size))))
            l = self.floored_curvature(curvature, point)  # noqa: E741
        moved, gradient_norm = read(norm(self.prox_g1(point.x - direction / l, l) - point.x), norm(gradient))
        return self.relative_to(l * moved, gradient_norm, cancellation(self.loss, point.x, point.phi, l))

    def with_penalty(self, penalty: Penalty, C: ConvexSet | None = None) -> Problem:
        """Return the problem with another penalty (and set), the same φ and shared counts."""
        changed = Problem(self.loss, penalty, self.C if C is None else C, self.n)
        changed.products, changed._scale = self.products, self._scale
        return changed

    @cached_property
    def with_undivided_penalty(self) -> Problem:
        """The same F with f = φ, g1 = g and g2 = 0, for methods that use the prox of the whole penalty."""
        return self.with_penalty(Undivided(self.penalty), WholeSpace())


def cancellation(loss: Loss, x: Array, phi: float, l: float) -> float:  # noqa: E741
    """Return the size of a gradient at x that may be cancellation error.

    That is √eps·l‖x‖, or √eps times the gradient at which φ could fall to 0. If φ may be unbounded below it is 0: a
    large ‖x‖ is then the symptom, which must not be hidden.
    """
    if loss.least == -math.inf:
        return 0.0
    return math.sqrt(epsilon(x)) * max(float(l * norm(x)), math.sqrt(2.0 * l) * math.sqrt(abs(float(phi))))


def require_prox(problem: Problem, method: str) -> None:
    """Raise MissingPieceError if the prox of g1 + I_C has no closed form."""
    if not problem.penalty.supports(problem.C):
        lacks = f"{problem.penalty} on {problem.C} has none in closed form: use TopK2, or l1dca in minimize"
        raise MissingPieceError(f"{method} needs the prox of g1 on C; {lacks}")


def require_cardinality(given: bool, problem: Problem, method: str) -> None:
    """Raise MissingPieceError if the constraint of at most k nonzeros is not given."""
    if not given:
        needed = f"the constraint of at most k nonzeros, not the penalty {problem.penalty}: use minimize(loss, k)"
        raise MissingPieceError(f"{method} needs {needed}")
