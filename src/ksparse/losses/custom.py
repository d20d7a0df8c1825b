"""The user's own φ, by two functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import array_api_compat as compat
import numpy as np

from ksparse.base.arrays import Array, dot, epsilon, finite, is_array, like, norm, replaced, to_float64
from ksparse.base.checks import check_callable, check_integer, check_number
from ksparse.errors import NotFiniteError
from ksparse.losses.base import Loss


@dataclass
class Calls:
    """How often the user's functions were called, by all copies of a loss together."""

    values: int = 0
    gradients: int = 0


class Custom(Loss):
    """φ given by value(x) and gradient(x). `n`, `lipschitz` and `convex` tell what is known of it.

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
        Whether φ is convex; None where that is not known.

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
    ) -> None:
        self._value, self._gradient = check_callable(value, "value"), check_callable(gradient, "gradient")
        self.n = None if n is None else check_integer(n, "n", 1)
        self._lipschitz = math.inf if lipschitz is None else check_number(lipschitz, "lipschitz", at_least=0)
        self.convex = convex
        self.kind = np.zeros(0)
        self._calls = Calls()

    @property
    def evaluations(self) -> tuple[int, int]:
        """The calls of the user's two functions."""
        return self._calls.values, self._calls.gradients

    def image(self, x: Array) -> Array:
        return x

    def value_at(self, x: Array, image: Array) -> float:
        self._calls.values += 1
        value = self._value(x)
        try:
            return float(value)
        except (TypeError, ValueError, RuntimeError) as error:
            raise TypeError(f"value(x) must return one number, got {type(value).__name__}") from error

    def gradient_at(self, x: Array, image: Array) -> Array:
        self._calls.gradients += 1
        gradient = self._gradient(x)
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
        """One difference of gradients along d, its length a small part of x's; backwards where d leads out of φ's domain, 0 if both do."""
        t = 1e-4 * max(norm(x), 1.0) / max(norm(d), 1e-300)
        here = self.gradient_at(x, x)
        for step in (t, -t):
            try:
                return dot(d, self.gradient_at(x + step * d, x) - here) / step
            except ValueError:
                continue
        return 0.0

    def lipschitz(self) -> float:
        return self._lipschitz

    @property
    def given_kind(self) -> None:
        """The user's functions take what they are given."""

    def for_vectors_like(self, x: Array) -> Custom:
        """The same φ on vectors of the length, namespace, dtype and device of x."""
        twin: Custom = replaced(self, n=int(x.shape[0]), kind=x[:0], rounding=epsilon(x))
        return twin

    def as_float64(self) -> Custom:
        """The same φ of NumPy float64 vectors; the user's functions still see the kind of array they were written for."""
        kind, value, gradient = self.kind, self._value, self._gradient
        if compat.is_numpy_array(kind) and kind.dtype == np.float64:
            return self
        plain = self.for_vectors_like(np.zeros(self.n or 0))
        theirs = {"_value": lambda x: value(like(x, kind)), "_gradient": lambda x: to_float64(gradient(like(x, kind)))}
        twin: Custom = replaced(plain, rounding=epsilon(kind), **theirs)
        return twin
