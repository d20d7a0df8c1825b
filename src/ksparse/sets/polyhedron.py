"""Any polyhedron, by its inequalities and equations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from ksparse.arrays import Array, indices_of, like, to_float64, to_numpy, top_k
from ksparse.checks import check_bound, check_matrix, check_vector
from ksparse.errors import InfeasibleError
from ksparse.sets.base import ConvexSet, Linear, Vector
from ksparse.sets.qp import solve_qp

MILP_SECONDS = 5.0  # for the question whether a k-sparse point exists at all


class Polyhedron(ConvexSet):
    """{x : Gx ≤ h, Ex = f, lower ≤ x ≤ upper}; G, E and the bounds may each be left out (None)."""

    def __init__(self, G: Any, h: Any, E: Any = None, f: Any = None, lower: Any = -np.inf, upper: Any = np.inf) -> None:
        inequalities, equations = _rows(G, h, "G", "h"), _rows(E, f, "E", "f")
        bounds = [to_float64(check_bound(bound, name)) for bound, name in ((lower, "lower"), (upper, "upper"))]
        widths = {part.shape[1] for part, _ in (inequalities, equations) if part is not None}
        widths |= {bound.shape[0] for bound in bounds if np.ndim(bound) == 1}
        if len(widths) != 1:
            needed = (
                "one of G, E or a vector of bounds" if not widths else f"the same number of variables in each part, got {sorted(widths)}"
            )
            raise ValueError(f"Polyhedron needs {needed}")
        self.n = int(widths.pop())
        self._linear = Linear.of(self.n, bounds[0], bounds[1], *inequalities, *equations)
        if _witness(self._linear, np.zeros(self.n)) is None:
            raise InfeasibleError("Polyhedron is empty: no x meets Gx <= h, Ex = f and the bounds (linear programming proof)")

    def project(self, u: Array) -> Array:
        point = to_float64(u)
        if self._linear.violation(point) == 0.0:
            return u
        return like(solve_qp(np.eye(point.size), -point, self._linear).x, u)

    def violation(self, x: Array) -> float:
        return self._linear.violation(to_float64(x))

    def restrict(self, support: Vector) -> Polyhedron:
        whole = self._linear
        off = np.setdiff1d(np.arange(whole.lower.size), support)
        excluded = off[(whole.lower[off] > 0) | (whole.upper[off] < 0)]
        if excluded.size:
            raise InfeasibleError(f"Polyhedron has no point on this support: the bounds of variable {excluded[0]} exclude 0")
        try:
            return Polyhedron(whole.G[:, support], whole.h, whole.E[:, support], whole.f, whole.lower[support], whole.upper[support])
        except InfeasibleError as error:
            raise InfeasibleError(f"Polyhedron has no point on this support of {len(support)} variables") from error

    def why_no_sparse_member(self, n: int, k: int) -> str | None:
        forced = int(((self._linear.lower > 0) | (self._linear.upper < 0)).sum())
        if forced > k:
            return f"the bounds of {forced} variables exclude 0"
        vertex = self.sparse_vertex(np.ones(n))
        if vertex is not None and np.count_nonzero(vertex) <= k:
            return None
        fewest = _fewest(self._linear, np.ones(n))
        return f"every point has at least {fewest[0]} nonzeros (mixed-integer proof)" if fewest is not None and fewest[0] > k else None

    def seats(self, size: Array, k: int) -> Vector:
        """The k largest if C has a point there; else the support of a sparse vertex that favours large entries."""
        size = np.abs(to_float64(size))
        forced = (self._linear.lower > 0) | (self._linear.upper < 0)
        chosen = indices_of(top_k(np.where(forced, size + size.max(initial=0.0) + 1.0, size), k))
        if self.has_point_on(chosen):
            return chosen
        vertex = self.sparse_vertex(size)
        if vertex is None or np.count_nonzero(vertex) > k:
            fewest = _fewest(self._linear, 1.0 / (size / max(float(size.max(initial=0.0)), 1e-300) + 1e-3))
            if fewest is None or fewest[0] > k:
                raise InfeasibleError(f"no point of the Polyhedron with at most k = {k} nonzeros was found")
            vertex = fewest[1]
        rank = np.where(vertex != 0, size + size.max(initial=0.0) + 1.0, size)  # the vertex's own, then the largest
        return indices_of(top_k(rank, k))

    def has_point_on(self, support: Vector) -> bool:
        """Whether some point of C is 0 off the support."""
        try:
            self.restrict(support)
        except InfeasibleError:
            return False
        return True

    def sparse_vertex(self, size: Vector) -> Vector | None:
        """A vertex of small weighted ℓ1 norm, entries that are large already being cheap (reweighted three times)."""
        level = max(float(size.max(initial=0.0)), 1e-300)
        vertex = None
        for _ in range(3):
            vertex = _witness(self._linear, 1.0 / (size / level + 1e-3))
            if vertex is None:
                return None
            size, level = np.abs(vertex), max(float(np.abs(vertex).max(initial=0.0)), 1e-300)
        return vertex

    def linear(self, n: int) -> Linear:
        return self._linear

    def __repr__(self) -> str:
        return f"Polyhedron({self._linear.h.size} inequalities, {self._linear.f.size} equations)"


def _rows(M: Any, v: Any, matrix: str, vector: str) -> tuple[Vector | None, Vector | None]:
    """A block of rows and its right-hand side as float64, both given or neither."""
    if (M is None) != (v is None):
        raise ValueError(f"{matrix} and {vector} must be given together")
    if M is None or 0 in np.shape(M):
        return None, None
    M = check_matrix(M if scipy.sparse.issparse(M) else np.atleast_2d(to_numpy(M)), matrix)
    M = M.toarray() if scipy.sparse.issparse(M) else M
    return to_float64(M), to_float64(check_vector(np.atleast_1d(to_numpy(v)), vector, M.shape[0]))


def _witness(linear: Linear, weight: Vector) -> Vector | None:
    """A point of the polyhedron of least Σ weightᵢ|xᵢ|, by linear programming on x = p − q; None if it is empty."""
    n = linear.lower.size
    low, high = linear.lower, linear.upper
    found = linprog(
        np.concatenate([weight, weight]),
        **_unit_rows(linear, lambda M: np.hstack([M, -M])),
        bounds=np.vstack(
            [np.column_stack([np.maximum(low, 0), np.maximum(high, 0)]), np.column_stack([np.maximum(-high, 0), np.maximum(-low, 0)])]
        ),
        method="highs",
    )
    if found.status == 2:
        return None
    if found.x is None:
        raise InfeasibleError(f"linear programming could not decide whether the polyhedron is empty: {found.message}")
    return np.asarray(found.x[:n] - found.x[n:])


def _unit_rows(linear: Linear, widen: Callable[[Vector], Vector]) -> dict[str, Vector | None]:
    """The rows for linprog, each scaled to size 1: its tolerances are absolute."""
    parts: dict[str, Vector | None] = {}
    for key, M, v in (("ub", linear.G, linear.h), ("eq", linear.E, linear.f)):
        size = np.maximum(np.abs(M).max(axis=1, initial=0.0), 1e-300)
        size[size <= 1e-300] = 1.0
        parts[f"A_{key}"] = widen(M / size[:, None]) if v.size else None
        parts[f"b_{key}"] = v / size if v.size else None
    return parts


def _fewest(linear: Linear, weight: Vector) -> tuple[int, Vector] | None:
    """The fewest nonzeros in a bounded polyhedron, and such a point, by mixed-integer programming; None if not decided."""
    n = linear.lower.size
    if not (np.isfinite(linear.lower).all() and np.isfinite(linear.upper).all()):
        return None
    rows, eye = _unit_rows(linear, lambda M: np.hstack([M, np.zeros_like(M)])), np.eye(n)
    constraints = [
        LinearConstraint(np.hstack([eye, -np.diag(linear.upper)]), -np.inf, 0.0),  # x ≤ upper·u
        LinearConstraint(np.hstack([eye, -np.diag(linear.lower)]), 0.0, np.inf),  # x ≥ lower·u
    ]
    if rows["A_ub"] is not None:
        constraints.append(LinearConstraint(rows["A_ub"], -np.inf, rows["b_ub"]))
    if rows["A_eq"] is not None:
        constraints.append(LinearConstraint(rows["A_eq"], rows["b_eq"], rows["b_eq"]))
    found = milp(
        np.concatenate([np.zeros(n), 1.0 + 1e-3 * weight / n / max(float(weight.max()), 1e-300)]),
        constraints=constraints,
        integrality=np.repeat([0, 1], n),
        bounds=Bounds(np.concatenate([linear.lower, np.zeros(n)]), np.concatenate([linear.upper, np.ones(n)])),
        options={"time_limit": MILP_SECONDS},
    )
    if found.status != 0 or found.x is None:
        return None
    chosen = found.x[n:] > 0.5
    return int(chosen.sum()), np.where(chosen, np.where(found.x[:n] == 0, 1e-300, found.x[:n]), 0.0)
