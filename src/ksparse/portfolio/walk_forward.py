"""A portfolio through time: fitted on a window, held for some periods, rebalanced from what is held then."""

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
    """Rebalancings one after the other, and the returns between them. What `SparsePortfolio.walk_forward` returns.

    Attributes
    ----------
    starts : ndarray of int
        The row from which on each portfolio is held.
    weights : ndarray of shape (n_rebalancings, n_assets)
        The portfolios.
    turnovers : ndarray
        What each rebalancing trades, the first from `previous_weights` or from nothing.
    costs : ndarray
        What that costs; the first purchase is free where no weights before are given.
    rows : ndarray of int
        The rows that the returns are of: all from the first portfolio on.
    returns : ndarray
        Of the portfolio held, costs taken off in the row in which they arise.
    seconds : ndarray
        Of each rebalancing.
    statuses : list of Status
        What is known of each portfolio.

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
        """What 1 has grown to after every row."""
        return np.cumprod(1.0 + self.returns)

    def __repr__(self) -> str:
        mean, deviation = float(self.returns.mean()), float(self.returns.std(ddof=1)) if self.returns.size > 1 else 0.0
        return (
            f"WalkForward: {len(self)} rebalancings, {self.returns.size} periods, mean return {mean:.4g}, deviation {deviation:.4g}, "
            f"turnover {self.turnovers[1:].mean() if len(self) > 1 else 0.0:.3g} a rebalancing, wealth {self.wealth[-1]:.4g}"
        )

    def to_frame(self) -> pd.DataFrame:
        """One row per rebalancing."""
        import pandas as pd

        columns = {"start": self.starts, "assets": np.count_nonzero(self.weights, axis=1), "turnover": self.turnovers}
        return pd.DataFrame(columns | {"cost": self.costs, "seconds": self.seconds})


def walk_forward(model: SparsePortfolio, X: Any, y: Vector | None, window: int, step: int) -> WalkForward:
    """Fit on the `window` rows before, hold for `step` rows, and so on to the end; each fit begins at the weights of the last."""
    window, step, total = check_integer(window, "window", 2), check_integer(step, "step", 1), int(X.shape[0])
    if window >= total:
        raise ValueError(f"window must leave rows to hold the portfolio in: X has {total}, got window={window}")
    first = model.previous_weights is None
    spread = _over(
        model.turnover_cost, step
    )  # returns are per row, and a trade is paid once for all rows that it is held for
    walker = clone(model).set_params(warm_start=True, turnover_cost=spread)
    if first:  # there is nothing to trade from: the first purchase is not for the optimiser to avoid
        walker.set_params(turnover_cost=0.0, max_turnover=None)
    starts = np.arange(window, total, step)
    weights, turnovers, costs, seconds, returns, statuses = [], [], [], [], [], []
    for start in starts:
        began = time.perf_counter()
        rows = slice(start - window, start)
        try:
            walker.fit(X[rows], None if y is None else y[rows])
        except InfeasibleError as error:
            raise InfeasibleError(f"no portfolio at row {start}: {error}") from error
        uninterrupted(walker.result_)
        seconds.append(time.perf_counter() - began)
        weights.append(walker.weights_)
        statuses.append(walker.result_.status)
        turnovers.append(walker.turnover_)
        costs.append(0.0 if first and len(weights) == 1 else step * walker.cost_)
        held = np.array(walker.predict(X[start : start + step]))
        held[0] -= costs[-1]
        returns.append(held)
        walker.set_params(previous_weights=walker.weights_, turnover_cost=spread, max_turnover=model.max_turnover)
    return WalkForward(
        starts,
        np.array(weights),
        np.array(turnovers),
        np.array(costs),
        np.arange(window, total),
        np.concatenate(returns),
        np.array(seconds),
        statuses,
    )


def _over(cost: Any, step: int) -> Any:
    """A cost, or those of several assets, over the rows that it is for."""
    if isinstance(cost, Mapping):
        return {asset: check_number(value, "turnover_cost", at_least=0) / step for asset, value in cost.items()}
    if hasattr(cost, "to_dict"):  # a Series keeps its names
        return cost / step
    return (
        np.asarray(cost, dtype=float) / step
        if np.ndim(cost)
        else check_number(cost, "turnover_cost", at_least=0) / step
    )
