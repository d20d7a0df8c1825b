"""A portfolio optimiser for skfolio: at most k assets, obeyed exactly, without a MIP solver. Needs the extra `ksparse[skfolio]`."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import validate_data

from ksparse.base.checks import SMALLEST, check_integer, check_n_jobs, check_number, check_size
from ksparse.errors import UnboundedError
from ksparse.estimators.base import warn, warn_of_limit
from ksparse.estimators.portfolio import NO_RISK
from ksparse.models.portfolio import looks_like_prices, portfolio, solve_portfolio
from ksparse.result import Status

try:
    from skfolio.optimization import BaseOptimization
    from skfolio.prior import BasePrior, EmpiricalPrior
    from skfolio.utils.tools import check_estimator
except ImportError as error:
    raise ImportError("ksparse.skfolio needs skfolio: pip install 'ksparse[skfolio]'") from error


class SparseMeanRisk(BaseOptimization):
    """The portfolio of at most k assets with the least variance, or the best trade of variance against return.

    Parameters
    ----------
    k : int, default=10
        Assets at most; more than there are is no restriction.
    risk_aversion : float or None, default=None
        Minimise this times the variance minus the mean return; None for the variance alone.
    min_return : float or None, default=None
        Mean return per period to reach.
    long_only : bool, default=True
        No negative weight.
    max_weight : float or None, default=None
        No weight beyond, in size.
    min_weight : float, default=0.0
        No smaller position, in size.
    transaction_costs : float, default=0.0
        What a unit of trade from `previous_weights` costs, per period like the returns; skfolio's `cross_val_predict` then hands the
        weights of each rebalancing to the next.
    prior_estimator : BasePrior or None, default=None
        skfolio's prior for mean and covariance; None for `EmpiricalPrior`.
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
    portfolio_params : dict or None, default=None
        skfolio's, as in every optimiser.
    fallback : optimiser or None, default=None
        skfolio's, as in every optimiser.
    previous_weights : array-like, mapping or None, default=None
        Weights before.
    raise_on_failure : bool, default=True
        skfolio's, as in every optimiser.

    Attributes
    ----------
    weights_ : ndarray
        They sum to 1; at most k are not 0.
    prior_estimator_ : BasePrior
        The fitted prior.
    result_ : Result
        The full answer.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> from ksparse.skfolio import SparseMeanRisk
    >>> returns = ks.datasets.factor_model(20, 300, seed=0).returns
    >>> int(np.count_nonzero(SparseMeanRisk(k=5, min_weight=0.05).fit(returns).weights_))
    5
    """

    def __init__(
        self,
        k: int = 10,
        *,
        risk_aversion: float | None = None,
        min_return: float | None = None,
        long_only: bool = True,
        max_weight: float | None = None,
        min_weight: float = 0.0,
        transaction_costs: float = 0.0,
        prior_estimator: Any = None,
        effort: int | None = None,
        n_restarts: int | None = None,
        n_jobs: int | None = None,
        random_state: int | None = None,
        gap: float | None = None,
        max_time: float | None = None,
        portfolio_params: dict[str, Any] | None = None,
        fallback: Any = None,
        previous_weights: Any = None,
        raise_on_failure: bool = True,
    ) -> None:
        super().__init__(
            portfolio_params=portfolio_params, fallback=fallback, previous_weights=previous_weights, raise_on_failure=raise_on_failure
        )
        self.k = k
        self.risk_aversion = risk_aversion
        self.min_return = min_return
        self.long_only = long_only
        self.max_weight = max_weight
        self.min_weight = min_weight
        self.transaction_costs = transaction_costs
        self.prior_estimator = prior_estimator
        self.effort = effort
        self.n_restarts = n_restarts
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.gap = gap
        self.max_time = max_time

    def get_metadata_routing(self) -> MetadataRouter:
        """Metadata of `fit` goes to the prior's `fit`."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return MetadataRouter(owner=type(self).__name__).add(prior_estimator=self.prior_estimator, method_mapping=mapping)

    def fit(self, X: Any, y: Any = None, **fit_params: Any) -> SparseMeanRisk:
        """Find the weights from returns.

        Parameters
        ----------
        X : array-like of shape (n_periods, n_assets)
            Returns.
        y : array-like or None, default=None
            For the prior.
        **fit_params : dict
            Metadata, routed to the prior.

        Returns
        -------
        SparseMeanRisk
            Itself, fitted.
        """
        routed = process_routing(self, "fit", **fit_params)
        validate_data(self, X, skip_check_array=True)
        self._look_at(X)
        self.prior_estimator_ = check_estimator(self.prior_estimator, default=EmpiricalPrior(), check_type=BasePrior)
        self.prior_estimator_.fit(X, y, **routed.prior_estimator.fit)
        found = self.prior_estimator_.return_distribution_
        mu, V = np.asarray(found.mu, dtype=float), np.asarray(found.covariance, dtype=float)
        held = self._clean_previous_weights(n_assets=len(mu), apply_investable_mask=False) if self.previous_weights is not None else None
        usable = np.flatnonzero(np.isfinite(mu) & np.isfinite(np.diag(V)))  # a prior marks assets it knows nothing of by NaN
        if not usable.size:
            raise ValueError("the prior knows mean and variance of no asset: all are NaN")
        weights = np.zeros(len(mu))
        weights[usable] = self._weights(V[np.ix_(usable, usable)], mu[usable], None if held is None else np.asarray(held)[usable])
        self.weights_ = weights
        return self

    def _look_at(self, X: Any) -> None:
        """Returns of a usable size, and no prices; a prior may know more than X, so what is not a table of numbers passes."""
        try:
            returns = np.asarray(X, dtype=float)
        except (TypeError, ValueError):
            return
        if returns.ndim == 2 and np.isfinite(returns).any():
            check_size(np.where(np.isfinite(returns), returns, 0.0), "X", getattr(self, "feature_names_in_", None), least=SMALLEST)
            if looks_like_prices(returns):
                warn("SparseMeanRisk: X looks like prices, all positive and steady; it must hold returns, see skfolio's prices_to_returns")

    def _weights(self, V: Any, mu: Any, held: Any) -> Any:
        cost = check_number(self.transaction_costs, "transaction_costs", at_least=0)
        variance_alone = self.risk_aversion is None and self.min_return is None
        wanted = portfolio(
            V, np.zeros_like(mu) if variance_alone else mu, risk_aversion=1.0 if variance_alone else self.risk_aversion,
            target_return=self.min_return, long_only=self.long_only, max_weight=self.max_weight, held=held, cost=cost,
        )  # fmt: skip
        try:
            self.result_ = solve_portfolio(
                wanted, min(check_integer(self.k, "k", 1), len(mu)), min_weight=self.min_weight, effort=self.effort,
                n_restarts=self.n_restarts, n_jobs=check_n_jobs(self.n_jobs), random_state=self.random_state, max_time=self.max_time,
                gap=self.gap,
            )  # fmt: skip
        except UnboundedError:
            raise ValueError(NO_RISK) from None
        if self.result_.status is Status.UNBOUNDED:
            raise ValueError(NO_RISK)
        warn_of_limit(self.result_, type(self).__name__)
        return self.result_.x
