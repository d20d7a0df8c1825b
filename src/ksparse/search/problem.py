"""The problem that is searched: the best value of φ over C on a support, for every support that a search tries."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ksparse.data.model import QuadraticModel
from ksparse.errors import InfeasibleError, NotFiniteError, UnboundedError, UndecidedError
from ksparse.losses import Loss
from ksparse.losses.base import count_evaluations
from ksparse.losses.row_sparse import RowProblem
from ksparse.numerics.constraints import Linear, fixed_by_equations, presolved, reachable_variables
from ksparse.numerics.floors import Floors
from ksparse.numerics.qp import Objective
from ksparse.search.candidate import NONE, Candidate
from ksparse.search.evaluators import EigenvalueEvaluator, Evaluator, LocalEvaluator, QPEvaluator, RowEvaluator
from ksparse.search.settings import DEFAULTS, SearchSettings
from ksparse.search.support_rules import NoRules, Rules
from ksparse.sets import ConvexSet
from ksparse.util.arrays import Vector

PROOF = 1e-8  # relative to the value: the accuracy of everything that is proved
FITTED = 1e-12  # share of a residual that is rounding
NEGLIGIBLE = 1e-13  # relative to φ(0): the rounding that a perfect fit leaves


@dataclass
class EvaluationCache:
    """The best points on supports that were evaluated."""

    evaluated: dict[bytes, Candidate | None] = field(default_factory=dict)
    undecided: set[bytes] = field(default_factory=set)  # supports without a candidate that may have one all the same
    modelled: set[tuple[int, bytes]] = field(default_factory=set)  # k and supports whose models were searched

    latest: tuple[bytes, Objective] | None = None  # φ on the last support, for a bound right after a value

    def copy(self) -> EvaluationCache:
        """Return a copy that changes independently."""
        return EvaluationCache(dict(self.evaluated), set(self.undecided), set(self.modelled))


class Capabilities:
    """What the loss and the set can do; it depends neither on k nor on the deadline."""

    def __init__(self, problem: SupportProblem) -> None:
        loss, C, linear, rows = problem.loss, problem.C, problem.linear, problem.row_problem
        self.loss, self.n, self._by_rows, self._on_demand = loss, problem.n, rows is not None, problem.columns_on_demand
        self.model = problem.given_model
        if self.model is None and rows is None and not problem.columns_on_demand:
            self.model = loss.quadratic()
            if self.model is not None:
                self.model.memory = problem.settings.memory
        quadratic, ball = self.model is not None, C.as_norm_ball()
        # φ is convex, or nothing is known of that (`loss.convex` is None): searches then solve a support from one start
        # only, and may miss its best point. Proofs do not rest on this: bounds of a quadratic rest on the eigenvalues
        # of H, those of other losses on `composite`, whose h is convex, and gains on `known_convex`
        self.treated_as_convex = loss.convex is not False
        # φ is convex by declaration, by its model, or as a sum of squares
        by_model = self.model is not None and self.model.sign > 0
        self.known_convex = loss.convex is True or (loss.convex is None and (by_model or loss.squares() is not None))
        self.radius = ball[1] if ball is not None and ball[0] == 2 else np.inf  # of a Euclidean ball
        # a sparse principal component: −xᵀVx on a ball
        on_ball = self.radius < np.inf and not problem.floors.any
        self.spectral = on_ball and self.model is not None and self.model.sign < 0 and not self.model.r.any()
        self.has_multipliers = linear is not None or C.has_multipliers or _has_multipliers_on_supports(C, problem.n)
        solved = self.spectral or (self.treated_as_convex and quadratic and self.has_multipliers)
        # the best value on a support is computed directly, and can be proved
        self.exact_evaluation = solved if rows is None else rows.exact
        two_sided = linear is not None and problem.floors.two_sided(linear, problem.allowed)
        # gains are upper bounds of the true ones, so that swap-optimality is proved if none exceeds 0
        sure = self.known_convex and loss.convexity_is_certain and rows is None
        self.gains_are_bounds = self.exact_evaluation and sure and not self.spectral and not two_sided
        # a KKT inverse can follow the support: a convex quadratic over a polyhedron
        self.allows_updates = self.treated_as_convex and quadratic and linear is not None and not two_sided
        self.signs_and_equations = False
        if linear is not None and not problem.floors.any and not linear.h.size:
            signs = np.isin(linear.lower, (-np.inf, 0.0)).all() and np.isin(linear.upper, (np.inf, 0.0)).all()
            self.signs_and_equations = bool(signs)
        self.signs_and_one_equation = self.signs_and_equations and linear is not None and linear.f.size <= 1

    def model_at(self, x: Vector) -> QuadraticModel | None:
        """Return the second-order model at x, φ itself if quadratic; None if none is convex and finite."""
        if self._by_rows or not self.treated_as_convex:  # rows have gains of their own
            return None
        if self.model is not None or self._on_demand:
            return self.model
        model = self.loss.model_at(x)
        if model is not None:
            count_evaluations(values=1, gradients=1)  # the model holds both
        return model if model is not None and model.finite else None

    @cached_property
    def has_second_order_models(self) -> bool:
        """Whether there are second-order models."""
        return self.model_at(np.zeros(self.n)) is not None


def _has_multipliers_on_supports(C: ConvexSet, n: int) -> bool:
    with suppress(InfeasibleError, ValueError):
        return C.restrict(np.arange(min(2, n))).has_multipliers
    return False


@dataclass(frozen=True, eq=False)
class SupportProblem:
    """min φ over C with at most k nonzeros, variables forced in or out, and nonzeros at least their floors in size."""

    loss: Loss  # on NumPy float64 data
    C: ConvexSet
    n: int
    asked: int  # k as the user gave it: it counts variables, groups or features
    linear: Linear | None  # C, where it is a polyhedron
    forced: Vector  # variables that are always in the support
    allowed: Vector  # mask of the variables that may be
    floors: Floors
    rules: Rules
    deadline: float
    settings: SearchSettings
    row_problem: RowProblem | None  # φ of a matrix whose rows are the variables; then C is the whole space
    width: int  # entries of x for each variable
    columns_on_demand: bool  # columns of the data are read only where needed: an operator, or k rows of H do not fit
    cache: EvaluationCache = field(default_factory=EvaluationCache)
    given_model: QuadraticModel | None = None  # in place of φ
    original: SupportProblem | None = None  # of which this is a copy with the same capabilities

    @classmethod
    def of(
        cls, loss: Loss, C: ConvexSet, n: int, k: int, *, forced_in: Vector = NONE, forced_out: Vector = NONE,
        floor: Vector | float = 0.0, rules: Rules | None = None, deadline: float = np.inf,
        settings: SearchSettings | None = None, most: int | None = None, by_rows: bool = False,
    ) -> SupportProblem:  # fmt: skip
        """Return the problem, without redundant constraints, for supports of up to `most` variables.

        With `by_rows` x is a matrix of n rows, which are the variables, and C is the whole space.
        """
        loss, settings = loss.as_float64(), settings or DEFAULTS
        rows = loss.row_problem() if by_rows else None
        whole, allowed = C.as_linear(n), np.ones(n, dtype=bool)
        needed = NONE
        if whole is not None:  # variables that bounds, or equations of one variable after the other, keep from 0
            value, off = fixed_by_equations(whole)
            needed = np.flatnonzero((whole.lower > 0) | (whole.upper < 0) | (np.abs(value) > off))
        allowed[forced_out] = False
        C = C.without(np.asarray(forced_out, dtype=np.intp)) if np.size(forced_out) else C
        linear, floors = C.as_linear(n), Floors.of(floor, n)
        rules = NoRules.of(n) if rules is None else rules
        forced = rules.closure(np.union1d(forced_in, needed).astype(np.intp))
        rules = replace(rules, strict=floors.any and (rules.brings is not None or bool(rules.least.any())))
        most = rules.widest(k) if most is None else most
        if linear is not None:
            floors = floors.within(linear)
            allowed = reachable_variables(linear, *floors.bounds(linear), allowed, most)
            allowed[forced] = True  # whether they can be met is seen when they are evaluated
            linear = presolved(linear)
        allowed = rules.usable_within(allowed)
        crowded = loss.has_columns and 8 * most * n > settings.memory and not floors.any
        on_demand = rows is None and (loss.hides_columns or crowded)
        width = 1 if rows is None else rows.width
        return cls(loss, C, n, k, linear, forced, allowed, floors, rules, deadline, settings, rows, width, on_demand)

    def with_changes(
        self, *, k: int | None = None, deadline: float | None = None, allowed: Vector | None = None,
        model: QuadraticModel | None = None, own_cache: bool = False,
    ) -> SupportProblem:  # fmt: skip
        """Return a copy with other parts, with a quadratic model in place of φ, or with a cache of its own.

        Otherwise copies share the cache: the best point on a support does not depend on k. A model has an empty one.
        """
        cache = EvaluationCache() if model is not None else self.cache.copy() if own_cache else self.cache
        given_model = (model or self.given_model) if allowed is None else self.model
        return replace(
            self, asked=self.asked if k is None else k, deadline=self.deadline if deadline is None else deadline,
            allowed=self.allowed if allowed is None else allowed, cache=cache, given_model=given_model,
            original=self if allowed is None and model is None else None,
        )  # fmt: skip

    @cached_property
    def can(self) -> Capabilities:
        """What the loss and the set can do."""
        return Capabilities(self) if self.original is None else self.original.can

    @cached_property
    def k(self) -> int:
        """The largest number of variables in a support: `asked`, or with groups the size of the `asked` largest.

        No more than are allowed, and than floors leave room for.
        """
        return min(self.rules.widest(self.asked), self.floors.room(self.linear, self.forced, self.allowed))

    @property
    def model(self) -> QuadraticModel | None:
        """φ as a quadratic model, if it is one."""
        return self.can.model

    @property
    def quadratic(self) -> QuadraticModel:
        """The model, for callers that know that φ is quadratic."""
        assert self.can.model is not None
        return self.can.model

    @property
    def polyhedron(self) -> Linear:
        """The linear constraints, for callers that know that C is a polyhedron."""
        assert self.linear is not None
        return self.linear

    @property
    def expired(self) -> bool:
        """Whether the deadline has passed."""
        return time.perf_counter() >= self.deadline

    @property
    def max_held_rows(self) -> int:
        """How many rows of H a search may hold at once: up to twice k, so that it can pass through larger supports."""
        return int(min(2 * self.k, self.allowed.sum(), max(0, self.settings.memory // (8 * self.n))))

    @property
    def updatable(self) -> bool:
        """Whether a KKT inverse can follow the support, and be held in memory."""
        return self.can.allows_updates and self.max_held_rows >= self.k

    @property
    def walks(self) -> bool:
        """Whether a search walks out of local optima: gains of swaps are exact, and k is not small."""
        return self.k >= self.settings.walks and self.updatable and self.can.signs_and_equations and not self.rules.any

    def allows(self, support: Vector) -> bool:
        """Return whether a point may have these nonzeros: at most k, none of them forbidden, and as the rules say."""
        return support.size <= self.k and bool(self.allowed[support].all()) and self.rules.allows(support, self.asked)

    def trim_to_rules(self, support: Vector) -> Vector:
        """Drop from a support forbidden variables and what does not fit the rules, the last first.

        Under strict rules the rest need not satisfy them by itself.
        """
        ranked = support[self.allowed[support]]
        return self.rules.longest_extendable(forced_first(self, ranked) if self.forced.size else ranked, self.asked)

    def extend_to_rules(self, support: Vector) -> Vector:
        """Add to a support the variables that the rules require, if nonzeros themselves must satisfy them."""
        return support if not self.rules.strict else self.rules.completed(support, self.asked, self.allowed)

    def inactive(self, support: Vector) -> Vector:
        """Return the variables that are allowed but not in a support."""
        free = self.allowed.copy()
        free[support] = False
        return np.flatnonzero(free)

    @cached_property
    def _evaluator(self) -> Evaluator:
        if self.row_problem is not None:
            return RowEvaluator(self.row_problem, self.loss.least)
        if not self.can.exact_evaluation or self.model is None:
            return LocalEvaluator(self)
        if self.can.spectral:
            return EigenvalueEvaluator(self.model, self.can.radius)
        return QPEvaluator(self, self.model)

    def evaluate(self, support: Vector, hint: Candidate | None = None) -> Candidate | None:
        """Return the best point on a support, computed once; None if C has none there, or arithmetic finds none.

        `UnboundedError` where φ falls without end there, and so over C with at most k nonzeros; of larger supports that
        says nothing.
        """
        support, known = np.sort(support), self.cache.evaluated
        key = support.tobytes()
        if key not in known:
            try:
                known[key] = self._evaluator.solve(support, hint) if support.size else self._at_zero()
            except (InfeasibleError, NotFiniteError, UnboundedError) as error:
                unbounded = isinstance(error, UnboundedError)
                if unbounded and self.loss.least == -np.inf:
                    if self.allows(support):
                        raise
                    return None
                known[key] = None
                # if the loss declares a lower bound, an unbounded program is a rounding artefact
                if unbounded or isinstance(error, UndecidedError | NotFiniteError):
                    self.cache.undecided.add(key)
        return known[key]

    def _at_zero(self) -> Candidate | None:
        """Return x = 0, the only point on the empty support."""
        if self.row_problem is not None:
            return Candidate.without_multipliers(NONE, np.zeros((0, self.row_problem.width)), self.row_problem.constant)
        zero = np.zeros(self.n)
        if not self.C.contains(zero):
            return None
        value = self.loss.value(zero) if self.model is None else self.model.constant
        return Candidate.without_multipliers(NONE, np.zeros(0), value, self.linear)

    def lower_bound(self, support: Vector) -> float:
        """Return a proved lower bound of φ over C on a support: −∞ if nothing is proved, ∞ if C has no point there."""
        support = np.sort(support)
        found = self.evaluate(support)
        if found is None:
            return -np.inf if support.tobytes() in self.cache.undecided else np.inf
        if not support.size:
            return found.value - found.rounding if self._evaluator.direct else -np.inf
        bound = self._evaluator.lower_bound(support, found)
        if bound >= found.value - self.claim_tol(found.value):
            return bound
        distinct = self._evaluator.without_duplicates(support)
        return bound if distinct.size == support.size else max(bound, self.lower_bound(distinct))

    def claim_tol(self, value: float) -> float:
        """Return how much better than a value another may be where it is still called optimal."""
        return PROOF * abs(value) + NEGLIGIBLE * self._constant

    def gain_tol(self, value: float) -> float:
        """Return the gain at a value below which it is rounding."""
        return 1e-10 * max(abs(value), 1e-3 * self._constant, 1e-300)

    def relative_gap(self, value: float, bound: float, share: float = PROOF, negligible: float = NEGLIGIBLE) -> float:
        """Return the gap relative to the value, or to φ(0) if only then it is as small as what may be claimed.

        May be claimed: `share` of the value, and `negligible` of φ(0).
        """
        fitted = bound >= self.loss.least and attains_least(self, value)  # they differ by the rounding of the value
        if fitted or not -np.inf < bound < value:
            return np.inf if bound < value and not fitted else 0.0
        gap = value - bound
        by_fit = share * abs(value) < gap <= share * abs(value) + negligible * self._constant
        size = max(abs(value), self._constant) if by_fit else abs(value)
        return gap / size if size else np.inf

    @cached_property
    def _constant(self) -> float:
        of = self.model if self.row_problem is None else self.row_problem
        return 0.0 if of is None else abs(of.constant)


def forced_first(problem: SupportProblem, support: Vector) -> Vector:
    """Return a support with the forced variables at its head, so that they stay when its end is cut off."""
    forced = problem.forced
    return np.asarray(np.concatenate([forced, support[~np.isin(support, forced)]]), dtype=np.intp)


def attains_least(problem: SupportProblem, value: float) -> bool:
    """Return whether a value is the lower bound that the loss claims, to the rounding of the value itself.

    A residual is 0 to 1e-12 of φ(0)'s, so a sum of squares to the square of that. φ(0) may be large beside the values
    that matter: the tolerance for other losses, whose values have a scale of their own, never grows with it.
    """
    least = problem.loss.least
    at_0 = problem.evaluate(NONE) if least > -np.inf and np.isfinite(value) else None
    above = 0.0 if at_0 is None else at_0.value - least
    return at_0 is not None and value <= least + (
        FITTED**2 * above if problem.model is not None else min(1e-13, 1e-16 * above)
    )
