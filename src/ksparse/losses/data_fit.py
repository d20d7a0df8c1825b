"""Losses that compare Ax with data, one term per row: φ(x) = Σᵢ wᵢ h((Ax)ᵢ; bᵢ) + ½ Σⱼ ρⱼxⱼ². A loss is its h, h′ and h″."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from ksparse.data import Design, check_data, design_of, read_in_double
from ksparse.data.array import both_products, fits_one_pass
from ksparse.data.model import Gram, QuadraticModel
from ksparse.data.products import LeastSquaresRoot, Squares, dense, first_of_equal, largest_gram_eigenvalue, qr_root
from ksparse.losses.base import Composite, Loss
from ksparse.util.arrays import Array, Matrix, Vector, copy_with, is_array, namespace, sqnorm, sum_of, take
from ksparse.util.checks import check_ridge, check_row_weights, check_squares, check_vector
from ksparse.util.evaluations import count

FLAT = 1e-10  # of the largest h″: where one is less, its parabola's lowest point is too far away to reckon with


class DataFit(Loss):
    """``φ(x) = Σᵢ wᵢ h((Ax)ᵢ; bᵢ) + ½ Σⱼ ρⱼxⱼ²``, h convex with ``0 ≤ h″ ≤ steepest``, ρ ≥ 0 the ridge.

    The base of a loss of your own by its terms: write `h`, `slope` (h′) and `bend` (h″), and the bound `steepest`. If h is never negative,
    set ``least = 0.0`` too: proofs with a variable that has no ridge, such as an intercept, need a lower bound on φ.

    Parameters
    ----------
    A : array, scipy.sparse, data by blocks, or any object with shape, @ and .T
        The data, one row per observation; its dtype and device are those of x.
    b : array-like
        What the terms compare Ax with, one entry per row.
    sample_weight : array-like or None, default=None
        One weight per row, at or above 0.
    ridge : float or array-like, default=0.0
        ρ, one number or one per variable.

    Raises
    ------
    ValueError, TypeError
        If the data are not finite, do not fit each other, or are no numbers; the message names the argument.

    Examples
    --------
    >>> import numpy as np
    >>> import ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 20))
    >>> b = A[:, :3] @ [1.0, -2.0, 1.5] + 0.1 * rng.standard_normal(60)
    >>> class LogCosh(ks.DataFit):
    ...     def h(self, image):
    ...         return np.log(np.cosh(image - self.b))
    ...
    ...     def slope(self, image):
    ...         return np.tanh(image - self.b)
    ...
    ...     def bend(self, image):
    ...         return 1 - np.tanh(image - self.b) ** 2
    >>> ks.minimize(LogCosh(A, b), 3).support
    array([0, 1, 2])
    """

    convex = True
    has_hessian = has_columns = True
    least: float = -math.inf  # of h nothing is known; a subclass whose h is never negative sets 0
    steepest: ClassVar[float] = 1.0  # sup h″
    target: ClassVar[str] = "b"  # what the constructor calls its data
    _data = ("kind", "A", "b", "weight", "ridge")

    def __init__(self, A: Matrix, b: Any, sample_weight: Any = None, ridge: Any = 0.0) -> None:
        self.A = check_data(A, "A")
        self.kind = self.design.kind
        m, self.n = (int(side) for side in self.A.shape)
        self.b = check_vector(b, self.target, m, kind=self.kind)
        check_squares(self.A, "A")
        check_squares(self.b, self.target)
        self.weight, self.ridge = check_row_weights(sample_weight, m, self.kind), check_ridge(ridge, self.n, self.kind)

    @abstractmethod
    def h(self, image: Array) -> Array:
        """The terms h((Ax)ᵢ; bᵢ)."""

    @abstractmethod
    def slope(self, image: Array) -> Array:
        """The terms h′."""

    @abstractmethod
    def bend(self, image: Array) -> Array:
        """The terms h″."""

    @cached_property
    def design(self) -> Design:
        """A, as it is asked for more than products."""
        return design_of(self.A)

    def _weighted(self, terms: Array) -> Array:
        return terms if self.weight is None else self.weight * terms

    def image(self, x: Array) -> Array:
        return self.A @ x

    def _squares(self, x: Array) -> float:
        """Σⱼ ρⱼxⱼ²."""
        return 0.0 if self.ridge is None else sum_of(self.ridge * x * x)

    def value_at(self, x: Array, image: Array) -> float:
        return sum_of(self._weighted(self.h(image))) + 0.5 * self._squares(x)

    def gradient_at(self, x: Array, image: Array) -> Array:
        pull = self.A.T @ self._weighted(self.slope(image))
        return pull if self.ridge is None else pull + self.ridge * x

    def curvature_at(self, x: Array, image: Array, d: Array, image_d: Array) -> float:
        return sum_of(self._weighted(self.bend(image)) * image_d * image_d) + self._squares(d)

    def hessian_at(self, x: Array, image: Array) -> np.ndarray[Any, Any]:
        H = self.design.gram(np.arange(self.A.shape[1]), self._weighted(self.bend(image)))  # AᵀDA + diag(ρ)
        return H if self.ridge is None else H + np.diag(np.asarray(self.ridge))

    def root_at(self, x: Array, image: Array) -> LeastSquaresRoot | None:
        # h(z) + h′(z)(u − z) + ½h″(z)(u − z)² is ½h″(z)·(u − z + h′(z)/h″(z))² but for a constant, where h bends at all
        if self.squares() is not None:
            return self.root()
        image, bend = np.asarray(image), np.asarray(self.bend(image))
        if not bend.min() > FLAT * bend.max():
            return None
        return qr_root(self.A, image - np.asarray(self.slope(image)) / bend, self._weighted(bend), self.ridge)

    def model_at(self, x: Vector) -> QuadraticModel | None:
        """H = AᵀDA with D the terms' h″ (Huber: of its majorant)."""
        if self.hides_columns:
            return None
        image = self.A @ x
        bend, slope = self._weighted(self.bend(image)), self._weighted(self.slope(image))
        pull = (
            bend * image - slope
        )  # r = Hx − ∇φ is its product with A, one for both; of the ridge nothing is left there
        constant = sum_of(self._weighted(self.h(image))) - sum_of((slope - 0.5 * bend * image) * image)
        return QuadraticModel(Gram(self.A, bend, self.ridge, single_use=True), np.asarray(self.A.T @ pull), constant)

    def composite(self) -> Composite | None:
        def value(image: Vector) -> float:
            return float(np.sum(self._weighted(self.h(image))))

        def slope(image: Vector) -> Vector:
            return np.asarray(self._weighted(self.slope(image)))

        return (
            None
            if self.hides_columns
            else Composite(
                self.A, value, slope, np.zeros(int(self.A.shape[1])) if self.ridge is None else np.asarray(self.ridge)
            )
        )

    @property
    def entries(self) -> int:
        """Rows times columns, zeros too."""
        return int(self.A.shape[0] * self.A.shape[1])

    @property
    def passes(self) -> int:
        return getattr(self.A, "passes", 0)

    @property
    def hides_columns(self) -> bool:
        """Whether A is an operator with many columns, of whose lengths nothing is known."""
        return self.design.hides_columns(weighted=self.squares() is None or self.weight is not None)

    def lengths(self) -> Vector | float:
        return self.design.column_norms()

    def first_duplicates(self, support: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if self.ridge is not None:
            return super().first_duplicates(support)
        return first_of_equal(dense(self.design.columns(np.asarray(support))))

    def self_check(self, x: Array, project: Callable[[Array], Array]) -> None:
        super().self_check(x, project)
        if not self.skip_self_check:
            bend = self.bend(self.image(project(x)))
            low, high = float(namespace(bend).min(bend)), float(namespace(bend).max(bend))
            if low < 0 or high > self.steepest * (1.0 + 1e-6):
                name = type(self).__name__
                raise ValueError(
                    f"bend must lie in 0..steepest = {self.steepest:g}, but {name} has {low if low < 0 else high:.4g}: set steepest"
                )

    @cached_property
    def _gram_norm(self) -> float:
        return largest_gram_eigenvalue(self.A, self.weight, self.kind)

    def lipschitz(self) -> float:
        return self.steepest * self._gram_norm + (
            0.0 if self.ridge is None else float(namespace(self.ridge).max(self.ridge))
        )

    def _doubled(self, name: str, value: Any) -> Any:
        """A large A is read, not copied: by the same reader each time, which remembers what its first pass has shown."""
        return (self._reader if name == "A" else None) or super()._doubled(name, value)

    @cached_property
    def _reader(self) -> Design | None:
        return read_in_double(self.A) if is_array(self.A) else None

    def restrict(self, support: np.ndarray[Any, Any]) -> Self:
        support = np.asarray(support)
        ridge = None if self.ridge is None else take(self.ridge, support)
        cut: Self = copy_with(self, A=self.design.columns(support), ridge=ridge, n=int(support.size))
        return cut


class LeastSquares(DataFit):
    """``½‖Ax − b‖²``, with `sample_weight` ``½ Σ wᵢ((Ax)ᵢ − bᵢ)²``, with `ridge` plus ``½ Σ ρⱼxⱼ²``.

    Where one pass over A gives Ax and AᵀDAx together (see `one_pass`), both are the image: they are linear in x, so that a gradient too is
    then a sum of gradients that are known, and a step of any method reads A once.

    Parameters
    ----------
    A : array, scipy.sparse, data by blocks, or any object with shape, @ and .T
        The data, one row per observation; its dtype and device are those of x.
    b : array-like
        What Ax is to be near, one entry per row.
    sample_weight : array-like or None, default=None
        One weight per row, at or above 0.
    ridge : float or array-like, default=0.0
        ρ, one number or one per variable.

    Raises
    ------
    ValueError, TypeError
        If the data are not finite, do not fit each other, or are no numbers; the message names the argument.

    Examples
    --------
    >>> import numpy as np
    >>> import ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 20))
    >>> b = A[:, :3] @ [1.0, -2.0, 1.5] + 0.1 * rng.standard_normal(60)
    >>> ks.minimize(ks.LeastSquares(A, b), 3).support
    array([0, 1, 2])
    """

    is_quadratic = skip_self_check = True
    least = 0.0

    @property
    def one_pass(self) -> bool:
        """Whether the image holds AᵀDAx too."""
        return fits_one_pass(self.A)

    @property
    def adjoint_cost(self) -> int:  # type: ignore[override]
        """No product with the data for a gradient that came with the image."""
        return 0 if self.one_pass else 1

    @cached_property
    def _pull(self) -> Array:
        return self.A.T @ self._weighted(self.b)

    def image(self, x: Array) -> Array:
        if not self.one_pass:
            return self.A @ x
        m, n = self.A.shape
        return both_products(self.A, self.weight, x) if x.any() else np.zeros(m + n, dtype=self.A.dtype)

    def value(self, x: Array) -> float:
        x = check_vector(x, "x", self.n, kind=self.kind)
        count(values=1)
        return self.value_at(x, self.A @ x)  # of a pass for both products one half would be for nothing

    def h(self, image: Array) -> Array:
        residual = self.slope(image)
        return 0.5 * residual * residual

    def value_at(self, x: Array, image: Array) -> float:
        if self.weight is not None:
            return super().value_at(x, image)
        square = sqnorm(self.slope(image))
        return 0.5 * (square if self.ridge is None else square + self._squares(x))

    def squared_norm_at(self, x: Array, image: Array) -> tuple[float, Array] | None:
        return (0.5, self.slope(image)) if self.weight is None and self.ridge is None else None

    def gradient_at(self, x: Array, image: Array) -> Array:
        if not self.one_pass:
            return super().gradient_at(x, image)
        pull = image[self.b.shape[0] :] - self._pull
        return pull if self.ridge is None else pull + self.ridge * x

    def curvature_at(self, x: Array, image: Array, d: Array, image_d: Array) -> float:
        Ad = image_d[: self.b.shape[0]]
        return (sqnorm(Ad) if self.weight is None else sum_of(self.weight * Ad * Ad)) + self._squares(d)

    def slope(self, image: Array) -> Array:
        return image[: self.b.shape[0]] - self.b

    def bend(self, image: Array) -> Array:
        return namespace(self.b).ones_like(self.b)

    def squares(self) -> Squares:
        return Squares(self.A, self.b, self.weight, self.ridge)

    @cached_property
    def _hessian(self) -> np.ndarray[Any, Any]:
        H = super().hessian_at(self.kind, self.b)
        H.setflags(write=False)
        return H

    def hessian_at(self, x: Array, image: Array) -> np.ndarray[Any, Any]:
        return self._hessian  # the same everywhere

    def lipschitz(self) -> float:
        if "_hessian" in self.__dict__:  # its largest eigenvalue, with more than its rounding: no more products with A
            return float(np.linalg.eigvalsh(self._hessian)[-1]) * (1.0 + 1e-12 * len(self._hessian))
        return super().lipschitz()

    def model_at(self, x: Vector) -> QuadraticModel | None:
        return self.quadratic()
