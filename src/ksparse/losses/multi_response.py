"""Least squares for several targets with the same features."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ksparse.data.model import Curvature, Gram, QuadraticModel
from ksparse.data.products import dense
from ksparse.losses.row_sparse import RowSparseLoss, SharedHessianRows
from ksparse.numerics.bound import Noise, rounding_of
from ksparse.numerics.qp import shortest
from ksparse.util.arrays import Array, Matrix, Vector, like, namespace, to_float64, to_numpy
from ksparse.util.checks import check_array, check_squares
from ksparse.util.display import fill_docstrings


@fill_docstrings()
class MultiResponse(RowSparseLoss):
    """½‖AX − B‖² for a matrix X with one row per feature; k counts the features, shared by all targets.

    x holds X row by row: `loss.matrix(result.x)` is X. One solve gives X and the gains of moves for all targets;
    without constraints a search costs about as much as for one target.

    Parameters
    ----------
    {A}
    B : array-like of shape (n_rows, n_targets)
        One target per column.
    {sample_weight}
    ridge : float or array-like, default=0.0
        ρ, one number or one per feature: adds ½ Σⱼ ρⱼ‖Xⱼ‖².

    See Also
    --------
    minimize_many : Different features for each target.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 20))
    >>> B = A[:, [4, 7]] @ rng.standard_normal((2, 5)) + 0.1 * rng.standard_normal((60, 5))
    >>> loss = ks.MultiResponse(A, B)
    >>> X = loss.matrix(ks.minimize(loss, 2).x)
    >>> X.shape, np.flatnonzero(X.any(axis=1))
    ((20, 5), array([4, 7]))
    """

    is_quadratic = True
    _data = (*RowSparseLoss._data, "B")

    def __init__(self, A: Matrix, B: Any, sample_weight: Any = None, ridge: Any = 0.0) -> None:
        given = to_numpy(B) if hasattr(B, "ndim") else np.asarray(B)
        if given.ndim == 1:
            advice = "for one target use ks.LeastSquares"
            raise ValueError(f"B must have one column per target, got shape {given.shape}: {advice}")
        given = check_array(B, "B", 2)
        check_squares(given, "B")
        super().__init__(A, int(given.shape[1]), sample_weight, ridge)
        if given.shape[0] != self.A.shape[0]:
            raise ValueError(f"B must have as many rows as A, {self.A.shape[0]}, got {given.shape[0]}")
        self.B = like(given, self.kind)

    def fit_of(self, image: Array) -> float:
        rest = image - self.B
        return 0.5 * float(namespace(rest).sum(self._weighted(rest * rest)))

    def slope_of(self, image: Array) -> Array:
        return self._weighted(image - self.B)

    def curvature_of(self, image: Array, D: Array) -> float:
        return float(namespace(D).sum(self._weighted(D * D)))

    @cached_property
    def _gram(self) -> Gram:
        weight, ridge = (None if part is None else to_float64(part) for part in (self.weight, self.ridge))
        return Gram(self.A, weight, ridge)

    @cached_property
    def _pull(self) -> Vector:
        """AᵀDB."""
        return np.asarray(self.A.T @ self._weighted(self.B))

    @cached_property
    def _lengths(self) -> Vector:
        """√(Σᵢ wᵢBᵢ²) of each target."""
        return np.asarray(np.sqrt(np.asarray(namespace(self.B).sum(self._weighted(self.B * self.B), axis=0))))

    def quadratic(self) -> QuadraticModel | None:
        if self.hides_columns:
            return None
        rounding = rounding_of(int(self.A.shape[0]))
        noise = Noise(rounding, rounding * float(self._lengths.max()), is_gram=True)
        constant = 0.5 * float(self._lengths @ self._lengths)
        return QuadraticModel(Repeated(self._gram, self.per_feature), self._pull.ravel(), constant, sign=1, noise=noise)

    def row_problem(self) -> SharedHessianRows:
        rounding, constant = rounding_of(int(self.A.shape[0])), 0.5 * float(self._lengths @ self._lengths)
        noise = Noise(rounding, is_gram=True)
        model = QuadraticModel(self._gram, np.zeros(self.features), constant, sign=1, noise=noise)
        return SharedHessianRows(model, self._pull, self._lengths, self._solved)

    def _solved(self, support: Vector) -> Vector:
        """Return the optimal X on some features by a factorisation of their columns, not of H."""
        root = np.ones(int(self.A.shape[0])) if self.weight is None else np.sqrt(self.weight)
        columns, target = root[:, None] * dense(self.design.columns(support)), root[:, None] * self.B
        if self.ridge is not None:
            columns = np.vstack([columns, np.diag(np.sqrt(self.ridge[support]))])
            target = np.vstack([target, np.zeros((support.size, self.per_feature))])
        size = np.sqrt(np.einsum("ij,ij->j", columns, columns))
        size[size == 0] = 1.0
        return np.asarray(shortest(columns / size, target) / size[:, None])


@dataclass(frozen=True)
class Repeated:
    """H ⊗ I: the same H for each column of X, for entries of X in row order."""

    inner: Curvature
    width: int

    def diagonal(self) -> Vector:
        return np.repeat(self.inner.diagonal(), self.width)

    def rows(self, support: Vector) -> Vector:
        members, at = np.unique(support // self.width, return_inverse=True)
        H = self.inner.rows(members)
        found = np.zeros((support.size, H.shape[1], self.width))
        found[np.arange(support.size), :, support % self.width] = H[at]
        return found.reshape(support.size, -1)

    def times(self, X: Vector) -> Vector:
        sheets = X.reshape(len(X), -1, self.width).transpose(0, 2, 1)
        turned = self.inner.times(np.ascontiguousarray(sheets.reshape(-1, sheets.shape[2])))
        return np.asarray(turned.reshape(sheets.shape).transpose(0, 2, 1).reshape(len(X), -1))
