"""Base class and parameter texts of the linear estimators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from ksparse.data import Design
from ksparse.estimator_base import SparseEstimator, check_numeric, clip_k, validate_X, warn_if_stopped
from ksparse.linear.loss_names import LossLike
from ksparse.linear.problem import LinearFit, LinearProblem, linear_problem
from ksparse.result import Status
from ksparse.util.arrays import Vector, on_device, to_numpy
from ksparse.util.checks import SMALLEST, check_integer, check_n_jobs, check_size, check_vector


def feature_indices(given: Any, name: str, n: int, names: Any) -> Vector:
    """Return feature indices from indices, a boolean mask or column names."""
    given = () if given is None else sorted(given) if isinstance(given, set | frozenset) else given
    entries = np.atleast_1d(np.asarray(given))
    if entries.size == 0:
        return np.zeros(0, dtype=np.intp)
    if entries.dtype == bool:
        if entries.shape != (n,):
            raise ValueError(f"{name} as a mask must have one entry per feature, {n}, got shape {entries.shape}")
        return np.flatnonzero(entries)
    if entries.dtype.kind in "OU":
        known = [] if names is None else list(names)
        unknown = [str(entry) for entry in entries if entry not in known]
        if unknown:
            hint = "" if known else ": X has no column names"
            raise ValueError(f"{name} holds {unknown[0]!r}, which is not a feature{hint}")
        return np.array([known.index(entry) for entry in entries], dtype=np.intp)
    if entries.dtype.kind not in "iu" or entries.ndim != 1:
        raise TypeError(f"{name} must be feature indices, names or a mask, got {given!r}")
    low, high = entries.min(), entries.max()
    if low < 0 or high >= n:
        raise ValueError(f"{name} must be feature indices in 0..{n - 1}, got {low if low < 0 else high}")
    return np.asarray(np.unique(entries), dtype=np.intp)


def labels_of(given: Any, name: str, n: int, names: Any, *, own_labels: bool = False) -> list[Any]:
    """Return a label for each feature, from a list, a mapping {feature: label} or a function of the column names.

    Features missing from a mapping share one label, or have one each if `own_labels`.
    """
    if callable(given):
        if names is None:
            advice = 'call set_output(transform="pandas") on the earlier steps; or give a label for each feature'
            raise ValueError(f"{name} is a function of column names, but X has none: in a pipeline, {advice}")
        given = given(list(names))
    if not isinstance(given, Mapping):
        if isinstance(given, str | bytes) or np.shape(given) != (n,):
            kinds = f"have one label per feature, {n}, be {{feature: label}} or a function of names"
            raise ValueError(f"{name} must {kinds}, got {given!r}")
        return list(given)
    labels: list[Any] = [(name, i if own_labels else None) for i in range(n)]
    for feature, label in given.items():
        labels[int(feature_indices([feature], name, n, names)[0])] = label
    return labels


def _required_indices(given: Any, n: int, names: Any, groups: list[Any]) -> Vector:
    """Return the indices of entries of `requires`, where the name of a group stands for its first feature."""
    known = [] if names is None else list(names)
    entries = [given] if isinstance(given, str) else given
    if isinstance(entries, list | tuple):
        texts = {entry: groups.index(entry) for entry in entries if isinstance(entry, str) and entry in groups}
        texts |= {entry: known.index(entry) for entry in entries if isinstance(entry, str) and entry in known}
        entries = [texts.get(entry, entry) if isinstance(entry, str) else entry for entry in entries]
    return feature_indices(entries, "requires", n, names)


@dataclass(eq=False, repr=False, kw_only=True)
class SparseLinear(SelectorMixin, SparseEstimator):
    """Base class of linear models with at most k features; the subclasses define the kinds of y.

    Parameters
    ----------
    k : int, default=5
        Maximum number of features; 0 for the intercept alone. A k above the number of features is reduced to it, with a
        warning.
    loss : str or class, default="squared"
        "squared", "huber", "quantile" (the median), "poisson" and "negative_binomial" (counts), "gamma" and "tweedie"
        (positive or nonnegative amounts), the last four with a log link; or a class, called as loss(A, b,
        sample_weight, ridge): a `ks.DataFit` or any `ks.Loss`. Its b is y unchanged, and `predict` returns the linear
        score. Parameters of built-in losses are set with `functools.partial(ks.Quantile, tau=0.9)`.
    delta : float or None, default=None
        δ of the Huber loss in the units of y; None for 1.345 robust standard deviations of y.
    C : ConvexSet or None, default=None
        Set for the coefficients, in the units of X, such as `ks.Simplex()`; None for no constraint.
    positive : bool or array-like, default=False
        True, or the features (indices, mask or names) whose coefficients must be nonnegative.
    negative : bool or array-like, default=False
        True, or the features (indices, mask or names) whose coefficients must be nonpositive.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied by `sample_weight`; "balanced" gives all classes the same total weight.
    fit_intercept : bool, default=True
        Whether to fit an intercept; it is unconstrained and not counted in k.
    standardize : bool, default=True
        Whether to scale the columns for the search; `coef_` is in the units of X. Columns are not scaled if C is more
        than bounds.
    alpha : float, default=0.0
        Ridge penalty, ½·alpha·‖z‖² per row, where z are the coefficients of the scaled columns.
    forced_in : array-like, default=()
        Features (indices, mask or names) that are always selected.
    forced_out : array-like, default=()
        Features that are never selected.
    groups : array-like, dict, callable or None, default=None
        Groups selected as a whole, where k counts groups: a label per feature, {feature: label} by names or indices, or
        a function from column names to labels such as `ks.factors("city")`. Requires method="auto"; see the page on
        support constraints.
    group_limits : tuple or None, default=None
        (labels, {label: (min, max)}), labels as in groups: limits on the number of selected features per label.
        Requires method="auto".
    requires : dict or None, default=None
        {child: parents} by names, indices or group labels: a feature is selected only with its parents. Requires
        method="auto".
    method : str, default="auto"
        "auto", or a first-order method of the paper (see `ks.minimize`).
    X : array-like of shape (n_samples, n_features)
        The data; also sparse, out-of-core or distributed.
    sample_weight : array-like or None, default=None
        Weight of each row in the loss.
    """

    C: Any = None
    positive: Any = False
    negative: Any = False
    fit_intercept: bool = True
    standardize: bool = True
    alpha: float = 0.0
    forced_in: Any = ()
    forced_out: Any = ()
    groups: Any = None
    group_limits: Any = None
    requires: Any = None
    method: str = "auto"
    effort: int | None = None
    n_jobs: int | None = None
    random_state: int | None = None
    gap: float | None = None
    max_time: float | None = None
    verbose: int = 0
    _several_targets: ClassVar[bool] = False  # whether y may have several columns

    def _validated(self, X: Any, y: Any, sample_weight: Any, *, y_numeric: bool = False) -> tuple[Any, Any, Any]:
        check_n_jobs(self.n_jobs)
        y, sample_weight = (to_numpy(one) if on_device(one) else one for one in (y, sample_weight))
        shape: tuple[int, ...] = np.asarray(y).shape if self._several_targets else ()
        allowed: dict[str, Any] = {"multi_output": True} if len(shape) == 2 and shape[1] > 1 else {}
        allowed |= {"accept_sparse": ["csr", "csc"], "blocks": True, "single": True, "y_numeric": y_numeric}
        X, y = validate_X(self, X, y=check_numeric(y, "y") if y_numeric else y, **allowed)
        if not isinstance(X, Design):
            check_size(X, "X", getattr(self, "feature_names_in_", None))
        if y_numeric:
            check_size(y, "y", least=SMALLEST)
        if sample_weight is not None:
            if isinstance(X, Design):
                sample_weight = check_vector(np.asarray(sample_weight), "sample_weight", X.shape[0], kind=np.zeros(0))
            else:
                given = check_numeric(sample_weight, "sample_weight")
                sample_weight = _check_sample_weight(given, X, dtype=np.float64, ensure_non_negative=True)
            check_size(sample_weight, "sample_weight")
            if not sample_weight.any():
                raise ValueError("sample_weight must have at least one positive entry")
        return X, y, sample_weight

    def _problem(self, X: Any, y: Any, sample_weight: Any, loss: LossLike) -> LinearProblem:
        n, names = X.shape[1], getattr(self, "feature_names_in_", None)
        bounds = np.full(n, -np.inf), np.full(n, np.inf)
        for name, bound in zip(("positive", "negative"), bounds, strict=True):
            given = getattr(self, name)
            given = np.full(n, given) if isinstance(given, bool | np.bool_) else given
            bound[feature_indices(given, name, n, names)] = 0.0
        forced = {name: feature_indices(getattr(self, name), name, n, names) for name in ("forced_in", "forced_out")}
        return linear_problem(
            X, y, loss=loss, C=self.C, lower=bounds[0], upper=bounds[1], fit_intercept=self.fit_intercept,
            standardize=self.standardize, alpha=self.alpha, sample_weight=sample_weight,
            delta=getattr(self, "delta", None), free_intercept=self.method == "auto", **forced,
        )  # fmt: skip

    @property
    def _counted(self) -> str:
        """What k counts."""
        return "features" if self.groups is None else "groups"

    def _rules(self, n: int) -> dict[str, Any]:
        """Return the support constraints as options of `minimize`, in feature indices."""
        names, rules = getattr(self, "feature_names_in_", None), dict[str, Any]()
        if self.groups is not None:
            rules["groups"] = labels_of(self.groups, "groups", n, names, own_labels=True)
        if self.group_limits is not None:
            given = self.group_limits
            if not isinstance(given, tuple | list) or len(given) != 2:
                raise TypeError(f"group_limits must be (labels, {{label: (min, max)}}), got {given!r}")
            rules["group_limits"] = labels_of(given[0], "the labels of group_limits", n, names), given[1]
        if self.requires is not None:
            if not isinstance(self.requires, Mapping):
                raise TypeError(f"requires must be {{child: parents}}, got {type(self.requires).__name__}")
            groups = rules.get("groups", [])
            rules["requires"] = {
                int(_required_indices([child], n, names, groups)[0]): _required_indices(parents, n, names, groups)
                for child, parents in self.requires.items()
            }
        return rules

    def _options(self, *left_out: str) -> dict[str, Any]:
        """Return the options of the search; `gap` only if it is set."""
        names = ["random_state", "max_time", "verbose", "effort", "n_jobs", *(() if self.gap is None else ("gap",))]
        return {name: getattr(self, name) for name in names if name not in left_out}

    def _largest_k(self, n: int) -> int:
        """Return the number of features or groups."""
        return n if self.groups is None else len(set(self._rules(n)["groups"]))

    def _clipped_k(self, n: int) -> int:
        return clip_k(check_integer(self.k, "k", 0), self._largest_k(n), self._counted, self)

    def _solve(self, problem: LinearProblem, callback: Any) -> LinearFit:
        k, rules = self._clipped_k(problem.n), self._rules(problem.n)
        fit = problem.minimize(k, method=self.method, callback=callback, **self._options(), **rules)
        if fit.result.status is Status.UNBOUNDED:
            raise ValueError("the loss has no minimum over C: restrict the coefficients, or check the data")
        warn_if_stopped(fit.result, type(self).__name__)
        return fit

    def _linear_score(self, X: Any) -> Any:
        check_is_fitted(self)
        X = validate_X(self, X, accept_sparse="csr", blocks=True, single=True, reset=False)
        return X @ self.coef_.T + self.intercept_

    def _get_support_mask(self) -> Vector:
        check_is_fitted(self)
        return np.asarray((np.atleast_2d(self.coef_) != 0).any(axis=0))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = False
        return tags
