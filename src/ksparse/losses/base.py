"""What a loss is: φ(x) = h(image of x), with an image linear in x.

The image (Ax, Qx, Zx) is the only forward product with the data, and the gradient costs at most one adjoint product given the image.
Points keep their images (see `ksparse.firstorder.problem`), so value, gradient and curvature take the image as given; the linear
combination of two images is the image of the linear combination.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from ksparse.base.arrays import Array, Vector, embed, replaced, take, to_float64
from ksparse.base.checks import check_vector
from ksparse.linalg.curvature import opaque
from ksparse.linalg.matrix import Root, Squares, triangle
from ksparse.linalg.model import QuadraticModel

DIFFERENCES = 100  # up to this size a Hessian by differences of gradients is worth its cost


class Loss(ABC):
    """φ, smooth. `n` is the number of variables (None: any), `convex` whether φ is known to be convex (None: not known)."""

    n: int | None
    convex: bool | None
    kind: Array  # an empty vector that carries the namespace, dtype and device of x
    forward_cost: int = 1  # products with the data for an image
    adjoint_cost: int = 1  # products with the data for a gradient, its image given
    defined_everywhere: bool = True  # whether φ exists outside C too
    rounding: float = 2.3e-16  # of a value or gradient, where it is coarser than that of x
    curvature_gradients: int = 0  # gradients that one curvature costs
    has_hessian: bool = False  # whether `hessian_at` is there
    is_quadratic: bool = False  # whether `quadratic()` is φ itself
    certain: bool = True  # whether what `convex` says is sure
    least: float = -math.inf  # what φ is known not to fall below, on any set
    entries: int | None = None  # of the data, which a product reads; None where there are none that we know of
    opaque: bool = False  # whether the data hide their columns, and have too many to ask for each
    own_threads: bool = False  # whether products run in threads of ours, which want the library's at rest
    _data: ClassVar[tuple[str, ...]] = ("kind",)  # attributes that hold arrays

    @abstractmethod
    def image(self, x: Array) -> Array:
        """The linear image of x: one forward product."""

    @abstractmethod
    def value_at(self, x: Array, image: Array) -> float:
        """φ(x), without a product."""

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
        """φ as a function of the variables on the support, the others fixed to 0; by default that is just done."""
        if self.n is None:
            raise ValueError(f"{type(self).__name__} needs n to be restricted to a support")
        return Restricted(self, support, self.n)

    def squares(self) -> Squares | None:
        """The data of φ, where it is a weighted sum of squares: from them nearly dependent variables are told apart, from H not."""
        return None

    def quadratic(self) -> QuadraticModel | None:
        """φ itself as ½xᵀHx − rᵀx + constant, where it is quadratic and shows H's columns; on float64 NumPy data, see `as_float64`."""
        squares = self.squares()
        return None if squares is None or opaque(squares.A) else QuadraticModel.of_squares(*squares)

    def model_at(self, x: Vector) -> QuadraticModel | None:
        """The second-order model of φ at x, where it shows its curvature; on float64 NumPy data. Of a quadratic φ that is `quadratic()`."""
        return self.quadratic()

    def hessian_at(self, x: Array, image: Array) -> np.ndarray[Any, Any]:
        """∇²φ(x) as a dense NumPy matrix: for restricted losses on float64 NumPy data, where n is small."""
        raise NotImplementedError(f"{type(self).__name__} has no Hessian")

    def root(self) -> Root | None:
        """R, q and rest with φ(x) = ½‖Rx − q‖² + ½·rest², where φ is a sum of squares: like `hessian_at` for restricted losses."""
        squares = self.squares()
        return None if squares is None else triangle(*squares)

    def repeats(self, support: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """For each place of the support the first place whose variable is the same to φ, as far as φ's data show it at once: its own."""
        return np.arange(len(support))

    @property
    def evaluations(self) -> tuple[int, int] | None:
        """How often φ and ∇φ were evaluated so far, where the loss counts that itself."""
        return None

    def try_out(self, x: Array, project: Callable[[Array], Array]) -> None:
        """Refuse functions of the user's that are not what they say, at x projected onto C and near it; our own have nothing to show."""
        return

    def value(self, x: Array) -> float:
        """φ(x) at any vector of length n."""
        x = check_vector(x, "x", self.n, kind=self.kind)
        return self.value_at(x, self.image(x))

    def gradient(self, x: Array) -> Array:
        """∇φ(x) at any vector of length n."""
        x = check_vector(x, "x", self.n, kind=self.kind)
        return self.gradient_at(x, self.image(x))

    @property
    def given_kind(self) -> Array | None:
        """The kind of vectors that φ's data ask for; None where any will do."""
        return self.kind

    def for_vectors_like(self, x: Array) -> Loss:
        """The same φ of vectors of the length, namespace, dtype and device of x; φ with data has its own, and is itself."""
        return self

    def as_float64(self) -> Self:
        """The same loss on NumPy float64 data, for the small exact solves."""
        held = {name: value for name in self._data if (value := getattr(self, name)) is not None}
        changed = {name: to_float64(value) for name, value in held.items()}
        twin: Self = self if all(changed[name] is held[name] for name in held) else replaced(self, **changed)
        return twin


class Restricted(Loss):
    """A loss without structure of its own to cut: x is embedded, the inner loss evaluated, the gradient cut."""

    def __init__(self, inner: Loss, support: np.ndarray[Any, Any], n: int) -> None:
        self.inner, self.support, self.full = inner, np.asarray(support), n
        self.n = int(self.support.size)
        self.convex, self.kind = inner.convex, inner.kind
        self.forward_cost, self.adjoint_cost = inner.forward_cost, inner.adjoint_cost
        self.curvature_gradients = inner.curvature_gradients
        self.defined_everywhere, self.rounding, self.least = inner.defined_everywhere, inner.rounding, inner.least
        self.is_quadratic = inner.is_quadratic
        self.has_hessian = inner.is_quadratic or self.n <= DIFFERENCES

    def _embed(self, z: Array) -> Array:
        return embed(z, self.support, self.full)

    def image(self, x: Array) -> Array:
        return self.inner.image(self._embed(x))

    def value_at(self, x: Array, image: Array) -> float:
        return self.inner.value_at(self._embed(x), image)

    def gradient_at(self, x: Array, image: Array) -> Array:
        return take(self.inner.gradient_at(self._embed(x), image), self.support)

    def curvature_at(self, x: Array, image: Array, d: Array, image_d: Array) -> float:
        return self.inner.curvature_at(self._embed(x), image, self._embed(d), image_d)

    @cached_property
    def _model(self) -> QuadraticModel | None:
        return self.inner.quadratic() if self.is_quadratic else None

    def hessian_at(self, x: Array, image: Array) -> np.ndarray[Any, Any]:
        """∇²φ(x): a block of the inner loss's own, where it is quadratic; else by central differences of the gradient, 2n gradients."""
        if self._model is not None:
            return self._model.block(self.support)
        h = self.rounding ** (1 / 3) * max(1.0, float(np.abs(x).max(initial=0.0)))
        slopes = [(self.gradient(x + h * e) - self.gradient(x - h * e)) / (2.0 * h) for e in np.eye(x.size)]
        H = np.array(slopes)
        values, vectors = np.linalg.eigh((H + H.T) / 2.0)
        noise = 1e4 * self.rounding ** (2 / 3) * np.abs(values).max()  # what differences leave of a flat direction
        values[np.abs(values) <= noise] = 0.0
        return np.asarray((vectors * values) @ vectors.T)

    def lipschitz(self) -> float:
        return self.inner.lipschitz()

    def restrict(self, support: np.ndarray[Any, Any]) -> Loss:
        return Restricted(self.inner, self.support[support], self.full)

    def as_float64(self) -> Restricted:
        return Restricted(self.inner.as_float64(), self.support, self.full)
