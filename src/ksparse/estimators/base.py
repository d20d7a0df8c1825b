"""What the linear estimators share: features by name or index, a linear problem from their parameters, warnings, support."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import _check_sample_weight, check_array, check_is_fitted, column_or_1d, validate_data

from ksparse.data import Design, by_blocks
from ksparse.estimators.callbacks import CallbackSupportMixin
from ksparse.models.linear import LinearFit, LinearProblem, linear_problem
from ksparse.models.losses import LossMaker
from ksparse.result import Result, Status
from ksparse.sets import ConvexSet
from ksparse.util.arrays import Vector, on_device, to_numpy
from ksparse.util.checks import SMALLEST, check_integer, check_n_jobs, check_size, check_vector, odd_column

DOC_LINK = (
    "#{estimator_name}"  # scikit-learn's page of an estimator shows the text of a parameter only beside a link: one that leads nowhere
)
OURS = ("ksparse", "sklearn", "skfolio", "joblib")  # whose lines no warning should point at


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
            raise ValueError(f"{name} holds {unknown[0]!r}, which is not a feature" + ("" if known else ": X has no column names"))
        return np.array([known.index(entry) for entry in entries], dtype=np.intp)
    if entries.dtype.kind not in "iu" or entries.ndim != 1:
        raise TypeError(f"{name} must be feature indices, names or a mask, got {given!r}")
    if entries.min() < 0 or entries.max() >= n:
        raise ValueError(f"{name} must be feature indices in 0..{n - 1}, got {entries.min() if entries.min() < 0 else entries.max()}")
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
            raise ValueError(f"{name} must have one label per feature, {n}, be {{feature: label}} or a function of names, got {given!r}")
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


def clipped(k: int, n: int, what: str, estimator: Any) -> int:
    """Return k, or n with a warning where k is larger."""
    if k > n:
        warn(f"{type(estimator).__name__}: k={k} is more than the number of {what}, {n}: all of them may be chosen")
    return min(k, n)


def warn_of_limit(result: Result, what: str) -> None:
    """A ConvergenceWarning where a limit cut the search short."""
    if not result.status.good:
        warn(f"{what}: {result.message}", ConvergenceWarning)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """A warning that points at the user's own line: the first frame outside this library and those that call it for the user."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in OURS:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def validated(estimator: Any, X: Any, *, reset: bool = True, blocks: bool = False, single: bool = False, **how: Any) -> Any:
    """Return X as scikit-learn validates it; where it holds text or dates, the error names X and the column.

    With `blocks`, data that are read so stay as they are, with `single` those in single precision; all others are in double.
    """
    design = by_blocks(X, "X") if blocks else None
    if design is not None:
        return _by_blocks(estimator, X, design, reset, how)
    if any(getattr(dtype, "kind", "") in ("m", "M") for dtype in getattr(X, "dtypes", [getattr(X, "dtype", None)])):
        raise TypeError(f"X must hold numbers, but {odd_column(X) or 'it holds dates or times'}")  # scikit-learn would take them as numbers
    try:
        return validate_data(estimator, X, dtype=[np.float64, np.float32] if single else np.float64, reset=reset, **how)
    except (TypeError, ValueError) as error:
        odd = odd_column(X)
        if not odd and "could not convert string" not in str(error):
            raise
        kind = ValueError if isinstance(error, ValueError) else TypeError
        raise kind(f"X must hold numbers, but {odd or 'it holds text'}: {error}") from error


def _by_blocks(estimator: Any, X: Any, design: Any, reset: bool, how: dict[str, Any]) -> Any:
    """The names and the number of columns seen, or compared with those that fit saw; y checked beside them."""
    names = np.asarray(X.columns, dtype=object) if hasattr(X, "dtypes") else None
    if reset:
        estimator.n_features_in_ = design.shape[1]
        if names is not None:
            estimator.feature_names_in_ = names
    elif design.shape[1] != estimator.n_features_in_:
        raise ValueError(f"X has {design.shape[1]} features, but {type(estimator).__name__} is expecting {estimator.n_features_in_}")
    if "y" not in how:
        return design
    y = column_or_1d(np.asarray(how["y"]), warn=True)
    if len(y) != design.shape[0]:
        raise ValueError(f"y must have as many entries as X has rows, {design.shape[0]}, got {len(y)}")
    return design, check_array(y, dtype="numeric" if how.get("y_numeric") else None, ensure_2d=False, input_name="y")


def as_precise(x: Any, X: Any, C: ConvexSet | None = None) -> Any:
    """What was found for X in its precision; where that is single, rounded towards 0, so that signs and balls hold still.

    In double where single precision has no room for it, or no row of it would lie in C.
    """
    if getattr(X, "dtype", None) != np.float32 or isinstance(X, Design):
        return x
    with np.errstate(over="ignore"):
        found = np.asarray(x, dtype=np.float32)
    rounded = np.where(np.abs(found.astype(np.float64)) > np.abs(x), np.nextafter(found, np.float32(0.0)), found)
    lost = ((rounded == 0) & (np.asarray(x) != 0)) | ~np.isfinite(found)
    if lost.any() or (C is not None and not all(_inside(C, row) for row in np.atleast_2d(rounded))):
        return x
    return rounded if rounded.ndim else np.float32(rounded)


def _inside(C: ConvexSet, row: Any) -> bool:
    return bool(C.for_length(row.size).contains(row.astype(np.float64)))


def numeric(value: Any, name: str) -> Any:
    """The value as it is, unless it holds text or times: scikit-learn's errors would not name it."""
    if value is None or scipy.sparse.issparse(value):
        return value
    try:
        entries = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name} must be an array of numbers: {error}") from error
    if entries.dtype.kind in "mM":
        raise TypeError(f"{name} must hold numbers, but it holds dates or times")
    if entries.dtype.kind in "US" or (entries.dtype.kind == "O" and any(isinstance(entry, str | bytes) for entry in entries.flat)):
        raise TypeError(f"{name} must hold numbers, but it holds text")
    return value


class SparseLinear(SelectorMixin, CallbackSupportMixin, BaseEstimator):
    """A linear model with at most k features; the subclasses say what y is."""

    _doc_link_module, _doc_link_template = "ksparse", DOC_LINK
    _losses: ClassVar[tuple[str, ...]]
    gap: float | None = None  # those that choose k by cross-validation prove nothing
    _targets: ClassVar[bool] = False  # whether y may have several columns

    def _checked(self, X: Any, y: Any, sample_weight: Any, *, y_numeric: bool = False) -> tuple[Any, Any, Any]:
        check_n_jobs(self.n_jobs)
        y, sample_weight = (to_numpy(one) if on_device(one) else one for one in (y, sample_weight))
        shape: tuple[int, ...] = np.asarray(y).shape if self._targets else ()
        several = {"multi_output": True} if len(shape) == 2 and shape[1] > 1 else {}
        given = numeric(y, "y") if y_numeric else y
        X, y = validated(self, X, y=given, accept_sparse=["csr", "csc"], blocks=True, single=True, y_numeric=y_numeric, **several)
        if not isinstance(X, Design):
            check_size(X, "X", getattr(self, "feature_names_in_", None))
        if y_numeric:
            check_size(y, "y", least=SMALLEST)
        if sample_weight is not None and isinstance(X, Design):
            sample_weight = check_vector(np.asarray(sample_weight), "sample_weight", X.shape[0], kind=np.zeros(0))
        elif sample_weight is not None:
            sample_weight = _check_sample_weight(numeric(sample_weight, "sample_weight"), X, dtype=np.float64, ensure_non_negative=True)
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
        return clipped(check_integer(k, "k", 0), n, "features" if self.groups is None else "groups", self)

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
        warn_of_limit(fit.result, type(self).__name__)
        return fit

    def _score_of(self, X: Any) -> Any:
        """X·coef + intercept."""
        check_is_fitted(self)
        X = validated(self, X, accept_sparse="csr", blocks=True, single=True, reset=False)
        return X @ self.coef_.T + self.intercept_

    def _get_support_mask(self) -> Vector:
        check_is_fitted(self)
        return np.asarray((np.atleast_2d(self.coef_) != 0).any(axis=0))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = False
        return tags
