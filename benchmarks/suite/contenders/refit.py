"""Refitting for libraries that return a shrunken x: minimise the loss on its support; find the weight of k nonzeros."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import nnls

from suite.problem import Problem

Fit = Callable[[float], Any]  # x at a weight


def along_weights(
    fit: Fit, start: float, k: int, factor: float = 0.7, steps: int = 40, halvings: int = 12
) -> tuple[Any, Any]:
    """Return x with the most nonzeros up to k and x with the fewest above k, by lowering and bisecting the weight.

    The second x is None if no weight gave more than k nonzeros.
    """
    below, above = fit(start), None
    for _ in range(8):
        if np.count_nonzero(below) <= k:
            break
        start *= 10.0
        below = fit(start)
    high = low = start
    for _ in range(steps):
        low *= factor
        x = fit(low)
        if np.count_nonzero(x) > k:
            above = x
            break
        below, high = _fuller(below, x), low
        if np.count_nonzero(x) == k:
            return below, None
    for _ in range(halvings if above is not None else 0):
        middle = float(np.sqrt(low * high))
        x = fit(middle)
        count = np.count_nonzero(x)
        if count > k:
            low, above = middle, x if count <= np.count_nonzero(above) else above
        else:
            high, below = middle, _fuller(below, x)
        if count == k:
            break
    return below, above


def _fuller(x: Any, y: Any) -> Any:
    return y if np.count_nonzero(y) >= np.count_nonzero(x) else x


def least_squares_on(problem: Problem, x: Any, nonnegative: bool = False) -> Any:
    """Minimise ½‖Ax − b‖² on the support of x."""
    S = np.flatnonzero(x)
    columns = problem.A[:, S]
    columns = columns.toarray() if problem.sparse else columns
    refitted = np.zeros(problem.n)
    refitted[S] = nnls(columns, problem.b)[0] if nonnegative else np.linalg.lstsq(columns, problem.b, rcond=None)[0]
    return refitted


def logistic_on(problem: Problem, x: Any, tolerance: float = 1e-10) -> Any:
    """Minimise the logistic loss on the support of x by Newton's method with halved steps."""
    S = np.flatnonzero(x)
    A, y, w = problem.A[:, S], problem.b, np.asarray(x)[S].copy()

    def loss(w: Any) -> float:
        return float(np.logaddexp(0.0, -y * (A @ w)).sum())

    for _ in range(50):
        p = 1.0 / (1.0 + np.exp(np.clip(y * (A @ w), -500, 500)))
        gradient = -A.T @ (y * p)
        step = np.linalg.lstsq(A.T @ ((p * (1 - p))[:, None] * A), gradient, rcond=None)[0]
        size, before = 1.0, loss(w)
        while size > 1e-8 and loss(w - size * step) > before:
            size *= 0.5
        w = w - size * step
        if before - loss(w) <= tolerance * max(1.0, before):
            break
    refitted = np.zeros(problem.n)
    refitted[S] = w
    return refitted
