"""Choice of k, by cross-validation or an information criterion along a path of models for each fold and class."""

from __future__ import annotations

import math
import numbers
import warnings
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from joblib import delayed
from scipy.special import gammaln
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import check_cv

from ksparse.data import design_of
from ksparse.errors import InfeasibleError
from ksparse.estimator_base import Task, clip_k, run_jobs, warn_if_stopped
from ksparse.linear.base import SparseLinear, feature_indices
from ksparse.linear.loss_names import HUBER, LossLike, huber_delta, loss_of_scores
from ksparse.linear.problem import LinearFit, LinearProblem, batched_fold_paths, can_batch_paths
from ksparse.sets import require_sparse_member
from ksparse.solve.judge import uninterrupted
from ksparse.solve.request import make_rules
from ksparse.util.arrays import Vector
from ksparse.util.checks import check_choice, check_integer

CRITERIA = ("cv", "aic", "bic", "ebic")
Models = list[tuple[Vector, Any]]  # coefficients and intercept for each k


class BatchedPaths(NamedTuple):
    """Paths of all folds, computed in one batch."""

    problem: LinearProblem  # on all rows
    models: Models  # on all rows
    starts: list[Vector]  # coefficients of the scaled columns, on all rows
    errors: Vector  # one row per fold, one column per k


@dataclass(eq=False, repr=False, kw_only=True)
class KSelectionMixin(SparseLinear):
    """Choice of k along one warm-started path of models per fold and class.

    Parameters
    ----------
    ks : iterable of int or None, default=None
        Numbers of features to try; None for 1 to 10, or fewer if the data have few rows or columns.
    cv : int, splitter or None, default=None
        Cross-validation splitter, as in scikit-learn.
    one_standard_error : bool, default=False
        Whether to choose the smallest k within one standard error of the best.
    n_jobs : int or None, default=None
        Number of folds fitted in parallel.
    max_time : float or None, default=None
        Time limit in seconds for each path; the best models found so far are kept, with a `ConvergenceWarning`.
    sample_weight : array-like or None, default=None
        Weight of each row in the loss, in the folds too.

    Attributes
    ----------
    k_ : int
        Chosen k.
    ks_ : ndarray
        Values of k tried.
    cv_errors_ : ndarray of shape (n_folds, n_ks)
        Mean error on the test rows of each fold, for criterion="cv".
    criterion_ : ndarray
        Information criterion for each k, for the other criteria.
    """

    ks: Any = field(default=None, kw_only=False)
    criterion: str = "cv"
    cv: Any = None
    one_standard_error: bool = False

    def _candidates(self, X: Any, weight: Any) -> Vector:
        """Return the values of k to try."""
        n = self._largest_k(X.shape[1])
        if self.ks is None:
            first = self._smallest_k(X.shape[1])
            return np.arange(first, max(first, min(10, n, _distinct_rows(X, weight) // 2)) + 1)
        if isinstance(self.ks, numbers.Number):
            raise TypeError(f"ks must be a sequence of integers, got {self.ks!r}; for one k use a model without CV")
        ks = sorted({clip_k(check_integer(k, "ks", 1), n, self._counted, self) for k in self.ks})
        if not ks:
            raise ValueError("ks must hold at least one k, got none")
        return np.array(ks)

    def _smallest_k(self, n: int) -> int:
        """Return the smallest k that the forced features, the support constraints and C allow."""
        forced = feature_indices(self.forced_in, "forced_in", n, getattr(self, "feature_names_in_", None))
        if (rules := make_rules(**self._rules(n), n=n)).any:
            return max(1, min(rules.min_cardinality(forced), int(rules.weight.sum())))
        smallest = max(1, len(forced))
        for k in range(smallest, n + 1 if self.C is not None else smallest):
            with suppress(InfeasibleError):
                require_sparse_member(self.C.for_length(n), n, k)
                return k
        return smallest

    def _path(self, X: Any, y: Vector, weight: Any, loss: LossLike, ks: Vector) -> list[LinearFit]:
        problem, options = self._problem(X, y, weight, loss), self._options("n_jobs") | self._rules(X.shape[1])
        one_by_one = (problem.minimize(int(k), method=self.method, **options) for k in ks)
        results = problem.path(ks, **options) if self.method == "auto" else one_by_one
        fits = []
        for fit in results:
            uninterrupted(fit.result)
            fits.append(fit)
        return fits

    def _choose(
        self, X: Any, y: Any, targets: list[Vector], weight: Any, loss: LossLike
    ) -> tuple[list[LinearFit], Vector, Vector]:
        """Return the chosen model of each target, and the coefficients and intercepts by target or class and k.

        Sets `k_`, `ks_`, and `cv_errors_` or `criterion_`.
        """
        check_choice(self.criterion, "criterion", CRITERIA)
        self.ks_ = ks = self._candidates(X, weight)
        task = Task(self, X, y)
        batched = self._batched_paths(X, y, targets[0], weight, loss)
        if batched is None:
            fits = [self._path(X, target, weight, loss, ks) for target in targets]
            models = [[(fit.coef, fit.intercept) for fit in path] for path in fits]
        else:
            models = [batched.models]
        task.step("path")
        if self.criterion == "cv":
            if batched is not None:
                self.cv_errors_ = batched.errors
            else:
                folds = self._folds(X, y, weight, loss)
                jobs = [delayed(self._one_fold)(X, targets, weight, loss, train, test) for train, test in folds]
                self.cv_errors_ = np.array(run_jobs(jobs, self.n_jobs, "folds"))
            self.k_ = best_k(ks, self.cv_errors_, self.one_standard_error)
        else:
            self.criterion_ = self._information(X, targets, models, weight, loss)
            self.k_ = int(ks[np.argmin(self.criterion_)])
        task.end()
        at = int(np.flatnonzero(ks == self.k_)[0])
        if batched is None:
            chosen = [path[at] for path in fits]
        else:  # a full search for the chosen k, from the batched solution
            chosen = [batched.problem.minimize(self.k_, x0=batched.starts[at], **self._options("n_jobs"))]
            models[0][at] = chosen[0].coef, chosen[0].intercept
        for fit in chosen:
            warn_if_stopped(fit.result, type(self).__name__)
        coefs = np.array([[coef for coef, _ in path] for path in models])
        intercepts = np.array([[intercept for _, intercept in path] for path in models])
        if coefs.ndim == 4:  # one model of several targets or classes
            coefs, intercepts = coefs[0].swapaxes(0, 1), intercepts[0].T
        return chosen, coefs, intercepts

    def _information(self, X: Any, targets: list[Vector], models: list[Models], weight: Any, loss: LossLike) -> Vector:
        """Return the information criterion for each k, summed over the targets."""
        counts, n = row_counts(weight, X.shape[0]), X.shape[1]
        deviances, parameters, features = np.zeros((3, len(models[0])))
        for target, path in zip(targets, models, strict=True):
            scores = [X @ coef.T + intercept for coef, intercept in path]
            delta = self._delta(loss, target - scores[-1] if loss == "huber" else target, weight)
            deviances += [deviance(loss, target, score, counts, delta) for score in scores]
            rows = np.array([np.atleast_2d(coef).any(axis=0).sum() for coef, _ in path])
            features += rows
            # the coefficients of one class follow from those of the other classes
            parameters += rows * (len(np.atleast_2d(path[0][0])) - (loss == "multinomial"))
        return information_criterion(self.criterion, deviances, parameters, counts.sum(), n * len(targets), features)

    def _batched_paths(self, X: Any, y: Any, target: Vector, weight: Any, loss: LossLike) -> BatchedPaths | None:
        """Return all k of all folds in one batch; None except for plain least squares with default search options."""
        ks = self.ks_
        plain = loss == "squared" and target.ndim == 1 and self.method == "auto" and not self._rules(X.shape[1])
        default = self.effort is None and self.max_time is None and not self.verbose
        if not plain or not default or not design_of(X).entries_in_memory:
            return None
        folds = self._folds(X, y, weight, loss) if self.criterion == "cv" else []
        problems = [self._problem(X, target, weight, loss)]
        inside = [None if weight is None else weight[train] for train, _ in folds]
        if not can_batch_paths(problems, int(ks[-1])) or any(w is not None and not w.any() for w in inside):
            return None
        problems += [self._problem(X[at], target[at], w, loss) for (at, _), w in zip(folds, inside, strict=True)]
        if not can_batch_paths(problems, int(ks[-1])):
            return None
        try:
            whole, *rest = batched_fold_paths(problems, ks)
        except np.linalg.LinAlgError:  # dependent columns need the full search
            return None
        errors = []
        for (_, test), path in zip(folds, rest, strict=True):
            scores = X[test] @ np.array([coef for coef, _, _ in path]).T + np.array([shift for _, shift, _ in path])
            outside = np.ones(len(test)) if weight is None else weight[test]
            errors.append([mean_error(loss, target[test], score, outside) for score in scores.T])
        models = [(coef, intercept) for coef, intercept, _ in whole]
        return BatchedPaths(problems[0], models, [z for _, _, z in whole], np.array(errors))

    def _delta(self, loss: LossLike, y: Vector, weight: Any) -> float:
        """Return δ of the Huber loss, given by the user or from the spread of y; inf for other losses."""
        if loss != "huber":
            return math.inf
        return huber_delta(y, weight) if self.delta is None else float(self.delta)

    def _folds(self, X: Any, y: Any, weight: Any, loss: LossLike) -> list[tuple[Vector, Vector]]:
        """Return training and test rows; folds whose test rows all have weight 0 are left out."""
        folds = list(check_cv(self.cv, y, classifier=loss in ("logistic", "multinomial")).split(X, y))
        return [(train, test) for train, test in folds if weight is None or weight[test].any()]

    def _one_fold(
        self, X: Any, targets: list[Vector], weight: Any, loss: LossLike, train: Vector, test: Vector
    ) -> Vector:
        """Return the mean error on the test rows for each k."""
        errors, inside = np.zeros(len(self.ks_)), None if weight is None else weight[train]
        outside = np.ones(len(test)) if weight is None else weight[test]
        for target in targets:
            y = target[train]
            used = y if inside is None else y[inside > 0]
            if not used.size:
                raise ValueError("sample_weight is 0 on all training rows of a fold: use other folds")
            if loss in ("logistic", "multinomial") and len(np.unique(used)) < len(np.unique(target)):
                raise ValueError("a class is missing from the training rows of a fold: use fewer or stratified folds")
            delta = self._delta(loss, y, inside)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                path = self._path(X[train], y, inside, loss, self.ks_)
            scores = [X[test] @ fit.coef.T + fit.intercept for fit in path]
            errors += [mean_error(loss, target[test], score, outside, delta) for score in scores]
        return errors


def _distinct_rows(X: Any, weight: Any) -> int:
    """Return the number of distinct rows with positive weight; for more than 1,000 rows, the number of all of them."""
    rows = X if weight is None else X[weight > 0]
    if rows.shape[0] > 1_000:
        return int(rows.shape[0])
    return len(np.unique(rows.toarray() if scipy.sparse.issparse(rows) else rows, axis=0))


def best_k(ks: Vector, errors: Vector, one_standard_error: bool) -> int:
    """Return the k with the smallest mean error over folds (rows), or the smallest within one standard error."""
    mean = errors.mean(axis=0)
    best = int(np.argmin(mean))
    if one_standard_error:
        spread = errors[:, best].std(ddof=1) / math.sqrt(len(errors)) if len(errors) > 1 else 0.0
        best = int(np.argmax(mean <= mean[best] + spread))
    return int(ks[best])


def information_criterion(
    criterion: str, deviance: Vector, parameters: Vector, rows: float, n: int, features: Vector
) -> Vector:
    """Return AIC, BIC or extended BIC (Chen and Chen 2008, γ = 1) of models with some of n features."""
    penalty = parameters * (2.0 if criterion == "aic" else math.log(rows))
    if criterion == "ebic":
        penalty = penalty + 2.0 * (gammaln(n + 1) - gammaln(features + 1) - gammaln(n - features + 1))
    return np.asarray(deviance + penalty)


def row_counts(weight: Vector | None, rows: int) -> Vector:
    """Return weights as numbers of rows: integers as given, others scaled to sum to the number of rows with weight."""
    if weight is None:
        return np.ones(rows)
    if (weight == np.round(weight)).all():
        return weight
    return np.asarray(weight * (np.count_nonzero(weight) / weight.sum()))


def deviance(loss: LossLike, y: Vector, score: Vector, weight: Vector, delta: float = math.inf) -> float:
    """Return −2 log-likelihood of a linear score, up to a constant.

    The squared loss uses the maximum-likelihood variance. The Huber loss uses delta/HUBER, the robust scale of the
    residuals of the largest model, so that outliers do not dominate (Ronchetti 1985). A custom loss is taken as a
    negative log-likelihood.
    """
    if loss not in ("squared", "huber"):
        return 2.0 * loss_of_scores(loss, y, score, weight)
    total = float(weight @ _error_terms(y, score, delta))
    if loss == "huber":
        return total / (delta / HUBER) ** 2
    whole = float((weight @ np.square(y - np.average(y, axis=0, weights=weight))).sum() or 1.0)
    count = float(weight.sum()) * (1 if y.ndim == 1 else y.shape[1])
    return count * math.log(max(total, 1e-12 * whole) / count)  # perfect fits are equal: the smallest k wins


def mean_error(loss: LossLike, y: Vector, score: Vector, weight: Vector, delta: float = math.inf) -> float:
    """Return twice the mean loss per row."""
    if loss in ("squared", "huber"):
        return float(np.average(_error_terms(y, score, delta), weights=weight))
    return 2.0 * loss_of_scores(loss, y, score, weight) / float(weight.sum())


def _error_terms(y: Vector, score: Vector, delta: float) -> Vector:
    """Return twice the squared loss of each row, summed over targets; with a finite delta, twice the Huber loss."""
    r = np.abs(y - score)
    if r.ndim == 2:
        return np.asarray(np.square(r).sum(axis=1))
    return np.asarray(np.where(r <= delta, r**2, 2.0 * delta * r - delta**2) if math.isfinite(delta) else r**2)
