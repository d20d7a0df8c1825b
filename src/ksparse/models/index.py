"""An index, and how far the returns of weights are from its own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ksparse.util.arrays import Vector

EPS = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class Index:
    """Returns y of an index over the periods of X: the tracking error of weights is √(‖Xx − y‖²/periods), at most `limit`."""

    X: Vector
    y: Vector
    limit: float = np.inf

    @cached_property
    def gram(self) -> Vector:
        """XᵀX/periods: error(x)² = xᵀ gram x − 2 pullᵀx + rest."""
        return np.asarray(self.X.T @ self.X / len(self.X))

    @cached_property
    def pull(self) -> Vector:
        """Xᵀy/periods."""
        return np.asarray(self.y @ self.X / len(self.X))

    @cached_property
    def rest(self) -> float:
        """The square of the error of holding nothing."""
        return float(np.mean(np.square(self.y)))

    def error(self, x: Vector) -> float:
        """The tracking error, from the returns themselves."""
        held = np.flatnonzero(x)
        return float(np.sqrt(np.mean(np.square(self.X[:, held] @ x[held] - self.y))))

    def rounding(self, x: Vector) -> float:
        """What summing the error in another order changes at most.

        Returns are sums of as many terms as names are held, and rounded as these are large, not as the distance to the index is.
        """
        terms = float(np.sqrt(np.diag(self.gram)) @ np.abs(x) + np.sqrt(self.rest))
        return EPS * ((np.count_nonzero(x) + 2) * terms + len(self.y) * self.error(x))

    def kept(self, x: Vector) -> bool:
        """Whether the error is within the limit: by whatever order of summation, or where that decides as all returns give it."""
        error = self.error(x)
        if abs(error - self.limit) > self.rounding(x):
            return error < self.limit
        return bool(np.sqrt(np.mean(np.square(self.X @ x - self.y))) <= self.limit)

    def between(self, far: Vector, near: Vector) -> Vector:
        """The first point within the limit on the way from one beyond it to one within; within by whatever order of summation."""
        a, b = self.X @ far - self.y, self.X @ (near - far)
        size, slope, excess = float(b @ b), float(a @ b), float(a @ a) - len(self.y) * self.limit**2
        root = np.sqrt(max(slope**2 - size * excess, 0.0)) if size > 0 else 0.0
        share = (
            min(max(excess / (root - slope), 0.0), 1.0) if root - slope > 0 else 1.0
        )  # of the way; the smaller root, without cancelling
        step = EPS
        while share < 1.0:
            x = far + share * (near - far)
            if self.error(x) + self.rounding(x) <= self.limit:
                return np.asarray(x)
            share, step = min(share + step, 1.0), 2.0 * step
        return near
