"""How sure a selection is: which features come again when half of the rows are left out."""

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
    """In which of many subsamples each feature was selected: what `selection_stability` returns.

    Attributes
    ----------
    selected : ndarray of bool
        One row per subsample, one column per feature.
    names : list of str
        Of the features.
    fraction : float
        Of the rows in a subsample.

    Examples
    --------
    >>> import ksparse as ks
    >>> X, y, names = ks.datasets.diabetes()
    >>> found = ks.selection_stability(ks.SparseRegressor(k=2), X, y, n_subsamples=20)
    >>> found.selected.shape, found.frequencies.shape
    ((20, 10), (10,))
    """

    selected: Vector  # one row per subsample, one column per feature
    names: list[str]
    fraction: float  # of the rows in a subsample

    @property
    def frequencies(self) -> Vector:
        """In which share of the subsamples each feature was selected."""
        return np.asarray(self.selected.mean(axis=0))

    @property
    def expected_false(self) -> float:
        """The bound of Meinshausen and Bühlmann (2010) on how many features above a share of 0.9 are noise, in the mean: q²/(0.8 n)."""
        return float(self.selected.sum(axis=1).mean() ** 2 / (0.8 * self.selected.shape[1]))

    def stable(self, least: float = 0.9) -> list[str]:
        """The features that were selected in at least that share of the subsamples, the most frequent first."""
        shares = self.frequencies
        return [self.names[j] for j in np.argsort(-shares, kind="stable") if shares[j] >= least]

    def to_frame(self) -> pd.DataFrame:
        """One row per feature, the most frequent first."""
        import pandas as pd

        return pd.DataFrame({"feature": self.names, "share": self.frequencies}).sort_values(
            "share", ascending=False, kind="stable"
        )

    def __repr__(self) -> str:
        stable, share = self.stable(), f"{100 * self.fraction:g} %"
        return f"{len(self.selected)} subsamples of {share} of the rows; in at least 90 % of them: {', '.join(stable) or 'no feature'}"


def selection_stability(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    n_subsamples: int = 100,
    fraction: float = 0.5,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    random_state: int = 0,
) -> Stability:
    """Fit copies of a selector to subsamples of the rows, drawn without replacement, and count what each selects.

    Parameters
    ----------
    estimator : object
        Any with `get_support`, such as `SparseRegressor(k=5)`; it stays as it is. Classifiers keep the shares of their classes.
    X : array-like of shape (n_samples, n_features)
        The table.
    y : array-like of shape (n_samples,)
        The target.
    n_subsamples : int, default=100
        How many, 2 at least.
    fraction : float, default=0.5
        Of the rows in a subsample, below 1.
    sample_weight : array-like or None, default=None
        Multiplies the loss of a row.
    n_jobs : int or None, default=None
        Subsamples that are fitted beside each other, in processes; what is drawn does not depend on it.
    random_state : int, default=0
        The seed of what is drawn.

    Returns
    -------
    Stability
        What each copy selected: `frequencies`, `stable(share)`, `expected_false`.

    Raises
    ------
    ValueError, TypeError
        If the estimator selects no features, or a number is out of range; the message names the argument.

    See Also
    --------
    standard_errors : How far the coefficients may be off, given the features.

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
    share = check_number(fraction, "fraction", above=0)
    if share >= 1.0:
        raise ValueError(f"fraction must be a share below 1, got {share:g}")
    rows = len(y)
    rng = np.random.default_rng(check_integer(random_state, "random_state", 0))
    drawn = [_drawn(rng, y, rows, share, is_classifier(estimator)) for _ in range(count)]
    weight = None if sample_weight is None else np.asarray(sample_weight)
    jobs = [delayed(_support)(clone(estimator), X, y, weight, chosen) for chosen in drawn]
    found = run_jobs(jobs, check_n_jobs(n_jobs), "subsamples")
    names = found[0][1]
    return Stability(np.array([support for support, _ in found]), names, share)


def _drawn(rng: np.random.Generator, y: Any, rows: int, share: float, by_class: bool) -> Vector:
    """Some of the rows; of each class its share, one at least."""
    if not by_class:
        return np.sort(rng.choice(rows, max(2, round(share * rows)), replace=False))
    labels = np.unique(np.asarray(y), return_inverse=True)[1]
    parts = [np.flatnonzero(labels == label) for label in range(labels.max() + 1)]
    return np.sort(
        np.concatenate([rng.choice(part, max(1, round(share * part.size)), replace=False) for part in parts])
    )


def _support(estimator: Any, X: Any, y: Any, weight: Vector | None, rows: Vector) -> tuple[Vector, list[str]]:
    """What one copy selects, and what the features are called."""
    told = {} if weight is None else {"sample_weight": weight[rows]}
    estimator.fit(_safe_indexing(X, rows), _safe_indexing(y, rows), **told)
    check_is_fitted(estimator)
    support = np.asarray(estimator.get_support())
    names = getattr(estimator, "feature_names_in_", None)
    return support, [f"x{j}" for j in range(support.size)] if names is None else [str(name) for name in names]
