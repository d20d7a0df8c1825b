"""The losses of linear models: some by name, any by a class of the user's."""

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
CALL = "loss(A, b, sample_weight, ridge)"  # how a loss is made

LossMaker = Callable[[Any, Any, Any, Any], Loss]


def _huber(A: Any, b: Any, sample_weight: Any, ridge: Any) -> Huber:
    return Huber(A, b, huber_delta(b, sample_weight), sample_weight, ridge)


def huber_delta(y: Any, weight: Any = None) -> float:
    """δ for a target: HUBER robust standard deviations of it; weights count like repeated rows."""
    y = np.asarray(y, dtype=float)
    w = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    y, w = y[w > 0], w[w > 0]
    if not y.size:
        return HUBER
    spread = _median(np.abs(y - _median(y, w)), w) * 1.4826
    return HUBER * (spread or float(np.sqrt(np.average((y - np.average(y, weights=w)) ** 2, weights=w))) or 1.0)


def _median(values: Vector, weight: Vector) -> float:
    """The median of values that count as often as their weights say."""
    order = np.argsort(values, kind="stable")
    heap, half = np.cumsum(weight[order]), 0.5 * float(weight.sum())
    last = len(values) - 1
    low = int(np.searchsorted(heap, half * (1 - 1e-12)))
    high = int(np.searchsorted(heap, half * (1 + 1e-12), side="right"))
    return 0.5 * float(values[order[min(low, last)]] + values[order[min(high, last)]])


def _squares(A: Any, b: Any, sample_weight: Any, ridge: Any) -> LeastSquares | MultiResponse:
    return (MultiResponse if np.ndim(b) == 2 else LeastSquares)(A, b, sample_weight, ridge)


def _classes(A: Any, b: Any, sample_weight: Any, ridge: Any) -> Multinomial:
    return Multinomial(A, b, sample_weight, ridge, classes=np.arange(int(np.max(b)) + 1))


LOSSES: dict[str, LossMaker] = {
    "squared": _squares,
    "logistic": Logistic,
    "huber": _huber,
    "poisson": Poisson,
    "multinomial": _classes,
    "quantile": Quantile,
    "gamma": Gamma,
    "tweedie": Tweedie,
    "negative_binomial": NegativeBinomial,
}
LOG_LINK = ("poisson", "gamma", "tweedie", "negative_binomial")  # whose score is the logarithm of a mean


def check_loss(loss: str | LossMaker, allowed: tuple[str, ...] = tuple(LOSSES)) -> LossMaker:
    """What makes the loss: of a name, or the user's own class or function as it is."""
    if isinstance(loss, str):
        if loss not in allowed:
            raise ValueError(
                f"loss must be one of {', '.join(allowed)}, got {loss!r}; your own is a class, called as {CALL}"
            )
        return LOSSES[loss]
    if not callable(loss):
        advice = ": give its class, which is called for the rows and columns at hand" if isinstance(loss, Loss) else ""
        raise TypeError(
            f"loss must be a name or a class of your own, called as {CALL}, got {type(loss).__name__}{advice}"
        )
    try:
        inspect.signature(loss).bind(None, None, None, None)
    except TypeError as error:
        raise TypeError(f"loss must be called as {CALL}, but {name_of(loss)} cannot: {error}") from error
    except ValueError:  # it does not show how it is called
        pass
    return loss


def name_of(loss: str | LossMaker) -> str:
    """For messages."""
    return loss if isinstance(loss, str) else str(getattr(loss, "__name__", type(loss).__name__))


def huber_with(delta: float) -> LossMaker:
    """The Huber loss with that δ, in the units of the target it is given."""
    return lambda A, b, sample_weight, ridge: Huber(A, b, delta, sample_weight, ridge)


def make_loss(loss: str | LossMaker, A: Any, b: Any, weight: Any = None, ridge: Any = 0.0) -> Loss:
    """The loss of a linear model."""
    made = check_loss(loss)(A, b, weight, ridge)
    if not isinstance(made, Loss):
        raise TypeError(f"{CALL} must return a ksparse.Loss, but {name_of(loss)} returned {type(made).__name__}")
    if made.n != A.shape[1] * made.per_feature:
        raise ValueError(f"{CALL} must have n = {A.shape[1]}, the columns of A, but {name_of(loss)} has n = {made.n}")
    return made


def loss_of_scores(loss: str | LossMaker, y: Vector, score: Vector, weight: Vector) -> float:
    """Σᵢ wᵢh(scoreᵢ; yᵢ): the loss of the model whose only column is the score, at coefficient 1; of classes, that of their scores."""
    if loss == "multinomial":
        t = score.shape[1]
        return Multinomial(score, y, weight, classes=np.arange(t)).value(np.eye(t).ravel())
    return make_loss(loss, np.asarray(score, dtype=float)[:, None], y, weight).value(np.ones(1))
