"""Losses given by PyTorch or JAX functions, with derivatives by automatic differentiation."""

from __future__ import annotations

import importlib.util
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property
from typing import Any

import array_api_compat as compat
import numpy as np

from ksparse.losses.custom import Custom
from ksparse.util.arrays import Array, Vector, epsilon, like, to_float64, to_numpy
from ksparse.util.checks import check_callable, check_choice

# XLA's simple CPU emitters in one piece, without LLVM optimisation: a fifth of the compile time
PLAIN = {"xla_cpu_use_fusion_emitters": False, "xla_cpu_parallel_codegen_split_count": 1}
QUICK = {"xla_backend_optimization_level": 0}
SMALL = 2**14  # numbers read per operation up to which less optimisation pays: it saves time once, not at each call
TOGETHER = 16  # products with the Hessian in one call: a fixed number, so that one compilation serves all
HEAVY = 1000  # operations of a gradient from which compiling its derivative takes seconds


class CompiledFunction:
    """A function of arrays, compiled once for each combination of their shapes and dtypes."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn
        self._traced: dict[Any, Any] = {}
        self._compiled: dict[Any, Any] = {}

    def __call__(self, *arrays: Vector) -> Any:
        key = _kinds(arrays)
        if key not in self._compiled:
            self._compiled[key] = _compile(self._trace(arrays))
        return self._compiled[key](*arrays)

    def operations(self, *arrays: Vector) -> int:
        """Return the number of operations, those of nested programs included, without compiling."""
        return sum(1 for _ in _equations(self._trace(arrays).jaxpr.jaxpr))

    def retraced(self, *arrays: Vector) -> Callable[..., Any]:
        """Return the traced function for further transformations; it returns its results as a list."""
        from jax.extend.core import jaxpr_as_fun

        function: Callable[..., Any] = jaxpr_as_fun(self._trace(arrays).jaxpr)
        return function

    def _trace(self, arrays: tuple[Vector, ...]) -> Any:
        import jax

        key = _kinds(arrays)
        if key not in self._traced:
            self._traced[key] = jax.jit(self.fn).trace(*arrays)
        return self._traced[key]


def in_double_precision() -> Any:
    """Return a context in which JAX keeps float64, whatever its global setting."""
    import jax
    import jax.experimental

    home: Any = jax if hasattr(jax, "enable_x64") else jax.experimental  # up to JAX 0.7
    return home.enable_x64(True)


def _kinds(arrays: tuple[Vector, ...]) -> tuple[Any, ...]:
    return tuple((array.shape, array.dtype) for array in arrays)


def _compile(traced: Any) -> Any:
    import jax

    lowered = traced.lower()
    if jax.default_backend() == "cpu":
        shapes = [[getattr(given.aval, "shape", ()) for given in one.invars] for one in _equations(traced.jaxpr.jaxpr)]
        reads = [sum(map(math.prod, inputs)) for inputs in shapes]  # numbers that each operation reads
        small = sum(reads) <= SMALL * len(reads)
        for options in (PLAIN | QUICK, QUICK, {}) if small else (PLAIN, {}):
            with suppress(Exception):  # an option unknown to this version; errors of fn itself are raised below
                return lowered.compile(compiler_options=options)
    return lowered.compile()


def _equations(program: Any) -> Iterator[Any]:
    """Yield the operations of a JAX program and of its nested programs."""
    for equation in program.eqns:
        yield equation
        for value in equation.params.values():
            part = getattr(value, "jaxpr", value)
            if hasattr(part, "eqns"):
                yield from _equations(part)


class Engine(ABC):
    """Evaluation of fn by one library."""

    def __init__(self, fn: Callable[[Any], Any]) -> None:
        self.fn = fn

    @abstractmethod
    def value_and_gradient(self, x: Array) -> tuple[Any, Any]:
        """Return fn(x) and its gradient, as arrays of the library."""

    @abstractmethod
    def products(self, x: Array, D: Vector) -> Vector:
        """Return ∇²fn(x) d for the rows d of D, in float64."""


class Torch(Engine):
    """PyTorch; x keeps its dtype and device."""

    def value_and_gradient(self, x: Array) -> tuple[Any, Any]:
        import torch

        variable, value = self._value(x)
        (gradient,) = torch.autograd.grad(value, variable)
        return value.detach(), gradient

    def _value(self, x: Array) -> tuple[Any, Any]:
        import torch

        variable = (x.detach().clone() if compat.is_torch_array(x) else torch.tensor(to_numpy(x))).requires_grad_(True)
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
        options = {"retain_graph": True, "materialize_grads": True}
        rows = [torch.autograd.grad(gradient, variable, d, **options)[0] for d in torch.tensor(D).to(gradient)]
        return np.array([to_float64(row) for row in rows])


class Jax(Engine):
    """JAX, compiled once per dtype of x, in double precision if x has it."""

    @cached_property
    def _value_and_gradient(self) -> CompiledFunction:
        import jax

        return CompiledFunction(jax.value_and_grad(self.fn))

    @cached_property
    def _products(self) -> CompiledFunction:
        import jax

        def product(x: Any, d: Any) -> Any:
            both = self._value_and_gradient.retraced(np.zeros(x.shape, x.dtype))
            return jax.jvp(lambda x: both(x)[1], (x,), (d,))[1]

        return CompiledFunction(jax.vmap(product, in_axes=(None, 0)))

    def value_and_gradient(self, x: Array) -> tuple[Any, Any]:
        with in_double_precision():
            value, gradient = self._value_and_gradient(to_numpy(x))
            return np.asarray(value), np.asarray(gradient)

    def products(self, x: Array, D: Vector) -> Vector:
        x, found = to_float64(x), np.empty(D.shape)
        with in_double_precision():
            if self._value_and_gradient.operations(x) > HEAVY:
                raise NotImplementedError("compiling the second derivative takes longer than differences of gradients")
            for begin in range(0, len(D), TOGETHER):
                block = D[begin : begin + TOGETHER]
                padded = np.zeros((TOGETHER, D.shape[1]))
                padded[: len(block)] = block
                products = np.asarray(self._products(x, padded), dtype=np.float64)
                found[begin : begin + len(block)] = products[: len(block)]
        return found


ENGINES: dict[str, type[Engine]] = {"torch": Torch, "jax": Jax}


def choose_engine(fn: Callable[[Any], Any], x: Array) -> Engine:
    """Return the first installed library that evaluates and differentiates fn at x."""
    installed = [name for name in ENGINES if importlib.util.find_spec(name)]
    if not installed:
        raise ImportError("autodiff needs PyTorch or JAX: pip install torch, or pip install jax")
    refusals = []
    for name in installed:
        engine = ENGINES[name](fn)
        try:
            engine.value_and_gradient(x)
        except Exception as error:  # whatever fn raises belongs in the message
            refusals.append(f"{name}: {type(error).__name__}: {error}")
        else:
            return engine
    raise TypeError("no installed library could evaluate and differentiate fn; " + "; ".join(refusals))


def autodiff(
    fn: Callable[[Any], Any],
    n: int | None = None,
    lipschitz: float | None = None,
    convex: bool | None = None,
    backend: str | None = None,
) -> Custom:
    """Return a loss given by a function of one PyTorch or JAX vector, with gradients by automatic differentiation.

    A JAX function is compiled once, so `jax.jit` must accept it. It runs in double precision; data in single precision
    inside it are not converted. If `fn` can be differentiated twice, the search uses second-order models.

    Parameters
    ----------
    fn : callable
        Takes a vector, returns a scalar of the same library.
    n : int or None, default=None
        Number of variables; None to take it from the set or x0.
    lipschitz : float or None, default=None
        A Lipschitz constant of the gradient; None if not known.
    convex : bool or None, default=None
        Whether φ is convex; None if not known. With False no models are used and moves are ranked by gradients.
    backend : {"torch", "jax"} or None, default=None
        None for the first installed one that `fn` accepts.

    Returns
    -------
    Custom
        The loss. x may be a NumPy array: it is converted, and gradients have the kind and dtype of x.

    Raises
    ------
    ImportError
        At the first evaluation, if neither library is installed.

    Examples
    --------
    >>> import ksparse as ks
    >>> loss = ks.autodiff(lambda x: ((x - 1.0) ** 4).sum(), n=5, convex=True)
    >>> ks.minimize(loss, 2).support.size  # doctest: +SKIP
    2
    """
    check_callable(fn, "fn")
    if backend is not None:
        check_choice(backend, "backend", ENGINES)
    return Autodiff(_Evaluator(fn, backend), n, lipschitz, convex)


class _Evaluator:
    """Value and gradient of fn from one call; the last point is remembered."""

    def __init__(self, fn: Callable[[Any], Any], backend: str | None) -> None:
        self.fn = fn
        self.engine: Engine | None = None if backend is None else ENGINES[backend](fn)
        self._last: tuple[bytes, str, Any, Any] | None = None
        self.twice = True  # whether fn can be differentiated twice, as far as is known
        self.rounding = 0.0  # of values in single precision, whatever the dtype of x

    def value(self, x: Array) -> float:
        return float(self._value_and_gradient(x)[0])

    def gradient(self, x: Array) -> Array:
        return like(self._value_and_gradient(x)[1], x)

    def _value_and_gradient(self, x: Array) -> tuple[Any, Any]:
        plain, last = to_numpy(x), self._last
        key = plain.tobytes(), f"{type(x).__name__} {plain.dtype}"
        if last is not None and last[:2] == key:
            return last[2:]
        value, gradient = self._engine(x).value_and_gradient(x)
        self.rounding = epsilon(value) if hasattr(value, "dtype") else 0.0
        self._last = (*key, value, gradient)  # in one assignment: other threads may read it
        return value, gradient

    def _engine(self, x: Array) -> Engine:
        if self.engine is None:
            self.engine = choose_engine(self.fn, x)
        return self.engine

    def products(self, x: Array, D: Vector) -> Vector | None:
        """Return ∇²fn(x) d for the rows of D; None if the library cannot, or a product is not finite."""
        if not self.twice:
            return None
        try:
            found = self._engine(x).products(x, D)
        except Exception:  # a function that is differentiable only once may raise anything
            self.twice = False
            return None
        return found if np.isfinite(found).all() else None


class Autodiff(Custom):
    """φ by automatic differentiation."""

    skip_self_check = False

    def __init__(self, evaluator: _Evaluator, n: int | None, lipschitz: float | None, convex: bool | None) -> None:
        self._evaluator = evaluator
        super().__init__(evaluator.value, evaluator.gradient, n, lipschitz, convex)

    @property
    def has_hessian(self) -> bool:
        return self._evaluator.twice

    def products(self, x: Vector, D: Vector) -> Vector | None:
        found = self._evaluator.products(like(x, self.given), D)
        return super().products(x, D) if found is None else found

    def for_vectors_like(self, x: Array) -> Custom:
        converted = super().for_vectors_like(x)
        converted.rounding = max(converted.rounding, self._evaluator.rounding)
        return converted
