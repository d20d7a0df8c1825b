"""The composite problem min F = f + g1 − g2 over C, a point with its image, and the stopping rules of a run.

f is φ. Where g1 is smooth (the paper's ℓ2 penalty) it is part of f, and the prox is that of the indicator of C alone.
Otherwise g1 and the indicator of C have a joint prox.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import array_api_compat as compat

from ksparse.errors import MissingPieceError
from ksparse.losses import Loss
from ksparse.penalties import Penalty, Undivided
from ksparse.sets import ConvexSet, WholeSpace, require_length
from ksparse.util.arrays import Array, axpy, epsilon, namespace, norm, norm_inf, norms, on_device, read
from ksparse.util.checks import check_integer, check_number
from ksparse.util.evaluations import count


@dataclass
class Products:
    """Numbers of products with the data and of evaluations of φ and ∇φ."""

    forward: int = 0
    adjoint: int = 0
    values: int = 0
    gradients: int = 0

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
        if self.max_time is not None:
            check_number(self.max_time, "max_time", at_least=0)
        if self.patience is not None:
            check_integer(self.patience, "patience", 1)
        if self.rule not in (None, "objective", "step"):
            raise ValueError(f"stop must be 'objective' or 'step', got {self.rule!r}")


class Point:
    """x with its image. A linear combination of points is a point and costs no product with the data.

    The image, φ, ∇φ, F and max |xᵢ| are computed on first use and kept. On a GPU, φ and F may stay there until
    `Problem.read` copies them to the host.
    """

    __slots__ = (
        "F_value",
        "_g",
        "_gradient",
        "_image",
        "_phi",
        "_shared",
        "_size",
        "_subgradient",
        "in_C",
        "problem",
        "x",
    )

    def __init__(self, problem: Problem, x: Array, image: Array | None = None) -> None:
        self.problem, self.x = problem, x
        self._image = image
        self._phi: float | None = None
        self._gradient: Array | None = None
        self._size: float | None = None
        self._g: float | None = None  # g(x), s(x) ∈ ∂g2(x) and what they share: for the penalty of `problem`
        self._subgradient: Array | None = None
        self._shared: Any = None
        self.F_value: float | None = None
        self.in_C = False  # whether x is the result of a projection onto C

    @property
    def size(self) -> float:
        """max |xᵢ|."""
        if self._size is None:
            self._size = norm_inf(self.x)
        return self._size

    @property
    def image(self) -> Array:
        """The image of x under the loss: one forward product."""
        if self._image is None:
            self.problem.products.forward += self.problem.loss.forward_cost
            self._image = self.problem.loss.image(self.x)
        return self._image

    @property
    def phi(self) -> float:
        """φ(x)."""
        if self._phi is None:
            self.count_value()
            self._phi = self.problem.loss.value_at(self.x, self.image)
        return self._phi

    def count_value(self) -> None:
        """Count an evaluation of φ."""
        self.problem.products.values += 1
        count(values=1)

    @property
    def gradient(self) -> Array:
        """∇φ(x): at most one adjoint product."""
        if self._gradient is None:
            self.problem.products.gradients += 1
            count(gradients=1)
            self.problem.products.adjoint += self.problem.loss.adjoint_cost
            self._gradient = self.problem.loss.gradient_at(self.x, self.image)
        return self._gradient

    def __add__(self, other: Point) -> Point:
        return Point(self.problem, self.x + other.x, self.image + other.image)

    def __sub__(self, other: Point) -> Point:
        return Point(self.problem, self.x - other.x, self.image - other.image)

    def along(self, a: float, d: Point) -> Point:
        """Return the point x + a·d."""
        return Point(self.problem, axpy(self.x, a, d.x), axpy(self.image, a, d.image))

    def __rmul__(self, factor: float) -> Point:
        return Point(self.problem, factor * self.x, factor * self.image)


class Problem:
    """min F(x) = f(x) + g1(x) − g2(x) over C."""

    def __init__(
        self,
        loss: Loss,
        penalty: Penalty,
        C: ConvexSet | None = None,
        n: int | None = None,
        products: Products | None = None,
    ) -> None:
        C = WholeSpace() if C is None else C
        length = loss.n or C.n or n
        if length is None:
            raise ValueError("the number of variables is not known: give x0, or n to the loss")
        require_length(C, length)
        penalty.check_length(length)
        self.loss, self.penalty, self.n = loss, penalty, int(length)
        self.products = Products() if products is None else products
        self._scale: float | None = None  # ‖∇f(0)‖, set by `measure_scale`
        self.curvature_unit = 1.0  # set by a step rule, like the next
        self.reference_curvature = 0.0  # curvature of f along the first direction
        self.C = C.for_length(self.n).like(self.zeros())

    def zeros(self) -> Array:
        """Return 0 in the namespace, dtype and device of x."""
        kind = self.loss.kind
        return namespace(kind).zeros(self.n, dtype=kind.dtype, device=compat.device(kind))

    def point(self, x: Array) -> Point:
        """Return x as a point; its image is computed on first use."""
        return Point(self, x)

    def point_from(self, point: Point) -> Point:
        """Return a point of another problem with the same φ and C as one of this problem, with its image, φ and ∇φ."""
        twin = Point(self, point.x, point._image)
        twin._phi, twin._gradient = point._phi, point._gradient
        return twin

    def f(self, point: Point) -> float:
        """Return f(x): φ plus the penalty's smooth part."""
        return point.phi + self.penalty.g1(point.x) if self.smooth else point.phi

    def grad_f(self, point: Point) -> Array:
        """Return ∇f(x)."""
        return self.penalty.plus_gradient_g1(point.gradient, point.x) if self.smooth else point.gradient

    def F(self, point: Point) -> float:
        """Return F(x) = f(x) + g1(x) − g2(x), for x in C."""
        if point.F_value is None:
            point.F_value = point.phi + self.g(point)
        return point.F_value

    def read(self, point: Point, *numbers: float) -> list[float]:
        """Return the numbers as floats, and make F of the point a float, in one read from a device.

        If φ may be unbounded below, max |xᵢ| is read with them.
        """
        size = point.size if self.loss.least == -math.inf else 0.0
        point.F_value, size, *found = read(self.F(point), size, *numbers)
        point._size = size if self.loss.least == -math.inf else point._size
        return found

    def measure(self, point: Point, *vectors: Array) -> list[float]:
        """Return ‖v‖₂ of the vectors as floats, and make the point's F a float, as `read` does.

        On a GPU, if φ and g are squared norms, one kernel sums them together with the vectors.
        """
        if not on_device(point.x) or point.F_value is not None or point.problem is not self:
            return self.read(point, *norms(*vectors))
        phi = self.loss.squared_norm_at(point.x, point.image)
        g = self.penalty.squared_norm_with(point.x, self._shared(point))
        if phi is None or g is None:
            return self.read(point, *norms(*vectors))
        point.count_value()
        norm_phi, norm_g, *lengths = read(*norms(phi[1], g[1], *vectors))
        point._phi, point._g = phi[0] * norm_phi * norm_phi, g[0] * norm_g * norm_g
        point.F_value = point._phi + point._g
        return self.read(point, *lengths)

    def g(self, point: Point) -> float:
        """Return g1(x) − g2(x)."""
        if point._g is None:
            own = point.problem is self  # `_shared` belongs to the penalty of the point's own problem
            point._g = self.penalty.value_with(point.x, self._shared(point)) if own else self.penalty.value(point.x)
        return point._g

    def _shared(self, point: Point) -> Any:
        if point._shared is None:
            point._shared = self.penalty.shared(point.x)
        return point._shared

    def prox_g1(self, u: Array, l: float) -> Array:  # noqa: E741
        """Return the prox of (g1 + I_C)/l at u."""
        return self.penalty.prox_g1_on(self.C, u, 1.0 / l)

    def subgradient_g2(self, point: Point) -> Array:
        """Return one s(x) ∈ ∂g2(x)."""
        if point.problem is not self:  # with the penalty undivided, g2 is another function
            return self.penalty.subgradient_g2(point.x)
        if point._subgradient is None:
            point._subgradient = self.penalty.subgradient_with(point.x, self._shared(point))
        return point._subgradient

    @property
    def prox_is_identity(self) -> bool:
        """Whether prox_g1 is the identity, so that steps of all lengths go in the same direction."""
        return self.smooth and self.C.whole_space

    def project_to_domain(self, x: Array) -> Point:
        """Return the point of the domain of g1 + I_C where a run from x starts."""
        return self.point(self.penalty.enter(self.C, x))

    def contains(self, point: Point) -> bool:
        """Whether x ∈ C."""
        return point.in_C or bool(self.C.contains(point.x))

    def curvature(self, point: Point, d: Point) -> float:
        """Return dᵀ∇²f(x)d: one forward product for the image of d, or two gradients where φ has no second derivatives."""
        self.products.gradients += self.loss.curvature_gradients
        count(gradients=self.loss.curvature_gradients)
        return (
            self.loss.curvature_at(point.x, point.image, d.x, d.image)
            + (self.penalty.smooth_curvature or 0.0) * norm(d.x) ** 2
        )

    def lipschitz(self) -> float:
        """Return L, a Lipschitz constant of ∇f: L_φ, plus 2ρ for the ℓ2 penalty."""
        return self.loss.lipschitz() + (self.penalty.smooth_curvature or 0.0)

    @property
    def smooth(self) -> bool:
        """Whether g1 is smooth and part of f."""
        return self.penalty.smooth_curvature is not None

    def measure_scale(self, point: Point) -> None:
        """Compute ‖∇f(0)‖, the scale of relative residuals, without a product for the image of 0.

        If 0 is not in C, a custom φ may be undefined there: use the point of C nearest to 0.
        """
        if self._scale is None:
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

    def at_least(self, curvature: float, point: Point) -> float:
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
            l = self.at_least(float(abs(self.curvature(point, self.point(direction / size)))), point)  # noqa: E741
        z = self.prox_g1(point.x - direction / l, l)
        # a gradient below √eps·l‖x‖, or √eps times the one at which φ could fall to 0, is cancellation error; but if φ
        # may be unbounded below, a large ‖x‖ is the symptom and must not hide it
        terms = max(float(l * norm(point.x)), math.sqrt(2.0 * l) * math.sqrt(abs(float(point.phi))))
        cancelled = epsilon(point.x) ** 0.5 * terms if self.loss.least > -math.inf else 0.0
        moved, gradient_norm = read(norm(z - point.x), norm(gradient))
        return self.relative_to(l * moved, gradient_norm, cancelled)

    def with_penalty(self, penalty: Penalty, C: ConvexSet | None = None) -> Problem:
        """Return the problem with another penalty (and set), the same φ and shared counts."""
        twin = Problem(self.loss, penalty, self.C if C is None else C, self.n, self.products)
        twin._scale = self._scale
        return twin

    @cached_property
    def with_undivided_penalty(self) -> Problem:
        """The same F with f = φ, g1 = g and g2 = 0, for methods that use the prox of the whole penalty."""
        return self.with_penalty(Undivided(self.penalty), WholeSpace())


def require_prox(problem: Problem, method: str) -> None:
    """Raise MissingPieceError if the prox of g1 + I_C has no closed form."""
    if not problem.penalty.supports(problem.C):
        raise MissingPieceError(
            f"{method} needs the prox of g1 on C; {problem.penalty} on {problem.C} has none in closed form: use TopK2, or l1dca in minimize"
        )


def require_whole_prox(problem: Problem, method: str) -> None:
    """Raise MissingPieceError if the prox of the whole penalty on C has no closed form."""
    if not problem.C.whole_space:
        name = type(problem.penalty).__name__
        raise MissingPieceError(f"{method} needs the prox of the whole penalty; {name} on a set has none: use apdca")
