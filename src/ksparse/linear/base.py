"""What the linear estimators share: features by name or index, a linear problem from their parameters, warnings, support."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from ksparse.data import Design
from ksparse.estimator_base import SparseEstimator, check_numeric, clip_k, validate_X, warn_if_stopped
from ksparse.linear.losses import LossMaker
from ksparse.linear.problem import LinearFit, LinearProblem, linear_problem
from ksparse.result import Status
from ksparse.util.arrays import Vector, on_device, to_numpy
from ksparse.util.checks import SMALLEST, check_integer, check_n_jobs, check_size, check_vector


def positions(given: Any, name: str, n: int, names: Any) -> Vector:
    """Feature indices from indices, a boolean mask, or names of the columns that fit has seen."""
    if given is None:
        return np.zeros(0, dtype=np.intp)
    entries = np.atleast_1d(np.asarray(sorted(given) if isinstance(given, set | frozenset) else given))
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
            raise ValueError(
                f"{name} holds {unknown[0]!r}, which is not a feature" + ("" if known else ": X has no column names")
            )
        return np.array([known.index(entry) for entry in entries], dtype=np.intp)
    if entries.dtype.kind not in "iu" or entries.ndim != 1:
        raise TypeError(f"{name} must be feature indices, names or a mask, got {given!r}")
    if entries.min() < 0 or entries.max() >= n:
        raise ValueError(
            f"{name} must be feature indices in 0..{n - 1}, got {entries.min() if entries.min() < 0 else entries.max()}"
        )
    return np.asarray(np.unique(entries), dtype=np.intp)


def signed(given: Any, name: str, n: int, names: Any) -> Vector:
    """The features whose sign is known: all, none, or those that are named."""
    return np.arange(n if given else 0) if isinstance(given, bool | np.bool_) else positions(given, name, n, names)


def labels_of(given: Any, name: str, n: int, names: Any, *, alone: bool = False) -> list[Any]:
    """A label for each feature, given so, as {feature: label}, or by a function of their names.

    Features that a mapping leaves out share a label, or with `alone` have one of their own.
    """
    if callable(given):
        if names is None:
            raise ValueError(
                f"{name} is made from the names of the columns, and X has none: in a pipeline the steps before pass them on after "
                'set_output(transform="pandas"); or give a label for each feature'
            )
        return labels_of(given(list(names)), name, n, names, alone=alone)
    if not isinstance(given, Mapping):
        if isinstance(given, str | bytes) or np.shape(given) != (n,):
            raise ValueError(
                f"{name} must have one label per feature, {n}, be {{feature: label}} or a function of names, got {given!r}"
            )
        return list(given)
    labels: list[Any] = [(name, i if alone else None) for i in range(n)]
    for feature, label in given.items():
        labels[int(positions([feature], name, n, names)[0])] = label
    return labels


def _members(given: Any, name: str, n: int, names: Any, groups: list[Any]) -> Vector:
    """Feature indices as `positions` finds them; where groups enter whole the name of one stands for its first feature."""
    known = [] if names is None else list(names)
    entries = [given] if isinstance(given, str) else given
    if not isinstance(entries, list | tuple):
        return positions(given, name, n, names)
    return positions([
        groups.index(entry) if isinstance(entry, str) and entry not in known and entry in groups else
        known.index(entry) if isinstance(entry, str) and entry in known else entry
        for entry in entries
    ], name, n, names)  # fmt: skip


class SparseLinear(SelectorMixin, SparseEstimator):
    """A linear model with at most k features; the subclasses say what y is."""

    _losses: ClassVar[tuple[str, ...]]
    gap: float | None = None  # those that choose k by cross-validation prove nothing
    _targets: ClassVar[bool] = False  # whether y may have several columns

    def _checked(self, X: Any, y: Any, sample_weight: Any, *, y_numeric: bool = False) -> tuple[Any, Any, Any]:
        check_n_jobs(self.n_jobs)
        y, sample_weight = (to_numpy(one) if on_device(one) else one for one in (y, sample_weight))
        shape: tuple[int, ...] = np.asarray(y).shape if self._targets else ()
        several = {"multi_output": True} if len(shape) == 2 and shape[1] > 1 else {}
        given = check_numeric(y, "y") if y_numeric else y
        X, y = validate_X(
            self, X, y=given, accept_sparse=["csr", "csc"], blocks=True, single=True, y_numeric=y_numeric, **several
        )
        if not isinstance(X, Design):
            check_size(X, "X", getattr(self, "feature_names_in_", None))
        if y_numeric:
            check_size(y, "y", least=SMALLEST)
        if sample_weight is not None and isinstance(X, Design):
            sample_weight = check_vector(np.asarray(sample_weight), "sample_weight", X.shape[0], kind=np.zeros(0))
        elif sample_weight is not None:
            sample_weight = _check_sample_weight(
                check_numeric(sample_weight, "sample_weight"), X, dtype=np.float64, ensure_non_negative=True
            )
        if sample_weight is not None:
            check_size(sample_weight, "sample_weight")
            if not sample_weight.any():
                raise ValueError("sample_weight must have at least one positive entry")
        return X, y, sample_weight

    def _problem(self, X: Any, y: Any, sample_weight: Any, loss: str | LossMaker) -> LinearProblem:
        n, names = X.shape[1], getattr(self, "feature_names_in_", None)
        lower, upper = np.full(n, -np.inf), np.full(n, np.inf)
        lower[signed(self.positive, "positive", n, names)] = 0.0
        upper[signed(self.negative, "negative", n, names)] = 0.0
        return linear_problem(
            X, y, loss=loss, C=self.C, lower=lower, upper=upper, fit_intercept=self.fit_intercept, standardize=self.standardize,
            alpha=self.alpha, sample_weight=sample_weight, delta=getattr(self, "delta", None),
            forced_in=positions(self.forced_in, "forced_in", n, names), forced_out=positions(self.forced_out, "forced_out", n, names),
            free_intercept=self.method == "auto",
        )  # fmt: skip

    def _at_most(self, k: Any, n: int) -> int:
        """Return k, at most n, the number of features or groups."""
        return clip_k(check_integer(k, "k", 0), n, "features" if self.groups is None else "groups", self)

    def _rules(self, n: int) -> dict[str, Any]:
        """Rules about supports in indices of features, where there are any."""
        names, rules = getattr(self, "feature_names_in_", None), dict[str, Any]()
        if self.groups is not None:
            rules["groups"] = labels_of(self.groups, "groups", n, names, alone=True)
        if self.group_limits is not None:
            given = self.group_limits
            if not isinstance(given, tuple | list) or len(given) != 2:
                raise TypeError(f"group_limits must be (labels, {{label: (least, most)}}), got {given!r}")
            rules["group_limits"] = labels_of(given[0], "the labels of group_limits", n, names), given[1]
        if self.requires is not None:
            if not isinstance(self.requires, Mapping):
                raise TypeError(f"requires must be {{child: parents}}, got {type(self.requires).__name__}")
            known = rules.get("groups", [])
            rules["requires"] = {
                int(_members([child], "requires", n, names, known)[0]): _members(parents, "requires", n, names, known)
                for child, parents in self.requires.items()
            }
        return rules

    def _options(self) -> dict[str, Any]:
        options = {"random_state": self.random_state, "max_time": self.max_time, "verbose": self.verbose}
        options |= {} if self.gap is None else {"gap": self.gap}
        return options | {"effort": self.effort, "n_jobs": self.n_jobs}

    def _members(self, n: int) -> int:
        """How many k counts at most: features, or groups of them."""
        return n if self.groups is None else len(set(self._rules(n)["groups"]))

    def _solve(self, problem: LinearProblem, callback: Any) -> LinearFit:
        k = self._at_most(self.k, self._members(problem.n))
        fit = problem.minimize(k, method=self.method, callback=callback, **self._options(), **self._rules(problem.n))
        if fit.result.status is Status.UNBOUNDED:
            raise ValueError("the loss has no minimum over C: restrict the coefficients, or check the data")
        warn_if_stopped(fit.result, type(self).__name__)
        return fit

    def _score_of(self, X: Any) -> Any:
        """X·coef + intercept."""
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
