"""Portfolios of at most k assets."""

from __future__ import annotations

from typing import Any

import numpy as np

from ksparse.errors import UnboundedError
from ksparse.estimator_base import Task, warn_if_stopped, with_callbacks
from ksparse.estimators.portfolio_problem import NO_RISK, check_vector_of
from ksparse.estimators.portfolio_uses import PortfolioUses
from ksparse.models.portfolio import WARM
from ksparse.result import Status


class SparsePortfolio(PortfolioUses):
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
