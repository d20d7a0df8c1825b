"""Losses of several coefficients per feature: φ(x) = h(AX) + ½ Σⱼ ρⱼ‖Xⱼ‖², X the entries of x with one row per column of A.

k then counts rows of X, the features, and a search goes over rows (`wide`); where it cannot, the variables of a row are a group.

For squares of several targets, φ(X) = ½tr(XᵀHX) − tr(RᵀX) + constant with one H for all columns of X. On rows S with M = H_SS⁻¹ the best X
is MR_S, and with P = M·H_S: and s = R − H_:S X, a row of X costs or gains, summed over the columns of X,

    j leaves           ½‖x_j‖²/M_jj
    i enters           ½‖s_i‖²/h_i,                                     h_i = H_ii − H_iS P_:i
    i in place of j    ½‖s_i + P_ji x_j/M_jj‖²/(h_i + P_ji²/M_jj) − ½‖x_j‖²/M_jj

so that one factorisation of H_SS serves all targets. The gains are exact.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from ksparse.data import Design, check_data, design_of
from ksparse.data.model import QuadraticModel
from ksparse.data.products import largest_gram_eigenvalue
from ksparse.losses.base import Loss
from ksparse.numerics.bound import EPS, rounding_of
from ksparse.numerics.constraints import unit_scales
from ksparse.util.arrays import Array, Matrix, Vector, copy_with, namespace, take
from ksparse.util.checks import check_ridge, check_row_weights, check_squares

INDEPENDENT = 1e-12  # of a variable's own curvature: what must be left of it beside the support for it to enter


NEARLY = 1e-5  # the least pivot of a factorisation that is trusted


@dataclass(frozen=True)
class RowSolution:
    """The best X on some rows."""

    X: Vector  # one row per member of the support
    value: float  # φ there
    rounding: float = 0.0  # of the value


class Gains(Protocol):
    """What rows would gain or cost, at the best X on a support."""

    def adds(self) -> Vector:
        """What each row would gain by entering, of all n; what it says of members means nothing."""

    def drops(self) -> Vector:
        """What each member would cost by leaving."""

    def swaps(self, entering: Vector) -> Vector:
        """What it would gain to put a row (columns) in place of a member (rows)."""


class RowProblem(Protocol):
    """φ of X, n × t."""

    @property
    def n(self) -> int:
        """Rows."""

    @property
    def width(self) -> int:
        """Columns, t."""

    @property
    def constant(self) -> float:
        """φ(0)."""

    @property
    def exact(self) -> bool:
        """Whether the best X on a support is a direct solve, and gains are the gains themselves."""

    def solve(self, support: Vector, begin: Vector | None) -> RowSolution:
        """The best X on a nonempty support; `begin` is an X to start from."""

    def gains(self, support: Vector, X: Vector) -> Gains:
        """The gains at the best X on a support, which may be empty."""

    def polish(self, support: Vector, X: Vector) -> Vector:
        """The best X once more, from the raw data and as near as arithmetic comes."""

    def shortfall(self, support: Vector, X: Vector) -> float:
        """How far φ on the support can fall below φ(X), at most; ∞ where nothing is proved."""


class SharedHessianRows:
    """½tr(XᵀHX) − tr(RᵀX) + constant: H is that of a model, whose own r is not asked for; `lengths` are those of the targets."""

    exact = True

    def __init__(self, model: QuadraticModel, R: Vector, lengths: Vector, again: Resolve) -> None:
        self.model, self.R, self.constant, self.lengths, self._again = model, R, model.constant, lengths, again
        self.n, self.width = R.shape
        # a rotation of the columns of X changes no gain: more targets than variables are as many as variables
        self._turned = R if self.width <= self.n else np.linalg.qr(R.T)[1].T

    def solve(self, support: Vector, begin: Vector | None) -> RowSolution:
        H, R = self.model.block(support), self.R[support]
        X = inverse(H) @ R
        unit, HX = np.sqrt(np.abs(np.diag(H))), H @ X
        value = 0.5 * float(np.vdot(X, HX)) - float(np.vdot(R, X)) + self.constant
        terms = (
            0.5 * float(np.vdot(np.abs(X), np.abs(H) @ np.abs(X)))
            + float(np.vdot(np.abs(R), np.abs(X)))
            + abs(self.constant)
        )
        sizes, noise = unit @ np.abs(X), self.model.noise
        off = 0.5 * noise.entry_error * float(sizes @ sizes) + noise.entry_error * float(sizes @ self.lengths)
        return RowSolution(X, value, rounding_of(X.size) * terms + off)

    def gains(self, support: Vector, X: Vector) -> SharedHessianGains:
        H = self.model.rows(support) if support.size else np.zeros((0, self.n))
        M = inverse(H[:, support])
        return SharedHessianGains.at(H, M, self._turned, M @ self._turned[support], self.model.diagonal)

    def polish(self, support: Vector, X: Vector) -> Vector:
        return self._again(support)

    def shortfall(self, support: Vector, X: Vector) -> float:
        # φ(X + D) − φ(X) = tr(GᵀD) + ½tr(DᵀHD) ≥ −½‖G‖²/λ_min in variables of unit curvature, G with its rounding; see `bound`
        H, noise, k = self.model.block(support), self.model.noise, support.size
        unit = unit_scales(np.diag(H))
        scaled = np.abs(X) * unit[:, None]
        gradient = np.abs(H @ X - self.R[support]) / unit[:, None]
        gradient += rounding_of(k) * ((np.abs(H) @ np.abs(X) + np.abs(self.R[support])) / unit[:, None])
        gradient += noise.entry_error * (scaled.sum(axis=0) + self.lengths)
        least = float(np.linalg.eigvalsh(H / unit / unit[:, None])[0]) - k * (noise.entry_error + 8.0 * EPS)
        return 0.5 * float(np.vdot(gradient, gradient)) / least if least > 0 else math.inf


class Resolve(Protocol):
    """Solves for X on a support from the raw data."""

    def __call__(self, support: Vector) -> Vector:
        """X."""


@dataclass(frozen=True)
class SharedHessianGains:
    """The gains of a common H at a support."""

    P: Vector  # M·H_S:
    own: Vector  # M_jj
    x: Vector  # X, turned
    s: Vector  # what is left to pull
    h: Vector  # what is left of the curvature of each row; 0 where that is rounding

    @classmethod
    def at(cls, H: Vector, M: Vector, R: Vector, X: Vector, diagonal: Vector) -> SharedHessianGains:
        """From the rows S of H, their inverse and X."""
        P = M @ H
        h = diagonal - np.einsum("sj,sj->j", H, P)
        return cls(P, np.diag(M).copy(), X, R - H.T @ X, np.where(h > INDEPENDENT * diagonal, h, 0.0))

    def adds(self) -> Vector:
        return _over(np.einsum("jc,jc->j", self.s, self.s), self.h)

    def drops(self) -> Vector:
        return _over(np.einsum("jc,jc->j", self.x, self.x), self.own)

    def swaps(self, entering: Vector) -> Vector:
        P, s, m = self.P[:, entering], self.s[entering], (1.0 / np.where(self.own > 0, self.own, np.inf))[:, None]
        size = np.einsum("jc,jc->j", self.x, self.x)[:, None]
        pull = (
            np.einsum("jc,jc->j", s, s) + 2.0 * m * P * (self.x @ s.T) + (m * P) ** 2 * size
        )  # ‖s_i + P_ji x_j/M_jj‖²
        bend = self.h[entering] + m * P**2
        return np.asarray(_over(np.where(self.h[entering] > 0, pull, 0.0), bend) - 0.5 * m * size)


def _over(squares: Vector, curvature: Vector) -> Vector:
    """½·squares/curvature, 0 where there is no curvature."""
    return np.asarray(0.5 * squares / np.where(curvature > 0, curvature, np.inf))


def inverse(H: Vector) -> Vector:
    """H⁻¹ of a positive semidefinite H; of one that is nearly singular that on what it bends."""
    if not len(H):
        return np.zeros((0, 0))
    unit = unit_scales(np.diag(H))
    scaled = H / unit / unit[:, None]
    try:
        if np.diag(np.linalg.cholesky(scaled)).min() > NEARLY:
            return np.asarray(np.linalg.inv(scaled) / unit / unit[:, None])
    except np.linalg.LinAlgError:
        pass
    values, vectors = np.linalg.eigh(scaled)
    bends = values > len(H) * 16.0 * EPS * values[-1]
    return np.asarray((vectors[:, bends] / values[bends]) @ vectors[:, bends].T / unit / unit[:, None])


class RowSparseLoss(Loss):
    """φ of AX: a loss is its value, slope and curvature as functions of the image AX, and its bound `steepest` on the latter."""

    convex = has_row_problem = True
    least = 0.0  # no term is below 0
    steepest: ClassVar[float] = 1.0  # sup of the curvature of h, for weights of 1
    _data: ClassVar[tuple[str, ...]] = ("kind", "A", "weight", "ridge")

    def __init__(self, A: Matrix, width: int, sample_weight: Any = None, ridge: Any = 0.0) -> None:
        self.A = check_data(A, "A")
        self.kind, self.per_feature = self.design.kind, width
        check_squares(self.A, "A")
        m, self.features = (int(side) for side in self.A.shape)
        self.n = self.features * width
        self.weight, self.ridge = (
            check_row_weights(sample_weight, m, self.kind),
            check_ridge(ridge, self.features, self.kind),
        )

    @abstractmethod
    def fit_of(self, image: Array) -> float:
        """h(AX), with the weights; the image as m × t."""

    @abstractmethod
    def slope_of(self, image: Array) -> Array:
        """Its gradient, m × t, with the weights."""

    @abstractmethod
    def curvature_of(self, image: Array, D: Array) -> float:
        """Its curvature along D, with the weights."""

    @cached_property
    def design(self) -> Design:
        """A, as it is asked for more than products."""
        return design_of(self.A)

    def matrix(self, x: Array) -> Array:
        """x as a matrix, one row per feature and one column per target or class.

        Parameters
        ----------
        x : array of length n
            As `minimize` gives it.

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

    def image(self, x: Array) -> Array:
        return self._flat(self.A @ self.matrix(x))

    def _weighted(self, terms: Array) -> Array:
        return terms if self.weight is None else self.weight[:, None] * terms

    def _squares(self, x: Array) -> float:
        """Σⱼ ρⱼ‖Xⱼ‖²."""
        return 0.0 if self.ridge is None else float(namespace(x).sum(self.ridge[:, None] * self.matrix(x) ** 2))

    def value_at(self, x: Array, image: Array) -> float:
        return self.fit_of(self._sheet(image)) + 0.5 * self._squares(x)

    def gradient_at(self, x: Array, image: Array) -> Array:
        pull = self.A.T @ self.slope_of(self._sheet(image))
        return self._flat(pull if self.ridge is None else pull + self.ridge[:, None] * self.matrix(x))

    def curvature_at(self, x: Array, image: Array, d: Array, image_d: Array) -> float:
        return self.curvature_of(self._sheet(image), self._sheet(image_d)) + self._squares(d)

    @property
    def entries(self) -> int:
        """Rows times columns, zeros too."""
        return int(self.A.shape[0] * self.A.shape[1])

    @property
    def passes(self) -> int:
        return getattr(self.A, "passes", 0)

    @property
    def hides_columns(self) -> bool:
        """Whether A is an operator with many columns."""
        return self.design.hides_columns(weighted=True)

    def lengths(self) -> Vector | float:
        return np.repeat(self.design.column_norms(), self.per_feature)

    def lipschitz(self) -> float:
        ridge = 0.0 if self.ridge is None else float(namespace(self.ridge).max(self.ridge))
        return self.steepest * largest_gram_eigenvalue(self.A, self.weight, self.kind) + ridge

    def restrict(self, support: np.ndarray[Any, Any]) -> Loss:
        support = np.asarray(support)
        rows, t = support[:: self.per_feature] // self.per_feature, self.per_feature
        if support.size % t or not np.array_equal(support, (rows[:, None] * t + np.arange(t)).ravel()):
            return super().restrict(support)  # some of a row
        ridge = None if self.ridge is None else take(self.ridge, rows)
        cut: Loss = copy_with(
            self, A=self.design.columns(rows), ridge=ridge, features=int(rows.size), n=int(support.size)
        )
        return cut

    def first_duplicates(self, support: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.arange(len(support))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.A.shape[0]} × {self.features}, {self.per_feature} columns)"
