"""Functions of JAX, compiled: little ones with no more care than their few hundred calls are worth."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

# The simple emitters of XLA's CPU backend in one piece, and LLVM's work on what they emit left out: a fifth of the time to compile.
PLAIN = {"xla_cpu_use_fusion_emitters": False, "xla_cpu_parallel_codegen_split_count": 1}
QUICK = {"xla_backend_optimization_level": 0}
SMALL = 2**14  # numbers read per operation: each that is compiled quickly saves its time once, each number costs more at every call


class Program:
    """`fn` of arrays, compiled once for each shape and dtype that it is called with."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn
        self._traced: dict[Any, Any] = {}
        self._compiled: dict[Any, Any] = {}
        self._operations: dict[Any, int] = {}

    def __call__(self, *arrays: np.ndarray[Any, Any]) -> Any:
        key = _kinds(arrays)
        if key not in self._compiled:
            self._compiled[key] = _compile(self._trace(arrays))
        return self._compiled[key](*arrays)

    def operations(self, *arrays: np.ndarray[Any, Any]) -> int:
        """How many it consists of, those of its parts among them; nothing is compiled for that."""
        key = _kinds(arrays)
        if key not in self._operations:
            self._operations[key] = sum(1 for _ in _equations(self._trace(arrays).jaxpr.jaxpr))
        return self._operations[key]

    def again(self, *arrays: np.ndarray[Any, Any]) -> Callable[..., Any]:
        """The same function from what JAX has seen of it, for further transformations: what comes back are its results in a row."""
        from jax.extend.core import jaxpr_as_fun

        function: Callable[..., Any] = jaxpr_as_fun(self._trace(arrays).jaxpr)
        return function

    def _trace(self, arrays: tuple[np.ndarray[Any, Any], ...]) -> Any:
        import jax

        key = _kinds(arrays)
        if key not in self._traced:
            self._traced[key] = jax.jit(self.fn).trace(*arrays)
        return self._traced[key]


def in_double_precision() -> Any:
    """While this lasts JAX does not round float64 to float32, whatever it is told elsewhere."""
    import jax
    import jax.experimental

    home: Any = jax if hasattr(jax, "enable_x64") else jax.experimental  # up to JAX 0.7
    return home.enable_x64(True)


def _kinds(arrays: tuple[np.ndarray[Any, Any], ...]) -> tuple[Any, ...]:
    return tuple((array.shape, array.dtype) for array in arrays)


def _compile(traced: Any) -> Any:
    import jax

    lowered = traced.lower()
    if jax.default_backend() == "cpu":
        reads = [_reads(equation) for equation in _equations(traced.jaxpr.jaxpr)]
        small = sum(reads) <= SMALL * len(reads)
        for options in (PLAIN | QUICK, QUICK, {}) if small else (PLAIN, {}):
            try:
                return lowered.compile(compiler_options=options)
            except Exception:  # an option that this version does not know; what is wrong with fn itself is said below
                continue
    return lowered.compile()


def _equations(program: Any) -> Iterator[Any]:
    """The operations of a JAX program and of its parts."""
    for equation in program.eqns:
        yield equation
        for value in equation.params.values():
            part = getattr(value, "jaxpr", value)
            if hasattr(part, "eqns"):
                yield from _equations(part)


def _reads(equation: Any) -> int:
    """The numbers that an operation is given."""
    return sum(math.prod(getattr(given.aval, "shape", ())) for given in equation.invars)
