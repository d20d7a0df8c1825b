"""F = f + g1 − g2 on a set, and Point: a place that knows its image.

f is φ, joined by g1 where that is smooth (the paper's ℓ2 penalty); what is left of g1 and the indicator of C have a joint prox.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import array_api_compat as compat

from ksparse.errors import MissingPieceError
from ksparse.losses import Loss
from ksparse.penalties import Penalty, Whole
from ksparse.sets import ConvexSet, WholeSpace, require_length
from ksparse.util.arrays import Array, along, epsilon, namespace, norm, norm_inf, norms, on_device, read
from ksparse.util.evaluations import count


@dataclass
class Products:
    """Products with the data so far, and evaluations of F and ∇f."""

    forward: int = 0
    adjoint: int = 0
    values: int = 0
    gradients: int = 0

    @property
    def total(self) -> int:
        """Forward and adjoint products together."""
        return self.forward + self.adjoint


class Point:
    """x with its image. A linear combination of points is a point and costs no product with the data.

    Image, φ, ∇φ, F and max |xᵢ| are computed when first needed and then remembered. On a GPU, φ and F may lie there until
    `Problem.read` brings them.
    """

    __slots__ = ("F_value", "_g", "_gradient", "_image", "_phi", "_shared", "_size", "_slope", "in_C", "problem", "x")

    def __init__(self, problem: Problem, x: Array, image: Array | None = None) -> None:
        self.problem, self.x = problem, x
        self._image = image
        self._phi: float | None = None
        self._g: float | None = None  # the penalty's value, for the problem that first asked
        self._slope: Array | None = None  # s(x) ∈ ∂g2(x), for its own problem
        self._gradient: Array | None = None
        self._shared: Any = None  # what g and s(x) have in common, for its own problem
        self._size: float | None = None
        self.F_value: float | None = None
        self.in_C = False  # whether x comes from a projection onto C

    @property
    def size(self) -> float:
        """max |xᵢ|."""
        if self._size is None:
            self._size = norm_inf(self.x)
        return self._size

    @property
    def image(self) -> Array:
        """The image of x under the loss: one forward product, once."""
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
        """∇φ(x): one adjoint product at most, once."""
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
        """The point x + a·d."""
        return Point(self.problem, along(self.x, a, d.x), along(self.image, a, d.image))

    def __rmul__(self, factor: float) -> Point:
        return Point(self.problem, factor * self.x, factor * self.image)


class Problem:
    """min F(x) = f(x) + g1(x) − g2(x) over C."""

    def __init__(
        self, loss: Loss, penalty: Penalty, C: ConvexSet | None = None, n: int | None = None, products: Products | None = None
    ) -> None:
        C = WholeSpace() if C is None else C
        length = loss.n or C.n or n
        if length is None:
            raise ValueError("the number of variables is not known: give x0, or n to the loss")
        require_length(C, length)
        penalty.check_length(length)
        self.loss, self.penalty, self.n = loss, penalty, int(length)
        self.products = Products() if products is None else products
        self._scale: float | None = None  # the size of the data's pull, once measured
        self.unit = 1.0  # of curvatures, once a rule has measured it
        self.yardstick = 0.0  # the curvature of f along the first direction, once a rule has measured it
        self.C = C.for_length(self.n).like(self.zeros())

    def zeros(self) -> Array:
        """0 in the namespace, dtype and device of x."""
        kind = self.loss.kind
        return namespace(kind).zeros(self.n, dtype=kind.dtype, device=compat.device(kind))

    def point(self, x: Array) -> Point:
        """x as a point, its image not yet computed."""
        return Point(self, x)

    def adopt(self, point: Point) -> Point:
        """A point of another problem with the same φ and C, with what it knows of φ."""
        twin = Point(self, point.x, point._image)
        twin._phi, twin._gradient = point._phi, point._gradient
        return twin

    def f(self, point: Point) -> float:
        """f(x): φ and the smooth part of the penalty."""
        return point.phi + self.penalty.g1(point.x) if self.smooth else point.phi

    def grad_f(self, point: Point) -> Array:
        """∇f(x)."""
        return self.penalty.plus_gradient_g1(point.gradient, point.x) if self.smooth else point.gradient

    def F(self, point: Point) -> float:
        """F(x) = f + g1 − g2, for x in C."""
        if point.F_value is None:
            point.F_value = point.phi + self.g(point)
        return point.F_value

    def read(self, point: Point, *numbers: float) -> list[float]:
        """Return numbers as floats, and make F of a point a float, and max |xᵢ| where it matters: one read of all that lie on a device."""
        size = point.size if self.loss.least == -math.inf else 0.0
        point.F_value, size, *found = read(self.F(point), size, *numbers)
        point._size = size if self.loss.least == -math.inf else point._size
        return found

    def measure(self, point: Point, *vectors: Array) -> list[float]:
        """Return ‖v‖₂ of vectors as floats, and make F of a point a float, as `read` does.

        On a GPU, where φ and g are squared norms, their sums and those of the vectors take one kernel together.
        """
        if not on_device(point.x) or point.F_value is not None or point.problem is not self:
            return self.read(point, *norms(*vectors))
        phi = self.loss.squared_norm_at(point.x, point.image)
        g = self.penalty.squared_norm_with(point.x, self._shared(point))
        if phi is None or g is None:
            return self.read(point, *norms(*vectors))
        point.count_value()
        of_phi, of_g, *lengths = norms(phi[1], g[1], *vectors)
        of_phi, of_g, *lengths = read(of_phi, of_g, *lengths)
        point._phi, point._g = phi[0] * of_phi * of_phi, g[0] * of_g * of_g
        point.F_value = point._phi + point._g
        return self.read(point, *lengths)

    def g(self, point: Point) -> float:
        """g1 − g2, once."""
        if point._g is None:
            own = point.problem is self  # what points share belongs to their own problem's penalty
            point._g = self.penalty.value_with(point.x, self._shared(point)) if own else self.penalty.value(point.x)
        return point._g

    def _shared(self, point: Point) -> Any:
        if point._shared is None:
            point._shared = self.penalty.shared(point.x)
        return point._shared

    def prox_g1(self, u: Array, l: float) -> Array:  # noqa: E741
        """prox of (g1 + I_C)/l at u."""
        return self.penalty.prox_g1_on(self.C, u, 1.0 / l)

    def subgradient_g2(self, point: Point) -> Array:
        """One s(x) ∈ ∂g2(x), once; regrouped, F has another g2 at the same point."""
        if point.problem is not self:
            return self.penalty.subgradient_g2(point.x)
        if point._slope is None:
            point._slope = self.penalty.subgradient_with(point.x, self._shared(point))
        return point._slope

    @property
    def straight(self) -> bool:
        """Whether the prox of g1 + I_C leaves all as it is, so that steps of all lengths go the same way."""
        return self.smooth and self.C.whole_space

    def enter(self, x: Array) -> Point:
        """The point of the domain that a run started at x begins from."""
        return self.point(self.penalty.enter(self.C, x))

    def contains(self, point: Point) -> bool:
        """Whether x ∈ C."""
        return point.in_C or bool(self.C.contains(point.x))

    def curvature(self, point: Point, d: Point) -> float:
        """dᵀ∇²f(x)d: one forward product, for d's image (two gradients, where φ shows none of its curvature)."""
        self.products.gradients += self.loss.curvature_gradients
        count(gradients=self.loss.curvature_gradients)
        return self.loss.curvature_at(point.x, point.image, d.x, d.image) + (self.penalty.smooth_curvature or 0.0) * norm(d.x) ** 2

    def lipschitz(self) -> float:
        """L of ∇f: L_φ, plus 2ρ for the ℓ2 penalty."""
        return self.loss.lipschitz() + (self.penalty.smooth_curvature or 0.0)

    @property
    def smooth(self) -> bool:
        """Whether g1 is smooth and has joined f."""
        return self.penalty.smooth_curvature is not None

    def measure_scale(self, point: Point) -> None:
        """Take the size of the data's pull, against which a residual is small or not.

        That is ‖∇f(0)‖, with no product for the image of 0·point. Where 0 is not in C a custom φ may not exist there, and the point of C
        nearest to 0 takes its place.
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
        """Return a stationarity residual at x relative to the larger of ‖∇f(0)‖ and ‖∇f(x)‖, given ∇f(x)."""
        return self.relative_to(residual, float(norm(gradient)))

    def relative_to(self, residual: float, gradient_norm: float, least: float = 0.0) -> float:
        """Return a stationarity residual at x relative to the largest of ‖∇f(0)‖, ‖∇f(x)‖ and `least`, given ‖∇f(x)‖."""
        scale = max(self._scale or 0.0, least, gradient_norm)
        return residual / scale if scale > 0 else residual

    def at_least(self, curvature: float, point: Point) -> float:
        """A curvature to measure residuals with; where φ is linear one by which its slope leads as far as x is large."""
        length, slope = read(norm(point.x), norm(point.gradient))
        return max(curvature, 1e-3 * slope / (max(length, self.C.size) or 1.0), 1e-300)

    def residual(self, point: Point, l: float | None = None) -> float:  # noqa: E741
        """l‖x − prox(x − (∇f(x) − s(x))/l)‖, relative: 0 exactly at the stationary points.

        Without l the curvature of f along the step's own direction is the yardstick.
        """
        self.measure_scale(point)
        gradient = self.grad_f(point)
        pull = gradient - self.subgradient_g2(point)
        size = float(norm(pull))
        if size == 0:
            return 0.0
        if l is None:
            l = self.at_least(float(abs(self.curvature(point, self.point(pull / size)))), point)  # noqa: E741
        z = self.prox_g1(point.x - pull / l, l)
        # where the gradient's terms cancel, what is left of them is rounding: beside a slope of l‖x‖, and beside one by which φ could fall
        # to 0; but where φ may fall for ever a large x is a sign of that
        terms = max(float(l * norm(point.x)), math.sqrt(2.0 * l) * math.sqrt(abs(float(point.phi))))
        lost = epsilon(point.x) ** 0.5 * terms if self.loss.least > -math.inf else 0.0
        moved, gradient_norm = read(norm(z - point.x), norm(gradient))
        return self.relative_to(l * moved, gradient_norm, lost)

    def with_penalty(self, penalty: Penalty) -> Problem:
        """The same φ on the same C under another penalty, with the same counts."""
        twin = Problem(self.loss, penalty, self.C, self.n, self.products)
        twin._scale = self._scale
        return twin

    @cached_property
    def whole(self) -> Problem:
        """The same F regrouped as f = φ, g1 = g, g2 = 0, for methods that take the prox of the whole penalty."""
        regrouped = Problem(self.loss, Whole(self.penalty), WholeSpace(), self.n, self.products)
        regrouped._scale = self._scale
        return regrouped


def require_prox(problem: Problem, method: str) -> None:
    """Refuse a penalty on a set, where the prox of g1 and the set together has no closed form."""
    if not problem.penalty.supports(problem.C):
        raise MissingPieceError(
            f"{method} needs the prox of g1 on C; {problem.penalty} on {problem.C} has none in closed form: use TopK2, or l1dca in minimize"
        )


def require_whole_prox(problem: Problem, method: str) -> None:
    """Refuse a penalty on a set, whose whole prox has no closed form."""
    if not problem.C.whole_space:
        name = type(problem.penalty).__name__
        raise MissingPieceError(f"{method} needs the prox of the whole penalty; {name} on a set has none: use apdca")
