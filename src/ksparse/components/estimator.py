"""Sparse principal component analysis."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
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
from ksparse.util.checks import check_integer, check_n_jobs, check_size


@fill_docstrings()
class SparsePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SparseEstimator):
    """Principal components with at most k nonzero loadings each.

    Works for far more features than samples: no covariance is formed.

    Parameters
    ----------
    n_components : int, default=2
        How many.
    k : int or sequence of int, default=5
        Nonzero loadings at most, one number or one per component; more than features is no restriction, and a warning says so.
    nonnegative : bool, default=False
        Whether loadings must be at or above 0.
    deflation : {"projection", "hotelling", "orthogonal"}, default="projection"
        How a component is taken out before the next is sought.
    scale : bool, default=True
        Standardise the columns, so that correlations count; otherwise covariances.
    {effort, n_jobs, random_state, gap}
    max_time : float or None, default=None
        Time limit in seconds for all components; the best solution found so far is kept, with a `ConvergenceWarning`.
    {verbose}

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Unit vectors; their sign makes the largest loading positive.
    n_components_ : int
        How many there are, fewer than asked for where the variance is used up.
    explained_variance_ : ndarray
        What each component adds to the ones before it: the variance of its scores that theirs do not explain, so that correlated components
        are not counted twice.
    explained_variance_ratio_ : ndarray
        Its share of the whole.
    mean_ : ndarray
        Taken off.
    scale_ : ndarray
        Divided by.
    result_ : list of Result
        The full answer of each component.
    {n_iter_, n_features_in_, feature_names_in_}

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> X, _, names = ks.datasets.breast_cancer()
    >>> np.count_nonzero(ks.SparsePCA(2, k=[5, 3]).fit(X).components_, axis=1)
    array([5, 3])
    """

    def __init__(
        self,
        n_components: int = 2,
        k: Any = 5,
        *,
        nonnegative: bool = False,
        deflation: str = "projection",
        scale: bool = True,
        effort: int | None = None,
        n_jobs: int | None = None,
        random_state: int | None = None,
        gap: float | None = None,
        max_time: float | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.k = k
        self.nonnegative = nonnegative
        self.deflation = deflation
        self.scale = scale
        self.effort = effort
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.gap = gap
        self.max_time = max_time
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> SparsePCA:
        """Find the components.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The table; a sparse one stays sparse.
        y : object, default=None
            Ignored.

        Returns
        -------
        SparsePCA
            Itself, fitted.
        """
        X = validate_X(self, X, ensure_min_samples=2, accept_sparse=["csc", "csr"], single=True)
        check_size(X, "X", getattr(self, "feature_names_in_", None))
        check_n_jobs(self.n_jobs)
        if self.deflation not in DEFLATIONS:
            raise ValueError(f"deflation must be one of {', '.join(DEFLATIONS)}, got {self.deflation!r}")
        most = min(X.shape)
        count = check_integer(self.n_components, "n_components", 1)
        if count > most:
            raise ValueError(
                f"n_components={count} must be at most {most}: n_samples={X.shape[0]}, n_features={X.shape[1]}"
            )
        task = Task(self, X, y)
        found = sparse_components(
            X, self._sizes(X.shape[1]), count, scale=self.scale, nonnegative=self.nonnegative, deflation=self.deflation,
            max_time=self.max_time, effort=self.effort, n_jobs=self.n_jobs, random_state=self.random_state,
            gap=self.gap, verbose=self.verbose, callback=task.callback,
        )  # fmt: skip
        self.components_, self.result_ = to_input_dtype(found.loadings, X), found.results
        self.n_components_ = self._n_features_out = len(found.loadings)
        self.mean_ = to_input_dtype(found.mean, X)
        self.scale_ = to_input_dtype(
            np.where(found.deviation > 0, found.deviation, 1.0) if self.scale else np.ones(X.shape[1]), X
        )
        total = found.total if found.total > 0 else 1.0
        self.explained_variance_ = to_input_dtype(found.variance, X)
        self.explained_variance_ratio_ = to_input_dtype(found.variance / total, X)
        self.n_iter_ = max(1, *(result.nit for result in found.results))
        for result in found.results:
            warn_if_stopped(result, type(self).__name__)
        task.end()
        return self

    def transform(self, X: Any) -> np.ndarray[Any, Any]:
        """The scores of the components.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The table; a sparse one stays sparse.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            One row per row of X.
        """
        check_is_fitted(self)
        X = validate_X(self, X, reset=False, accept_sparse=["csr", "csc"], single=True)
        if scipy.sparse.issparse(X):  # centred by what the means would score
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
        """The table closest to rows that have these scores.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Scores.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            In the units of the table that was fitted.
        """
        check_is_fitted(self)
        scores = np.asarray(X)
        scores = scores if scores.dtype == np.float32 else scores.astype(float)
        return np.asarray(scores @ np.linalg.pinv(self.components_).T * self.scale_ + self.mean_)
