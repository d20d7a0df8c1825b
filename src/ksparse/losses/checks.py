"""Checks of a loss: its derivatives against differences, and what a custom loss says of itself against its values."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ksparse.losses.base import Loss
from ksparse.util.arrays import Array, Vector, dot, epsilon, like, namespace, norm, norm_inf, to_float64, zeros_like
from ksparse.util.checks import check_piece, check_vector

RIGHT = 1e-5  # a relative error below this is that of the differences


@dataclass(frozen=True)
class GradientCheck:
    """∇φ(x) beside central differences of φ, and dᵀ∇²φ(x)d along a random d beside differences of ∇φ.

    Attributes
    ----------
    gradient : ndarray
        As the loss says.
    differences : ndarray
        Of its values.
    error : float
        Of the worst entry, relative to the largest of either.
    worst : int
        That entry.
    curvature_error : float
        Relative; of a Huber-like majorant it need not be small.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> wrong = ks.Custom(value=lambda x: float(x @ x), gradient=lambda x: x, n=2)  # it is 2x
    >>> found = ks.check_gradient(wrong, np.array([1.0, 3.0]))
    >>> found.passed, found.worst, round(found.error, 3)
    (False, 1, 0.5)
    """

    gradient: Vector  # as the loss says
    differences: Vector  # of its values
    error: float  # of the worst entry, relative to the largest of either
    worst: int  # that entry
    curvature_error: float  # relative; of a Huber-like majorant it need not be small

    @property
    def passed(self) -> bool:
        """Whether the gradient is that of the values."""
        return self.error <= RIGHT

    def __repr__(self) -> str:
        i, verdict = self.worst, "gradient agrees with values" if self.passed else "gradient is NOT that of the values"
        return (
            f"{verdict}: largest relative error {self.error:.2g}, at entry {i} (gradient {self.gradient[i]:.6g}, differences "
            f"{self.differences[i]:.6g}); curvature along a random direction off by {self.curvature_error:.2g}"
        )


def check_gradient(loss: Loss, x: Any) -> GradientCheck:
    """Hold the gradient of a loss at x against differences of its values, entry by entry: 2n values, in double precision.

    Parameters
    ----------
    loss : Loss
        Yours, or any of ours.
    x : array-like
        Where; a point with no zeros shows more.

    Returns
    -------
    GradientCheck
        `passed`, the largest error and where it is.

    Raises
    ------
    ValueError, TypeError
        If `loss` is none, or x does not fit it.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> loss = ks.Logistic(rng.standard_normal((30, 5)), rng.integers(0, 2, 30))
    >>> ks.check_gradient(loss, rng.standard_normal(5)).passed
    True
    """
    check_piece(loss, Loss, "loss")
    given = check_vector(x, "x", loss.n, kind=loss.given_kind)
    loss = loss.for_vectors_like(given)
    z = to_float64(given)

    def value(v: Vector) -> float:
        return loss.value(like(v, given))

    def gradient(v: Vector) -> Vector:
        return np.asarray(to_float64(loss.gradient(like(v, given))))

    there = gradient(z)
    steps = loss.rounding ** (1 / 3) * np.maximum(np.abs(z), max(1e-3, float(np.abs(z).mean())))
    differences = np.array(
        [(value(z + h * e) - value(z - h * e)) / (2.0 * h) for h, e in zip(steps, np.eye(z.size), strict=True)]
    )
    gaps = np.abs(there - differences)
    scale = max(float(np.abs(there).max()), float(np.abs(differences).max())) or 1.0
    d = np.random.default_rng(0).standard_normal(z.size)
    d *= float(steps.mean()) / norm(d)
    bend = loss.curvature_at(given, loss.image(given), like(d, given), loss.image(like(d, given)))
    seen = float(d @ (gradient(z + d) - gradient(z - d))) / 2.0
    worst = int(np.argmax(gaps)) if np.isfinite(gaps).all() else int(np.argmax(~np.isfinite(gaps)))
    error = float(gaps[worst] / scale) if np.isfinite(gaps[worst]) else np.inf
    return GradientCheck(there, differences, error, worst, abs(bend - seen) / (max(abs(bend), abs(seen)) or 1.0))


TRIALS = 3  # directions that a gradient is checked along


def self_check(loss: Loss, x: Array, project: Callable[[Array], Array]) -> None:
    """Refuse an image that is not linear, a gradient that is not that of the values, squares or a quadratic that are not φ."""
    x = project(x)
    if norm_inf(loss.image(zeros_like(x))) != 0:
        name = type(loss).__name__
        raise ValueError(
            f"image must be linear in x, but {name}.image(0) is not 0: subtract constants in value_at and gradient_at"
        )
    value, gradient = _value_and_gradient(loss, x)
    if not math.isfinite(value):
        raise ValueError(f"value(x) must be a finite number, got {value} at a point of C")
    loss.check_least(x, value)
    _try_gradient(loss, x, value, gradient, project)
    _try_quadratic(loss, x, value)


def _value_and_gradient(loss: Loss, x: Array) -> tuple[float, Array]:
    image, name = loss.image(x), type(loss).__name__
    value: Any = loss.value_at(x, image)
    try:
        value = float(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name}.value_at must return one number, got {type(value).__name__}") from error
    gradient = loss.gradient_at(x, image)
    if tuple(getattr(gradient, "shape", ())) != tuple(x.shape):
        got = getattr(gradient, "shape", type(gradient).__name__)
        raise ValueError(f"{name}.gradient_at must have shape {tuple(x.shape)}, got {got}")
    return value, gradient


def _try_gradient(loss: Loss, x: Array, value: float, gradient: Array, project: Callable[[Array], Array]) -> None:
    """The gradient against differences of values, along a few directions that stay in C."""
    rng, wrong, seen, slope = np.random.default_rng(0), [], 0.0, 0.0
    for _ in range(TRIALS):
        step = epsilon(x) ** (1 / 3) * max(norm(x), 1e-3)
        d = project(x + like(step * rng.standard_normal(int(x.shape[0])), x)) - x
        length = norm(d)
        if length < 0.01 * step:
            continue
        there, gradient_there = _value_and_gradient(loss, x + d)
        slopes = dot(gradient, d), dot(gradient_there, d)
        rise = there - value  # the mean slope lies between those of the ends but for curvature that bends twice
        blur = (
            64.0 * loss.rounding * max(abs(value), abs(there))
            + 0.1 * max(map(abs, slopes))
            + abs(slopes[1] - slopes[0])
        )
        wrong.append(not abs(rise - 0.5 * sum(slopes)) <= blur)
        slope, seen = slopes[0] / length, rise / length
    if len(wrong) > 1 and all(wrong):
        raise ValueError(
            f"gradient must be that of value: along a direction value changes by {seen:.4g}, gradient says {slope:.4g}"
        )


def _try_quadratic(loss: Loss, x: Array, value: float) -> None:
    """The quadratic that proofs rest on against φ, where there is one."""
    name, squares = type(loss).__name__, loss.squares()
    if squares is not None:
        m, n = (int(side) for side in squares.A.shape)
        for part, given, length in (("b", squares.b, m), ("weight", squares.weight, m), ("ridge", squares.ridge, n)):
            if given is not None and tuple(np.shape(given)) != (length,):
                raise ValueError(
                    f"{name}.squares() needs a {part} of shape ({length},) beside A of shape {(m, n)}, got {np.shape(given)}"
                )
            if given is not None and part != "b" and float(namespace(given).min(given)) < 0:
                raise ValueError(f"{name}.squares() needs a {part} >= 0, got {float(namespace(given).min(given)):g}")
    model = loss.as_float64().quadratic()
    if model is None:
        return
    z: Vector = to_float64(x)
    if model.n != z.size:
        raise ValueError(f"{name}.quadratic() must have {z.size} variables, got {model.n}")
    form, pull = 0.5 * float(z @ model.H.times(z[None])[0]), float(model.r @ z)
    size = abs(form) + abs(pull) + abs(model.constant) + abs(value)
    if abs(form - pull + model.constant - value) > max(1e-7, epsilon(x) ** 0.5) * size:
        said = form - pull + model.constant
        raise ValueError(
            f"squares() and quadratic() must be φ itself, constant included: {name} is {value:.6g} at a point, they say {said:.6g}"
        )
