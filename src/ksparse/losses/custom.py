"""The user's own φ, by two functions, or three."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import array_api_compat as compat
import numpy as np

from ksparse.data.model import QuadraticModel, Symmetric
from ksparse.errors import NotFiniteError
from ksparse.losses.base import Loss
from ksparse.losses.restricted import DIFFERENCES, Restricted, without_noise
from ksparse.util.arrays import Array, Vector, copy_with, dot, embed, epsilon, finite, is_array, like, norm, to_float64
from ksparse.util.checks import call_own, check_callable, check_integer, check_number

MODELLED = 2048  # variables up to which a whole Hessian is asked for: n products
BENT = 1e-8  # of the Hessian's size: an eigenvalue as far below 0 is no rounding, and φ not convex there


@dataclass
class Calls:
    """How often the user's functions were called, by all copies of a loss together; and the last model, and where it was taken."""

    values: int = 0
    gradients: int = 0
    model: tuple[bytes, QuadraticModel | None] = (b"", None)


class Custom(Loss):
    """φ given by value(x) and gradient(x). `n`, `lipschitz` and `convex` tell what is known of it.

    Second-order models steer the search up to 2,048 variables: by `product(x, d)`, or else by differences of gradients, two for each
    variable.

    Parameters
    ----------
    value : callable
        φ(x), one number.
    gradient : callable
        Its gradient, a vector of the shape of x.
    n : int or None, default=None
        Variables; None for as many as the set or x0 has.
    lipschitz : float or None, default=None
        Of the gradient; None where it is not known, and steps must be found by backtracking.
    convex : bool or None, default=None
        Whether φ is convex; None where that is not known; False for a φ that goes by gradients alone.
    product : callable or None, default=None
        ∇²φ(x)d of x and d; None for differences of gradients.

    Raises
    ------
    TypeError
        If value or gradient cannot be called.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> c = np.array([1.0, -3.0, 2.0])
    >>> loss = ks.Custom(lambda x: np.sum(np.cosh(x - c)), lambda x: np.sinh(x - c), n=3, convex=True)
    >>> ks.minimize(loss, 2).support
    array([1, 2])
    """

    evaluation_is_costly = True

    forward_cost = adjoint_cost = 0  # there is no data we know of
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
        self.given = self.kind  # what the user's functions were written for, in copies in double precision too
        self._calls = Calls()

    @property
    def evaluations(self) -> tuple[int, int]:
        """The calls of the user's two functions."""
        return self._calls.values, self._calls.gradients

    def image(self, x: Array) -> Array:
        return x

    def value_at(self, x: Array, image: Array) -> float:
        self._calls.values += 1
        value = call_own(self._value, "value(x)", x)
        try:
            return float(value)
        except (TypeError, ValueError, RuntimeError) as error:
            raise TypeError(f"value(x) must return one number, got {type(value).__name__}") from error

    def gradient_at(self, x: Array, image: Array) -> Array:
        self._calls.gradients += 1
        gradient = call_own(self._gradient, "gradient(x)", x)
        if not is_array(gradient):
            try:
                gradient = np.asarray(gradient, dtype=np.float64)
            except (TypeError, ValueError) as error:
                raise TypeError(f"gradient(x) must return a real vector, got {type(gradient).__name__}") from error
        if "complex" in str(gradient.dtype):
            raise TypeError(f"gradient(x) must return a real vector, got dtype {gradient.dtype}")
        if tuple(gradient.shape) != tuple(x.shape):
            raise ValueError(f"gradient(x) must have shape {tuple(x.shape)}, got {tuple(gradient.shape)}")
        if not finite(gradient) and finite(x):
            raise NotFiniteError("gradient(x) returned NaN or inf at a finite x")
        return like(gradient, x) + 0.0  # a copy: the user's function may fill the same memory again

    def curvature_at(self, x: Array, image: Array, d: Array, image_d: Array) -> float:
        """By a product; or one difference of gradients along d, its length a small part of x's.

        Backwards where d leads out of φ's domain, 0 if both do.
        """
        found = self.products(to_float64(x), to_float64(d)[None]) if self.second else None
        if found is not None:
            return float(to_float64(d) @ found[0])
        t = 1e-4 * max(norm(x), 1.0) / max(norm(d), 1e-300)
        here = self.gradient_at(x, x)
        for step in (t, -t):
            try:
                return dot(d, self.gradient_at(x + step * d, x) - here) / step
            except ValueError:
                continue
        return 0.0

    @property
    def has_hessian(self) -> bool:
        """Whether it is more than differences, which are taken on supports only."""
        return self.second

    @property
    def second(self) -> bool:
        """Whether there are second derivatives; else differences of gradients take their place."""
        return self._product is not None

    def products(self, x: Vector, D: Vector) -> Vector | None:
        """∇²φ(x)d for the rows d of D; None where a point beside x is outside φ's domain."""
        if self._product is not None:
            found = np.array(
                [
                    to_float64(call_own(self._product, "product(x, d)", like(x, self.given), like(d, self.given)))
                    for d in D
                ]
            )
            if found.shape != D.shape:
                raise TypeError(f"product(x, d) must return a vector of shape {x.shape}, got {found.shape[1:]}")
            return found if np.isfinite(found).all() else None
        h = self.rounding ** (1 / 3) * max(1.0, float(np.abs(x).max(initial=0.0)))
        rows = []
        for d in D:
            step = h / (float(np.abs(d).max(initial=0.0)) or 1.0)
            try:
                rows.append(
                    to_float64(self.gradient_at(x + step * d, x) - self.gradient_at(x - step * d, x)) / (2.0 * step)
                )
            except ValueError:
                return None
        return np.array(rows)

    def hessian_on(self, x: Vector, support: Vector) -> Vector | None:
        """∇²φ(x) on a support, one product for each variable; None where there is none."""
        unit = np.zeros((support.size, x.size))
        unit[np.arange(support.size), support] = 1.0
        found = self.products(x, unit)
        return None if found is None else np.asarray((found[:, support] + found[:, support].T) / 2.0)

    def model_at(self, x: Vector) -> QuadraticModel | None:
        """The second-order model, where there are not too many variables and φ is convex at x."""
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
        try:
            np.linalg.cholesky(H + noise * np.eye(x.size))
        except np.linalg.LinAlgError:
            return None
        return QuadraticModel.at(Symmetric(H), x, H @ x, self.value_at(x, x), to_float64(self.gradient_at(x, x)))

    def restrict(self, support: np.ndarray[Any, Any]) -> Loss:
        if self.n is None:
            return super().restrict(support)  # which says what is missing
        return CustomLossOnSupport(self, np.asarray(support), self.n)

    def lipschitz(self) -> float:
        return self._lipschitz

    @property
    def given_kind(self) -> None:
        """The user's functions take what they are given."""

    def for_vectors_like(self, x: Array) -> Custom:
        """The same φ on vectors of the length, namespace, dtype and device of x."""
        twin: Custom = copy_with(self, n=int(x.shape[0]), kind=x[:0], given=x[:0], rounding=epsilon(x))
        return twin

    def as_float64(self) -> Custom:
        """The same φ of NumPy float64 vectors; the user's functions still see the kind of array they were written for."""
        kind, value, gradient = self.kind, self._value, self._gradient
        if compat.is_numpy_array(kind) and kind.dtype == np.float64:
            return self
        plain = self.for_vectors_like(np.zeros(self.n or 0))
        theirs = {"_value": lambda x: value(like(x, kind)), "_gradient": lambda x: to_float64(gradient(like(x, kind)))}
        twin: Custom = copy_with(plain, rounding=epsilon(kind), given=kind, **theirs)
        return twin


class CustomLossOnSupport(Restricted):
    """φ on a support: as many products with the Hessian as it has variables."""

    inner: Custom

    @property
    def has_hessian(self) -> bool:
        """By products, or by differences where they are few."""
        return self.inner.second or self.support.size <= DIFFERENCES

    def hessian_at(self, x: Array, image: Array) -> np.ndarray[Any, Any]:
        H = self.inner.hessian_on(embed(to_float64(x), self.support, self.full), self.support)
        if H is None:
            raise NotFiniteError("points beside x are outside φ's domain")
        return H if self.inner.second else without_noise(H, self.rounding)

    def restrict(self, support: np.ndarray[Any, Any]) -> Loss:
        return CustomLossOnSupport(self.inner, self.support[support], self.full)

    def as_float64(self) -> CustomLossOnSupport:
        return CustomLossOnSupport(self.inner.as_float64(), self.support, self.full)
