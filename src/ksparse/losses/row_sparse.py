"""Losses with several coefficients per feature: φ(x) = h(AX) + ½ Σⱼ ρⱼ‖Xⱼ‖², where x holds X with one row per feature.

k counts features, and the search goes over rows of X (`row_problem`); if it cannot, the entries of a row form a group.

Least squares with several targets is φ(X) = ½tr(XᵀHX) − tr(RᵀX) + constant, with one H for all columns of X. Let
M = H_SS⁻¹ on the rows S. Then X = MR_S is optimal on S. With P = M·H_S: and s = R − H_:S X, summed over columns of X,

    drop j         costs  ½‖x_j‖²/M_jj
    add i          gains  ½‖s_i‖²/h_i,                                     h_i = H_ii − H_iS P_:i
    swap j for i   gains  ½‖s_i + P_ji x_j/M_jj‖²/(h_i + P_ji²/M_jj) − ½‖x_j‖²/M_jj

One inverse of H_SS serves all targets, and the gains are exact.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ksparse.data.model import QuadraticModel
from ksparse.losses.base import DesignLoss, Loss
from ksparse.numerics.bound import EPS, rounding_of
from ksparse.numerics.constraints import unit_scales
from ksparse.numerics.qp import least_sine
from ksparse.util.arrays import Array, Matrix, Vector, copy_with, namespace, take

INDEPENDENT = 1e-12  # fraction of a row's own curvature that must remain, given the support, for the row to enter
NEARLY = 1e-5  # smallest pivot of a Cholesky factor that is trusted


@dataclass(frozen=True)
class RowSolution:
    """The optimal X on some rows."""

    X: Vector  # one row per member of the support
    value: float  # φ(X)
    rounding: float = 0.0  # error of the value


class Gains(Protocol):
    """Gains and costs of moves at the optimal X on a support."""

    def adds(self) -> Vector:
        """Return the gain of adding each of the n rows; entries of members have no meaning."""

    def drops(self) -> Vector:
        """Return the cost of dropping each member."""

    def swaps(self, entering: Vector) -> Vector:
        """Return the gain of swapping each member (rows) for each entering row (columns)."""


class RowProblem(ABC):
    """φ as a function of X, n × width."""

    n: int
    width: int
    constant: float  # φ(0)
    exact: bool  # whether the optimal X on a support is a direct solve, and gains are exact

    @abstractmethod
    def solve(self, support: Vector, begin: Vector | None) -> RowSolution:
        """Return the optimal X on a nonempty support, starting from `begin`."""

    @abstractmethod
    def gains(self, support: Vector, X: Vector) -> Gains:
        """Return the gains at the optimal X on a support, which may be empty."""

    @abstractmethod
    def polish(self, support: Vector, X: Vector) -> Vector:
        """Return the optimal X computed from the raw data, as accurately as possible."""

    def shortfall(self, support: Vector, X: Vector) -> float:
        """Return a bound on φ(X) − min φ on the support; ∞ if nothing is proved."""
        return math.inf


class SharedHessianRows(RowProblem):
    """½tr(XᵀHX) − tr(RᵀX) + constant, with the H of `model`; `lengths` are those of the targets.

    `resolve` returns the optimal X on a support, computed from the raw data.
    """

    exact = True

    def __init__(self, model: QuadraticModel, R: Vector, lengths: Vector, resolve: Callable[[Vector], Vector]) -> None:
        self.model, self.R, self.constant, self.lengths = model, R, model.constant, lengths
        self._resolve = resolve
        self.n, self.width = R.shape
        # rotating the columns of X changes no gain, so at most n columns are needed
        self._turned = R if self.width <= self.n else np.linalg.qr(R.T)[1].T

    def solve(self, support: Vector, begin: Vector | None) -> RowSolution:
        H, R = self.model.block(support), self.R[support]
        X = inverse(H) @ R
        HX, size = H @ X, np.abs(X)
        value = 0.5 * float(np.vdot(X, HX)) - float(np.vdot(R, X)) + self.constant
        terms = 0.5 * float(np.vdot(size, np.abs(H) @ size)) + float(np.vdot(np.abs(R), size)) + abs(self.constant)
        sizes, noise = np.sqrt(np.abs(np.diag(H))) @ size, self.model.noise
        data_error = 0.5 * noise.entry_error * float(sizes @ sizes) + noise.entry_error * float(sizes @ self.lengths)
        return RowSolution(X, value, rounding_of(X.size) * terms + data_error)

    def gains(self, support: Vector, X: Vector) -> SharedHessianGains:
        H = self.model.rows(support) if support.size else np.zeros((0, self.n))
        return SharedHessianGains(H, inverse(H[:, support]), self._turned, support, self.model.diagonal)

    def polish(self, support: Vector, X: Vector) -> Vector:
        return self._resolve(support)

    def shortfall(self, support: Vector, X: Vector) -> float:
        # in variables of unit curvature φ(X + D) − φ(X) = tr(GᵀD) + ½tr(DᵀHD) ≥ −½‖G‖²/λ_min; G includes its rounding
        H, noise, k = self.model.block(support), self.model.noise, support.size
        unit = unit_scales(np.diag(H))
        scaled = np.abs(X) * unit[:, None]
        gradient = np.abs(H @ X - self.R[support]) / unit[:, None]
        gradient += rounding_of(k) * ((np.abs(H) @ np.abs(X) + np.abs(self.R[support])) / unit[:, None])
        gradient += noise.entry_error * (scaled.sum(axis=0) + self.lengths)
        least = float(np.linalg.eigvalsh(H / unit / unit[:, None])[0]) - k * (noise.entry_error + 8.0 * EPS)
        return 0.5 * float(np.vdot(gradient, gradient)) / least if least > 0 else math.inf


class SharedHessianGains:
    """The gains at a support, from the rows H_S: and M = H_SS⁻¹."""

    def __init__(self, H: Vector, M: Vector, R: Vector, support: Vector, diagonal: Vector) -> None:
        self.P, self.own = M @ H, np.diag(M)
        self.x = M @ R[support]
        self.s = R - H.T @ self.x
        h = diagonal - np.einsum("sj,sj->j", H, self.P)
        self.h = np.where(h > INDEPENDENT * diagonal, h, 0.0)  # 0 where only rounding is left

    def adds(self) -> Vector:
        return _half_ratio(np.einsum("jc,jc->j", self.s, self.s), self.h)

    def drops(self) -> Vector:
        return _half_ratio(np.einsum("jc,jc->j", self.x, self.x), self.own)

    def swaps(self, entering: Vector) -> Vector:
        P, s, m = self.P[:, entering], self.s[entering], (1.0 / np.where(self.own > 0, self.own, np.inf))[:, None]
        size = np.einsum("jc,jc->j", self.x, self.x)[:, None]
        # ‖s_i + P_ji x_j/M_jj‖²
        squares = np.einsum("jc,jc->j", s, s) + 2.0 * m * P * (self.x @ s.T) + (m * P) ** 2 * size
        h = self.h[entering]
        return np.asarray(_half_ratio(np.where(h > 0, squares, 0.0), h + m * P**2) - 0.5 * m * size)


def _half_ratio(squares: Vector, curvature: Vector) -> Vector:
    """Return ½·squares/curvature, and 0 where the curvature is 0."""
    return np.asarray(0.5 * squares / np.where(curvature > 0, curvature, np.inf))


def inverse(H: Vector) -> Vector:
    """Return H⁻¹ of a positive semidefinite H, or the pseudoinverse if H is nearly singular."""
    if not len(H):
        return np.zeros((0, 0))
    unit = unit_scales(np.diag(H))
    scaled = H / unit / unit[:, None]
    if least_sine(H) > NEARLY:
        return np.asarray(np.linalg.inv(scaled) / unit / unit[:, None])
    values, vectors = np.linalg.eigh(scaled)
    bends = values > len(H) * 16.0 * EPS * values[-1]
    return np.asarray((vectors[:, bends] / values[bends]) @ vectors[:, bends].T / unit / unit[:, None])


class RowSparseLoss(DesignLoss):
    """h(AX) + ½ Σⱼ ρⱼ‖Xⱼ‖²; `fit_of`, `slope_of` and `curvature_of` receive AX as an m × width matrix."""

    has_row_problem = True
    least = 0.0  # h is never negative

    def __init__(self, A: Matrix, width: int, sample_weight: Any = None, ridge: Any = 0.0) -> None:
        self.per_feature = width
        super().__init__(A, sample_weight, ridge)

    def matrix(self, x: Array) -> Array:
        """Return x as a matrix, one row per feature and one column per target or class.

        Parameters
        ----------
        x : array of length n
            A point, as `minimize` returns it.

        Returns
        -------
        array of shape (n_features, per_feature)
            The same numbers.
        """
        return namespace(x).reshape(x, (self.features, self.per_feature))

    def _flat(self, X: Array) -> Array:
        return namespace(X).reshape(X, (-1,))

    def _sheet(self, image: Array) -> Array:
        return namespace(image).reshape(image, (-1, self.per_feature))

    def _weighted(self, terms: Array) -> Array:
        return terms if self.weight is None else self.weight[:, None] * terms

    def _ridge_squares(self, x: Array) -> float:
        return 0.0 if self.ridge is None else float(namespace(x).sum(self.ridge[:, None] * self.matrix(x) ** 2))

    def image(self, x: Array) -> Array:
        return self._flat(self.A @ self.matrix(x))

    def value_at(self, x: Array, image: Array) -> float:
        return super().value_at(x, self._sheet(image))

    def gradient_at(self, x: Array, image: Array) -> Array:
        gradient = self.A.T @ self.slope_of(self._sheet(image))
        return self._flat(gradient if self.ridge is None else gradient + self.ridge[:, None] * self.matrix(x))

    def curvature_at(self, x: Array, image: Array, d: Array, image_d: Array) -> float:
        return super().curvature_at(x, self._sheet(image), d, self._sheet(image_d))

    def lengths(self) -> Vector | float:
        return np.repeat(super().lengths(), self.per_feature)

    def restrict(self, support: Vector) -> Loss:
        support = np.asarray(support)
        rows, t = support[:: self.per_feature] // self.per_feature, self.per_feature
        if support.size % t or not np.array_equal(support, (rows[:, None] * t + np.arange(t)).ravel()):
            return Loss.restrict(self, support)  # parts of rows
        ridge = None if self.ridge is None else take(self.ridge, rows)
        return copy_with(self, A=self.design.columns(rows), ridge=ridge, n=int(support.size))

    def first_duplicates(self, support: Vector) -> Vector:
        return np.arange(len(support))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.A.shape[0]} × {self.features}, {self.per_feature} columns)"
