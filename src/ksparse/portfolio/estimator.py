"""`SparsePortfolio`: portfolios of at most k assets."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, column_or_1d

from ksparse.datasets import Assets
from ksparse.estimator_base import (
    SparseEstimator,
    Task,
    check_numeric,
    clip_k,
    fill_docstrings,
    validate_X,
    warn,
    warn_if_stopped,
    with_callbacks,
)
from ksparse.portfolio.frontier import Frontier, frontier
from ksparse.portfolio.problem import GOALS, WARM, Portfolio, looks_like_prices, portfolio_of
from ksparse.portfolio.solve import solve_portfolio
from ksparse.portfolio.walk_forward import WalkForward, walk_forward
from ksparse.util.arrays import Vector
from ksparse.util.checks import SMALLEST, check_integer, check_n_jobs, check_size

SET_RULES = (  # parameters that C replaces
    "max_weight", "min_weights", "max_weights", "budget", "max_short", "group_caps", "group_floors",
    "linear_constraints", "target_return", "previous_weights", "max_tracking_error",
)  # fmt: skip
SEARCH = ("effort", "n_jobs", "random_state", "gap", "max_time")
OTHERS = ("k", "min_weight", "C", "warm_start", "verbose", *SEARCH)  # parameters that are no part of the problem


class PortfolioTexts:
    """Base class with the texts of parameters that portfolio estimators share.

    Parameters
    ----------
    k : int, default=10
        Maximum number of assets. If it is larger than the number of assets, a warning says that it has no effect.
    target_return : float or None, default=None
        Minimum mean return per period.
    long_only : bool, default=True
        Whether negative weights are excluded.
    max_weight : float or None, default=None
        Maximum absolute weight.
    min_weight : float, default=0.0
        Minimum absolute weight of the assets that are held.
    min_weights : float, array-like, mapping or None, default=None
        Lower bounds on the weights: one number, one per asset, or a mapping from name to bound. A positive bound means
        that the asset is held.
    max_weights : float, array-like, mapping or None, default=None
        Upper bounds on the weights, in the same forms.
    budget : float or tuple of two floats, default=1.0
        Sum of the weights, or (minimum, maximum).
    max_short : float or None, default=None
        Maximum sum of the absolute short positions. With a budget of 1, a gross exposure of 1.6 is a short exposure of
        0.3.
    linear_constraints : str, list of str or None, default=None
        Linear constraints as strings, such as "tech <= 0.3" or "tech <= 30%", "AAPL + 2*MSFT >= 0.1", "0.1 <= energy <=
        0.4". Names are those of assets and groups; the assets of tables without column names are x0, x1, and so on.
    forced_in : array-like or None, default=None
        Assets (names, indices or mask) that are always held, with at least `min_weight`.
    forced_out : array-like or None, default=None
        Assets that are never held.
    """


@fill_docstrings()
@dataclass(eq=False, repr=False)
class SparsePortfolio(PortfolioTexts, SparseEstimator):
    """The best portfolio of at most k assets, from a table of returns (one row per period, one column per asset).

    `fit(X)` minimises risk_aversion times the variance minus the mean return, or the variance under a target return.
    `fit(X, y)` tracks an index with returns y instead: it minimises the mean squared difference of the returns. With
    `max_tracking_error` it does the first within that distance of y.

    Parameters
    ----------
    {k}
    objective : {"minimize_risk", "maximize_utility"} or None, default=None
        The variance alone, or risk_aversion times the variance minus the mean return. None for the second, or for the
        first if a target return but no risk aversion is given.
    risk_aversion : float or None, default=None
        Weight of the variance; None for 10, as in the paper.
    {target_return, long_only, max_weight, min_weight, min_weights, max_weights, budget, max_short}
    groups : array-like, mapping or None, default=None
        Labels, one per asset, or a mapping from group to its assets (names, indices or mask).
    group_caps : float, mapping or None, default=None
        Upper bound on the weight of each group, one number or a mapping from group to number.
    group_floors : float, mapping or None, default=None
        Lower bound on the weight of each group, in the same forms.
    group_cardinalities : int, mapping or None, default=None
        Maximum number of assets held of each group, one number or a mapping from group to number, or to (minimum,
        maximum). A minimum requires a positive `min_weight`.
    {linear_constraints, forced_in, forced_out}
    previous_weights : array-like, mapping or None, default=None
        Weights before trading: an array, or a mapping from name to weight.
    turnover_cost : float, array-like or mapping, default=0.0
        Cost per unit traded, per asset if they differ, in the units of returns per period: a cost that is paid once for
        positions held for 20 periods counts a twentieth.
    max_turnover : float or None, default=None
        Maximum sum of all absolute trades: selling one half to buy another is a turnover of 1.
    max_tracking_error : float or None, default=None
        Maximum root mean squared difference between the returns of the portfolio and those of the index, y of `fit`.
    C : ConvexSet or None, default=None
        A set for the weights instead of budget, bounds and rules, such as a `ks.Polyhedron`.
    warm_start : bool, default=False
        Whether a second fit starts at the weights of the first, with a shorter search: for data that have changed a
        little.
    {effort, n_jobs, random_state, gap, max_time, verbose}

    Attributes
    ----------
    weights_ : ndarray
        Weights that sum to the budget and satisfy every rule; at most k are not 0.
    mean_return_ : float
        Mean return per period.
    variance_ : float
        Variance per period.
    tracking_error_ : float
        Root mean squared difference from the index; only if y was given.
    turnover_ : float
        Sum of the absolute trades.
    cost_ : float
        Cost of the trades.
    {result_, n_iter_, n_features_in_, feature_names_in_}

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> returns = ks.datasets.factor_model(50, 500, seed=0).returns
    >>> fund = ks.SparsePortfolio(k=8, max_weight=0.3, min_weight=0.05).fit(returns)
    >>> int(np.count_nonzero(fund.weights_)), float(fund.weights_.sum().round(12))
    (8, 1.0)
    """

    k: int = 10
    _: KW_ONLY
    objective: str | None = None
    risk_aversion: float | None = None
    target_return: float | None = None
    long_only: bool = True
    max_weight: float | None = None
    min_weight: float = 0.0
    min_weights: Any = None
    max_weights: Any = None
    budget: Any = 1.0
    max_short: float | None = None
    groups: Any = None
    group_caps: Any = None
    group_floors: Any = None
    group_cardinalities: Any = None
    linear_constraints: Any = None
    forced_in: Any = None
    forced_out: Any = None
    previous_weights: Any = None
    turnover_cost: Any = 0.0
    max_turnover: float | None = None
    max_tracking_error: float | None = None
    C: Any = None
    warm_start: bool = False
    effort: int | None = None
    n_jobs: int | None = None
    random_state: int | None = None
    gap: float | None = None
    max_time: float | None = None
    verbose: int = 0

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> SparsePortfolio:
        """Find the weights; with y, the portfolio tracks y, or stays within `max_tracking_error` of it.

        Parameters
        ----------
        X : array-like of shape (n_periods, n_assets)
            Returns.
        y : array-like of shape (n_periods,) or None, default=None
            Returns of an index to track, or to stay close to.

        Returns
        -------
        SparsePortfolio
            Itself, fitted.
        """
        start = getattr(self, "weights_", None) if self.warm_start else None
        assets, k = self._read(X)
        R: Any = assets.returns
        task = Task(self, R, y)
        options: dict[str, Any] = {"verbose": self.verbose, "callback": task.callback}
        if start is not None and start.size == len(assets.r):
            options |= {"x0": start, "settings": WARM}
        y = None if y is None else check_vector_of(y, len(R))
        problem = self._problem(assets, y)
        result = self._solve(problem, k, **options)
        warn_if_stopped(result, type(self).__name__)
        x = self.weights_ = result.x
        self.result_ = result
        self.mean_return_, self.variance_ = float(assets.r @ x), float(x @ assets.V @ x)
        if y is not None:
            self.tracking_error_ = float(np.sqrt(np.mean(np.square(R @ x - y))))
        traded = np.abs(x - problem.held)
        self.turnover_, self.cost_ = float(traded.sum()), float(problem.cost @ traded)
        self.n_iter_ = max(1, result.nit)
        task.end()
        return self

    def frontier(self, X: Any, points: Any = 50, *, y: Any = None) -> Frontier:
        """Compute the efficient frontier: the least variance for every mean return, under the same rules.

        The frontier is one of variance and mean return before costs: a positive `turnover_cost` is refused, as are
        `objective`, `risk_aversion` and `target_return`; `max_turnover` is a rule like any other. Each search starts at
        the portfolio of its neighbour.

        Parameters
        ----------
        X : array-like of shape (n_periods, n_assets)
            Returns.
        points : int or array-like, default=50
            Number of points, evenly between the mean return of the least variance and the largest that k assets reach;
            or the mean returns.
        y : array-like of shape (n_periods,) or None, default=None
            Returns of the index for `max_tracking_error`.

        Returns
        -------
        Frontier
            Mean returns, variances and weights. `plotting.plot_efficient_frontier` draws them.

        Raises
        ------
        InfeasibleError
            If no portfolio reaches a mean return under the rules.

        Examples
        --------
        >>> import numpy as np, ksparse as ks
        >>> returns = ks.datasets.factor_model(40, 400, seed=0).returns
        >>> points = ks.SparsePortfolio(k=6, max_weight=0.4).frontier(returns, 8)
        >>> bool((np.diff(points.variances) >= 0).all()), int(np.count_nonzero(points.weights, axis=1).max())
        (True, 6)
        """
        for option in (*GOALS, "C"):
            if getattr(self, option) is not None:
                raise ValueError(f"{option} is not supported by frontier()")
        if np.ndim(points) == 0:
            check_integer(points, "points", 2)
        else:
            points = np.sort(np.asarray(check_numeric(points, "points"), dtype=float))
            if points.ndim != 1 or not points.size or not np.isfinite(points).all():
                raise ValueError("points must be how many, or a list of finite mean returns")
        assets, k = self._read(X)
        if y is not None:
            y = check_vector_of(y, len(X))
            if self.max_tracking_error is None:
                raise ValueError("y is not supported by frontier() without max_tracking_error")
        return frontier(assets, self._problem(assets, y, objective="minimize_risk"), k, points, self._solve)

    def walk_forward(self, X: Any, y: Any = None, *, window: int, step: int = 1) -> WalkForward:
        """Run a walk-forward backtest: fit on a window of rows, hold the weights for some rows, rebalance, to the end.

        Each fit starts at the weights of the last, with a shorter search; `turnover_cost` and `max_turnover` are
        relative to them. Here `turnover_cost` is the cost per unit at the time of the trade: the search spreads it over
        the rows for which the weights are held, since mean and variance are per row, and the returns pay it in full.
        Between rebalancings the weights are kept as they are.

        Parameters
        ----------
        X : array-like of shape (n_periods, n_assets)
            Returns.
        y : array-like of shape (n_periods,) or None, default=None
            Returns of an index to track, one per row of X.
        window : int
            Number of rows that each portfolio is fitted on.
        step : int, default=1
            Number of rows that it is held for.

        Returns
        -------
        WalkForward
            Weights, turnovers and costs of the rebalancings, and the returns after costs.

        Raises
        ------
        InfeasibleError
            If at some row no portfolio satisfies the rules, such as a turnover that is too small; the message says
            which.

        Examples
        --------
        >>> import ksparse as ks
        >>> returns = ks.datasets.factor_model(40, 500, seed=0).returns
        >>> walk = ks.SparsePortfolio(k=6, max_turnover=0.2).walk_forward(returns, window=250, step=50)
        >>> len(walk), bool(walk.turnovers[1:].max() <= 0.2 + 1e-9)
        (5, True)
        """
        X = X if hasattr(X, "shape") else np.asarray(X)
        return walk_forward(self, X, None if y is None else check_vector_of(y, len(X)), window, step)

    def predict(self, X: Any) -> Vector:
        """Return the returns of the portfolio over the rows of X.

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
        """Return mean over standard deviation of the portfolio's returns; if y is given, minus the tracking error.

        Parameters
        ----------
        X : array-like of shape (n_periods, n_assets)
            Returns.
        y : array-like of shape (n_periods,) or None, default=None
            Returns of an index to track.

        Returns
        -------
        float
            Score; larger is better.
        """
        returns = self.predict(X)
        if y is not None:
            return -float(np.sqrt(np.mean(np.square(returns - check_vector_of(y, len(returns))))))
        deviation = float(np.std(returns, ddof=1)) if len(returns) > 1 else 0.0
        return float(np.mean(returns)) / deviation if deviation > 0 else 0.0

    def _read(self, X: Any) -> tuple[Assets, int]:
        """Return the assets of a table of returns, checked, and k."""
        X = validate_X(self, X, ensure_min_samples=2)
        names = getattr(self, "feature_names_in_", None)
        check_n_jobs(self.n_jobs)
        check_returns(X, names, "SparsePortfolio: X", "e.g. prices[1:] / prices[:-1] - 1")
        k = clip_k(check_integer(self.k, "k", 1), X.shape[1], "assets", self)
        return Assets.from_returns(X, [] if names is None else list(names)), k

    def _problem(self, assets: Assets, y: Vector | None, **more: Any) -> Portfolio:
        """Return the problem that the parameters describe."""
        given, default = self.get_params(deep=False), SparsePortfolio().get_params(deep=False)
        if self.C is not None:
            for name in SET_RULES:
                value = given[name]
                if value is not default[name] and not (np.ndim(value) == 0 and value == default[name]):
                    raise ValueError(f"{name} cannot be combined with C: put it into the set")
        return portfolio_of(assets, y, **{name: given[name] for name in default if name not in OTHERS} | more)

    def _solve(self, problem: Portfolio, k: int, **more: Any) -> Any:
        options = {name: getattr(self, name) for name in SEARCH}
        return solve_portfolio(problem, k, min_weight=self.min_weight, C=self.C, **options, **more)


def check_returns(X: Vector, names: Any, what: str, remedy: str) -> None:
    """Check the size of returns, and warn if they look like prices."""
    check_size(np.where(np.isfinite(X), X, 0.0), "X", names, least=SMALLEST)
    if looks_like_prices(X):
        warn(f"{what} looks like prices (positive, changing slowly); fit expects returns, {remedy}")


def check_vector_of(y: Any, rows: int) -> Vector:
    """Return y as a finite vector with one entry per row."""
    y = np.array(column_or_1d(check_numeric(y, "y"), warn=True), dtype=float)
    if len(y) != rows:
        raise ValueError(f"y must hold one return per row of X, {rows}, got {len(y)}")
    if not np.isfinite(y).all():
        raise ValueError("y must be finite, but contains NaN or inf")
    return np.asarray(y)
