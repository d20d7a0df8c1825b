"""What is searched: the best value over C on a support, for every support one may ask about."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from ksparse.errors import InfeasibleError
from ksparse.losses import DataFit, LeastSquares, Loss, PrincipalComponent, QuadraticForm
from ksparse.problem import Problem, Products
from ksparse.sets import ConvexSet, L2Ball, Linear, Polyhedron
from ksparse.sets.base import Vector
from ksparse.sets.qp import Active, Solution, solve_qp
from ksparse.support.model import MEMORY, Model, model_at, quadratic_model
from ksparse.support.on_support import floored, leading_eigenvector, nothing_active, on_equations
from ksparse.support.polish import Polished, polish, polish_problem, restricted_problem
from ksparse.support.quadratic import minimize_on_ball

SEARCH_STEPS, SEARCH_TARGET = 400, 1e-6  # of the first-order methods, for a value to compare


@dataclass(frozen=True)
class Candidate:
    """A support, the best point on it, and the multipliers that certify it."""

    support: Vector  # sorted indices
    x: Vector  # entries on the support
    value: float  # φ there
    bound_price: Vector  # of the bounds on the support, 0 where there are none
    row_price: Vector  # of the rows of G
    shift: float = 0.0  # of the ball: H + shift·I is what its members feel
    at_lower: Vector = field(default_factory=lambda: np.zeros(0, dtype=np.intp))  # members at their lower bound
    at_upper: Vector = field(default_factory=lambda: np.zeros(0, dtype=np.intp))

    def full(self, n: int) -> Vector:
        """The point as a vector of length n."""
        x = np.zeros(n)
        x[self.support] = self.x
        return x


class Task:
    """min φ over C with at most k nonzeros, some variables forced in or out, nonzeros at least `floor` in size."""

    def __init__(
        self,
        loss: Loss,
        C: ConvexSet,
        n: int,
        k: int,
        *,
        forced_in: Vector,
        forced_out: Vector,
        floor: float = 0.0,
        deadline: float = np.inf,
    ) -> None:
        self.loss, self.C, self.n, self.k, self.floor = loss.as_float64(), C.without(np.asarray(forced_out, dtype=np.intp)), n, k, floor
        self.linear: Linear | None = self.C.linear(n)
        bound_in: Vector = np.zeros(0, dtype=np.intp)
        whole = C.linear(n)
        if whole is not None:
            bound_in = np.flatnonzero((whole.lower > 0) | (whole.upper < 0))
        self.forced = np.union1d(forced_in, bound_in).astype(np.intp)
        self.allowed = np.ones(n, dtype=bool)
        self.allowed[forced_out] = False
        self.model = quadratic_model(self.loss)
        self.convex = self.loss.convex is not False
        self.deadline = deadline
        self._seen: dict[bytes, Candidate | None] = {}

    @property
    def expired(self) -> bool:
        """Whether the time is up."""
        return time.perf_counter() >= self.deadline

    @property
    def component(self) -> bool:
        """Whether this is a sparse principal component: −xᵀVx on a ball."""
        return isinstance(self.loss, PrincipalComponent) and isinstance(self.C, L2Ball) and self.floor == 0

    @property
    def exact_gains(self) -> bool:
        """Whether the table of gains holds the gains themselves: a convex quadratic under equations alone."""
        return bool(self.convex and self.model is not None and self.linear is not None and self.linear.equations_only and self.floor == 0)

    @property
    def ranks(self) -> bool:
        """Whether a second-order model ranks the moves: φ is convex and shows its curvature."""
        return self.convex and (self.model is not None or isinstance(self.loss, DataFit))

    @property
    def certifying(self) -> bool:
        """Whether values are exact and gains bound the true ones from above, so that none above 0 proves swap-optimality."""
        if not self.convex or self.model is None:
            return False
        if self.linear is None:
            return isinstance(self.C, L2Ball)
        two_sided = self.allowed & (self.linear.lower < 0) & (self.linear.upper > 0)
        return not (self.floor and two_sided.any())  # a floor on either side of 0: which side, is a guess

    @property
    def seats_in_memory(self) -> int:
        """How many rows of H a search may hold at once: up to twice k, so that it can go by way of more seats."""
        return int(min(2 * self.k, self.allowed.sum(), max(0, MEMORY // (8 * self.n))))

    @property
    def exchangeable(self) -> bool:
        """Whether a basis can be kept up to date: a convex quadratic under equations and signs, forced members free of sign."""
        if not self.convex or self.model is None or self.linear is None or self.floor or self.linear.h.size:
            return False
        lower, upper = self.linear.lower, self.linear.upper
        signs = np.isin(lower, (-np.inf, 0.0)).all() and np.isin(upper, (np.inf, 0.0)).all()
        free = np.isinf(lower[self.forced]).all() and np.isinf(upper[self.forced]).all()
        return bool(signs and free and self.seats_in_memory >= min(self.k, int(self.allowed.sum())))

    def ranking_model(self, candidate: Candidate) -> Model | None:
        """The second-order model at a candidate, φ itself if it is quadratic; None if the loss has none."""
        if self.model is not None:
            return self.model
        return model_at(self.loss, candidate.full(self.n)) if isinstance(self.loss, DataFit) else None

    def outsiders(self, at: Candidate) -> Vector:
        """The variables that are allowed but not members."""
        free = self.allowed.copy()
        free[at.support] = False
        return np.flatnonzero(free)

    def evaluate(self, support: Vector, hint: Candidate | None = None) -> Candidate | None:
        """The best point on a support, or None if C has none there. Asked twice, computed once.

        `UnboundedError` where φ falls without end there, and so over C with at most k nonzeros.
        """
        support = np.sort(support)
        key = support.tobytes()
        if key not in self._seen:
            try:
                self._seen[key] = self._solve(support, hint)
            except InfeasibleError:
                self._seen[key] = None
        return self._seen[key]

    def _solve(self, support: Vector, hint: Candidate | None) -> Candidate | None:
        if not support.size:
            return self._at_zero()
        if self.component:
            return self._leading_component(support, hint)
        if self.linear is not None and self.linear.on(support) is None:
            return None
        if self.model is None or not self.convex or (self.linear is None and not isinstance(self.C, L2Ball)):
            return self._by_polish(support, hint)
        H, c = self.model.block(support), -self.model.r[support]
        if isinstance(self.C, L2Ball):
            x = minimize_on_ball(H, c, self.C.radius, np.zeros(support.size))
            shift = max(0.0, -float((H @ x + c) @ x) / max(float(x @ x), 1e-300))
            found, nothing = Solution(x, np.zeros(support.size), np.zeros(0), nothing_active(support.size)), shift
        else:
            found, nothing = self._quadratic_program(H, c, support, hint), 0.0
        return self._candidate(support, found, self._value(H, c, support, found.x), nothing)

    def _value(self, H: Vector, c: Vector, support: Vector, x: Vector) -> float:
        """φ at x by the model, or by the loss itself where the model's sum is rounding: its terms cancel where members are dependent."""
        assert self.model is not None
        value = float(0.5 * x @ H @ x + c @ x) + self.model.constant
        size = np.abs(x)
        rounding = 1e-15 * float(size @ np.abs(H) @ size)
        if rounding <= tolerance(self, value) or not isinstance(self.loss, LeastSquares | QuadraticForm):
            return value
        whole = np.zeros(self.n)
        whole[support] = x
        return self.loss.value(whole)

    def _at_zero(self) -> Candidate | None:
        """x = 0, the only point on the empty support."""
        zero = np.zeros(self.n)
        if not self.C.contains(zero):
            return None
        rows = 0 if self.linear is None else self.linear.h.size
        value = self.loss.value(zero) if self.model is None else self.model.constant
        return Candidate(np.zeros(0, dtype=np.intp), np.zeros(0), value, np.zeros(0), np.zeros(rows))

    def _leading_component(self, support: Vector, hint: Candidate | None) -> Candidate:
        """The leading eigenvector of V_SS, as long as the ball allows; its sign is free: the largest entry is positive."""
        assert self.model is not None
        assert isinstance(self.C, L2Ball)
        nothing = np.zeros(support.size)
        if support.size:
            start = None if hint is None else hint.full(self.n)[support]
            value, x = leading_eigenvector(-0.5 * self.model.block(support), start)
            if value > 0:
                radius = self.C.radius
                x = x * (radius if x[np.argmax(np.abs(x))] > 0 else -radius)
                return Candidate(support, x, -value * radius**2, nothing, np.zeros(0))
        return Candidate(support, nothing, 0.0, nothing, np.zeros(0))  # no variance: 0 is as good as anything

    def _quadratic_program(self, H: Vector, c: Vector, support: Vector, hint: Candidate | None) -> Solution:
        assert self.linear is not None
        linear = self.linear.on(support)
        assert linear is not None
        if linear.equations_only and not self.floor:
            return on_equations(H, c, linear)
        if self.floor:
            linear = floored(H, c, linear, self.floor)
        return solve_qp(H, c, linear, _guess(support, hint, linear))

    def polish_candidate(self, candidate: Candidate) -> Polished:
        """The candidate's point once more, from the raw data rather than the model, to the promised residual."""
        if not candidate.support.size:
            return Polished(candidate.x, candidate.value, 0.0, Products())
        problem = restricted_problem(self.loss, self.C, candidate.support)
        if self.floor:
            assert self.linear is not None
            whole = self.linear.on(candidate.support)
            assert whole is not None
            low = np.where(candidate.x > 0, np.maximum(whole.lower, self.floor), whole.lower)
            high = np.where(candidate.x < 0, np.minimum(whole.upper, -self.floor), whole.upper)
            floored = Polyhedron(whole.G, whole.h, whole.E, whole.f, low, high)
            problem = Problem(problem.loss, problem.penalty, floored, problem.n)
        return polish_problem(problem, candidate.x, self.deadline)

    def _by_polish(self, support: Vector, hint: Candidate | None) -> Candidate:
        near = np.zeros(support.size) if hint is None else hint.full(self.n)[support]
        begins = [near]
        if not self.convex:  # 0 may be stationary, and there may be several minima: a few starts, the best
            even = np.full(support.size, 1.0 / support.size)
            begins += [even, np.where(np.arange(support.size) % 2, -even, even)]
        found = min(
            (polish(self.loss, self.C, support, x, self.deadline, SEARCH_STEPS, SEARCH_TARGET) for x in begins), key=lambda p: p.value
        )
        rows = 0 if self.linear is None else self.linear.h.size
        return self._candidate(
            support, Solution(found.z, np.zeros(support.size), np.zeros(rows), nothing_active(support.size)), found.value, 0.0
        )

    def with_k(self, k: int) -> Task:
        """The same task with another number of seats, and the same memory: the best point on a support does not depend on k."""
        twin = Task.__new__(Task)
        twin.__dict__.update(self.__dict__)
        twin.k = k
        return twin

    def with_model(self, model: Model) -> Task:
        """The task of a quadratic model in place of the loss; what was seen of the loss is not known of it."""
        twin = self.with_own_memory()
        twin.model, twin._seen = model, {}
        return twin

    def with_own_memory(self) -> Task:
        """The same task with a copy of what it has seen: searches beside each other then do not depend on each other's order."""
        twin = Task.__new__(Task)
        twin.__dict__.update(self.__dict__)
        twin._seen = dict(self._seen)
        return twin

    def _candidate(self, support: Vector, found: Solution, value: float, shift: float) -> Candidate:
        """What was found, without the members at 0: they are free seats, unless forced in."""
        keep = (found.x != 0) | np.isin(support, self.forced)
        at_lower, at_upper = support[found.active.at_lower & keep], support[found.active.at_upper & keep]
        return Candidate(support[keep], found.x[keep], value, found.bound_price[keep], found.row_price, shift, at_lower, at_upper)


def _guess(support: Vector, hint: Candidate | None, linear: Linear) -> Active | None:
    """The active constraints of a neighbouring support, where this one has them."""
    if hint is None:
        return None
    return Active(
        np.isin(support, hint.at_lower) & np.isfinite(linear.lower),
        np.isin(support, hint.at_upper) & np.isfinite(linear.upper),
        hint.row_price > 0,
    )


def tolerance(task: Task, value: float) -> float:
    """A gain below this is rounding."""
    constant = 0.0 if task.model is None else abs(task.model.constant)
    return 1e-10 * max(abs(value), 1e-3 * constant, 1e-300)
