"""φ from a function of PyTorch or JAX, its gradient by automatic differentiation."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import array_api_compat as compat
import numpy as np

from ksparse.base.arrays import Array, like, to_numpy
from ksparse.base.checks import check_callable
from ksparse.losses.custom import Custom

Pair = tuple[float, Any]


def autodiff(
    fn: Callable[[Any], Any],
    n: int | None = None,
    lipschitz: float | None = None,
    convex: bool | None = None,
    backend: str | None = None,
) -> Custom:
    """A loss from a function of one PyTorch or JAX vector, its gradient by automatic differentiation.

    Parameters
    ----------
    fn : callable
        Takes a vector, returns a scalar of the same library.
    n : int or None, default=None
        Variables; None for as many as the set or x0 has.
    lipschitz : float or None, default=None
        Of the gradient; None where it is not known.
    convex : bool or None, default=None
        Whether φ is convex; None where that is not known.
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
    if backend not in (None, *_BACKENDS):
        raise ValueError(f"backend must be one of {', '.join(_BACKENDS)}, got {backend!r}")
    evaluate = _Evaluator(fn, backend)
    return Custom(evaluate.value, evaluate.gradient, n=n, lipschitz=lipschitz, convex=convex)


class _Evaluator:
    """fn's value and gradient in the library that was named, or that accepted fn first."""

    def __init__(self, fn: Callable[[Any], Any], backend: str | None) -> None:
        self.fn, self.backend = fn, backend

    def value(self, x: Array) -> float:
        return self._both(x)[0]

    def gradient(self, x: Array) -> Array:
        return like(self._both(x)[1], x)

    def _both(self, x: Array) -> Pair:
        if self.backend is None:
            self.backend = self._choose(x)
        return _BACKENDS[self.backend](self.fn, x)

    def _choose(self, x: Array) -> str:
        installed = [name for name in _BACKENDS if importlib.util.find_spec(name)]
        if not installed:
            raise ImportError("autodiff needs PyTorch or JAX: pip install torch, or pip install jax")
        refusals = []
        for name in installed:
            try:
                _BACKENDS[name](self.fn, x)
            except Exception as error:  # the function's own complaint, whatever its type, belongs in the message
                refusals.append(f"{name}: {type(error).__name__}: {error}")
            else:
                return name
        raise TypeError("fn could be evaluated and differentiated by no installed library; " + "; ".join(refusals))


def _torch(fn: Callable[[Any], Any], x: Array) -> Pair:
    import torch

    given = x.detach().clone() if compat.is_torch_array(x) else torch.tensor(to_numpy(x))
    variable = given.requires_grad_(True)
    value = fn(variable)
    if not isinstance(value, torch.Tensor) or value.numel() != 1:
        raise TypeError(f"fn must return one torch number, got {type(value).__name__}")
    (gradient,) = torch.autograd.grad(value.reshape(()), variable)
    return float(value.detach()), gradient


def _jax(fn: Callable[[Any], Any], x: Array) -> Pair:
    import jax

    with jax.enable_x64(True):  # JAX rounds float64 to float32 unless asked not to
        value, gradient = jax.value_and_grad(fn)(jax.numpy.asarray(to_numpy(x)))
        return float(value), np.asarray(gradient)


_BACKENDS: dict[str, Callable[[Callable[[Any], Any], Array], Pair]] = {"torch": _torch, "jax": _jax}
