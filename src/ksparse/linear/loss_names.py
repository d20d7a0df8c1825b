"""Losses of linear models: built-in losses by name, custom losses by class."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ksparse.losses import (
    Gamma,
    Huber,
    LeastSquares,
    Logistic,
    Loss,
    Multinomial,
    MultiResponse,
    NegativeBinomial,
    Poisson,
    Quantile,
    Tweedie,
)
from ksparse.util.arrays import Vector

HUBER = 1.345  # δ in robust standard deviations: 95 % efficient where the noise is Gaussian
CALL = "loss(A, b, sample_weight, ridge)"

LossMaker = Callable[[Any, Any, Any, Any], Loss]
LossLike = str | LossMaker  # a name of LOSSES, or a class


def huber_delta(y: Any, weight: Any = None) -> float:
    """Return δ for a target: HUBER times its robust standard deviation; weights count as repetitions."""
    y = np.asarray(y, dtype=float)
    w = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    y, w = y[w > 0], w[w > 0]
    if not y.size:
        return HUBER
    spread = _median(np.abs(y - _median(y, w)), w) * 1.4826
    return HUBER * (spread or float(np.sqrt(np.average((y - np.average(y, weights=w)) ** 2, weights=w))) or 1.0)


def _median(values: Vector, weight: Vector) -> float:
    """Return the weighted median."""
    order = np.argsort(values, kind="stable")
    cumulative, half = np.cumsum(weight[order]), 0.5 * float(weight.sum())
    low = np.searchsorted(cumulative, half * (1 - 1e-12))
    high = np.searchsorted(cumulative, half * (1 + 1e-12), side="right")
    return 0.5 * float(values[order[np.minimum([low, high], len(values) - 1)]].sum())


LOSSES: dict[str, LossMaker] = {
    "squared": lambda A, b, weight, ridge: (MultiResponse if np.ndim(b) == 2 else LeastSquares)(A, b, weight, ridge),
    "logistic": Logistic,
    "huber": lambda A, b, weight, ridge: Huber(A, b, huber_delta(b, weight), weight, ridge),
    "poisson": Poisson,
    "multinomial": lambda A, b, weight, ridge: Multinomial(A, b, weight, ridge, classes=np.arange(int(np.max(b)) + 1)),
    "quantile": Quantile,
    "negative_binomial": NegativeBinomial,
    "gamma": Gamma,
    "tweedie": Tweedie,
}
OF_CLASSES = ("logistic", "multinomial")  # losses of classifiers
OF_NUMBERS = tuple(name for name in LOSSES if name not in OF_CLASSES)  # losses of regressors
LOG_LINK = ("poisson", "gamma", "tweedie", "negative_binomial")  # losses whose score is the logarithm of the mean


def check_loss(loss: LossLike, allowed: tuple[str, ...] = tuple(LOSSES)) -> LossMaker:
    """Return the constructor of a loss, given by name or as a class or function."""
    if isinstance(loss, str):
        if loss not in allowed:
            known = ", ".join(allowed)
            raise ValueError(f"loss must be one of {known}, got {loss!r}; a custom loss is a class, called as {CALL}")
        return LOSSES[loss]
    if not callable(loss):
        advice = ": pass the class, which is called with the data of each fit" if isinstance(loss, Loss) else ""
        raise TypeError(f"loss must be a name or a class, called as {CALL}, got {type(loss).__name__}{advice}")
    try:
        inspect.signature(loss).bind(None, None, None, None)
    except TypeError as error:
        raise TypeError(f"loss must be called as {CALL}, but {name_of(loss)} cannot: {error}") from error
    except ValueError:  # it has no signature
        pass
    return loss


def name_of(loss: LossLike) -> str:
    """Return the name of a loss for messages."""
    return loss if isinstance(loss, str) else str(getattr(loss, "__name__", type(loss).__name__))


def huber_with(delta: float) -> LossMaker:
    """Return the constructor of a Huber loss with a given δ."""
    return lambda A, b, sample_weight, ridge: Huber(A, b, delta, sample_weight, ridge)


def make_loss(loss: LossLike, A: Any, b: Any, weight: Any = None, ridge: Any = 0.0) -> Loss:
    """Return the loss of a linear model on A and b."""
    made = check_loss(loss)(A, b, weight, ridge)
    if not isinstance(made, Loss):
        raise TypeError(f"{CALL} must return a ksparse.Loss, but {name_of(loss)} returned {type(made).__name__}")
    if made.n != A.shape[1] * made.per_feature:
        raise ValueError(f"{CALL} must have n = {A.shape[1]}, the columns of A, but {name_of(loss)} has n = {made.n}")
    return made


def loss_of_scores(loss: LossLike, y: Vector, score: Vector, weight: Vector) -> float:
    """Return Σᵢ wᵢh(scoreᵢ; yᵢ): the loss of a model whose columns are the scores, with coefficient 1."""
    if loss == "multinomial":
        t = score.shape[1]
        return Multinomial(score, y, weight, classes=np.arange(t)).value(np.eye(t).ravel())
    return make_loss(loss, np.asarray(score, dtype=float)[:, None], y, weight).value(np.ones(1))
