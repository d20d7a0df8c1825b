"""Branch and bound around a solution: a lower bound, better solutions found on the way, and all supports that are nearly as good."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ksparse.certify.component_family import ComponentFamily
from ksparse.certify.program import Program, boxed
from ksparse.certify.quadratic_family import QuadraticFamily
from ksparse.certify.smooth_family import SmoothFamily
from ksparse.certify.tree import Family, Leaf, Tree, TreeSettings
from ksparse.numerics.bound import EPS
from ksparse.numerics.constraints import variables_that_fit
from ksparse.result import Status
from ksparse.search.candidate import Candidate, Incumbent
from ksparse.search.local import descended
from ksparse.search.problem import SupportProblem
from ksparse.search.starts import Start, feasible_candidate
from ksparse.search.strategy import choose_strategy
from ksparse.util.arrays import Vector
from ksparse.util.resources import OutOfTimeError, StoppedError, heard_by, pause

SMALLEST = 1e-200  # a value that squares may be taken of
NODE_LIMIT = "node limit (max_nodes) reached; the best point so far is returned"
CLOSER = 1.0 - 1e-6  # of the gap: what is proved is so after rounding
LEFT = 0.1  # of the gap: no more of it is left to the rounding of the value
ROUNDING = 1e-9  # of the value: a support at the edge is in
ENDED = {  # why a list may be incomplete: a status's own sentence speaks of a point
    Status.CALLBACK_STOP: "stopped by the callback",
    Status.INTERRUPTED: "interrupted",
    Status.TIME_LIMIT: "time limit reached",
    Status.UNBOUNDED: "φ is unbounded below over C",
}


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
    message: str = ""  # instead of the status's own sentence


@dataclass(frozen=True)
class Progress:
    """Where a tree stands."""

    nodes: int
    open: int
    best: float
    bound: float


def prove(
    problem: SupportProblem, incumbent: Incumbent, wanted: Wanted, tell: Callable[[Progress], None]
) -> Certificate:
    """Bound, and branch until the bound is within the gap; better answers go into the incumbent."""
    trees, scale, status = list[Tree](), 1.0, Status.OPTIMAL
    try:
        pause()
        families, best = families_of(problem, incumbent.found, wanted.n_jobs), incumbent.found.value
        if isinstance(families, str):
            return Certificate(note=families)
        scale = families[0].scale
        share = CLOSER * wanted.gap - min(
            incumbent.found.rounding / abs(best), LEFT * wanted.gap
        )  # so that φ(x) from the raw data is near
        searches = [LeafSolver(problem, incumbent, family) for family in families]
        trees = [
            Tree(
                family,
                search.solve,
                best / scale,
                share,
                problem.deadline,
                0.5 * problem.claim_tol(0.0) / scale,
            )
            for family, search in zip(families, searches, strict=True)
        ]
        for _ in _grown(trees, searches, lambda: tell(progress_of(trees, scale))):
            tell(progress_of(trees, scale))
            if wanted.max_nodes is not None and _nodes(trees) >= wanted.max_nodes and not _done(trees):
                status = Status.ITERATION_LIMIT
                break
    except (StopIteration, StoppedError):
        status = Status.CALLBACK_STOP
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    except OutOfTimeError:
        status = Status.TIME_LIMIT
    except np.linalg.LinAlgError:
        return Certificate(nodes=_nodes(trees), note="; no lower bound: the values are too small or too large for it")
    bound = _bound(trees) * scale
    if status is Status.OPTIMAL and not _done(trees):
        if any(tree.hopeless for tree in trees):
            return Certificate(nodes=_nodes(trees), note=f"; no lower bound: {why_hopeless(problem)}")
        if not problem.expired:  # nothing is left to branch on, and on some support the value is not proved so closely
            note = "; its lower bound comes no closer, since the best values on single supports are proved to no more than that"
            return Certificate(_rounded_down(bound), _nodes(trees), None, note)
        status = Status.TIME_LIMIT
    close = status is Status.OPTIMAL and incumbent.found.value - bound <= wanted.gap * abs(incumbent.found.value)
    note = f", to within {100 * wanted.gap:g} %" if close else ""
    return Certificate(
        _rounded_down(bound), _nodes(trees), status, note, NODE_LIMIT if status is Status.ITERATION_LIMIT else ""
    )


def _rounded_down(bound: float) -> float:
    return bound - 4.0 * EPS * abs(bound) if math.isfinite(bound) else bound


def progress_of(trees: Sequence[Tree], scale: float) -> Progress:
    """Where trees stand, in the units of φ."""
    best = min(tree.best for tree in trees)
    return Progress(_nodes(trees), sum(len(tree.open) for tree in trees), best * scale, _bound(trees) * scale)


def _nodes(trees: Sequence[Tree]) -> int:
    return sum(tree.nodes for tree in trees)


def _bound(trees: Sequence[Tree]) -> float:
    """What no point of any part falls below."""
    return min((tree.bound for tree in trees), default=-math.inf)


def _done(trees: Sequence[Tree]) -> bool:
    return all(tree.done for tree in trees)


def why_hopeless(problem: SupportProblem) -> str:
    """Say why a tree has no lower bound, and what would give one."""
    if problem.model is None:
        return "this loss needs a ridge term on every variable but one, or bounds on the variables"
    rows = ", or more rows than columns" if problem.loss.squares() is not None else ""
    remedy = f"a ridge term, bounds on the variables{rows}" if rows else "a ridge term or bounds on the variables"
    return f"some direction of φ has no curvature and C does not bound it; {remedy} would give one"


def families_of(problem: SupportProblem, best: Candidate, n_jobs: int | None = None) -> list[Family] | str:
    """How the problem is bounded, in parts; or why it cannot be, for a message.

    Where floors let k variables in only if they are among the smallest, supports of so many are a part by themselves,
    of few variables; what is left may have fewer, and its relaxation is much closer.
    """
    whole = family_of(problem, best, n_jobs=n_jobs)
    if isinstance(whole, str):
        return whole
    k, parts = problem.k, list[Family]()
    parted = problem.floors.any and not problem.rules.grouped  # groups are not counted by their variables
    while parted and problem.linear is not None and k > max(1, problem.forced.size):
        fits = variables_that_fit(problem.linear, *problem.floors.bounds(problem.linear), problem.allowed, k)
        fits[problem.forced] = True
        fits = problem.rules.usable_within(fits)
        if fits.sum() > TreeSettings().shrunk * problem.allowed.sum():
            break
        if fits.sum() >= k:
            part = family_of(problem.but(k=k, allowed=fits), best, n_jobs=n_jobs, exactly=True)
            assert not isinstance(part, str)
            parts.append(part)
        k -= 1
    if k == problem.k:
        return [whole]
    fewer = family_of(problem.but(k=k), best, n_jobs=n_jobs)
    assert not isinstance(fewer, str)
    return [fewer, *parts]


def family_of(
    problem: SupportProblem,
    best: Candidate,
    edge: float | None = None,
    n_jobs: int | None = None,
    exactly: bool = False,
) -> Family | str:
    """How the problem is bounded, for values up to `edge`, or that of `best`; or why it cannot be. `exactly`: no fewer than k nonzeros."""
    model, settings = problem.model, TreeSettings()
    if not math.isfinite(best.value):
        return "; no lower bound: the answer has no finite value"
    if abs(best.value) <= problem.claim_tol(0.0) or abs(best.value) < SMALLEST:
        return "; no lower bound: the value is rounding"
    if not problem.allowed.any():
        return "; no lower bound: no variable may be used"
    if problem.n > settings.largest:
        return f"; no lower bound: more than {settings.largest} variables"
    if problem.can.spectral:
        return ComponentFamily(problem, best.value, settings)
    if not problem.can.treated_as_convex:
        return "; no lower bound: φ is not convex"
    if problem.linear is None and (problem.can.radius is None or model is None):
        return f"; no lower bound: C = {problem.C} is not made of linear constraints"
    if problem.can.columns_on_demand:
        return "; no lower bound: there are too many columns to know all of them"
    if model is None:
        composite = None if problem.model_at(best.full(problem.n)) is None else problem.loss.composite()
        return (
            "; no lower bound: nothing is known of φ but its values"
            if composite is None
            else SmoothFamily(problem, composite, best, settings, n_jobs, best.value if edge is None else edge)
        )
    program = replace(Program.of(problem, model, problem.k, best), exactly=exactly).ruled(problem, problem.asked)
    pause()
    return QuadraticFamily(boxed(program, (best.value if edge is None else edge) / program.scale), settings, n_jobs)


def _grown(trees: Sequence[Tree], searches: Sequence[LeafSolver], listener: Callable[[], None]) -> Iterator[None]:
    """All roots, then one tree after the other, now and then with a look for a better answer where it is most open.

    The listener is called at every pause of a root.
    """
    for tree, search in zip(trees, searches, strict=True):
        with heard_by(listener):
            tree.plant()
        if tree.open:
            tree.offer(search.descended(tree.family.promising(tree.open[0][2])))
        yield
    for tree, search in zip(trees, searches, strict=True):
        tree.offer(min(other.best for other in trees))
        for turn, _ in enumerate(tree.grow()):
            if tree.open and turn % tree.family.looks == 0:
                tree.offer(search.descended(tree.family.promising(tree.open[0][2])))
            yield


class LeafSolver:
    """Solves single supports for a tree: the best value on one, and a descent from one."""

    def __init__(self, problem: SupportProblem, incumbent: Incumbent, family: Family) -> None:
        self.problem, self.incumbent, self.family = problem, incumbent, family
        self._tried: set[bytes] = set()

    def solve(self, support: Vector) -> Leaf:
        """The value and the bound on a support."""
        scale = self.family.scale
        if not self.problem.allows(support):  # the only one of its node
            return Leaf(math.inf, math.inf)
        candidate = self.problem.evaluate(support)
        if candidate is not None and self.incumbent.best is not None and candidate.value < self.incumbent.found.value:
            self.incumbent.best, self.incumbent.proved = candidate, False
        bound = self.problem.lower_bound(support) / scale
        if candidate is None:
            return Leaf(math.inf, bound)
        return Leaf(
            candidate.value / scale,
            max(bound, self.family.leaf_bound(support, candidate.full(self.problem.n)[support])),
        )

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
        if self.incumbent.best is not None and found.value < self.incumbent.found.value:
            self.incumbent.best, self.incumbent.proved = found, False
        return found.value / self.family.scale


@dataclass(frozen=True)
class Near:
    """The supports that were found, the best first, and whether they are all."""

    candidates: list[Candidate]
    complete: bool
    note: str  # why not
    nodes: int


def near_supports(
    problem: SupportProblem,
    incumbent: Incumbent,
    within: float,
    at_most: int,
    tell: Callable[[Progress], None],
    searched: Status,
) -> Near:
    """Find every support whose best value is within a share of the best of all.

    Where the search was stopped (`searched`), or where there is no lower bound, these are the supports that the search
    has seen.
    """
    found = _Found(problem, incumbent, within)
    if searched.early:
        return Near(found.all()[:at_most], False, ENDED[searched], 0)
    tree, note = None, ""
    try:
        family = family_of(problem, incumbent.found, found.edge + ROUNDING * abs(found.edge))
        if isinstance(family, str):
            return Near(found.all()[:at_most], False, _unavailable(family.removeprefix("; no lower bound: ")), 0)
        scale = family.scale
        search = LeafSolver(problem, incumbent, family)
        tree = planted = Tree(
            family, search.solve, incumbent.found.value / scale, -within - ROUNDING, problem.deadline, every=True
        )
        with heard_by(lambda: tell(progress_of([planted], scale))):
            tree.plant()
        for _ in tree.grow():
            tell(progress_of([tree], scale))
            if len(found.all()) > at_most:
                note = f"there are more than at_most = {at_most}"
                break
    except (StopIteration, StoppedError):
        note = ENDED[Status.CALLBACK_STOP]
    except KeyboardInterrupt:
        note = ENDED[Status.INTERRUPTED]
    except OutOfTimeError:
        note = ENDED[Status.TIME_LIMIT]
    except np.linalg.LinAlgError:
        note = _unavailable("the values are too small or too large for it")
    if not note and (tree is None or (tree.open and not tree.done) or not tree.nodes):
        hopeless = tree is not None and tree.hopeless
        note = _unavailable(why_hopeless(problem)) if hopeless else ENDED[Status.TIME_LIMIT]
    if not note and problem.cache.undecided:
        note = "on some supports arithmetic could not find the best point"
    return Near(found.all()[:at_most], not note, note, 0 if tree is None else tree.nodes)


def _unavailable(why: str) -> str:
    return f"no lower bound is available ({why})"


class _Found:
    """What has been seen so far that is good enough."""

    def __init__(self, problem: SupportProblem, incumbent: Incumbent, within: float) -> None:
        self.problem, self.incumbent, self.within = problem, incumbent, within

    @property
    def edge(self) -> float:
        """The value up to which a support is good enough."""
        best = self.incumbent.found.value
        return best + self.within * abs(best)

    def all(self) -> list[Candidate]:
        """Return what is best on supports that are allowed, within the edge, the best first, each set of nonzeros once."""
        edge = self.edge + ROUNDING * abs(self.edge)
        good = [
            one
            for key, one in self.problem.cache.evaluated.items()
            if one is not None and one.value <= edge and self._allowed(key, one)
        ]
        if not self.problem.rules.any or not good:
            good.append(self.incumbent.found)
        once = {
            one.support[one.x != 0].tobytes(): one for one in sorted(good, key=lambda one: -one.value)
        }  # forced ones may be 0
        return sorted(once.values(), key=lambda one: (one.value, tuple(one.support)))

    def _allowed(self, key: bytes, one: Candidate) -> bool:
        """Return whether the support that was asked about holds all forced variables and is allowed.

        Without rules only the forced variables and the nonzeros count; with rules the support must obey, whatever comes
        out as 0.
        """
        problem, asked = self.problem, np.frombuffer(key, dtype=np.intp)
        if not np.isin(problem.forced, asked).all():
            return False
        return (
            problem.rules.is_satisfied(asked) and problem.allows(asked)
            if problem.rules.any
            else problem.allows(one.support)
        )
