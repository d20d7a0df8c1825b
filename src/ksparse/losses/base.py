"""Base classes of losses: φ(x) = h(image of x), where the image is linear in x.

The image (Ax, Qx or Zx) is the only forward product with the data. Given the image, a gradient costs at most one
adjoint product. Points keep their images (see `ksparse.firstorder.problem`), so values, gradients and curvatures
receive them; a linear combination of images is the image of the linear combination.
"""

from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import array_api_compat as compat
import numpy as np

from ksparse.data import Design, check_data, design_of, in_double
from ksparse.data.model import QuadraticModel
from ksparse.data.products import (
    LeastSquaresRoot,
    Squares,
    columns,
    dense,
    first_of_equal,
    largest_gram_eigenvalue,
    qr_root,
)
from ksparse.util import display
from ksparse.util.arrays import Array, Matrix, Vector, copy_with, namespace, sum_of, take
from ksparse.util.checks import SelfChecked, check_ridge, check_row_weights, check_squares, check_vector
from ksparse.util.resources import set_within

if TYPE_CHECKING:
    from ksparse.losses.row_sparse import RowProblem

BELOW = 1e-9  # relative: how far rounding may carry a value below `least`
_evaluations: ContextVar[list[int] | None] = ContextVar("evaluations", default=None)  # of φ and of ∇φ, so far
_evaluations_lock = threading.Lock()


def counting_evaluations() -> AbstractContextManager[None]:
    """Count from zero within the block, threads started by `parallel_map` included."""
    return set_within(_evaluations, [0, 0])


def count_evaluations(values: int = 0, gradients: int = 0) -> None:
    """Add evaluations of φ and ∇φ to the counts of the current call, if there is one."""
    current = _evaluations.get()
    if current is not None:
        with _evaluations_lock:
            current[:] = current[0] + values, current[1] + gradients


def evaluations_since(before: tuple[int, int], loss: Loss) -> dict[str, Any]:
    """Return the evaluations of φ and ∇φ since `before`: by the loss's own counts, or by those of the current call."""
    values, gradients = loss.evaluations or _evaluations.get() or (0, 0)
    return {"nfev": values - before[0], "njev": gradients - before[1]}


@dataclass(frozen=True)
class Composite:
    """h(Ax) + ½ Σ ρⱼxⱼ², h convex, on float64 NumPy data."""

    A: Matrix
    value: Callable[[Vector], float]  # h at an image
    slope: Callable[[Vector], Vector]  # ∇h at an image
    ridge: Vector  # ρ


class Loss(SelfChecked, ABC):
    """φ, a smooth function: the base class of every loss.

    `n` is the number of variables (None: any), `convex` whether φ is convex (None: not known).

    A custom loss writes `image`, `value_at`, `gradient_at`, `curvature_at` and `lipschitz`. The guide to custom
    components lists its optional methods.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> class Distance(ks.Loss):
    ...     convex = True
    ...
    ...     def __init__(self, c):
    ...         self.c, self.n = c, c.size
    ...
    ...     def image(self, x):
    ...         return x
    ...
    ...     def value_at(self, x, image):
    ...         return 0.5 * float(np.sum((x - self.c) ** 2))
    ...
    ...     def gradient_at(self, x, image):
    ...         return x - self.c
    ...
    ...     def curvature_at(self, x, image, d, image_d):
    ...         return float(d @ d)
    ...
    ...     def lipschitz(self):
    ...         return 1.0
    >>> ks.minimize(Distance(np.array([1.0, -3.0, 2.0])), 2).x
    array([ 0., -3.,  2.])
    """

    n: int | None = None
    per_feature: int = 1  # coefficients per feature, consecutive in x; k counts features
    has_row_problem: bool = False  # whether `row_problem` returns a problem
    convex: bool | None = None
    kind: Array = np.zeros(0)  # an empty vector with the namespace, dtype and device of x
    forward_cost: int = 1  # products with the data for an image
    adjoint_cost: int = 1  # products with the data for a gradient, given the image
    defined_everywhere: bool = True  # whether φ is defined outside C too
    rounding: float = 2.3e-16  # relative error of a value or gradient, if coarser than that of x
    curvature_gradients: int = 0  # gradients that one curvature costs
    convexity_is_certain: bool = True  # False if `convex` is an estimate
    evaluation_is_costly: bool = False  # whether a value costs so much that models select the supports to solve on
    passes: int = 0  # passes over data read by blocks, or products with an operator, so far
    evaluations: tuple[int, int] | None = None  # evaluations of φ and ∇φ so far, if the loss counts them
    _data: ClassVar[tuple[str, ...]] = ("kind",)  # attributes that hold arrays

    @abstractmethod
    def image(self, x: Array) -> Array:
        """Return the linear image of x: one forward product."""

    @abstractmethod
    def value_at(self, x: Array, image: Array) -> float:
        """Return φ(x), without a product."""

    @abstractmethod
    def gradient_at(self, x: Array, image: Array) -> Array:
        """Return ∇φ(x), with at most one adjoint product."""

    @abstractmethod
    def curvature_at(self, x: Array, image: Array, d: Array, image_d: Array) -> float:
        """Return dᵀ∇²φ(x)d (for Huber: of its quadratic majorant at x), without a product."""

    @abstractmethod
    def lipschitz(self) -> float:
        """Return a Lipschitz constant of ∇φ, never below the smallest one; inf if there is none."""

    def restrict(self, support: Vector) -> Loss:
        """Return φ as a function of the variables on the support, with the other variables fixed to 0."""
        from ksparse.losses.restricted import restricted  # here: a restricted loss is a Loss

        return restricted(self, support)

    def squares(self) -> Squares | None:
        """Return the data of φ if it is a weighted sum of squares. H alone does not show nearly dependent variables."""
        return None

    def quadratic(self) -> QuadraticModel | None:
        """Return φ as ½xᵀHx − rᵀx + constant on float64 data, if it is quadratic and the columns of H are known."""
        squares = self.squares()
        return None if squares is None or self.hides_columns else QuadraticModel.of_squares(*squares)

    def model_at(self, x: Vector) -> QuadraticModel | None:
        """Return the second-order model of φ at x on float64 data, if there is one; for a quadratic φ it is φ."""
        return self.quadratic()

    def row_problem(self) -> RowProblem | None:
        """Return φ as a function of a matrix with one row per feature, for a search over rows; see `per_feature`."""
        return None

    def composite(self) -> Composite | None:
        """Return φ as h(Ax) + ½ Σ ρⱼxⱼ² with a convex h, if it has that form: lower bounds of smooth losses use it."""
        return None

    def hessian_at(self, x: Array, image: Array) -> Vector:
        """Return ∇²φ(x) as a dense matrix, for restricted losses with few variables on float64 NumPy data."""
        model = self.model_at(x)
        if model is None:
            raise NotImplementedError(f"{type(self).__name__} has no Hessian")
        return model.block(np.arange(model.n))

    @cached_property
    def has_hessian(self) -> bool:
        """Whether `hessian_at` is available."""
        return self.n is not None and self.model_at(np.zeros(self.n)) is not None

    @cached_property
    def is_quadratic(self) -> bool:
        """Whether `squares` or `quadratic` shows that φ is quadratic."""
        return self.squares() is not None or self.quadratic() is not None

    @cached_property
    def least(self) -> float:
        """A lower bound on φ over all x, which proofs use: 0 for a sum of squares, −∞ if none is known."""
        return -math.inf if self.squares() is None else 0.0

    def check_least(self, x: Array, value: float) -> None:
        """Raise ValueError if φ(x) = `value` lies below `least` by more than rounding."""
        least = self.least
        if self.skip_self_check or not value < least:
            return
        size = abs(least) + abs(value) + abs(self.value(0.0 * x))  # terms that cancel leave rounding of their own size
        if value < least - BELOW * size - 64.0 * self.rounding * (self.entries or 1):
            found = f"{type(self).__name__}.least is {least:g} and φ is {value:.6g} at a point of C"
            raise ValueError(f"least must be a lower bound on φ, but {found}")

    @cached_property
    def entries(self) -> int | None:
        """Number of entries of the data, zeros included; None if not known."""
        squares = self.squares()
        return None if squares is None else int(squares.A.shape[0] * squares.A.shape[1])

    @cached_property
    def has_columns(self) -> bool:
        """Whether φ on some variables costs no more than their columns of the data."""
        return self.squares() is not None

    @cached_property
    def hides_columns(self) -> bool:
        """Whether the data are an operator with too many columns to compute each one."""
        squares = self.squares()
        return squares is not None and design_of(squares.A).hides_columns(squares.weight is not None)

    def lengths(self) -> Vector | float:
        """Return the lengths of the data's columns, or estimates; 1 if nothing is known of them."""
        squares = self.squares()
        return 1.0 if squares is None else design_of(squares.A).column_norms()

    def with_exact_hessian(self) -> Loss:
        """Return the same φ with true second derivatives, if `hessian_at` and `model_at` use those of a majorant."""
        return self

    def root(self) -> LeastSquaresRoot | None:
        """Return R, q and rest with φ(x) = ½‖Rx − q‖² + ½·rest², if φ is a sum of squares of few variables."""
        squares = self.squares()
        return None if squares is None else qr_root(*squares)

    def root_at(self, x: Array, image: Array) -> LeastSquaresRoot | None:
        """Return `root` of the second-order model at x, if that is a sum of squares."""
        return self.root()

    def first_duplicates(self, support: Vector) -> Vector:
        """Return, for each position in the support, the first position whose variable has the same column of data."""
        squares = self.squares()
        if squares is None or squares.ridge is not None:
            return np.arange(len(support))
        return first_of_equal(dense(columns(squares.A, np.asarray(support))))

    def self_check(self, x: Array, project: Callable[[Array], Array]) -> None:
        """Raise ValueError if a custom loss contradicts itself at x, projected onto C, or near it."""
        if not self.skip_self_check:
            from ksparse.losses.checks import self_check  # here: the checks need Loss

            self_check(self, x, project)

    def value(self, x: Array) -> float:
        """Return φ(x) at any vector of length n."""
        x = check_vector(x, "x", self.n, kind=self.kind)
        count_evaluations(values=1)
        return self.value_at(x, self.image(x))

    def gradient(self, x: Array) -> Array:
        """Return ∇φ(x) at any vector of length n."""
        x = check_vector(x, "x", self.n, kind=self.kind)
        count_evaluations(gradients=1)
        return self.gradient_at(x, self.image(x))

    @property
    def given_kind(self) -> Array | None:
        """The kind of vectors that φ's data require; None if any will do."""
        return self.kind

    def zeros(self, n: int) -> Array:
        """Return n zeros in the namespace, dtype and device of x."""
        return namespace(self.kind).zeros(n, dtype=self.kind.dtype, device=compat.device(self.kind))

    def for_vectors_like(self, x: Array) -> Loss:
        """Return φ for vectors of the length, namespace, dtype and device of x, or itself if its data fix these."""
        return self if self.n is not None else copy_with(self, n=int(x.shape[0]), kind=x[:0])

    def as_float64(self) -> Self:
        """Return the same loss on NumPy float64 data, for the small exact solves."""
        held = {name: value for name in self._data if (value := getattr(self, name)) is not None}
        changed = {name: self._doubled(name, value) for name, value in held.items()}
        return self if all(changed[name] is held[name] for name in held) else copy_with(self, **changed)

    def _doubled(self, name: str, value: Any) -> Any:
        """Return data in double precision."""
        return in_double(value)

    def __repr__(self) -> str:
        rows = None if self.entries is None or not self.n else self.entries // self.n
        inside = "" if self.n is None else f"{self.n} variables" if rows is None else f"{rows} × {self.n}"
        return f"{type(self).__name__}({inside})"

    def _repr_html_(self) -> str:
        variables = "any" if self.n is None else str(self.n)
        return display.facts({"loss": repr(self), "variables": variables} | display.docstring_summary(self))


class DesignLoss(Loss):
    """h(Ax) + ½ Σ ρⱼxⱼ² with a convex function h of the image Ax, and a matrix A that may be of any kind.

    With several coefficients per feature, x holds a matrix X row by row, the image is AX, and each row has its own ρ.
    A subclass writes `fit_of`, `slope_of` and `curvature_of`, h and its derivatives with the weights of the rows, and
    sets `steepest`, an upper bound on the second derivative of h for weights of 1.

    Parameters
    ----------
    A : array, scipy.sparse, data by blocks, or any object with shape, @ and .T
        The data, one row per observation. Its dtype and device are those of x.
    sample_weight : array-like or None, default=None
        One weight >= 0 per row.
    ridge : float or array-like, default=0.0
        ρ, one number or one per variable.
    """

    convex = True
    steepest: float = 1.0  # upper bound on h″, ∞ for none
    _data: ClassVar[tuple[str, ...]] = ("kind", "A", "weight", "ridge")

    def __init__(self, A: Matrix, sample_weight: Any = None, ridge: Any = 0.0) -> None:
        self.A = check_data(A, "A")
        check_squares(self.A, "A")
        self.kind = self.design.kind
        m, self.n = int(self.A.shape[0]), self.features * self.per_feature
        self.weight = check_row_weights(sample_weight, m, self.kind)
        self.ridge = check_ridge(ridge, self.features, self.kind)

    @abstractmethod
    def fit_of(self, image: Array) -> float:
        """Return h(image)."""

    @abstractmethod
    def slope_of(self, image: Array) -> Array:
        """Return ∇h(image)."""

    @abstractmethod
    def curvature_of(self, image: Array, d: Array) -> float:
        """Return dᵀ∇²h(image)d."""

    @cached_property
    def design(self) -> Design:
        """A with its columns, blocks and products."""
        return design_of(self.A)

    @property
    def features(self) -> int:
        """Number of columns of A."""
        return int(self.A.shape[1])

    def image(self, x: Array) -> Array:
        return self.A @ x

    def _ridge_squares(self, x: Array) -> float:
        """Return Σⱼ ρⱼxⱼ²."""
        return 0.0 if self.ridge is None else sum_of(self.ridge * x * x)

    def value_at(self, x: Array, image: Array) -> float:
        fit = self.fit_of(image)
        return fit if self.ridge is None else fit + 0.5 * self._ridge_squares(x)

    def gradient_at(self, x: Array, image: Array) -> Array:
        gradient = self.A.T @ self.slope_of(image)
        return gradient if self.ridge is None else gradient + self.ridge * x

    def curvature_at(self, x: Array, image: Array, d: Array, image_d: Array) -> float:
        return self.curvature_of(image, image_d) + self._ridge_squares(d)

    def composite(self) -> Composite | None:
        if self.hides_columns or self.per_feature > 1:
            return None
        ridge = np.zeros(self.features) if self.ridge is None else np.asarray(self.ridge)
        return Composite(self.A, self.fit_of, self.slope_of, ridge)

    @property
    def entries(self) -> int:
        """Rows times columns of A, zeros included."""
        return int(self.A.shape[0] * self.A.shape[1])

    @property
    def passes(self) -> int:  # type: ignore[override]
        """Passes over A, or products with it, so far."""
        return getattr(self.A, "passes", 0)

    @property
    def hides_columns(self) -> bool:
        """Whether A is an operator with too many columns to compute each one."""
        return self.design.hides_columns(weighted=self.squares() is None or self.weight is not None)

    def lengths(self) -> Vector | float:
        return self.design.column_norms()

    @cached_property
    def _gram_norm(self) -> float:
        return largest_gram_eigenvalue(self.A, self.weight, self.kind)

    def lipschitz(self) -> float:
        if math.isinf(self.steepest):
            return math.inf
        ridge = 0.0 if self.ridge is None else float(namespace(self.ridge).max(self.ridge))
        return self.steepest * self._gram_norm + ridge

    def restrict(self, support: Vector) -> Loss:
        support = np.asarray(support)
        ridge = None if self.ridge is None else take(self.ridge, support)
        return copy_with(self, A=self.design.columns(support), ridge=ridge, n=int(support.size))
