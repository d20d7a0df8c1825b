"""Branch and bound around an answer: what no k-sparse point falls below, and the better answers that are met on the way."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ksparse.base.arrays import Vector
from ksparse.certify.component import ComponentFamily
from ksparse.certify.program import Program
from ksparse.certify.quadratic import QuadraticFamily
from ksparse.certify.settings import TreeSettings
from ksparse.certify.smooth import SmoothFamily
from ksparse.certify.tree import Family, Leaf, Tree
from ksparse.linalg.bound import EPS
from ksparse.result import Status
from ksparse.search.candidate import Candidate
from ksparse.search.incumbent import Incumbent
from ksparse.search.local import descended
from ksparse.search.problem import SupportProblem
from ksparse.search.starts import Start, feasible_candidate
from ksparse.search.strategy import choose_strategy

SMALLEST = 1e-200  # a value that squares may be taken of
CLOSER = 1.0 - 1e-6  # of the gap: what is proved is so after rounding


@dataclass(frozen=True)
class Wanted:
    """How close the bound is to come, and how far it may go for that."""

    gap: float  # of |φ|
    max_nodes: int | None = None
    n_jobs: int | None = None  # threads that bound nodes; what comes of it does not depend on them


@dataclass(frozen=True)
class Certificate:
    """A lower bound, how it came about, and why it went no further."""

    lower_bound: float = -math.inf
    nodes: int = 0
    status: Status | None = None  # OPTIMAL, or what stopped it; None where there is no bound to be had
    note: str = ""  # what is to be added to a message: how close, or why there is none and what would give one


@dataclass(frozen=True)
class Progress:
    """Where a tree stands."""

    nodes: int
    open: int
    best: float
    bound: float


def prove(problem: SupportProblem, incumbent: Incumbent, wanted: Wanted, tell: Callable[[Progress], None]) -> Certificate:
    """Bound, and branch until the bound is within the gap; better answers go into the incumbent."""
    assert incumbent.best is not None
    family, best = family_of(problem, incumbent.best, n_jobs=wanted.n_jobs), incumbent.best.value
    if isinstance(family, str):
        return Certificate(note=family)
    scale = family.scale
    search = TreeSearch(problem, incumbent, family)
    tree = Tree(family, search.solve, best / scale, CLOSER * wanted.gap, problem.pieces.deadline)
    status = Status.OPTIMAL
    try:
        for _ in _grown(tree, search):
            tell(progress_of(tree, scale))
            if wanted.max_nodes is not None and tree.nodes >= wanted.max_nodes and not tree.done:
                status = Status.ITERATION_LIMIT
                break
    except StopIteration:
        status = Status.CALLBACK_STOP
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    except np.linalg.LinAlgError:
        return Certificate(nodes=tree.nodes, note="; no lower bound: the values are too small or too large for it")
    bound = tree.bound * scale
    if status is Status.OPTIMAL and not tree.done:
        if tree.hopeless:
            return Certificate(nodes=tree.nodes, note=_FLAT)
        status = Status.TIME_LIMIT if problem.expired else Status.ITERATION_LIMIT
    note = f", to within {100 * wanted.gap:g} %" if status is Status.OPTIMAL else ""
    return Certificate(bound - 4.0 * EPS * abs(bound) if math.isfinite(bound) else bound, tree.nodes, status, note)


def progress_of(tree: Tree, scale: float) -> Progress:
    """Where a tree stands, in the units of φ."""
    return Progress(tree.nodes, len(tree.open), tree.best * scale, tree.bound * scale)


_FLAT = (
    "; no lower bound: some direction of φ has no curvature and C does not bound it; a ridge term, bounds on the variables, or more rows"
    " than columns would give one"
)


def family_of(problem: SupportProblem, best: Candidate, edge: float | None = None, n_jobs: int | None = None) -> Family | str:
    """How the problem is bounded, for values up to `edge`, or that of `best`; or why it cannot be, for a message."""
    pieces, model, settings = problem.pieces, problem.pieces.model, TreeSettings()
    if not math.isfinite(best.value):
        return "; no lower bound: the answer has no finite value"
    if abs(best.value) <= pieces.claimable(0.0) or abs(best.value) < SMALLEST:
        return "; no lower bound: the value is rounding"
    if not pieces.allowed.any():
        return "; no lower bound: no variable may be used"
    if problem.n > settings.largest:
        return f"; no lower bound: more than {settings.largest} variables"
    if pieces.spectral:
        return ComponentFamily(problem, best.value, settings)
    if not pieces.convex:
        return "; no lower bound: φ is not convex"
    if pieces.linear is None and (pieces.radius is None or model is None):
        return f"; no lower bound: C = {pieces.C} is not made of linear constraints"
    if model is None:
        composite = None if pieces.model_at(best.full(problem.n)) is None else pieces.loss.composite()
        return (
            "; no lower bound: nothing is known of φ but its values"
            if composite is None
            else SmoothFamily(problem, composite, best, settings, n_jobs)
        )
    program = Program.of(pieces, model, problem.k, best)
    return QuadraticFamily(program.boxed((best.value if edge is None else edge) / program.scale), settings, n_jobs)


def _grown(tree: Tree, search: TreeSearch) -> Iterator[None]:
    """The tree from its root on, now and then with a look for a better answer where it is most open."""
    tree.plant()
    if tree.open:
        tree.offer(search.descended(tree.family.promising(tree.open[0][2])))
    yield
    for turn, _ in enumerate(tree.grow()):
        if tree.open and turn % tree.family.looks == 0:
            tree.offer(search.descended(tree.family.promising(tree.open[0][2])))
        yield


class TreeSearch:
    """What a tree asks of the search: the best value on a support, and a descent from one."""

    def __init__(self, problem: SupportProblem, incumbent: Incumbent, family: Family) -> None:
        self.problem, self.incumbent, self.family = problem, incumbent, family
        self._tried: set[bytes] = set()

    def solve(self, support: Vector) -> Leaf:
        """The value and the bound on a support."""
        scale = self.family.scale
        candidate = self.problem.evaluate(support)
        if candidate is not None and self.incumbent.best is not None and candidate.value < self.incumbent.best.value:
            self.incumbent.best, self.incumbent.proved = candidate, False
        bound = self.problem.lower_bound(support) / scale
        if candidate is None:
            return Leaf(math.inf, bound)
        return Leaf(candidate.value / scale, max(bound, self.family.leaf_bound(support, candidate.full(self.problem.n)[support])))

    def descended(self, support: Vector) -> float:
        """The value that a descent from a support ends at; ∞ where it begins nowhere, or has begun there before."""
        key = np.sort(support).tobytes()
        strategy = choose_strategy(self.problem)
        if key in self._tried or not support.size or strategy.neighbourhood is None:
            return math.inf
        self._tried.add(key)
        start = feasible_candidate(self.problem, Start("tree", support))
        if start is None:
            return math.inf
        found = descended(strategy.search(self.problem), start)
        if self.incumbent.best is not None and found.value < self.incumbent.best.value:
            self.incumbent.best, self.incumbent.proved = found, False
        return found.value / self.family.scale
