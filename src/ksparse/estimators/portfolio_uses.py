"""What a portfolio is good for once its rules are said: a frontier, a walk through time, returns and a score."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ksparse.errors import UnboundedError
from ksparse.estimator_base import check_numeric, validate_X
from ksparse.estimators.portfolio_problem import NO_RISK, PortfolioProblem, check_vector_of
from ksparse.estimators.walk_forward import WalkForward, walk_forward
from ksparse.models.frontier import Frontier, frontier
from ksparse.models.portfolio import portfolio
from ksparse.util.arrays import Vector
from ksparse.util.checks import check_integer


class PortfolioUses(PortfolioProblem):
    """The methods of `SparsePortfolio` beside `fit`."""

    def frontier(self, X: Any, points: Any = 50, *, y: Any = None) -> Frontier:
        """Least variance for every mean return, under the same rules, each point begun at the answer of the one beside it.

        Variance against mean return is all that is weighed, before costs: `turnover_cost` above 0 is refused, as are `objective`,
        `risk_aversion` and `target_return`; `max_turnover` is a rule like any other.

        Parameters
        ----------
        X : array-like of shape (n_periods, n_assets)
            Returns.
        points : int or array-like, default=50
            How many, evenly between the mean return of the least variance and the largest that k assets reach; or the mean returns.
        y : array-like of shape (n_periods,) or None, default=None
            Returns of the index that `max_tracking_error` is against.

        Returns
        -------
        Frontier
            A light table: mean returns, variances, weights. `plotting.plot_efficient_frontier` draws it.

        Raises
        ------
        InfeasibleError
            If no portfolio reaches a mean return under the rules.
        ValueError, TypeError
            If an argument is not what it must be; the message names it.

        Examples
        --------
        >>> import numpy as np, ksparse as ks
        >>> returns = ks.datasets.factor_model(40, 400, seed=0).returns
        >>> points = ks.SparsePortfolio(k=6, max_weight=0.4).frontier(returns, 8)
        >>> bool((np.diff(points.variances) >= 0).all()), int(np.count_nonzero(points.weights, axis=1).max())
        (True, 6)
        """
        for option in ("objective", "risk_aversion", "target_return", "C"):
            if getattr(self, option) is not None:
                raise ValueError(
                    f"{option} has no meaning for a frontier, which is of the variance under every mean return: leave it out"
                )
        if np.ndim(points) == 0:
            check_integer(points, "points", 2)
        else:
            points = np.sort(np.asarray(check_numeric(points, "points"), dtype=float))
            if points.ndim != 1 or not points.size or not np.isfinite(points).all():
                raise ValueError("points must be how many, or a list of finite mean returns")
        assets, k = self._assets(X)
        assert assets.returns is not None
        near = self._near(assets, None if y is None else check_vector_of(y, len(assets.returns)))
        if y is not None and near is None:
            raise ValueError("y has no meaning for a frontier without max_tracking_error: leave it out")
        wanted = portfolio(assets.V, assets.r, objective="minimize_risk", index=near, **self._rules(len(assets.r)))
        solve = partial(self._solved, options=self._options())
        try:
            return frontier(assets.V, assets.r, wanted, k, points, assets.names, solve)
        except UnboundedError:
            raise ValueError(NO_RISK) from None

    def walk_forward(self, X: Any, y: Any = None, *, window: int, step: int = 1) -> WalkForward:
        """Walk through time: fit on a window of rows, hold the weights for some rows, rebalance from them, to the end.

        Each fit begins at the weights of the last and looks less far; `turnover_cost` and `max_turnover` are against them. Here
        `turnover_cost` is what a unit of trade costs when it is made: the search weighs it over the rows that the weights are held for,
        since mean and variance are per row, and the returns pay it in full. Between rebalancings the weights are kept as they are.

        Parameters
        ----------
        X : array-like of shape (n_periods, n_assets)
            Returns.
        y : array-like of shape (n_periods,) or None, default=None
            Returns of an index to track, one per row of X.
        window : int
            Rows that each portfolio is fitted on.
        step : int, default=1
            Rows that it is held for.

        Returns
        -------
        WalkForward
            Weights, turnovers and costs of the rebalancings, and the returns after costs.

        Raises
        ------
        InfeasibleError
            If at some row no portfolio obeys the rules, such as a turnover that is too small; the message says which.
        ValueError, TypeError
            If an argument is not what it must be; the message names it.

        Examples
        --------
        >>> import ksparse as ks
        >>> returns = ks.datasets.factor_model(40, 500, seed=0).returns
        >>> walk = ks.SparsePortfolio(k=6, max_turnover=0.2).walk_forward(returns, window=250, step=50)
        >>> len(walk), bool(walk.turnovers[1:].max() <= 0.2 + 1e-9)
        (5, True)
        """
        return walk_forward(self, X, y, window, step)

    def predict(self, X: Any) -> Vector:
        """The returns of the portfolio over the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_periods, n_assets)
            Returns.

        Returns
        -------
        ndarray of shape (n_periods,)
            Returns of the portfolio.
        """
        check_is_fitted(self)
        X = validate_X(self, X, reset=False)
        return np.asarray(X @ self.weights_)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean over deviation of the portfolio's returns; when y is given, minus the root mean squared distance to it.

        Parameters
        ----------
        X : array-like of shape (n_periods, n_assets)
            Returns.
        y : array-like of shape (n_periods,) or None, default=None
            Returns of an index to track.

        Returns
        -------
        float
            More is better.
        """
        returns = self.predict(X)
        if y is not None:
            return -float(np.sqrt(np.mean(np.square(returns - check_vector_of(y, len(returns))))))
        deviation = float(np.std(returns, ddof=1)) if len(returns) > 1 else 0.0
        return float(np.mean(returns)) / deviation if deviation > 0 else 0.0
