"""The user's own C, by two functions."""

from __future__ import annotations

from collections.abc import Callable
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
from ksparse.util.checks import call_own, check_callable, check_integer

DYKSTRA_ROUNDS = 10_000
ROUNDING = 1e-13  # of the size of a point: so much off the support, or outside C, is none


class CustomSet(ConvexSet):
    """C given by project(u) and violation(x), the latter a number ≥ 0 that is 0 on C.

    Parameters
    ----------
    project : callable
        The nearest point of C.
    violation : callable
        How far x is outside C, 0 inside.
    n : int or None, default=None
        Variables, where the set fixes that.
    restrict : callable or None, default=None
        The set on a support; None: the projection there is found from `project` alone, by a dual method and, where that fails, by Dykstra's
        alternation between C and the subspace.

    Raises
    ------
    TypeError
        If a function cannot be called.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> C = ks.CustomSet(lambda u: np.clip(u, -1, 1), lambda x: float(np.max(np.abs(x) - 1).clip(0)), n=3)
    >>> ks.minimize(ks.LeastSquares(np.eye(3), [3.0, -2.0, 1.0]), 2, C).x.round(6)
    array([ 1., -1.,  0.])
    """

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

    accuracy: float = (
        0.0  # how far from C `project` was seen to end: an iteration of the user's need not go on to the last digit
    )

    def contains(self, x: Array) -> bool:
        return super().contains(x) or self.violation(x) <= self.slack * max(1.0, norm(x))

    @property
    def slack(self) -> float:
        """A violation, beside the size of x, that is rounding for this set."""
        return max(FEASIBLE, 10.0 * self.accuracy)

    def project(self, u: Array) -> Array:
        x = call_own(self._project, "project(u)", u + 0.0)  # a copy: the user's function may work in place
        if tuple(getattr(x, "shape", ())) != tuple(u.shape):
            raise ValueError(
                f"project(u) must have shape {tuple(u.shape)}, got {getattr(x, 'shape', type(x).__name__)}"
            )
        x = like(x, u)
        if not finite(x):
            raise NotFiniteError("project(u) returned NaN or inf")
        return x

    def violation(self, x: Array) -> float:
        given = call_own(self._violation, "violation(x)", x)
        try:
            value = float(given)
        except (TypeError, ValueError) as error:
            raise TypeError(f"violation(x) must return one number, got {type(given).__name__}") from error
        if not value >= 0:
            raise ValueError(f"violation(x) must be a number >= 0, got {value}")
        return value

    def restrict(self, support: Vector) -> ConvexSet:
        if self._restrict is not None:
            cut: ConvexSet = self._restrict(support)
            return cut
        if self.n is None:
            raise ValueError(
                "CustomSet needs n to be restricted to a support: pass CustomSet(project, violation, n=...)"
            )
        return CustomSetOnSupport(self, np.asarray(support), self.n)

    def sparse_support(self, size: Array, k: int) -> Vector:
        """The k largest if C has a point there; else the largest entries of C's point nearest to 0, which C seems to need, first."""
        chosen = super().sparse_support(size, k)
        nearest = np.abs(to_float64(self.project(zeros_like(size))))
        needed = np.where(
            nearest > 1e-12, nearest + float(np.abs(to_float64(size)).max()) + 1.0, np.abs(to_float64(size))
        )
        for support in (chosen, super().sparse_support(needed, k)):
            try:
                self.restrict(support).project(take(size, support))
            except InfeasibleError:
                continue
            return support
        raise InfeasibleError(f"no point of the custom set with at most k = {k} nonzeros was found")

    def self_check(self, zero: Array) -> None:
        self.accuracy = max(self.accuracy, self_check(self, zero))

    def for_length(self, n: int) -> Self:
        told: Self = copy_with(self, n=n)
        return told


class CustomSetOnSupport(ConvexSet):
    """C cut by the subspace of a support."""

    def __init__(self, whole: CustomSet, support: Vector, full: int) -> None:
        self.whole, self.support, self.full = whole, support, full
        self.n = int(support.size)
        self.off = np.setdiff1d(np.arange(full), support)
        self._prices: Vector | None = None

    def project(self, u: Array) -> Array:
        base = embed(u, self.support, self.full)
        if not self.off.size:
            return take(self.whole.project(base), self.support)  # whose order need not be that of the variables
        x = self._at_once(u, base)
        return self._by_prices(u, base) if x is None else x

    def separating_halfspace(self, u: Vector) -> tuple[Vector, float]:
        """As for any set, from one projection onto the whole of C."""
        base = embed(u, self.support, self.full)
        z = self.whole.project(base)
        return np.asarray(take(base - z, self.support)), dot(base - z, z)

    def _at_once(self, u: Array, base: Array) -> Array | None:
        """The projection, where a single one onto C tells: None where it does not.

        z = P_C(u) is the answer if it lies on the support, as for boxes and balls. If not, C lies in a half-space with z on its plane, and
        the point of that on the support nearest to u is the answer if C has it.
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

    def _by_prices(self, u: Array, base: Array) -> Array:
        """The dual of x = 0 off the support, by L-BFGS: for prices λ the point is P_C(u − λ), the gradient its entries off the support."""
        off, size = self.off, max(1.0, norm(u))

        def point(prices: Vector) -> Array:
            return self.whole.project(base - embed(like(prices, base), off, self.full))

        def dual(prices: Vector) -> tuple[float, Vector]:
            z = point(prices)
            outside = to_float64(take(z, off))
            return -0.5 * sqnorm(z - base) - float(prices @ outside), -outside

        from scipy.optimize import minimize  # here: scipy.optimize takes as long to import as all of ours

        start = self._prices if self._prices is not None else np.zeros(off.size)
        options = {"maxiter": 500, "maxfun": 1000, "gtol": 1e-13 * size, "ftol": 0.0}
        try:
            found = minimize(dual, start, jac=True, method="L-BFGS-B", options=options)
        except NotFiniteError:  # prices that run away
            return self._dykstra(u)
        x = take(point(found.x), self.support)
        if self.whole.violation(embed(x, self.support, self.full)) > self.whole.slack * size:
            x = self._dykstra(u)
        else:
            self._prices = found.x  # the next point to project is likely to lie beside this one
        return x

    def _dykstra(self, u: Array) -> Array:
        """Dykstra's alternation, slow but sure; the subspace needs no correction of its own, being affine."""
        x = embed(u, self.support, self.full)
        correction = zeros_like(x)
        for _ in range(DYKSTRA_ROUNDS):
            y = self.whole.project(x + correction)
            correction = x + correction - y
            x = embed(take(y, self.support), self.support, self.full)
            if norm(x - y) <= max(1e-13, self.whole.accuracy) * max(1.0, norm(x)):
                break
        if norm(x - y) > self.whole.slack * max(1.0, norm(x)):
            raise UndecidedError("the custom set seems to have no point on this support")
        return take(x, self.support)

    def violation(self, x: Array) -> float:
        return self.whole.violation(embed(x, self.support, self.full))

    def restrict(self, support: Vector) -> ConvexSet:
        return CustomSetOnSupport(self.whole, self.support[support], self.full)
