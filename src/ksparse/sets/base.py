"""What a set is: closed, convex, nonempty, with a projection.

`violation` is computed from the set's definition and never through `project`, so that one can judge the other.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from ksparse.errors import InfeasibleError, MissingPieceError
from ksparse.numerics.bound import Noise
from ksparse.numerics.constraints import Linear
from ksparse.numerics.qp import Solution
from ksparse.util import display
from ksparse.util.arrays import (
    Array,
    Vector,
    copy_with,
    dot,
    epsilon,
    indices_of,
    larger,
    like,
    namespace,
    norm,
    norm_inf,
    sqnorm,
    to_float64,
    top_k,
)

FEASIBLE = 1e-9  # a violation up to this, relative to the size of x, is rounding


class ConvexSet(ABC):
    """C, closed and convex: the base of every set. `n` is the number of variables where the set fixes it, else None.

    A set of your own writes `project`, `violation` and `restrict`; what else it may offer, and what that buys, is in the guide to own
    pieces.

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
    size: float = 1.0  # of the numbers that define C, beside which a violation is small or not
    whole_space: ClassVar[bool] = False  # whether C is no constraint
    has_shrink: ClassVar[bool] = False  # whether the prox of t‖·‖₁ + I_C is closed-form
    skip_self_check: ClassVar[bool] = (
        False  # whether the catalogue of the tests holds it; else it is tried out at the door
    )
    _data: ClassVar[tuple[str, ...]] = ()  # attributes that hold arrays

    def __init_subclass__(cls, **options: Any) -> None:
        """Check a subclass at every call unless it sets `skip_self_check` itself: what was tested of its parent may not hold for it."""
        super().__init_subclass__(**options)
        if "skip_self_check" not in vars(cls):
            cls.skip_self_check = False

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

    def sparse_support(self, size: Array, k: int) -> Vector:
        """A support of at most k indices that C allows, the largest entries of `size` preferred."""
        return indices_of(top_k(size, k))

    def small_support(self, size: Array, most: int) -> Vector | None:
        """A support of as few indices as is easily seen, at most `most`, that C has a point on, the largest entries of `size` preferred.

        None where none is easily seen, which proves nothing.
        """
        for few in (few for few in range(1, most + 1) if few <= 4 or few == most or few & (few - 1) == 0):
            try:
                chosen = self.sparse_support(size, few)
            except InfeasibleError:
                continue
            return chosen
        return None

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

    def as_linear(self, n: int) -> Linear | None:
        """The set as linear constraints, or None if it is not a polyhedron of few rows. Quadratics on it are then solved by that alone."""
        return None

    def as_norm_ball(self) -> tuple[int, float] | None:
        """(p, r) where C is {x : ‖x‖_p ≤ r}, p = 1 or 2."""
        return None

    def minimize_quadratic(self, H: Vector, c: Vector, near: Vector) -> Solution | None:
        """argmin ½xᵀHx + cᵀx over C, for sets that are not polyhedra; None where C cannot say. All in NumPy float64.

        Of two equally good points (an eigenvector and its negative) the one on the side of `near`. Where H is not positive semidefinite a
        stationary point will do.
        """
        return None

    @property
    def has_multipliers(self) -> bool:
        """Whether, for H positive semidefinite, `minimize_quadratic` gives multipliers and `shortfall` what they prove."""
        return False

    def shortfall(self, H: Vector, c: Vector, found: Solution, noise: Noise) -> float:
        """How far below its value at `found` a quadratic can fall over C, at most, with the rounding of that very claim; ∞: not known."""
        return math.inf

    def minimize_on_faces(self, H: Vector, c: Vector) -> Vector | None:
        """The least value of a quadratic that is not convex, for sets that are not polyhedra, where n is small; None: not known."""
        return None

    def separating_halfspace(self, u: Vector) -> tuple[Vector, float]:
        """a and b of a half-space aᵀx ≤ b that holds C and not u, for a u outside C."""
        z = self.project(u)
        return u - z, dot(u - z, z)

    def contains(self, x: Array) -> bool:
        """Whether x lies in C, up to rounding."""
        xp = namespace(x)
        slack = FEASIBLE if float(xp.finfo(x.dtype).eps) < 1e-10 else 1e-5
        return bool(self.violation(x) <= slack * larger(self.size, norm_inf(x)))

    def like(self, x: Array) -> Self:
        """The same set with its arrays in the namespace, dtype and device of x."""
        held = {name: getattr(self, name) for name in self._data}
        arrays = {
            name: like(value, x) for name, value in held.items() if value is not None and not isinstance(value, float)
        }
        moved: Self = copy_with(self, **arrays)
        return moved

    def self_check(self, zero: Array) -> None:
        """Refuse a set of the user's that is not what it says (`zero` is 0 in ℝⁿ); our own have nothing to show."""
        if not self.skip_self_check:
            self_check(self, zero)

    def without(self, indices: Vector) -> ConvexSet:
        """The same set with some variables fixed to 0, where that changes which supports it has points on; else itself."""
        return self

    def for_length(self, n: int) -> Self:
        """The same set, told that its points have n entries."""
        return self

    def __repr__(self) -> str:
        return type(self).__name__

    def _repr_html_(self) -> str:
        return display.facts(
            {"set": repr(self), "variables": "any" if self.n is None else str(self.n)} | display.docstring_summary(self)
        )


def require_length(C: ConvexSet, n: int) -> None:
    """Refuse a set whose points have another length than x."""
    if C.n is not None and C.n != n:
        raise ValueError(f"C has {C.n} variables, the loss has {n}")


def require_sparse_member(C: ConvexSet, n: int, k: int) -> None:
    """Refuse a set that is known to hold no k-sparse point, saying why."""
    reason = C.why_no_sparse_member(n, k)
    if reason is not None:
        raise InfeasibleError(f"C = {C} holds no point with at most k = {k} nonzeros: {reason}")


def self_check(C: ConvexSet, zero: Array) -> float:
    """Refuse what cannot be a projection onto C, or constraints that are not those of C. Returns how far from C it was seen to end.

    It leaves its points where they are, and ⟨Pu − Pv, u − v⟩ ≥ ‖Pu − Pv‖² for all u, v: both together hold for projections onto convex
    sets, and for no other map.
    """
    rng, n = np.random.default_rng(0), int(zero.shape[0])
    points = [like(size * rng.standard_normal(n), zero) for size in (0.1, 1.0, 10.0)] + [zero]
    images = [_projected(C, u) for u in points]
    slack = 1e-6 if epsilon(zero) < 1e-10 else 1e-3
    accuracy = max(_accuracy(C, u, Pu, slack) for u, Pu in zip(points, images, strict=True))
    for u, Pu in zip(points, images, strict=True):
        for v, Pv in zip(points, images, strict=True):
            if dot(Pu - Pv, u - v) < sqnorm(Pu - Pv) - slack * max(norm(u - v), norm(Pu - Pv)) ** 2:
                raise ValueError(
                    "project must be the projection onto a convex set: of two points it gave ones that no such set has"
                )
    cut = C.restrict(np.arange(n))
    if not callable(getattr(cut, "project", None)):
        raise TypeError(f"restrict(support) must return a set, got {type(cut).__name__}")
    _try_constraints(C, points, images, slack)
    return accuracy


def _projected(C: ConvexSet, u: Array) -> Array:
    x = C.project(u + 0.0)
    if tuple(getattr(x, "shape", ())) != tuple(u.shape):
        raise ValueError(f"project(u) must have shape {tuple(u.shape)}, got {getattr(x, 'shape', type(x).__name__)}")
    return x


def _accuracy(C: ConvexSet, u: Array, Pu: Array, slack: float) -> float:
    """How far project(u) is from C, beside its size."""
    size = max(norm(u), norm(Pu), 1e-300)
    moved, outside = norm(_projected(C, Pu) - Pu), C.violation(Pu)
    if moved > slack * size:
        raise ValueError(
            f"project must leave the points of C where they are: project(project(u)) is {moved:.3g} away from project(u)"
        )
    if outside > slack * max(1.0, size):
        raise ValueError(f"violation must be 0 on C, but violation(project(u)) = {outside:.3g}")
    return max(moved, outside) / max(1.0, size)


def _try_constraints(C: ConvexSet, points: list[Array], images: list[Array], slack: float) -> None:
    """The linear constraints that proofs rest on against C, where there are any."""
    linear = C.as_linear(int(points[0].shape[0]))
    if linear is None:
        return
    for u, Pu in zip(points, images, strict=True):
        size = slack * max(1.0, norm(u), norm(Pu))
        broken, missed = linear.violation(to_float64(Pu)), linear.violation(to_float64(u))
        if broken > size:
            raise ValueError(f"as_linear must be C itself, but project(u) breaks it by {broken:.3g}")
        if norm(u - Pu) > size >= missed and C.violation(u) > size:
            raise ValueError(
                f"as_linear must be C itself, but it holds a point that project moves by {norm(u - Pu):.3g}"
            )
