"""Stability selection: how often each feature is selected on random subsamples of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import delayed
from sklearn.base import clone, is_classifier
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from ksparse.estimator_base import run_jobs
from ksparse.util.arrays import Vector
from ksparse.util.checks import check_integer, check_n_jobs, check_number

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Stability:
    """Selected features on many subsamples, returned by `selection_stability`.

    Attributes
    ----------
    selected : ndarray of bool
        One row per subsample, one column per feature.
    names : list of str
        Feature names.
    fraction : float
        Fraction of the rows in a subsample.

    Examples
    --------
    >>> import ksparse as ks
    >>> X, y, names = ks.datasets.diabetes()
    >>> found = ks.selection_stability(ks.SparseRegressor(k=2), X, y, n_subsamples=20)
    >>> found.selected.shape, found.frequencies.shape
    ((20, 10), (10,))
    """

    selected: Vector
    names: list[str]
    fraction: float

    @property
    def frequencies(self) -> Vector:
        """Fraction of the subsamples in which each feature was selected."""
        return np.asarray(self.selected.mean(axis=0))

    @property
    def expected_false(self) -> float:
        """Bound q²/(0.8 n) on the expected number of noise features among those with frequency of at least 0.9.

        Here q is the mean number of selected features and n the number of features. The bound assumes `fraction=0.5`
        and exchangeable noise features (Meinshausen and Bühlmann 2010).
        """
        return float(self.selected.sum(axis=1).mean() ** 2 / (0.8 * self.selected.shape[1]))

    def stable(self, least: float = 0.9) -> list[str]:
        """Return the features selected in at least that fraction of the subsamples, the most frequent first."""
        shares = self.frequencies
        return [self.names[j] for j in np.argsort(-shares, kind="stable") if shares[j] >= least]

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row per feature, the most frequent first."""
        import pandas as pd

        table = pd.DataFrame({"feature": self.names, "frequency": self.frequencies})
        return table.sort_values("frequency", ascending=False, kind="stable")

    def __repr__(self) -> str:
        stable = ", ".join(self.stable()) or "no feature"
        subsamples = f"{len(self.selected)} subsamples of {100 * self.fraction:g} % of the rows"
        return f"{subsamples}; selected in at least 90 % of them: {stable}"


def selection_stability(
    estimator: Any, X: Any, y: Any, *, n_subsamples: int = 100, fraction: float = 0.5, sample_weight: Any = None,
    n_jobs: int | None = None, random_state: int = 0,
) -> Stability:  # fmt: skip
    """Fit copies of a selector to random subsamples of the rows and record the features that each copy selects.

    Parameters
    ----------
    estimator : object
        Estimator with `get_support`, such as `SparseRegressor(k=5)`; it is not modified. Subsamples for classifiers are
        stratified.
    X : array-like of shape (n_samples, n_features)
        The data.
    y : array-like of shape (n_samples,)
        Target values.
    n_subsamples : int, default=100
        Number of subsamples, at least 2.
    fraction : float, default=0.5
        Fraction of the rows in a subsample, below 1; rows are drawn without replacement.
    sample_weight : array-like or None, default=None
        Weight of each row in the loss.
    n_jobs : int or None, default=None
        Number of subsamples fitted in parallel; the subsamples do not depend on it.
    random_state : int, default=0
        Seed of the subsamples.

    Returns
    -------
    Stability
        Selected features of each copy, with `frequencies`, `stable(least)` and `expected_false`.

    Raises
    ------
    ValueError, TypeError
        If the estimator has no `get_support`, or an argument has an invalid type or value.

    See Also
    --------
    standard_errors : Standard errors of the coefficients, given the features.

    Examples
    --------
    >>> import ksparse as ks
    >>> X, y, names = ks.datasets.diabetes()
    >>> found = ks.selection_stability(ks.SparseRegressor(k=2), X, y, n_subsamples=20)
    >>> [names[int(name[1:])] for name in found.stable()]
    ['bmi', 's5']
    """
    if not hasattr(estimator, "get_support"):
        raise TypeError(f"estimator must select features (get_support), got {type(estimator).__name__}")
    count = check_integer(n_subsamples, "n_subsamples", 2)
    share = check_number(fraction, "fraction", above=0, below=1)
    rng = np.random.default_rng(check_integer(random_state, "random_state", 0))
    strata = np.unique(np.asarray(y), return_inverse=True)[1] if is_classifier(estimator) else np.zeros(len(y), int)
    smallest = 1 if is_classifier(estimator) else 2
    weight = None if sample_weight is None else np.asarray(sample_weight)
    drawn = [_subsample(rng, strata, share, smallest) for _ in range(count)]
    jobs = [delayed(_support)(clone(estimator), X, y, weight, rows) for rows in drawn]
    found = run_jobs(jobs, check_n_jobs(n_jobs), "subsamples")
    return Stability(np.array([support for support, _ in found]), found[0][1], share)


def _subsample(rng: np.random.Generator, strata: Vector, share: float, smallest: int) -> Vector:
    """Return random rows: a share of each stratum, at least `smallest` of them."""
    parts = [np.flatnonzero(strata == label) for label in range(strata.max() + 1)]
    drawn = [rng.choice(part, max(smallest, round(share * part.size)), replace=False) for part in parts]
    return np.sort(np.concatenate(drawn))


def _support(estimator: Any, X: Any, y: Any, weight: Vector | None, rows: Vector) -> tuple[Vector, list[str]]:
    """Return the features that one copy selects, and the feature names."""
    options = {} if weight is None else {"sample_weight": weight[rows]}
    estimator.fit(_safe_indexing(X, rows), _safe_indexing(y, rows), **options)
    check_is_fitted(estimator)
    support = np.asarray(estimator.get_support())
    names = getattr(estimator, "feature_names_in_", None)
    return support, [f"x{j}" for j in range(support.size)] if names is None else [str(name) for name in names]
