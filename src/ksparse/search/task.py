"""What is searched: the best value over C on a support, for every support one may ask about."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ksparse.base.arrays import Vector
from ksparse.base.deadline import GRACE
from ksparse.errors import InfeasibleError, NotFiniteError, UnboundedError, UndecidedError
from ksparse.firstorder.problem import Problem, Products
from ksparse.linalg.active_set import Active, Solution
from ksparse.linalg.bound import EPS, rounding_of, shortfall
from ksparse.linalg.constraints import Linear
from ksparse.linalg.faces import best_on_faces
from ksparse.linalg.model import MEMORY, QuadraticModel
from ksparse.linalg.objective import Objective, well_conditioned
from ksparse.linalg.qp import solve_qp
from ksparse.losses import Loss
from ksparse.search.on_support import above_floor, leading_eigenvector
from ksparse.search.polish import Polished, polish, polish_problem, restricted_problem
from ksparse.sets import ConvexSet, Polyhedron

SEARCH_STEPS, SEARCH_TARGET = 400, 1e-6  # of the first-order methods, for a value to compare
PROOF = 1e-8  # relative to the value: what is proved is proved to this
NEGLIGIBLE = 1e-13  # relative to φ(0): a perfect fit leaves as much in rounding


@dataclass(frozen=True)
class Candidate:
    """A support, the best point on it, and the multipliers that certify it."""

    support: Vector  # sorted indices
    x: Vector  # entries on the support
    value: float  # φ there
    bound_price: Vector  # of the bounds on the support, 0 where there are none
    row_price: Vector  # of the rows of G
    equation_price: Vector = field(default_factory=lambda: np.zeros(0))  # of the rows of E
    shift: float = 0.0  # of the ball: H + shift·I is what its members feel
    at_lower: Vector = field(default_factory=lambda: np.zeros(0, dtype=np.intp))  # members at their lower bound
    at_upper: Vector = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    rounding: float = 0.0  # of the value
    radius: float = 0.0  # of the ball

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
        self.linear: Linear | None = self.C.as_linear(n)
        bound_in: Vector = np.zeros(0, dtype=np.intp)
        whole = C.as_linear(n)
        if whole is not None:
            bound_in = np.flatnonzero((whole.lower > 0) | (whole.upper < 0))
        self.forced = np.union1d(forced_in, bound_in).astype(np.intp)
        self.allowed = np.ones(n, dtype=bool)
        self.allowed[forced_out] = False
        self.deadline = deadline
        self._seen: dict[bytes, Candidate | None] = {}
        self._latest: tuple[bytes, Objective] = (b"", Objective(np.zeros((0, 0)), np.zeros(0)))
        self._doubtful: set[bytes] = set()  # supports without a candidate that may have one all the same

    @cached_property
    def convex(self) -> bool:
        """Whether φ is not known to be anything else."""
        return self.loss.convex is not False

    @cached_property
    def model(self) -> QuadraticModel | None:
        """φ as a quadratic model, where it is one."""
        return self.loss.quadratic()

    @cached_property
    def ranks(self) -> bool:
        """Whether a second-order model ranks the moves: φ is convex and shows its curvature."""
        return self.convex and (self.model is not None or self.ranking_model(self._at_forced()) is not None)

    def _at_forced(self) -> Candidate:
        """0 on the variables that are forced in, C or not: where models can be had at all, one can be had there."""
        nothing = np.zeros(self.forced.size)
        return Candidate(self.forced, nothing, np.inf, nothing, np.zeros(0))

    @property
    def opaque(self) -> bool:
        """Whether φ hides its columns, and has too many to ask for each."""
        return self.loss.opaque

    @property
    def expired(self) -> bool:
        """Whether the time is up."""
        return time.perf_counter() >= self.deadline

    @property
    def overdue(self) -> bool:
        """Whether the time is up so long ago that not even a first feasible point is looked for."""
        return time.perf_counter() >= self.deadline + GRACE

    @property
    def component(self) -> bool:
        """Whether this is a sparse principal component: −xᵀVx on a ball."""
        if self.floor or self.radius is None or self.model is None:
            return False
        return self.model.sign < 0 and not self.model.r.any()

    @cached_property
    def radius(self) -> float | None:
        """Of C, where it is a Euclidean ball."""
        ball = self.C.as_norm_ball()
        return ball[1] if ball is not None and ball[0] == 2 else None

    @cached_property
    def priced(self) -> bool:
        """Whether a set that is no polyhedron gives multipliers, itself or where it is cut to a support."""
        if self.linear is not None or self.C.has_multipliers:
            return self.linear is None
        try:
            return self.C.restrict(np.arange(min(self.k, self.n))).has_multipliers
        except (InfeasibleError, NotImplementedError):
            return False

    @property
    def exact_gains(self) -> bool:
        """Whether the table of gains holds the gains themselves: a convex quadratic under equations alone."""
        return bool(self.convex and self.model is not None and self.linear is not None and self.linear.equations_only and self.floor == 0)

    @property
    def exact(self) -> bool:
        """Whether the best value on a support is computed directly, and can be proved: a convex quadratic on a polyhedron or a ball."""
        return self.component or (self.convex and self.model is not None and (self.linear is not None or self.priced))

    @property
    def certifying(self) -> bool:
        """Whether gains bound the true ones from above too, so that none above 0 proves swap-optimality."""
        if not self.exact or self.component or not self.loss.certain:
            return False
        if self.linear is None or not self.floor:
            return True
        return not (self.allowed & (self.linear.lower < 0) & (self.linear.upper > 0)).any()  # the other side of 0 has other prices

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

    def ranking_model(self, candidate: Candidate) -> QuadraticModel | None:
        """The second-order model at a candidate, φ itself if it is quadratic; None if the loss has none, or it overflows there."""
        if self.model is not None:
            return self.model
        model = self.loss.model_at(candidate.full(self.n)) if self.convex else None
        return model if model is not None and model.finite else None

    def outsiders(self, at: Candidate) -> Vector:
        """The variables that are allowed but not members."""
        free = self.allowed.copy()
        free[at.support] = False
        return np.flatnonzero(free)

    def evaluate(self, support: Vector, hint: Candidate | None = None) -> Candidate | None:
        """The best point on a support, or None if C has none there, or none that arithmetic can find. Asked twice, computed once.

        `UnboundedError` where φ falls without end there, and so over C with at most k nonzeros; of larger supports that says nothing.
        """
        support = np.sort(support)
        key = support.tobytes()
        if key not in self._seen:
            try:
                self._seen[key] = self._solve(support, hint)
            except UnboundedError:
                if support.size <= self.k:
                    raise
                return None
            except (InfeasibleError, NotFiniteError) as error:
                self._seen[key] = None
                if isinstance(error, UndecidedError | NotFiniteError):
                    self._doubtful.add(key)
        return self._seen[key]

    def lower_bound(self, support: Vector) -> float:
        """What φ over C on a support is proved not to fall below: −∞ where nothing is proved, ∞ where C has no point there."""
        support = np.sort(support)
        if self.component and support.size:
            return self._component_bound(support)
        found = self.evaluate(support)
        if found is None:
            return -np.inf if support.tobytes() in self._doubtful else np.inf
        if not self.exact:
            return -np.inf
        if not support.size:
            return found.value - found.rounding
        assert self.model is not None
        objective, x = self._objective(support), found.full(self.n)[support]
        noise = self.model.noise
        if self.linear is None:
            priced = replace(Solution.unpriced(x), shift=found.shift, radius=found.radius)
            bound = found.value - self.C.restrict(support).shortfall(objective.H, objective.c, priced, noise)
        else:
            linear = self._linear_on(support)
            if self.floor:
                others = above_floor(objective, linear, self.floor, None, noise).others
                bound = found.value + min(0.0, others - objective.value(x))
            else:
                bound = found.value - shortfall(objective, linear, x, found.equation_price, found.row_price, noise)
        bound = max(bound - found.rounding, self.loss.least)
        distinct = support if bound >= found.value - claimable(self, found.value) else self._distinct(support)
        return bound if distinct.size == support.size else max(bound, self.lower_bound(distinct))

    def _distinct(self, support: Vector) -> Vector:
        """The support without variables that are another one once more, to φ and to C: what they do, the other can do alone."""
        if self.linear is None or self.floor:
            return support
        linear, twin = self.linear, self.loss.repeats(support)
        first = support[twin]
        same = np.isin(linear.lower[support], (0.0, -np.inf)) & np.isin(linear.upper[support], (0.0, np.inf))
        same &= (linear.lower[first] == linear.lower[support]) & (linear.upper[first] == linear.upper[support])
        for M in (linear.E, linear.G):
            same &= (M[:, first] == M[:, support]).all(axis=0)
        return np.asarray(support[~same | (first == support)])

    def _component_bound(self, support: Vector) -> float:
        """−λ_max(V_SS)r², from below."""
        assert self.model is not None
        assert self.radius is not None
        V = -0.5 * self.model.block(support)
        blur = (8.0 * EPS + self.model.noise.entries) * support.size * float(np.abs(V).max())
        return -max(0.0, float(np.linalg.eigvalsh(V)[-1]) + blur) * self.radius**2

    def _solve(self, support: Vector, hint: Candidate | None) -> Candidate | None:
        if not support.size:
            return self._at_zero()
        if self.component:
            return self._leading_component(support, hint)
        if self.linear is not None and self.linear.on(support) is None:
            return None
        if not self.exact:
            return self._by_polish(support, hint)
        objective = self._objective(support)
        if self.linear is None:
            answer = self.C.restrict(support).minimize_quadratic(objective.H, objective.c, np.zeros(support.size))
            if answer is None:
                return self._by_polish(support, hint)
            found = answer
        else:
            linear = self._linear_on(support)
            guess = _guess(support, hint, linear)
            found = above_floor(objective, linear, self.floor, guess).found if self.floor else solve_qp(objective, linear, guess)
        return self._candidate(support, found, self._value(objective, support, found.x))

    def _linear_on(self, support: Vector) -> Linear:
        assert self.linear is not None
        linear = self.linear.on(support)
        assert linear is not None  # asked before
        return linear

    def _objective(self, support: Vector) -> Objective:
        """φ on a support: by the model's H, or from the data themselves where members are so nearly dependent that H has lost it."""
        assert self.model is not None
        key, known = support.tobytes(), self._latest
        if known[0] == key:
            return known[1]
        objective = Objective(self.model.block(support), -self.model.r[support])
        if self.loss.squares() is not None and not well_conditioned(objective.H):
            root = self.loss.restrict(support).root()
            objective = objective if root is None else Objective.of_squares(*root)
        self._latest = key, objective  # who asked for the value asks for the bound next
        return objective

    def _value(self, objective: Objective, support: Vector, x: Vector) -> tuple[float, float]:
        """φ at x by the model, or by the loss itself where the model's sum is rounding, with its rounding.

        The model's terms cancel where members are dependent, or the fit is near.
        """
        assert self.model is not None
        k, noise, unit = x.size, self.model.noise, float(np.sqrt(np.abs(self.model.diagonal[support])) @ np.abs(x))
        value = objective.value(x) + self.model.constant
        rounding = rounding_of(k) * (objective.terms(x) + abs(self.model.constant)) + unit * (0.5 * noise.entries * unit + noise.pull)
        if rounding <= tolerance(self, value) or self.loss.squares() is None:
            return value, rounding
        whole = np.zeros(self.n)
        whole[support] = x
        value = self.loss.value(whole)
        off = rounding_of(k) * (unit + float(np.sqrt(2.0 * self.model.constant)))  # of the residual's length
        return value, off * (float(np.sqrt(2.0 * abs(value))) + 0.5 * off)

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
        assert self.radius is not None
        nothing = np.zeros(support.size)
        if support.size:
            start = None if hint is None else hint.full(self.n)[support]
            value, x = leading_eigenvector(-0.5 * self.model.block(support), start)
            if value > 0:
                x = x * (self.radius if x[np.argmax(np.abs(x))] > 0 else -self.radius)
                return Candidate(support, x, -value * self.radius**2, nothing, np.zeros(0))
        return Candidate(support, nothing, 0.0, nothing, np.zeros(0))  # no variance: 0 is as good as anything

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
        rows = 0 if self.linear is None else self.linear.h.size
        if not self.convex and self.model is not None:
            objective = Objective(self.model.block(support), -self.model.r[support])
            x = self._on_all_faces(objective, support)
            if x is not None:
                return self._candidate(support, Solution.unpriced(x, rows), (objective.value(x) + self.model.constant, 0.0))
        near = np.zeros(support.size) if hint is None else hint.full(self.n)[support]
        begins = [near]
        if not self.convex:  # 0 may be stationary, and there may be several minima: a few starts, the best
            even = np.full(support.size, 1.0 / support.size)
            begins += [even, -even, np.where(np.arange(support.size) % 2, -even, even)]
        polished = min(
            (polish(self.loss, self.C, support, x, self.deadline, SEARCH_STEPS, SEARCH_TARGET) for x in begins), key=lambda p: p.value
        )
        return self._candidate(support, Solution.unpriced(polished.z, rows), (polished.value, 0.0))

    def _on_all_faces(self, objective: Objective, support: Vector) -> Vector | None:
        """The least value of a quadratic that is not convex, where C has few faces."""
        if self.linear is not None:
            return best_on_faces(objective.H, objective.c, self._linear_on(support))
        return self.C.restrict(support).minimize_on_faces(objective.H, objective.c)

    def with_k(self, k: int) -> Task:
        """The same task with another number of seats, and the same memory: the best point on a support does not depend on k."""
        twin = Task.__new__(Task)
        twin.__dict__.update(self.__dict__)
        twin.k = k
        return twin

    def with_model(self, model: QuadraticModel) -> Task:
        """The task of a quadratic model in place of the loss; what was seen of the loss is not known of it."""
        twin = self.with_own_memory()
        twin.model, twin._seen, twin._doubtful, twin._latest = model, {}, set(), (b"", self._latest[1])
        return twin

    def with_own_memory(self) -> Task:
        """The same task with a copy of what it has seen: searches beside each other then do not depend on each other's order."""
        twin = Task.__new__(Task)
        twin.__dict__.update(self.__dict__)
        twin._seen, twin._doubtful = dict(self._seen), set(self._doubtful)
        return twin

    def _candidate(self, support: Vector, found: Solution, value: tuple[float, float]) -> Candidate:
        """What was found, without the members at 0: they are free seats, unless forced in."""
        keep = (found.x != 0) | np.isin(support, self.forced)
        at_bound = (found.active.at_lower & (found.bound_price > 0)) | (found.active.at_upper & (found.bound_price < 0))
        at_lower, at_upper = support[found.active.at_lower & keep], support[found.active.at_upper & keep]
        return Candidate(
            support[keep], found.x[keep], value[0], np.where(at_bound, found.bound_price, 0.0)[keep], found.row_price, found.equation_price,
            found.shift, at_lower, at_upper, value[1], found.radius,
        )  # fmt: skip


def _guess(support: Vector, hint: Candidate | None, linear: Linear) -> Active | None:
    """The active constraints of a neighbouring support, where this one has them."""
    if hint is None:
        return None
    return Active(
        np.isin(support, hint.at_lower) & np.isfinite(linear.lower),
        np.isin(support, hint.at_upper) & np.isfinite(linear.upper),
        hint.row_price > 0,
    )


def claimable(task: Task, value: float) -> float:
    """How much better than a value another may be where it is still called optimal."""
    constant = 0.0 if task.model is None else abs(task.model.constant)
    return PROOF * abs(value) + NEGLIGIBLE * constant


def tolerance(task: Task, value: float) -> float:
    """A gain below this is rounding."""
    constant = 0.0 if task.model is None else abs(task.model.constant)
    return 1e-10 * max(abs(value), 1e-3 * constant, 1e-300)
