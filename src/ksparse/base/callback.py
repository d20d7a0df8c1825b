"""The user's callback, called as scipy calls one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from scipy.optimize import OptimizeResult

from ksparse.base.arrays import Array
from ksparse.base.checks import check_callable

Tell = Callable[[Callable[[], Array], float, int, float, float], None]  # a fresh copy of x on demand, F, iteration, residual, seconds


def as_scipy_callback(callback: Callable[..., Any] | None) -> Tell:
    """The callback with an `intermediate_result` if that is its parameter's name, else with x alone."""
    if callback is None:
        return lambda x, F, t, residual, elapsed: None
    check_callable(callback, "callback")
    try:
        by_result = list(inspect.signature(callback).parameters) == ["intermediate_result"]
    except ValueError:  # a builtin that does not show its parameters
        by_result = False

    def tell(x: Callable[[], Array], F: float, t: int, residual: float, elapsed: float) -> None:
        if by_result:
            callback(intermediate_result=OptimizeResult(x=x(), fun=F, nit=t, residual=residual, elapsed=elapsed))
        else:
            callback(x())

    return tell
