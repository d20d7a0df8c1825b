"""Portfolios of at most k assets."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, column_or_1d

from ksparse.base.arrays import Vector
from ksparse.base.checks import SMALLEST, check_integer, check_n_jobs, check_number, check_size
from ksparse.datasets import Assets
from ksparse.errors import UnboundedError
from ksparse.estimators.base import DOC_LINK, numeric, positions, validated, warn, warn_of_limit
from ksparse.estimators.callbacks import CallbackSupportMixin, Task, with_callbacks
from ksparse.losses import LeastSquares
from ksparse.models.portfolio import looks_like_prices, portfolio, solve_portfolio
from ksparse.result import Result, Status
from ksparse.solve.minimize import minimize

NO_RISK = "some portfolio has no risk and as much return as one likes: use long_only, or max_weight"


class SparsePortfolio(CallbackSupportMixin, BaseEstimator):
    """The best portfolio of at most k assets, from a table of returns (one row per period, one column per asset).

    `fit(X)` minimises risk_aversion times the variance minus the mean return, or the variance under a target return. `fit(X, y)` tracks an
    index with returns y instead: least squares of the portfolio's returns to the index.

    Parameters
    ----------
    k : int, default=10
        Assets at most.
    risk_aversion : float or None, default=None
        How much the variance counts; None for 10, as in the paper, or for the variance alone beside a target return.
    target_return : float or None, default=None
        Mean return per period to reach.
    long_only : bool, default=True
        No negative weight.
    max_weight : float or None, default=None
        No weight beyond, in size.
    min_weight : float, default=0.0
        No smaller position, in size.
    groups : array-like, mapping or None, default=None
        Labels, one per asset, or a mapping from group to its assets (names, indices or mask).
    group_caps : float, mapping or None, default=None
        The most that a group's weights may sum to, one number or a mapping from group to number.
    previous_weights : array-like, mapping or None, default=None
        Weights before: an array, or a mapping from name to weight.
    turnover_cost : float, default=0.0
        What a unit of trade costs.
    C : ConvexSet or None, default=None
        A set for the weights instead of budget, bounds and groups, such as a `ks.Polyhedron`.
    effort : int or None, default=None
        Whole searches, of which the best counts; None for one, or with max_time as many as bring something in the time.
    n_restarts : int or None, default=None
        The older way to say it: eight are one more unit of effort.
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
        They sum to 1; at most k are not 0; bounds and caps hold.
    mean_return_ : float
        Per period.
    variance_ : float
        Per period.
    turnover_ : float
        The sum of all changes, in size.
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

    _doc_link_module, _doc_link_template = "ksparse", DOC_LINK

    def __init__(
        self,
        k: int = 10,
        *,
        risk_aversion: float | None = None,
        target_return: float | None = None,
        long_only: bool = True,
        max_weight: float | None = None,
        min_weight: float = 0.0,
        groups: Any = None,
        group_caps: Any = None,
        previous_weights: Any = None,
        turnover_cost: float = 0.0,
        C: Any = None,
        effort: int | None = None,
        n_restarts: int | None = None,
        n_jobs: int | None = None,
        random_state: int | None = None,
        gap: float | None = None,
        max_time: float | None = None,
        verbose: int = 0,
    ) -> None:
        self.k = k
        self.risk_aversion = risk_aversion
        self.target_return = target_return
        self.long_only = long_only
        self.max_weight = max_weight
        self.min_weight = min_weight
        self.groups = groups
        self.group_caps = group_caps
        self.previous_weights = previous_weights
        self.turnover_cost = turnover_cost
        self.C = C
        self.effort = effort
        self.n_restarts = n_restarts
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.gap = gap
        self.max_time = max_time
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> SparsePortfolio:
        """Find the weights from returns; with y, those that track its returns.

        Parameters
        ----------
        X : array-like of shape (n_periods, n_assets)
            Returns.
        y : array-like of shape (n_periods,) or None, default=None
            Returns of an index to track.

        Returns
        -------
        SparsePortfolio
            Itself, fitted.
        """
        X = validated(self, X, ensure_min_samples=2)
        n = X.shape[1]
        k = min(check_integer(self.k, "k", 1), n)
        names = getattr(self, "feature_names_in_", None)
        check_size(X, "X", names, least=SMALLEST)
        check_n_jobs(self.n_jobs)
        if looks_like_prices(X):
            warn("SparsePortfolio: X looks like prices, all positive and steady; it must hold returns, prices[1:] / prices[:-1] - 1")
        assets = Assets.from_returns(X, [] if names is None else list(names))
        held = self._held(n, names)
        task = Task(self, X, y)
        options: dict[str, Any] = {
            "effort": self.effort,
            "n_restarts": self.n_restarts,
            "n_jobs": self.n_jobs,
            "random_state": self.random_state,
            "gap": self.gap,
            "max_time": self.max_time,
        }
        options |= {"verbose": self.verbose, "callback": task.callback}
        try:
            result = self._track(X, y, k, n, names, options) if y is not None else self._balance(assets, k, n, names, held, options)
        except UnboundedError:
            raise ValueError(NO_RISK) from None
        if result.status is Status.UNBOUNDED or (result.status is Status.NUMERICAL_TROUBLE and not result.maxcv <= 1e-6):
            raise ValueError(NO_RISK)
        warn_of_limit(result, type(self).__name__)
        self.weights_, self.result_ = np.asarray(result.x, dtype=float), result
        self.mean_return_, self.variance_ = float(assets.r @ self.weights_), float(self.weights_ @ assets.V @ self.weights_)
        self.turnover_ = float(np.abs(self.weights_ - (np.zeros(n) if held is None else held)).sum())
        self.n_iter_ = max(1, result.nit)
        task.end()
        return self

    def _balance(self, assets: Assets, k: int, n: int, names: Any, held: Vector | None, options: dict[str, Any]) -> Result:
        """Risk against return."""
        wanted = portfolio(
            assets.V, assets.r, risk_aversion=self.risk_aversion, target_return=self.target_return, long_only=self.long_only,
            max_weight=self.max_weight, groups=self._caps(n, names), held=held, cost=self.turnover_cost,
        )  # fmt: skip
        if self.C is not None:
            self._refuse_beside_set()
        return solve_portfolio(wanted, k, min_weight=self.min_weight, C=self.C, **options)

    def _track(self, X: Vector, y: Any, k: int, n: int, names: Any, options: dict[str, Any]) -> Result:
        """The portfolio whose returns are closest to those of an index."""
        y = check_vector_of(y, X.shape[0])
        check_size(y, "y")
        for option in ("risk_aversion", "target_return", "previous_weights"):
            if getattr(self, option) is not None:
                raise ValueError(f"{option} has no meaning when an index is tracked: fit without y, or leave it out")
        wanted = portfolio(np.eye(n), np.zeros(n), long_only=self.long_only, max_weight=self.max_weight, groups=self._caps(n, names))
        if self.C is not None:
            self._refuse_beside_set()
        size = float(np.sqrt(np.mean(np.square(X)))) or 1.0  # returns are small numbers
        loss = LeastSquares(X / size, y / size)
        return minimize(loss, k, wanted.C if self.C is None else self.C, min_nonzero=self.min_weight, **options)

    def _refuse_beside_set(self) -> None:
        for option, default in (("max_weight", None), ("groups", None), ("target_return", None), ("previous_weights", None)):
            if getattr(self, option) is not default:
                raise ValueError(f"{option} cannot be combined with C: put it into the set")

    def _held(self, n: int, names: Any) -> Vector | None:
        given = self.previous_weights
        if check_number(self.turnover_cost, "turnover_cost", at_least=0) > 0 and given is None:
            raise ValueError("turnover_cost needs previous_weights to trade from")
        if given is None:
            return None
        if names is not None and hasattr(given, "to_dict"):  # a Series: its own names count, not its order
            given = given.to_dict()
        if isinstance(given, Mapping):
            held: Vector = np.zeros(n)
            held[positions(list(given), "previous_weights", n, names)] = 0.0  # each name is one of ours
            for name, weight in given.items():
                held[positions([name], "previous_weights", n, names)[0]] = check_number(weight, "previous_weights")
            return held
        held = np.asarray(given, dtype=float)
        if held.shape != (n,) or not np.isfinite(held).all():
            raise ValueError(f"previous_weights must hold one finite weight per asset, {n}, got shape {held.shape}")
        return held

    def _caps(self, n: int, names: Any) -> list[tuple[Vector, float]]:
        """(assets, cap) pairs from groups and group_caps."""
        if (self.groups is None) != (self.group_caps is None):
            raise ValueError("groups and group_caps need each other")
        if self.groups is None:
            return []
        if isinstance(self.groups, Mapping):
            members = {group: positions(assets, "groups", n, names) for group, assets in self.groups.items()}
        else:
            named = names is not None and hasattr(self.groups, "to_dict")  # a Series: its own names count, not its order
            known = self.groups.to_dict() if named else {}
            lacking = [name for name in names if name not in known] if named else []
            if lacking:
                raise ValueError(f"groups must hold a label for every asset, {lacking[0]!r} has none")
            labels = [known[name] for name in names] if named else list(self.groups)
            if len(labels) != n:
                raise ValueError(f"groups must hold one label per asset, {n}, got {len(labels)}")
            members = {group: np.array([i for i, label in enumerate(labels) if label == group]) for group in dict.fromkeys(labels)}
        caps = self.group_caps
        if isinstance(caps, numbers.Real):
            caps = dict.fromkeys(members, caps)
        if not isinstance(caps, Mapping):
            raise TypeError(f"group_caps must be one number or a mapping from group to number, got {type(caps).__name__}")
        unknown = [group for group in caps if group not in members]
        if unknown:
            raise ValueError(f"group_caps names {unknown[0]!r}, which is not among the groups")
        return [(members[group], check_number(cap, "group_caps")) for group, cap in caps.items()]

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
        X = validated(self, X, reset=False)
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


def check_vector_of(y: Any, rows: int) -> Vector:
    """y as a finite vector with one entry per row."""
    y = np.array(column_or_1d(numeric(y, "y"), warn=True), dtype=float)
    if len(y) != rows:
        raise ValueError(f"y must hold one return per row of X, {rows}, got {len(y)}")
    if not np.isfinite(y).all():
        raise ValueError("y must be finite, but contains NaN or inf")
    return np.asarray(y)
