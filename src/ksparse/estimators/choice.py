"""Choosing k: by cross-validation, or by an information criterion."""

from __future__ import annotations

import math

import numpy as np

from ksparse.models.losses import HUBER, LossMaker, huber_delta, loss_of_scores
from ksparse.util.arrays import Vector

CRITERIA = ("cv", "aic", "bic", "ebic")
TERMS = ("squared", "huber", "logistic", "poisson")  # whose `error_terms` are spelled out; of others the loss itself is asked


def best_k(ks: Vector, errors: Vector, one_standard_error: bool) -> int:
    """The k with the least mean error over folds (rows of `errors`); or the least k within one standard error of it."""
    mean = errors.mean(axis=0)
    best = int(np.argmin(mean))
    if one_standard_error:
        spread = errors[:, best].std(ddof=1) / math.sqrt(len(errors)) if len(errors) > 1 else 0.0
        best = int(np.argmax(mean <= mean[best] + spread))
    return int(ks[best])


def information(criterion: str, deviance: Vector, used: Vector, rows: float, features: int, chosen: Vector | None = None) -> Vector:
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
