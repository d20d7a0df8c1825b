"""Quadratic losses: φ(x) = a·xᵀHx + cᵀx, with H given as a matrix (image Hx) or by a factor Z, H = ZᵀZ (image Zx).

With a matrix the image gives the value and the gradient, so a step costs one product; with a factor it costs two.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from ksparse.data import design_of
from ksparse.data.derived import standardize
from ksparse.data.model import QuadraticModel
from ksparse.data.products import check_symmetric, columns, dense, first_of_equal, largest_gram_eigenvalue
from ksparse.losses.base import Loss
from ksparse.numerics.eigen import has_negative_eigenvalue, is_positive_definite, largest_eigenvalue
from ksparse.util.arrays import Array, Matrix, Vector, copy_with, dot, epsilon, like, sqnorm, take, to_numpy
from ksparse.util.checks import check_adjoint, check_matrix, check_number, check_size, check_squares, check_vector

CHOLESKY_LIMIT = 4096  # variables up to which a Cholesky factorisation decides whether H is positive semidefinite
DOUBLE = float(np.finfo(np.float64).eps)


class QuadraticForm(Loss):
    """a·xᵀHx + cᵀx: base class of the quadratic losses."""

    has_hessian = is_quadratic = True
    sign: ClassVar[int] = 0  # of the curvature, if its meaning gives a matrix one
    _data = ("kind", "matrix", "c")

    def __init__(self, matrix: Matrix, a: float, c: Array | None, name: str, *, factored: bool) -> None:
        if factored:
            check_squares(matrix, name)
        else:
            check_size(matrix, name, least=1e-250, most=1e250 if epsilon(design_of(matrix).kind) < 1e-10 else 1e30)
        self.matrix = matrix  # H, or its factor Z
        self.a, self.c, self.factored = a, c, factored
        self.n = int(matrix.shape[1])
        self.kind = design_of(matrix).kind
        self.precision = epsilon(self.kind)  # of the given data, kept in float64 copies
        self.adjoint_cost = int(factored)

    @classmethod
    def _of_factor(cls, Z: Matrix, a: float, c: Array | None, name: str) -> Self:
        loss = cls.__new__(cls)
        QuadraticForm.__init__(loss, Z, a, c, name, factored=True)
        return loss

    def image(self, x: Array) -> Array:
        return self.matrix @ x

    def form_at(self, x: Array, image: Array) -> float:
        """Return xᵀHx."""
        return sqnorm(image) if self.factored else dot(x, image)

    def value_at(self, x: Array, image: Array) -> float:
        value = self.a * self.form_at(x, image)
        return value if self.c is None else value + dot(self.c, x)

    def gradient_at(self, x: Array, image: Array) -> Array:
        gradient = 2.0 * self.a * (self.matrix.T @ image if self.factored else image)
        return gradient if self.c is None else gradient + self.c

    def curvature_at(self, x: Array, image: Array, d: Array, image_d: Array) -> float:
        return 2.0 * self.a * self.form_at(d, image_d)

    def quadratic(self) -> QuadraticModel:
        if self.factored:
            return QuadraticModel.of_factor(self.matrix, 2.0 * self.a, self.c)
        return QuadraticModel.of_matrix(self.matrix, 2.0 * self.a, self.c, sign=self.sign)

    @property
    def entries(self) -> int:
        """Rows times columns, zeros included."""
        return int(self.matrix.shape[0] * self.matrix.shape[1])

    def hessian_at(self, x: Array, image: Array) -> Vector:
        H = dense(self.matrix)
        return 2.0 * self.a * (H.T @ H if self.factored else H)

    def first_duplicates(self, support: Vector) -> Vector:
        support = np.asarray(support)
        found = dense(columns(self.matrix, support))
        return first_of_equal(found if self.c is None else np.vstack([found, to_numpy(take(self.c, support))]))

    @cached_property
    def _spectral_norm(self) -> float:
        if self.factored:
            return largest_gram_eigenvalue(self.matrix, None, self.kind)
        return largest_eigenvalue(lambda v: self.matrix @ v, self.matrix.shape[1], self.kind)

    def lipschitz(self) -> float:
        return abs(2.0 * self.a) * self._spectral_norm

    @cached_property
    def convex(self) -> bool:  # type: ignore[override]
        """Whether φ is convex: by the sign of a if H is factored, by Cholesky for small matrices, else by Lanczos."""
        if self.factored:
            return self.a >= 0
        if not self._allows_cholesky:
            n = int(self.matrix.shape[1])
            sign = 1.0 if self.a >= 0 else -1.0
            return not has_negative_eigenvalue(lambda v: sign * (self.matrix @ v), n, self.kind, self._spectral_norm)
        return self._is_convex(self.precision)

    def _is_convex(self, precision: float) -> bool:
        """Return whether a·H is positive semidefinite up to the rounding of entries of the given precision."""
        H = (1.0 if self.a >= 0 else -1.0) * dense(self.matrix).astype(np.float64)
        diagonal = np.diag(H)
        if (diagonal < 0).any() or H[diagonal == 0].any():
            return False
        unit = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        shift = 64 * len(H) * precision  # rounding of a singular covariance, at unit diagonal
        return is_positive_definite(H / unit / unit[:, None] + shift * np.eye(len(H)))

    @property
    def _allows_cholesky(self) -> bool:
        """Whether the entries of H are known, and H is small enough for Cholesky."""
        return design_of(self.matrix).entries_in_memory and self.matrix.shape[0] <= CHOLESKY_LIMIT

    @cached_property
    def convexity_is_certain(self) -> bool:  # type: ignore[override]
        """Whether `convex` follows from the form or from Cholesky at double precision, not from Lanczos."""
        return self.factored or (self._allows_cholesky and (self.precision < 1e-10 or self._is_convex(DOUBLE)))

    def restrict(self, support: Vector) -> Self:
        support = np.asarray(support)
        matrix, c = columns(self.matrix, support), None if self.c is None else take(self.c, support)
        if not self.factored:
            matrix = columns(matrix.T, support).T
        return copy_with(self, matrix=matrix, c=c, n=int(support.size))


class Quadratic(QuadraticForm):
    """``½xᵀQx + cᵀx``, Q symmetric, possibly indefinite.

    Parameters
    ----------
    Q : array, scipy.sparse or operator
        The matrix.
    c : array-like or None, default=None
        The linear term; None for 0.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> ks.minimize(ks.Quadratic(np.diag([1.0, 2.0, 4.0]), [-1.0, -4.0, -1.0]), 1).x
    array([0., 2., 0.])
    """

    def __init__(self, Q: Matrix, c: Any = None) -> None:
        Q = check_symmetric(check_matrix(Q, "Q"), "Q")
        c = None if c is None else check_vector(c, "c", Q.shape[0], kind=design_of(Q).kind)
        super().__init__(Q, 0.5, c, "Q", factored=False)


class MeanVariance(QuadraticForm):
    """``α xᵀVx − rᵀx``: risk-weighted variance minus mean return of a portfolio x.

    `from_returns` takes a table of returns instead; V is then never formed.

    Parameters
    ----------
    V : array, scipy.sparse or operator
        Covariance matrix of the returns.
    r : array-like
        Mean returns.
    alpha : float
        α > 0, the risk aversion.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> V, r = np.diag([0.04, 0.01, 0.09]), np.array([0.1, 0.05, 0.1])
    >>> ks.minimize(ks.MeanVariance(V, r, 1.0), 2, ks.Simplex()).support
    array([0, 2])
    """

    def __init__(self, V: Matrix, r: Any, alpha: float) -> None:
        V = check_symmetric(check_matrix(V, "V"), "V")
        r = check_vector(r, "r", V.shape[0], kind=design_of(V).kind)
        super().__init__(V, check_number(alpha, "alpha", above=0), -r, "V", factored=False)

    @classmethod
    def from_returns(cls, returns: Matrix, alpha: float) -> Self:
        """Return the loss with the sample mean and covariance of a table of returns (one row per day)."""
        returns = check_matrix(returns, "returns")
        Z, mean = standardize(returns, "returns", scale=False)
        return cls._of_factor(Z, check_number(alpha, "alpha", above=0), -like(mean, design_of(Z).kind), "returns")


class PrincipalComponent(QuadraticForm):
    """``−xᵀVx``: minus the variance explained by the direction x. V is a covariance or correlation matrix.

    `from_data` takes a table instead; V is then never formed. Use it with `L2Ball`, or `NonnegativeBall` for loadings
    >= 0.

    Parameters
    ----------
    V : array, scipy.sparse or operator
        Covariance or correlation matrix.

    Examples
    --------
    >>> import ksparse as ks
    >>> R, names = ks.datasets.pit_props()
    >>> result = ks.minimize(ks.PrincipalComponent(R), 2, ks.L2Ball())
    >>> [names[i] for i in result.support]
    ['topdiam', 'length']
    """

    sign = -1

    def __init__(self, V: Matrix) -> None:
        V = check_symmetric(check_matrix(V, "V"), "V")
        super().__init__(V, -1.0, None, "V", factored=False)

    @classmethod
    def from_data(cls, X: Matrix, scale: bool = True) -> Self:
        """Return the loss of a data table (one row per sample); V is its correlation or (scale=False) covariance."""
        return cls.from_factor(standardize(check_matrix(X, "X"), "X", scale=scale)[0])

    @classmethod
    def from_factor(cls, Z: Matrix) -> Self:
        """Return the loss −‖Zx‖²."""
        Z = check_matrix(Z, "Z")
        check_adjoint(Z, "Z")
        return cls._of_factor(Z, -1.0, None, "Z")
