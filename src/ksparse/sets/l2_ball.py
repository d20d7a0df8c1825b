"""The Euclidean ball."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ksparse.numerics.bound import Noise, rounding_of, shortfall
from ksparse.numerics.constraints import Linear
from ksparse.numerics.eigen import minimize_on_ball
from ksparse.numerics.qp import Objective, Solution
from ksparse.sets.base import ConvexSet
from ksparse.sets.whole_space import soft_threshold
from ksparse.util.arrays import Array, Vector, larger, namespace, norm, top_k, zero_outside
from ksparse.util.checks import check_radius


class L2Ball(ConvexSet):
    """``{x : ‖x‖₂ ≤ radius}``.

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
    >>> ks.minimize(ks.LeastSquares(np.eye(3), [3.0, 4.0, 1.0]), 2, ks.L2Ball()).x.round(9)
    array([0.6, 0.8, 0. ])
    """

    skip_self_check = True
    has_shrink = True
    has_joint = True

    def __init__(self, radius: float = 1) -> None:
        self.radius = self.size = check_radius(radius)

    def project(self, u: Array) -> Array:
        return u * (self.radius / larger(norm(u), self.radius))  # times 1.0 inside the ball

    def violation(self, x: Array) -> float:
        return larger(norm(x) - self.radius, 0.0)

    def restrict(self, support: Vector) -> L2Ball:
        return self

    def shrink(self, u: Array, t: float) -> Array:
        # scaling a soft-thresholded point keeps its subgradient of the norm, so the two maps compose (Yu 2013)
        return self.project(soft_threshold(u, t))

    def project_sparse(self, u: Array, k: int) -> Array:
        return self.project(zero_outside(u, top_k(namespace(u).abs(u), k)))

    def as_norm_ball(self) -> tuple[int, float]:
        return 2, self.radius

    @property
    def has_multipliers(self) -> bool:
        """The ball has one."""
        return True

    def minimize_quadratic(self, H: Vector, c: Vector, near: Vector) -> Solution:
        x = minimize_on_ball(H, c, self.radius, near)
        shift = max(0.0, -float((H @ x + c) @ x) / max(float(x @ x), 1e-300))
        return replace(Solution.unpriced(x), shift=shift, radius=self.radius)

    def shortfall(self, H: Vector, c: Vector, found: Solution, noise: Noise) -> float:
        """The bound of `linalg.bound` with ½·shift·(‖x‖² − r²) in the Lagrangian, every entry within what the ball and x span."""
        x, k, radius = found.x, c.size, self.radius
        felt = Objective(H + found.shift * np.eye(k), c)
        unpaid = 0.5 * found.shift * (abs(radius**2 - float(x @ x)) + rounding_of(k) * radius**2)
        return unpaid + shortfall(
            felt, Linear.of(k, -radius - np.abs(x), radius + np.abs(x)), x, np.zeros(0), np.zeros(0), noise
        )

    def __repr__(self) -> str:
        return f"L2Ball({self.radius:g})"
