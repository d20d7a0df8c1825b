"""Portfolios of at most k assets."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, column_or_1d

from ksparse.datasets import Assets
from ksparse.errors import UnboundedError
from ksparse.estimator_base import (
    SparseEstimator,
    Task,
    check_numeric,
    clip_k,
    validate_X,
    warn,
    warn_if_stopped,
    with_callbacks,
)
from ksparse.losses import LeastSquares
from ksparse.portfolio.frontier import Frontier, frontier
from ksparse.portfolio.problem import WARM, Index, Portfolio, looks_like_prices, portfolio, tracking
from ksparse.portfolio.rules import Universe, mandate
from ksparse.portfolio.solve import require_counts, solve_portfolio
from ksparse.portfolio.walk_forward import WalkForward, walk_forward
from ksparse.result import Result, Status
from ksparse.solve.judge import moved
from ksparse.solve.minimize import minimize
from ksparse.util.arrays import Vector
from ksparse.util.checks import SMALLEST, check_integer, check_n_jobs, check_number, check_size

MANDATE = (
    "min_weights", "max_weights", "groups", "group_caps", "group_floors", "group_cardinalities", "linear_constraints", "forced_in",
    "forced_out", "previous_weights", "turnover_cost", "max_turnover",
)  # fmt: skip
BESIDE_SET: dict[str, Any] = {  # what a set of one's own has to say itself
    "max_weight": None, "min_weights": None, "max_weights": None, "budget": 1.0, "max_short": None, "group_caps": None,
    "group_floors": None, "linear_constraints": None, "target_return": None, "previous_weights": None, "max_tracking_error": None,
}  # fmt: skip
NO_RISK = "some portfolio has no risk and as much return as one likes: use long_only, or max_weight"


class SparsePortfolio(SparseEstimator):
    """The best portfolio of at most k assets, from a table of returns (one row per period, one column per asset).

    `fit(X)` minimises risk_aversion times the variance minus the mean return, or the variance under a target return. `fit(X, y)` tracks an
    index with returns y instead: least squares of the portfolio's returns to the index. With `max_tracking_error` it does the first within
    that distance of y.

    Parameters
    ----------
    k : int, default=10
        Assets at most; more than there are is no restriction, and a warning says so.
    objective : {"minimize_risk", "maximize_utility"} or None, default=None
        The variance alone, or risk_aversion times the variance minus the mean return. None for the second, or for the first where a target
        return but no risk aversion is given.
    risk_aversion : float or None, default=None
        How much the variance counts; None for 10, as in the paper.
    target_return : float or None, default=None
        Mean return per period to reach.
    long_only : bool, default=True
        No negative weight.
    max_weight : float or None, default=None
        No weight beyond, in size.
    min_weight : float, default=0.0
        No smaller position, in size; names that are not held are at 0 all the same.
    min_weights : float, array-like, mapping or None, default=None
        Lower bounds of the assets, as one number, one per asset, or a mapping from name to bound; one above 0 means that the asset is held.
    max_weights : float, array-like, mapping or None, default=None
        Upper bounds, said in the same ways.
    budget : float or tuple of two floats, default=1.0
        What the weights sum to, or the least and the most.
    max_short : float or None, default=None
        What the short positions sum to at most, in size; with a budget of 1 a gross exposure of 1.6 is a short side of 0.3.
    groups : array-like, mapping or None, default=None
        Labels, one per asset, or a mapping from group to its assets (names, indices or mask).
    group_caps : float, mapping or None, default=None
        The most that a group's weights may sum to, one number or a mapping from group to number.
    group_floors : float, mapping or None, default=None
        The least, said in the same ways.
    group_cardinalities : int, mapping or None, default=None
        The most names of a group that are held, one number or a mapping from group to number, or to (least, most); a least needs a
        min_weight above 0.
    linear_constraints : str, list of str or None, default=None
        Sentences about names of assets and groups; assets of tables without column names are x0, x1, and so on.
        Such as "tech <= 0.3" or "tech <= 30%", "AAPL + 2*MSFT >= 0.1", "0.1 <= energy <= 0.4".
    forced_in : array-like or None, default=None
        Assets (names, indices or mask) that are always among the k; they have min_weight at least.
    forced_out : array-like or None, default=None
        Assets that never are.
    previous_weights : array-like, mapping or None, default=None
        Weights before: an array, or a mapping from name to weight.
    turnover_cost : float, array-like or mapping, default=0.0
        What a unit of trade costs, of each asset where they differ, in the returns' units per period: what is paid once for positions to
        be held for 20 periods counts a twentieth.
    max_turnover : float or None, default=None
        The sum of all trades, in size, at most: selling one half to buy another is a turnover of 1.
    max_tracking_error : float or None, default=None
        The root mean squared distance of the portfolio's returns to those of the index, y of `fit`, at most.
    C : ConvexSet or None, default=None
        A set for the weights instead of budget, bounds and rules, such as a `ks.Polyhedron`.
    warm_start : bool, default=False
        Whether a second fit begins at the weights of the first, and looks less far: for data that have changed a little.
    effort : int or None, default=None
        Number of independent searches; the best result is kept. None for one, or with max_time as many as fit.
    n_jobs : int or None, default=None
        Threads to run the searches in.
    random_state : int or None, default=None
        Their seed; the same seed gives the same answer, whatever n_jobs.
    gap : float or None, default=None
        Prove, after the search, how good the answer is, until no other can be better by more than this share (0.01 for 1 %); see
        `result_.lower_bound` and `result_.gap`.
    max_time : float or None, default=None
        Seconds; the best answer so far is kept, with a `ConvergenceWarning`.
    verbose : int, default=0
        Whether to print a table of the search.

    Attributes
    ----------
    weights_ : ndarray
        They sum to the budget; at most k are not 0; every rule holds.
    mean_return_ : float
        Per period.
    variance_ : float
        Per period.
    tracking_error_ : float
        The root mean squared distance to the index; with y alone.
    turnover_ : float
        The sum of all changes, in size.
    cost_ : float
        What they cost.
    result_ : Result
        The full answer.
    n_iter_ : int
        Iterations.
    n_features_in_ : int
        Features that fit has seen.
    feature_names_in_ : ndarray of str
        Their names, where X has any.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> returns = ks.datasets.factor_model(50, 500, seed=0).returns
    >>> fund = ks.SparsePortfolio(k=8, max_weight=0.3, min_weight=0.05).fit(returns)
    >>> int(np.count_nonzero(fund.weights_)), float(fund.weights_.sum().round(12))
    (8, 1.0)
    """

    def __init__(
        self,
        k: int = 10,
        *,
        objective: str | None = None,
        risk_aversion: float | None = None,
        target_return: float | None = None,
        long_only: bool = True,
        max_weight: float | None = None,
        min_weight: float = 0.0,
        min_weights: Any = None,
        max_weights: Any = None,
        budget: Any = 1.0,
        max_short: float | None = None,
        groups: Any = None,
        group_caps: Any = None,
        group_floors: Any = None,
        group_cardinalities: Any = None,
        linear_constraints: Any = None,
        forced_in: Any = None,
        forced_out: Any = None,
        previous_weights: Any = None,
        turnover_cost: Any = 0.0,
        max_turnover: float | None = None,
        max_tracking_error: float | None = None,
        C: Any = None,
        warm_start: bool = False,
        effort: int | None = None,
        n_jobs: int | None = None,
        random_state: int | None = None,
        gap: float | None = None,
        max_time: float | None = None,
        verbose: int = 0,
    ) -> None:
        self.k = k
        self.objective = objective
        self.risk_aversion = risk_aversion
        self.target_return = target_return
        self.long_only = long_only
        self.max_weight = max_weight
        self.min_weight = min_weight
        self.min_weights = min_weights
        self.max_weights = max_weights
        self.budget = budget
        self.max_short = max_short
        self.groups = groups
        self.group_caps = group_caps
        self.group_floors = group_floors
        self.group_cardinalities = group_cardinalities
        self.linear_constraints = linear_constraints
        self.forced_in = forced_in
        self.forced_out = forced_out
        self.previous_weights = previous_weights
        self.turnover_cost = turnover_cost
        self.max_turnover = max_turnover
        self.max_tracking_error = max_tracking_error
        self.C = C
        self.warm_start = warm_start
        self.effort = effort
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.gap = gap
        self.max_time = max_time
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> SparsePortfolio:
        """Find the weights from returns; with y, those that track its returns, or stay within `max_tracking_error` of them.

        Parameters
        ----------
        X : array-like of shape (n_periods, n_assets)
            Returns.
        y : array-like of shape (n_periods,) or None, default=None
            Returns of an index to track, or to stay near to.

        Returns
        -------
        SparsePortfolio
            Itself, fitted.
        """
        start = getattr(self, "weights_", None) if self.warm_start else None
        assets, k = self._assets(X)
        n = len(assets.r)
        task = Task(self, assets.returns, y)
        options = self._options() | {"verbose": self.verbose, "callback": task.callback}
        if start is not None and start.size == n:
            options |= {"x0": start, "settings": WARM}
        assert assets.returns is not None
        y = None if y is None else check_vector_of(y, len(assets.returns))
        follows = y is not None and self.max_tracking_error is None
        wanted = self._tracking(assets, y) if follows else self._wanted(assets, y)
        try:
            result = (
                self._tracked(wanted, assets.returns, y, k, options) if follows else self._solved(wanted, k, options)
            )
        except UnboundedError:
            raise ValueError(NO_RISK) from None
        if result.status is Status.UNBOUNDED or (
            result.status is Status.NUMERICAL_TROUBLE and not result.maxcv <= 1e-6
        ):
            raise ValueError(NO_RISK)
        warn_if_stopped(result, type(self).__name__)
        self.weights_, self.result_ = np.asarray(result.x, dtype=float), result
        self.mean_return_, self.variance_ = (
            float(assets.r @ self.weights_),
            float(self.weights_ @ assets.V @ self.weights_),
        )
        if y is not None:
            self.tracking_error_ = float(np.sqrt(np.mean(np.square(assets.returns @ self.weights_ - y))))
        traded = np.abs(self.weights_ - wanted.before)
        self.turnover_, self.cost_ = float(traded.sum()), float(wanted.cost @ traded)
        self.n_iter_ = max(1, result.nit)
        task.end()
        return self

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
        X = X if hasattr(X, "shape") else np.asarray(X)
        return walk_forward(self, X, None if y is None else check_vector_of(y, int(X.shape[0])), window, step)

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

    def _assets(self, X: Any) -> tuple[Assets, int]:
        """The returns as numbers, looked at, and k."""
        X = validate_X(self, X, ensure_min_samples=2)
        names = getattr(self, "feature_names_in_", None)
        check_size(X, "X", names, least=SMALLEST)
        check_n_jobs(self.n_jobs)
        if looks_like_prices(X):
            warn(
                "SparsePortfolio: X looks like prices, all positive and steady; it must hold returns, prices[1:] / prices[:-1] - 1"
            )
        return Assets.from_returns(X, [] if names is None else list(names)), clip_k(
            check_integer(self.k, "k", 1), X.shape[1], "assets", self
        )

    def _options(self) -> dict[str, Any]:
        """How the search is run."""
        return {name: getattr(self, name) for name in ("effort", "n_jobs", "random_state", "gap", "max_time")}

    def _rules(self, n: int) -> dict[str, Any]:
        """Every rule but the objective's, for `portfolio`."""
        names = getattr(self, "feature_names_in_", None)
        read = mandate(Universe(n, names), **{name: getattr(self, name) for name in MANDATE})
        if self.C is not None:
            for option, default in BESIDE_SET.items():
                given = getattr(self, option)
                if given is not default and not (np.ndim(given) == 0 and given == default):
                    raise ValueError(f"{option} cannot be combined with C: put it into the set")
        return read | {
            "long_only": self.long_only, "max_weight": self.max_weight, "budget": self.budget, "max_short": self.max_short
        }  # fmt: skip

    def _wanted(self, assets: Assets, y: Any) -> Portfolio:
        """Risk against return, under the rules and near to an index where one is given."""
        return portfolio(
            assets.V, assets.r, objective=self.objective, risk_aversion=self.risk_aversion, target_return=self.target_return,
            index=self._near(assets, y), **self._rules(len(assets.r)),
        )  # fmt: skip

    def _near(self, assets: Assets, y: Any) -> Index | None:
        """The index that the returns must stay near to."""
        if self.max_tracking_error is None:
            return None
        limit = check_number(self.max_tracking_error, "max_tracking_error", above=0)
        if y is None:
            raise ValueError("max_tracking_error needs y, the returns of the index")
        assert assets.returns is not None
        return Index(assets.returns, y, limit)

    def _solved(self, wanted: Portfolio, k: int, options: dict[str, Any], **more: Any) -> Result:
        return solve_portfolio(wanted, k, min_weight=self.min_weight, C=self.C, **options, **more)

    def _tracking(self, assets: Assets, y: Any) -> Portfolio:
        """The mean squared distance to an index, but for a constant, under the rules."""
        X = assets.returns
        assert X is not None
        check_size(y, "y")
        for option in ("objective", "risk_aversion", "target_return"):
            if getattr(self, option) is not None:
                raise ValueError(f"{option} has no meaning when an index is tracked: fit without y, or leave it out")
        return tracking(X, y, **self._rules(X.shape[1]))

    def _tracked(self, wanted: Portfolio, X: Any, y: Any, k: int, options: dict[str, Any]) -> Result:
        """The portfolio whose returns are closest to those of an index: least squares, unless trades count too."""
        if wanted.trades or wanted.max_short is not None:
            return moved(self._solved(wanted, k, options), float(np.mean(np.square(y))))
        size = float(np.sqrt(np.mean(np.square(X)))) or 1.0  # returns are small numbers
        C = wanted.C if self.C is None else self.C
        names: dict[str, Any] = {
            "forced_in": wanted.forced_in,
            "forced_out": wanted.forced_out,
            "group_limits": wanted.group_limits,
        }
        require_counts(wanted, k, self.min_weight)
        return minimize(LeastSquares(X / size, y / size), k, C, min_nonzero=self.min_weight, **names, **options)


def check_vector_of(y: Any, rows: int) -> Vector:
    """y as a finite vector with one entry per row."""
    y = np.array(column_or_1d(check_numeric(y, "y"), warn=True), dtype=float)
    if len(y) != rows:
        raise ValueError(f"y must hold one return per row of X, {rows}, got {len(y)}")
    if not np.isfinite(y).all():
        raise ValueError("y must be finite, but contains NaN or inf")
    return np.asarray(y)
