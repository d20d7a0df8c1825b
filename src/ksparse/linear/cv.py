"""Linear estimators that choose k."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ksparse.estimator_base import fill_docstrings, to_input_dtype, with_callbacks
from ksparse.linear.choose_k import KSelectionMixin
from ksparse.linear.classifier import SparseClassifier
from ksparse.linear.regressor import SparseRegressor, check_loss_of_target
from ksparse.util.resources import one_thread


@fill_docstrings()
@dataclass(eq=False, repr=False, kw_only=True)
class SparseRegressorCV(KSelectionMixin, SparseRegressor):
    """`SparseRegressor` that chooses k; several columns of y share the same k features.

    Parameters
    ----------
    {ks}
    criterion : {"cv", "aic", "bic", "ebic"}, default="cv"
        "cv": cross-validation of the loss; else an information criterion on all rows, for which a custom loss must be a
        negative log-likelihood.
    {cv, one_standard_error, loss, delta, C, positive, negative, fit_intercept, standardize, alpha}
    {forced_in, forced_out, groups, group_limits, requires, method, effort, n_jobs, random_state, max_time, verbose}

    Attributes
    ----------
    {k_, ks_, cv_errors_, criterion_}
    coef_path_ : ndarray of shape (n_ks, n_features) or (n_targets, n_ks, n_features)
        Coefficients for each k in `ks_`, fitted to all rows; see `ks.plotting.plot_coefficient_path` (one target at a
        time).
    intercept_path_ : ndarray of shape (n_ks,) or (n_targets, n_ks)
        Intercepts for each k.
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        Coefficients of the model with `k_` features, fitted to all rows.
    intercept_ : float or ndarray of shape (n_targets,)
        Intercept.
    result_ : Result
        Result of the search for `k_`, in scaled variables.
    {n_iter_, n_features_in_, feature_names_in_}

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

    # parameters of `SparseRegressor` that this class does not have
    k: ClassVar[Any] = None  # type: ignore[misc]
    gap: ClassVar[None] = None  # type: ignore[misc]
    multi_output: ClassVar[str] = "common"  # type: ignore[misc]

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SparseRegressorCV:
        """Choose k and fit the model.

        Parameters
        ----------
        {X}
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Target values; several targets share their features.
        {sample_weight}

        Returns
        -------
        SparseRegressorCV
            The fitted estimator.
        """
        X, y, sample_weight = self._validated(X, y, sample_weight, y_numeric=True)
        check_loss_of_target(self.loss, y)
        self._check_multi_output(y)
        with one_thread():
            (fit,), coefs, intercepts = self._choose(X, y, [np.asarray(y, dtype=float)], sample_weight, self.loss)
        several = y.ndim == 2
        self.coef_path_: Any = to_input_dtype(coefs if several else coefs[0], X)
        self.intercept_path_: Any = to_input_dtype(intercepts if several else intercepts[0], X)
        self._keep(X, fit.coef, fit.intercept, fit.result, fit.result.nit)
        return self


@fill_docstrings()
@dataclass(eq=False, repr=False, kw_only=True)
class SparseClassifierCV(KSelectionMixin, SparseClassifier):
    """`SparseClassifier` that chooses k.

    Cross-validation uses the deviance of the test rows, with "ovr" summed over the one-vs-rest models.

    Parameters
    ----------
    {ks}
    criterion : {"cv", "aic", "bic", "ebic"}, default="cv"
        "cv": cross-validation of the loss; else an information criterion on all rows.
    {cv, one_standard_error, multi_class, C, positive, negative, class_weight, fit_intercept, standardize, alpha}
    {forced_in, forced_out, groups, group_limits, requires, method, effort, n_jobs, random_state, max_time, verbose}

    Attributes
    ----------
    {k_, ks_, cv_errors_, criterion_}
    coef_path_ : ndarray of shape (1 or n_classes, n_ks, n_features)
        Coefficients for each k in `ks_`, fitted to all rows; see `ks.plotting.plot_coefficient_path` (one class at a
        time).
    intercept_path_ : ndarray of shape (1 or n_classes, n_ks)
        Intercepts for each k.
    classes_ : ndarray
        Class labels.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients of the models with `k_` features, fitted to all rows.
    intercept_ : ndarray
        Intercepts, one per row of `coef_`.
    result_ : Result or list of Result
        Result of the search for `k_`, in scaled variables; one per class for "ovr".
    {n_iter_, n_features_in_, feature_names_in_}

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

    alpha: float = 1e-4
    # parameters of `SparseClassifier` that this class does not have
    k: ClassVar[Any] = None  # type: ignore[misc]
    gap: ClassVar[None] = None  # type: ignore[misc]

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SparseClassifierCV:
        """Choose k and fit the model.

        Parameters
        ----------
        {X}
        y : array-like of shape (n_samples,)
            Class labels.
        {sample_weight}

        Returns
        -------
        SparseClassifierCV
            The fitted estimator.
        """
        X, y, sample_weight, loss, targets = self._prepared(X, y, sample_weight)
        with one_thread():
            fits, coefs, intercepts = self._choose(X, y, targets, sample_weight, loss)
        self.coef_path_, self.intercept_path_ = to_input_dtype(coefs, X), to_input_dtype(intercepts, X)
        self._keep(X, fits)
        return self
