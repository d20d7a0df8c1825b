"""The convex subproblems of ℓ1-DCA and MIP-DCA, for Clarabel: min γ(x) + qᵀz over C and a few linear constraints.

The variables are z = [x, e, r]: x itself, one extra variable per entry (a bound on |x|, or the indicator u), and, for data with few
rows or many zeros, the residual r of a quadratic form in factor form, so that γ = a‖r‖² with Ax − r = b and no n × n matrix is made.
Dense data with more rows are cheaper as the n × n matrix itself: the solver factors one dense block at full speed, a star of thin ones
not (measured: four times faster on 1338 assets, three times on 360 × 1280). A solver's tolerances are absolute, so it sees x/unit, with
unit the size of a least-squares solution, and costs divided by the largest of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from ksparse.data import design_of
from ksparse.errors import MissingPieceError
from ksparse.losses import Loss
from ksparse.sets import ConvexSet
from ksparse.util.arrays import Vector, to_float64

FEW_ROWS = 1 / 7  # of n: below, the factor form is cheaper even for dense data
INSTALL = "needs the solver Clarabel: pip install 'ksparse[baselines]'"


class Subproblem:
    """min γ(x) + qᵀz over C and `rows`; only q changes from one iteration to the next."""

    def __init__(self, method: str, loss: Loss, C: ConvexSet, n: int) -> None:
        try:
            import clarabel
        except ImportError as error:
            raise ImportError(f"{method} {INSTALL}") from error
        self.clarabel, self.method, self.n = clarabel, method, n
        self.zero: list[tuple[Any, Vector]] = []  # rows M z = v
        self.less: list[tuple[Any, Vector]] = []  # rows M z ≤ v
        self.cones: list[tuple[Any, Vector]] = []  # blocks v − M z in a second-order cone
        self.shift = 0.0  # γ is φ + (shift/2)‖x‖² where φ alone is not convex
        self.unit = 1.0  # x is unit times the solver's
        self._quadratic(method, loss)
        self._set(method, C)
        self._solver: Any = None
        self._price = 1.0  # the solver's costs are ours over this

    def _quadratic(self, method: str, loss: Loss) -> None:
        """γ, the convex part of φ: P (made when the solver is), the linear term, and the rows that define r."""
        n = self.n
        self.linear, self.rest = np.zeros(n), 0
        self.P: Callable[[], Any]
        squares, model, ridge, factor = loss.squares(), None, sp.csc_array((n, n)), None
        if squares is not None:
            root = np.ones(len(squares.b)) if squares.weight is None else np.sqrt(to_float64(squares.weight))
            factor, target, weight = _scaled(root, _matrix(squares.A)), root * to_float64(squares.b), 1.0
            columns = np.sqrt(np.asarray((factor.multiply(factor) if sp.issparse(factor) else factor * factor).sum(axis=0))).max()
            self.unit = (float(np.linalg.norm(target)) or 1.0) / (float(columns) or 1.0)
            if squares.ridge is not None:
                ridge = sp.diags_array(to_float64(squares.ridge))
        else:
            model = loss.as_float64().quadratic()
            if model is None:
                raise MissingPieceError(f"{method} needs a quadratic loss; {type(loss).__name__} is not: use apdca")
            if model.sign < 0:  # concave: all of it is linearised
                self.P = lambda: sp.csc_matrix((n, n))
            else:
                self.linear, form = -model.r, getattr(model.H, "form", None)
                if form is not None:
                    factor, target, weight = _matrix(form[0]), np.zeros(form[0].shape[0]), form[1]
                else:
                    self.shift = loss.lipschitz() if loss.convex is False else 0.0
                    H = model.rows(np.arange(n)) + self.shift * np.eye(n)
                    self.P = lambda: _upper(H)
        if isinstance(factor, np.ndarray) and factor.shape[0] > FEW_ROWS * n:
            self.P = lambda: _upper(weight * (factor.T @ factor) + ridge.toarray())
            self.linear = self.linear - weight * (factor.T @ target)
        elif factor is not None:
            self.rest = factor.shape[0]
            self.P = lambda: sp.block_diag([ridge, weight * sp.eye_array(self.rest)], format="csc")
            self.zero.append((sp.hstack([factor, sp.csc_matrix((self.rest, n)), -sp.eye_array(self.rest)]), target / self.unit))

    def _set(self, method: str, C: ConvexSet) -> None:
        linear, ball = C.as_linear(self.n), C.as_norm_ball()
        if linear is not None:
            low, high = np.flatnonzero(np.isfinite(linear.lower)), np.flatnonzero(np.isfinite(linear.upper))
            eye = sp.eye_array(self.n, format="csr")
            self.less += [(self._on_x(-eye[low]), -linear.lower[low] / self.unit), (self._on_x(eye[high]), linear.upper[high] / self.unit)]
            self.less.append((self._on_x(linear.G), linear.h / self.unit))
            self.zero.append((self._on_x(linear.E), linear.f / self.unit))
        elif ball is not None and ball[0] == 2:
            rows = sp.vstack([sp.csr_matrix((1, self.n)), -sp.eye_array(self.n)])
            self.cones.append((self._on_x(rows), np.append(ball[1] / self.unit, np.zeros(self.n))))
        elif ball is not None:
            self.radius = ball[1] / self.unit
        else:
            raise MissingPieceError(f"{method} needs a set that a conic solver knows; {C} is not: use apdca")

    def _on_x(self, M: Any) -> Any:
        M = sp.csr_matrix(M)
        return sp.hstack([M, sp.csr_matrix((M.shape[0], self.n + self.rest))])

    def on_extra(self, x_part: Any, e_part: Any, right: Vector) -> None:
        """Add rows x_part·x + e_part·e ≤ right."""
        self.less.append((sp.hstack([x_part, e_part, sp.csr_matrix((len(right), self.rest))]), right))

    def absolute_values(self, M: float | None = None) -> None:
        """Add |x| ≤ e, or with a big-M |x| ≤ M·e; e is in the units of x, or has none."""
        eye = sp.eye_array(self.n)
        self.unit_e = self.unit if M is None else 1.0
        M = 1.0 if M is None else M / self.unit
        self.on_extra(eye, -M * eye, np.zeros(self.n))
        self.on_extra(-eye, -M * eye, np.zeros(self.n))
        if hasattr(self, "radius"):
            self.on_extra(sp.csr_matrix((1, self.n)), M * np.ones((1, self.n)), np.array([self.radius]))

    def solve(self, q_x: Vector, q_e: Vector) -> tuple[Vector, Vector]:
        """x and e of the optimum, for the linear cost q_xᵀx + q_eᵀe beside γ."""
        q = np.concatenate([self.unit * (q_x + self.linear), self.unit_e * q_e, np.zeros(self.rest)])
        if self._solver is None or not self._solver.is_data_update_allowed():  # it leaves out rows that are too far away
            self._solver = self._build(q)
        else:
            self._solver.update(q=q / self._price)
        found = self._solver.solve()
        z = np.asarray(found.x)
        if str(found.status) not in ("Solved", "AlmostSolved") or not np.isfinite(z).all():
            raise FloatingPointError(f"Clarabel ended a subproblem of {self.method} with {found.status}")
        return self.unit * z[: self.n], self.unit_e * z[self.n : 2 * self.n]

    def _build(self, q: Vector) -> Any:
        c = self.clarabel
        size = 2 * self.n + self.rest
        P = self.unit**2 * self.P()
        self._price = max(float(np.abs(q).max()), float(np.abs(P.diagonal()).max(initial=0.0))) or 1.0
        P, q = P / self._price, q / self._price
        P = sp.block_diag([P[: self.n, : self.n], sp.csc_matrix((self.n, self.n)), P[self.n :, self.n :]], format="csc")
        blocks = [*self.zero, *self.less, *self.cones]
        A = sp.csc_matrix(sp.vstack([M for M, _ in blocks if M.shape[0]])) if blocks else sp.csc_matrix((0, size))
        b = np.concatenate([v for _, v in blocks])
        cones = [c.ZeroConeT(sum(len(v) for _, v in self.zero)), c.NonnegativeConeT(sum(len(v) for _, v in self.less))]
        settings = c.DefaultSettings()
        settings.verbose = False
        settings.direct_solve_method = "qdldl" if self.rest else "faer"  # a dense block wants a supernodal factorisation
        return c.DefaultSolver(P, q, A, b, cones + [c.SecondOrderConeT(len(v)) for _, v in self.cones], settings)


def _matrix(A: Any) -> Any:
    """A data matrix as a dense array or a scipy.sparse matrix."""
    design = design_of(to_float64(A))
    return design.given if design.shown else design.dense()


def _scaled(root: Vector, A: Any) -> Any:
    return sp.diags_array(root) @ A if sp.issparse(A) else root[:, None] * A


def _upper(H: Any) -> Any:
    return sp.triu(sp.csc_matrix(H), format="csc")
