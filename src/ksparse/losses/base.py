"""What a loss is: φ(x) = h(image of x), with an image linear in x.

The image (Ax, Qx, Zx) is the only forward product with the data, and the gradient costs at most one adjoint product given the image.
Points keep their images (see `ksparse.firstorder.problem`), so value, gradient and curvature take the image as given; the linear
combination of two images is the image of the linear combination.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ksparse.data import design_of, in_double
from ksparse.data.model import QuadraticModel
from ksparse.data.products import LeastSquaresRoot, Squares, columns, dense, first_of_equal, qr_root
from ksparse.util import display
from ksparse.util.arrays import Array, Matrix, Vector, copy_with
from ksparse.util.checks import check_vector
from ksparse.util.evaluations import count

if TYPE_CHECKING:
    from ksparse.losses.row_sparse import RowProblem


@dataclass(frozen=True)
class Composite:
    """h(Ax) + ½ Σ ρⱼxⱼ², h convex, on float64 NumPy data."""

    A: Matrix
    value: Callable[[Vector], float]  # h at an image
    slope: Callable[[Vector], Vector]  # ∇h there
    ridge: Vector  # ρ


BELOW = 1e-9  # relative: how far rounding may carry a value below `least`


class Loss(ABC):
    """φ, smooth: the base of every loss.

    `n` is the number of variables (None: any), `convex` whether φ is known to be convex (None: not known).

    A loss of your own writes `image`, `value_at`, `gradient_at`, `curvature_at` and `lipschitz`; what else it may offer, and what that
    buys, is in the guide to own pieces.

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
    per_feature: int = 1  # coefficients of each feature, which stand beside each other in x; k counts features
    has_row_problem: bool = False  # whether `wide` is there
    convex: bool | None = None
    kind: Array = np.zeros(0)  # an empty vector that carries the namespace, dtype and device of x
    forward_cost: int = 1  # products with the data for an image
    adjoint_cost: int = 1  # products with the data for a gradient, its image given
    defined_everywhere: bool = True  # whether φ exists outside C too
    rounding: float = 2.3e-16  # of a value or gradient, where it is coarser than that of x
    curvature_gradients: int = 0  # gradients that one curvature costs
    convexity_is_certain: bool = True  # whether what `convex` says is sure
    evaluation_is_costly: bool = (
        False  # whether a value costs so much beside arithmetic on a model that models choose what is solved
    )
    skip_self_check: ClassVar[bool] = (
        False  # whether the catalogue of the tests holds it; else it is tried out at the door
    )
    _data: ClassVar[tuple[str, ...]] = ("kind",)  # attributes that hold arrays

    def __init_subclass__(cls, **options: Any) -> None:
        """Check a subclass at every call unless it sets `skip_self_check` itself: what was tested of its parent may not hold for it."""
        super().__init_subclass__(**options)
        if "skip_self_check" not in vars(cls):
            cls.skip_self_check = False

    @abstractmethod
    def image(self, x: Array) -> Array:
        """The linear image of x: one forward product."""

    @abstractmethod
    def value_at(self, x: Array, image: Array) -> float:
        """φ(x), without a product."""

    def squared_norm_at(self, x: Array, image: Array) -> tuple[float, Array] | None:
        """Return c and v with φ(x) = c·‖v‖²; None where φ has another form. A GPU then sums v together with other vectors."""
        return None

    @abstractmethod
    def gradient_at(self, x: Array, image: Array) -> Array:
        """∇φ(x), with one adjoint product at most."""

    @abstractmethod
    def curvature_at(self, x: Array, image: Array, d: Array, image_d: Array) -> float:
        """dᵀ∇²φ(x)d (for Huber: of its quadratic majorant at x), without a product."""

    @abstractmethod
    def lipschitz(self) -> float:
        """A Lipschitz constant of ∇φ, never below the least one; inf where there is none."""

    def restrict(self, support: np.ndarray[Any, Any]) -> Loss:
        """φ as a function of the variables on the support, the others fixed to 0: by default squares lose columns, others are embedded."""
        from ksparse.losses.restricted import restricted  # here, because what is restricted is a loss again

        return restricted(self, support)

    def squares(self) -> Squares | None:
        """The data of φ, where it is a weighted sum of squares: from them nearly dependent variables are told apart, from H not."""
        return None

    def quadratic(self) -> QuadraticModel | None:
        """φ itself as ½xᵀHx − rᵀx + constant, where it is quadratic and shows H's columns; on float64 NumPy data, see `as_float64`."""
        squares = self.squares()
        return None if squares is None or self.hides_columns else QuadraticModel.of_squares(*squares)

    def model_at(self, x: Vector) -> QuadraticModel | None:
        """The second-order model of φ at x, where it shows its curvature; on float64 NumPy data. Of a quadratic φ that is `quadratic()`."""
        return self.quadratic()

    def row_problem(self) -> RowProblem | None:
        """φ of a matrix with one row per feature, for a search over its rows, where there are several coefficients `per_feature`."""
        return None

    def composite(self) -> Composite | None:
        """φ as h(Ax) + ½ Σ ρⱼxⱼ² with a convex h, where it is: what a lower bound of a φ that is not quadratic rests on."""
        return None

    def hessian_at(self, x: Array, image: Array) -> np.ndarray[Any, Any]:
        """∇²φ(x) as a dense NumPy matrix: for restricted losses on float64 NumPy data, where n is small."""
        model = self.model_at(x)
        if model is None:
            raise NotImplementedError(f"{type(self).__name__} has no Hessian")
        return model.block(np.arange(model.n))

    @cached_property
    def has_hessian(self) -> bool:
        """Whether `hessian_at` is there: where φ has second-order models, from them."""
        return self.n is not None and self.model_at(np.zeros(self.n)) is not None

    @cached_property
    def is_quadratic(self) -> bool:
        """Whether φ is quadratic: where it says so by `squares` or `quadratic`."""
        return self.squares() is not None or self.quadratic() is not None

    @cached_property
    def least(self) -> float:
        """A lower bound on φ over all x that proofs may use: 0 for a sum of squares, −∞ where none is known."""
        return -math.inf if self.squares() is None else 0.0

    def check_least(self, x: Array, value: float) -> None:
        """Raise ValueError if φ(x) = `value` lies below `least` by more than rounding: proofs would rest on a false bound."""
        least = self.least
        if self.skip_self_check or not value < least:
            return
        size = abs(least) + abs(value) + abs(self.value(0.0 * x))  # terms that cancel leave rounding of their own size
        if value < least - BELOW * size - 64.0 * self.rounding * (self.entries or 1):
            name = type(self).__name__
            raise ValueError(
                f"least must be a lower bound on φ, but {name}.least is {least:g} and φ is {value:.6g} at a point of C"
            )

    @cached_property
    def entries(self) -> int | None:
        """Of the data, which a product reads, zeros too; None where there are none that we know of."""
        squares = self.squares()
        return None if squares is None else int(squares.A.shape[0] * squares.A.shape[1])

    @cached_property
    def has_columns(self) -> bool:
        """Whether φ on some variables costs no more than their columns of the data."""
        return self.squares() is not None

    @cached_property
    def hides_columns(self) -> bool:
        """Whether the data hide their columns, and have too many to ask for each."""
        squares = self.squares()
        return squares is not None and design_of(squares.A).hides_columns(squares.weight is not None)

    def lengths(self) -> Vector | float:
        """The lengths of the data's columns, or estimates, for gradients to be compared by; 1 where nothing is known of them."""
        squares = self.squares()
        return 1.0 if squares is None else design_of(squares.A).column_norms()

    def with_exact_hessian(self) -> Loss:
        """The same φ with second derivatives where `hessian_at` and `model_at` take a majorant's; itself where they do not."""
        return self

    def root(self) -> LeastSquaresRoot | None:
        """R, q and rest with φ(x) = ½‖Rx − q‖² + ½·rest², where φ is a sum of squares: like `hessian_at` for restricted losses."""
        squares = self.squares()
        return None if squares is None else qr_root(*squares)

    def root_at(self, x: Array, image: Array) -> LeastSquaresRoot | None:
        """The same of the second-order model at x, where that is a sum of squares."""
        return self.root()

    def first_duplicates(self, support: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """For each place of the support the first place whose variable is the same to φ, as far as φ's data show it at once."""
        squares = self.squares()
        if squares is None or squares.ridge is not None:
            return np.arange(len(support))
        return first_of_equal(dense(columns(squares.A, np.asarray(support))))

    @property
    def passes(self) -> int:
        """How often the data have been read so far, where they are read by blocks, or products with an operator."""
        return 0

    @property
    def evaluations(self) -> tuple[int, int] | None:
        """How often φ and ∇φ were evaluated so far, where the loss counts that itself."""
        return None

    def self_check(self, x: Array, project: Callable[[Array], Array]) -> None:
        """Refuse a loss of the user's that is not what it says, at x projected onto C and near it; our own have nothing to show."""
        if not self.skip_self_check:
            from ksparse.losses.checks import self_check  # here, because the checks ask for a Loss

            self_check(self, x, project)

    def value(self, x: Array) -> float:
        """φ(x) at any vector of length n."""
        x = check_vector(x, "x", self.n, kind=self.kind)
        count(values=1)
        return self.value_at(x, self.image(x))

    def gradient(self, x: Array) -> Array:
        """∇φ(x) at any vector of length n."""
        x = check_vector(x, "x", self.n, kind=self.kind)
        count(gradients=1)
        return self.gradient_at(x, self.image(x))

    @property
    def given_kind(self) -> Array | None:
        """The kind of vectors that φ's data ask for; None where any will do."""
        return self.kind

    def for_vectors_like(self, x: Array) -> Loss:
        """The same φ of vectors of the length, namespace, dtype and device of x; φ with data has its own, and is itself."""
        if self.n is not None:
            return self
        twin: Loss = copy_with(self, n=int(x.shape[0]), kind=x[:0])
        return twin

    def as_float64(self) -> Self:
        """The same loss on NumPy float64 data, for the small exact solves."""
        held = {name: value for name in self._data if (value := getattr(self, name)) is not None}
        changed = {name: self._doubled(name, value) for name, value in held.items()}
        twin: Self = self if all(changed[name] is held[name] for name in held) else copy_with(self, **changed)
        return twin

    def _doubled(self, name: str, value: Any) -> Any:
        """Data in double precision."""
        return in_double(value)

    def __repr__(self) -> str:
        rows = None if self.entries is None or not self.n else self.entries // self.n
        inside = "" if self.n is None else f"{self.n} variables" if rows is None else f"{rows} × {self.n}"
        return f"{type(self).__name__}({inside})"

    def _repr_html_(self) -> str:
        return display.facts(
            {"loss": repr(self), "variables": "any" if self.n is None else str(self.n)}
            | display.docstring_summary(self)
        )
