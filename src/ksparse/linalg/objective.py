"""What a small quadratic program minimises, and its minimum under equations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from ksparse.base.arrays import Vector
from ksparse.linalg.scaling import unit_scales

REGULAR = 1e-3  # the sine of a variable's angle to those before it, above which one system is enough
DEPENDENT = 1e-4  # the sine of a column's angle to those before it, below which H = AᵀA is too coarse


@dataclass(frozen=True)
class Objective:
    """½xᵀHx + cᵀx, H symmetric. It need not be positive semidefinite: `Polished` and `faces` minimise indefinite ones over bounded sets.

    Where φ is a sum of squares ½‖Rx − q‖² its root R comes along: H = RᵀR has the square of R's condition, and near-dependent columns lose
    twice as many digits by it.
    """

    H: Vector
    c: Vector
    R: Vector | None = None
    q: Vector | None = None
    rest: float = 0.0  # φ = ½‖Rx − q‖² + ½·rest²

    @classmethod
    def of_squares(cls, R: Vector, q: Vector, rest: float) -> Self:
        """½‖Rx − q‖² + ½·rest², less what x does not change."""
        return cls(R.T @ R, -(R.T @ q), R, q, rest)

    @cached_property
    def independence(self) -> float:
        """How far H is from dependent variables, see `least_sine`."""
        return least_sine(self.H)

    @property
    def well_conditioned(self) -> bool:
        """Whether no variable is nearly a combination of those before it."""
        return self.independence > DEPENDENT

    def gradient(self, x: Vector) -> Vector:
        """Hx + c."""
        if self.R is None or self.q is None:
            return np.asarray(self.H @ x + self.c)
        return np.asarray(self.R.T @ (self.R @ x - self.q))

    def value(self, x: Vector) -> float:
        """½xᵀHx + cᵀx."""
        return float(0.5 * x @ self.H @ x + self.c @ x)

    def terms(self, x: Vector) -> float:
        """The size of what is added up in `value`, its rounding unit."""
        size = np.abs(x)
        return float(size @ np.abs(self.H) @ size + np.abs(self.c) @ size)

    def scaled(self, unit: Vector) -> Objective:
        """The same in the variables unit·x."""
        R = None if self.R is None else self.R / unit
        return Objective(self.H / unit / unit[:, None], self.c / unit, R, self.q)

    def rescaled(self, factor: float) -> Objective:
        """Return factor²·φ(y/factor) as a function of y = factor·x, for factor > 0: H stays, c is multiplied by the factor."""
        return Objective(self.H, self.c * factor, self.R, None if self.q is None else self.q * factor)

    def on(self, free: Vector, fixed: Vector) -> Objective:
        """As a function of the free variables, the others fixed to their entries in `fixed`."""
        c = self.c[free] + self.H[np.ix_(free, ~free)] @ fixed[~free]
        if self.R is None or self.q is None:
            return Objective(self.H[np.ix_(free, free)], c)
        return Objective(self.H[np.ix_(free, free)], c, self.R[:, free], self.q - self.R[:, ~free] @ fixed[~free])

    def minimum_under(self, M: Vector, right: Vector) -> tuple[Vector, Vector]:
        """The least-squares solution x, λ of Hx + c + Mᵀλ = 0, Mx = right; from the root, where there is one, without forming H."""
        n, r = self.c.size, right.size
        if self.R is None or self.q is None:
            K = np.block([[self.H, M.T], [M, np.zeros((r, r))]]) if r else self.H
            solution = solve_symmetric(K, np.concatenate([-self.c, right]))
            return solution[:n], solution[n:]
        x, along = np.zeros(n), np.eye(n)
        if r:
            x, along = least_squares(M, right), null_space(M)
        if along.shape[1]:
            x = x + along @ least_squares(self.R @ along, self.q - self.R @ x)
        return x, least_squares(M.T, -self.gradient(x)) if r else np.zeros(0)


def regular_minimum(objective: Objective) -> Vector | None:
    """−H⁻¹c where H is positive definite beyond doubt; None where it may not be, or a root is to be used."""
    if objective.R is not None or not objective.independence > REGULAR:
        return None
    unit = unit_scales(objective.H.diagonal())
    H, d = objective.H / unit / unit[:, None], -objective.c / unit
    x = np.linalg.solve(H, d)
    return np.asarray((x + np.linalg.solve(H, d - H @ x)) / unit)


def least_squares(M: Vector, d: Vector) -> Vector:
    """The shortest x of least ‖Mx − d‖, in columns of length 1, once refined."""
    size = np.sqrt(np.einsum("ij,ij->j", M, M))
    size[size == 0] = 1.0
    unit = M / size
    x = shortest(unit, d)
    return np.asarray((x + shortest(unit, d - unit @ x)) / size)


def shortest(M: Vector, d: Vector, rcond: float | None = None) -> Vector:
    """Return the shortest x of least ‖Mx − d‖.

    LAPACK's divide-and-conquer SVD fails to converge on some ordinary matrices. Pivoted QR then takes its place: it has no iterations.
    """
    try:
        return np.asarray(np.linalg.lstsq(M, d, rcond=rcond)[0])
    except np.linalg.LinAlgError:
        from scipy.linalg import lstsq  # here, as this is rare

        cond = np.finfo(np.float64).eps * max(M.shape) if rcond is None else rcond
        return np.asarray(lstsq(M, d, cond=cond, lapack_driver="gelsy", check_finite=False)[0])


def svd(M: Vector, full_matrices: bool = True) -> tuple[Vector, Vector, Vector]:
    """Return U, the singular values and Vᵀ; by QR iterations where LAPACK's divide and conquer does not converge."""
    try:
        return np.linalg.svd(M, full_matrices=full_matrices)
    except np.linalg.LinAlgError:
        from scipy.linalg import svd as by_scipy

        U, sizes, rows = by_scipy(M, full_matrices=full_matrices, lapack_driver="gesvd", check_finite=False)
        return U, sizes, rows


def null_space(M: Vector) -> Vector:
    """An orthonormal basis of the solutions of Mx = 0, for rows of size 1."""
    _, sizes, rows = svd(M)
    rank = int((sizes > 1e-12 * sizes.max(initial=0.0)).sum())
    return np.asarray(rows[rank:].T)


def solve_symmetric(K: Vector, d: Vector) -> Vector:
    """K⁻¹d with one step of refinement; the least-squares answer where K is singular.

    NumPy's linear algebra, here and in the search: where SciPy brings a BLAS of its own, the threads of the two wait for each other.
    """
    if not d.size:
        return d
    try:
        u = np.linalg.solve(K, d)
        if float(np.abs(u).max()) * float(np.abs(K).max()) < 1e13 * max(float(np.abs(d).max()), 1e-300):
            return np.asarray(u + np.linalg.solve(K, d - K @ u))
    except np.linalg.LinAlgError:
        pass
    return shortest(K, d, rcond=1e-13)


def convex(H: Vector) -> bool:
    """Whether H is positive semidefinite, up to rounding."""
    values = np.linalg.eigvalsh(H / (float(np.abs(H).max(initial=0.0)) or 1.0))  # squares may overflow
    return bool(values[0] >= -1e-10 * float(np.abs(values).max()))


def least_sine(H: Vector) -> float:
    """The sine of a variable's angle to those before it, the least, in variables of unit curvature; 0 where H is not positive definite."""
    unit = unit_scales(H.diagonal())
    try:
        return float(np.linalg.cholesky(H / unit / unit[:, None]).diagonal().min(initial=1.0))
    except np.linalg.LinAlgError:
        return 0.0
