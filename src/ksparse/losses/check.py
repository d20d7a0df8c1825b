"""Whether the derivatives of a loss are those of its values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ksparse.losses.base import Loss
from ksparse.util.arrays import Vector, like, norm, to_float64
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
    check_piece(loss, Loss, "loss", "loss")
    given = check_vector(x, "x", loss.n, kind=loss.given_kind)
    loss = loss.for_vectors_like(given)
    z = to_float64(given)

    def value(v: Vector) -> float:
        return loss.value(like(v, given))

    def gradient(v: Vector) -> Vector:
        return np.asarray(to_float64(loss.gradient(like(v, given))))

    there = gradient(z)
    steps = loss.rounding ** (1 / 3) * np.maximum(np.abs(z), max(1e-3, float(np.abs(z).mean())))
    differences = np.array([(value(z + h * e) - value(z - h * e)) / (2.0 * h) for h, e in zip(steps, np.eye(z.size), strict=True)])
    gaps = np.abs(there - differences)
    scale = max(float(np.abs(there).max()), float(np.abs(differences).max())) or 1.0
    d = np.random.default_rng(0).standard_normal(z.size)
    d *= float(steps.mean()) / norm(d)
    bend = loss.curvature_at(given, loss.image(given), like(d, given), loss.image(like(d, given)))
    seen = float(d @ (gradient(z + d) - gradient(z - d))) / 2.0
    worst = int(np.argmax(gaps)) if np.isfinite(gaps).all() else int(np.argmax(~np.isfinite(gaps)))
    error = float(gaps[worst] / scale) if np.isfinite(gaps[worst]) else np.inf
    return GradientCheck(there, differences, error, worst, abs(bend - seen) / (max(abs(bend), abs(seen)) or 1.0))
