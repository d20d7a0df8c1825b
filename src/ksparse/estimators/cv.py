"""Estimators that choose k themselves."""

from __future__ import annotations

import numbers
import warnings
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import check_cv

from ksparse.base.arrays import Vector
from ksparse.base.checks import check_integer
from ksparse.errors import InfeasibleError
from ksparse.estimators.base import SparseLinear, positions, warn_of_limit
from ksparse.estimators.callbacks import Task, with_callbacks
from ksparse.estimators.choice import CRITERIA, best_k, counted, deviance, information, mean_error, robust_delta
from ksparse.estimators.classifier import SparseClassifier, classes_of
from ksparse.estimators.regressor import LOSSES, SparseRegressor, require_loss
from ksparse.models.linear import LinearFit
from ksparse.models.losses import LossMaker
from ksparse.sets import require_sparse_member


def _different_rows(X: Any, weight: Any) -> int:
    """How many rows say something of their own; counted where there are few, and it could matter."""
    counted = X if weight is None else X[weight > 0]
    if counted.shape[0] > 1_000:
        return int(counted.shape[0])
    return len(np.unique(counted.toarray() if scipy.sparse.issparse(counted) else counted, axis=0))


class ChoosesK(SparseLinear):
    """k by cross-validation or by an information criterion, along one warm-started path of models per fold and class."""

    _targets: ClassVar[bool] = False

    def _sizes(self, X: Any, weight: Any) -> Vector:
        n = X.shape[1]
        if self.ks is None:
            first = self._least(n)
            return np.arange(first, max(first, min(10, n, _different_rows(X, weight) // 2)) + 1)
        if isinstance(self.ks, numbers.Number):
            raise TypeError(f"ks must be a sequence of numbers of features, got {self.ks!r}; for one k use the estimator without CV")
        sizes = sorted({min(check_integer(k, "ks", 1), n) for k in self.ks})
        if not sizes:
            raise ValueError("ks must hold at least one k, got none")
        return np.array(sizes)

    def _least(self, n: int) -> int:
        """The least k that the forced features and C allow."""
        least = max(1, len(positions(self.forced_in, "forced_in", n, getattr(self, "feature_names_in_", None))))
        for k in range(least, n + 1 if self.C is not None else least):
            try:
                require_sparse_member(self.C.for_length(n), n, k)
            except InfeasibleError:
                continue
            return k
        return least

    def _path(self, X: Any, y: Vector, weight: Any, loss: str | LossMaker, ks: Vector) -> list[LinearFit]:
        options = {key: value for key, value in self._options().items() if key != "n_jobs"}
        if self.method == "auto":
            return self._problem(X, y, weight, loss).path(ks, **options)
        problem = self._problem(X, y, weight, loss)
        return [problem.minimize(int(k), method=self.method, **options) for k in ks]

    def _choose(self, X: Any, y: Any, targets: list[Vector], weight: Any, loss: str | LossMaker) -> list[LinearFit]:
        """The chosen model for each target; sets k_, ks_ and what the choice was made by."""
        if self.criterion not in CRITERIA:
            raise ValueError(f"criterion must be one of {', '.join(CRITERIA)}, got {self.criterion!r}")
        self.ks_ = ks = self._sizes(X, weight)
        task = Task(self, X, y)
        paths = [self._path(X, target, weight, loss, ks) for target in targets]
        task.step("path")
        w = counted(weight, X.shape[0])
        if self.criterion == "cv":
            self.cv_errors_ = self._fold_errors(X, y, targets, weight, loss, ks)
            self.k_ = best_k(ks, self.cv_errors_, self.one_standard_error)
        else:
            scores = [self._deviances(X, target, path, weight, w, loss) for target, path in zip(targets, paths, strict=True)]
            used = np.array([[np.count_nonzero(fit.coef) for fit in path] for path in paths]).sum(axis=0)
            self.criterion_ = information(self.criterion, np.sum(scores, axis=0), used, float(w.sum()), X.shape[1] * len(targets))
            self.k_ = int(ks[np.argmin(self.criterion_)])
        task.end()
        chosen = [path[int(np.flatnonzero(ks == self.k_)[0])] for path in paths]
        for fit in chosen:
            warn_of_limit(fit.result, type(self).__name__)
        return chosen

    def _deviances(self, X: Any, y: Vector, path: list[LinearFit], weight: Any, w: Vector, loss: str | LossMaker) -> list[float]:
        """The deviance of every model of a path."""
        scores = [X @ fit.coef + fit.intercept for fit in path]
        delta = robust_delta(loss, y - scores[-1], weight)
        return [deviance(loss, y, score, w, delta) for score in scores]

    def _fold_errors(self, X: Any, y: Any, targets: list[Vector], weight: Any, loss: str | LossMaker, ks: Vector) -> Vector:
        """The mean error on the rows left out, one row per fold, one column per k; the folds run beside each other."""
        folds = list(check_cv(self.cv, y, classifier=loss == "logistic").split(X, y))
        if weight is not None:
            folds = [(train, test) for train, test in folds if weight[test].any()]  # rows without weight choose nothing
        rows = Parallel(n_jobs=self.n_jobs)(delayed(self._one_fold)(X, targets, weight, loss, ks, train, test) for train, test in folds)
        return np.array(rows)

    def _one_fold(
        self, X: Any, targets: list[Vector], weight: Any, loss: str | LossMaker, ks: Vector, train: Vector, test: Vector
    ) -> Vector:
        errors, inside = np.zeros(len(ks)), None if weight is None else weight[train]
        outside = np.ones(len(test)) if weight is None else weight[test]
        for target in targets:
            y = target[train]
            seen = y if inside is None else y[inside > 0]
            if not seen.size:
                raise ValueError("sample_weight is 0 on all training rows of a fold: use other folds")
            if loss == "logistic" and np.ptp(seen) == 0:
                raise ValueError("a class is missing from the training rows of a fold: use fewer folds, or stratified ones")
            delta = robust_delta(loss, y, inside)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                path = self._path(X[train], y, inside, loss, ks)
            errors += np.array([mean_error(loss, target[test], X[test] @ fit.coef + fit.intercept, outside, delta) for fit in path])
        return errors


class SparseRegressorCV(ChoosesK, SparseRegressor):
    """`SparseRegressor` that chooses k.

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
        "squared", "huber" (δ is 1.345 robust standard deviations of y), "poisson" (counts, log link), or a class of your own, called as
        loss(A, b, sample_weight, ridge): a `ks.DataFit` or any `ks.Loss`. Then b is y as it is, and `predict` gives the linear score.
    C : ConvexSet or None, default=None
        A set for the coefficients, in the units of X, such as `ks.Simplex()`; None for all of space.
    positive : bool or array-like, default=False
        True, or the features (indices, mask or names) whose coefficient may not be negative.
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
    method : str, default="auto"
        "auto", or one of the paper's methods (see `ks.minimize`).
    effort : int or None, default=None
        Whole searches, of which the best counts; None for one, or with max_time as many as bring something in the time.
    n_restarts : int or None, default=None
        The older way to say it: eight are one more unit of effort.
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
    coef_ : ndarray of shape (n_features,)
        The model with `k_` features, fitted to all rows.
    intercept_ : float
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

    def __init__(
        self,
        ks: Any = None,
        *,
        criterion: str = "cv",
        cv: Any = None,
        one_standard_error: bool = False,
        loss: str | LossMaker = "squared",
        C: Any = None,
        positive: Any = False,
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
        self.C = C
        self.positive = positive
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
        SparseRegressorCV
            Itself, fitted.
        """
        X, y, sample_weight = self._checked(X, y, sample_weight, y_numeric=True)
        require_loss(self.loss, LOSSES, y)
        (fit,) = self._choose(X, y, [np.asarray(y, dtype=float)], sample_weight, self.loss)
        self._keep(fit.coef, fit.intercept, fit.result, fit.result.nit)
        return self


class SparseClassifierCV(ChoosesK, SparseClassifier):
    """`SparseClassifier` that chooses k, the same for every class.

    Cross-validation counts the deviance of the rows left out, summed over the one-against-rest models.

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
    C : ConvexSet or None, default=None
        A set for the coefficients, in the units of X, such as `ks.Simplex()`; None for all of space.
    positive : bool or array-like, default=False
        True, or the features (indices, mask or names) whose coefficient may not be negative.
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
    method : str, default="auto"
        "auto", or one of the paper's methods (see `ks.minimize`).
    effort : int or None, default=None
        Whole searches, of which the best counts; None for one, or with max_time as many as bring something in the time.
    n_restarts : int or None, default=None
        The older way to say it: eight are one more unit of effort.
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
    classes_ : ndarray
        The labels.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        The models with `k_` features, fitted to all rows.
    intercept_ : ndarray
        One entry per row of `coef_`.
    result_ : Result or list of Result
        The full answer in scaled variables, one per class where there are several.
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
        C: Any = None,
        positive: Any = False,
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
        fits = self._choose(X, y, targets, sample_weight, "logistic")
        self._keep([fit.coef for fit in fits], [fit.intercept for fit in fits], [fit.result for fit in fits])
        return self
