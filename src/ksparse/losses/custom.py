"""A custom φ given by functions for its value, its gradient and optionally products with its Hessian."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import array_api_compat as compat
import numpy as np

from ksparse.data.model import QuadraticModel, Symmetric
from ksparse.errors import NotFiniteError
from ksparse.losses.base import Loss
from ksparse.losses.restricted import DIFFERENCES, Restricted, without_noise
from ksparse.numerics.eigen import is_positive_definite
from ksparse.util.arrays import Array, Vector, copy_with, dot, embed, epsilon, finite, is_array, like, norm, to_float64
from ksparse.util.checks import as_number, call_own, check_callable, check_integer, check_number, require_shape

MODELLED = 2048  # variables up to which a whole Hessian is computed, by n products
BENT = 1e-8  # an eigenvalue below 0 by more than this fraction of the Hessian's size shows that φ is not convex there


@dataclass
class Calls:
    """Calls of the user's functions by all copies of a loss together, and the last model with its x as bytes."""

    values: int = 0
    gradients: int = 0
    model: tuple[bytes, QuadraticModel | None] = (b"", None)


class Custom(Loss):
    """φ given by value(x) and gradient(x).

    Up to 2,048 variables the search uses second-order models, computed by `product(x, d)` or else by differences of
    gradients, two gradients per variable.

    Parameters
    ----------
    value : callable
        φ(x), one number.
    gradient : callable
        Its gradient, a vector of the shape of x.
    n : int or None, default=None
        Number of variables; None to take it from the set or x0.
    lipschitz : float or None, default=None
        A Lipschitz constant of the gradient; None if not known: methods with fixed steps then need backtracking.
    convex : bool or None, default=None
        Whether φ is convex; None if not known. With False no models are used and moves are ranked by gradients.
    product : callable or None, default=None
        product(x, d) returns ∇²φ(x)d; None to use differences of gradients.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> c = np.array([1.0, -3.0, 2.0])
    >>> loss = ks.Custom(lambda x: np.sum(np.cosh(x - c)), lambda x: np.sinh(x - c), n=3, convex=True)
    >>> ks.minimize(loss, 2).support
    array([1, 2])
    """

    evaluation_is_costly, skip_self_check = True, False
    forward_cost = adjoint_cost = 0  # no known data
    curvature_gradients = 2
    defined_everywhere = False

    def __init__(
        self,
        value: Callable[[Array], Any],
        gradient: Callable[[Array], Any],
        n: int | None = None,
        lipschitz: float | None = None,
        convex: bool | None = None,
        product: Callable[[Array, Array], Any] | None = None,
    ) -> None:
        self._product = None if product is None else check_callable(product, "product")
        self._value, self._gradient = check_callable(value, "value"), check_callable(gradient, "gradient")
        self.n = None if n is None else check_integer(n, "n", 1)
        self._lipschitz = math.inf if lipschitz is None else check_number(lipschitz, "lipschitz", at_least=0)
        self.convex = convex
        self.kind = np.zeros(0)
        # the kind of array that the user's functions receive, also in copies in double precision
        self.given = self.kind
        self._calls = Calls()

    @property
    def evaluations(self) -> tuple[int, int]:  # type: ignore[override]
        """Calls of the value and gradient functions."""
        return self._calls.values, self._calls.gradients

    def image(self, x: Array) -> Array:
        return x

    def value_at(self, x: Array, image: Array) -> float:
        self._calls.values += 1
        return as_number(call_own(self._value, "value(x)", x), "value(x)")

    def gradient_at(self, x: Array, image: Array) -> Array:
        self._calls.gradients += 1
        gradient = call_own(self._gradient, "gradient(x)", x)
        try:
            gradient = gradient if is_array(gradient) else np.asarray(gradient, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(f"gradient(x) must return a real vector, got {type(gradient).__name__}") from error
        if "complex" in str(gradient.dtype):
            raise TypeError(f"gradient(x) must return a real vector, got dtype {gradient.dtype}")
        require_shape(gradient, x.shape, "gradient(x)")
        if not finite(gradient) and finite(x):
            raise NotFiniteError("gradient(x) returned NaN or inf at a finite x")
        return like(gradient, x) + 0.0  # a copy: the user's function may reuse its memory

    def curvature_at(self, x: Array, image: Array, d: Array, image_d: Array) -> float:
        """Return dᵀ∇²φ(x)d by a product, or by one difference of gradients; 0 if both directions leave φ's domain."""
        found = self.products(to_float64(x), to_float64(d)[None]) if self.has_hessian else None
        if found is not None:
            return float(to_float64(d) @ found[0])
        t = 1e-4 * max(norm(x), 1.0) / max(norm(d), 1e-300)
        here = self.gradient_at(x, x)
        for step in (t, -t):
            with suppress(ValueError):
                return dot(d, self.gradient_at(x + step * d, x) - here) / step
        return 0.0

    @property
    def has_hessian(self) -> bool:
        """Whether there are second derivatives; otherwise differences of gradients replace them on supports."""
        return self._product is not None

    def products(self, x: Vector, D: Vector) -> Vector | None:
        """Return ∇²φ(x)d for the rows d of D; None if a point near x is outside φ's domain."""
        if self._product is not None:
            at, product = like(x, self.given), self._product
            found = np.array([to_float64(call_own(product, "product(x, d)", at, like(d, self.given))) for d in D])
            if found.shape != D.shape:
                raise TypeError(f"product(x, d) must return a vector of shape {x.shape}, got {found.shape[1:]}")
            return found if np.isfinite(found).all() else None
        h = self.rounding ** (1 / 3) * max(1.0, float(np.abs(x).max(initial=0.0)))
        rows = []
        for d in D:
            step = h / (float(np.abs(d).max(initial=0.0)) or 1.0)
            try:
                change = self.gradient_at(x + step * d, x) - self.gradient_at(x - step * d, x)
            except ValueError:
                return None
            rows.append(to_float64(change) / (2.0 * step))
        return np.array(rows)

    def hessian_on(self, x: Vector, support: Vector) -> Vector | None:
        """Return ∇²φ(x) on a support by one product per variable; None if a product fails."""
        unit = np.zeros((support.size, x.size))
        unit[np.arange(support.size), support] = 1.0
        found = self.products(x, unit)
        return None if found is None else np.asarray((found[:, support] + found[:, support].T) / 2.0)

    def model_at(self, x: Vector) -> QuadraticModel | None:
        """Return the second-order model if there are at most `MODELLED` variables and φ is convex at x."""
        if self.n is None or self.n > MODELLED or self.convex is False:
            return None
        x = to_float64(x)
        key = x.tobytes()
        if self._calls.model[0] != key:
            self._calls.model = key, self._new_model(x)
        return self._calls.model[1]

    def _new_model(self, x: Vector) -> QuadraticModel | None:
        H = self.hessian_on(x, np.arange(x.size))
        if H is None:
            return None
        noise = max(BENT, 1e3 * self.rounding ** (2 / 3)) * float(np.abs(H).sum(axis=0).max(initial=1e-300))
        if not is_positive_definite(H + noise * np.eye(x.size)):
            return None
        return QuadraticModel.at(Symmetric(H), x, H @ x, self.value_at(x, x), to_float64(self.gradient_at(x, x)))

    def restrict(self, support: Vector) -> Loss:
        if self.n is None:
            return super().restrict(support)  # raises ValueError: n is missing
        return CustomLossOnSupport(self, np.asarray(support), self.n)

    def lipschitz(self) -> float:
        return self._lipschitz

    @property
    def given_kind(self) -> None:
        """The user's functions accept any kind of vector."""

    def for_vectors_like(self, x: Array) -> Custom:
        return copy_with(self, n=int(x.shape[0]), kind=x[:0], given=x[:0], rounding=epsilon(x))

    def as_float64(self) -> Custom:
        """Return φ for NumPy float64 vectors; the user's functions still receive arrays of the original kind."""
        kind, value, gradient = self.kind, self._value, self._gradient
        if compat.is_numpy_array(kind) and kind.dtype == np.float64:
            return self
        plain = self.for_vectors_like(np.zeros(self.n or 0))
        plain._value, plain._gradient = lambda x: value(like(x, kind)), lambda x: to_float64(gradient(like(x, kind)))
        plain.rounding, plain.given = epsilon(kind), kind
        return plain


class CustomLossOnSupport(Restricted):
    """A custom φ on a support; its Hessian takes one product per variable of the support."""

    inner: Custom
    skip_self_check = False

    @property
    def has_hessian(self) -> bool:
        """Whether there are products, or differences are cheap."""
        return self.inner.has_hessian or self.support.size <= DIFFERENCES

    def hessian_at(self, x: Array, image: Array) -> Vector:
        H = self.inner.hessian_on(embed(to_float64(x), self.support, self.full), self.support)
        if H is None:
            raise NotFiniteError("points near x are outside φ's domain")
        return H if self.inner.has_hessian else without_noise(H, self.rounding)
