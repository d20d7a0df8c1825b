"""Several sparse components: each the best k-sparse direction of what the ones before have left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ksparse.checks import check_array, check_integer
from ksparse.losses import PrincipalComponent
from ksparse.losses.standardize import standardize
from ksparse.minimize import minimize
from ksparse.result import Result
from ksparse.sets import L2Ball

Matrix = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Components:
    """The directions, one per row, each of unit length with at most k nonzeros."""

    loadings: Matrix
    variance: np.ndarray[Any, Any]  # that each adds to the ones before: what they share is counted once
    total: float  # the variance of the data
    results: list[Result]


def sparse_components(X: Any, k: int | Sequence[int], n_components: int = 1, *, scale: bool = True, **options: Any) -> Components:
    """The first sparse principal components of a table (one row per sample), by projection deflation; the covariance is never formed.

    k : the nonzeros of each component, one number or one per component. scale : standardise the columns (correlations). options :
    as in `minimize`.
    """
    X = np.asarray(check_array(X, "X", 2), dtype=float)
    n_components = check_integer(n_components, "n_components", 1, min(X.shape))
    sizes = [int(k)] * n_components if isinstance(k, int | np.integer) else list(k)
    if len(sizes) != n_components:
        raise ValueError(f"k must be one number or {n_components}, one per component, got {len(sizes)}")
    Z, _ = standardize(X, "X", scale=scale)
    left, results = np.asarray(Z), []
    for size in sizes:
        results.append(minimize(PrincipalComponent.from_factor(left), size, L2Ball(), **options))
        v = np.asarray(results[-1].x)
        left = left - np.outer(left @ v, v)  # V becomes (I − vvᵀ)V(I − vvᵀ): nothing of v is left
        if not results[-1].status.good:
            break
    loadings = np.array([result.x for result in results])
    return Components(loadings, adjusted_variance(np.asarray(Z), loadings), float(np.sum(np.square(Z))), results)


def adjusted_variance(Z: Matrix, loadings: Matrix) -> np.ndarray[Any, Any]:
    """The variance of each component's scores that the components before it do not explain (Zou, Hastie and Tibshirani 2006)."""
    R = np.linalg.qr(Z @ loadings.T, mode="r")
    return np.asarray(np.square(np.diag(R)))
