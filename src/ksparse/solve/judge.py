"""Build every Result: recompute its values from x and the raw data, and derive success from those values alone.

Rounding (paper, Sec. 6.2) keeps the k largest entries, fixes the rest to 0 and re-solves the k-variable problem over C.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ksparse.certify.prove import Certificate
from ksparse.errors import InfeasibleError, NotFiniteError, UnboundedError
from ksparse.firstorder.loop import Run
from ksparse.firstorder.methods import Method
from ksparse.firstorder.problem import Problem
from ksparse.losses import Loss
from ksparse.result import Result, Status, Trace
from ksparse.search.candidate import Incumbent
from ksparse.search.polish import (
    PolishedPoint,
    entries_of,
    polish,
    polish_candidate,
    residual_at_zero,
    restricted_problem,
    slow_to_project,
)
from ksparse.search.problem import NEGLIGIBLE, PROOF, SupportProblem
from ksparse.sets import ConvexSet
from ksparse.sets.base import FEASIBLE
from ksparse.solve.request import Request, evaluations_of
from ksparse.util.arrays import (
    Array,
    Vector,
    embed,
    epsilon,
    finite,
    indices_of,
    like,
    namespace,
    read,
    take,
    to_float64,
)
from ksparse.util.resources import OutOfTimeError

NOTHING = Certificate()  # proved
STATIONARY = 1e-6  # a recomputed relative residual below this is called stationary
ACCEPTED = 1e-2  # one above this is no success, however little F changed
SINGLE = 1e-5  # of φ: what an answer in single precision may lose by its own rounding
DUST = 1e-5  # relative to the largest entry
STEP_FROM_0 = 1e-8  # of φ(0): what a step from 0 must lower φ by to show that 0 is not stationary


def judge_penalized(problem: Problem, run: Run, method: Method, elapsed: float, before: tuple[int, int]) -> Result:
    """The result of a penalised run."""
    judge = Problem(problem.loss, problem.penalty, problem.C, problem.n, problem.products)
    point = judge.point(run.x)
    residual = method.residual(judge, point)
    status = Status.STATIONARY if run.status is Status.SETTLED and residual <= STATIONARY else run.status
    return _result(
        run.x, judge.F(point) if epsilon(run.x) < 1e-10 else _in_double(problem, run.x), problem.C, None, residual, status, ACCEPTED,
        nit=run.nit, evaluations=_evaluations(problem.loss, before),
        elapsed=elapsed, method=method.name, rho=None, trace=run.trace,
    )  # fmt: skip


def judge_sparse(request: Request, rho: float | None, run: Run, name: str, rounded: Callable[[], Rounded]) -> Result:
    """The result of a run on the k-sparse problem: its x made k-sparse by `rounded`, and judged."""
    C, k = request.C, request.k
    x, status, residual, k_sparse, accepted = run.x, run.status, math.inf, False, ACCEPTED
    try:
        if status is Status.UNBOUNDED:
            raise UnboundedError(status.message)
        found = rounded()
        x = like(embed(found.polished.z, found.support, int(x.shape[0])), request.loss.kind)
        residual, k_sparse = found.polished.residual, found.k_sparse
        accepted = STATIONARY if found.solved and epsilon(x) < 1e-10 else ACCEPTED
    except UnboundedError:  # nothing to re-solve: φ has no minimum on the support
        status, x = Status.UNBOUNDED, cut_to_sparse(C, x, k)
    except KeyboardInterrupt:
        status, x = Status.INTERRUPTED, cut_to_sparse(C, x, k)
    if status is Status.SETTLED and residual <= STATIONARY:
        status = Status.STATIONARY
    return _result(
        x, value_of(request.loss, x), C, k, residual, status, accepted,
        nit=run.nit, evaluations=_evaluations(request.loss, request.before), elapsed=request.elapsed,
        method=name, rho=rho, trace=run.trace, outcomes=[{"k_sparse": k_sparse, "F": run.F}], passes=request.passes,
    )  # fmt: skip


def judge_search(
    request: Request, problem: SupportProblem, incumbent: Incumbent, status: Status, certificate: Certificate = NOTHING
) -> Result:
    """The result of a search over supports: its best candidate re-solved on the raw data, and judged."""
    best = incumbent.found
    status = status if certificate.status is None else certificate.status
    if status is Status.SWAP_OPTIMAL and not incumbent.proved:
        status = Status.STATIONARY  # of another support, before a better one took its place
    z, residual = best.x, math.inf
    try:
        if not status.good and slow_to_project(problem, best.support):
            raise OutOfTimeError
        polished = polish_candidate(problem, best)
        z, residual = polished.z, polished.residual
    except (UnboundedError, InfeasibleError, NotFiniteError, KeyboardInterrupt) as error:
        if status is not Status.UNBOUNDED:
            status = Status.INTERRUPTED if isinstance(error, KeyboardInterrupt) else Status.NUMERICAL_TROUBLE
    except OutOfTimeError:  # the candidate is as good as it is
        status = Status.TIME_LIMIT if status.good else status
    x = like(embed(z, entries_of(problem, best.support), request.n), request.loss.kind)
    fun = value_of(request.loss, x)
    bound = certificate.lower_bound
    if bound > fun and bound > fun + _owed(
        problem, fun, x
    ):  # a bound that a point is below is none, whatever it rests on
        certificate = Certificate(note="; no lower bound: arithmetic contradicts the one that was found")
        status = Status.STATIONARY if status is Status.OPTIMAL else status
    if status in (Status.OPTIMAL, Status.SWAP_OPTIMAL) and fun > best.value + best.rounding + _owed(
        problem, best.value, x
    ):
        status = Status.STATIONARY  # what was proved was proved of a value that x does not have
    accepted = STATIONARY if epsilon(x) < 1e-10 else ACCEPTED
    if status in (Status.OPTIMAL, Status.SWAP_OPTIMAL) and not (residual <= accepted and request.C.contains(x)):
        status = Status.STATIONARY  # proved of a point, but not of the one that polishing left
    if status is Status.STATIONARY and residual > STATIONARY:
        status = Status.SETTLED
    gap, note = problem.relative_gap(fun, certificate.lower_bound), certificate.note
    if status is Status.OPTIMAL and not note and gap <= PROOF < gap_between(fun, certificate.lower_bound):
        note = f", to within {NEGLIGIBLE:g} of φ(0), as far as arithmetic can tell"
    return _result(
        x, fun, request.C, problem.asked, residual, status, accepted,
        allowed=_allowed(problem, x),
        nit=incumbent.iterations, evaluations=_evaluations(request.loss, request.before), elapsed=request.elapsed,
        method="auto", rho=None, trace=_search_trace(incumbent),
        swaps=incumbent.swaps, proved=incumbent.proved and status in (Status.OPTIMAL, Status.SWAP_OPTIMAL), outcomes=incumbent.records,
        lower_bound=certificate.lower_bound, gap=gap, nodes=certificate.nodes, note=note,
        message=certificate.message if status is certificate.status else "", passes=request.passes,
    )  # fmt: skip


def _allowed(problem: SupportProblem, x: Array) -> bool:
    """Return whether x has at most k nonzeros, none of them barred or below its floor, and whether the rules allow them."""
    support = indices_of(x != 0)
    least = (1.0 - max(FEASIBLE, 8.0 * epsilon(x))) * problem.floors.size
    if problem.floors.any and (np.abs(to_float64(take(x, support))) < least[support]).any():
        return False
    return problem.allows(np.union1d(support // problem.width, problem.forced).astype(np.intp))


def gap_between(fun: float, bound: float) -> float:
    """(fun − bound)/|fun|, 0 where they meet; ∞ where there is no bound, or nothing to measure it by."""
    if fun <= bound:
        return 0.0
    return (fun - bound) / abs(fun) if fun else math.inf


def _in_double(problem: Problem, x: Array) -> float:
    """F at an x in single precision, summed in double."""
    return value_of(problem.loss, x) + problem.penalty.value(to_float64(x))


def value_of(loss: Loss, x: Array) -> float:
    """Return φ(x) from the raw data; single-precision data are summed in double on x's support, or on one variable where x = 0."""
    if epsilon(x) < 1e-10:
        value = loss.value(x)
    else:
        support = indices_of(x != 0)
        support = support if support.size else np.zeros(1, dtype=np.intp)
        value = loss.restrict(support).as_float64().value(to_float64(take(x, support)))
    loss.check_least(x, value)
    return value


def _owed(problem: SupportProblem, value: float, x: Array) -> float:
    """By how much φ(x) may exceed what was proved: as little as is claimed, or what rounding x to its own precision costs."""
    if epsilon(x) < 1e-10:
        return problem.claim_tol(value)
    return SINGLE * (abs(value) + (0.0 if problem.model is None else abs(problem.model.constant)))


def judge_given(
    loss: Loss, C: ConvexSet, k: int, x: Vector, status: Status, elapsed: float, method: str = "batch"
) -> Result:
    """The result of a point that was found among many, by nothing but itself and the raw data."""
    support, residual, fun = indices_of(x != 0), 0.0, value_of(loss, x)
    if support.size:
        problem = restricted_problem(loss, C, support)
        residual = problem.residual(problem.point(x[support]))
    elif status is not Status.OPTIMAL:  # over the k variables that pull most: an empty support shows nothing
        step = np.abs(C.project(-to_float64(loss.gradient(like(np.zeros_like(x), loss.kind)))))
        pulling = np.sort(np.argsort(-step, kind="stable")[: min(k, np.count_nonzero(step))])
        residual = residual_at_zero(loss, C, pulling, STEP_FROM_0 * abs(fun)) if pulling.size else 0.0
    if status is Status.STATIONARY and residual > STATIONARY:
        status = Status.SETTLED
    none = np.zeros(0)
    only: dict[str, Any] = (
        {"lower_bound": fun, "gap": 0.0, "proved": True} if status is Status.OPTIMAL else {}
    )  # C has no other with so few nonzeros
    return _result(
        like(x, loss.kind), fun, C, k, residual, status, STATIONARY, nit=0, evaluations=(1, 1), elapsed=elapsed,
        method=method, rho=None, trace=Trace(none, none, none, none, np.zeros(0, dtype=np.int64)), **only,
    )  # fmt: skip


def best_of(results: list[Result], elapsed: float, exact: bool) -> Result:
    """Return the best result of several weights, with a row for each; a limit or a stop of the last one is that of all.

    Successes come first. If the method's penalty is `exact`, those whose own point was k-sparse come before the rounded
    ones, as the paper chooses the weight.
    """
    ends = [0.0, *(r.elapsed for r in results)]  # each knows the seconds since the call
    outcomes = [
        {
            "rho": r.rho,
            "F": r.outcomes[0]["F"],
            "fun": r.fun,
            "nonzeros": int(r.support.size),
            "k_sparse": r.outcomes[0]["k_sparse"],
            "maxcv": r.maxcv,
            "status": r.status,
            "nit": r.nit,
            "elapsed": end - begin,
        }
        for r, begin, end in zip(results, ends, ends[1:], strict=False)
    ]
    best, last = (
        min(results, key=lambda r: (not r.success, exact and not r.outcomes[0]["k_sparse"], r.fun)),
        results[-1].status,
    )
    fields: dict[str, Any] = {**best.__dict__, "elapsed": elapsed, "outcomes": outcomes}
    fields |= {name: sum(getattr(r, name) for r in results) for name in ("nfev", "njev")}
    if last.early:
        fields |= {"status": last, "message": last.message, "success": False}
    return Result(**fields)


def restated(found: Result, fun: float, units: Callable[[Any], Any]) -> Result:
    """The same answer to the same problem in other units: φ there, and `units` for every other value of φ on the way."""
    rows = [row | {name: units(row[name]) for name in ("F", "fun") if name in row} for row in found.outcomes]
    bound = float(units(found.lower_bound)) if math.isfinite(found.lower_bound) else found.lower_bound
    trace = replace(found.trace, F=units(found.trace.F))
    return replace(found, fun=fun, trace=trace, outcomes=rows, lower_bound=bound, gap=_gap_of(found, fun, bound))


def moved(found: Result, constant: float) -> Result:
    """The same answer to the same problem with a constant added to φ."""
    rows = [row | {name: row[name] + constant for name in ("F", "fun") if name in row} for row in found.outcomes]
    fun, bound = found.fun + constant, found.lower_bound + constant
    return replace(
        found,
        fun=fun,
        trace=replace(found.trace, F=found.trace.F + constant),
        outcomes=rows,
        lower_bound=bound,
        gap=_gap_of(found, fun, bound),
    )


def _gap_of(found: Result, fun: float, bound: float) -> float:
    """The gap in other units; one that is rounding beside φ(0) stays what it is."""
    apart = gap_between(fun, bound)
    return min(found.gap, apart) if found.gap < gap_between(found.fun, found.lower_bound) else apart


def interrupted(found: Result) -> Result:
    """An answer that was to be followed by others, which an interrupt cut off."""
    status = Status.INTERRUPTED
    return replace(found, status=status, message=status.message, success=False)


def uninterrupted(found: Result) -> Result:
    """Return the answer; raise the interrupt again where the answer is one of several that are needed together."""
    if found.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return found


def _result(
    x: Array, fun: float, C: ConvexSet, k: int | None, residual: float, status: Status, accepted: float,
    *, nit: int, evaluations: tuple[int, int], elapsed: float, method: str, rho: float | None, trace: Trace, note: str = "",
    message: str = "", allowed: bool | None = None, **more: Any,
) -> Result:  # fmt: skip
    fun, residual, maxcv = read(fun, residual, C.violation(x))
    support = indices_of(x != 0)
    within = (k is None or support.size <= k) if allowed is None else allowed  # rules count for themselves
    feasible = C.contains(x) and within
    sound = math.isfinite(fun) and finite(x) and residual <= accepted
    if status.good and not (math.isfinite(fun) and finite(x)):
        status = Status.NUMERICAL_TROUBLE
    return Result(
        x=x,
        fun=fun,
        success=bool(status.good and feasible and sound),
        status=status,
        message=(message or status.message) + note,
        nit=nit,
        nfev=evaluations[0],
        njev=evaluations[1],
        maxcv=maxcv,
        support=support,
        k=k,
        elapsed=elapsed,
        method=method,
        rho=rho,
        residual=residual,
        trace=trace,
        **more,
    )


def _evaluations(loss: Loss, before: tuple[int, int]) -> tuple[int, int]:
    """Evaluations of φ and ∇φ since `before`."""
    after = evaluations_of(loss)
    return after[0] - before[0], after[1] - before[1]


def _search_trace(incumbent: Incumbent) -> Trace:
    """One entry per record: the best value after it."""
    values = np.minimum.accumulate([row["fun"] for row in incumbent.records]) if incumbent.records else np.zeros(0)
    unknown = np.full(len(values), np.nan)
    elapsed = np.array([row["elapsed"] for row in incumbent.records])
    return Trace(values, unknown, unknown, elapsed, np.zeros(len(values), dtype=np.int64))


def cut_to_sparse(C: ConvexSet, x: Array, k: int) -> Array:
    """A k-sparse point of C near x: the k largest entries, projected onto C on their support."""
    support = C.sparse_support(namespace(x).abs(x), k)
    return embed(C.restrict(support).like(x).project(take(x, support)), support, int(x.shape[0]))


@dataclass(frozen=True)
class Rounded:
    """A k-sparse point of C, by its support."""

    support: Vector
    polished: PolishedPoint
    k_sparse: bool  # whether the method's own point had at most k nonzeros, but for dust
    solved: bool = True  # whether φ was minimised anew on the support


def round_to_sparse(loss: Loss, C: ConvexSet, x: Array, k: int, deadline: float = math.inf) -> Rounded:
    """The support that a nearly k-sparse x is rounded to, and the best point on it.

    The support is the k largest entries, except where C has no point on them: bounds that exclude 0 and budgets come
    first.
    """
    support = C.sparse_support(namespace(x).abs(x), k)
    return Rounded(
        support, polish(loss, C, support, to_float64(take(x, support)), deadline), _without_dust(x).size <= k
    )


def _without_dust(x: Array) -> Vector:
    """The indices of entries that are not negligible next to the largest."""
    size = np.abs(to_float64(x))
    return np.flatnonzero(size > DUST * size.max(initial=0.0))


def take_as_sparse(loss: Loss, C: ConvexSet, x: Array, k: int, deadline: float = math.inf) -> Rounded:
    """x as it is, its dust swept, where at most k entries are more than dust; else rounded like any other.

    The methods with an exact penalty end at k-sparse points, but an interior-point solver leaves 1e-7 where 0 is meant.
    """
    support = _without_dust(x)
    if support.size and support.size <= k:
        try:
            problem = restricted_problem(loss, C, support)
        except InfeasibleError:
            return _rounded(loss, C, x, k, deadline)
        point = problem.point(problem.C.project(to_float64(x)[support]))
        found = PolishedPoint(point.x, problem.F(point), problem.residual(point), problem.products)
        return Rounded(support, found, k_sparse=True, solved=False)
    return _rounded(loss, C, x, k, deadline)


def _rounded(loss: Loss, C: ConvexSet, x: Array, k: int, deadline: float) -> Rounded:
    """x rounded; or 0, where C has it and all of x is dust beside what the re-solve finds: a support of noise is no answer."""
    found = round_to_sparse(loss, C, x, k, deadline)
    largest, zero = float(np.abs(to_float64(x)).max(initial=0.0)), 0.0 * x
    if largest > DUST * np.abs(found.polished.z).max(initial=0.0) or not C.contains(zero):
        return found
    value = loss.value(zero)
    residual = residual_at_zero(loss, C, found.support, STEP_FROM_0 * abs(value))
    at_zero = PolishedPoint(np.zeros(0), value, residual, found.polished.products)
    return Rounded(np.zeros(0, dtype=np.intp), at_zero, found.k_sparse, solved=False)
