"""A portfolio optimiser for skfolio with at most k assets, without a MIP solver. Needs the extra `ksparse[skfolio]`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import validate_data

from ksparse.estimator_base import SparseEstimator, clip_k, fill_docstrings, warn_if_stopped
from ksparse.portfolio.estimator import SEARCH, PortfolioTexts, check_returns, check_vector_of
from ksparse.portfolio.problem import WEIGHTS, Benchmark, Portfolio, portfolio
from ksparse.portfolio.rules import Universe, portfolio_arguments
from ksparse.portfolio.solve import solve_portfolio
from ksparse.util.checks import check_integer, check_n_jobs, check_number

try:
    from skfolio.optimization import BaseOptimization
    from skfolio.prior import BasePrior, EmpiricalPrior
    from skfolio.utils.tools import check_estimator
except ImportError as error:
    raise ImportError("ksparse.skfolio needs skfolio: pip install 'ksparse[skfolio]'") from error

NAMED = ("min_weights", "max_weights", "forced_in", "forced_out", "linear_constraints", "group_cardinalities")


@fill_docstrings(str(SparseEstimator.__doc__))
@dataclass(eq=False, repr=False)
class SparseMeanRisk(PortfolioTexts, BaseOptimization):
    """The portfolio of at most k assets with the least variance, or the best trade-off of variance against return.

    Parameters
    ----------
    {k}
    cardinality : int or None, default=None
        skfolio's name for k, which it replaces if it is given.
    risk_aversion : float or None, default=None
        Minimise this times the variance minus the mean return; None for the variance alone.
    min_return : float or None, default=None
        Minimum mean return per period.
    {long_only, max_weight, min_weight, min_weights, max_weights, budget, max_short}
    groups : mapping, array-like or None, default=None
        As in skfolio: a mapping from asset to its groups, or labels of shape (n_groups, n_assets); or one label per
        asset.
    group_cardinalities : int, mapping or None, default=None
        Maximum number of assets held of each group, as in skfolio a mapping from group to number; or to (minimum,
        maximum), where a minimum requires a positive `min_weight`; or one number for all groups. Groups with limits
        must not overlap.
    {linear_constraints, forced_in, forced_out}
    transaction_costs : float, array-like or mapping, default=0.0
        Cost per unit traded from `previous_weights`, per asset if they differ, per period like the returns; skfolio's
        `cross_val_predict` then passes the weights of each rebalancing to the next.
    max_turnover : float or None, default=None
        Maximum change of the weight of any one asset from `previous_weights`, as in skfolio.
    max_total_turnover : float or None, default=None
        Maximum sum of the absolute changes of all weights.
    max_tracking_error : float or None, default=None
        Maximum of ‖Rw − y‖/√(periods − 1), as in skfolio, with y of `fit` the returns of the index.
    prior_estimator : BasePrior or None, default=None
        skfolio's prior for mean and covariance; None for `EmpiricalPrior`.
    {effort, n_jobs, random_state, gap, max_time}
    portfolio_params : dict or None, default=None
        As in every optimiser of skfolio.
    fallback : optimiser or None, default=None
        As in every optimiser of skfolio.
    previous_weights : array-like, mapping or None, default=None
        Weights before trading.
    raise_on_failure : bool, default=True
        As in every optimiser of skfolio.

    Attributes
    ----------
    weights_ : ndarray
        Weights that sum to the budget; at most k are not 0.
    prior_estimator_ : BasePrior
        The fitted prior.
    {result_}

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> from ksparse.skfolio import SparseMeanRisk
    >>> returns = ks.datasets.factor_model(20, 300, seed=0).returns
    >>> int(np.count_nonzero(SparseMeanRisk(k=5, min_weight=0.05).fit(returns).weights_))
    5
    """

    k: int = 10
    _: KW_ONLY
    cardinality: int | None = None
    risk_aversion: float | None = None
    min_return: float | None = None
    long_only: bool = True
    max_weight: float | None = None
    min_weight: float = 0.0
    min_weights: Any = None
    max_weights: Any = None
    budget: Any = 1.0
    max_short: float | None = None
    groups: Any = None
    group_cardinalities: Any = None
    linear_constraints: Any = None
    forced_in: Any = None
    forced_out: Any = None
    transaction_costs: Any = 0.0
    max_turnover: float | None = None
    max_total_turnover: float | None = None
    max_tracking_error: float | None = None
    prior_estimator: Any = None
    effort: int | None = None
    n_jobs: int | None = None
    random_state: int | None = None
    gap: float | None = None
    max_time: float | None = None
    portfolio_params: dict[str, Any] | None = None
    fallback: Any = None
    previous_weights: Any = None
    raise_on_failure: bool = True

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the routing of metadata from `fit` to the `fit` of the prior."""
        router, mapping = MetadataRouter(owner=type(self).__name__), MethodMapping().add(caller="fit", callee="fit")
        return router.add(prior_estimator=self.prior_estimator, method_mapping=mapping)

    def fit(self, X: Any, y: Any = None, **fit_params: Any) -> SparseMeanRisk:
        """Find the weights from returns.

        Parameters
        ----------
        X : array-like of shape (n_periods, n_assets)
            Returns.
        y : array-like or None, default=None
            For the prior, and the returns of the index for `max_tracking_error`.
        **fit_params : dict
            Metadata, routed to the prior.

        Returns
        -------
        SparseMeanRisk
            Itself, fitted.
        """
        routed = process_routing(self, "fit", **fit_params)
        validate_data(self, X, skip_check_array=True)
        self._check_returns(X)
        self.prior_estimator_ = check_estimator(self.prior_estimator, default=EmpiricalPrior(), check_type=BasePrior)
        self.prior_estimator_.fit(X, y, **routed.prior_estimator.fit)
        prior = self.prior_estimator_.return_distribution_
        mu, V = np.asarray(prior.mu, dtype=float), np.asarray(prior.covariance, dtype=float)
        # mean and variance are NaN for assets that the prior has no data for
        usable = np.flatnonzero(np.isfinite(mu) & np.isfinite(np.diag(V)))
        if not usable.size:
            raise ValueError("the prior has no mean and variance of any asset: all are NaN")
        problem = self._problem(mu, V, prior.returns, y, usable)
        k, name = (self.k, "k") if self.cardinality is None else (self.cardinality, "cardinality")
        check_n_jobs(self.n_jobs)
        k, options = check_integer(k, name, 1), {option: getattr(self, option) for option in SEARCH}
        k = clip_k(k, usable.size, "assets", self)
        self.result_ = solve_portfolio(problem, k, min_weight=self.min_weight, **options)
        warn_if_stopped(self.result_, type(self).__name__)
        self.weights_ = np.zeros(len(mu))
        self.weights_[usable] = self.result_.x
        return self

    def _check_returns(self, X: Any) -> None:
        """Check the size of returns, and warn of prices; what is not a table of numbers may be known to the prior."""
        try:
            returns = np.asarray(X, dtype=float)
        except (TypeError, ValueError):
            return
        if returns.ndim == 2 and np.isfinite(returns).any():
            names = getattr(self, "feature_names_in_", None)
            check_returns(returns, names, "SparseMeanRisk: X", "see skfolio's prices_to_returns")

    def _problem(self, mu: Any, V: Any, returns: Any, y: Any, usable: Any) -> Portfolio:
        """Return the problem that the parameters describe, with the usable assets."""
        n, held = len(mu), None
        if self.previous_weights is not None:
            held = self._clean_previous_weights(n_assets=n, apply_investable_mask=False)
        universe = Universe(n, getattr(self, "feature_names_in_", None))
        cost = universe.numbers(self.transaction_costs, "transaction_costs", 0.0)
        if not (np.isfinite(cost).all() and cost.min() >= 0):
            raise ValueError(f"transaction_costs must be >= 0 and finite, got {self.transaction_costs!r}")
        rules = {name: getattr(self, name) for name in NAMED}
        if self.linear_constraints is not None or self.group_cardinalities is not None:
            rules["groups"] = _assets_by_group(self.groups, universe)
        if held is not None:
            rules |= {"previous_weights": held, "turnover_cost": cost, "max_turnover": self.max_total_turnover}
        rules = portfolio_arguments(universe, **rules) | {name: getattr(self, name) for name in WEIGHTS}
        if self.max_turnover is not None and held is not None:
            most = check_number(self.max_turnover, "max_turnover", at_least=0)
            lowest = np.maximum(held - most, 0.0) if self.long_only else held - most
            rules["min_weights"] = np.maximum(lowest, rules["min_weights"])
            rules["max_weights"] = np.minimum(held + most, rules["max_weights"])
        if self.max_tracking_error is not None:
            if y is None:
                raise ValueError("max_tracking_error needs y, the returns of the index")
            R = np.asarray(returns, dtype=float)
            limit = check_number(self.max_tracking_error, "max_tracking_error", above=0)
            rules["benchmark"] = Benchmark(R, check_vector_of(y, len(R)), limit * float(np.sqrt(1.0 - 1.0 / len(R))))
        known = np.isin(np.arange(n), usable)
        V, mu = np.where(np.outer(known, known), V, 0.0), np.where(known, mu, 0.0)
        objective = "minimize_risk" if self.risk_aversion is None else "maximize_utility"
        rules |= {"objective": objective, "risk_aversion": self.risk_aversion, "target_return": self.min_return}
        return portfolio(V, mu, **rules).on(usable)


def _assets_by_group(given: Any, universe: Universe) -> Any:
    """Return skfolio's groups as a mapping from group to assets; one label per asset is returned unchanged."""
    if isinstance(given, Mapping):
        pairs = [(asset, [groups] if isinstance(groups, str) else list(groups)) for asset, groups in given.items()]
    elif given is not None and np.ndim(given) == 2:
        table = np.asarray(given)
        if table.shape[1] != universe.n:
            raise ValueError(f"groups must hold one label per asset in each row, {universe.n}, got {table.shape[1]}")
        pairs = [(i, list(table[:, i])) for i in range(universe.n)]
    else:
        return given
    members: dict[Any, list[int]] = {}
    for asset, labels in pairs:
        for label in labels:
            members.setdefault(label, []).append(universe.place(asset, "groups"))
    return members
