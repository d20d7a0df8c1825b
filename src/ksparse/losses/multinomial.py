"""Multinomial logistic loss: several classes by the same few features.

The multinomial loss of a matrix X, for a search over its rows: Newton's method on some rows, and what others would gain by its model.

The Hessian at probabilities p has for features j and l the block Σᵢ wᵢ a_ij a_il (diag(pᵢ) − pᵢpᵢᵀ). It is flat where all columns of a row
of X grow alike, so that all is done in coordinates Q of the other directions, X = VQᵀ. With M = H_SS⁻¹, P = M·H_S:, pulls g and, for each
feature i, K_i = H_ii − H_iS P_:i, rows gain by the model what they do for squares (`linalg.wide`), with blocks in place of numbers:

    j leaves           ½ v_jᵀ M_jj⁻¹ v_j
    i enters           ½ g_iᵀ K_i⁻¹ g_i
    i in place of j    ½ dᵀ(K_i + P_jiᵀ M_jj⁻¹ P_ji)⁻¹d − ½ v_jᵀ M_jj⁻¹ v_j,    d = g_i + P_jiᵀ M_jj⁻¹ v_j
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ksparse.data import Design
from ksparse.data.model import QuadraticModel, Symmetric
from ksparse.data.products import dense
from ksparse.losses.row_sparse import RowProblem, RowSolution, RowSparseLoss, inverse
from ksparse.util.arrays import Array, Matrix, Vector, like, namespace, to_float64, to_numpy
from ksparse.util.evaluations import count

STEPS = 50  # of Newton's method
SETTLED = 1e-8  # of the value: a step that promises no more is the last, and squares what is left
EXACT = 1e-15  # the same for an answer
FITTED = 1e-11  # of φ(0): nothing is left to fit
LOOKED = 48  # features whose gains are computed by blocks: those that pull most


def softmax(Z: Array) -> Array:
    """exp Z_c / Σ exp Z_c by rows."""
    xp = namespace(Z)
    share = xp.exp(Z - xp.max(Z, axis=1, keepdims=True))
    return share / xp.sum(share, axis=1, keepdims=True)


@dataclass(frozen=True)
class SoftmaxRows:
    """Σᵢ wᵢ (log Σ_c exp Z_ic − Z_iyᵢ) + ½ Σⱼ ρⱼ‖Xⱼ‖², Z = AX, Y the classes as 0 and 1."""

    design: Design
    Y: Vector
    weight: Vector | None
    ridge: Vector

    exact = False

    @property
    def n(self) -> int:
        """Features."""
        return self.design.shape[1]

    @property
    def width(self) -> int:
        """Classes."""
        return int(self.Y.shape[1])

    @cached_property
    def w(self) -> Vector:
        """Weights of the rows."""
        return np.ones(len(self.Y)) if self.weight is None else self.weight

    @cached_property
    def constant(self) -> float:
        """φ(0)."""
        return float(self.w.sum()) * math.log(self.width)

    @cached_property
    def Q(self) -> Vector:
        """An orthonormal basis of what is not the same for all classes."""
        t = self.width
        return np.linalg.qr(np.column_stack([np.ones(t), np.eye(t)[:, 1:]]))[0][:, 1:]

    def hessian(self, A: Vector, P: Vector, ridge: Vector) -> Vector:
        """∇² at probabilities P on the columns of A, entries of X row by row."""
        return np.asarray(self.block(A, A, P) + np.diag(np.repeat(ridge, P.shape[1])))

    def block(self, A: Vector, B: Vector, P: Vector) -> Vector:
        """Σᵢ wᵢ (aᵢbᵢᵀ) ⊗ (diag(pᵢ) − pᵢpᵢᵀ)."""
        (m, s), (_, u), t = A.shape, B.shape, P.shape[1]
        spread = np.sqrt(self.w)[:, None] * P
        left = (A[:, :, None] * spread[:, None, :]).reshape(m, s * t)
        right = left if B is A else (B[:, :, None] * spread[:, None, :]).reshape(m, u * t)
        H = -(left.T @ right)
        for c in range(t):
            H[c::t, c::t] += (A * (self.w * P[:, c])[:, None]).T @ B
        return np.asarray(H)

    def _reduced(self, H: Vector) -> Vector:
        """A Hessian, or a block of one, in the coordinates Q."""
        t, r = self.Q.shape
        s, u = H.shape[0] // t, H.shape[1] // t
        half = (H.reshape(s * t * u, t) @ self.Q).reshape(s, t, u * r)
        return np.asarray((self.Q.T @ half).reshape(s * r, u * r))

    def _value(self, Z: Vector, V: Vector, ridge: Vector) -> float:
        count(values=1)
        top = Z.max(axis=1)
        fit = np.log(np.exp(Z - top[:, None]).sum(axis=1)) + top - np.einsum("ic,ic->i", self.Y, Z)
        return float(self.w @ fit) + 0.5 * float(ridge @ np.einsum("jc,jc->j", V, V))

    def _newton(self, support: Vector, X: Vector | None, settled: float) -> RowSolution:
        """Newton's method with a line search, from X or from 0."""
        A, ridge, r = dense(self.design.columns(support)), self.ridge[support], self.Q.shape[1]
        V = np.zeros((support.size, r)) if X is None else X @ self.Q
        Z = A @ V @ self.Q.T
        value = self._value(Z, V, ridge)
        for _ in range(STEPS):
            count(gradients=1)
            P = softmax(Z)
            slope = A.T @ (self.w[:, None] * (P - self.Y)) @ self.Q + ridge[:, None] * V
            H = self._reduced(self.block(A, A, P)) + np.diag(np.repeat(ridge, r))
            step = -_solved(H, slope.ravel()).reshape(V.shape)
            promise, along, length = -float(np.vdot(slope, step)), A @ step @ self.Q.T, 1.0
            if not promise > 0:
                break
            while True:
                there = self._value(Z + length * along, V + length * step, ridge)
                if there <= value - 1e-4 * length * promise or length < 1e-8:
                    break
                length *= 0.5
            if not there < value:  # what is left is rounding
                break
            V, Z, value = V + length * step, Z + length * along, there
            if promise <= settled * abs(value) or value <= FITTED * self.constant:
                break
        return RowSolution(V @ self.Q.T, value)

    def solve(self, support: Vector, begin: Vector | None) -> RowSolution:
        return self._newton(support, begin, SETTLED)

    def polish(self, support: Vector, X: Vector) -> Vector:
        return self._newton(support, X, EXACT).X

    def shortfall(self, support: Vector, X: Vector) -> float:
        return math.inf

    def gains(self, support: Vector, X: Vector) -> SoftmaxGains:
        return SoftmaxGains(self, support, X)


@dataclass(frozen=True)
class SoftmaxGains:
    """The gains by the second-order model at X."""

    wide: SoftmaxRows
    support: Vector
    X: Vector

    @cached_property
    def _A(self) -> Vector:
        return dense(self.wide.design.columns(self.support)) if self.support.size else np.zeros((len(self.wide.Y), 0))

    @cached_property
    def _P(self) -> Vector:
        return np.asarray(softmax(self._A @ self.X))

    @cached_property
    def _g(self) -> Vector:
        """How each feature pulls."""
        wide = self.wide
        count(gradients=1)
        return np.asarray(wide.design.adjoint_product(wide.w[:, None] * (wide.Y - self._P)) @ wide.Q)

    @cached_property
    def _M(self) -> Vector:
        """H_SS⁻¹ as blocks: member, coordinate, member, coordinate."""
        wide, s, r = self.wide, self.support.size, self.wide.Q.shape[1]
        H = wide._reduced(wide.block(self._A, self._A, self._P)) + np.diag(np.repeat(wide.ridge[self.support], r))
        return np.asarray(inverse(H).reshape(s, r, s, r))

    @cached_property
    def _own(self) -> tuple[Vector, Vector]:
        """M_jj⁻¹ of each member, and what it would cost to lose it."""
        V = self.X @ self.wide.Q
        if not self.support.size:
            return np.zeros((0, V.shape[1], V.shape[1])), np.zeros(0)
        own = np.array([inverse(self._M[j, :, j]) for j in range(self.support.size)])
        return own, 0.5 * np.einsum("jc,jcd,jd->j", V, own, V)

    @cached_property
    def _screening_gains(self) -> Vector:
        """Gains as if all classes bent alike and no feature were like another: which ones to look at."""
        wide = self.wide
        bend = (
            wide.design.column_square_sums(wide.w * (1.0 - np.square(self._P).sum(axis=1)) / (wide.width - 1))
            + wide.ridge
        )
        rough = 0.5 * np.square(self._g).sum(axis=1) / np.where(bend > 0, bend, np.inf)
        rough[self.support] = 0.0
        return np.asarray(rough)

    def _block_gains(self, features: Vector) -> tuple[Vector, Vector, Vector]:
        """P and K of some features, and how they pull."""
        wide, s, r, u = self.wide, self.support.size, self.wide.Q.shape[1], features.size
        A, ridge = dense(wide.design.columns(features)), wide.ridge[features]
        each = np.einsum("ic,ca,cb->iab", self._P, wide.Q, wide.Q) - np.einsum(
            "ia,ib->iab", self._P @ wide.Q, self._P @ wide.Q
        )
        K = ((A * A).T @ (wide.w[:, None] * each.reshape(len(A), r * r))).reshape(u, r, r) + ridge[
            :, None, None
        ] * np.eye(r)
        across = wide._reduced(wide.block(self._A, A, self._P)) if s else np.zeros((0, u * r))
        P = self._M.reshape(s * r, s * r) @ across
        K = K - np.einsum("xia,xib->iab", across.reshape(s * r, u, r), P.reshape(s * r, u, r))
        return P.reshape(s, r, u, r), K, self._g[features]

    @cached_property
    def _best(self) -> tuple[Vector, tuple[Vector, Vector, Vector]]:
        """The features that pull most, looked at."""
        best = np.sort(np.argsort(-self._screening_gains, kind="stable")[:LOOKED])
        return best, self._block_gains(best)

    def adds(self) -> Vector:
        best, (_, K, g) = self._best
        gains = self._screening_gains.copy()
        others = gains[best] > 0  # of the support's own K nothing is left but rounding
        gains[best[others]] = _halves(K[others], g[others])
        return gains

    def drops(self) -> Vector:
        return self._own[1]

    def swaps(self, entering: Vector) -> Vector:
        best, found = self._best
        table = np.full((self.support.size, entering.size), -np.inf)
        known = np.flatnonzero(np.isin(entering, best))
        if not known.size or not self.support.size:
            return table
        at = np.searchsorted(best, entering[known])
        P, K, g = found[0][:, :, at], found[1][at], found[2][at]
        own, cost = self._own
        carried = np.einsum("jcd,jdia->jcia", own, P)  # M_jj⁻¹ P_ji
        d = g[None] + np.einsum("jcia,jc->jia", carried, self.X @ self.wide.Q)
        bend = K[None] + np.einsum("jcia,jcib->jiab", P, carried)
        table[:, known] = _halves(bend, d) - cost[:, None]
        return table


def _halves(K: Vector, g: Vector) -> Vector:
    """½gᵀK⁻¹g of many; K may have lost a direction to rounding, which then is as stiff as the others are at most."""
    trace = np.einsum("...aa->...", K)
    stiff = 0.5 * (K + K.swapaxes(-1, -2)) + (1e-9 * np.abs(trace) + 1e-150)[..., None, None] * np.eye(K.shape[-1])
    return np.asarray(0.5 * np.einsum("...a,...a->...", g, np.linalg.solve(stiff, g[..., None])[..., 0]))


def _solved(H: Vector, slope: Vector) -> Vector:
    """H⁻¹·slope, on what H bends."""
    try:
        unit = np.sqrt(np.diag(H))
        if unit.min() > 0:
            L = np.linalg.cholesky(H / unit / unit[:, None])
            if np.diag(L).min() > 1e-7:
                return np.asarray(np.linalg.solve(L.T, np.linalg.solve(L, slope / unit)) / unit)
    except np.linalg.LinAlgError:
        pass
    return np.asarray(inverse(H) @ slope)


MODELLED = 2048  # entries of x up to which H is formed


class Multinomial(RowSparseLoss):
    """Σᵢ wᵢ (log Σ_c exp Z_ic − Z_iyᵢ) with Z = AX, one column of X per class; k counts rows of X: the features that all classes share.

    The symmetric form: every class has a column, and what is added to all columns of a row changes no probability. With a ridge the columns
    of the answer add up to 0. x holds X row by row: `loss.matrix(result.x)` is X.

    Parameters
    ----------
    A : array, scipy.sparse, data by blocks, or any object with shape, @ and .T
        The data, one row per observation; its dtype and device are those of x.
    y : array-like
        The class of each row: any labels.
    sample_weight : array-like or None, default=None
        One weight per row, at or above 0.
    ridge : float or array-like, default=0.0
        ρ, one number or one per feature: adds ½ Σⱼ ρⱼ‖Xⱼ‖². Where k features separate the classes there is no minimum without.
    classes : array-like or None, default=None
        The labels in the order of X's columns; None for those of y, sorted.

    Raises
    ------
    ValueError, TypeError
        If the data are not finite, do not fit each other, or are no numbers; if there are fewer than two classes, or a label is none of
        them; the message names the argument.

    See Also
    --------
    Logistic : Two classes, with one coefficient per feature.

    Examples
    --------
    >>> import numpy as np
    >>> import ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((120, 15))
    >>> y = np.argmax(A[:, [3, 8]] @ rng.standard_normal((2, 3)) + 0.3 * rng.standard_normal((120, 3)), axis=1)
    >>> loss = ks.Multinomial(A, y, ridge=0.1)
    >>> np.flatnonzero(loss.matrix(ks.minimize(loss, 2).x).any(axis=1))
    array([3, 8])
    """

    skip_self_check = True
    steepest = 0.5  # Böhning's bound of diag(p) − ppᵀ
    _data: ClassVar[tuple[str, ...]] = (*RowSparseLoss._data, "Y")

    def __init__(self, A: Matrix, y: Any, sample_weight: Any = None, ridge: Any = 0.0, classes: Any = None) -> None:
        labels = to_numpy(y) if hasattr(y, "ndim") else np.asarray(y)
        if labels.ndim != 1:
            raise ValueError(f"y must be a vector of labels, got shape {labels.shape}")
        if labels.dtype.kind == "f" and not np.isfinite(labels).all():
            raise ValueError("y must hold labels, but it contains NaN or inf")
        self.classes = np.unique(labels) if classes is None else np.asarray(classes)
        if len(self.classes) < 2 or len(np.unique(self.classes)) < len(self.classes):
            what = "y" if classes is None else "classes"
            raise ValueError(f"{what} must hold at least two classes, each once in classes, got {self.classes}")
        super().__init__(A, len(self.classes), sample_weight, ridge)
        if len(labels) != self.A.shape[0]:
            raise ValueError(f"y must have length {self.A.shape[0]}, got {len(labels)}")
        is_in = labels[:, None] == self.classes
        if not is_in.any(axis=1).all():
            raise ValueError(f"y holds {labels[~is_in.any(axis=1)][0]!r}, which is none of the classes {self.classes}")
        self.Y = like(is_in.astype(float), self.kind)

    def fit_of(self, image: Array) -> float:
        xp = namespace(image)
        top = xp.max(image, axis=1, keepdims=True)
        each = (
            xp.log(xp.sum(xp.exp(image - top), axis=1, keepdims=True))
            + top
            - xp.sum(self.Y * image, axis=1, keepdims=True)
        )
        return float(xp.sum(self._weighted(each)))

    def slope_of(self, image: Array) -> Array:
        return self._weighted(softmax(image) - self.Y)

    def curvature_of(self, image: Array, D: Array) -> float:
        xp, P = namespace(image), softmax(image)
        mean = xp.sum(P * D, axis=1, keepdims=True)
        return float(xp.sum(self._weighted(P * (D - mean) ** 2)))

    def model_at(self, x: Vector) -> QuadraticModel | None:
        if self.hides_columns or (self.n or 0) > MODELLED:
            return None
        image, wide = self.image(x), self._softmax
        H = wide.hessian(dense(self.design.columns(np.arange(self.features))), softmax(self._sheet(image)), wide.ridge)
        gradient = to_float64(self.gradient_at(x, image))
        return QuadraticModel.at(Symmetric(H), x, H @ x, self.value_at(x, image), gradient)

    def row_problem(self) -> RowProblem:
        return self._softmax

    @property
    def _softmax(self) -> SoftmaxRows:
        weight, ridge = (None if part is None else to_float64(part) for part in (self.weight, self.ridge))
        return SoftmaxRows(self.design, to_float64(self.Y), weight, np.zeros(self.features) if ridge is None else ridge)
