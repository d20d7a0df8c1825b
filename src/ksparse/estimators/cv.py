"""Estimators that choose k themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

from ksparse.estimators.callbacks import with_callbacks
from ksparse.estimators.chooses import ChoosesK, path_of
from ksparse.estimators.classifier import SparseClassifier, classes_of
from ksparse.estimators.regressor import LOSSES, SparseRegressor, require_loss
from ksparse.models.losses import LossMaker


class SparseRegressorCV(ChoosesK, SparseRegressor):
    """`SparseRegressor` that chooses k.

    Parameters
    ----------
    ks : the numbers of features to try; None for 1…10, as far as the data allow.
    criterion : "cv", cross-validation by the loss of the rows left out; or "aic", "bic", "ebic" on all rows, for which a loss of your own
        must be a negative log-likelihood.
    cv : folds, as everywhere in scikit-learn. one_standard_error : the least k within one standard error of the best.
    n_jobs : folds that run beside each other.
    The others are those of `SparseRegressor`; max_time is for each path.

    Attributes
    ----------
    k_ : the chosen k. ks_ : those tried. cv_errors_ : one row per fold, one column per k. criterion_ : its value for each k.
    coef_path_, intercept_path_ : the models of every k in ks_, fitted to all rows, one per row; see `plotting.plot_coefficient_path`.
    coef_, intercept_, result_, n_iter_ : of the model with k_ features, fitted to all rows.
    """

    def __init__(
        self,
        ks: Any = None,
        *,
        criterion: str = "cv",
        cv: Any = None,
        one_standard_error: bool = False,
        loss: str | LossMaker = "squared",
        delta: float | None = None,
        C: Any = None,
        positive: Any = False,
        negative: Any = False,
        fit_intercept: bool = True,
        standardize: bool = True,
        alpha: float = 0.0,
        forced_in: Any = (),
        forced_out: Any = (),
        method: str = "auto",
        effort: int | None = None,
        n_restarts: int | None = None,
        n_jobs: int | None = None,
        random_state: int | None = None,
        max_time: float | None = None,
        verbose: int = 0,
    ) -> None:
        self.ks = ks
        self.criterion = criterion
        self.cv = cv
        self.one_standard_error = one_standard_error
        self.loss = loss
        self.delta = delta
        self.C = C
        self.positive = positive
        self.negative = negative
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.alpha = alpha
        self.forced_in = forced_in
        self.forced_out = forced_out
        self.method = method
        self.effort = effort
        self.n_restarts = n_restarts
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.max_time = max_time
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SparseRegressorCV:
        """Choose k and find the model; sample_weight multiplies the loss of a row, in the folds too."""
        X, y, sample_weight = self._checked(X, y, sample_weight, y_numeric=True)
        require_loss(self.loss, LOSSES, y)
        (fit,), paths = self._choose(X, y, [np.asarray(y, dtype=float)], sample_weight, self.loss)
        (self.coef_path_,), (self.intercept_path_,) = path_of(paths)
        self._keep(fit.coef, fit.intercept, fit.result, fit.result.nit)
        return self


class SparseClassifierCV(ChoosesK, SparseClassifier):
    """`SparseClassifier` that chooses k, the same for every class; parameters and attributes as in `SparseRegressorCV`.

    Cross-validation counts the deviance of the rows left out, summed over the one-against-rest models.
    """

    def __init__(
        self,
        ks: Any = None,
        *,
        criterion: str = "cv",
        cv: Any = None,
        one_standard_error: bool = False,
        C: Any = None,
        positive: Any = False,
        negative: Any = False,
        class_weight: Any = None,
        fit_intercept: bool = True,
        standardize: bool = True,
        alpha: float = 1e-4,
        forced_in: Any = (),
        forced_out: Any = (),
        method: str = "auto",
        effort: int | None = None,
        n_restarts: int | None = None,
        n_jobs: int | None = None,
        random_state: int | None = None,
        max_time: float | None = None,
        verbose: int = 0,
    ) -> None:
        self.ks = ks
        self.criterion = criterion
        self.cv = cv
        self.one_standard_error = one_standard_error
        self.C = C
        self.positive = positive
        self.negative = negative
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.alpha = alpha
        self.forced_in = forced_in
        self.forced_out = forced_out
        self.method = method
        self.effort = effort
        self.n_restarts = n_restarts
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.max_time = max_time
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SparseClassifierCV:
        """Choose k and find the model; sample_weight multiplies the loss of a row, in the folds too."""
        X, y, sample_weight = self._checked(X, y, sample_weight)
        self.classes_, targets = classes_of(y, sample_weight)
        sample_weight = self._by_class(y, sample_weight)
        fits, paths = self._choose(X, y, targets, sample_weight, "logistic")
        self.coef_path_, self.intercept_path_ = path_of(paths)
        self._keep([fit.coef for fit in fits], [fit.intercept for fit in fits], [fit.result for fit in fits])
        return self
