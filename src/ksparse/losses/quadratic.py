"""Quadratic losses: φ(x) = a·xᵀHx + cᵀx with H given as itself (image Hx) or as a factor Z, H = ZᵀZ (image Zx).

A symmetric matrix is touched once per step: Hx gives the value and the gradient. A factor is touched once per direction.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from ksparse.data import design_of
from ksparse.data.derived import standardize
from ksparse.data.model import QuadraticModel
from ksparse.data.products import check_symmetric, columns, dense, first_of_equal, kind_of, largest_gram_eigenvalue
from ksparse.losses.base import Loss
from ksparse.numerics.eigen import has_negative_eigenvalue, largest_eigenvalue
from ksparse.util.arrays import Array, Matrix, copy_with, dot, epsilon, like, sqnorm, take, to_numpy
from ksparse.util.checks import check_adjoint, check_matrix, check_number, check_size, check_squares, check_vector

CHOLESKY_LIMIT = 4096  # up to this size a Cholesky factorisation decides whether H is positive semidefinite
DOUBLE = float(np.finfo(np.float64).eps)


class QuadraticForm(Loss):
    """a·xᵀHx + cᵀx, the common part of the quadratic losses."""

    has_hessian = is_quadratic = skip_self_check = True
    sign: ClassVar[int] = 0  # of the curvature, where a matrix that is no factor has one by its meaning
    _data = ("kind", "matrix", "c")

    def __init__(self, matrix: Matrix, a: float, c: Array | None, name: str, *, factored: bool) -> None:
        if factored:
            check_squares(matrix, name)
        else:
            check_size(matrix, name, least=1e-250, most=1e250 if epsilon(kind_of(matrix)) < 1e-10 else 1e30)
        self.matrix = matrix  # H, or its factor Z
        self.a, self.c, self.factored = a, c, factored
        self.n = int(matrix.shape[1])
        self.kind = kind_of(matrix)
        self.precision = epsilon(
            self.kind
        )  # of the data as given: they are no more exact where they are taken to float64
        self.adjoint_cost = int(factored)

    def image(self, x: Array) -> Array:
        return self.matrix @ x

    def form_at(self, x: Array, image: Array) -> float:
        """xᵀHx."""
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
        """Rows times columns, zeros too."""
        return int(self.matrix.shape[0] * self.matrix.shape[1])

    def hessian_at(self, x: Array, image: Array) -> np.ndarray[Any, Any]:
        H = dense(self.matrix)
        return 2.0 * self.a * (H.T @ H if self.factored else H)

    def first_duplicates(self, support: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        support = np.asarray(support)
        seen = dense(columns(self.matrix, support))
        return first_of_equal(seen if self.c is None else np.vstack([seen, to_numpy(take(self.c, support))]))

    @cached_property
    def _spectral_norm(self) -> float:
        if self.factored:
            return largest_gram_eigenvalue(self.matrix, None, self.kind)
        return largest_eigenvalue(lambda v: self.matrix @ v, self.matrix.shape[1], self.kind)

    def lipschitz(self) -> float:
        return abs(2.0 * self.a) * self._spectral_norm

    @cached_property
    def convex(self) -> bool:  # type: ignore[override]
        """Whether φ is convex: by its factor's sign, by Cholesky up to a size, by Lanczos beyond and for operators."""
        if self.factored:
            return self.a >= 0
        if not self._shown:
            sign = 1.0 if self.a >= 0 else -1.0
            return not has_negative_eigenvalue(
                lambda v: sign * (self.matrix @ v), self.matrix.shape[1], self.kind, self._spectral_norm
            )
        return self._positive(self.precision)

    def _positive(self, precision: float) -> bool:
        """Whether H, times the sign of a, is positive semidefinite but for what entries of a precision leave of 0."""
        H = (1.0 if self.a >= 0 else -1.0) * dense(self.matrix).astype(np.float64)
        diagonal = np.diag(H)
        if (diagonal < 0).any() or H[diagonal == 0].any():
            return False
        unit = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        shift = 64 * len(H) * precision  # rounding of a singular covariance, in variables of unit curvature
        try:
            np.linalg.cholesky(H / unit / unit[:, None] + shift * np.eye(len(H)))
        except np.linalg.LinAlgError:
            return False
        return True

    @property
    def _shown(self) -> bool:
        """Whether the matrix can be seen, and is small enough for Cholesky."""
        return design_of(self.matrix).entries_in_memory and self.matrix.shape[0] <= CHOLESKY_LIMIT

    @cached_property
    def convexity_is_certain(self) -> bool:  # type: ignore[override]
        """Whether convexity is seen, by its form or by Cholesky, and not guessed by Lanczos or granted to single precision."""
        return self.factored or (self._shown and (self.precision < 1e-10 or self._positive(DOUBLE)))

    def restrict(self, support: np.ndarray[Any, Any]) -> Self:
        support = np.asarray(support)
        matrix, c = (
            _cut(self.matrix, support, both=not self.factored),
            None if self.c is None else take(self.c, support),
        )
        cut: Self = copy_with(self, matrix=matrix, c=c, n=int(support.size))
        return cut


def _cut(M: Matrix, support: np.ndarray[Any, Any], *, both: bool) -> Matrix:
    """M on some columns, and on the same rows when asked."""
    cut = columns(M, support)
    return columns(cut.T, support).T if both else cut


class Quadratic(QuadraticForm):
    """``½xᵀQx + cᵀx``, Q symmetric, perhaps indefinite.

    Parameters
    ----------
    Q : array, scipy.sparse or operator
        The matrix.
    c : array-like or None, default=None
        The linear part; None for none.

    Raises
    ------
    ValueError
        If Q is not symmetric, or does not fit c.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> ks.minimize(ks.Quadratic(np.diag([1.0, 2.0, 4.0]), [-1.0, -4.0, -1.0]), 1).x
    array([0., 2., 0.])
    """

    skip_self_check = True

    def __init__(self, Q: Matrix, c: Any = None) -> None:
        Q = check_symmetric(check_matrix(Q, "Q"), "Q")
        c = None if c is None else check_vector(c, "c", Q.shape[0], kind=kind_of(Q))
        super().__init__(Q, 0.5, c, "Q", factored=False)


class MeanVariance(QuadraticForm):
    """``α xᵀVx − rᵀx``: variance of a portfolio x against its mean return, V a covariance matrix, α > 0 the risk aversion.

    `from_returns` takes a table of returns instead, and never forms V.

    Parameters
    ----------
    V : array, scipy.sparse or operator
        Covariances of the returns.
    r : array-like
        Mean returns.
    alpha : float
        α, how much risk counts.

    Raises
    ------
    ValueError
        If V is not symmetric, does not fit r, or alpha is not above 0.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> V, r = np.diag([0.04, 0.01, 0.09]), np.array([0.1, 0.05, 0.1])
    >>> ks.minimize(ks.MeanVariance(V, r, 1.0), 2, ks.Simplex()).support
    array([0, 2])
    """

    skip_self_check = True

    def __init__(self, V: Matrix, r: Any, alpha: float) -> None:
        V = check_symmetric(check_matrix(V, "V"), "V")
        r = check_vector(r, "r", V.shape[0], kind=kind_of(V))
        super().__init__(V, check_number(alpha, "alpha", above=0), -r, "V", factored=False)

    @classmethod
    def from_returns(cls, returns: Matrix, alpha: float) -> Self:
        """The loss of a table of returns (one row per day): sample mean and covariance, the covariance never formed."""
        returns = check_matrix(returns, "returns")
        Z, mean = standardize(returns, "returns", scale=False)
        loss = cls.__new__(cls)
        QuadraticForm.__init__(
            loss, Z, check_number(alpha, "alpha", above=0), -like(mean, kind_of(Z)), "returns", factored=True
        )
        return loss


class PrincipalComponent(QuadraticForm):
    """``−xᵀVx``: the variance that the direction x explains, negated. V is a covariance or correlation matrix.

    `from_data` takes a table instead, and never forms V. Use it with `L2Ball`, or `NonnegativeBall` for loadings at or above 0.

    Parameters
    ----------
    V : array, scipy.sparse or operator
        Covariances or correlations.

    Raises
    ------
    ValueError
        If V is not symmetric.

    Examples
    --------
    >>> import ksparse as ks
    >>> R, names = ks.datasets.pit_props()
    >>> result = ks.minimize(ks.PrincipalComponent(R), 2, ks.L2Ball())
    >>> [names[i] for i in result.support]
    ['topdiam', 'length']
    """

    skip_self_check = True
    sign = -1

    def __init__(self, V: Matrix) -> None:
        V = check_symmetric(check_matrix(V, "V"), "V")
        super().__init__(V, -1.0, None, "V", factored=False)

    @classmethod
    def from_data(cls, X: Matrix, scale: bool = True) -> Self:
        """The loss of a data table (one row per sample) with V its correlation (scale=True) or covariance matrix, never formed."""
        return cls.from_factor(standardize(check_matrix(X, "X"), "X", scale=scale)[0])

    @classmethod
    def from_factor(cls, Z: Matrix) -> Self:
        """The loss −‖Zx‖², V = ZᵀZ never formed."""
        Z = check_matrix(Z, "Z")
        check_adjoint(Z, "Z")
        loss = cls.__new__(cls)
        QuadraticForm.__init__(loss, Z, -1.0, None, "Z", factored=True)
        return loss
