"""The ℓ1 ball."""

from __future__ import annotations

import numpy as np

from ksparse.numerics.constraints import Linear
from ksparse.numerics.qp import Active, Objective, Solution, convex, solve_qp
from ksparse.sets.base import ScaledSet
from ksparse.sets.simplex import project_simplex
from ksparse.util.arrays import Array, Vector, larger, namespace, norm_1
from ksparse.util.checks import check_number


class L1Ball(ScaledSet):
    """``{x : ‖x‖₁ ≤ radius}``.

    Parameters
    ----------
    radius : float
        Radius > 0.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> ks.minimize(ks.LeastSquares(np.eye(3), [3.0, -2.0, 1.0]), 2, ks.L1Ball(3.0)).x.round(9)
    array([ 2., -1.,  0.])
    """

    def __init__(self, radius: float) -> None:
        self.radius = self.size = check_number(radius, "radius", above=0)

    def project(self, u: Array) -> Array:
        if norm_1(u) <= self.radius:
            return u
        xp = namespace(u)
        return xp.sign(u) * project_simplex(xp.abs(u), self.radius)

    def violation(self, x: Array) -> float:
        return larger(norm_1(x) - self.radius, 0.0)

    def as_norm_ball(self) -> tuple[int, float]:
        return 1, self.radius

    def minimize_quadratic(self, H: Vector, c: Vector, near: Vector) -> Solution | None:
        """Solve with x = p − q, p, q ≥ 0 and Σ(p + q) ≤ radius: a quadratic program of twice the size."""
        if not convex(H):
            return None
        n = c.size
        split = Objective(np.block([[H, -H], [-H, H]]), np.concatenate([c, -c]))
        reached = np.array([norm_1(near) >= (1.0 - 1e-9) * self.radius])
        guess = Active(np.concatenate([near <= 0, near >= 0]), np.zeros(2 * n, dtype=bool), reached)
        both = solve_qp(split, Linear.of(2 * n, lower=0.0, G=np.ones(2 * n), h=self.radius), guess).x
        x = both[:n] - both[n:]
        return Solution.without_multipliers(x * min(1.0, self.radius / max(float(np.abs(x).sum()), 1e-300)))
