"""A portfolio optimiser for skfolio: at most k assets, obeyed exactly, without a MIP solver. Needs the extra `ksparse[skfolio]`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import validate_data

from ksparse.errors import UnboundedError
from ksparse.estimator_base import clip_k, warn, warn_if_stopped
from ksparse.portfolio.estimator import NO_RISK, check_vector_of
from ksparse.portfolio.problem import Index, looks_like_prices, portfolio
from ksparse.portfolio.rules import Rows, Universe, mandate
from ksparse.portfolio.solve import solve_portfolio
from ksparse.result import Status
from ksparse.util.checks import SMALLEST, check_integer, check_n_jobs, check_number, check_size

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
        Assets at most; more than there are is no restriction, and a warning says so.
    cardinality : int or None, default=None
        skfolio's name for k, in whose place it counts where it is given.
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
    min_weights : float, array-like, mapping or None, default=None
        Lower bounds of the assets, as one number, one per asset, or a mapping from name to bound; one above 0 means that the asset is held.
    max_weights : float, array-like, mapping or None, default=None
        Upper bounds, said in the same ways.
    budget : float or tuple of two floats, default=1.0
        What the weights sum to, or the least and the most.
    max_short : float or None, default=None
        What the short positions sum to at most, in size.
    groups : mapping, array-like or None, default=None
        As skfolio has them: a mapping from asset to its groups, or labels of shape (n_groups, n_assets); or one label per asset.
    group_cardinalities : int, mapping or None, default=None
        The most names of a group that are held, as in skfolio a mapping from group to number; or to (least, most), which needs a min_weight
        above 0; or one number for all groups. Groups with limits must not overlap.
    linear_constraints : str, list of str or None, default=None
        Sentences such as "tech <= 0.3" or "2*AAPL + MSFT >= 0.1", of names of assets and groups.
    forced_in : array-like or None, default=None
        Assets (names, indices or mask) that are always among the k; they have min_weight at least.
    forced_out : array-like or None, default=None
        Assets that never are.
    transaction_costs : float, array-like or mapping, default=0.0
        What a unit of trade from `previous_weights` costs, per period like the returns, of each asset where they differ; skfolio's
        `cross_val_predict` then hands the weights of each rebalancing to the next.
    max_turnover : float or None, default=None
        The most that the weight of any one asset changes from `previous_weights`, as in skfolio.
    max_total_turnover : float or None, default=None
        The most that all weights together change, in size.
    max_tracking_error : float or None, default=None
        The distance of the portfolio's returns to those of the index, y of `fit`, at most: ‖Rw − y‖/√(periods − 1), as in skfolio.
    prior_estimator : BasePrior or None, default=None
        skfolio's prior for mean and covariance; None for `EmpiricalPrior`.
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
        They sum to the budget; at most k are not 0.
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
        cardinality: int | None = None,
        risk_aversion: float | None = None,
        min_return: float | None = None,
        long_only: bool = True,
        max_weight: float | None = None,
        min_weight: float = 0.0,
        min_weights: Any = None,
        max_weights: Any = None,
        budget: Any = 1.0,
        max_short: float | None = None,
        groups: Any = None,
        group_cardinalities: Any = None,
        linear_constraints: Any = None,
        forced_in: Any = None,
        forced_out: Any = None,
        transaction_costs: Any = 0.0,
        max_turnover: float | None = None,
        max_total_turnover: float | None = None,
        max_tracking_error: float | None = None,
        prior_estimator: Any = None,
        effort: int | None = None,
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
            portfolio_params=portfolio_params,
            fallback=fallback,
            previous_weights=previous_weights,
            raise_on_failure=raise_on_failure,
        )
        self.k = k
        self.cardinality = cardinality
        self.risk_aversion = risk_aversion
        self.min_return = min_return
        self.long_only = long_only
        self.max_weight = max_weight
        self.min_weight = min_weight
        self.min_weights = min_weights
        self.max_weights = max_weights
        self.budget = budget
        self.max_short = max_short
        self.groups = groups
        self.group_cardinalities = group_cardinalities
        self.linear_constraints = linear_constraints
        self.forced_in = forced_in
        self.forced_out = forced_out
        self.transaction_costs = transaction_costs
        self.max_turnover = max_turnover
        self.max_total_turnover = max_total_turnover
        self.max_tracking_error = max_tracking_error
        self.prior_estimator = prior_estimator
        self.effort = effort
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.gap = gap
        self.max_time = max_time

    def get_metadata_routing(self) -> MetadataRouter:
        """Metadata of `fit` goes to the prior's `fit`."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return MetadataRouter(owner=type(self).__name__).add(
            prior_estimator=self.prior_estimator, method_mapping=mapping
        )

    def fit(self, X: Any, y: Any = None, **fit_params: Any) -> SparseMeanRisk:
        """Find the weights from returns.

        Parameters
        ----------
        X : array-like of shape (n_periods, n_assets)
            Returns.
        y : array-like or None, default=None
            For the prior, and the returns of the index that `max_tracking_error` is against.
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
        held = (
            self._clean_previous_weights(n_assets=len(mu), apply_investable_mask=False)
            if self.previous_weights is not None
            else None
        )
        usable = np.flatnonzero(
            np.isfinite(mu) & np.isfinite(np.diag(V))
        )  # a prior marks assets it knows nothing of by NaN
        if not usable.size:
            raise ValueError("the prior knows mean and variance of no asset: all are NaN")
        weights = np.zeros(len(mu))
        rules = self._rules(len(mu), held, usable) | {"index": self._near(found.returns, y, usable)}
        weights[usable] = self._weights(V[np.ix_(usable, usable)], mu[usable], rules)
        self.weights_ = weights
        return self

    def _look_at(self, X: Any) -> None:
        """Returns of a usable size, and no prices; a prior may know more than X, so what is not a table of numbers passes."""
        try:
            returns = np.asarray(X, dtype=float)
        except (TypeError, ValueError):
            return
        if returns.ndim == 2 and np.isfinite(returns).any():
            check_size(
                np.where(np.isfinite(returns), returns, 0.0),
                "X",
                getattr(self, "feature_names_in_", None),
                least=SMALLEST,
            )
            if looks_like_prices(returns):
                warn(
                    "SparseMeanRisk: X looks like prices, all positive and steady; it must hold returns, see skfolio's prices_to_returns"
                )

    def _rules(self, n: int, held: Any, usable: Any) -> dict[str, Any]:
        """Every rule but the objective's, of the assets that the prior knows."""
        assets = Universe(n, getattr(self, "feature_names_in_", None))
        costs = assets.numbers(self.transaction_costs, "transaction_costs", 0.0)
        if not (np.isfinite(costs).all() and costs.min() >= 0):
            raise ValueError(f"transaction_costs must be >= 0 and finite, got {self.transaction_costs!r}")
        trades = (
            {}
            if held is None
            else {"previous_weights": held, "turnover_cost": costs, "max_turnover": self.max_total_turnover}
        )
        spoken = self.linear_constraints is not None or self.group_cardinalities is not None
        groups = _by_group(self.groups, assets) if spoken else None
        named = {name: getattr(self, name) for name in ("min_weights", "max_weights", "forced_in", "forced_out")}
        named |= {name: getattr(self, name) for name in ("linear_constraints", "group_cardinalities")}
        read = mandate(assets, groups=groups, **named, **trades)
        if self.max_turnover is not None and held is not None:
            most = check_number(self.max_turnover, "max_turnover", at_least=0)
            low, high = (np.asarray(held) - most, np.asarray(held) + most)
            floor = 0.0 if self.long_only else -np.inf
            read["min_weights"] = np.maximum(
                low if read["min_weights"] is None else np.maximum(low, read["min_weights"]), floor
            )
            read["max_weights"] = high if read["max_weights"] is None else np.minimum(high, read["max_weights"])
        for name in ("min_weights", "max_weights", "held", "cost"):
            read[name] = None if read[name] is None else read[name][usable]
        rows, place = read["rows"], {int(i): j for j, i in enumerate(usable)}
        read["rows"] = Rows(rows.G[:, usable], rows.h, rows.E[:, usable], rows.f)
        read["counts"] = None if read["counts"] is None else read["counts"].on(usable)
        for name in ("forced_in", "forced_out"):
            read[name] = [place[int(i)] for i in read[name] if int(i) in place]
        return read | {
            "budget": self.budget,
            "max_short": self.max_short,
            "long_only": self.long_only,
            "max_weight": self.max_weight,
        }

    def _near(self, returns: Any, y: Any, usable: Any) -> Index | None:
        """The index that the returns must stay near to; skfolio's error has one period less below the root than ours."""
        if self.max_tracking_error is None:
            return None
        if y is None:
            raise ValueError("max_tracking_error needs y, the returns of the index")
        R = np.asarray(returns, dtype=float)[:, usable]
        limit = check_number(self.max_tracking_error, "max_tracking_error", above=0)
        return Index(R, check_vector_of(y, len(R)), limit * float(np.sqrt(1.0 - 1.0 / len(R))))

    def _weights(self, V: Any, mu: Any, rules: dict[str, Any]) -> Any:
        objective = "minimize_risk" if self.risk_aversion is None else "maximize_utility"
        k = (
            check_integer(self.k, "k", 1)
            if self.cardinality is None
            else check_integer(self.cardinality, "cardinality", 1)
        )
        wanted = portfolio(
            V, mu, objective=objective, risk_aversion=self.risk_aversion, target_return=self.min_return, **rules
        )
        try:
            self.result_ = solve_portfolio(
                wanted, clip_k(k, len(mu), "assets", self), min_weight=self.min_weight, effort=self.effort,
                n_jobs=check_n_jobs(self.n_jobs), random_state=self.random_state, max_time=self.max_time,
                gap=self.gap,
            )  # fmt: skip
        except UnboundedError:
            raise ValueError(NO_RISK) from None
        if self.result_.status is Status.UNBOUNDED:
            raise ValueError(NO_RISK)
        warn_if_stopped(self.result_, type(self).__name__)
        return self.result_.x


def _by_group(given: Any, assets: Universe) -> Any:
    """skfolio's groups, a mapping from asset to its groups or rows of labels, as a mapping from group to assets; labels as they are."""
    if isinstance(given, Mapping):
        pairs = [(asset, [of] if isinstance(of, str) else list(of)) for asset, of in given.items()]
    elif given is not None and np.ndim(given) == 2:
        table = np.asarray(given)
        if table.shape[1] != assets.n:
            raise ValueError(f"groups must hold one label per asset in each row, {assets.n}, got {table.shape[1]}")
        pairs = [(i, list(table[:, i])) for i in range(assets.n)]
    else:
        return given
    members: dict[Any, list[int]] = {}
    for asset, labels in pairs:
        for label in labels:
            members.setdefault(label, []).append(assets.place(asset, "groups"))
    return members
