"""The Euclidean ball, and its part where no entry is negative."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np

from ksparse.numerics.bound import Noise, rounding_of, suboptimality_bound
from ksparse.numerics.constraints import Linear
from ksparse.numerics.eigen import minimize_on_ball
from ksparse.numerics.qp import Objective, Solution
from ksparse.sets.base import ScaledSet, positive_part, soft_threshold
from ksparse.util.arrays import Array, Vector, larger, namespace, norm, norm_inf, top_k, zero_outside
from ksparse.util.checks import check_radius

FACES = 6  # variables up to which all sets of free variables are enumerated
EXCHANGES = 200  # largest number of changes of the free variables


class _EuclideanBall(ScaledSet):
    """Common part of the two balls."""

    has_shrink = has_joint = True

    def __init__(self, radius: float = 1) -> None:
        self.radius = self.size = check_radius(radius)

    def _into_ball(self, x: Array) -> Array:
        return x * (self.radius / larger(norm(x), self.radius))  # times 1.0 inside the ball


class L2Ball(_EuclideanBall):
    """``{x : ‖x‖₂ ≤ radius}``.

    Parameters
    ----------
    radius : float, default=1
        Radius > 0, whose square neither overflows nor underflows.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> ks.minimize(ks.LeastSquares(np.eye(3), [3.0, 4.0, 1.0]), 2, ks.L2Ball()).x.round(9)
    array([0.6, 0.8, 0. ])
    """

    has_multipliers = True

    def project(self, u: Array) -> Array:
        return self._into_ball(u)

    def violation(self, x: Array) -> float:
        return larger(norm(x) - self.radius, 0.0)

    def shrink(self, u: Array, t: float) -> Array:
        # scaling a soft-thresholded point keeps its subgradient of the norm, so the two maps compose (Yu 2013)
        return self._into_ball(soft_threshold(u, t))

    def project_sparse(self, u: Array, k: int) -> Array:
        return self._into_ball(zero_outside(u, top_k(namespace(u).abs(u), k)))

    def as_norm_ball(self) -> tuple[int, float]:
        return 2, self.radius

    def minimize_quadratic(self, H: Vector, c: Vector, near: Vector) -> Solution:
        x = minimize_on_ball(H, c, self.radius, near)
        shift = max(0.0, -float((H @ x + c) @ x) / max(float(x @ x), 1e-300))
        return replace(Solution.without_multipliers(x), shift=shift, radius=self.radius)

    def shortfall(self, H: Vector, c: Vector, found: Solution, noise: Noise) -> float:
        """Return the bound of `numerics.bound` with ½·shift·(‖x‖² − r²) in the Lagrangian."""
        x, k, radius = found.x, c.size, self.radius
        shifted = Objective(H + found.shift * np.eye(k), c)
        complementarity_error = 0.5 * found.shift * (abs(radius**2 - float(x @ x)) + rounding_of(k) * radius**2)
        box, none = Linear.of(k, -radius - np.abs(x), radius + np.abs(x)), np.zeros(0)
        return complementarity_error + suboptimality_bound(shifted, box, x, none, none, noise)


class NonnegativeBall(_EuclideanBall):
    """``{x : x ≥ 0, ‖x‖₂ ≤ radius}``; the projection clips, then scales, because the orthant is a cone.

    Parameters
    ----------
    radius : float, default=1
        Radius > 0, whose square neither overflows nor underflows.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> ks.minimize(ks.LeastSquares(np.eye(3), [3.0, -4.0, 1.0]), 1, ks.NonnegativeBall()).x.round(9)
    array([1., 0., 0.])
    """

    def project(self, u: Array) -> Array:
        return self._into_ball(positive_part(u))

    def violation(self, x: Array) -> float:
        return larger(norm(x) - self.radius, norm_inf(positive_part(-x)))

    def shrink(self, u: Array, t: float) -> Array:
        return self._into_ball(positive_part(u - t))

    def project_sparse(self, u: Array, k: int) -> Array:
        x = positive_part(u)
        return self._into_ball(zero_outside(x, top_k(x, k)))

    def minimize_quadratic(self, H: Vector, c: Vector, near: Vector) -> Solution | None:
        """Solve on the ball in the free variables, changed by the signs of x and the gradient; None if this cycles.

        A point with x ≥ 0 and a gradient ≥ 0 in the fixed variables is optimal if H is positive semidefinite, else
        stationary.
        """
        free = near > 0 if (near > 0).any() else c < 0
        for _ in range(EXCHANGES):
            x = np.zeros_like(c)
            if free.any():
                x[free] = minimize_on_ball(H[np.ix_(free, free)], c[free], self.radius, near[free])
            if x.min(initial=0.0) < 0:
                free[np.argmin(x)] = False
                continue
            gradient = np.where(free, 0.0, H @ x + c)
            size = max(float(np.abs(H @ x).max(initial=0.0)), float(np.abs(c).max(initial=0.0)))
            if gradient.min(initial=0.0) >= -1e-12 * size:
                return Solution.without_multipliers(x)
            free[np.argmin(gradient)] = True
        return None

    def minimize_on_faces(self, H: Vector, c: Vector) -> Vector | None:
        """Solve on the ball for every set of free variables."""
        if c.size > FACES:
            return None
        best = np.zeros_like(c)
        for count in range(1, c.size + 1):
            for chosen in combinations(range(c.size), count):
                free = list(chosen)
                found = minimize_on_ball(H[np.ix_(free, free)], c[free], self.radius, np.ones(count))
                for part in (found, -found) if not c[free].any() else (found,):
                    if part.min() >= 0:
                        x = np.zeros_like(c)
                        x[free] = part
                        best = min(best, x, key=lambda x: float(0.5 * x @ H @ x + c @ x))
        return best
