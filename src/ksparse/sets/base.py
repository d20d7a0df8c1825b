"""What a set is: closed, convex, nonempty, with a projection.

`violation` is computed from the set's definition and never through `project`, so that one can judge the other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from ksparse.arrays import Array, indices_of, like, map_arrays, namespace, to_float64, top_k
from ksparse.errors import InfeasibleError, MissingPieceError

Vector = np.ndarray[Any, Any]
FEASIBLE = 1e-9  # a violation up to this, relative to the size of x, is rounding


@dataclass(frozen=True)
class Linear:
    """A polyhedron spelled out: lower ≤ x ≤ upper, Gx ≤ h, Ex = f, all float64."""

    lower: Vector
    upper: Vector
    G: Vector
    h: Vector
    E: Vector
    f: Vector

    @classmethod
    def of(cls, n: int, lower: Any = -np.inf, upper: Any = np.inf, G: Any = None, h: Any = None, E: Any = None, f: Any = None) -> Linear:
        """The polyhedron of the parts that are given."""

        def rows(M: Any, v: Any) -> tuple[Vector, Vector]:
            return (np.zeros((0, n)), np.zeros(0)) if M is None else (np.atleast_2d(M), np.atleast_1d(v))

        return cls(np.broadcast_to(to_float64(lower), n), np.broadcast_to(to_float64(upper), n), *rows(G, h), *rows(E, f))

    @property
    def equations_only(self) -> bool:
        """Whether there is no inequality and no bound."""
        return not (self.h.size or np.isfinite(self.lower).any() or np.isfinite(self.upper).any())

    def on(self, support: Vector) -> Linear | None:
        """The polyhedron on a support, the other variables fixed to 0; None where a bound forbids that."""
        off = np.ones(self.lower.size, dtype=bool)
        off[support] = False
        if (self.lower[off] > 0).any() or (self.upper[off] < 0).any():
            return None
        return Linear(self.lower[support], self.upper[support], self.G[:, support], self.h, self.E[:, support], self.f)

    def violation(self, x: Vector) -> float:
        """The largest amount by which one constraint is broken."""
        gaps = [self.lower - x, x - self.upper, self.G @ x - self.h, np.abs(self.E @ x - self.f)]
        return max(float(gap.max(initial=0.0)) for gap in gaps)

    def broken(self, x: Vector) -> float:
        """By how much the worst constraint is broken, relative to its own terms; of a bound those are itself and the largest of x."""
        size = np.abs(x)
        worst, top = 0.0, float(size.max(initial=0.0))
        for M, v, excess in (
            (self.G, self.h, self.G @ x - self.h),
            (self.E, self.f, np.abs(self.E @ x - self.f)),
            (None, self.lower, self.lower - x),
            (None, self.upper, x - self.upper),
        ):
            if (excess > 0).any():
                terms = np.maximum(np.abs(v), top if M is None else np.abs(M) @ size)
                worst = max(worst, float(np.max(excess[excess > 0] / terms[excess > 0])))
        return worst


class ConvexSet(ABC):
    """C. `n` is the number of variables where the set fixes it, else None."""

    n: int | None = None
    size: float = 1.0  # of the numbers that define C, beside which a violation is small or not
    has_shrink: ClassVar[bool] = False  # whether the prox of t‖·‖₁ + I_C is closed-form
    _data: ClassVar[tuple[str, ...]] = ()  # attributes that hold arrays

    @abstractmethod
    def project(self, u: Array) -> Array:
        """The nearest point of C."""

    @abstractmethod
    def violation(self, x: Array) -> float:
        """How far x is outside C, 0 inside: the distance to C or the size of the broken constraint."""

    @abstractmethod
    def restrict(self, support: Vector) -> ConvexSet:
        """{z : z on the support, 0 elsewhere, lies in C}; `InfeasibleError` if that is empty."""

    def why_no_sparse_member(self, n: int, k: int) -> str | None:
        """Why C holds no point with at most k nonzeros, or None if it holds one (or that is not known)."""
        return None

    def has_sparse_member(self, n: int, k: int) -> bool:
        """Whether C is not known to lack a point with at most k nonzeros."""
        return self.why_no_sparse_member(n, k) is None

    def seats(self, size: Array, k: int) -> Vector:
        """A support of at most k indices that C allows, the largest entries of `size` preferred."""
        return indices_of(top_k(size, k))

    @property
    def has_joint(self) -> bool:
        """Whether the projection onto {‖x‖₀ ≤ k} ∩ C is exact and cheap."""
        return False

    def shrink(self, u: Array, t: float) -> Array:
        """The prox of t‖·‖₁ + I_C."""
        raise MissingPieceError(f"the prox of an l1 norm on {self} has no closed form")

    def project_sparse(self, u: Array, k: int) -> Array:
        """The projection onto {‖x‖₀ ≤ k} ∩ C."""
        raise MissingPieceError(f"the projection onto the k-sparse points of {self} has no closed form")

    def linear(self, n: int) -> Linear | None:
        """The set as linear constraints, or None if it is not a polyhedron of few rows."""
        return None

    def contains(self, x: Array) -> bool:
        """Whether x lies in C, up to rounding."""
        xp = namespace(x)
        slack = FEASIBLE if float(xp.finfo(x.dtype).eps) < 1e-10 else 1e-5
        return self.violation(x) <= slack * max(self.size, float(xp.max(xp.abs(x))))

    def like(self, x: Array) -> Self:
        """The same set with its arrays in the namespace, dtype and device of x."""
        moved: Self = map_arrays(self, self._data, lambda value: value if isinstance(value, float) else like(value, x))
        return moved

    def try_out(self, zero: Array) -> None:
        """Refuse functions of the user's that are not what they say (`zero` is 0 in ℝⁿ); our own sets have nothing to show."""
        return

    def without(self, indices: Vector) -> ConvexSet:
        """The same set with some variables fixed to 0, where that changes which supports it has points on; else itself."""
        return self

    def for_length(self, n: int) -> Self:
        """The same set, told that its points have n entries."""
        return self

    def __repr__(self) -> str:
        return type(self).__name__


def require_length(C: ConvexSet, n: int) -> None:
    """Refuse a set whose points have another length than x."""
    if C.n is not None and C.n != n:
        raise ValueError(f"C has {C.n} variables, the loss has {n}")


def require_sparse_member(C: ConvexSet, n: int, k: int) -> None:
    """Refuse a set that is known to hold no k-sparse point, saying why."""
    reason = C.why_no_sparse_member(n, k)
    if reason is not None:
        raise InfeasibleError(f"C = {C} holds no point with at most k = {k} nonzeros: {reason}")
