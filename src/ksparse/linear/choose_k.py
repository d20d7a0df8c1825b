"""Choosing k: paths of models for every fold and class, walked together where they can be."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from joblib import delayed
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import check_cv

from ksparse.data import design_of
from ksparse.errors import InfeasibleError
from ksparse.estimator_base import Task, clip_k, run_jobs, warn_if_stopped
from ksparse.linear.base import SparseLinear, positions
from ksparse.linear.losses import HUBER, LossMaker, huber_delta, loss_of_scores
from ksparse.linear.problem import LinearFit, LinearProblem, paths_together, walks_together
from ksparse.sets import require_sparse_member
from ksparse.solve.judge import uninterrupted
from ksparse.solve.request import make_rules
from ksparse.util.arrays import Vector
from ksparse.util.checks import check_integer


def _different_rows(X: Any, weight: Any) -> int:
    """How many rows say something of their own; counted where there are few, and it could matter."""
    counted = X if weight is None else X[weight > 0]
    if counted.shape[0] > 1_000:
        return int(counted.shape[0])
    return len(np.unique(counted.toarray() if scipy.sparse.issparse(counted) else counted, axis=0))


Coefficients = list[tuple[Vector, Any]]  # and the intercept, for every k


def _parameters(coef: Vector, loss: str | LossMaker) -> int:
    """How many numbers a model has chosen: those of one class follow from the others'."""
    rows, chosen = (1, np.count_nonzero(coef)) if coef.ndim == 1 else (len(coef), np.count_nonzero(coef.any(axis=0)))
    return int(chosen) * (rows - (loss == "multinomial"))


class Together(NamedTuple):
    """The paths of all folds, walked together."""

    problem: LinearProblem  # of all rows
    models: Coefficients
    scaled: list[Vector]  # the coefficients of the scaled columns
    errors: Vector  # one row per fold, one column per k


def path_of(paths: list[Coefficients]) -> tuple[Vector, Vector]:
    """The coefficients and intercepts of every target or class and k."""
    coefs = np.array([[coef for coef, _ in path] for path in paths])
    shifts = np.array([[shift for _, shift in path] for path in paths])
    return (coefs, shifts) if coefs.ndim == 3 else (coefs[0].swapaxes(0, 1), shifts[0].T)  # one model of several


class ChoosesK(SparseLinear):
    """k by cross-validation or by an information criterion, along one warm-started path of models per fold and class."""

    def _sizes(self, X: Any, weight: Any) -> Vector:
        n = self._members(X.shape[1])
        if self.ks is None:
            first = self._least(X.shape[1])
            return np.arange(first, max(first, min(10, n, _different_rows(X, weight) // 2)) + 1)
        if isinstance(self.ks, numbers.Number):
            raise TypeError(
                f"ks must be a sequence of numbers of features, got {self.ks!r}; for one k use the estimator without CV"
            )
        what = "features" if self.groups is None else "groups"
        sizes = sorted({clip_k(check_integer(k, "ks", 1), n, what, self) for k in self.ks})
        if not sizes:
            raise ValueError("ks must hold at least one k, got none")
        return np.array(sizes)

    def _least(self, n: int) -> int:
        """The least k that the forced features, what rules ask for and C allow."""
        forced = positions(self.forced_in, "forced_in", n, getattr(self, "feature_names_in_", None))
        if (rules := make_rules(**self._rules(n), n=n)).any:
            return max(1, min(rules.min_cardinality(forced), rules.members))
        least = max(1, len(forced))
        for k in range(least, n + 1 if self.C is not None else least):
            try:
                require_sparse_member(self.C.for_length(n), n, k)
            except InfeasibleError:
                continue
            return k
        return least

    def _path(self, X: Any, y: Vector, weight: Any, loss: str | LossMaker, ks: Vector) -> list[LinearFit]:
        options = {key: value for key, value in self._options().items() if key != "n_jobs"} | self._rules(X.shape[1])
        if self.method == "auto":
            fits = self._problem(X, y, weight, loss).path(ks, **options)
            for fit in fits:
                uninterrupted(fit.result)
            return fits
        problem, fits = self._problem(X, y, weight, loss), []
        for k in ks:
            fits.append(problem.minimize(int(k), method=self.method, **options))
            uninterrupted(fits[-1].result)
        return fits

    def _choose(
        self, X: Any, y: Any, targets: list[Vector], weight: Any, loss: str | LossMaker
    ) -> tuple[list[LinearFit], list[Coefficients]]:
        """The chosen model for each target, and those of every k; sets k_, ks_ and what the choice was made by."""
        if self.criterion not in CRITERIA:
            raise ValueError(f"criterion must be one of {', '.join(CRITERIA)}, got {self.criterion!r}")
        self.ks_ = ks = self._sizes(X, weight)
        task = Task(self, X, y)
        together = self._together(X, y, targets, weight, loss, ks)
        paths = [self._path(X, target, weight, loss, ks) for target in targets] if together is None else []
        models = (
            [[(fit.coef, fit.intercept) for fit in path] for path in paths] if together is None else [together.models]
        )
        task.step("path")
        w = counted(weight, X.shape[0])
        if self.criterion == "cv":
            self.cv_errors_ = (
                self._fold_errors(X, y, targets, weight, loss, ks) if together is None else together.errors
            )
            self.k_ = best_k(ks, self.cv_errors_, self.one_standard_error)
        else:
            scores = [
                self._deviances(X, target, path, weight, w, loss) for target, path in zip(targets, models, strict=True)
            ]
            used = np.array([[_parameters(coef, loss) for coef, _ in path] for path in models]).sum(axis=0)
            features = np.array(
                [[np.count_nonzero(np.atleast_2d(coef).any(axis=0)) for coef, _ in path] for path in models]
            ).sum(axis=0)
            self.criterion_ = information(
                self.criterion, np.sum(scores, axis=0), used, float(w.sum()), X.shape[1] * len(targets), features
            )
            self.k_ = int(ks[np.argmin(self.criterion_)])
        task.end()
        at = int(np.flatnonzero(ks == self.k_)[0])
        if together is not None:  # the chosen one as `minimize` does it, never worse than what was found on the way
            found = together.problem.minimize(
                self.k_, x0=together.scaled[at], **{k: v for k, v in self._options().items() if k != "n_jobs"}
            )
            models[0][at] = found.coef, found.intercept
        chosen = [path[at] for path in paths] if together is None else [found]
        for fit in chosen:
            warn_if_stopped(fit.result, type(self).__name__)
        return chosen, models

    def _together(
        self, X: Any, y: Any, targets: list[Vector], weight: Any, loss: str | LossMaker, ks: Vector
    ) -> Together | None:
        """All k of all folds at once, where nothing but squares is asked for; None where each path is to be searched by itself."""
        asked = self.effort is not None or self.max_time is not None or self.verbose
        shared = loss == "squared" and targets[0].ndim == 1 and self.method == "auto" and design_of(X).shown
        if asked or not shared or self._rules(X.shape[1]):
            return None
        folds = self._folds(X, y, weight, loss) if self.criterion == "cv" else []
        target = targets[0]
        problems = [self._problem(X, target, weight, loss)]
        if not walks_together(problems, int(ks[-1])) or any(
            weight is not None and not weight[train].any() for train, _ in folds
        ):
            return None
        problems += [
            self._problem(X[train], target[train], None if weight is None else weight[train], loss)
            for train, _ in folds
        ]
        if not walks_together(problems, int(ks[-1])):
            return None
        try:
            whole, *rest = paths_together(problems, ks)
        except np.linalg.LinAlgError:  # columns that depend on each other: the usual search knows what to do
            return None
        errors = []
        for (_, test), path in zip(folds, rest, strict=True):
            scores = X[test] @ np.array([coef for coef, _, _ in path]).T + np.array([shift for _, shift, _ in path])
            outside = np.ones(len(test)) if weight is None else weight[test]
            errors.append([mean_error(loss, target[test], score, outside) for score in scores.T])
        return Together(
            problems[0], [(coef, shift) for coef, shift, _ in whole], [z for _, _, z in whole], np.array(errors)
        )

    def _deviances(
        self, X: Any, y: Vector, path: Coefficients, weight: Any, w: Vector, loss: str | LossMaker
    ) -> list[float]:
        """The deviance of every model of a path."""
        scores = [X @ coef.T + intercept for coef, intercept in path]
        delta = self._delta(loss, y - scores[-1] if loss == "huber" else y, weight)
        return [deviance(loss, y, score, w, delta) for score in scores]

    def _delta(self, loss: str | LossMaker, y: Vector, weight: Any) -> float:
        """δ of the huber loss: the user's, or by the spread of a target."""
        return (
            float(own)
            if loss == "huber" and (own := getattr(self, "delta", None)) is not None
            else robust_delta(loss, y, weight)
        )

    def _folds(self, X: Any, y: Any, weight: Any, loss: str | LossMaker) -> list[tuple[Vector, Vector]]:
        """Training rows and rows left out."""
        folds = list(check_cv(self.cv, y, classifier=loss in ("logistic", "multinomial")).split(X, y))
        return (
            folds if weight is None else [(train, test) for train, test in folds if weight[test].any()]
        )  # others choose nothing

    def _fold_errors(
        self, X: Any, y: Any, targets: list[Vector], weight: Any, loss: str | LossMaker, ks: Vector
    ) -> Vector:
        """The mean error on the rows left out, one row per fold, one column per k; the folds run beside each other."""
        folds = self._folds(X, y, weight, loss)
        jobs = [delayed(self._one_fold)(X, targets, weight, loss, ks, train, test) for train, test in folds]
        return np.array(run_jobs(jobs, self.n_jobs, "folds"))

    def _one_fold(
        self, X: Any, targets: list[Vector], weight: Any, loss: str | LossMaker, ks: Vector, train: Vector, test: Vector
    ) -> Vector:
        errors, inside = np.zeros(len(ks)), None if weight is None else weight[train]
        outside = np.ones(len(test)) if weight is None else weight[test]
        for target in targets:
            y = target[train]
            seen = y if inside is None else y[inside > 0]
            if not seen.size:
                raise ValueError("sample_weight is 0 on all training rows of a fold: use other folds")
            if loss in ("logistic", "multinomial") and len(np.unique(seen)) < len(np.unique(target)):
                raise ValueError(
                    "a class is missing from the training rows of a fold: use fewer folds, or stratified ones"
                )
            delta = self._delta(loss, y, inside)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                path = self._path(X[train], y, inside, loss, ks)
            errors += np.array(
                [mean_error(loss, target[test], X[test] @ fit.coef.T + fit.intercept, outside, delta) for fit in path]
            )
        return errors


CRITERIA = ("cv", "aic", "bic", "ebic")
TERMS = (
    "squared",
    "huber",
    "logistic",
    "poisson",
)  # whose `error_terms` are spelled out; of others the loss itself is asked


def best_k(ks: Vector, errors: Vector, one_standard_error: bool) -> int:
    """The k with the least mean error over folds (rows of `errors`); or the least k within one standard error of it."""
    mean = errors.mean(axis=0)
    best = int(np.argmin(mean))
    if one_standard_error:
        spread = errors[:, best].std(ddof=1) / math.sqrt(len(errors)) if len(errors) > 1 else 0.0
        best = int(np.argmax(mean <= mean[best] + spread))
    return int(ks[best])


def information(
    criterion: str, deviance: Vector, used: Vector, rows: float, features: int, chosen: Vector | None = None
) -> Vector:
    """AIC, BIC or extended BIC (Chen and Chen 2008, γ = 1): −2 log-likelihood plus a price per parameter that a model has.

    `chosen` of so many features, where that is not as many as parameters.
    """
    sizes = used if chosen is None else chosen
    price = {"aic": 2.0, "bic": math.log(rows), "ebic": math.log(rows)}[criterion]
    supports = np.array([2.0 * _log_comb(features, int(size)) for size in sizes]) if criterion == "ebic" else 0.0
    return np.asarray(deviance + price * used + supports)


def _log_comb(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def counted(weight: Vector | None, rows: int) -> Vector:
    """Weights as numbers of rows: whole numbers count repetitions, others are scaled to sum to the number of rows that have one."""
    if weight is None:
        return np.ones(rows)
    if (weight == np.round(weight)).all():
        return weight
    return np.asarray(weight * (np.count_nonzero(weight) / weight.sum()))


def deviance(loss: str | LossMaker, y: Vector, score: Vector, weight: Vector, delta: float = math.inf) -> float:
    """−2 log-likelihood of a linear score, up to a constant.

    For squared with the variance at its best value; for huber with the robust scale of the largest model's residuals, delta/HUBER
    (Ronchetti 1985): a likelihood that outliers do not rule. A loss of the user's is taken for a negative log-likelihood as it is.
    """
    if not isinstance(loss, str) or loss not in TERMS:
        return 2.0 * loss_of_scores(loss, y, score, weight)
    total = float(weight.sum()) * (1 if y.ndim == 1 else y.shape[1])
    if loss == "logistic":
        return 2.0 * float(weight @ np.logaddexp(0.0, -(2.0 * y - 1.0) * score))
    if loss == "poisson":
        return 2.0 * float(weight @ (np.exp(np.minimum(score, 700.0)) - y * score))
    if loss == "huber":
        return float(weight @ error_terms(loss, y, score, delta)) / (delta / HUBER) ** 2
    squares, level = float(weight @ error_terms(loss, y, score, delta)), np.average(y, axis=0, weights=weight)
    whole = float((weight @ np.square(y - level)).sum()) or 1.0
    return total * math.log(max(squares, 1e-12 * whole) / total)  # all perfect fits are alike: the smallest wins


def robust_delta(loss: str | LossMaker, y: Vector, weight: Vector | None) -> float:
    """δ of the huber loss for a target; none for the others."""
    return huber_delta(y, weight) if loss == "huber" else math.inf


def mean_error(loss: str | LossMaker, y: Vector, score: Vector, weight: Vector, delta: float = math.inf) -> float:
    """What a row costs in cross-validation, in the mean: twice the loss that the model was fitted with."""
    if not isinstance(loss, str) or loss not in TERMS:
        return 2.0 * loss_of_scores(loss, y, score, weight) / float(weight.sum())
    return float(np.average(error_terms(loss, y, score, delta), weights=weight))


def error_terms(loss: str, y: Vector, score: Vector, delta: float = math.inf) -> Vector:
    """Twice the loss of each row, of a loss that has a name."""
    if loss == "logistic":
        return np.asarray(2.0 * np.logaddexp(0.0, -(2.0 * y - 1.0) * score))
    if loss == "poisson":
        return np.asarray(2.0 * (np.exp(np.minimum(score, 700.0)) - y * score))
    r = np.abs(y - score)
    if r.ndim == 2:  # of several targets
        return np.asarray(np.square(r).sum(axis=1))
    return np.asarray(np.where(r <= delta, r**2, 2.0 * delta * r - delta**2) if math.isfinite(delta) else r**2)
