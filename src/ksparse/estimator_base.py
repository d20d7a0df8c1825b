"""Code shared by all estimators: parameter texts, checks of X, warnings, scikit-learn's callbacks, parallel jobs.

Several estimators have the same parameters; their texts are written once, as numpydoc entries in the docstring of a
common base class. A subclass names the entries on a line of their own, in braces, and the decorator `fill_docstrings`
replaces that line when the class is made:

    @fill_docstrings()
    class SparseRegressor(…):
        '''…

        k : int, default=5
            Maximum number of features.
        {positive, negative, alpha}
        {effort, n_jobs}
        '''

Each entry is looked up in the texts given to the decorator, then in the docstrings of the base classes, in their order
of inheritance. The docstrings of the methods that the class defines are filled too. An unknown name raises KeyError on
import. With ``python -OO`` there are no docstrings to fill.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse
from joblib import Parallel
from joblib.parallel import get_active_backend
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from ksparse.data import Design, by_blocks
from ksparse.result import Result
from ksparse.sets import ConvexSet
from ksparse.util.checks import odd_column
from ksparse.util.display import fill_docstrings as fill_docstrings
from ksparse.util.progress import NULL_BAR, bar

try:
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback import with_callbacks as with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand-in without callbacks."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method unchanged."""
        return method


CALLERS = ("ksparse", "sklearn", "skfolio", "joblib")  # no warning should point at their lines


class SparseEstimator(CallbackSupportMixin, BaseEstimator):
    """Base class of the estimators.

    Parameters
    ----------
    effort : int or None, default=None
        Number of independent searches; the best result is kept. 0: a quick one, about twice the work of its first
        descent. None: one, or as many as fit into `max_time`.
    n_jobs : int or None, default=None
        Number of threads for the searches.
    random_state : int or None, default=None
        Seed of the search. Results do not depend on `n_jobs`.
    gap : float or None, default=None
        Target optimality gap (0.01 for 1 %) of a branch and bound after the search; None to skip it. See
        `result_.lower_bound` and `result_.gap`.
    max_time : float or None, default=None
        Time limit in seconds; the best solution found so far is kept, with a `ConvergenceWarning`.
    verbose : int, default=0
        Whether to print a table of the search.

    Attributes
    ----------
    result_ : Result
        Result of the search.
    n_iter_ : int
        Number of iterations.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of str
        Names of the features, if X has column names.
    """

    # scikit-learn's HTML page shows the text of a parameter only next to a link: this one leads nowhere
    _doc_link_module, _doc_link_template = "ksparse", "#{estimator_name}"


class Task:
    """A call of fit for scikit-learn's callbacks (1.9 and newer): each stage of the search is a subtask."""

    def __init__(self, estimator: Any, X: Any, y: Any) -> None:
        self.estimator, self.X, self.y = estimator, X, y
        registered = getattr(estimator, "_skl_callbacks", None)
        self.context = estimator._init_callback_context(max_subtasks=None) if registered else None
        if self.context is not None:
            self.context.call_on_fit_task_begin(estimator=estimator, X=X, y=y)

    def step(self, name: str) -> bool:
        """Report a finished subtask; return whether a callback requests a stop."""
        if self.context is None:
            return False
        subtask = self.context.subcontext(task_name=name)
        subtask.call_on_fit_task_begin(estimator=self.estimator, X=self.X, y=self.y)
        return bool(subtask.call_on_fit_task_end(estimator=self.estimator, X=self.X, y=self.y))

    @property
    def callback(self) -> Callable[..., None] | None:
        """Callback for `minimize` and `minimize_many`; None without callbacks."""
        if self.context is None:
            return None

        def callback(*progress: Any) -> None:
            if self.step("start"):
                raise StopIteration

        return callback

    def end(self) -> None:
        """Report the end of the fit."""
        if self.context is not None:
            self.context.call_on_fit_task_end(estimator=self.estimator, X=self.X, y=self.y)


def run_jobs(jobs: Sequence[Any], n_jobs: int | None, what: str) -> list[Any]:
    """Return the results of joblib's delayed calls, in their order; show a progress bar called `what`."""
    with bar(what, len(jobs)) as progress:
        # not every backend returns results before all are finished
        lazy = progress is not NULL_BAR and get_active_backend()[0].supports_return_generator
        results = []
        for result in Parallel(n_jobs=n_jobs, return_as="generator" if lazy else "list")(jobs):
            results.append(result)
            progress.update(len(results))
    return results


def clip_k(k: int, n: int, what: str, estimator: Any) -> int:
    """Return k, or n with a warning where k is larger; `what` names what k counts."""
    if k > n:
        warn(f"{type(estimator).__name__}: k={k} is more than the number of {what}, {n}: all of them may be chosen")
    return min(k, n)


def warn_if_stopped(result: Result, what: str) -> None:
    """Issue a ConvergenceWarning if a limit stopped the search."""
    if not result.status.good:
        warn(f"{what}: {result.message}", ConvergenceWarning)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning that points at the user's line: the first frame outside the packages of CALLERS."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in CALLERS:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def validate_X(
    estimator: Any, X: Any, *, reset: bool = True, blocks: bool = False, single: bool = False, **options: Any
) -> Any:
    """Return X as scikit-learn validates it, in double precision; errors about text or dates name X and the column.

    With `blocks`, data read by blocks stay as they are; with `single`, data in single precision do.
    """
    design = by_blocks(X, "X") if blocks else None
    if design is not None:
        return _validate_blocks(estimator, X, design, reset, options)
    if any(getattr(dtype, "kind", "") in ("m", "M") for dtype in getattr(X, "dtypes", [getattr(X, "dtype", None)])):
        # scikit-learn reads them as numbers
        raise TypeError(f"X must hold numbers, but {odd_column(X) or 'it holds dates or times'}")
    dtype = [np.float64, np.float32] if single else np.float64
    try:
        return validate_data(estimator, X, dtype=dtype, reset=reset, **options)
    except (TypeError, ValueError) as error:
        odd = odd_column(X)
        if not odd and "could not convert string" not in str(error):
            raise
        kind = ValueError if isinstance(error, ValueError) else TypeError
        raise kind(f"X must hold numbers, but {odd or 'it holds text'}: {error}") from error


def _validate_blocks(estimator: Any, X: Any, design: Any, reset: bool, options: dict[str, Any]) -> Any:
    """Record the names and number of columns, or compare them with those of fit; return the data, and y if given."""
    names = np.asarray(X.columns, dtype=object) if hasattr(X, "dtypes") else None
    if reset:
        estimator.n_features_in_ = design.shape[1]
        if names is not None:
            estimator.feature_names_in_ = names
    elif design.shape[1] != estimator.n_features_in_:
        expected = f"{type(estimator).__name__} is expecting {estimator.n_features_in_}"
        raise ValueError(f"X has {design.shape[1]} features, but {expected}")
    if "y" not in options:
        return design
    y = column_or_1d(np.asarray(options["y"]), warn=True)
    if len(y) != design.shape[0]:
        raise ValueError(f"y must have as many entries as X has rows, {design.shape[0]}, got {len(y)}")
    dtype = "numeric" if options.get("y_numeric") else None
    return design, check_array(y, dtype=dtype, ensure_2d=False, input_name="y")


def check_numeric(value: Any, name: str) -> Any:
    """Return the value unchanged; refuse text and dates, for which scikit-learn's errors would not name it."""
    if value is None or scipy.sparse.issparse(value):
        return value
    try:
        entries = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name} must be an array of numbers: {error}") from error
    if entries.dtype.kind in "mM":
        raise TypeError(f"{name} must hold numbers, but it holds dates or times")
    objects = entries.flat if entries.dtype.kind == "O" else ()
    if entries.dtype.kind in "US" or any(isinstance(entry, str | bytes) for entry in objects):
        raise TypeError(f"{name} must hold numbers, but it holds text")
    return value


def to_input_dtype(values: Any, X: Any, C: ConvexSet | None = None) -> Any:
    """Return results for X in the precision of X; rounding towards 0 keeps signs and norm constraints satisfied.

    The results stay in double precision where an entry overflows, a nonzero underflows, or a rounded row lies outside
    C.
    """
    if getattr(X, "dtype", None) != np.float32 or isinstance(X, Design):
        return values
    with np.errstate(over="ignore"):
        nearest = np.asarray(values, dtype=np.float32)
    larger = np.abs(nearest.astype(np.float64)) > np.abs(values)
    rounded = np.where(larger, np.nextafter(nearest, np.float32(0.0)), nearest)
    lost = ((rounded == 0) & (np.asarray(values) != 0)) | ~np.isfinite(nearest)
    rows = np.atleast_2d(rounded).astype(np.float64)
    if lost.any() or (C is not None and not all(C.for_length(row.size).contains(row) for row in rows)):
        return values
    return rounded if rounded.ndim else np.float32(rounded)
