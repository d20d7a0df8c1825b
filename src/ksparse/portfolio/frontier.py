"""The frontier of portfolios with at most k assets: least variance for every mean return, each begun at the answer beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ksparse.errors import InfeasibleError
from ksparse.portfolio.problem import WARM, Portfolio
from ksparse.portfolio.rules import Rows
from ksparse.result import Result, Status
from ksparse.solve.judge import uninterrupted
from ksparse.util.arrays import Vector
from ksparse.util.progress import track

if TYPE_CHECKING:
    import pandas as pd

EVERY = 10  # of so many points one is searched for as if alone; chosen by no benchmark
GREEDY = 1e-4  # the weight of the risk beside the return, at the far end, where the return is what counts


@dataclass(frozen=True)
class Frontier:
    """Portfolios from the least variance to the largest mean return, one per row. What `SparsePortfolio.frontier` returns.

    Attributes
    ----------
    targets : ndarray
        The mean return that was asked for; the first is that of the least variance.
    mean_returns : ndarray
        The one that is reached.
    variances : ndarray
        Of the portfolios; they never fall from one to the next.
    weights : ndarray of shape (n_points, n_assets)
        The portfolios.
    names : list of str
        Of the assets, empty where they have none.
    statuses : list of str
        How each search ended.

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
        """The square roots of the variances."""
        return np.asarray(np.sqrt(np.maximum(self.variances, 0.0)))

    @property
    def ratios(self) -> Vector:
        """Mean return over deviation."""
        return np.asarray(self.mean_returns / np.where(self.deviations > 0, self.deviations, np.nan))

    def __len__(self) -> int:
        return len(self.targets)

    def __repr__(self) -> str:
        lines = [f"{'mean return':>14} {'deviation':>14} {'assets':>7}  status"]
        rows = zip(self.mean_returns, self.deviations, self.weights, self.statuses, strict=True)
        return "\n".join(
            [*lines, *(f"{m:>14.6g} {d:>14.6g} {np.count_nonzero(w):>7}  {status}" for m, d, w, status in rows)]
        )

    def to_frame(self) -> pd.DataFrame:
        """One row per point: target, mean return, deviation, number of assets, and the weight of every asset that is ever held."""
        import pandas as pd

        columns: dict[str, Any] = {
            "target": self.targets,
            "mean_return": self.mean_returns,
            "deviation": self.deviations,
        }
        columns |= {"assets": np.count_nonzero(self.weights, axis=1), "status": self.statuses}
        held = np.flatnonzero(self.weights.any(axis=0))
        return pd.DataFrame(columns | {self.names[i] if self.names else f"x{i}": self.weights[:, i] for i in held})


def frontier(
    V: Vector, r: Vector, wanted: Portfolio, k: int, points: Any, names: list[str], solve: Callable[..., Result]
) -> Frontier:
    """The frontier under the rules of a portfolio problem; solve : `solve_portfolio` with the options of the caller.

    points : how many, evenly between the mean return of the least variance and the largest there is, or the targets themselves. Some
    are searched for as if alone, beside the answer of the next higher target, which is an answer for them too; the others begin there and
    look less far. Costs of trading are refused: beside them neither the variances nor the end would be those of a frontier.
    """
    if wanted.cost.any():
        raise ValueError(
            "turnover_cost has no meaning for a frontier, which is of the variance under every mean return: leave it out, or limit the "
            "trades by max_turnover"
        )
    least = replace(wanted, r=np.zeros(len(r)), alpha=1.0)
    targets = np.asarray(points, dtype=float) if np.ndim(points) else _between(V, r, least, k, int(points), solve)
    aims = [replace(least, rows=Rows.of(len(r), [(-r, -float(target))]).and_(least.rows)) for target in targets]
    found: list[Result] = []  # downwards
    downwards = list(zip(targets[::-1], aims[::-1], strict=True))
    for i, (target, aim) in enumerate(track(downwards, "frontier")):
        if found and found[-1].status is Status.INTERRUPTED:  # this portfolio reaches the lower targets too
            found.append(found[-1])
            continue
        near = {"x0": found[-1].x} if found else {}
        try:
            found.append(solve(aim, k, **near, **({"settings": WARM} if i % EVERY else {})))
        except InfeasibleError as error:
            raise InfeasibleError(
                f"no portfolio reaches the mean return {target:g} under these rules: {error}"
            ) from error
    results = found[::-1]
    weights = np.array([np.asarray(result.x, dtype=float) for result in results])
    variances = np.einsum("ij,jk,ik->i", weights, V, weights)
    return Frontier(targets, weights @ r, variances, weights, names, [result.status.name for result in results])


def _between(V: Vector, r: Vector, least: Portfolio, k: int, points: int, solve: Callable[..., Result]) -> Vector:
    """Mean returns from that of the least variance to the largest that k assets reach."""
    size = max(float(np.abs(r).max()), 1e-300) / max(float(np.diag(V).max()), 1e-300)
    low = uninterrupted(solve(least, k))
    high = uninterrupted(solve(replace(least, r=r, alpha=GREEDY * size), k))
    return np.linspace(float(r @ np.asarray(low.x)), float(r @ np.asarray(high.x)), points)
