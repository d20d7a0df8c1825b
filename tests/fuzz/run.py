"""One case from its text to its verdicts."""

from __future__ import annotations

import time
import traceback
import warnings
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse

from .case import Case
from .judge import SLOW, Verdict, judge_claims, judge_infeasible, judge_near_optimal, judge_point
from .problems import Problem, build

TWICE = 20  # one case in so many is run twice


@dataclass(frozen=True)
class Outcome:
    """Outcome of a case."""

    case: Case
    verdicts: tuple[Verdict, ...]
    seconds: float
    ended: str  # the status, or the error's name


def run_case(case: Case) -> Outcome:
    """Build, solve and judge a case."""
    return run_problem(build(case))


def run_problem(problem: Problem) -> Outcome:
    """Solve and judge a problem; overflow in the judge's arithmetic is silent."""
    found: list[Verdict] = []
    names: dict = {}
    clocks = _clocks()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            exec(compile(problem.source.replace(problem.call, ""), "<setup>", "exec"), names)
            before = {name: frozen(value) for name, value in names.items()}
            clocks = _clocks()
            exec(compile(problem.call, "<call>", "exec"), names)
            error = None
        except (Exception, KeyboardInterrupt) as raised:
            error = raised
            trace = traceback.format_exc(limit=-3)
    seconds = min(now - then for now, then in zip(_clocks(), clocks, strict=True))
    found += [Verdict("warning", f"{w.category.__name__}: {w.message} ({w.filename}:{w.lineno})") for w in caught[:1]]
    solves = len(names["result"].results) if error is None and problem.case.call == "k_path" else 1
    found += [Verdict("slow", f"{seconds:.1f} s")] * (seconds > SLOW * solves)
    if error is not None:
        return Outcome(problem.case, (*found, *_judge_error(problem, error, trace)), seconds, type(error).__name__)
    if problem.case.call == "near_optimal" and names["result"].complete and _interrupted(names):
        found.append(Verdict("wrong_field", "interrupted, and yet called complete"))
    found += [
        Verdict("mutated", name) for name, value in before.items() if value is not None and frozen(names[name]) != value
    ]
    result = names["result"]
    if problem.case.call == "near_optimal":
        with np.errstate(all="ignore"):
            found += judge_near_optimal(problem, result)
        return Outcome(problem.case, tuple(found), seconds, "near_optimal")
    if problem.case.call == "minimize_many":
        B = names["B"]
        problems = [replace(problem, phi=replace(problem.phi, b=B[:, i])) for i in range(B.shape[1])]
        results = [(one, result[i], problem.case.k) for i, one in enumerate(problems)]
    elif problem.case.call == "k_path":
        results = [(problem, r, r.k) for r in result.results]
    else:
        results = [(problem, result, result.k)]
    with np.errstate(all="ignore"):
        for one, answer, k in results:
            found += _judge_result(one, answer, k)
    if problem.case.call == "k_path" and (np.diff(result.objective) > 0).any():
        found.append(Verdict("wrong_field", f"the objective rises with k: {result.objective}"))
    if problem.case.seed % TWICE == 0 and not problem.early and problem.case.call in ("minimize", "minimize_penalized"):
        found += _again(problem, names, result)
    return Outcome(problem.case, tuple(found), seconds, results[-1][1].status.name)


def _interrupted(names):
    """Whether the callback of a case has raised KeyboardInterrupt."""
    return "calls" in names and next(names["calls"]) > names["WHEN"]


def _clocks():
    """Return wall and process time: the lesser difference is the cost of a solve on a machine that is busy."""
    return time.perf_counter(), time.process_time()


def _judge_result(problem, result, k):
    found = judge_point(problem, result, k)
    return found if any(v.name in ("nan", "wrong_field") for v in found) else found + judge_claims(problem, result, k)


def _judge_error(problem, error, trace):
    """Whether an error on good input is a crash: not if it reports that no point exists or that a piece is missing."""
    name = type(error).__name__
    if name == "InfeasibleError":
        with np.errstate(all="ignore"):
            return judge_infeasible(problem, error, min(problem.ks, default=None))
    if name == "MissingPieceError" and problem.may_refuse:
        return []
    return [Verdict("crash", f"{name}: {error}\n{trace}")]


def _again(problem, names, first):
    """Check that a second call gives the same answer."""
    names = dict(names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(problem.call, "<call>", "exec"), names)
    same = np.array_equal(np.asarray(first.x), np.asarray(names["result"].x))
    return (
        [] if same else [Verdict("irreproducible", f"{np.asarray(first.x)} and then {np.asarray(names['result'].x)}")]
    )


def frozen(value):
    """Return the bytes of an array, sparse matrix, table or list; None for other values."""
    if scipy.sparse.issparse(value):
        return b"".join(
            np.ascontiguousarray(part).tobytes() for part in (value.tocoo().data, value.tocoo().row, value.tocoo().col)
        )
    if isinstance(value, np.ndarray):
        return np.ascontiguousarray(value).tobytes()
    if type(value).__name__ in ("DataFrame", "Series"):
        return value.to_numpy().tobytes()
    return repr(value) if isinstance(value, list) else None
