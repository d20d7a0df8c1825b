"""Check every claim of an answer against the raw data and the twin."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from .phi import wide
from .region import FEASIBLE

FORBIDDEN = (
    "crash", "nan", "infeasible_success", "over_k", "wrong_fun", "wrong_field", "disobeyed", "false_optimal",
    "false_swap", "false_bound", "false_unbounded", "false_infeasible", "missed_unbounded", "warning", "printed",
    "slow", "hung", "mutated", "irreproducible",
)  # fmt: skip
COUNTED = ("suboptimal",)  # at most one in a thousand
TOLD = ("gave_up",)  # an answer that does not call itself a success is honest
SLOW = 20.0  # seconds
NEIGHBOURS = 1000  # so many exchanges are solved to test a claim of swap-optimality,
PATIENCE = 8.0  # for so many seconds


@dataclass(frozen=True)
class Verdict:
    """A failure: one word and a sentence."""

    name: str
    text: str


def judge_point(problem, result, k):
    """Check a result without the twin."""
    x, phi, precision = np.asarray(result.x, dtype=float), problem.phi, problem.phi.precision
    if x.shape != (phi.n,):
        return [Verdict("wrong_field", f"x has shape {x.shape}, there are {phi.n} variables")]
    if not np.isfinite(x).all() or (result.success and not np.isfinite(result.fun)) or np.isnan(result.fun):
        return [Verdict("nan", f"x = {x}, fun = {result.fun}, status {result.status.name}")]
    found = []
    if k is not None and _members(problem, x) > k:
        found.append(Verdict("over_k", f"{np.count_nonzero(x)} nonzeros, k = {k}"))
    excess = problem.region.excess(x)
    limits = result.status.name in ("ITERATION_LIMIT", "TIME_LIMIT", "CALLBACK_STOP", "INTERRUPTED")
    if (result.success or limits) and excess > FEASIBLE[precision]:
        found.append(
            Verdict("infeasible_success", f"outside C by {excess:.3g} of its size, status {result.status.name}")
        )
    found += _judge_fields(problem, result, x)
    if result.success:
        found += _judge_options(problem, x)
    return found


def _members(problem, x):
    """Count the variables or groups of a point."""
    chosen = np.flatnonzero(x)
    return len({problem.groups[j] for j in chosen}) if problem.groups else len(chosen)


def _judge_fields(problem, result, x):
    """Check that fun is φ(x), success follows the status, and the support is that of x."""
    found = []
    value, slack = _value(problem, x), 1e-6 if problem.phi.precision == "float64" else 1e-3
    error = abs(result.fun - value)
    least = 1e-300 if problem.phi.precision == "float64" else 1e-36  # below that numbers lose their digits
    if (
        result.status.name != "UNBOUNDED"
        and np.isfinite(float(value))
        and error > slack * abs(value) + 10 * problem.phi.rounding(x) + least
    ):
        found.append(Verdict("wrong_fun", f"fun = {result.fun!r}, but φ(x) = {float(value)!r}"))
    if result.success and not result.status.good:
        found.append(Verdict("wrong_field", f"success with status {result.status.name}"))
    if not np.array_equal(np.sort(np.asarray(result.support)), np.flatnonzero(x)):
        found.append(Verdict("wrong_field", f"support {result.support}, nonzeros at {np.flatnonzero(x)}"))
    if result.success and not (
        np.isfinite(result.maxcv) and np.isfinite(result.residual) and np.isfinite(result.elapsed)
    ):
        found.append(
            Verdict("wrong_field", f"maxcv {result.maxcv}, residual {result.residual}, elapsed {result.elapsed}")
        )
    single = np.asarray(result.x).dtype == np.float32
    if single != problem.case.single and not problem.case.loss.startswith("Custom"):
        found.append(
            Verdict("wrong_field", f"x has dtype {np.asarray(result.x).dtype} for data of {problem.phi.precision}")
        )
    return found


def _judge_options(problem, x):
    """Check variables forced in or out, and the minimum size of nonzeros."""
    seated = np.array(x, dtype=bool)
    seated[list(problem.forced_in)] = True
    found = []
    if _members(problem, seated) > problem.case.k and not problem.penalty:
        found.append(Verdict("disobeyed", f"no seat left for forced_in = {problem.forced_in}"))
    if any(x[j] != 0 for j in problem.forced_out):
        found.append(Verdict("disobeyed", f"forced_out = {problem.forced_out} has a nonzero"))
    small = (x != 0) & (np.abs(x) < problem.floor * (1 - FEASIBLE[problem.phi.precision]))
    if small.any():
        found.append(
            Verdict("disobeyed", f"min_nonzero = {problem.floor}, but a nonzero has size {np.abs(x[small]).min()}")
        )
    return found


def _value(problem, x):
    value = problem.phi.value(x)
    return value if problem.penalty is None else value + problem.penalty(x)


def judge_claims(problem, result, k):
    """Check the status and the bound against the twin."""
    status, twin = result.status.name, problem.twin(k)
    x = np.asarray(result.x, dtype=float)
    bound = _judge_bound(problem, result, twin) + _judge_gap(problem, result)
    # the claim is only this gap, with the bound
    wide = "gap=0.05" in problem.call and status == "OPTIMAL" and np.isfinite(result.lower_bound)
    if bound or wide or ("gap=" in problem.call and status == "ITERATION_LIMIT"):  # so many nodes were not enough
        return bound
    if status == "UNBOUNDED":
        return _judge_unbounded(problem, twin)
    if problem.early or result.method != "auto" or problem.penalty is not None:
        return []
    if problem.case.enumerable:
        best, answers = twin.best()
        if best is not None and best.status == "unbounded":
            name = "missed_unbounded" if result.success else "gave_up"
            return (
                [Verdict(name, f"φ falls without end, status {status}, fun {result.fun!r}")] if _sure(problem) else []
            )
        if not result.success:
            return (
                []
                if best is None
                else [Verdict("gave_up", f"status {status}, success False; {_better(problem, best)} is feasible")]
            )
        if best is None:
            blind = all(answer.status == "infeasible" for answer in answers) and problem.region.holds(x)
            return [Verdict("fuzzer", f"the twin finds no feasible point, fun = {result.fun!r}")] if blind else []
        tame = problem.phi.quadratic or (problem.case.natural and problem.case.regime != "collinear")
        hopeless = problem.case.regime == "columns scaled" or not tame  # a worse twin only shows that the case is hard
        if problem.phi.convex and not hopeless and problem.region.holds(x) and better(problem, best.x, x, claim=False):
            return [Verdict("fuzzer", f"the twin has nothing as good as fun = {result.fun!r}, status {status}")]
        if better(problem, x, best.x, claim=True) and status == "OPTIMAL":
            return [Verdict("false_optimal", f"fun = {result.fun!r}, but {_better(problem, best)}")]
        if (status == "SWAP_OPTIMAL" or result.proved) and better(problem, x, best.x, claim=True):
            return _judge_swap(problem, result, twin, x) or [
                Verdict("suboptimal", f"fun = {result.fun!r}, {_better(problem, best)}")
            ]
        if better(problem, x, best.x, claim=False):
            return [Verdict("suboptimal", f"status {status}, fun = {result.fun!r}, but {_better(problem, best)}")]
        return []
    if not result.success:
        return [Verdict("gave_up", f"status {status}, success False")]
    return _judge_swap(problem, result, twin, x) if status in ("OPTIMAL", "SWAP_OPTIMAL") or result.proved else []


def judge_near_optimal(problem, found):
    """Check every listed support: its point is feasible, good enough and obeys the rules; a full list misses none."""
    verdicts, points = [], [np.asarray(row, dtype=float) for row in found.x]
    listed = {tuple(sorted(np.asarray(support).tolist())) for support in found.supports}
    if len(listed) != len(found.supports):
        verdicts.append(Verdict("wrong_field", f"a support is listed twice: {found.supports}"))
    for support, x, value in zip(found.supports, points, found.values, strict=True):
        if not np.array_equal(np.sort(np.asarray(support)), np.flatnonzero(x)):
            verdicts.append(Verdict("wrong_field", f"support {support}, nonzeros at {np.flatnonzero(x)}"))
        if np.count_nonzero(x) > problem.case.k:
            verdicts.append(Verdict("over_k", f"{np.count_nonzero(x)} nonzeros, k = {problem.case.k}"))
        if problem.region.excess(x) > FEASIBLE[problem.phi.precision]:
            verdicts.append(Verdict("infeasible_success", f"outside C by {problem.region.excess(x):.3g}"))
        if abs(value - float(problem.phi.value(x))) > 1e-6 * abs(value) + 10 * problem.phi.rounding(x):
            verdicts.append(Verdict("wrong_fun", f"value {value!r}, but φ(x) = {float(problem.phi.value(x))!r}"))
        verdicts += _judge_options(problem, x)
    frequency = np.array([sum(j in support for support in listed) for j in range(problem.phi.n)]) / max(1, len(listed))
    if len(listed) and np.abs(np.asarray(found.frequencies, dtype=float) - frequency).max(initial=0.0) > 1e-9:
        verdicts.append(Verdict("wrong_field", f"frequencies {found.frequencies}, counted {frequency}"))
    return verdicts + _judge_complete(problem, found, listed)


def _judge_complete(problem, found, listed):
    """Return the supports that a complete list misses, if every support has a unique best point."""
    if (
        not found.complete
        or problem.early
        or problem.case.regime not in ("plain", "columns scaled")
        or not problem.phi.convex
    ):
        return []
    best, answers = problem.twin().best()
    if best is None or best.x is None or problem.case.m < problem.case.n:
        return []
    top = float(problem.phi.value(best.x))
    limit = top + 0.29 * abs(top)
    missed = []
    for answer in answers:
        if answer.x is None or float(problem.phi.value(answer.x)) > limit:
            continue
        size = np.abs(answer.x)
        if (size[size > 0] < 1e-6 * size.max(initial=0.0)).any():  # perhaps a zero that the twin only nears
            continue
        if tuple(np.flatnonzero(answer.x).tolist()) not in listed:
            missed.append(answer.x.tolist())
    return [Verdict("false_bound", f"called complete, but misses x = {missed[0]}")] if missed else []


def _judge_bound(problem, result, twin):
    """Report a lower bound above the value of a feasible point."""
    if not np.isfinite(result.lower_bound):
        return []
    points = [np.asarray(result.x, dtype=float)]
    if problem.case.enumerable and twin.best()[0] is not None:
        points.append(twin.best()[0].x)
    for x in points:
        value = None if x is None or not problem.region.holds(x) else float(problem.phi.value(x))
        if value is not None and result.lower_bound > value + 1e-9 * abs(value) + 100 * problem.phi.rounding(x):
            return [Verdict("false_bound", f"lower_bound = {result.lower_bound!r}, but φ = {value!r} at {x.tolist()}")]
    return []


def _judge_gap(problem, result):
    """Report OPTIMAL with a gap above the requested one."""
    if result.status.name != "OPTIMAL" or not np.isfinite(result.lower_bound):
        return []
    proved = 1e-8 if problem.phi.precision == "float64" else 1e-4  # what enumeration claims
    wanted = max(proved, *(gap for gap in (1e-9, 0.05) if f"gap={gap!r}" in problem.call), 0.0)
    if result.gap <= wanted * (1 + 1e-6):
        return []
    return [Verdict("wrong_field", f"OPTIMAL with a gap of {result.gap:.3g}, {wanted:g} was asked for")]


def _sure(problem):
    """Whether flat directions are certain: in single precision a rounded covariance may be indefinite."""
    return problem.phi.precision == "float64"


def _judge_swap(problem, result, twin, x):
    """Check that no add, drop, swap or re-solve of the support is better."""
    support = np.flatnonzero(x)
    if problem.groups:  # nothing of the kind is promised
        return []
    if (problem.phi.n - len(support)) * max(1, len(support)) > NEIGHBOURS or (
        problem.region.ball < np.inf and len(support) > 7
    ):
        return []
    until = time.process_time() + PATIENCE
    for move in twin.neighbours(support):
        if time.process_time() > until:
            return []
        answer = twin.on(move)
        if answer.status == "unbounded" and _sure(problem):
            return [
                Verdict("missed_unbounded", f"status {result.status.name}, but φ falls without end one exchange away")
            ]
        if answer.x is not None and better(problem, x, answer.x, claim=True):
            claimed = f"status {result.status.name}, proved {result.proved}, fun = {result.fun!r}"
            text = f"{claimed}, one exchange away {_better(problem, answer)}"
            return [Verdict("false_swap", text)]
    return []


def _judge_unbounded(problem, twin):
    """Report "unbounded" if C is bounded, φ is bounded below, or an optimum was found on every support."""
    bounded_loss = not problem.phi.quadratic or getattr(problem.phi, "kind", "") == "squares"
    if problem.region.bounded or bounded_loss:
        return [Verdict("false_unbounded", "φ is bounded below on C")]
    if not (problem.case.enumerable and _sure(problem) and problem.phi.convex and problem.penalty is None):
        return []
    answers = [twin.on(support) for support in twin.supports()]
    if any(answer.status == "unbounded" for answer in answers):
        return []
    done = [answer.status in ("optimal", "infeasible") for answer in answers]
    return [Verdict("false_unbounded", "every support has an optimum")] if all(done) else []


def judge_infeasible(problem, error, k):
    """Report an InfeasibleError if the twin has a feasible point."""
    if not problem.case.enumerable:
        return []
    best, _ = problem.twin(k).best()
    if best is None:
        return []
    at = "" if best.x is None else f" x = {best.x.tolist()}"
    return [Verdict("false_infeasible", f"{error}; but there is a point:{at}")]


def better(problem, x, y, claim):
    """Whether y is better than x beyond rounding: by a millionth against a proof, else by a ten-thousandth."""
    phi, single = problem.phi, problem.phi.precision == "float32"
    at_x, at_y = phi.value(x), phi.value(y)
    size = max(abs(at_x), abs(at_y))
    relative = (1e-3 if single else 1e-6) if claim else (1e-2 if single else 1e-4)
    floor = (1e-5 if single else 1e-12 if claim else 1e-8) * phi.natural
    rounding = max(phi.rounding(x), phi.rounding(y)) * (10 if phi.quadratic else 100)
    return bool(at_x - at_y > relative * size + floor + rounding + max(_jitter(phi, x), _jitter(phi, y)))


def _jitter(phi, x):
    """Return the change of φ if every entry of x moves by a rounding of the largest: what equations can guarantee."""
    delta = wide((1e-6 if phi.precision == "float32" else 1e-14) * np.abs(x).max(initial=0.0))
    moved = np.abs(wide(phi.factor(x, np.arange(phi.n)))).sum(axis=1) * delta
    return np.abs(wide(phi.gradient(x))).sum() * delta + 0.5 * (moved**2).sum()


def _better(problem, answer):
    return (
        "an unbounded ray"
        if answer.x is None
        else f"x = {answer.x.tolist()} gives {float(problem.phi.value(answer.x))!r}"
    )
