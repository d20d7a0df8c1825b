"""Losses that compare Ax with data, one term per row: φ(x) = Σᵢ wᵢ h((Ax)ᵢ; bᵢ) + ½ Σⱼ ρⱼxⱼ², given by h, h′ and h″."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ksparse.data import Design, in_double, read_in_double
from ksparse.data.array import both_products, fits_one_pass
from ksparse.data.model import Gram, QuadraticModel
from ksparse.data.products import LeastSquaresRoot, Squares, dense, first_of_equal, qr_root
from ksparse.losses.base import DesignLoss, count_evaluations
from ksparse.util.arrays import Array, Matrix, Vector, is_array, namespace, sqnorm, sum_of, to_float64
from ksparse.util.checks import check_squares, check_vector
from ksparse.util.display import fill_docstrings

FLAT = 1e-10  # of the largest h″: the parabola of a flatter term has its minimum too far away to be used


@fill_docstrings()
class DataFit(DesignLoss):
    """``φ(x) = Σᵢ wᵢ h((Ax)ᵢ; bᵢ) + ½ Σⱼ ρⱼxⱼ²``, h convex with ``0 ≤ h″ ≤ steepest``, ρ ≥ 0 the ridge.

    Base class of a custom loss given by its terms: write `h`, `slope` (h′) and `bend` (h″), and set `steepest`, an
    upper bound on h″ (default 1, `math.inf` for none).
    If h is never negative, set ``least = 0.0`` too: proofs with a variable that has no ridge, such as an intercept,
    need a lower bound on φ.

    Parameters
    ----------
    {A}
    b : array-like
        The target, one entry per row.
    {sample_weight, ridge}

    Examples
    --------
    >>> import numpy as np, ksparse as ks
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

    has_hessian = has_columns = True
    least: float = -math.inf  # nothing is known of h; a subclass whose h is never negative sets 0
    target: ClassVar[str] = "b"  # name of b in the constructor
    _data = (*DesignLoss._data, "b")

    def __init__(self, A: Matrix, b: Any, sample_weight: Any = None, ridge: Any = 0.0) -> None:
        super().__init__(A, sample_weight, ridge)
        self.b = check_vector(b, self.target, int(self.A.shape[0]), kind=self.kind)
        check_squares(self.b, self.target)

    def _require_target(self, what: str, *, positive: bool = False) -> None:
        """Raise ValueError if an entry of b is below 0, or is 0 where it must be positive."""
        lowest = float(namespace(self.b).min(self.b))
        if lowest < 0 or (positive and lowest == 0):
            raise ValueError(f"{self.target} must hold {what}, got {lowest:g}")

    @abstractmethod
    def h(self, image: Array) -> Array:
        """Return the terms h((Ax)ᵢ; bᵢ)."""

    @abstractmethod
    def slope(self, image: Array) -> Array:
        """Return the terms h′."""

    @abstractmethod
    def bend(self, image: Array) -> Array:
        """Return the terms h″."""

    def _weighted(self, terms: Array) -> Array:
        return terms if self.weight is None else self.weight * terms

    def _weighted_sum(self, terms: Vector) -> float:
        """Return the sum of float64 terms times the weights."""
        return float(np.sum(terms if self.weight is None else to_float64(self.weight) * terms))

    def fit_of(self, image: Array) -> float:
        return sum_of(self._weighted(self.h(image)))

    def slope_of(self, image: Array) -> Array:
        return self._weighted(self.slope(image))

    def curvature_of(self, image: Array, d: Array) -> float:
        return sum_of(self._weighted(self.bend(image)) * d * d)

    def hessian_at(self, x: Array, image: Array) -> Vector:
        H = self.design.gram(np.arange(self.A.shape[1]), self._weighted(self.bend(image)))  # AᵀDA
        return H if self.ridge is None else H + np.diag(np.asarray(self.ridge))

    def root_at(self, x: Array, image: Array) -> LeastSquaresRoot | None:
        # up to a constant, h(z) + h′(z)(u − z) + ½h″(z)(u − z)² is ½h″(z)·(u − z + h′(z)/h″(z))² if h″(z) > 0
        if self.squares() is not None:
            return self.root()
        image, bend = np.asarray(image), np.asarray(self.bend(image))
        if not bend.min() > FLAT * bend.max():
            return None
        return qr_root(self.A, image - np.asarray(self.slope(image)) / bend, self._weighted(bend), self.ridge)

    def model_at(self, x: Vector) -> QuadraticModel | None:
        """Return the model with H = AᵀDA + diag(ρ), D the terms' h″ (Huber: of its majorant)."""
        if self.hides_columns:
            return None
        image = self.A @ x
        bend, slope = self._weighted(self.bend(image)), self.slope_of(image)
        pull = bend * image - slope  # r = Hx − ∇φ = Aᵀ·pull: the ridge terms cancel
        constant = self.fit_of(image) - sum_of((slope - 0.5 * bend * image) * image)
        return QuadraticModel(Gram(self.A, bend, self.ridge, single_use=True), np.asarray(self.A.T @ pull), constant)

    def first_duplicates(self, support: Vector) -> Vector:
        if self.ridge is not None:
            return super().first_duplicates(support)
        return first_of_equal(dense(self.design.columns(np.asarray(support))))

    def self_check(self, x: Array, project: Callable[[Array], Array]) -> None:
        if self.skip_self_check:
            return
        super().self_check(x, project)
        bend = self.bend(self.image(project(x)))
        low, high = float(namespace(bend).min(bend)), float(namespace(bend).max(bend))
        if low < 0 or high > self.steepest * (1.0 + 1e-6):
            name, wrong = type(self).__name__, low if low < 0 else high
            allowed = f"0..steepest = {self.steepest:g}"
            raise ValueError(f"bend must lie in {allowed}, but {name} has {wrong:.4g}: set steepest")

    def _doubled(self, name: str, value: Any) -> Any:
        """Return data in double precision; a large A is read, not copied, by a reader that remembers its first pass."""
        return (self._reader if name == "A" else None) or in_double(value)

    @cached_property
    def _reader(self) -> Design | None:
        return read_in_double(self.A) if is_array(self.A) else None


@fill_docstrings()
class LeastSquares(DataFit):
    """``½‖Ax − b‖²``, with `sample_weight` ``½ Σ wᵢ((Ax)ᵢ − bᵢ)²``, with `ridge` plus ``½ Σ ρⱼxⱼ²``.

    If one pass over A gives Ax and AᵀDAx together (see `one_pass`), the image holds both. They are linear in x, so the
    gradient of a linear combination of points costs no product, and a step of any method reads A once.

    Parameters
    ----------
    {A, b, sample_weight, ridge}

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 20))
    >>> b = A[:, :3] @ [1.0, -2.0, 1.5] + 0.1 * rng.standard_normal(60)
    >>> ks.minimize(ks.LeastSquares(A, b), 3).support
    array([0, 1, 2])
    """

    is_quadratic = True
    least = 0.0

    @cached_property
    def one_pass(self) -> bool:
        """Whether the image holds AᵀDAx too."""
        return fits_one_pass(self.A)

    @property
    def adjoint_cost(self) -> int:  # type: ignore[override]
        """Products with the data for a gradient: none if the image holds it."""
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
        count_evaluations(values=1)
        return self.value_at(x, self.A @ x)  # one product: a value needs no AᵀDAx

    def h(self, image: Array) -> Array:
        residual = self.slope(image)
        return 0.5 * residual * residual

    def fit_of(self, image: Array) -> float:
        return 0.5 * sqnorm(self.slope(image)) if self.weight is None else super().fit_of(image)

    def gradient_at(self, x: Array, image: Array) -> Array:
        if not self.one_pass:
            return super().gradient_at(x, image)
        pull = image[self.b.shape[0] :] - self._pull
        return pull if self.ridge is None else pull + self.ridge * x

    def curvature_of(self, image: Array, d: Array) -> float:
        Ad = d[: self.b.shape[0]]
        return sqnorm(Ad) if self.weight is None else sum_of(self.weight * Ad * Ad)

    def slope(self, image: Array) -> Array:
        return image[: self.b.shape[0]] - self.b

    def bend(self, image: Array) -> Array:
        return namespace(self.b).ones_like(self.b)

    def squares(self) -> Squares:
        return Squares(self.A, self.b, self.weight, self.ridge)

    @cached_property
    def _hessian(self) -> Vector:
        H = self.design.gram(np.arange(self.A.shape[1]), self.weight)
        H = H if self.ridge is None else H + np.diag(np.asarray(self.ridge))
        H.setflags(write=False)
        return H

    def hessian_at(self, x: Array, image: Array) -> Vector:
        return self._hessian

    def lipschitz(self) -> float:
        if "_hessian" in self.__dict__:  # its largest eigenvalue, rounded up
            return float(np.linalg.eigvalsh(self._hessian)[-1]) * (1.0 + 1e-12 * len(self._hessian))
        return super().lipschitz()

    def model_at(self, x: Vector) -> QuadraticModel | None:
        return self.quadratic()
