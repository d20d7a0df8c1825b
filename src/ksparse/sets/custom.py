"""A custom set C given by two functions."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self

import numpy as np

from ksparse.errors import InfeasibleError, NotFiniteError, UndecidedError
from ksparse.sets.base import FEASIBLE, ConvexSet, self_check
from ksparse.util.arrays import (
    Array,
    Vector,
    copy_with,
    dot,
    embed,
    finite,
    like,
    norm,
    sqnorm,
    take,
    to_float64,
    zeros_like,
)
from ksparse.util.checks import as_number, call_own, check_callable, check_integer, require_shape

DYKSTRA_ROUNDS = 10_000
ROUNDING = 1e-13  # relative distance from the support, or from C, that is rounding


class CustomSet(ConvexSet):
    """C given by project(u) and violation(x), a number ≥ 0 that is 0 on C.

    Parameters
    ----------
    project : callable
        project(u) returns the nearest point of C.
    violation : callable
        violation(x) returns the distance of x from C, or the size of the broken constraint; 0 in C.
    n : int or None, default=None
        Number of variables, if the set fixes it.
    restrict : callable or None, default=None
        restrict(support) returns the set on a support. None to compute projections there from `project`, by a dual
        method and, if that fails, by Dykstra's algorithm.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> C = ks.CustomSet(lambda u: np.clip(u, -1, 1), lambda x: float(np.max(np.abs(x) - 1).clip(0)), n=3)
    >>> ks.minimize(ks.LeastSquares(np.eye(3), [3.0, -2.0, 1.0]), 2, C).x.round(6)
    array([ 1., -1.,  0.])
    """

    skip_self_check = False

    def __init__(
        self,
        project: Callable[[Array], Array],
        violation: Callable[[Array], Any],
        n: int | None = None,
        restrict: Callable[[Vector], ConvexSet] | None = None,
    ) -> None:
        self._project, self._violation = check_callable(project, "project"), check_callable(violation, "violation")
        self._restrict = None if restrict is None else check_callable(restrict, "restrict")
        self.n = None if n is None else check_integer(n, "n", 1)
        self.accuracy = 0.0  # largest error of `project` seen: an iterative one may stop early

    def contains(self, x: Array) -> bool:
        return super().contains(x) or self.violation(x) <= self.slack * max(1.0, norm(x))

    @property
    def slack(self) -> float:
        """Largest violation, relative to the size of x, that is rounding for this set."""
        return max(FEASIBLE, 10.0 * self.accuracy)

    def project(self, u: Array) -> Array:
        x = call_own(self._project, "project(u)", u + 0.0)  # a copy: the user's function may overwrite it
        require_shape(x, u.shape, "project(u)")
        x = like(x, u)
        if not finite(x):
            raise NotFiniteError("project(u) returned NaN or inf")
        return x

    def violation(self, x: Array) -> float:
        value = as_number(call_own(self._violation, "violation(x)", x), "violation(x)")
        if not value >= 0:
            raise ValueError(f"violation(x) must be a number >= 0, got {value}")
        return value

    def restrict(self, support: Vector) -> ConvexSet:
        if self._restrict is not None:
            cut: ConvexSet = self._restrict(support)
            return cut
        if self.n is None:
            advice = "pass CustomSet(project, violation, n=...)"
            raise ValueError(f"CustomSet needs n to be restricted to a support: {advice}")
        return CustomSetOnSupport(self, np.asarray(support), self.n)

    def sparse_support(self, size: Array, k: int) -> Vector:
        """Return the k largest if C has a point there, else large entries of C's point nearest to 0 first."""
        given, nearest = np.abs(to_float64(size)), np.abs(to_float64(self.project(zeros_like(size))))
        needed = np.where(nearest > 1e-12, nearest + float(given.max()) + 1.0, given)
        for support in (super().sparse_support(size, k), super().sparse_support(needed, k)):
            with suppress(InfeasibleError):
                self.restrict(support).project(take(size, support))
                return support
        raise InfeasibleError(f"no point of the custom set with at most k = {k} nonzeros was found")

    def self_check(self, zero: Array) -> None:
        self.accuracy = max(self.accuracy, self_check(self, zero))

    def for_length(self, n: int) -> Self:
        return copy_with(self, n=n)


class CustomSetOnSupport(ConvexSet):
    """C intersected with the subspace of a support."""

    skip_self_check = False

    def __init__(self, whole: CustomSet, support: Vector, full: int) -> None:
        self.whole, self.support, self.full = whole, support, full
        self.n = int(support.size)
        self.off = np.setdiff1d(np.arange(full), support)
        self._multipliers: Vector = np.zeros(self.off.size)  # of the last projection

    def project(self, u: Array) -> Array:
        base = embed(u, self.support, self.full)
        if not self.off.size:
            return take(self.whole.project(base), self.support)  # the support need not be sorted
        x = self._project_by_one_halfspace(u, base)
        return self._project_by_dual(u, base) if x is None else x

    def separating_halfspace(self, u: Vector) -> tuple[Vector, float]:
        """Return the half-space of one projection onto C, on the support."""
        base = embed(u, self.support, self.full)
        z = self.whole.project(base)
        return np.asarray(take(base - z, self.support)), dot(base - z, z)

    def _project_by_one_halfspace(self, u: Array, base: Array) -> Array | None:
        """Return the projection from one projection onto C, or None if that is not enough.

        Let z = P_C(u), with u extended by zeros. If z is 0 off the support it is the answer, as for boxes and balls.
        Otherwise let a = u − z. C lies in {x : aᵀx ≤ aᵀz}, and the projection of u onto this half-space within the
        subspace, u − (‖a‖²/‖a_S‖²)·a_S, is the answer if C contains it.
        """
        z, size = self.whole.project(base), max(1.0, norm(u))
        if norm(take(z, self.off)) <= ROUNDING * size:
            return take(z, self.support)
        normal = base - z
        along = take(normal, self.support)
        if sqnorm(along) <= ROUNDING * sqnorm(normal):
            return None
        x = u - (sqnorm(normal) / sqnorm(along)) * along
        return x if self.violation(x) <= ROUNDING * size else None

    def _project_by_dual(self, u: Array, base: Array) -> Array:
        """Return the projection by L-BFGS on the dual of x = 0 off the support: P_C(u − λ) at multipliers λ."""
        off, size = self.off, max(1.0, norm(u))

        def point(multipliers: Vector) -> Array:
            return self.whole.project(base - embed(like(multipliers, base), off, self.full))

        def dual(multipliers: Vector) -> tuple[float, Vector]:
            z = point(multipliers)
            outside = to_float64(take(z, off))
            return -0.5 * sqnorm(z - base) - float(multipliers @ outside), -outside

        from scipy.optimize import minimize  # here: scipy.optimize is slow to import

        options = {"maxiter": 500, "maxfun": 1000, "gtol": 1e-13 * size, "ftol": 0.0}
        try:
            found = minimize(dual, self._multipliers, jac=True, method="L-BFGS-B", options=options)
        except NotFiniteError:  # multipliers diverge
            return self._dykstra(u)
        x = take(point(found.x), self.support)
        if self.violation(x) > self.whole.slack * size:
            return self._dykstra(u)
        self._multipliers = found.x  # a start for the next projection
        return x

    def _dykstra(self, u: Array) -> Array:
        """Return the projection by Dykstra's algorithm, slow but reliable; the subspace needs no correction term."""
        x = embed(u, self.support, self.full)
        correction = zeros_like(x)
        for _ in range(DYKSTRA_ROUNDS):
            y = self.whole.project(x + correction)
            correction = x + correction - y
            x = embed(take(y, self.support), self.support, self.full)
            if norm(x - y) <= max(1e-13, self.whole.accuracy) * max(1.0, norm(x)):
                break
        if norm(x - y) > self.whole.slack * max(1.0, norm(x)):
            raise UndecidedError("the custom set has no point on this support, as far as the search can tell")
        return take(x, self.support)

    def violation(self, x: Array) -> float:
        return self.whole.violation(embed(x, self.support, self.full))

    def restrict(self, support: Vector) -> ConvexSet:
        return CustomSetOnSupport(self.whole, self.support[support], self.full)
