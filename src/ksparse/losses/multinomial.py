"""Multinomial logistic loss of a matrix X with one column per class, and its row problem for the search over features.

At probabilities p the Hessian has for features j and l the block Σᵢ wᵢ aᵢⱼ aᵢₗ (diag(pᵢ) − pᵢpᵢᵀ). It is singular along
rows of X with equal entries, so all computations use coordinates V with X = VQᵀ, where the columns of Q are an
orthonormal basis of the complement of (1, …, 1). Let M = H_SS⁻¹, P = M·H_S:, g the negative gradient and, for each
feature i, K_i = H_ii − H_iS P_:i. The gains on the second-order model are those of `row_sparse` with blocks in place of
numbers:

    drop j         costs  ½ v_jᵀ M_jj⁻¹ v_j
    add i          gains  ½ g_iᵀ K_i⁻¹ g_i
    swap j for i   gains  ½ dᵀ(K_i + P_jiᵀ M_jj⁻¹ P_ji)⁻¹d − ½ v_jᵀ M_jj⁻¹ v_j,    d = g_i + P_jiᵀ M_jj⁻¹ v_j
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from ksparse.data import Design
from ksparse.data.model import QuadraticModel, Symmetric
from ksparse.data.products import dense
from ksparse.losses.base import count_evaluations
from ksparse.losses.row_sparse import RowProblem, RowSolution, RowSparseLoss, inverse
from ksparse.util.arrays import Array, Matrix, Vector, like, namespace, to_float64, to_numpy
from ksparse.util.display import fill_docstrings

STEPS = 50  # of Newton's method
SETTLED = 1e-8  # relative decrease of φ below which a Newton step is the last one; the error after it is its square
EXACT = 1e-15  # the same for a final answer
FITTED = 1e-11  # fraction of φ(0) below which nothing is left to fit
LOOKED = 48  # features whose gains are computed by blocks: those with the largest screening gains
MODELLED = 2048  # entries of x up to which H is formed


def softmax(Z: Array) -> Array:
    """Return exp Z_c / Σ exp Z_c by rows."""
    xp = namespace(Z)
    share = xp.exp(Z - xp.max(Z, axis=1, keepdims=True))
    return share / xp.sum(share, axis=1, keepdims=True)


class SoftmaxRows(RowProblem):
    """Σᵢ wᵢ (log Σ_c exp Z_ic − Z_iyᵢ) + ½ Σⱼ ρⱼ‖Xⱼ‖² as a function of X, with Z = AX and Y the classes as 0 and 1."""

    exact = False

    def __init__(self, design: Design, Y: Vector, weight: Vector | None, ridge: Vector) -> None:
        self.design, self.Y, self.ridge = design, Y, ridge
        self.n, t = self.ridge.size, Y.shape[1]
        self.width = int(t)
        self.w = np.ones(len(Y)) if weight is None else weight
        self.constant = float(self.w.sum()) * math.log(t)
        # an orthonormal basis of the complement of (1, …, 1)
        self.Q = np.linalg.qr(np.column_stack([np.ones(t), np.eye(t)[:, 1:]]))[0][:, 1:]

    def block(self, A: Vector, B: Vector, P: Vector) -> Vector:
        """Return Σᵢ wᵢ (aᵢbᵢᵀ) ⊗ (diag(pᵢ) − pᵢpᵢᵀ)."""
        (m, s), (_, u), t = A.shape, B.shape, P.shape[1]
        spread = np.sqrt(self.w)[:, None] * P
        left = (A[:, :, None] * spread[:, None, :]).reshape(m, s * t)
        right = left if B is A else (B[:, :, None] * spread[:, None, :]).reshape(m, u * t)
        H = -(left.T @ right)
        for c in range(t):
            H[c::t, c::t] += (A * (self.w * P[:, c])[:, None]).T @ B
        return np.asarray(H)

    def reduced_block(self, A: Vector, B: Vector, P: Vector) -> Vector:
        """Return `block` in the coordinates V."""
        (t, r), s, u = self.Q.shape, A.shape[1], B.shape[1]
        half = (self.block(A, B, P).reshape(s * t * u, t) @ self.Q).reshape(s, t, u * r)
        return np.asarray((self.Q.T @ half).reshape(s * r, u * r))

    def reduced_hessian(self, A: Vector, P: Vector, ridge: Vector) -> Vector:
        """Return ∇²φ on the columns of A in the coordinates V."""
        return np.asarray(self.reduced_block(A, A, P) + np.diag(np.repeat(ridge, self.Q.shape[1])))

    def _value(self, Z: Vector, V: Vector, ridge: Vector) -> float:
        count_evaluations(values=1)
        top = Z.max(axis=1)
        fit = np.log(np.exp(Z - top[:, None]).sum(axis=1)) + top - np.einsum("ic,ic->i", self.Y, Z)
        return float(self.w @ fit) + 0.5 * float(ridge @ np.einsum("jc,jc->j", V, V))

    def _newton(self, support: Vector, X: Vector | None, settled: float) -> RowSolution:
        """Return the optimal X on a support by Newton's method with a line search, from X or from 0."""
        A, ridge = dense(self.design.columns(support)), self.ridge[support]
        V = np.zeros((support.size, self.Q.shape[1])) if X is None else X @ self.Q
        Z = A @ V @ self.Q.T
        value = self._value(Z, V, ridge)
        for _ in range(STEPS):
            count_evaluations(gradients=1)
            P = softmax(Z)
            slope = A.T @ (self.w[:, None] * (P - self.Y)) @ self.Q + ridge[:, None] * V
            step = -(inverse(self.reduced_hessian(A, P, ridge)) @ slope.ravel()).reshape(V.shape)
            promise, along, length = -float(np.vdot(slope, step)), A @ step @ self.Q.T, 1.0
            if not promise > 0:
                break
            while True:
                there = self._value(Z + length * along, V + length * step, ridge)
                if there <= value - 1e-4 * length * promise or length < 1e-8:
                    break
                length *= 0.5
            if not there < value:  # the rest is rounding
                break
            V, Z, value = V + length * step, Z + length * along, there
            if promise <= settled * abs(value) or value <= FITTED * self.constant:
                break
        return RowSolution(V @ self.Q.T, value)

    def solve(self, support: Vector, begin: Vector | None) -> RowSolution:
        return self._newton(support, begin, SETTLED)

    def polish(self, support: Vector, X: Vector) -> Vector:
        return self._newton(support, X, EXACT).X

    def gains(self, support: Vector, X: Vector) -> SoftmaxGains:
        return SoftmaxGains(self, support, X)


class SoftmaxGains:
    """The gains on the second-order model at X."""

    def __init__(self, problem: SoftmaxRows, support: Vector, X: Vector) -> None:
        self.problem, self.support, self.X = problem, support, X
        self._A = dense(problem.design.columns(support)) if support.size else np.zeros((len(problem.Y), 0))
        self._P = np.asarray(softmax(self._A @ X))

    @cached_property
    def _g(self) -> Vector:
        """The negative gradient of each feature, in the coordinates V."""
        count_evaluations(gradients=1)
        problem = self.problem
        return np.asarray(problem.design.adjoint_product(problem.w[:, None] * (problem.Y - self._P)) @ problem.Q)

    @cached_property
    def _M(self) -> Vector:
        """H_SS⁻¹ with the axes member, coordinate, member, coordinate."""
        s, r = self.support.size, self.problem.Q.shape[1]
        H = self.problem.reduced_hessian(self._A, self._P, self.problem.ridge[self.support])
        return np.asarray(inverse(H).reshape(s, r, s, r))

    @cached_property
    def _own(self) -> tuple[Vector, Vector]:
        """M_jj⁻¹ of each member, and the cost of dropping it."""
        V = self.X @ self.problem.Q
        own = np.array([inverse(self._M[j, :, j]) for j in range(self.support.size)]).reshape(-1, *2 * V.shape[1:])
        return own, 0.5 * np.einsum("jc,jcd,jd->j", V, own, V)

    @cached_property
    def _screening_gains(self) -> Vector:
        """Gains as if all classes had the same curvature and features were orthogonal: a first ranking."""
        problem = self.problem
        spread = problem.w * (1.0 - np.square(self._P).sum(axis=1)) / (problem.width - 1)
        bend = problem.design.column_square_sums(spread) + problem.ridge
        gains = 0.5 * np.square(self._g).sum(axis=1) / np.where(bend > 0, bend, np.inf)
        gains[self.support] = 0.0
        return np.asarray(gains)

    @cached_property
    def _best(self) -> tuple[Vector, Vector, Vector]:
        """The features with the largest screening gains, and their P and K."""
        problem, s, r = self.problem, self.support.size, self.problem.Q.shape[1]
        best = np.sort(np.argsort(-self._screening_gains, kind="stable")[:LOOKED])
        A, u, PQ = dense(problem.design.columns(best)), best.size, self._P @ problem.Q
        each = np.einsum("ic,ca,cb->iab", self._P, problem.Q, problem.Q) - np.einsum("ia,ib->iab", PQ, PQ)
        K = ((A * A).T @ (problem.w[:, None] * each.reshape(len(A), r * r))).reshape(u, r, r)
        K = K + problem.ridge[best][:, None, None] * np.eye(r)
        across = problem.reduced_block(self._A, A, self._P) if s else np.zeros((0, u * r))
        P = self._M.reshape(s * r, s * r) @ across
        K = K - np.einsum("xia,xib->iab", across.reshape(s * r, u, r), P.reshape(s * r, u, r))
        return best, P.reshape(s, r, u, r), K

    def adds(self) -> Vector:
        best, _, K = self._best
        gains = self._screening_gains.copy()
        others = gains[best] > 0  # the K of a member is rounding
        gains[best[others]] = _half_forms(K[others], self._g[best[others]])
        return gains

    def drops(self) -> Vector:
        return self._own[1]

    def swaps(self, entering: Vector) -> Vector:
        best, P, K = self._best
        table = np.full((self.support.size, entering.size), -np.inf)
        known = np.flatnonzero(np.isin(entering, best))
        if not known.size or not self.support.size:
            return table
        at = np.searchsorted(best, entering[known])
        P, K = P[:, :, at], K[at]
        own, cost = self._own
        carried = np.einsum("jcd,jdia->jcia", own, P)  # M_jj⁻¹ P_ji
        d = self._g[entering[known]] + np.einsum("jcia,jc->jia", carried, self.X @ self.problem.Q)
        bend = K + np.einsum("jcia,jcib->jiab", P, carried)
        table[:, known] = _half_forms(bend, d) - cost[:, None]
        return table


def _half_forms(K: Vector, g: Vector) -> Vector:
    """Return ½gᵀK⁻¹g for many K and g; a direction that K lost to rounding gets a small curvature."""
    trace = np.einsum("...aa->...", K)
    stiff = 0.5 * (K + K.swapaxes(-1, -2)) + (1e-9 * np.abs(trace) + 1e-150)[..., None, None] * np.eye(K.shape[-1])
    return np.asarray(0.5 * np.einsum("...a,...a->...", g, np.linalg.solve(stiff, g[..., None])[..., 0]))


@fill_docstrings()
class Multinomial(RowSparseLoss):
    """Σᵢ wᵢ (log Σ_c exp Z_ic − Z_iyᵢ) with Z = AX, one column of X per class; k counts the features.

    The form is symmetric: every class has a column, and adding a constant to a row of X changes no probability. With a
    ridge the entries of each row of the answer sum to 0. x holds X row by row: `loss.matrix(result.x)` is X.

    Parameters
    ----------
    {A}
    y : array-like
        The class of each row: any labels.
    {sample_weight}
    ridge : float or array-like, default=0.0
        ρ, one number or one per feature: adds ½ Σⱼ ρⱼ‖Xⱼ‖². Without it there is no minimum if k features separate the
        classes.
    classes : array-like or None, default=None
        The labels in the order of X's columns; None for those of y, sorted.

    Raises
    ------
    ValueError, TypeError
        If the data are not finite or have incompatible shapes, there are fewer than two classes, or a label is not a
        class; the message names the argument.

    See Also
    --------
    Logistic : Two classes, with one coefficient per feature.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((120, 15))
    >>> y = np.argmax(A[:, [3, 8]] @ rng.standard_normal((2, 3)) + 0.3 * rng.standard_normal((120, 3)), axis=1)
    >>> loss = ks.Multinomial(A, y, ridge=0.1)
    >>> np.flatnonzero(loss.matrix(ks.minimize(loss, 2).x).any(axis=1))
    array([3, 8])
    """

    steepest = 0.5  # Böhning's bound of diag(p) − ppᵀ
    _data = (*RowSparseLoss._data, "Y")

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
        log_sum = xp.log(xp.sum(xp.exp(image - top), axis=1, keepdims=True)) + top
        return float(xp.sum(self._weighted(log_sum - xp.sum(self.Y * image, axis=1, keepdims=True))))

    def slope_of(self, image: Array) -> Array:
        return self._weighted(softmax(image) - self.Y)

    def curvature_of(self, image: Array, D: Array) -> float:
        xp, P = namespace(image), softmax(image)
        mean = xp.sum(P * D, axis=1, keepdims=True)
        return float(xp.sum(self._weighted(P * (D - mean) ** 2)))

    def model_at(self, x: Vector) -> QuadraticModel | None:
        if self.hides_columns or (self.n or 0) > MODELLED:
            return None
        image, problem = self.image(x), self.row_problem()
        A = dense(self.design.columns(np.arange(self.features)))
        H = problem.block(A, A, softmax(self._sheet(image))) + np.diag(np.repeat(problem.ridge, self.per_feature))
        gradient = to_float64(self.gradient_at(x, image))
        return QuadraticModel.at(Symmetric(H), x, H @ x, self.value_at(x, image), gradient)

    def row_problem(self) -> SoftmaxRows:
        weight, ridge = (None if part is None else to_float64(part) for part in (self.weight, self.ridge))
        return SoftmaxRows(self.design, to_float64(self.Y), weight, np.zeros(self.features) if ridge is None else ridge)
