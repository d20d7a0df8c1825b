"""Regression with at most k features."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.exceptions import ConvergenceWarning

from ksparse.estimator_base import Task, fill_docstrings, to_input_dtype, warn, with_callbacks
from ksparse.linear.base import SparseLinear
from ksparse.linear.loss_names import LOG_LINK, OF_NUMBERS, LossLike, check_loss
from ksparse.linear.problem import ManyFits, can_batch_targets, fit_batched, fit_one_by_one

COUNTS = ("poisson", "negative_binomial")
MAX_COUNT = 1e15  # larger counts are not exact in double precision


@fill_docstrings()
@dataclass(eq=False, repr=False, kw_only=True)
class SparseRegressor(RegressorMixin, SparseLinear):
    """Linear regression with at most k features.

    Parameters
    ----------
    {k, loss, delta}
    multi_output : {"independent", "common"}, default="independent"
        For a y with several columns: "independent" selects features for each target; "common" selects the same k
        features for all targets, by the sum of their squared losses (scale the targets by their importance).
    {C, positive, negative, fit_intercept, standardize, alpha, forced_in, forced_out, groups, group_limits, requires}
    {method, effort, n_jobs, random_state, gap, max_time, verbose}

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        Coefficients; at most k are nonzero, and signs hold exactly. One row per column of y if y has several columns:
        with "independent", squared losses under sign constraints are solved together (see `ks.minimize_many`); "common"
        uses `ks.MultiResponse`.
    intercept_ : float or ndarray of shape (n_targets,)
        Intercept.
    result_ : Result
        Result of the search, in scaled variables; a `ks.Batch` or a list for several targets.
    {n_iter_, n_features_in_, feature_names_in_}

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

    k: int = field(default=5, kw_only=False)
    loss: LossLike = "squared"
    delta: float | None = None
    multi_output: str = "independent"
    _several_targets: ClassVar[bool] = True

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SparseRegressor:
        """Fit the model.

        Parameters
        ----------
        {X}
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Target values.
        {sample_weight}

        Returns
        -------
        SparseRegressor
            The fitted estimator.
        """
        X, y, sample_weight = self._validated(X, y, sample_weight, y_numeric=True)
        check_loss_of_target(self.loss, y)
        self._check_multi_output(y)
        task = Task(self, X, y)
        if y.ndim == 2 and self.multi_output == "independent":
            fits = self._solve_independent(X, np.asarray(y, dtype=float), sample_weight, task)
            self._keep(X, fits.coef, fits.intercept, fits.results, 1)
        else:
            fit = self._solve(self._problem(X, y, sample_weight, self.loss), task.callback)
            self._keep(X, fit.coef, fit.intercept, fit.result, fit.result.nit)
        task.end()
        return self

    def _check_multi_output(self, y: Any) -> None:
        if self.multi_output not in ("independent", "common"):
            raise ValueError(f'multi_output must be "independent" or "common", got {self.multi_output!r}')
        if y.ndim == 2 and self.multi_output == "common":
            for name, needed in (("loss", "squared"), ("method", "auto")):
                if (given := getattr(self, name)) != needed:
                    raise ValueError(f'multi_output="common" needs {name}="{needed}", got {given!r}')

    def _keep(self, X: Any, coef: Any, intercept: Any, result: Any, n_iter: int) -> None:
        self.coef_, self.intercept_ = to_input_dtype(coef, X, self.C), to_input_dtype(intercept, X)
        self.result_, self.n_iter_ = result, max(1, n_iter)

    def _solve_independent(self, X: Any, Y: np.ndarray[Any, Any], sample_weight: Any, task: Task) -> ManyFits:
        """Fit a model to each target, in one batch if possible; `max_time` is for the batch, or for each target."""
        first, rules = self._problem(X, Y[:, 0], sample_weight, self.loss), self._rules(X.shape[1])
        k = self._clipped_k(X.shape[1])
        if self.method == "auto" and not rules and self.gap is None and can_batch_targets(first):
            options = self._options() | {"effort": 1 if self.effort is None else self.effort}
            fits = fit_batched(first, Y, sample_weight, k, callback=task.callback, **options)
        else:
            options = {"method": self.method, "callback": task.callback, **self._options(), **rules}
            fits = fit_one_by_one(lambda y: self._problem(X, y, sample_weight, self.loss), Y, k, **options)
        if fits.failure is not None:
            warn(f"{type(self).__name__}: {fits.failure.message}", ConvergenceWarning)
        return fits

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """Return predictions; for losses with a log link, of the mean.

        Parameters
        ----------
        {X}

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
            Predicted values.
        """
        score = self._linear_score(X)
        return np.exp(score) if has_log_link(self.loss) else np.asarray(score)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = has_log_link(self.loss)
        # scikit-learn checks several targets with negative values
        tags.target_tags.multi_output = self._several_targets and not tags.target_tags.positive_only
        return tags


def has_log_link(loss: LossLike) -> bool:
    """Return whether exp of the score is the mean."""
    return isinstance(loss, str) and loss in LOG_LINK


def check_loss_of_target(loss: LossLike, y: Any) -> None:
    """Raise an error if the loss is unknown or y is outside its domain."""
    check_loss(loss, OF_NUMBERS)
    if not has_log_link(loss):
        return
    what = "counts" if loss in COUNTS else "amounts"
    if np.min(y) < 0 or (loss == "gamma" and np.min(y) == 0):
        domain = f"{what} {'> 0' if loss == 'gamma' else '>= 0'}"
        raise ValueError(f"y must hold {domain} for the {loss} loss, got {np.min(y):g}")
    if np.max(y) > MAX_COUNT:
        raise ValueError(f"y must hold {what} up to {MAX_COUNT:g} for the {loss} loss, got {np.max(y):g}: rescale y")
    if np.max(y) == 0:
        raise ValueError(f"y is 0 in every row: the {loss} loss then has no minimum")
