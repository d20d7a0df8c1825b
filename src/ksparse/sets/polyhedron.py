"""Polyhedra given by inequalities and equations."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Self

import numpy as np
import scipy.sparse

from ksparse.errors import InfeasibleError
from ksparse.numerics.constraints import Linear, unit_rows
from ksparse.numerics.linear_programs import SparsestSupport, sparsest_support
from ksparse.numerics.qp import Active, linear_program, project_polyhedron
from ksparse.sets.base import FEASIBLE, ConvexSet
from ksparse.sets.box import forced_first
from ksparse.util.arrays import Array, Vector, copy_with, epsilon, indices_of, like, to_float64, top_k
from ksparse.util.checks import as_array, check_bound, check_matrix, check_vector


class Polyhedron(ConvexSet):
    """``{x : Gx ≤ h, Ex = f, lower ≤ x ≤ upper}``; G, E and the bounds may each be left out (None).

    Parameters
    ----------
    G : array-like or None, default=None
        Matrix of the inequalities.
    h : array-like or None, default=None
        Right-hand sides.
    E : array-like or None, default=None
        Matrix of the equations.
    f : array-like or None, default=None
        Right-hand sides.
    lower : float or array-like, default=-inf
        Lower bounds.
    upper : float or array-like, default=inf
        Upper bounds.

    Raises
    ------
    InfeasibleError
        If the set is empty.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> C = ks.Polyhedron(G=[[1.0, 1.0, 1.0]], h=[2.0], lower=-1.0)
    >>> ks.minimize(ks.LeastSquares(np.eye(3), [3.0, -2.0, 1.0]), 2, C).x.round(9)
    array([ 3., -1.,  0.])
    """

    def __init__(
        self, G: Any = None, h: Any = None, E: Any = None, f: Any = None, lower: Any = -np.inf, upper: Any = np.inf
    ) -> None:
        inequalities, equations = _rows(G, h, "G", "h"), _rows(E, f, "E", "f")
        bounds = [to_float64(check_bound(bound, name)) for bound, name in ((lower, "lower"), (upper, "upper"))]
        widths = {part.shape[1] for part, _ in (inequalities, equations) if part is not None}
        widths |= {bound.shape[0] for bound in bounds if np.ndim(bound) == 1}
        if len(widths) != 1:
            same = f"the same number of variables in each part, got {sorted(widths)}"
            raise ValueError(f"Polyhedron needs {same if widths else 'one of G, E or a vector of bounds'}")
        self.n = int(widths.pop())
        whole = Linear.of(self.n, bounds[0], bounds[1], *inequalities, *equations)
        # with unit rows, violations are roughly distances
        (G, h, _), (E, f, _) = unit_rows(whole.G, whole.h), unit_rows(whole.E, whole.f)
        self._linear = Linear(whole.lower, whole.upper, G, h, E, f)
        self._last: Active | None = None
        self._reuses_active_set = False
        self._least = 0  # known lower bound on the number of nonzeros of a point
        self._milp_timed_out = False  # whether the search for that bound took too long
        self._few: Vector | None = None  # a small support, once computed
        zero = np.zeros(self.n)
        if self._linear.violation(zero) > 0 and _witness(self._linear, zero) is None:  # 0 in C needs no linear program
            found = "no x meets Gx <= h, Ex = f and the bounds (linear programming proof)"
            raise InfeasibleError(f"Polyhedron is empty: {found}")

    def project(self, u: Array) -> Array:
        point = to_float64(u)
        if self._linear.violation(point) == 0.0:
            return u
        found = project_polyhedron(point, self._linear, self._last)
        if self._reuses_active_set:  # the next projection of the run is likely to be near
            self._last = found.active
        return like(found.x, u)

    def like(self, x: Array) -> Self:
        """Return the set for one run, which starts each projection from the last one; the user's set keeps no state."""
        return copy_with(super().like(x), _last=None, _reuses_active_set=True)

    def for_length(self, n: int) -> Self:
        return copy_with(self, _least=0, _milp_timed_out=False, _few=None)

    def violation(self, x: Array) -> float:
        return self._linear.violation(to_float64(x))

    def contains(self, x: Array) -> bool:
        return self._linear.broken(to_float64(x)) <= (FEASIBLE if epsilon(x) < 1e-10 else 1e-5)

    def restrict(self, support: Vector) -> Polyhedron:
        whole = self._linear
        off = np.setdiff1d(np.arange(whole.lower.size), support)
        excluded = off[self._forced[off]]
        if excluded.size:
            reason = f"the bounds of variable {excluded[0]} exclude 0"
            raise InfeasibleError(f"Polyhedron has no point on this support: {reason}")
        try:
            G, E, low, high = whole.G[:, support], whole.E[:, support], whole.lower[support], whole.upper[support]
            return Polyhedron(G, whole.h, E, whole.f, low, high)
        except InfeasibleError as error:
            raise InfeasibleError(f"Polyhedron has no point on this support of {len(support)} variables") from error

    def without(self, indices: Vector) -> Polyhedron:
        if not indices.size:
            return self  # keeps what is known of its sparse points
        whole = self._linear
        low, high = whole.lower.copy(), whole.upper.copy()
        low[indices] = high[indices] = 0.0
        return Polyhedron(whole.G, whole.h, whole.E, whole.f, low, high)

    @property
    def _forced(self) -> Vector:
        """Mask of the variables whose bounds exclude 0."""
        return np.asarray((self._linear.lower > 0) | (self._linear.upper < 0))

    def why_no_sparse_member(self, n: int, k: int) -> str | None:
        forced = int(self._forced.sum())
        if forced > k:
            return f"the bounds of {forced} variables exclude 0"
        if self.small_support(np.ones(n), k) is not None:
            return None
        fewest = self._fewest(np.zeros(n))
        proved = fewest is not None and fewest.proved and fewest.support.size > k
        return f"every point has at least {self._least} nonzeros (mixed-integer proof)" if proved else None

    def sparse_support(self, size: Array, k: int) -> Vector:
        """Return the k largest if C has a point there, else the support of a sparse vertex with large entries."""
        size = np.abs(to_float64(size))
        chosen = indices_of(top_k(forced_first(size, self._forced), k))
        if self.has_point_on(chosen):
            return chosen
        vertex = self.sparse_vertex(size)
        if vertex is None or np.count_nonzero(vertex) > k:
            fewest = self._fewest(size) if self._least <= k else None
            if fewest is None or fewest.support.size > k:
                raise InfeasibleError(f"no point of the Polyhedron with at most k = {k} nonzeros was found")
            vertex = np.zeros(size.size)
            vertex[fewest.support] = 1.0
        return indices_of(top_k(forced_first(size, vertex != 0), k))  # those of the vertex, then the largest

    def small_support(self, size: Array, most: int) -> Vector | None:
        """Return the support of a sparse vertex, all variables if none was found; None if it is larger than `most`."""
        if self._few is None:
            vertex = self.sparse_vertex(np.abs(to_float64(size)))
            self._few = np.arange(self._linear.lower.size) if vertex is None else np.flatnonzero(vertex)
        return self._few if self._few.size <= most else None

    def _fewest(self, preferred: Vector) -> SparsestSupport | None:
        """Return a smallest support by integer programming; None if undecided, or if an earlier attempt timed out."""
        if self._milp_timed_out:
            return None
        fewest = sparsest_support(self._linear, preferred=preferred)
        if fewest is not None and fewest.proved:
            self._least = int(fewest.support.size)
        self._milp_timed_out = fewest is None or not fewest.in_time
        return fewest

    def has_point_on(self, support: Vector) -> bool:
        """Return whether some point of C is 0 off the support."""
        with suppress(InfeasibleError):
            self.restrict(support)
            return True
        return False

    def sparse_vertex(self, size: Vector) -> Vector | None:
        """Return a vertex of small weighted ℓ1 norm, with small weights on large entries, reweighted up to three times.

        Apart from entries at a bound, a vertex has no more nonzeros than there are rows; with that few, stop.
        """
        level = max(float(size.max(initial=0.0)), 1e-300)
        vertex, rows = None, max(1, self._linear.h.size + self._linear.f.size)
        for _ in range(3):
            vertex = _witness(self._linear, 1.0 / (size / level + 1e-3))
            if vertex is None or np.count_nonzero(vertex) <= rows:
                return vertex
            size, level = np.abs(vertex), max(float(np.abs(vertex).max(initial=0.0)), 1e-300)
        return vertex

    def as_linear(self, n: int) -> Linear:
        return self._linear

    def __repr__(self) -> str:
        return f"Polyhedron({self._linear.h.size} inequalities, {self._linear.f.size} equations)"


def _rows(M: Any, v: Any, matrix: str, vector: str) -> tuple[Vector | None, Vector | None]:
    """Return a matrix and its right-hand side as float64; both must be given, or neither."""
    if (M is None) != (v is None):
        raise ValueError(f"{matrix} and {vector} must be given together")
    if M is None or 0 in getattr(M, "shape", (len(M),) if isinstance(M, list | tuple) else ()):
        return None, None
    M = check_matrix(M if scipy.sparse.issparse(M) else np.atleast_2d(as_array(M, matrix)), matrix)
    M = M.toarray() if scipy.sparse.issparse(M) else M
    return to_float64(M), to_float64(check_vector(np.atleast_1d(as_array(v, vector)), vector, M.shape[0]))


def _witness(linear: Linear, weight: Vector) -> Vector | None:
    """Return a point of the polyhedron that minimises Σ weightᵢ|xᵢ|, by linear programming; None if it is empty.

    Variables that may be negative are split as x = p − q.
    """
    n, low, high = linear.lower.size, linear.lower, linear.upper
    down = np.flatnonzero(low < 0)
    p, q = np.column_stack([np.maximum(low, 0), np.maximum(high, 0)]), np.column_stack([np.maximum(-high, 0), -low])
    cost, bounds = np.concatenate([weight, weight[down]]), np.vstack([p, q[down]])
    found = linear_program(cost, linear, lambda M: np.hstack([M, -M[:, down]]), bounds)
    if found is None:
        return None
    x = found[:n]
    x[down] -= found[n:]
    return np.asarray(x)
