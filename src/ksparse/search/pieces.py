"""What does not change in a search: φ and C, what was asked of supports, and what the pieces can do."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ksparse.data.model import QuadraticModel
from ksparse.errors import InfeasibleError
from ksparse.losses import Loss
from ksparse.losses.row_sparse import RowProblem
from ksparse.numerics.constraints import Linear, fixed_by_equations, most_nonzeros, presolved, usable
from ksparse.search.settings import DEFAULTS, SearchSettings
from ksparse.search.support_rules import NoRules, Rules
from ksparse.sets import ConvexSet, WholeSpace
from ksparse.util.arrays import Vector
from ksparse.util.evaluations import count
from ksparse.util.resources import GRACE

PROOF = 1e-8  # relative to the value: what is proved is proved to this
NEGLIGIBLE = 1e-13  # relative to φ(0): a perfect fit leaves as much in rounding


@dataclass(frozen=True, eq=False)
class Pieces:
    """φ over C, some variables forced in or out, nonzeros at least as large as their `floor`."""

    loss: Loss  # on NumPy float64 data
    C: ConvexSet
    n: int
    forced: Vector  # always in the support
    allowed: Vector  # which variables may be
    floor: Vector  # one per variable
    deadline: float
    settings: SearchSettings
    linear: Linear | None  # C, where it is a polyhedron
    quadratic: Callable[[], QuadraticModel | None]
    rules: Rules  # what supports must obey beside that
    hidden: bool = (
        False  # whether columns are seen only where they are asked for: an operator's, or too many to hold k rows of H
    )
    wide: RowProblem | None = None  # φ of a matrix, each variable being a row of it; then C is all of space

    @classmethod
    def of(
        cls,
        loss: Loss,
        C: ConvexSet,
        n: int,
        *,
        forced_in: Vector,
        forced_out: Vector,
        floor: Vector | float = 0.0,
        deadline: float = np.inf,
        settings: SearchSettings | None = None,
        most: int | None = None,
        rules: Rules | None = None,
    ) -> Pieces:
        """The pieces of a request for supports of up to `most` variables; what its constraints say twice is left out."""
        whole, loss = C.as_linear(n), loss.as_float64()
        needed = np.zeros(0, dtype=np.intp) if whole is None else _never_at_0(whole)
        allowed = np.ones(n, dtype=bool)
        allowed[forced_out] = False
        C = C.without(np.asarray(forced_out, dtype=np.intp))
        linear, forced = C.as_linear(n), np.union1d(forced_in, needed).astype(np.intp)
        floor = np.broadcast_to(np.asarray(floor, dtype=float), n)
        rules = NoRules.of(n) if rules is None else rules
        forced, rules = rules.closure(forced), replace(rules, strict=bool(floor.any()) and rules.has_requirements)
        if linear is not None:
            floor = linear.reachable(floor)
            if most is not None:
                allowed = usable(linear, *linear.above(floor), allowed, most)
                allowed[forced] = True  # whether they can be met is seen when they are asked for
            linear = presolved(linear)
        allowed = rules.usable_within(allowed)
        settings = settings or DEFAULTS
        crowded = loss.has_columns and most is not None and 8 * most * n > settings.memory and not floor.any()
        hidden = loss.hides_columns or crowded
        quadratic = _no_model if hidden else loss.quadratic
        return cls(loss, C, n, forced, allowed, floor, deadline, settings, linear, quadratic, rules, hidden)

    @classmethod
    def by_rows(
        cls,
        loss: Loss,
        *,
        forced_in: Vector,
        forced_out: Vector,
        deadline: float = np.inf,
        settings: SearchSettings | None = None,
        rules: Rules | None = None,
    ) -> Pieces:
        """The pieces of a request for rows of a matrix, nothing being asked of its entries; the loss knows them."""
        loss = loss.as_float64()
        wide, C = loss.row_problem(), WholeSpace()
        assert wide is not None
        allowed = np.ones(wide.n, dtype=bool)
        allowed[forced_out] = False
        rules = NoRules.of(wide.n) if rules is None else rules
        forced, allowed = rules.closure(forced_in), rules.usable_within(allowed)
        return cls(
            loss, C, wide.n, forced, allowed, np.zeros(wide.n), deadline, settings or DEFAULTS, C.as_linear(wide.n), _no_model,
            rules, wide=wide,
        )  # fmt: skip

    @cached_property
    def model(self) -> QuadraticModel | None:
        """φ as a quadratic model, where it is one."""
        model = self.quadratic()
        if model is not None:
            model.memory = self.settings.memory
        return model

    @cached_property
    def floored(self) -> bool:
        """Whether some variable has a floor."""
        return bool(self.floor.any())

    @cached_property
    def room(self) -> int:
        """Return how many nonzeros a point of C can have: only variables that are allowed, each as large as its floor."""
        if not self.floored or self.linear is None:
            return max(1, int(self.allowed.sum()))
        low, high = self.linear.above(self.floor)
        low[self.forced] = np.minimum(low[self.forced], 0.0)  # those may be 0 all the same
        return max(1, int(self.forced.size), most_nonzeros(self.linear, low, high, self.allowed))

    @property
    def _two_sided_floors(self) -> bool:
        """Whether a variable with a floor may lie on either side of 0."""
        assert self.linear is not None
        return bool((self.allowed & (self.floor > 0) & (self.linear.lower < 0) & (self.linear.upper > 0)).any())

    def with_model(self, model: QuadraticModel) -> Pieces:
        """The same with a quadratic model in place of φ."""
        return replace(self, quadratic=lambda: model)

    def only(self, allowed: Vector) -> Pieces:
        """The same where only some of the variables may be nonzero."""
        model = self.model
        return replace(self, allowed=allowed, quadratic=lambda: model)

    @property
    def width(self) -> int:
        """Entries of x for each variable."""
        return 1 if self.wide is None else self.wide.width

    @property
    def rows(self) -> int:
        """Inequality rows of C."""
        return 0 if self.linear is None else int(self.linear.h.size)

    @cached_property
    def treated_as_convex(self) -> bool:
        """Whether φ is convex, or nothing is known of that (`loss.convex` is None).

        Searches then solve a support from one start only, and may miss its best point. Proofs do not take convexity from here: bounds of a
        quadratic rest on the eigenvalues of H, those of other losses on `composite`, whose h is convex, and gains on `known_convex`.
        """
        return self.loss.convex is not False

    @cached_property
    def known_convex(self) -> bool:
        """Whether φ is convex: the loss or its model says so, or it is a sum of squares."""
        by_model = self.model is not None and self.model.sign > 0
        return self.loss.convex is True or (self.loss.convex is None and (by_model or self.loss.squares() is not None))

    @cached_property
    def radius(self) -> float | None:
        """Of C, where it is a Euclidean ball."""
        ball = self.C.as_norm_ball()
        return ball[1] if ball is not None and ball[0] == 2 else None

    @cached_property
    def spectral(self) -> bool:
        """Whether this is a sparse principal component: −xᵀVx on a ball."""
        if self.floored or self.radius is None or self.model is None:
            return False
        return self.model.sign < 0 and not self.model.r.any()

    @cached_property
    def priced(self) -> bool:
        """Whether the best point on a support has multipliers: C is a polyhedron, or gives them, itself or cut to a support."""
        if self.linear is not None or self.C.has_multipliers:
            return True
        try:
            return self.C.restrict(np.arange(min(2, self.n))).has_multipliers
        except (InfeasibleError, ValueError):
            return False

    @cached_property
    def direct(self) -> bool:
        """Whether the best value on a support is computed directly, and can be proved."""
        if self.wide is not None:
            return self.wide.exact
        return self.spectral or (self.treated_as_convex and self.model is not None and self.priced)

    @cached_property
    def certifying(self) -> bool:
        """Whether gains bound the true ones from above too, so that none above 0 proves swap-optimality."""
        if (
            not self.direct
            or self.spectral
            or not self.known_convex
            or not self.loss.convexity_is_certain
            or self.wide is not None
        ):
            return False
        if self.linear is None or not self.floored:
            return True
        return not self._two_sided_floors  # the other side of 0 has other multipliers

    @cached_property
    def polyhedral(self) -> bool:
        """Whether a factorisation can be kept up to date: a convex quadratic over a polyhedron, with no floor on both sides of 0."""
        if not self.treated_as_convex or self.model is None or self.linear is None:
            return False
        return not self._two_sided_floors

    @cached_property
    def signs_and_equations(self) -> bool:
        """Whether C asks for no more than signs and equations."""
        linear = self.linear
        if linear is None or self.floored or linear.h.size:
            return False
        return bool(np.isin(linear.lower, (-np.inf, 0.0)).all() and np.isin(linear.upper, (np.inf, 0.0)).all())

    @cached_property
    def simple(self) -> bool:
        """Whether C asks for no more than signs and one equation."""
        return self.signs_and_equations and self.linear is not None and self.linear.f.size <= 1

    @property
    def expired(self) -> bool:
        """Whether the time is up."""
        return time.perf_counter() >= self.deadline

    @property
    def overdue(self) -> bool:
        """Whether the time is up so long ago that not even a first feasible point is looked for."""
        return time.perf_counter() >= self.deadline + GRACE

    def model_at(self, x: Vector) -> QuadraticModel | None:
        """The second-order model at x, φ itself if it is quadratic; None if the loss has none, or is not convex, or it overflows there."""
        if self.wide is not None:  # whose rows have gains of their own
            return None
        if self.model is not None:
            return self.model if self.treated_as_convex else None
        model = self.loss.model_at(x) if self.treated_as_convex and not self.hidden else None
        if model is not None:
            count(values=1, gradients=1)  # the model holds both
        return model if model is not None and model.finite else None

    @cached_property
    def modelled(self) -> bool:
        """Whether second-order models can be had."""
        return not self.hidden and self.model_at(np.zeros(self.n)) is not None

    def claimable(self, value: float) -> float:
        """How much better than a value another may be where it is still called optimal."""
        return PROOF * abs(value) + NEGLIGIBLE * self._constant

    def gap(self, value: float, bound: float) -> float:
        """How far a bound is below a value, beside the value; beside φ(0) where only so a proof reaches what may be claimed."""
        if not -np.inf < bound < value:
            return np.inf if bound < value else 0.0
        apart = value - bound
        by_fit = PROOF * abs(value) < apart <= self.claimable(value)
        size = max(abs(value), self._constant) if by_fit else abs(value)
        return apart / size if size else np.inf

    def tolerance(self, value: float) -> float:
        """A gain below this is rounding."""
        return 1e-10 * max(abs(value), 1e-3 * self._constant, 1e-300)

    @cached_property
    def _constant(self) -> float:
        of = self.model if self.wide is None else self.wide
        return 0.0 if of is None else abs(of.constant)


def _never_at_0(linear: Linear) -> Vector:
    """Variables that bounds, or equations of one variable after the other, keep from 0."""
    value, off = fixed_by_equations(linear)
    return np.flatnonzero((linear.lower > 0) | (linear.upper < 0) | (np.abs(value) > off))


def _no_model() -> None:
    return None
