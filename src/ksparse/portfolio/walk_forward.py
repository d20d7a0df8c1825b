"""Walk-forward backtests: a portfolio is fitted on a window, held for some periods, and rebalanced."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from ksparse.errors import InfeasibleError
from ksparse.result import Status
from ksparse.solve.judge import uninterrupted
from ksparse.util.arrays import Vector
from ksparse.util.checks import check_integer, check_number

if TYPE_CHECKING:
    import pandas as pd

    from ksparse.portfolio.estimator import SparsePortfolio


@dataclass(frozen=True)
class WalkForward:
    """Rebalancings and the returns between them; the result of `SparsePortfolio.walk_forward`.

    Attributes
    ----------
    starts : ndarray of int
        First row for which each portfolio is held.
    weights : ndarray of shape (n_rebalancings, n_assets)
        Weights of the portfolios.
    turnovers : ndarray
        Sum of the absolute trades of each rebalancing, the first from `previous_weights` or from nothing.
    costs : ndarray
        Costs of the trades; the first purchase is free if there are no `previous_weights`.
    rows : ndarray of int
        Rows of the returns: all from the first portfolio on.
    returns : ndarray
        Returns of the portfolio held, with costs subtracted in the row in which they arise.
    seconds : ndarray
        Time of each rebalancing.
    statuses : list of Status
        Status of each search.

    Examples
    --------
    >>> import ksparse as ks
    >>> returns = ks.datasets.factor_model(30, 400, seed=0).returns
    >>> walk = ks.SparsePortfolio(k=5, turnover_cost=0.001).walk_forward(returns, window=250, step=50)
    >>> len(walk), walk.weights.shape, walk.returns.shape
    (3, (3, 30), (150,))
    """

    starts: Vector
    weights: Vector
    turnovers: Vector
    costs: Vector
    rows: Vector
    returns: Vector
    seconds: Vector
    statuses: list[Status]

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def wealth(self) -> Vector:
        """Wealth after every row, from 1 at the start."""
        return np.cumprod(1.0 + self.returns)

    def __repr__(self) -> str:
        gained, traded = self.returns, self.turnovers[1:].mean() if len(self) > 1 else 0.0
        deviation = gained.std(ddof=1) if gained.size > 1 else 0.0
        counts = f"{len(self)} rebalancings, {gained.size} periods, mean return {gained.mean():.4g}"
        ends = f"turnover {traded:.3g} a rebalancing, wealth {self.wealth[-1]:.4g}"
        return f"WalkForward: {counts}, deviation {deviation:.4g}, {ends}"

    def to_frame(self) -> pd.DataFrame:
        """Return one row per rebalancing."""
        import pandas as pd

        columns = {"start": self.starts, "assets": np.count_nonzero(self.weights, axis=1), "turnover": self.turnovers}
        return pd.DataFrame(columns | {"cost": self.costs, "seconds": self.seconds})


def walk_forward(model: SparsePortfolio, X: Any, y: Vector | None, window: int, step: int) -> WalkForward:
    """Fit on the `window` rows before, hold for `step` rows, and so on; each fit starts at the weights of the last."""
    window, step, total = check_integer(window, "window", 2), check_integer(step, "step", 1), int(X.shape[0])
    if window >= total:
        raise ValueError(f"window must leave rows to hold the portfolio in: X has {total}, got window={window}")
    first = model.previous_weights is None
    cost = _cost_per_row(model.turnover_cost, step)
    walker = clone(model).set_params(warm_start=True, turnover_cost=cost)
    if first:  # the first purchase costs nothing, so that the search does not avoid it
        walker.set_params(turnover_cost=0.0, max_turnover=None)
    starts, found = np.arange(window, total, step), list[tuple[Any, ...]]()
    for start in starts:
        began, rows = time.perf_counter(), slice(start - window, start)
        try:
            walker.fit(X[rows], None if y is None else y[rows])
        except InfeasibleError as error:
            raise InfeasibleError(f"no portfolio at row {start}: {error}") from error
        uninterrupted(walker.result_)
        seconds, paid = time.perf_counter() - began, 0.0 if first and not found else step * walker.cost_
        gained = np.array(walker.predict(X[start : start + step]))
        gained[0] -= paid
        found.append((walker.weights_, walker.turnover_, paid, gained, seconds, walker.result_.status))
        walker.set_params(previous_weights=walker.weights_, turnover_cost=cost, max_turnover=model.max_turnover)
    *columns, returns, times, statuses = zip(*found, strict=True)
    weights, turnovers, costs = map(np.array, columns)
    held, joined = np.arange(window, total), np.concatenate(returns)
    return WalkForward(starts, weights, turnovers, costs, held, joined, np.array(times), list(statuses))


def _cost_per_row(cost: Any, step: int) -> Any:
    """Return the cost of a trade over the rows for which it is held: returns are per row."""
    if isinstance(cost, Mapping):
        return {asset: _cost_per_row(value, step) for asset, value in cost.items()}
    if np.ndim(cost) == 0:
        return check_number(cost, "turnover_cost", at_least=0) / step
    return (cost if hasattr(cost, "to_dict") else np.asarray(cost, dtype=float)) / step  # a Series keeps its names
