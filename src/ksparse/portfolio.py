"""The portfolio problem: αxᵀVx − rᵀx, or the variance alone under a target return, with a budget and bounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from ksparse.checks import check_bound, check_matrix, check_number, check_vector
from ksparse.errors import InfeasibleError
from ksparse.losses import Loss, MeanVariance
from ksparse.sets import BudgetBox, ConvexSet, Hyperplane, Polyhedron, Simplex

RISK_AVERSION = 10.0  # the paper's α, where nothing else is asked for


def portfolio_problem(
    V: Any,
    r: Any,
    *,
    risk_aversion: float | None = None,
    target_return: float | None = None,
    long_only: bool = False,
    max_weight: float | None = None,
) -> tuple[Loss, ConvexSet]:
    """φ and C of a portfolio whose weights sum to 1.

    risk_aversion : α of αxᵀVx − rᵀx. target_return : the mean return that must be reached per period; without a risk aversion the
    variance alone is minimised. long_only : no weight below 0. max_weight : no weight above it, in size.
    """
    V = check_matrix(V, "V")
    r = check_vector(r, "r", V.shape[0])
    alpha = None if risk_aversion is None else check_number(risk_aversion, "risk_aversion", above=0)
    most = np.inf if max_weight is None else check_bound(check_number(max_weight, "max_weight", above=0), "max_weight")
    lower = 0.0 if long_only else -most
    if target_return is None:
        C: ConvexSet = BudgetBox(1.0, lower, most)
        if np.isinf(most):
            C = Simplex() if long_only else Hyperplane()
        return MeanVariance(V, r, RISK_AVERSION if alpha is None else alpha), C
    n, target = int(V.shape[0]), check_number(target_return, "target_return")
    if long_only:
        reachable = _largest_return(np.asarray(r), most)
        if target > reachable + 1e-12 * abs(reachable):
            raise InfeasibleError(f"the target return {target:g} is above the largest within the bounds, {reachable:g}")
    C = Polyhedron(
        -np.asarray(r)[None, :], np.array([-target]), np.ones((1, n)), np.ones(1), lower=np.full(n, lower), upper=np.full(n, most)
    )
    return MeanVariance(V, np.zeros(n) if alpha is None else r, 1.0 if alpha is None else alpha), C


def _largest_return(r: np.ndarray[Any, Any], most: float) -> float:
    """The largest mean return of weights in [0, most] that sum to 1: the best assets, filled up one by one."""
    left, total = 1.0, 0.0
    for mean in np.sort(r)[::-1]:
        weight = min(most, left)
        left, total = left - weight, total + weight * float(mean)
    return total if left <= 1e-12 else -np.inf
