"""Regression by at most k features."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.exceptions import ConvergenceWarning

from ksparse.estimator_base import Task, to_input_dtype, warn, with_callbacks
from ksparse.linear.base import SparseLinear
from ksparse.linear.losses import LOG_LINK, LossMaker, check_loss
from ksparse.linear.problem import ManyFits, fit_singly, fit_together, shareable

LOSSES = ("squared", "huber", "quantile", "poisson", "negative_binomial", "gamma", "tweedie")
COUNTS = ("poisson", "negative_binomial")
MOST = 1e15  # counts beyond are no longer whole numbers


class SparseRegressor(RegressorMixin, SparseLinear):
    """The best linear model of y by at most k features.

    Parameters
    ----------
    k : int, default=5
        Features at most, 0 for the intercept alone; more than there are is no restriction, and a warning says so.
    loss : str or class, default="squared"
        "squared", "huber", "quantile" (the median), "poisson", "negative_binomial" (counts), "gamma", "tweedie" (amounts; all four with a
        log link), or a class of your own, called as loss(A, b, sample_weight, ridge): a `ks.DataFit` or any `ks.Loss`. Then b is y as it
        is, and `predict` gives the linear score. Of ours with parameters too: `functools.partial(ks.Quantile, tau=0.9)`.
    delta : float or None, default=None
        δ of the huber loss in the units of y; None for 1.345 robust standard deviations of y.
    multi_output : {"independent", "common"}, default="independent"
        Of a y with several columns: features of its own for each target; or k features for all of them at once, by the squared loss summed
        over targets (scale them as they are to count).
    C : ConvexSet or None, default=None
        A set for the coefficients, in the units of X, such as `ks.Simplex()`; None for all of space.
    positive : bool or array-like, default=False
        True, or the features (indices, mask or names) whose coefficient may not be negative.
    negative : bool or array-like, default=False
        True, or the features (indices, mask or names) whose coefficient may not be positive.
    fit_intercept : bool, default=True
        Whether there is an intercept; it is free and not counted in k.
    standardize : bool, default=True
        Scale the columns for the search; undone in `coef_`. With a C that is more than bounds they stay as they are.
    alpha : float, default=0.0
        Ridge, ½ alpha ‖z‖² per row, z the coefficients of the scaled columns.
    forced_in : array-like, default=()
        Features (indices, mask or names) that keep a seat.
    forced_out : array-like, default=()
        Features that get none.
    groups : array-like, dict, callable or None, default=None
        A label for each feature, {feature: label} by names or indices, or a function from the names to labels such as `ks.factors("city")`:
        features of one label enter together or not at all, and k counts such groups (see the page on rules). For "auto".
    group_limits : tuple or None, default=None
        (labels, {label: (least, most)}), labels as in groups: how many of a label must and may be chosen. For "auto".
    requires : dict or None, default=None
        {child: parents} by names or indices, with groups by their labels too: a feature is chosen only with its parents. For "auto".
    method : str, default="auto"
        "auto", or one of the paper's methods (see `ks.minimize`).
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
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        The model; at most k entries are not 0, and signs hold exactly. One row per column of y where y has several: each target has its
        own features, and squared losses under signs alone are solved together (see `ks.minimize_many`), or all share them (see
        `ks.MultiResponse`).
    intercept_ : float or ndarray of shape (n_targets,)
        What is added.
    result_ : Result
        The full answer, in scaled variables; a `ks.Batch` or a list for several targets.
    n_iter_ : int
        Iterations.
    n_features_in_ : int
        Features that fit has seen.
    feature_names_in_ : ndarray of str
        Their names, where X has any.

    See Also
    --------
    SparseRegressorCV : Chooses k.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> X, y, names = ks.datasets.diabetes()
    >>> model = ks.SparseRegressor(k=3).fit(X, y)
    >>> [names[i] for i in np.flatnonzero(model.coef_)]
    ['bmi', 'bp', 's5']
    """

    _targets: ClassVar[bool] = True

    def __init__(
        self,
        k: int = 5,
        *,
        loss: str | LossMaker = "squared",
        delta: float | None = None,
        multi_output: str = "independent",
        C: Any = None,
        positive: Any = False,
        negative: Any = False,
        fit_intercept: bool = True,
        standardize: bool = True,
        alpha: float = 0.0,
        forced_in: Any = (),
        forced_out: Any = (),
        groups: Any = None,
        group_limits: Any = None,
        requires: Any = None,
        method: str = "auto",
        effort: int | None = None,
        n_jobs: int | None = None,
        random_state: int | None = None,
        gap: float | None = None,
        max_time: float | None = None,
        verbose: int = 0,
    ) -> None:
        self.k = k
        self.loss = loss
        self.delta = delta
        self.multi_output = multi_output
        self.C = C
        self.positive = positive
        self.negative = negative
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.alpha = alpha
        self.forced_in = forced_in
        self.forced_out = forced_out
        self.groups = groups
        self.group_limits = group_limits
        self.requires = requires
        self.method = method
        self.effort = effort
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.gap = gap
        self.max_time = max_time
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SparseRegressor:
        """Find the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The table; sparse, by blocks or on a cluster too.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            The target, or several.
        sample_weight : array-like or None, default=None
            Multiplies the loss of a row.

        Returns
        -------
        SparseRegressor
            Itself, fitted.
        """
        X, y, sample_weight = self._checked(X, y, sample_weight, y_numeric=True)
        require_loss(self.loss, LOSSES, y)
        self._require_targets(y)
        task = Task(self, X, y)
        if y.ndim == 2 and self.multi_output == "independent":
            several = self._solve_all(X, np.asarray(y, dtype=float), sample_weight, task)
            self._keep(X, several.coef, several.intercept, several.results, 1)
        else:
            fit = self._solve(self._problem(X, y, sample_weight, self.loss), task.callback)
            self._keep(X, fit.coef, fit.intercept, fit.result, fit.result.nit)
        task.end()
        return self

    def _require_targets(self, y: Any) -> None:
        """Refuse what several targets that share their features cannot have."""
        if self.multi_output not in ("independent", "common"):
            raise ValueError(f'multi_output must be "independent" or "common", got {self.multi_output!r}')
        if y.ndim == 2 and self.multi_output == "common":
            if self.loss != "squared":
                raise ValueError(f'multi_output="common" needs loss="squared", got {self.loss!r}')
            if self.method != "auto":
                raise ValueError(f'multi_output="common" needs method="auto", got {self.method!r}')

    def _keep(self, X: Any, coef: Any, intercept: Any, result: Any, steps: int) -> None:
        self.coef_, self.intercept_ = to_input_dtype(coef, X, self.C), to_input_dtype(intercept, X)
        self.result_, self.n_iter_ = result, max(1, steps)

    def _solve_all(self, X: Any, Y: np.ndarray[Any, Any], sample_weight: Any, task: Task) -> ManyFits:
        """The models of several targets, together where they can share what is known of X; max_time is for all of them, or for each."""
        first, rules = self._problem(X, Y[:, 0], sample_weight, self.loss), self._rules(X.shape[1])
        k = self._at_most(self.k, self._members(X.shape[1]))
        if self.method == "auto" and not rules and self.gap is None and shareable(first):
            options = {name: getattr(self, name) for name in ("n_jobs", "random_state", "max_time", "verbose")}
            effort = 1 if self.effort is None else self.effort
            found = fit_together(first, Y, sample_weight, k, effort=effort, callback=task.batch_callback, **options)
        else:
            options = {"method": self.method, "callback": task.callback, **self._options(), **rules}
            found = fit_singly(lambda y: self._problem(X, y, sample_weight, self.loss), Y, k, **options)
        if found.failure is not None:
            warn(f"{type(self).__name__}: {found.failure.message}", ConvergenceWarning)
        return found

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """The fitted values; for counts and amounts their mean.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The table; sparse, by blocks or on a cluster too.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
            One value per row, and target.
        """
        score = self._score_of(X)
        return np.exp(score) if isinstance(self.loss, str) and self.loss in LOG_LINK else np.asarray(score)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = isinstance(self.loss, str) and self.loss in LOG_LINK
        tags.target_tags.multi_output = (
            self._targets and not tags.target_tags.positive_only
        )  # it is checked with targets below 0
        return tags


def require_loss(loss: str | LossMaker, allowed: tuple[str, ...], y: Any) -> None:
    """Refuse a loss that is not known, or does not fit y."""
    check_loss(loss, allowed)
    if not isinstance(loss, str) or loss not in LOG_LINK:
        return
    what = "counts" if loss in COUNTS else "amounts"
    if np.min(y) < 0 or (loss == "gamma" and np.min(y) == 0):
        raise ValueError(
            f"y must hold {what} {'> 0' if loss == 'gamma' else '>= 0'} for the {loss} loss, got {np.min(y):g}"
        )
    if np.max(y) > MOST:
        raise ValueError(f"y must hold {what} up to {MOST:g} for the {loss} loss, got {np.max(y):g}: rescale the data")
    if np.max(y) == 0:
        raise ValueError(f"y is 0 in every row: the {loss} loss then has no minimum")
