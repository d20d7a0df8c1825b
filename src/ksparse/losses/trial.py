"""A loss of the user's, tried out at a point: what it says of itself is held against its values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ksparse.util.arrays import Array, Vector, dot, epsilon, like, namespace, norm, norm_inf, to_float64, zeros_like

if TYPE_CHECKING:
    from ksparse.losses.base import Loss

TRIALS = 3  # directions that a gradient is checked along


def try_out(loss: Loss, x: Array, project: Callable[[Array], Array]) -> None:
    """Refuse an image that is not linear, a gradient that is not that of the values, squares or a quadratic that are not φ."""
    x = project(x)
    if norm_inf(loss.image(zeros_like(x))) != 0:
        name = type(loss).__name__
        raise ValueError(f"image must be linear in x, but {name}.image(0) is not 0: subtract constants in value_at and gradient_at")
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
        blur = 64.0 * loss.rounding * max(abs(value), abs(there)) + 0.1 * max(map(abs, slopes)) + abs(slopes[1] - slopes[0])
        wrong.append(not abs(rise - 0.5 * sum(slopes)) <= blur)
        slope, seen = slopes[0] / length, rise / length
    if len(wrong) > 1 and all(wrong):
        raise ValueError(f"gradient must be that of value: along a direction value changes by {seen:.4g}, gradient says {slope:.4g}")


def _try_quadratic(loss: Loss, x: Array, value: float) -> None:
    """The quadratic that proofs rest on against φ, where there is one."""
    name, squares = type(loss).__name__, loss.squares()
    if squares is not None:
        m, n = (int(side) for side in squares.A.shape)
        for part, given, length in (("b", squares.b, m), ("weight", squares.weight, m), ("ridge", squares.ridge, n)):
            if given is not None and tuple(np.shape(given)) != (length,):
                raise ValueError(f"{name}.squares() needs a {part} of shape ({length},) beside A of shape {(m, n)}, got {np.shape(given)}")
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
