"""Efficient frontier with at most k assets: the least variance for every mean return, each from its neighbour."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ksparse.datasets import Assets
from ksparse.errors import InfeasibleError
from ksparse.portfolio.problem import WARM, Portfolio
from ksparse.portfolio.rules import LinearRules
from ksparse.result import Result, Status
from ksparse.solve.judge import uninterrupted
from ksparse.util.arrays import Vector
from ksparse.util.progress import track

if TYPE_CHECKING:
    import pandas as pd

FULL_SEARCH_INTERVAL = 10  # one of as many points gets a full search; chosen by no benchmark
GREEDY = 1e-4  # relative weight of the risk at the end of the largest return


@dataclass(frozen=True)
class Frontier:
    """Portfolios from the least variance to the largest mean return; the result of `SparsePortfolio.frontier`.

    Attributes
    ----------
    targets : ndarray
        Minimum mean returns; the first is that of the least variance.
    mean_returns : ndarray
        Mean returns of the portfolios.
    variances : ndarray
        Variances of the portfolios; they never decrease from one to the next.
    weights : ndarray of shape (n_points, n_assets)
        Weights of the portfolios.
    names : list of str
        Names of the assets, if they have any.
    statuses : list of str
        Name of the status of each search.

    Examples
    --------
    >>> import ksparse as ks
    >>> returns = ks.datasets.factor_model(30, 300, seed=0).returns
    >>> points = ks.SparsePortfolio(k=5).frontier(returns, 4)
    >>> len(points), points.weights.shape
    (4, (4, 30))
    """

    targets: Vector
    mean_returns: Vector
    variances: Vector
    weights: Vector
    names: list[str]
    statuses: list[str]

    @property
    def deviations(self) -> Vector:
        """Standard deviations of the portfolios."""
        return np.asarray(np.sqrt(np.maximum(self.variances, 0.0)))

    @property
    def ratios(self) -> Vector:
        """Mean return over standard deviation."""
        return np.asarray(self.mean_returns / np.where(self.deviations > 0, self.deviations, np.nan))

    def __len__(self) -> int:
        return len(self.targets)

    def __repr__(self) -> str:
        lines = [f"{'mean return':>14} {'deviation':>14} {'assets':>7}  status"]
        rows = zip(self.mean_returns, self.deviations, self.weights, self.statuses, strict=True)
        lines += [f"{m:>14.6g} {d:>14.6g} {np.count_nonzero(w):>7}  {status}" for m, d, w, status in rows]
        return "\n".join(lines)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per point: target, mean return, deviation, number of assets, and the weights ever held."""
        import pandas as pd

        columns = {"target": self.targets, "mean_return": self.mean_returns, "deviation": self.deviations}
        columns |= {"assets": np.count_nonzero(self.weights, axis=1), "status": np.array(self.statuses)}
        held = np.flatnonzero(self.weights.any(axis=0))
        return pd.DataFrame(columns | {self.names[i] if self.names else f"x{i}": self.weights[:, i] for i in held})


def frontier(assets: Assets, problem: Portfolio, k: int, points: Any, solve: Callable[..., Result]) -> Frontier:
    """Return the frontier under the rules of a problem; solve : `solve_portfolio` with the options of the caller.

    points : number of points, evenly between the mean return of the least variance and the largest one, or the targets
    themselves. Each search starts at the portfolio of the next higher target, which is feasible for it too; one in
    `FULL_SEARCH_INTERVAL` is a full one. Trading costs are refused: with them the frontier would be neither one of
    variances nor end at the largest return.
    """
    if problem.cost.any():
        raise ValueError("turnover_cost is not supported by frontier(); to limit trades use max_turnover")
    V, r = assets.V, assets.r
    least = replace(problem, r=np.zeros(len(r)), alpha=1.0)
    if np.ndim(points):
        targets = np.asarray(points, dtype=float)
    else:  # from the mean return of the least variance to the largest that k assets reach
        size = max(float(np.abs(r).max()), 1e-300) / max(float(np.diag(V).max()), 1e-300)
        low = uninterrupted(solve(least, k))
        high = uninterrupted(solve(replace(least, r=r, alpha=GREEDY * size), k))
        targets = np.linspace(float(r @ low.x), float(r @ high.x), int(points))
    found: list[Result] = []  # from the largest target down
    for i, target in enumerate(track(targets[::-1].tolist(), "frontier")):
        if found and found[-1].status is Status.INTERRUPTED:  # this portfolio reaches the lower targets too
            found.append(found[-1])
            continue
        rows = LinearRules.of(len(r), [(-r, -target)]).and_(problem.rows)
        warm: dict[str, Any] = {"x0": found[-1].x} if found else {}
        warm |= {"settings": WARM} if i % FULL_SEARCH_INTERVAL else {}
        try:
            found.append(solve(replace(least, rows=rows), k, **warm))
        except InfeasibleError as error:
            reached = f"no portfolio reaches the mean return {target:g} under these rules"
            raise InfeasibleError(f"{reached}: {error}") from error
    results = found[::-1]
    weights = np.array([result.x for result in results])
    variances = np.einsum("ij,jk,ik->i", weights, V, weights)
    return Frontier(targets, weights @ r, variances, weights, assets.names, [result.status.name for result in results])
