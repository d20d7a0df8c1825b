"""Several sparse components: each the best k-sparse direction of what the ones before have left."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ksparse.checks import check_array, check_integer
from ksparse.losses import PrincipalComponent
from ksparse.losses.standardize import standardize
from ksparse.minimize import minimize
from ksparse.result import Result, Status
from ksparse.sets import L2Ball

Matrix = np.ndarray[Any, Any]
NOTHING = 1e-20  # of the variance: what deflation leaves is rounding


@dataclass(frozen=True)
class Components:
    """The directions, one per row, each of unit length with at most k nonzeros."""

    loadings: Matrix
    variance: np.ndarray[Any, Any]  # that each adds to the ones before: what they share is counted once
    total: float  # the variance of the data
    results: list[Result]


def sparse_components(
    X: Any, k: int | Sequence[int], n_components: int = 1, *, scale: bool = True, max_time: float | None = None, **options: Any
) -> Components:
    """The first sparse principal components of a table (one row per sample), by projection deflation; the covariance is never formed.

    k : the nonzeros of each component, one number or one per component. scale : standardise the columns (correlations). max_time : seconds
    for all. options : as in `minimize`. There are fewer components where the variance is used up, or the search is cut short.
    """
    X = np.asarray(check_array(X, "X", 2), dtype=float)
    n_components = check_integer(n_components, "n_components", 1, min(X.shape))
    sizes = [int(k)] * n_components if isinstance(k, int | np.integer) else list(k)
    if len(sizes) != n_components:
        raise ValueError(f"k must be one number or {n_components}, one per component, got {len(sizes)}")
    Z = np.asarray(standardize(X, "X", scale=scale)[0])
    total = float(np.sum(np.square(Z)))
    left, results, began = Z, list[Result](), time.perf_counter()
    for size in sizes:
        if results and float(np.sum(np.square(left))) <= NOTHING * total:
            break
        try:
            rest = None if max_time is None else max(0.0, max_time - (time.perf_counter() - began))
            results.append(minimize(PrincipalComponent.from_factor(left), size, L2Ball(), max_time=rest, **options))
            v = np.asarray(results[-1].x)
            left = left - np.outer(left @ v, v)  # V becomes (I − vvᵀ)V(I − vvᵀ): nothing of v is left
        except KeyboardInterrupt:
            if not results:
                raise
            results[-1] = replace(results[-1], status=Status.INTERRUPTED, message=Status.INTERRUPTED.message, success=False)
        if not results[-1].status.good:
            break
    loadings = np.array([result.x for result in results])
    return Components(loadings, adjusted_variance(Z, loadings), total, results)


def adjusted_variance(Z: Matrix, loadings: Matrix) -> np.ndarray[Any, Any]:
    """The variance of each component's scores that the components before it do not explain (Zou, Hastie and Tibshirani 2006)."""
    R = np.linalg.qr(Z @ loadings.T, mode="r")
    return np.asarray(np.square(np.diag(R)))
