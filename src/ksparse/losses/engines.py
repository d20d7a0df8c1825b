"""The libraries that differentiate a user's function: value and gradient from one call, and products with the Hessian."""

from __future__ import annotations

import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any

import array_api_compat as compat
import numpy as np

from ksparse.losses.programs import Program, in_double_precision
from ksparse.util.arrays import Array, Vector, to_float64, to_numpy

TOGETHER = 16  # products with the Hessian in one call: a fixed number, so that one compilation serves all
HEAVY = 1000  # operations of a gradient from which compiling its derivative takes seconds


class Engine(ABC):
    """fn as one library sees it."""

    def __init__(self, fn: Callable[[Any], Any]) -> None:
        self.fn = fn

    @abstractmethod
    def both(self, x: Array) -> tuple[Any, Any]:
        """fn(x) and its gradient, in arrays of the library."""

    @abstractmethod
    def products(self, x: Array, D: Vector) -> Vector:
        """∇²fn(x) d for the rows d of D, float64."""


class Torch(Engine):
    """PyTorch: x as a tensor of its own dtype, on its own device."""

    def both(self, x: Array) -> tuple[Any, Any]:
        import torch

        variable, value = self._value(x)
        (gradient,) = torch.autograd.grad(value, variable)
        return value.detach(), gradient

    def _value(self, x: Array) -> tuple[Any, Any]:
        import torch

        given = x.detach().clone() if compat.is_torch_array(x) else torch.tensor(to_numpy(x))
        variable = given.requires_grad_(True)
        value = self.fn(variable)
        if not isinstance(value, torch.Tensor) or value.numel() != 1:
            raise TypeError(f"fn must return one torch number, got {type(value).__name__}")
        return variable, value.reshape(())

    def products(self, x: Array, D: Vector) -> Vector:
        import torch

        variable, value = self._value(x)
        (gradient,) = torch.autograd.grad(value, variable, create_graph=True)
        if not gradient.requires_grad:  # linear: no curvature
            return np.zeros_like(D)
        rows = [
            torch.autograd.grad(gradient, variable, d, retain_graph=True, materialize_grads=True)[0] for d in torch.tensor(D).to(gradient)
        ]
        return np.array([to_float64(row) for row in rows])


class Jax(Engine):
    """JAX: compiled once per dtype of x, in double precision where x has it, whatever JAX is told elsewhere."""

    @cached_property
    def _both(self) -> Program:
        import jax

        return Program(jax.value_and_grad(self.fn))

    @cached_property
    def _products(self) -> Program:
        import jax

        def product(x: Any, d: Any) -> Any:
            both = self._both.again(np.zeros(x.shape, x.dtype))
            return jax.jvp(lambda x: both(x)[1], (x,), (d,))[1]

        return Program(jax.vmap(product, in_axes=(None, 0)))

    def both(self, x: Array) -> tuple[Any, Any]:
        with in_double_precision():
            value, gradient = self._both(to_numpy(x))
            return np.asarray(value), np.asarray(gradient)

    def products(self, x: Array, D: Vector) -> Vector:
        x, found = to_float64(x), np.empty(D.shape)
        with in_double_precision():
            if self._both.operations(x) > HEAVY:
                raise NotImplementedError("the second derivative would take longer to compile than differences of gradients take")
            for begin in range(0, len(D), TOGETHER):
                block = D[begin : begin + TOGETHER]
                padded = np.zeros((TOGETHER, D.shape[1]))
                padded[: len(block)] = block
                found[begin : begin + len(block)] = np.asarray(self._products(x, padded), dtype=np.float64)[: len(block)]
        return found


ENGINES: dict[str, type[Engine]] = {"torch": Torch, "jax": Jax}


def choose_engine(fn: Callable[[Any], Any], x: Array) -> Engine:
    """The first installed library that evaluates and differentiates fn at x."""
    installed = [name for name in ENGINES if importlib.util.find_spec(name)]
    if not installed:
        raise ImportError("autodiff needs PyTorch or JAX: pip install torch, or pip install jax")
    refusals = []
    for name in installed:
        engine = ENGINES[name](fn)
        try:
            engine.both(x)
        except Exception as error:  # the function's own complaint, whatever its type, belongs in the message
            refusals.append(f"{name}: {type(error).__name__}: {error}")
        else:
            return engine
    raise TypeError("fn could be evaluated and differentiated by no installed library; " + "; ".join(refusals))
