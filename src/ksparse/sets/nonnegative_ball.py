"""The part of the Euclidean ball where no entry is negative."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from ksparse.numerics.eigen import minimize_on_ball
from ksparse.numerics.qp import Solution
from ksparse.sets.base import ConvexSet
from ksparse.util.arrays import Array, Vector, larger, namespace, norm, norm_inf, top_k, zero_outside
from ksparse.util.checks import check_radius

FACES = 6  # variables up to which all choices of free ones are tried
EXCHANGES = 200  # of free and fixed entries


class NonnegativeBall(ConvexSet):
    """``{x : x ≥ 0, ‖x‖₂ ≤ radius}``; the projection clips, then scales: the orthant is a cone.

    Parameters
    ----------
    radius : float, default=1
        Above 0.

    Raises
    ------
    ValueError
        If the radius is not above 0, or so large or small that its square is no number.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> ks.minimize(ks.LeastSquares(np.eye(3), [3.0, -4.0, 1.0]), 1, ks.NonnegativeBall()).x.round(9)
    array([1., 0., 0.])
    """

    skip_self_check = True
    has_shrink = True
    has_joint = True

    def __init__(self, radius: float = 1) -> None:
        self.radius = self.size = check_radius(radius)

    def project(self, u: Array) -> Array:
        return self._into_ball(_positive(u))

    def _into_ball(self, x: Array) -> Array:
        return x * (self.radius / larger(norm(x), self.radius))  # times 1.0 inside the ball

    def violation(self, x: Array) -> float:
        return larger(norm(x) - self.radius, norm_inf(_positive(-x)))

    def restrict(self, support: Vector) -> NonnegativeBall:
        return self

    def shrink(self, u: Array, t: float) -> Array:
        return self._into_ball(_positive(u - t))

    def project_sparse(self, u: Array, k: int) -> Array:
        x = _positive(u)
        return self._into_ball(zero_outside(x, top_k(x, k)))

    def minimize_quadratic(self, H: Vector, c: Vector, near: Vector) -> Solution | None:
        """The ball on the entries that are free, which are exchanged by the signs of x and of the gradient; None where that cycles.

        A point that keeps its signs and pulls no entry up from 0 is optimal if H is positive semidefinite, and stationary if not.
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
                return Solution.unpriced(x)
            free[np.argmin(gradient)] = True
        return None

    def minimize_on_faces(self, H: Vector, c: Vector) -> Vector | None:
        """The ball on every choice of free entries."""
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

    def __repr__(self) -> str:
        return f"NonnegativeBall({self.radius:g})"


def _positive(u: Array) -> Array:
    xp = namespace(u)
    return xp.where(u > 0, u, xp.zeros_like(u))
