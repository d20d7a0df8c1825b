"""What is searched: the best value over C on a support, for every support one may ask about."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ksparse.data import design_of
from ksparse.data.model import QuadraticModel
from ksparse.errors import InfeasibleError, NotFiniteError, UnboundedError, UndecidedError
from ksparse.firstorder.problem import Problem, Products
from ksparse.search.candidate import NONE, Candidate
from ksparse.search.evaluators.base import Evaluator
from ksparse.search.evaluators.exact import Exact
from ksparse.search.evaluators.polished import Polished
from ksparse.search.evaluators.rowwise import Rowwise
from ksparse.search.evaluators.spectral import Spectral
from ksparse.search.pieces import Pieces
from ksparse.search.polish import PolishedPoint, curvature_bound, polish_problem, residual_at_zero, restricted_problem
from ksparse.sets import Polyhedron
from ksparse.util.arrays import Vector

LARGE = 1_000  # variables and rows from which a quadratic program takes a good part of a second
VECTORS = 32  # of n numbers that a search holds, about, on a factorisation (scale.py)
FEW = 16  # the same among columns that are shown, with the blocks that they are read in


@dataclass
class Memory:
    """Supports that were asked about."""

    seen: dict[bytes, Candidate | None] = field(default_factory=dict)
    doubtful: set[bytes] = field(default_factory=set)  # those without a candidate that may have one all the same
    modelled: set[tuple[int, bytes]] = field(
        default_factory=set
    )  # at whose best points second-order models were searched, with which k

    def copy(self) -> Memory:
        """The same, to go on by itself."""
        return Memory(dict(self.seen), set(self.doubtful), set(self.modelled))


@dataclass(frozen=True, eq=False)
class SupportProblem:
    """min φ over C with at most k nonzeros."""

    pieces: Pieces
    asked: int  # the k that the user gave: it counts variables, groups or features
    memory: Memory = field(default_factory=Memory)

    @cached_property
    def k(self) -> int:
        """The largest number of variables in a support: `asked`, or with groups that of the `asked` largest.

        It is no more than are allowed, and than floors leave room for.
        """
        return min(self.pieces.rules.widest(self.asked), self.pieces.room)

    def allows(self, support: Vector) -> bool:
        """Return whether the nonzeros of a point may be these: at most k, none of them barred, and as the rules say."""
        allowed, rules = self.pieces.allowed, self.pieces.rules
        return support.size <= self.k and bool(allowed[support].all()) and rules.allows(support, self.asked)

    @cached_property
    def evaluator(self) -> Evaluator:
        """Who answers for a support."""
        pieces = self.pieces
        if pieces.wide is not None:
            return Rowwise(pieces.wide, pieces.loss.least)
        if pieces.spectral:
            assert pieces.model is not None
            assert pieces.radius is not None
            return Spectral(pieces.model, pieces.radius)
        if pieces.direct:
            assert pieces.model is not None
            return Exact(pieces, pieces.model)
        return Polished(pieces)

    @property
    def n(self) -> int:
        """The number of variables."""
        return self.pieces.n

    @property
    def expired(self) -> bool:
        """Whether the time is up."""
        return self.pieces.expired

    @property
    def rows_in_memory(self) -> int:
        """How many rows of H a search may hold at once: up to twice k, so that it can go by way of more variables."""
        return int(min(2 * self.k, self.pieces.allowed.sum(), max(0, self.pieces.settings.memory // (8 * self.n))))

    @property
    def cramped(self) -> bool:
        """Whether so few rows of H fit, beside k, that a search on them would ask for each again and again, a pass over all data."""
        squares, settings = self.pieces.loss.squares(), self.pieces.settings
        held = settings.memory // (8 * self.n)
        if self.pieces.floored or held >= min(self.n, max(2 * self.k, settings.entering)):
            return False
        return squares is not None and design_of(squares.A).pass_is_costly

    @property
    def memory_needed(self) -> int:
        """Bytes that a search takes beside the data, about: vectors of n numbers and, of H, k rows thrice or the columns shown."""
        pieces, settings = self.pieces, self.pieces.settings
        if pieces.wide is not None:
            return 8 * (VECTORS + 3 * self.k) * (self.n + pieces.wide.width)
        if pieces.hidden:
            return 8 * (FEW * self.n + 2 * settings.shown * self.k * (pieces.loss.entries or 0) // self.n)
        return 8 * (VECTORS + (3 * self.k if pieces.loss.has_columns else 0)) * self.n

    @property
    def updatable(self) -> bool:
        """Whether a factorisation can be kept up to date, and held."""
        return self.pieces.polyhedral and self.rows_in_memory >= self.k

    @property
    def walks(self) -> bool:
        """Whether a search walks out of local optima: what a swap gains is known exactly, and k is not small."""
        pieces = self.pieces
        return (
            self.k >= pieces.settings.walks and self.updatable and pieces.signs_and_equations and not pieces.rules.any
        )

    def forced_first(self, support: Vector) -> Vector:
        """A support with the variables that are always in it at its head: what is cut off at its end is not among them."""
        forced = self.pieces.forced
        return np.asarray(np.concatenate([forced, support[~np.isin(support, forced)]]), dtype=np.intp)

    def trim_to_rules(self, support: Vector) -> Vector:
        """Drop from a support barred variables and what does not fit the rules, the last first.

        Under strict rules the rest need not satisfy them by itself.
        """
        support, rules = self.forced_first(support[self.pieces.allowed[support]]), self.pieces.rules
        return rules.longest_extendable(support, self.asked)

    def extend_to_rules(self, support: Vector) -> Vector:
        """Add to a support the variables that the rules require, where nonzeros themselves must satisfy them."""
        rules = self.pieces.rules
        return support if not rules.strict else rules.completed(support, self.asked, self.pieces.allowed)

    def variables(self, support: Vector) -> Vector:
        """The entries of x that a support's members are: themselves, or of a matrix whole rows."""
        t = self.pieces.width
        return support if t == 1 else np.asarray((support[:, None] * t + np.arange(t)).ravel())

    def sizes(self, x: Vector) -> Vector:
        """How large x is at each member that a support may have."""
        return x if self.pieces.width == 1 else np.linalg.norm(x.reshape(-1, self.pieces.width), axis=1)

    def inactive(self, at: Candidate) -> Vector:
        """The variables that are allowed but not in the support."""
        free = self.pieces.allowed.copy()
        free[at.support] = False
        return np.flatnonzero(free)

    def evaluate(self, support: Vector, hint: Candidate | None = None) -> Candidate | None:
        """The best point on a support, or None if C has none there, or none that arithmetic can find. Asked twice, computed once.

        `UnboundedError` where φ falls without end there, and so over C with at most k nonzeros; of larger supports that says nothing.
        """
        support, seen = np.sort(support), self.memory.seen
        key = support.tobytes()
        if key not in seen:
            try:
                seen[key] = self.evaluator.solve(support, hint) if support.size else self._at_zero()
            except UnboundedError:
                if self.pieces.loss.least > -np.inf:  # arithmetic's word against the loss's
                    seen[key] = None
                    self.memory.doubtful.add(key)
                    return None
                if self.allows(support):
                    raise
                return None
            except (InfeasibleError, NotFiniteError) as error:
                seen[key] = None
                if isinstance(error, UndecidedError | NotFiniteError):
                    self.memory.doubtful.add(key)
        return seen[key]

    def _at_zero(self) -> Candidate | None:
        """x = 0, the only point on the empty support."""
        zero, pieces = np.zeros(self.n), self.pieces
        if pieces.wide is not None:
            return Candidate.unpriced(NONE, np.zeros((0, pieces.wide.width)), pieces.wide.constant)
        if not pieces.C.contains(zero):
            return None
        value = pieces.loss.value(zero) if pieces.model is None else pieces.model.constant
        return Candidate.unpriced(NONE, np.zeros(0), value, pieces.rows)

    def lower_bound(self, support: Vector) -> float:
        """What φ over C on a support is proved not to fall below: −∞ where nothing is proved, ∞ where C has no point there."""
        support = np.sort(support)
        found = self.evaluate(support)
        if found is None:
            return -np.inf if support.tobytes() in self.memory.doubtful else np.inf
        if not support.size:
            return found.value - found.rounding if self.evaluator.direct else -np.inf
        bound = self.evaluator.lower_bound(support, found)
        if bound >= found.value - self.pieces.claimable(found.value):
            return bound
        distinct = self.evaluator.distinct(support)
        return bound if distinct.size == support.size else max(bound, self.lower_bound(distinct))

    def dear_to_project(self, support: Vector) -> bool:
        """Whether the time is up and a projection onto C on the support, a quadratic program, takes seconds."""
        return self.expired and support.size + self.pieces.rows > LARGE

    def polish(self, candidate: Candidate) -> PolishedPoint:
        """The candidate's point once more, from the raw data rather than the model, to the promised residual."""
        if not candidate.support.size:
            return PolishedPoint(
                candidate.x.ravel(), candidate.value, self._residual_at_zero(candidate.value), Products()
            )
        pieces = self.pieces
        problem = restricted_problem(pieces.loss, pieces.C, self.variables(candidate.support))
        if pieces.wide is not None:
            point = problem.point(pieces.wide.polish(candidate.support, candidate.x).ravel())
            return PolishedPoint(
                point.x, problem.F(point), problem.residual(point, curvature_bound(problem, point)), problem.products
            )
        if pieces.floored:
            linear = pieces.C.as_linear(self.n)  # with every bound, those that others imply too
            whole = None if linear is None else linear.on(candidate.support)
            assert whole is not None
            floor = pieces.floor[candidate.support]
            low = np.where(candidate.x > 0, np.maximum(whole.lower, floor), whole.lower)
            high = np.where(candidate.x < 0, np.minimum(whole.upper, -floor), whole.upper)
            floored = Polyhedron(whole.G, whole.h, whole.E, whole.f, low, high)
            problem = Problem(problem.loss, problem.penalty, floored, problem.n)
        return polish_problem(problem, candidate.x, pieces.deadline)

    def _residual_at_zero(self, value: float) -> float:
        """The residual at x = 0, over the variables that may be there and pull most, as many as a point may use."""
        pieces = self.pieces
        if pieces.floored:  # no other point is near 0
            return 0.0
        step = -pieces.loss.gradient(np.zeros(self.n * pieces.width))
        if pieces.linear is None:
            step = pieces.C.project(step)
        elif pieces.wide is None:
            step = np.where(step > 0, pieces.linear.upper > 0, pieces.linear.lower < 0) * step
        size = np.where(pieces.allowed, self.sizes(np.abs(step)), 0.0)
        ranked = np.argsort(-size, kind="stable")[: np.count_nonzero(size)]
        support = np.sort(pieces.rules.longest_extendable(ranked, self.asked))
        if not support.size or not self.allows(support):
            return 0.0
        return residual_at_zero(pieces.loss, pieces.C, self.variables(support), pieces.claimable(value))

    def with_k(self, k: int) -> SupportProblem:
        """The same with another cardinality, and the same memory: the best point on a support does not depend on k."""
        return replace(self, asked=k)

    def with_model(self, model: QuadraticModel) -> SupportProblem:
        """The problem of a quadratic model in place of φ; what was seen of φ is not known of it."""
        return SupportProblem(self.pieces.with_model(model), self.asked)

    def until(self, deadline: float) -> SupportProblem:
        """The same with less time."""
        model = self.pieces.model  # with the columns it remembers
        return replace(self, pieces=replace(self.pieces, deadline=deadline, quadratic=lambda: model))

    def with_own_memory(self) -> SupportProblem:
        """The same with a copy of what it has seen: searches beside each other then do not depend on each other's order."""
        return replace(self, memory=self.memory.copy())
