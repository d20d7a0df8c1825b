"""The user's callback, called as scipy calls one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol

from ksparse.base.arrays import Array
from ksparse.base.checks import check_callable


class Tell(Protocol):
    """Tells the callback: a fresh copy of x on demand, F, iteration, residual, seconds, and whatever else is known."""

    def __call__(self, x: Callable[[], Array], F: float, t: int, residual: float, elapsed: float, **more: Any) -> None: ...


def as_scipy_callback(callback: Callable[..., Any] | None) -> Tell:
    """The callback with an `intermediate_result` if that is its parameter's name, else with x alone."""
    if callback is None:
        return lambda x, F, t, residual, elapsed, **more: None
    check_callable(callback, "callback")
    try:
        by_result = list(inspect.signature(callback).parameters) == ["intermediate_result"]
    except ValueError:  # a builtin that does not show its parameters
        by_result = False

    def tell(x: Callable[[], Array], F: float, t: int, residual: float, elapsed: float, **more: Any) -> None:
        if by_result:
            from scipy.optimize import OptimizeResult  # here: scipy.optimize takes as long to import as all of ours

            callback(intermediate_result=OptimizeResult(x=x(), fun=F, nit=t, residual=residual, elapsed=elapsed, **more))
        else:
            callback(x())

    return tell
