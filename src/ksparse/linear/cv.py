"""Estimators that choose k themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

from ksparse.estimator_base import to_input_dtype, with_callbacks
from ksparse.linear.choose_k import ChoosesK, path_of
from ksparse.linear.classifier import SparseClassifier, classes_of
from ksparse.linear.losses import LossMaker
from ksparse.linear.regressor import LOSSES, SparseRegressor, require_loss
from ksparse.util.resources import one_thread


class SparseRegressorCV(ChoosesK, SparseRegressor):
    """`SparseRegressor` that chooses k; of a y with several columns, k features for all of them at once.

    Parameters
    ----------
    ks : iterable of int or None, default=None
        The numbers of features to try; None for 1 to 10, as far as the data allow.
    criterion : {"cv", "aic", "bic", "ebic"}, default="cv"
        Cross-validation by the loss of the rows left out; or an information criterion on all rows, for which a loss of your own must be a
        negative log-likelihood.
    cv : int, splitter or None, default=None
        Folds, as everywhere in scikit-learn.
    one_standard_error : bool, default=False
        Take the least k within one standard error of the best.
    loss : str or class, default="squared"
        "squared", "huber", "quantile" (the median), "poisson", "negative_binomial" (counts), "gamma", "tweedie" (amounts; all four with a
        log link), or a class of your own, called as loss(A, b, sample_weight, ridge): a `ks.DataFit` or any `ks.Loss`. Then b is y as it
        is, and `predict` gives the linear score. Of ours with parameters too: `functools.partial(ks.Quantile, tau=0.9)`.
    delta : float or None, default=None
        δ of the huber loss in the units of y; None for 1.345 robust standard deviations of y.
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
        Folds that run beside each other.
    random_state : int or None, default=None
        Their seed; the same seed gives the same answer, whatever n_jobs.
    max_time : float or None, default=None
        Seconds for each path; the best models so far are kept, with a `ConvergenceWarning`.
    verbose : int, default=0
        Whether to print a table of the search.

    Attributes
    ----------
    k_ : int
        The chosen k.
    ks_ : ndarray
        Those tried.
    cv_errors_ : ndarray of shape (n_folds, n_ks)
        Mean error on the rows left out, where k was chosen by cross-validation.
    criterion_ : ndarray
        Its value for each k, where k was chosen by a criterion.
    coef_path_ : ndarray of shape (n_ks, n_features) or (n_targets, n_ks, n_features)
        The models of every k in `ks_`, fitted to all rows; see `ks.plotting.plot_coefficient_path`, one target at a time.
    intercept_path_ : ndarray of shape (n_ks,) or (n_targets, n_ks)
        Their intercepts.
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        The model with `k_` features, fitted to all rows.
    intercept_ : float or ndarray of shape (n_targets,)
        What is added.
    result_ : Result
        The full answer, in scaled variables.
    n_iter_ : int
        Iterations.
    n_features_in_ : int
        Features that fit has seen.
    feature_names_in_ : ndarray of str
        Their names, where X has any.

    See Also
    --------
    SparseRegressor : For a given k.

    Examples
    --------
    >>> import ksparse as ks
    >>> X, y, names = ks.datasets.diabetes()
    >>> ks.SparseRegressorCV(range(1, 9), criterion="bic").fit(X, y).k_
    5
    """

    multi_output = "common"

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
        groups: Any = None,
        group_limits: Any = None,
        requires: Any = None,
        method: str = "auto",
        effort: int | None = None,
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
        self.groups = groups
        self.group_limits = group_limits
        self.requires = requires
        self.method = method
        self.effort = effort
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.max_time = max_time
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SparseRegressorCV:
        """Choose k and find the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The table; sparse, by blocks or on a cluster too.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            The target, or several that share their features.
        sample_weight : array-like or None, default=None
            Multiplies the loss of a row, in the folds too.

        Returns
        -------
        SparseRegressorCV
            Itself, fitted.
        """
        X, y, sample_weight = self._checked(X, y, sample_weight, y_numeric=True)
        require_loss(self.loss, LOSSES, y)
        self._require_targets(y)
        with one_thread():
            (fit,), paths = self._choose(X, y, [np.asarray(y, dtype=float)], sample_weight, self.loss)
        coefs, shifts = path_of(paths)
        several = y.ndim == 2
        self.coef_path_: Any = to_input_dtype(coefs if several else coefs[0], X)
        self.intercept_path_: Any = to_input_dtype(shifts if several else shifts[0], X)
        self._keep(X, fit.coef, fit.intercept, fit.result, fit.result.nit)
        return self


class SparseClassifierCV(ChoosesK, SparseClassifier):
    """`SparseClassifier` that chooses k.

    Cross-validation counts the deviance of the rows left out, for "ovr" summed over the one-against-rest models.

    Parameters
    ----------
    ks : iterable of int or None, default=None
        The numbers of features to try; None for 1 to 10, as far as the data allow.
    criterion : {"cv", "aic", "bic", "ebic"}, default="cv"
        Cross-validation by the loss of the rows left out; or an information criterion on all rows.
    cv : int, splitter or None, default=None
        Folds, as everywhere in scikit-learn.
    one_standard_error : bool, default=False
        Take the least k within one standard error of the best.
    multi_class : {"multinomial", "ovr"}, default="multinomial"
        For more than two classes: one multinomial model whose k features serve all classes; or a logistic model for each class against the
        rest, with k features of its own. C, signs and the paper's methods are for the latter.
    C : ConvexSet or None, default=None
        A set for the coefficients, in the units of X, such as `ks.Simplex()`; None for all of space.
    positive : bool or array-like, default=False
        True, or the features (indices, mask or names) whose coefficient may not be negative.
    negative : bool or array-like, default=False
        True, or the features (indices, mask or names) whose coefficient may not be positive.
    class_weight : dict, "balanced" or None, default=None
        Weights by class, times `sample_weight`; "balanced": classes count alike, however many rows they have.
    fit_intercept : bool, default=True
        Whether there is an intercept; it is free and not counted in k.
    standardize : bool, default=True
        Scale the columns for the search; undone in `coef_`. With a C that is more than bounds they stay as they are.
    alpha : float, default=1e-4
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
        Folds that run beside each other.
    random_state : int or None, default=None
        Their seed; the same seed gives the same answer, whatever n_jobs.
    max_time : float or None, default=None
        Seconds for each path; the best models so far are kept, with a `ConvergenceWarning`.
    verbose : int, default=0
        Whether to print a table of the search.

    Attributes
    ----------
    k_ : int
        The chosen k.
    ks_ : ndarray
        Those tried.
    cv_errors_ : ndarray of shape (n_folds, n_ks)
        Mean error on the rows left out, where k was chosen by cross-validation.
    criterion_ : ndarray
        Its value for each k, where k was chosen by a criterion.
    coef_path_ : ndarray of shape (1 or n_classes, n_ks, n_features)
        The models of every k in `ks_`, fitted to all rows; see `ks.plotting.plot_coefficient_path`, one class at a time.
    intercept_path_ : ndarray of shape (1 or n_classes, n_ks)
        Their intercepts.
    classes_ : ndarray
        The labels.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        The models with `k_` features, fitted to all rows.
    intercept_ : ndarray
        One entry per row of `coef_`.
    result_ : Result or list of Result
        The full answer in scaled variables; one per class for "ovr".
    n_iter_ : int
        Iterations.
    n_features_in_ : int
        Features that fit has seen.
    feature_names_in_ : ndarray of str
        Their names, where X has any.

    See Also
    --------
    SparseClassifier : For a given k.

    Examples
    --------
    >>> import ksparse as ks
    >>> X, y, names = ks.datasets.breast_cancer()
    >>> ks.SparseClassifierCV(range(1, 4), cv=3).fit(X, y).k_ in (1, 2, 3)
    True
    """

    def __init__(
        self,
        ks: Any = None,
        *,
        criterion: str = "cv",
        cv: Any = None,
        one_standard_error: bool = False,
        multi_class: str = "multinomial",
        C: Any = None,
        positive: Any = False,
        negative: Any = False,
        class_weight: Any = None,
        fit_intercept: bool = True,
        standardize: bool = True,
        alpha: float = 1e-4,
        forced_in: Any = (),
        forced_out: Any = (),
        groups: Any = None,
        group_limits: Any = None,
        requires: Any = None,
        method: str = "auto",
        effort: int | None = None,
        n_jobs: int | None = None,
        random_state: int | None = None,
        max_time: float | None = None,
        verbose: int = 0,
    ) -> None:
        self.ks = ks
        self.criterion = criterion
        self.cv = cv
        self.one_standard_error = one_standard_error
        self.multi_class = multi_class
        self.C = C
        self.positive = positive
        self.negative = negative
        self.class_weight = class_weight
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
        self.max_time = max_time
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SparseClassifierCV:
        """Choose k and find the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The table; sparse, by blocks or on a cluster too.
        y : array-like of shape (n_samples,)
            The target.
        sample_weight : array-like or None, default=None
            Multiplies the loss of a row, in the folds too.

        Returns
        -------
        SparseClassifierCV
            Itself, fitted.
        """
        X, y, sample_weight = self._checked(X, y, sample_weight)
        self.classes_, targets = classes_of(y, sample_weight)
        sample_weight = self._by_class(y, sample_weight)
        loss, targets = self._loss(targets)
        with one_thread():
            fits, paths = self._choose(X, y, targets, sample_weight, loss)
        coefs, shifts = path_of(paths)
        self.coef_path_, self.intercept_path_ = to_input_dtype(coefs, X), to_input_dtype(shifts, X)
        self._keep(X, fits)
        return self
