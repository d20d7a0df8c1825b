"""Linear models with at most k coefficients: columns scaled to equal size for the search, intercept apart, all undone in the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from ksparse.checks import check_array, check_bound, check_indices, check_integer, check_matrix, check_vector
from ksparse.losses import DataFit, Huber, LeastSquares, Logistic, Poisson
from ksparse.losses.matrix import kind_of
from ksparse.minimize import minimize
from ksparse.result import Result
from ksparse.sets import Box, ConvexSet, Nonnegative, WholeSpace

Vector = np.ndarray[Any, Any]
HUBER = 1.345  # δ in robust standard deviations: 95 % efficient where the noise is Gaussian


@dataclass(frozen=True)
class LinearFit:
    """coef·x + intercept, and the search that found it (in scaled variables)."""

    coef: Vector
    intercept: float
    result: Result


def _huber(A: Any, b: Any, sample_weight: Any) -> Huber:
    spread = float(np.median(np.abs(b - np.median(b)))) * 1.4826
    return Huber(A, b, HUBER * (spread or float(np.std(b)) or 1.0), sample_weight)


LOSSES: dict[str, Callable[[Any, Any, Any], DataFit]] = {"squared": LeastSquares, "logistic": Logistic, "huber": _huber, "poisson": Poisson}


def fit_linear(
    X: Any,
    y: Any,
    k: int,
    *,
    loss: str = "squared",
    lower: Any = -np.inf,
    upper: Any = np.inf,
    fit_intercept: bool = True,
    sample_weight: Any = None,
    forced_in: Any = (),
    **options: Any,
) -> LinearFit:
    """The best linear model of y by at most k columns of X, each coefficient within its bounds.

    loss : "squared", "logistic" (two classes, 0 and 1), "huber" or "poisson" (counts, log link). The intercept is free and not counted.
    lower, upper : one number, or one per column; they hold exactly in `coef`.
    forced_in, options : as in `minimize`.
    """
    if loss not in LOSSES:
        raise ValueError(f"loss must be one of {', '.join(LOSSES)}, got {loss!r}")
    X = check_matrix(X, "X")
    m, n = (int(side) for side in X.shape)
    k, y = check_integer(k, "k", 1, n), check_vector(y, "y", m, kind=kind_of(X))
    low, high = _bound(lower, "lower", n), _bound(upper, "upper", n)
    if (low > high).any():
        j = int(np.argmax(low > high))
        raise ValueError(f"lower must not exceed upper, got {low[j]:g} > {high[j]:g} at index {j}")
    A, mean, size = _scaled(X, centre=fit_intercept)
    forced = check_indices(forced_in, "forced_in")
    if fit_intercept:  # a last column of ones that is always in and never bounded
        ones = np.ones((m, 1), dtype=A.dtype)
        A = scipy.sparse.hstack([A, ones], format="csc") if scipy.sparse.issparse(A) else np.hstack([A, ones])
        forced, k = np.append(forced, n), k + 1
    C = _bounds_set(low * size, high * size, fit_intercept)
    result = minimize(LOSSES[loss](A, y, sample_weight), k, C, forced_in=forced, **options)
    z = np.asarray(result.x, dtype=float)
    coef = np.clip(z[:n] / size, low, high)  # dividing a bound by what it was multiplied with may miss it by a rounding
    coef = np.where(z[:n] == 0, 0.0, coef)
    return LinearFit(coef, float(z[n] - mean @ coef) if fit_intercept else 0.0, result)


def _bound(value: Any, name: str, n: int) -> Vector:
    bound = check_bound(value, name)
    if isinstance(bound, float):
        return np.full(n, bound)
    return np.asarray(check_vector(bound, name, n, allow_inf=True), dtype=float)


def _scaled(X: Any, centre: bool) -> tuple[Any, Vector, Vector]:
    """X with columns of root mean square 1, the means that were taken off and the factors; sparse columns stay where they are.

    A mean far from 0 would make the column nearly that of the intercept. What is left of a constant column is rounding: it becomes 0.
    """
    if scipy.sparse.issparse(X):
        square = np.asarray(X.multiply(X).mean(axis=0), dtype=float).ravel()
        size = np.where(square > 0, np.sqrt(square), 1.0)
        return X @ scipy.sparse.diags_array(1.0 / size), np.zeros(X.shape[1]), size
    X = np.asarray(check_array(X, "X", 2))
    mean = X.mean(axis=0, dtype=float) if centre else np.zeros(X.shape[1])
    Z = X - mean
    rms = np.sqrt(np.mean(np.square(Z), axis=0))
    constant = rms <= 10 * np.finfo(X.dtype).eps * np.abs(mean)
    size = np.where(constant, 1.0, rms)
    return np.where(constant, 0.0, Z / size), mean, size


def _bounds_set(low: Vector, high: Vector, fit_intercept: bool) -> ConvexSet:
    if fit_intercept:
        low, high = np.append(low, -np.inf), np.append(high, np.inf)
    if np.isneginf(low).all() and np.isposinf(high).all():
        return WholeSpace()
    if np.isposinf(high).all() and np.isin(low, (0.0, -np.inf)).all():
        return Nonnegative(np.flatnonzero(low == 0.0))
    return Box(low, high)
