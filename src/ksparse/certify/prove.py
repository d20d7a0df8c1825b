"""Branch and bound around a solution: a lower bound with better solutions, or all supports that are nearly as good."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ksparse.certify.component_family import ComponentFamily
from ksparse.certify.program import ScaledProblem
from ksparse.certify.quadratic_family import RESPLIT, QuadraticFamily
from ksparse.certify.smooth_family import SmoothFamily
from ksparse.certify.tree import Family, LeafSolver, Tree
from ksparse.numerics.bound import EPS
from ksparse.numerics.constraints import variables_that_fit
from ksparse.result import Status
from ksparse.search.candidate import Candidate, Incumbent
from ksparse.search.explore import STOPS, stop_status
from ksparse.search.problem import SupportProblem
from ksparse.util.resources import heard_by, pause

LARGEST = 6_000  # maximum number of variables, since all of H is stored and factorised
SMALLEST = 1e-200  # absolute value whose square does not underflow
NODE_LIMIT = "node limit (max_nodes) reached (best solution found so far)"
SAFETY = 1.0 - 1e-6  # fraction of the gap to reach, so that the gap holds after rounding
VALUE_ROUNDING = 0.1  # largest fraction of the gap that is kept for the rounding of the value
EDGE = 1e-9  # relative: a support counts if its value exceeds the threshold by no more


class NoBoundError(Exception):
    """No lower bound is available; the message says why."""


@dataclass(frozen=True)
class GapRequest:
    """The optimality gap to reach, and limits on the work for it."""

    gap: float  # relative to |φ|
    max_nodes: int | None = None
    n_jobs: int | None = None  # threads that bound nodes; the bounds do not depend on it


@dataclass(frozen=True)
class Certificate:
    """A lower bound, with the reason the proof ended."""

    lower_bound: float = -math.inf
    nodes: int = 0
    status: Status | None = None  # OPTIMAL, or what stopped it; None if there is no bound
    note: str = ""  # added to the message: why there is no bound, and what would give one
    message: str = ""  # replaces that of the status


@dataclass(frozen=True)
class TreeProgress:
    """The state of some trees, in the units of φ."""

    nodes: int
    open: int
    best: float
    bound: float

    @classmethod
    def of(cls, trees: Sequence[Tree], scale: float) -> TreeProgress:
        """Return the state of trees that share the whole problem."""
        best = min((tree.incumbent_value for tree in trees), default=math.inf)
        bound = min((tree.bound for tree in trees), default=-math.inf)
        nodes, n_open = sum(tree.nodes for tree in trees), sum(len(tree.queue) for tree in trees)
        return cls(nodes, n_open, best * scale, bound * scale)


Notify = Callable[[TreeProgress], None]


def _cause(status: Status) -> str:
    """Return why a run was stopped: the message of its status without the part in brackets."""
    return status.message.split(" (")[0]


def branch_and_bound(problem: SupportProblem, incumbent: Incumbent, request: GapRequest, notify: Notify) -> Certificate:
    """Branch until the bound is within the gap of the incumbent; better candidates go into it."""
    best, trees, scale, status = incumbent.found, list[Tree](), 1.0, Status.OPTIMAL

    def progress() -> TreeProgress:
        return TreeProgress.of(trees, scale)

    def done() -> bool:
        return all(tree.done for tree in trees)

    try:
        pause()
        families = families_of(problem, best)
        scale = families[0].scale
        # φ(x) is recomputed from the raw data, and must be within the gap too
        gap = SAFETY * request.gap - min(best.rounding / abs(best.value), VALUE_ROUNDING * request.gap)
        min_gap = 0.5 * problem.claim_tol(0.0) / scale
        for family in families:
            family.n_jobs, leaves = request.n_jobs, LeafSolver(problem, incumbent, family)
            trees.append(Tree(family, leaves, best.value / scale, gap, problem.deadline, min_gap))
        for _ in _rounds(trees, lambda: notify(progress())):
            notify(progress())
            if request.max_nodes is not None and progress().nodes >= request.max_nodes and not done():
                status = Status.ITERATION_LIMIT
                break
        if status is Status.OPTIMAL and any(tree.has_no_bound for tree in trees):
            raise NoBoundError(_why_unbounded(problem))
    except STOPS as stop:
        status = stop_status(stop)
    except (NoBoundError, np.linalg.LinAlgError) as error:
        return Certificate(nodes=progress().nodes, note=f"; no lower bound: {_reason(error)}")
    nodes, bound, best = progress().nodes, progress().bound, incumbent.found
    rounded_down = bound - 4.0 * EPS * abs(bound) if math.isfinite(bound) else bound
    if status is Status.OPTIMAL and not done():
        if not problem.expired:  # no node is left to branch on
            note = "; the requested gap could not be reached: subproblem solutions are not accurate enough"
            return Certificate(rounded_down, nodes, None, note)
        status = Status.TIME_LIMIT
    message = NODE_LIMIT if status is Status.ITERATION_LIMIT else ""
    if status is Status.OPTIMAL and request.gap > 0 and best.value - bound <= request.gap * abs(best.value):
        message = f"optimality gap at most {100 * request.gap:g} % (proved)"
    return Certificate(rounded_down, nodes, status, message=message)


def _rounds(trees: Sequence[Tree], listener: Callable[[], None]) -> Iterator[None]:
    """Solve all roots, with the listener called at pauses; then run one tree after another, with some descents."""
    for tree in trees:
        with heard_by(listener):
            tree.solve_root()
        tree.improve_incumbent()
        yield
    for tree in trees:
        tree.update_incumbent(min(other.incumbent_value for other in trees))
        for turn, _ in enumerate(tree.run()):
            if turn % tree.family.heuristic_interval == 0:
                tree.improve_incumbent()
            yield


def _reason(error: Exception) -> str:
    """Return why there is no lower bound."""
    return str(error) if isinstance(error, NoBoundError) else "the values are too small or too large for it"


def _why_unbounded(problem: SupportProblem) -> str:
    """Return why a root has no lower bound, and what would give one."""
    if problem.model is None:
        return "this loss needs a ridge term on every variable but one, or bounds on the variables"
    remedy = "a ridge term or bounds on the variables"
    if problem.loss.squares() is not None:
        remedy = "a ridge term, bounds on the variables, or more rows than columns"
    return f"some direction of φ has no curvature and C does not bound it; {remedy} would give one"


def families_of(problem: SupportProblem, best: Candidate) -> list[Family]:
    """Return the families that bound the problem, one per part; raise `NoBoundError` if there is none.

    If only variables with small minimum sizes can be in a support of k, such supports are a part of their own, with few
    variables. The other supports have fewer than k variables, and their relaxation is much tighter.
    """
    whole = family_of(problem, best)
    k, parts, linear = problem.k, list[Family](), problem.linear
    divisible = problem.floors.any and problem.rules.group is None  # groups are not counted by their variables
    while divisible and linear is not None and k > max(1, problem.forced.size):
        fits = variables_that_fit(linear, *problem.floors.bounds(linear), problem.allowed, k)
        fits[problem.forced] = True
        fits = problem.rules.usable_within(fits)
        if fits.sum() > RESPLIT * problem.allowed.sum():
            break
        if fits.sum() >= k:
            parts.append(family_of(problem.with_changes(k=k, allowed=fits), best, exactly=True))
        k -= 1
    return [whole] if k == problem.k else [family_of(problem.with_changes(k=k), best), *parts]


def family_of(problem: SupportProblem, best: Candidate, most: float | None = None, exactly: bool = False) -> Family:
    """Return the family that bounds the problem; raise `NoBoundError` if there is none.

    Only values up to `most` count, by default that of `best`; `exactly` excludes supports of fewer than k variables.
    """
    threshold = best.value if most is None else most
    if not math.isfinite(best.value):
        raise NoBoundError("the solution has no finite value")
    if abs(best.value) <= problem.claim_tol(0.0) or abs(best.value) < SMALLEST:
        raise NoBoundError("the objective is zero to rounding")
    if not problem.allowed.any():
        raise NoBoundError("no variable may be used")
    if problem.n > LARGEST:
        raise NoBoundError(f"more than {LARGEST} variables")
    if problem.can.spectral:
        return ComponentFamily(problem, best.value)
    if not problem.can.treated_as_convex:
        raise NoBoundError("φ is not convex")
    model = problem.model
    if problem.linear is None and (problem.can.radius == math.inf or model is None):
        raise NoBoundError(f"C = {problem.C} is not polyhedral")
    if problem.columns_on_demand:
        raise NoBoundError("there are too many columns to hold all of them")
    if model is not None:
        scaled = replace(ScaledProblem.of(problem, model, best), exactly=exactly)
        pause()
        return QuadraticFamily(scaled.tightened(threshold / scaled.scale))
    composite = None if problem.can.model_at(best.full(problem.n)) is None else problem.loss.composite()
    if composite is None:
        raise NoBoundError("none is implemented for this loss (see ks.DataFit)")
    return SmoothFamily(problem, composite, best, threshold)


def enumerate_near_optimal(
    problem: SupportProblem, incumbent: Incumbent, within: float, at_most: int, searched: Status, notify: Notify
) -> tuple[list[Candidate], str, int]:
    """Return the best points of all supports that are within a fraction of the best value, the best first.

    Also return why the list may be incomplete, or "", and the number of nodes. If the search was stopped (`searched`)
    or there is no lower bound, the supports are those that the search has evaluated.
    """
    trees, scale, note = list[Tree](), 1.0, _cause(searched) if searched.early else ""

    def report() -> None:
        notify(TreeProgress.of(trees, scale))

    try:
        if not note:
            family = family_of(problem, incumbent.found, _threshold(incumbent.found, within))
            scale, leaves = family.scale, LeafSolver(problem, incumbent, family)
            value = incumbent.found.value / scale
            tree = Tree(family, leaves, value, -within - EDGE, problem.deadline, enumerate_all=True)
            trees.append(tree)
            with heard_by(report):
                tree.solve_root()
            for _ in tree.run():
                report()
                if len(_near_optimal(problem, incumbent, within)) > at_most:
                    note = f"there are more than at_most = {at_most}"
                    break
            if not note and tree.queue and not tree.done:
                if tree.has_no_bound:
                    raise NoBoundError(_why_unbounded(problem))
                note = _cause(Status.TIME_LIMIT)
    except STOPS as stop:
        note = _cause(stop_status(stop))
    except (NoBoundError, np.linalg.LinAlgError) as error:
        note = f"no lower bound is available ({_reason(error)})"
    if not note and problem.cache.undecided:
        note = "on some supports the best point could not be computed reliably"
    return _near_optimal(problem, incumbent, within)[:at_most], note, sum(tree.nodes for tree in trees)


def _threshold(best: Candidate, within: float) -> float:
    """Return the value up to which a support is nearly as good."""
    threshold = best.value + within * abs(best.value)
    return threshold + EDGE * abs(threshold)


def _near_optimal(problem: SupportProblem, incumbent: Incumbent, within: float) -> list[Candidate]:
    """Return the best candidates on evaluated supports up to the threshold, each set of nonzeros once, the best first.

    A support must hold the forced variables. With rules it must satisfy them itself, even if some of its values are 0;
    without, its nonzeros must be allowed.
    """
    best, rules = incumbent.found, problem.rules
    good, threshold = list[Candidate](), _threshold(best, within)
    for key, one in problem.cache.evaluated.items():
        if one is None or one.value > threshold:
            continue
        support = np.frombuffer(key, dtype=np.intp)
        held = support if rules.any else one.support
        satisfied = problem.allows(held) and (not rules.any or rules.is_satisfied(support))
        if satisfied and np.isin(problem.forced, support).all():
            good.append(one)
    if not rules.any or not good:
        good.append(best)
    nonzeros = {one.support[one.x != 0].tobytes(): one for one in sorted(good, key=lambda one: -one.value)}
    return sorted(nonzeros.values(), key=lambda one: (one.value, tuple(one.support)))
