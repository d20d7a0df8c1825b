"""φ from a function of PyTorch or JAX, its derivatives by automatic differentiation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ksparse.losses.custom import Custom
from ksparse.losses.engines import ENGINES, Engine, choose_engine
from ksparse.util.arrays import Array, Vector, epsilon, like, to_numpy
from ksparse.util.checks import check_callable


def autodiff(
    fn: Callable[[Any], Any],
    n: int | None = None,
    lipschitz: float | None = None,
    convex: bool | None = None,
    backend: str | None = None,
) -> Custom:
    """A loss from a function of one PyTorch or JAX vector, its gradient by automatic differentiation.

    A JAX function is compiled once and so must be one that `jax.jit` takes; it runs in double precision, though data that it holds in
    single precision stay as coarse as they are. Where `fn` can be differentiated twice, second-order models steer the search.

    Parameters
    ----------
    fn : callable
        Takes a vector, returns a scalar of the same library.
    n : int or None, default=None
        Variables; None for as many as the set or x0 has.
    lipschitz : float or None, default=None
        Of the gradient; None where it is not known.
    convex : bool or None, default=None
        Whether φ is convex; None where that is not known; False for a function that goes by gradients alone.
    backend : {"torch", "jax"} or None, default=None
        None for the first installed one that `fn` accepts.

    Returns
    -------
    Custom
        The loss. x may be a NumPy array all the same: it is handed over, and the gradient handed back in x's dtype.

    Raises
    ------
    ValueError, TypeError
        If `fn` cannot be called, or `backend` is not known.
    ImportError
        When it is first evaluated, if neither library is installed.

    Examples
    --------
    >>> import ksparse as ks
    >>> loss = ks.autodiff(lambda x: ((x - 1.0) ** 4).sum(), n=5, convex=True)
    >>> ks.minimize(loss, 2).support.size  # doctest: +SKIP
    2
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
        self.twice = True  # as far as is known
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

    def products(self, x: Array, D: Vector) -> Vector | None:
        """∇²fn(x) d for the rows of D; None where the library cannot, or they are not numbers."""
        if not self.twice:
            return None
        try:
            found = self._engine(x).products(x, D)
        except Exception:  # a function that is differentiable once only raises what it likes
            self.twice = False
            return None
        return found if np.isfinite(found).all() else None


class Autodiff(Custom):
    """φ by automatic differentiation."""

    def __init__(self, fn: Callable[[Any], Any], n: int | None, lipschitz: float | None, convex: bool | None, backend: str | None) -> None:
        self._evaluator = _Evaluator(fn, backend)
        super().__init__(self._evaluator.value, self._evaluator.gradient, n=n, lipschitz=lipschitz, convex=convex)

    @property
    def second(self) -> bool:
        return self._evaluator.twice

    def products(self, x: Vector, D: Vector) -> Vector | None:
        found = self._evaluator.products(like(x, self.given), D)
        return super().products(x, D) if found is None else found

    def for_vectors_like(self, x: Array) -> Custom:
        told = super().for_vectors_like(x)
        told.rounding = max(told.rounding, self._evaluator.rounding)
        return told
