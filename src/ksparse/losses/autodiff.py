"""φ from a function of PyTorch or JAX, its derivatives by automatic differentiation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ksparse.base.arrays import Array, Vector, embed, epsilon, like, to_float64, to_numpy
from ksparse.base.checks import check_callable
from ksparse.linalg.curvature import Symmetric
from ksparse.linalg.model import QuadraticModel
from ksparse.losses.base import Loss
from ksparse.losses.custom import Custom
from ksparse.losses.engines import ENGINES, Engine, choose_engine
from ksparse.losses.restricted import Restricted

MODELLED = 2048  # variables up to which a whole Hessian is asked for: n products
BENT = 1e-8  # of the Hessian's size: an eigenvalue as far below 0 is no rounding, and φ not convex there


def autodiff(
    fn: Callable[[Any], Any],
    n: int | None = None,
    lipschitz: float | None = None,
    convex: bool | None = None,
    backend: str | None = None,
) -> Custom:
    """A loss from `fn`, a function of one PyTorch or JAX vector that returns a scalar of the same library.

    `backend` is "torch" or "jax"; without it the first installed one that `fn` accepts is taken. x may be a NumPy array
    all the same: it is handed over and the gradient handed back in x's dtype. A JAX function is compiled once and so must be one that
    `jax.jit` takes; it runs in double precision, though data that it holds in single precision stay as coarse as they are. Where `fn` can
    be differentiated twice, second-order models steer the search; `convex=False` says that it is not convex.
    """
    check_callable(fn, "fn")
    if backend not in (None, *ENGINES):
        raise ValueError(f"backend must be one of {', '.join(ENGINES)}, got {backend!r}")
    return Autodiff(fn, n, lipschitz, convex, backend)


class _Evaluator:
    """fn's value and gradient, both from one call, the last point remembered."""

    def __init__(self, fn: Callable[[Any], Any], backend: str | None) -> None:
        self.fn = fn
        self.engine: Engine | None = None if backend is None else ENGINES[backend](fn)
        self._last: tuple[bytes, str, Any, Any] | None = None
        self.model: tuple[bytes, QuadraticModel | None] = (b"", None)  # the last one, and where
        self.rounding = 0.0  # of values that come in single precision, whatever x is in

    def value(self, x: Array) -> float:
        return float(self._both(x)[0])

    def gradient(self, x: Array) -> Array:
        return like(self._both(x)[1], x)

    def _both(self, x: Array) -> tuple[Any, Any]:
        plain = to_numpy(x)
        key = plain.tobytes(), f"{type(x).__name__} {plain.dtype}"
        last = self._last
        if last is not None and last[:2] == key:
            return last[2:]
        engine = self._engine(x)
        value, gradient = engine.both(x)
        self.rounding = epsilon(value) if hasattr(value, "dtype") else 0.0
        self._last = (*key, value, gradient)  # at once: other threads may look at the same time
        return value, gradient

    def _engine(self, x: Array) -> Engine:
        if self.engine is None:
            self.engine = choose_engine(self.fn, x)
        return self.engine

    def products(self, x: Vector, D: Vector) -> Vector | None:
        """∇²fn(x) d for the rows of D; None where the library cannot, or they are not numbers."""
        try:
            found = self._engine(x).products(x, D)
        except Exception:  # a function that is differentiable once only raises what it likes
            return None
        return found if np.isfinite(found).all() else None


class Autodiff(Custom):
    """φ by automatic differentiation."""

    dear = True

    def __init__(self, fn: Callable[[Any], Any], n: int | None, lipschitz: float | None, convex: bool | None, backend: str | None) -> None:
        self._evaluator = _Evaluator(fn, backend)
        super().__init__(self._evaluator.value, self._evaluator.gradient, n=n, lipschitz=lipschitz, convex=convex)

    def curvature_at(self, x: Array, image: Array, d: Array, image_d: Array) -> float:
        direction = to_float64(d)
        product = self._evaluator.products(to_float64(x), direction[None])
        return super().curvature_at(x, image, d, image_d) if product is None else float(direction @ product[0])

    def hessian_on(self, x: Vector, support: Vector) -> Vector | None:
        """∇²φ(x) on a support, one product for each variable; None where there is none."""
        unit = np.zeros((support.size, x.size))
        unit[np.arange(support.size), support] = 1.0
        found = self._evaluator.products(x, unit)
        return None if found is None else np.asarray((found[:, support] + found[:, support].T) / 2.0)

    def model_at(self, x: Vector) -> QuadraticModel | None:
        """The second-order model, where there are not too many variables and φ is convex at x."""
        if self.n is None or self.n > MODELLED:
            return None
        x = to_float64(x)
        key = x.tobytes()
        if self._evaluator.model[0] != key:
            self._evaluator.model = key, self._new_model(x)
        return self._evaluator.model[1]

    def _new_model(self, x: Vector) -> QuadraticModel | None:
        H = self.hessian_on(x, np.arange(x.size))
        if H is None:
            return None
        try:
            np.linalg.cholesky(H + BENT * float(np.abs(H).sum(axis=0).max(initial=1e-300)) * np.eye(x.size))
        except np.linalg.LinAlgError:
            return None
        return QuadraticModel.at(Symmetric(H), x, H @ x, self.value_at(x, x), to_float64(self.gradient_at(x, x)))

    def restrict(self, support: np.ndarray[Any, Any]) -> Loss:
        assert self.n is not None
        return _OnSupport(self, np.asarray(support), self.n)

    def for_vectors_like(self, x: Array) -> Custom:
        told = super().for_vectors_like(x)
        told.rounding = max(told.rounding, self._evaluator.rounding)
        return told


class _OnSupport(Restricted):
    """φ on a support: as many products with the Hessian as it has variables."""

    inner: Autodiff

    has_hessian = True  # where the library does not differentiate twice, by differences

    def hessian_at(self, x: Array, image: Array) -> np.ndarray[Any, Any]:
        H = self.inner.hessian_on(embed(to_float64(x), self.support, self.full), self.support)
        return super().hessian_at(x, image) if H is None else H

    def restrict(self, support: np.ndarray[Any, Any]) -> Loss:
        return _OnSupport(self.inner, self.support[support], self.full)

    def as_float64(self) -> _OnSupport:
        return _OnSupport(self.inner.as_float64(), self.support, self.full)
