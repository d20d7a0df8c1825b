"""Build every Result: recompute its values from x and the raw data, and derive success from those values alone.

Rounding (paper, Sec. 6.2) keeps the k largest entries, fixes the rest to 0 and re-solves the k-variable problem over C.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ksparse.certify.prove import Certificate
from ksparse.errors import InfeasibleError, NotFiniteError, UnboundedError
from ksparse.firstorder.loop import Run
from ksparse.firstorder.methods import Method
from ksparse.firstorder.problem import Problem
from ksparse.losses import Loss
from ksparse.losses.base import evaluations_since
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
from ksparse.solve.request import Request
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

UNPROVED = Certificate()
PROVED = (Status.OPTIMAL, Status.SWAP_OPTIMAL)
STATIONARY = 1e-6  # relative residual up to which a point is called stationary
ACCEPTED = 1e-2  # relative residual above which a run is no success, however little F changed
SINGLE = 1e-5  # of φ: what rounding x to single precision may cost
DUST = 1e-5  # entries that are smaller relative to the largest count as 0
STEP_FROM_0 = 1e-8  # of φ(0): what a step from 0 must lower φ by to show that 0 is not stationary


@dataclass(frozen=True)
class RoundedPoint:
    """A k-sparse point of C, by its support."""

    support: Vector
    polished: PolishedPoint
    k_sparse: bool  # whether the method's own point had at most k nonzeros, except for dust
    reoptimised: bool = True  # whether φ was minimised on the support


def judge_penalized(problem: Problem, run: Run, method: Method, elapsed: float, before: tuple[int, int]) -> Result:
    """Return the result of a penalised run."""
    judge = Problem(problem.loss, problem.penalty, problem.C, problem.n)
    point, x = judge.point(run.x), run.x
    residual = method.residual(judge, point)
    status = Status.STATIONARY if run.status is Status.SETTLED and residual <= STATIONARY else run.status
    fun = judge.F(point) if epsilon(x) < 1e-10 else value_of(problem.loss, x) + problem.penalty.value(to_float64(x))
    return _result(
        x, fun, problem.C, None, residual, status, ACCEPTED, nit=run.nit, elapsed=elapsed, method=method.name, rho=None,
        trace=run.trace, **evaluations_since(before, problem.loss),
    )  # fmt: skip


def judge_sparse(request: Request, rho: float | None, run: Run, method: Method) -> Result:
    """Return the result of a run on the k-sparse problem, with its x made k-sparse."""
    loss, C, k = request.loss, request.C, request.k
    x, status, residual, k_sparse, accepted = run.x, run.status, math.inf, False, ACCEPTED
    try:
        if status is Status.UNBOUNDED:
            raise UnboundedError(status.message)
        found = (take_as_sparse if method.exact else round_to_sparse)(loss, C, x, k, request.deadline)
        x = like(embed(found.polished.z, found.support, int(x.shape[0])), loss.kind)
        residual, k_sparse = found.polished.residual, found.k_sparse
        accepted = STATIONARY if found.reoptimised and epsilon(x) < 1e-10 else ACCEPTED
    except (UnboundedError, KeyboardInterrupt) as error:  # φ may have no minimum on the support
        status = Status.INTERRUPTED if isinstance(error, KeyboardInterrupt) else Status.UNBOUNDED
        support = C.sparse_support(namespace(x).abs(x), k)
        x = embed(C.restrict(support).like(x).project(take(x, support)), support, int(x.shape[0]))
    if status is Status.SETTLED and residual <= STATIONARY:
        status = Status.STATIONARY
    return _result(
        x, value_of(loss, x), C, k, residual, status, accepted, nit=run.nit, elapsed=request.elapsed, rho=rho,
        method=method.name, trace=run.trace, outcomes=[{"k_sparse": k_sparse, "F": run.F}],
        passes=loss.passes - request.passes_before, **evaluations_since(request.before, loss),
    )  # fmt: skip


def round_to_sparse(loss: Loss, C: ConvexSet, x: Array, k: int, deadline: float = math.inf) -> RoundedPoint:
    """Return the best point on the support that a nearly k-sparse x is rounded to.

    The support is the k largest entries if C has a point on them: bounds that exclude 0 and budgets come first.
    """
    support = C.sparse_support(namespace(x).abs(x), k)
    polished = polish(loss, C, support, to_float64(take(x, support)), deadline)
    return RoundedPoint(support, polished, _without_dust(x).size <= k)


def _without_dust(x: Array) -> Vector:
    """Return the indices of entries that are not negligible next to the largest."""
    size = np.abs(to_float64(x))
    return np.flatnonzero(size > DUST * size.max(initial=0.0))


def take_as_sparse(loss: Loss, C: ConvexSet, x: Array, k: int, deadline: float = math.inf) -> RoundedPoint:
    """Return x without its dust if it is k-sparse; else round it.

    The methods with an exact penalty end at k-sparse points, but an interior-point solver leaves 1e-7 in place of 0.
    If all of x is dust next to what rounding finds, and C has 0, return 0: a support of noise is no solution.
    """
    support = _without_dust(x)
    if 0 < support.size <= k:
        with suppress(InfeasibleError):
            problem = restricted_problem(loss, C, support)
            point = problem.point(problem.C.project(to_float64(x)[support]))
            taken = PolishedPoint(point.x, problem.F(point), problem.residual(point))
            return RoundedPoint(support, taken, k_sparse=True, reoptimised=False)
    found = round_to_sparse(loss, C, x, k, deadline)
    largest, zero = float(np.abs(to_float64(x)).max(initial=0.0)), 0.0 * x
    if largest > DUST * np.abs(found.polished.z).max(initial=0.0) or not C.contains(zero):
        return found
    value = loss.value(zero)
    at_zero = PolishedPoint(np.zeros(0), value, residual_at_zero(loss, C, found.support, STEP_FROM_0 * abs(value)))
    return RoundedPoint(np.zeros(0, dtype=np.intp), at_zero, found.k_sparse, reoptimised=False)


def judge_search(
    request: Request, problem: SupportProblem, incumbent: Incumbent, status: Status, certificate: Certificate = UNPROVED
) -> Result:
    """Return the result of a support search: re-solve the incumbent on the raw data and recompute every value from x.

    A status is lowered wherever the recomputed numbers do not support it.
    """
    best, loss, C = incumbent.found, request.loss, request.C
    status = status if certificate.status is None else certificate.status
    if status is Status.SWAP_OPTIMAL and not incumbent.proved:
        status = Status.STATIONARY  # swap-optimality was proved for an earlier incumbent
    z, residual = best.x, math.inf
    try:
        if not status.good and slow_to_project(problem, best.support):
            raise OutOfTimeError
        polished = polish_candidate(problem, best)
        z, residual = polished.z, polished.residual
    except (UnboundedError, InfeasibleError, NotFiniteError, KeyboardInterrupt) as error:
        if status is not Status.UNBOUNDED:
            status = Status.INTERRUPTED if isinstance(error, KeyboardInterrupt) else Status.NUMERICAL_TROUBLE
    except OutOfTimeError:  # report the candidate without polishing
        status = Status.TIME_LIMIT if status.good else status
    x = like(embed(z, entries_of(problem, best.support), request.n), loss.kind)
    fun, accepted = value_of(loss, x), STATIONARY if epsilon(x) < 1e-10 else ACCEPTED
    bound = certificate.lower_bound
    if bound > fun and bound > fun + _rounding_of(problem, fun, x):  # no bound is above a feasible point
        note = "; the computed lower bound was discarded: it contradicts the solution (rounding errors)"
        certificate = Certificate(note=note)
        status = Status.STATIONARY if status is Status.OPTIMAL else status
    if status in PROVED:  # of the candidate's value; the polished point must attain it, be feasible and stationary
        attained = fun <= best.value + best.rounding + _rounding_of(problem, best.value, x)
        if not (attained and residual <= accepted and C.contains(x)):
            status = Status.STATIONARY
    if status is Status.STATIONARY and residual > STATIONARY:
        status = Status.SETTLED
    found = np.minimum.accumulate([row["fun"] for row in incumbent.records]) if incumbent.records else np.zeros(0)
    unknown, elapsed = np.full(len(found), np.nan), np.array([row["elapsed"] for row in incumbent.records])
    trace = Trace(found, unknown, unknown, elapsed, np.zeros(len(found), dtype=np.int64))
    share, negligible = (PROOF, NEGLIGIBLE) if epsilon(x) < 1e-10 else (SINGLE, SINGLE)
    gap = problem.relative_gap(fun, certificate.lower_bound, share, negligible)
    message, note = certificate.message if status is certificate.status else "", certificate.note
    if status is Status.OPTIMAL and not message + note and gap <= share < gap_between(fun, certificate.lower_bound):
        note = f", up to rounding ({negligible:g} of φ(0))"
    return _result(
        x, fun, C, problem.asked, residual, status, accepted, allowed=_allowed(problem, x), nit=incumbent.iterations,
        elapsed=request.elapsed, method="auto", rho=None, trace=trace, swaps=incumbent.swaps,
        proved=incumbent.proved and status in PROVED, outcomes=incumbent.records, gap=gap, note=note, message=message,
        lower_bound=certificate.lower_bound, nodes=certificate.nodes, passes=loss.passes - request.passes_before,
        **evaluations_since(request.before, loss),
    )  # fmt: skip


def _allowed(problem: SupportProblem, x: Array) -> bool:
    """Return whether x has at most k nonzeros, none forbidden or too small, and satisfies the rules."""
    support = indices_of(x != 0)
    least = (1.0 - max(FEASIBLE, 8.0 * epsilon(x))) * problem.floors.size
    if problem.floors.any and (np.abs(to_float64(take(x, support))) < least[support]).any():
        return False
    return problem.allows(np.union1d(support // problem.width, problem.forced).astype(np.intp))


def gap_between(fun: float, bound: float) -> float:
    """Return (fun − bound)/|fun|, 0 if they meet; ∞ if there is no bound, or fun is 0."""
    if fun <= bound:
        return 0.0
    return (fun - bound) / abs(fun) if fun else math.inf


def value_of(loss: Loss, x: Array) -> float:
    """Return φ(x) from the raw data.

    Single-precision data are summed in double on x's support, or on one variable if x = 0.
    """
    if epsilon(x) < 1e-10:
        value = loss.value(x)
    else:
        support = indices_of(x != 0)
        support = support if support.size else np.zeros(1, dtype=np.intp)
        value = loss.restrict(support).as_float64().value(to_float64(take(x, support)))
    loss.check_least(x, value)
    return value


def _rounding_of(problem: SupportProblem, value: float, x: Array) -> float:
    """Return how much φ(x) may exceed a proved value: the claimed accuracy, or the cost of single precision."""
    if epsilon(x) < 1e-10:
        return problem.claim_tol(value)
    return SINGLE * (abs(value) + (0.0 if problem.model is None else abs(problem.model.constant)))


def judge_given(loss: Loss, C: ConvexSet, k: int, x: Vector, status: Status, elapsed: float, method: str) -> Result:
    """Return the result of a given point; `OPTIMAL` is for the only point of C with at most k nonzeros."""
    support, residual, fun, none = indices_of(x != 0), 0.0, value_of(loss, x), np.zeros(0)
    if support.size:
        problem = restricted_problem(loss, C, support)
        residual = problem.residual(problem.point(x[support]))
    elif status is not Status.OPTIMAL:  # over the k variables of the largest steps: an empty support shows nothing
        step = np.abs(C.project(-to_float64(loss.gradient(like(np.zeros_like(x), loss.kind)))))
        entering = np.sort(np.argsort(-step, kind="stable")[: min(k, np.count_nonzero(step))])
        residual = residual_at_zero(loss, C, entering, STEP_FROM_0 * abs(fun)) if entering.size else 0.0
    if status is Status.STATIONARY and residual > STATIONARY:
        status = Status.SETTLED
    only: dict[str, Any] = {"lower_bound": fun, "gap": 0.0, "proved": True} if status is Status.OPTIMAL else {}
    return _result(
        like(x, loss.kind), fun, C, k, residual, status, STATIONARY, nit=0, nfev=1, njev=1, elapsed=elapsed,
        method=method, rho=None, trace=Trace(none, none, none, none, np.zeros(0, dtype=np.int64)), **only,
    )  # fmt: skip


def best_of(results: list[Result], elapsed: float, exact: bool) -> Result:
    """Return the best result of several weights, with a row for each; a limit or stop of the last one is that of all.

    Successes come first. If the method's penalty is `exact`, those whose own point was k-sparse come before the rounded
    ones, as the paper chooses the weight.
    """
    starts = [0.0, *(result.elapsed for result in results)]  # `elapsed` counts from the call
    outcomes = [
        {"rho": result.rho, "F": result.outcomes[0]["F"], "fun": result.fun, "nonzeros": int(result.support.size),
         "k_sparse": result.outcomes[0]["k_sparse"], "maxcv": result.maxcv, "status": result.status, "nit": result.nit,
         "elapsed": result.elapsed - start}
        for result, start in zip(results, starts, strict=False)
    ]  # fmt: skip
    best = min(results, key=lambda one: (not one.success, exact and not one.outcomes[0]["k_sparse"], one.fun))
    counts = {name: sum(getattr(result, name) for result in results) for name in ("nfev", "njev")}
    best, last = replace(best, elapsed=elapsed, outcomes=outcomes, **counts), results[-1].status
    return replace(best, status=last, message=last.message, success=False) if last.early else best


def in_other_units(found: Result, fun: float, units: Callable[[Any], Any]) -> Result:
    """Return the result with φ(x) = `fun` in other units, and `units` applied to every other value of φ."""
    rows = [row | {name: units(row[name]) for name in ("F", "fun") if name in row} for row in found.outcomes]
    bound = float(units(found.lower_bound)) if math.isfinite(found.lower_bound) else found.lower_bound
    trace, gap = replace(found.trace, F=units(found.trace.F)), gap_between(fun, bound)
    if found.gap < gap_between(found.fun, found.lower_bound):  # a gap that is rounding relative to φ(0) stays
        gap = min(found.gap, gap)
    return replace(found, fun=fun, trace=trace, outcomes=rows, lower_bound=bound, gap=gap)


def uninterrupted(found: Result) -> Result:
    """Return the result; raise an interrupt again, for one of several results that are needed together."""
    if found.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return found


def _result(
    x: Array, fun: float, C: ConvexSet, k: int | None, residual: float, status: Status, accepted: float,
    *, note: str = "", message: str = "", allowed: bool | None = None, **fields: Any,
) -> Result:  # fmt: skip
    fun, residual, maxcv = read(fun, residual, C.violation(x))
    support, is_finite = indices_of(x != 0), math.isfinite(fun) and finite(x)
    within = (k is None or support.size <= k) if allowed is None else allowed
    if status.good and not is_finite:
        status = Status.NUMERICAL_TROUBLE
    success = bool(status.good and C.contains(x) and within and is_finite and residual <= accepted)
    fields |= {"message": (message or status.message) + note, "maxcv": maxcv, "residual": residual}
    return Result(x=x, fun=fun, success=success, status=status, support=support, k=k, **fields)
