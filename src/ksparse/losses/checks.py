"""Checks of a loss: its derivatives against differences, and its other methods against its values."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ksparse.losses.base import Loss
from ksparse.util.arrays import Array, Vector, dot, epsilon, like, namespace, norm, norm_inf, to_float64, zeros_like
from ksparse.util.checks import as_number, check_piece, check_vector, require_shape

RIGHT = 1e-5  # largest relative error that differences explain
TRIALS = 3  # directions along which a gradient is checked


@dataclass(frozen=True)
class GradientCheck:
    """Comparison of ∇φ(x) with central differences of φ, and of the curvature along a random direction with ∇φ.

    Attributes
    ----------
    gradient : ndarray
        The gradient that the loss returns.
    differences : ndarray
        Central differences of its values.
    error : float
        Largest difference of two entries, relative to the largest entry of both.
    worst : int
        Index of that entry.
    curvature_error : float
        Relative error of the curvature; it may be large if the loss returns that of a majorant, as `Huber` does.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> wrong = ks.Custom(value=lambda x: float(x @ x), gradient=lambda x: x, n=2)  # it is 2x
    >>> found = ks.check_gradient(wrong, np.array([1.0, 3.0]))
    >>> found.passed, found.worst, round(found.error, 3)
    (False, 1, 0.5)
    """

    gradient: Vector
    differences: Vector
    error: float
    worst: int
    curvature_error: float

    @property
    def passed(self) -> bool:
        """Whether the gradient agrees with the values."""
        return self.error <= RIGHT

    def __repr__(self) -> str:
        i, verdict = self.worst, "gradient agrees with values" if self.passed else "gradient does NOT match values"
        there = f"at entry {i} (gradient {self.gradient[i]:.6g}, differences {self.differences[i]:.6g})"
        bend = f"relative error of the curvature along a random direction: {self.curvature_error:.2g}"
        return f"{verdict}: largest relative error {self.error:.2g}, {there}; {bend}"


def check_gradient(loss: Loss, x: Any) -> GradientCheck:
    """Compare the gradient of a loss at x with differences of 2n values, in double precision.

    Parameters
    ----------
    loss : Loss
        The loss to check.
    x : array-like
        The point; one without zeros shows more errors.

    Returns
    -------
    GradientCheck
        Whether the gradient passed, the largest error and its index.

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

    def gradient(v: Vector) -> Vector:
        return np.asarray(to_float64(loss.gradient(like(v, given))))

    there = gradient(z)
    steps = loss.rounding ** (1 / 3) * np.maximum(np.abs(z), max(1e-3, float(np.abs(z).mean())))
    ends = [[loss.value(like(z + side * move, given)) for side in (1.0, -1.0)] for move in np.diag(steps)]
    differences = np.array([up - down for up, down in ends]) / (2.0 * steps)
    gaps = np.abs(there - differences)
    scale = float(np.abs([there, differences]).max()) or 1.0
    d = np.random.default_rng(0).standard_normal(z.size)
    d *= float(steps.mean()) / norm(d)
    bend = loss.curvature_at(given, loss.image(given), like(d, given), loss.image(like(d, given)))
    seen = float(d @ (gradient(z + d) - gradient(z - d))) / 2.0
    worst = int(np.argmax(gaps)) if np.isfinite(gaps).all() else int(np.argmax(~np.isfinite(gaps)))
    error = float(gaps[worst] / scale) if np.isfinite(gaps[worst]) else np.inf
    return GradientCheck(there, differences, error, worst, abs(bend - seen) / (max(abs(bend), abs(seen)) or 1.0))


def self_check(loss: Loss, x: Array, project: Callable[[Array], Array]) -> None:
    """Raise ValueError if the image is not linear, or the gradient, squares or quadratic do not match the values."""
    x = project(x)
    if norm_inf(loss.image(zeros_like(x))) != 0:
        found = f"{type(loss).__name__}.image(0) is not 0: subtract constants in value_at and gradient_at"
        raise ValueError(f"image must be linear in x, but {found}")
    value, gradient = _value_and_gradient(loss, x)
    if not math.isfinite(value):
        raise ValueError(f"value(x) must be a finite number, got {value} at a point of C")
    loss.check_least(x, value)
    _check_gradient(loss, x, value, gradient, project)
    _check_quadratic(loss, x, value)


def _value_and_gradient(loss: Loss, x: Array) -> tuple[float, Array]:
    image, name = loss.image(x), type(loss).__name__
    value = as_number(loss.value_at(x, image), f"{name}.value_at")
    gradient = loss.gradient_at(x, image)
    require_shape(gradient, x.shape, f"{name}.gradient_at")
    return value, gradient


def _check_gradient(loss: Loss, x: Array, value: float, gradient: Array, project: Callable[[Array], Array]) -> None:
    """Compare the gradient with differences of values along a few directions that stay in C."""
    rng, wrong, seen, slope = np.random.default_rng(0), [], 0.0, 0.0
    for _ in range(TRIALS):
        step = epsilon(x) ** (1 / 3) * max(norm(x), 1e-3)
        d = project(x + like(step * rng.standard_normal(int(x.shape[0])), x)) - x
        length = norm(d)
        if length < 0.01 * step:
            continue
        there, gradient_there = _value_and_gradient(loss, x + d)
        slopes = dot(gradient, d), dot(gradient_there, d)
        rise = there - value  # about the mean of the slopes at both ends
        rounding = 64.0 * loss.rounding * max(abs(value), abs(there))
        tolerance = rounding + 0.1 * max(map(abs, slopes)) + abs(slopes[1] - slopes[0])
        wrong.append(not abs(rise - 0.5 * sum(slopes)) <= tolerance)
        slope, seen = slopes[0] / length, rise / length
    if len(wrong) > 1 and all(wrong):
        found = f"directional derivative {seen:.4g} by finite differences, {slope:.4g} from gradient"
        raise ValueError(f"gradient does not match value: {found}")


def _check_quadratic(loss: Loss, x: Array, value: float) -> None:
    """Compare the data of a quadratic, which proofs use, with φ."""
    name, squares = type(loss).__name__, loss.squares()
    if squares is not None:
        m, n = (int(side) for side in squares.A.shape)
        for part, given, length in (("b", squares.b, m), ("weight", squares.weight, m), ("ridge", squares.ridge, n)):
            if given is None:
                continue
            if tuple(np.shape(given)) != (length,):
                needed = f"a {part} of shape ({length},) for A of shape {(m, n)}"
                raise ValueError(f"{name}.squares() needs {needed}, got {np.shape(given)}")
            if part != "b" and (lowest := float(namespace(given).min(given))) < 0:
                raise ValueError(f"{name}.squares() needs a {part} >= 0, got {lowest:g}")
    model = loss.as_float64().quadratic()
    if model is None:
        return
    z: Vector = to_float64(x)
    if model.n != z.size:
        raise ValueError(f"{name}.quadratic() must have {z.size} variables, got {model.n}")
    form, pull = 0.5 * float(z @ model.H.times(z[None])[0]), float(model.r @ z)
    total, size = form - pull + model.constant, abs(form) + abs(pull) + abs(model.constant) + abs(value)
    if abs(total - value) > max(1e-7, epsilon(x) ** 0.5) * size:
        found = f"{name} is {value:.6g} at a point, they give {total:.6g}"
        raise ValueError(f"squares() and quadratic() must equal φ, constant included: {found}")
