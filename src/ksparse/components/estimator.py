"""Sparse principal component analysis."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ksparse.components.problem import DEFLATIONS, sparse_components
from ksparse.estimator_base import (
    SparseEstimator,
    Task,
    clip_k,
    fill_docstrings,
    to_input_dtype,
    validate_X,
    warn_if_stopped,
    with_callbacks,
)
from ksparse.util.checks import check_choice, check_integer, check_n_jobs, check_size


@fill_docstrings()
@dataclass(eq=False, repr=False)
class SparsePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SparseEstimator):
    """Principal components with at most k nonzero loadings each.

    Works for far more features than samples: no covariance is formed.

    Parameters
    ----------
    n_components : int, default=2
        Number of components.
    k : int or sequence of int, default=5
        Maximum number of nonzero loadings, one number or one per component. A k above the number of features is reduced
        to it, with a warning.
    nonnegative : bool, default=False
        Whether loadings must be nonnegative.
    deflation : {"projection", "hotelling", "orthogonal"}, default="projection"
        How each component is removed before the next is computed.
    scale : bool, default=True
        Whether to standardise the columns, which analyses correlations; otherwise covariances.
    {effort, n_jobs, random_state, gap}
    max_time : float or None, default=None
        Time limit in seconds for all components; the best solution found so far is kept, with a `ConvergenceWarning`.
    {verbose}

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Unit vectors; their sign makes the largest loading positive.
    n_components_ : int
        Number of components, less than requested if no variance is left.
    explained_variance_ : ndarray
        Variance of the scores of each component that earlier components do not explain (Zou, Hastie and Tibshirani
        2006).
    explained_variance_ratio_ : ndarray
        Fraction of the total variance.
    mean_ : ndarray
        Column means.
    scale_ : ndarray
        Column scales.
    result_ : list of Result
        Result of the search for each component.
    {n_iter_, n_features_in_, feature_names_in_}

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> X, _, names = ks.datasets.breast_cancer()
    >>> np.count_nonzero(ks.SparsePCA(2, k=[5, 3]).fit(X).components_, axis=1)
    array([5, 3])
    """

    n_components: int = 2
    k: Any = 5
    _: KW_ONLY
    nonnegative: bool = False
    deflation: str = "projection"
    scale: bool = True
    effort: int | None = None
    n_jobs: int | None = None
    random_state: int | None = None
    gap: float | None = None
    max_time: float | None = None
    verbose: int = 0

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> SparsePCA:
        """Compute the components.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data; sparse data stay sparse.
        y : object, default=None
            Ignored.

        Returns
        -------
        SparsePCA
            The fitted estimator.
        """
        X = validate_X(self, X, ensure_min_samples=2, accept_sparse=["csc", "csr"], single=True)
        check_size(X, "X", getattr(self, "feature_names_in_", None))
        check_n_jobs(self.n_jobs)
        check_choice(self.deflation, "deflation", DEFLATIONS)
        (m, n), most = X.shape, min(X.shape)
        count = check_integer(self.n_components, "n_components", 1)
        if count > most:
            raise ValueError(f"n_components={count} must be at most {most}: n_samples={m}, n_features={n}")
        task = Task(self, X, y)
        found = sparse_components(
            X, self._sizes(X.shape[1]), count, scale=self.scale, nonnegative=self.nonnegative, deflation=self.deflation,
            max_time=self.max_time, effort=self.effort, n_jobs=self.n_jobs, random_state=self.random_state,
            gap=self.gap, verbose=self.verbose, callback=task.callback,
        )  # fmt: skip
        self.components_, self.result_ = to_input_dtype(found.loadings, X), found.results
        self.n_components_ = self._n_features_out = len(found.loadings)
        self.mean_ = to_input_dtype(found.mean, X)
        self.scale_ = to_input_dtype(np.where((found.deviation > 0) & self.scale, found.deviation, 1.0), X)
        total = found.total if found.total > 0 else 1.0
        self.explained_variance_ = to_input_dtype(found.variance, X)
        self.explained_variance_ratio_ = to_input_dtype(found.variance / total, X)
        self.n_iter_ = max(1, *(result.nit for result in found.results))
        for result in found.results:
            warn_if_stopped(result, type(self).__name__)
        task.end()
        return self

    def transform(self, X: Any) -> np.ndarray[Any, Any]:
        """Return the scores of the components.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data; sparse data stay sparse.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            Scores, one row per row of X.
        """
        check_is_fitted(self)
        X = validate_X(self, X, reset=False, accept_sparse=["csr", "csc"], single=True)
        if scipy.sparse.issparse(X):
            loadings = self.components_ / self.scale_
            return np.asarray(X @ loadings.T - self.mean_ @ loadings.T)
        return np.asarray(((X - self.mean_) / self.scale_) @ self.components_.T)

    def _sizes(self, n: int) -> Any:
        """Return k for every component, at most n."""
        one = isinstance(self.k, numbers.Number | str) or not isinstance(self.k, Iterable)
        sizes = [clip_k(check_integer(k, "k", 1), n, "features", self) for k in ([self.k] if one else self.k)]
        return sizes[0] if one else sizes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def inverse_transform(self, X: Any) -> np.ndarray[Any, Any]:
        """Return the data closest to the given scores.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Scores.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Data in the units of the fitted X.
        """
        check_is_fitted(self)
        scores = np.asarray(X)
        scores = scores if scores.dtype == np.float32 else scores.astype(float)
        return np.asarray(scores @ np.linalg.pinv(self.components_).T * self.scale_ + self.mean_)
