"""Base class of sets: closed, convex and nonempty, with a projection.

`violation` follows the definition of the set and never calls `project`, so that each can check the other.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import ClassVar, Self

import numpy as np

from ksparse.errors import InfeasibleError, MissingPieceError
from ksparse.numerics.bound import Noise
from ksparse.numerics.constraints import Linear
from ksparse.numerics.qp import Solution
from ksparse.util import display
from ksparse.util.arrays import (
    Array,
    Vector,
    clip,
    copy_with,
    dot,
    epsilon,
    indices_of,
    larger,
    like,
    norm,
    norm_inf,
    sqnorm,
    to_float64,
    top_k,
    zero_outside,
)
from ksparse.util.checks import SelfChecked, require_shape

FEASIBLE = 1e-9  # largest violation, relative to the size of x, that is rounding


class ConvexSet(SelfChecked, ABC):
    """C, closed and convex: the base class of every set. `n` is the number of variables if the set fixes it, else None.

    A custom set writes `project`, `violation` and `restrict`; the guide to custom components lists optional methods.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> class Below(ks.ConvexSet):
    ...     def project(self, u):
    ...         return np.minimum(u, 1.0)
    ...
    ...     def violation(self, x):
    ...         return float(np.linalg.norm(np.maximum(x - 1.0, 0.0)))
    ...
    ...     def restrict(self, support):
    ...         return self
    >>> ks.minimize(ks.LeastSquares(np.eye(3), [3.0, -2.0, 0.5]), 2, Below()).x.round(9)
    array([ 1., -2.,  0.])
    """

    n: int | None = None
    size: float = 1.0  # size of the numbers that define C: violations are judged relative to it
    whole_space: ClassVar[bool] = False  # whether C is no constraint
    has_shrink: ClassVar[bool] = False  # whether the prox of t‖·‖₁ + I_C has a closed form
    has_joint: bool = False  # whether the projection onto the k-sparse points of C is exact and cheap
    has_multipliers: bool = False  # whether `minimize_quadratic` returns multipliers, which `shortfall` uses
    _data: ClassVar[tuple[str, ...]] = ()  # attributes that hold arrays

    @abstractmethod
    def project(self, u: Array) -> Array:
        """Return the nearest point of C."""

    @abstractmethod
    def violation(self, x: Array) -> float:
        """Return the distance of x to C, or the size of the broken constraint; 0 in C."""

    @abstractmethod
    def restrict(self, support: Vector) -> ConvexSet:
        """Return the set of vectors z such that the point equal to z on the support and 0 elsewhere is in C.

        Raise `InfeasibleError` if there is none.
        """

    def why_no_sparse_member(self, n: int, k: int) -> str | None:
        """Return the reason why C has no point with at most k nonzeros; None if it has one, or if that is not known."""
        return None

    def sparse_support(self, size: Array, k: int) -> Vector:
        """Return a support of at most k indices on which C has a point, preferring large entries of `size`."""
        return indices_of(top_k(size, k))

    def small_support(self, size: Array, most: int) -> Vector | None:
        """Return a small support, of at most `most` indices, on which C has a point.

        Return None if C has a point on none of the supports tried.
        """
        for few in (few for few in range(1, most + 1) if few <= 4 or few == most or few & (few - 1) == 0):
            with suppress(InfeasibleError):
                return self.sparse_support(size, few)
        return None

    def shrink(self, u: Array, t: float) -> Array:
        """Return the prox of t‖·‖₁ + I_C at u."""
        raise MissingPieceError(f"the prox of an l1 norm on {self} has no closed form")

    def project_sparse(self, u: Array, k: int) -> Array:
        """Return the projection of u onto {‖x‖₀ ≤ k} ∩ C."""
        raise MissingPieceError(f"the projection onto the k-sparse points of {self} has no closed form")

    def as_linear(self, n: int) -> Linear | None:
        """Return C as linear constraints, for quadratic programs; None if it is not a polyhedron with few rows."""
        return None

    def as_norm_ball(self) -> tuple[int, float] | None:
        """Return (p, r) if C is {x : ‖x‖_p ≤ r} with p = 1 or 2, else None."""
        return None

    def minimize_quadratic(self, H: Vector, c: Vector, near: Vector) -> Solution | None:
        """Return argmin ½xᵀHx + cᵀx over a set that is not a polyhedron, in float64; None if there is no method.

        Of two optimal points (an eigenvector and its negative) return the one on the side of `near`. If H is not
        positive semidefinite, a stationary point is enough.
        """
        return None

    def shortfall(self, H: Vector, c: Vector, found: Solution, noise: Noise) -> float:
        """Return an upper bound on q(found) − min q over C, for q(x) = ½xᵀHx + cᵀx; ∞ if none is known."""
        return math.inf

    def minimize_on_faces(self, H: Vector, c: Vector) -> Vector | None:
        """Return the minimiser of a nonconvex quadratic over a set that is not a polyhedron; None if not known."""
        return None

    def separating_halfspace(self, u: Vector) -> tuple[Vector, float]:
        """Return a and b of a half-space aᵀx ≤ b that contains C but not u, for a u outside C."""
        z = self.project(u)
        return u - z, dot(u - z, z)

    def contains(self, x: Array) -> bool:
        """Return whether x is in C, up to rounding."""
        slack = FEASIBLE if epsilon(x) < 1e-10 else 1e-5
        return bool(self.violation(x) <= slack * larger(self.size, norm_inf(x)))

    def like(self, x: Array) -> Self:
        """Return the set with its arrays in the namespace, dtype and device of x."""
        held = {name: getattr(self, name) for name in self._data}
        return copy_with(self, **{name: like(value, x) for name, value in held.items() if np.ndim(value)})

    def self_check(self, zero: Array) -> None:
        """Raise ValueError if the methods of a custom set contradict each other; `zero` is 0 in ℝⁿ."""
        if not self.skip_self_check:
            self_check(self, zero)

    def without(self, indices: Vector) -> ConvexSet:
        """Return the set with some variables fixed to 0, or unchanged if that cannot make a support infeasible."""
        return self

    def for_length(self, n: int) -> Self:
        """Return the set for points with n entries."""
        return self

    def __repr__(self) -> str:
        return type(self).__name__

    def _repr_html_(self) -> str:
        variables = "any" if self.n is None else str(self.n)
        return display.facts({"set": repr(self), "variables": variables} | display.docstring_summary(self))


class ScaledSet(ConvexSet):
    """Base class of sets given by one number, `size`, that permutations of the variables leave unchanged."""

    def restrict(self, support: Vector) -> Self:
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size:g})"


def soft_threshold(u: Array, t: float) -> Array:
    """Return sign(u)·max(|u| − t, 0), the prox of t‖·‖₁, as u minus its projection onto [−t, t]."""
    return u - clip(u, -t, t)


def positive_part(u: Array) -> Array:
    """Return max(u, 0)."""
    return zero_outside(u, u > 0)


def require_length(C: ConvexSet, n: int) -> None:
    """Raise ValueError if the points of C have another length than x."""
    if C.n is not None and C.n != n:
        raise ValueError(f"C has {C.n} variables, the loss has {n}")


def require_sparse_member(C: ConvexSet, n: int, k: int) -> None:
    """Raise InfeasibleError, with the reason, if C is known to have no k-sparse point."""
    reason = C.why_no_sparse_member(n, k)
    if reason is not None:
        raise InfeasibleError(f"C = {C} holds no point with at most k = {k} nonzeros: {reason}")


def self_check(C: ConvexSet, zero: Array) -> float:
    """Raise ValueError if `project` is no projection or the constraints do not describe C; return its error.

    P is the projection onto a convex set if and only if P(Pu) = Pu and ⟨Pu − Pv, u − v⟩ ≥ ‖Pu − Pv‖² for all u, v.
    """
    rng, n = np.random.default_rng(0), int(zero.shape[0])
    points = [like(size * rng.standard_normal(n), zero) for size in (0.1, 1.0, 10.0)] + [zero]
    images = [_projected(C, u) for u in points]
    slack = 1e-6 if epsilon(zero) < 1e-10 else 1e-3
    accuracy = max(_accuracy(C, u, Pu, slack) for u, Pu in zip(points, images, strict=True))
    for u, Pu in zip(points, images, strict=True):
        for v, Pv in zip(points, images, strict=True):
            if dot(Pu - Pv, u - v) < sqnorm(Pu - Pv) - slack * max(norm(u - v), norm(Pu - Pv)) ** 2:
                found = "it is not firmly nonexpansive at two test points"
                raise ValueError(f"project is not a projection onto a convex set ({found})")
    restricted = C.restrict(np.arange(n))
    if not callable(getattr(restricted, "project", None)):
        raise TypeError(f"restrict(support) must return a set, got {type(restricted).__name__}")
    _check_constraints(C, points, images, slack)
    return accuracy


def _projected(C: ConvexSet, u: Array) -> Array:
    x = C.project(u + 0.0)
    require_shape(x, u.shape, "project(u)")
    return x


def _accuracy(C: ConvexSet, u: Array, Pu: Array, slack: float) -> float:
    """Return the distance of project(u) to C, relative to its size."""
    size = max(norm(u), norm(Pu), 1e-300)
    moved, outside = norm(_projected(C, Pu) - Pu), C.violation(Pu)
    if moved > slack * size:
        raise ValueError(f"project must not move points of C: project(project(u)) is {moved:.3g} away from project(u)")
    if outside > slack * max(1.0, size):
        raise ValueError(f"violation must be 0 on C, but violation(project(u)) = {outside:.3g}")
    return max(moved, outside) / max(1.0, size)


def _check_constraints(C: ConvexSet, points: list[Array], images: list[Array], slack: float) -> None:
    """Compare the linear constraints, which proofs use, with C."""
    linear = C.as_linear(int(points[0].shape[0]))
    if linear is None:
        return
    for u, Pu in zip(points, images, strict=True):
        size = slack * max(1.0, norm(u), norm(Pu))
        broken, missed, moved = linear.violation(to_float64(Pu)), linear.violation(to_float64(u)), norm(u - Pu)
        if broken > size:
            raise ValueError(f"as_linear must describe C, but project(u) violates it by {broken:.3g}")
        if moved > size >= missed and C.violation(u) > size:
            raise ValueError(f"as_linear must describe C, but it contains a point that project moves by {moved:.3g}")
