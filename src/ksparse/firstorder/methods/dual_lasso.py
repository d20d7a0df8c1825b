"""The subproblems of ℓ1-DCA and MIP-DCA on least squares with few rows, in the dual: m variables instead of 2n + m.

min ½‖Ax − b‖² + qᵀx + Σ wⱼ|xⱼ|, xⱼ ≥ 0 on some, has the dual min ½‖r‖² + bᵀr s.t. −w ≤ Aᵀr + q ≤ w, without the upper side
where xⱼ ≥ 0; r is the residual and x the multipliers. An interior-point step costs one m × n × m product, at full speed.
A solver's tolerances are absolute, so A and b are given to it scaled to size 1: with A = αA′, b = βb′ and x = (β/α)x′ the costs are
q = αβq′ and w = αβw′.
"""

from __future__ import annotations

import numpy as np
import piqp

from ksparse.data.products import Squares, dense
from ksparse.losses import Loss
from ksparse.numerics.qp import FAR
from ksparse.sets import ConvexSet
from ksparse.util.arrays import Vector, to_float64

TRUSTED = 1e-7  # the relative duality gap beyond which an answer is refused


class DualLasso:
    """The data, held by the solver; q and w change from one call to the next."""

    def __init__(self, squares: Squares, signed: Vector) -> None:
        root = np.ones(len(squares.b)) if squares.weight is None else np.sqrt(to_float64(squares.weight))
        A, b = root[:, None] * dense(to_float64(squares.A)), root * to_float64(squares.b)
        alpha, beta = float(np.sqrt(np.max(np.sum(A * A, axis=0)))) or 1.0, float(np.linalg.norm(b)) or 1.0
        self.A, self.b, self.unit, self.price = A / alpha, b / beta, beta / alpha, alpha * beta
        self.signed = signed  # where x ≥ 0
        self._solver: piqp.DenseSolver | None = None
        self._near: Vector = np.zeros(0, dtype=bool)  # the rows that it knows

    @classmethod
    def for_pieces(cls, loss: Loss, C: ConvexSet, n: int) -> DualLasso | None:
        """The solver for φ over C, or None where the dual is not of this form or not smaller."""
        linear, squares = C.as_linear(n), loss.squares()
        if linear is None or squares is None or squares.ridge is not None:
            return None
        if not isinstance(squares.A, np.ndarray) or squares.A.shape[0] >= n:
            return None
        signs_only = np.isin(linear.lower, (-np.inf, 0.0)).all() and np.isposinf(linear.upper).all()
        return cls(squares, linear.lower == 0.0) if signs_only and linear.f.size == linear.h.size == 0 else None

    def solve(self, q: Vector, w: Vector) -> Vector | None:
        """x of the optimum, or None where the solver's answer cannot be trusted."""
        q, w = q / self.price, w / self.price
        low, high = -w - q, np.where(self.signed, np.inf, w - q)
        near = (low > -FAR) | (high < FAR)  # of the others, where x is 0, PIQP would complain
        if self._solver is None or not np.array_equal(near, self._near):
            self._solver, self._near = piqp.DenseSolver(), near
            rows = (np.ascontiguousarray(self.A.T[near]), low[near], high[near]) if near.any() else (None, None, None)
            self._solver.setup(np.eye(len(self.b)), self.b, None, None, *rows)
        elif near.any():
            self._solver.update(h_l=low[near], h_u=high[near])
        self._solver.solve()
        found, x = self._solver.result, np.zeros(near.size)
        r = np.array(found.x)
        if near.any():
            x[near] = np.array(found.z_l) - np.array(found.z_u)
        x = np.where(self.signed, np.maximum(x, 0.0), x)
        primal = 0.5 * float(np.sum((self.A @ x - self.b) ** 2)) + float(q @ x) + float(w @ np.abs(x))
        dual = -0.5 * float(r @ r) - float(self.b @ r)
        shadow = self.A.T @ r
        outside = max(0.0, float(np.max(low - shadow)), float(np.max(shadow - high)))
        size = max(0.5, abs(primal), abs(dual))  # ½‖b′‖² is the value at x = 0
        trusted = np.isfinite(x).all() and abs(primal - dual) <= TRUSTED * size and outside * float(np.abs(x).sum() + 1.0) <= TRUSTED * size
        return self.unit * x if trusted else None
