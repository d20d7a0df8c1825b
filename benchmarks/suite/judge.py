"""Independent check of answers: float64, raw data, textbook formulas, no code of the libraries that are compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from suite.problem import Problem

TOLERANCE = 1e-6  # of feasibility, absolute: what mixed-integer solvers promise
Vector = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Verdict:
    """Value and feasibility of an answer."""

    objective: float
    violation: float
    nonzeros: int
    finite: bool
    feasible: bool


def judge(problem: Problem, x: Any, tolerance: float = TOLERANCE) -> Verdict:
    """Objective and largest violation at x; feasible: finite, at most k nonzeros, violation within tolerance."""
    x = np.asarray(x, dtype=np.float64)
    if x.shape != (problem.n,):
        raise ValueError(f"x must have shape ({problem.n},), got {x.shape}")
    nonzeros = int(np.count_nonzero(x))
    if not np.all(np.isfinite(x)):
        return Verdict(float("nan"), float("nan"), nonzeros, finite=False, feasible=False)
    objective, violation = OBJECTIVES[problem.kind](problem, x), VIOLATIONS[problem.kind](problem, x)
    few = problem.kind == "penalised" or nonzeros <= problem.k
    return Verdict(objective, violation, nonzeros, finite=True, feasible=few and violation <= tolerance)


def _least_squares(problem: Problem, x: Vector) -> float:
    r = problem.A @ x - problem.b
    return 0.5 * float(r @ r) + 0.5 * problem.ridge * float(x @ x)


def _logistic(problem: Problem, x: Vector) -> float:
    return float(np.logaddexp(0.0, -problem.b * (problem.A @ x)).sum()) + 0.5 * problem.ridge * float(x @ x)


def _component(problem: Problem, x: Vector) -> float:
    S = np.flatnonzero(x)  # correlations of what x uses, nothing else
    X = np.asarray(problem.A[:, S], dtype=np.float64)
    scores = ((X - X.mean(axis=0)) / X.std(axis=0, ddof=1)) @ x[S]
    return -float(scores @ scores) / (len(X) - 1)


def _portfolio(problem: Problem, x: Vector) -> float:
    return float(x @ problem.V @ x)


def _penalised(problem: Problem, x: Vector) -> float:
    return _least_squares(problem, x) + problem.lam * float(np.abs(x).sum() - np.sqrt(x @ x))


def _rows(problem: Problem, x: Vector) -> float:
    """Return the largest violation of the equations, the rows, and the bounds of nonzero entries."""
    held = x != 0
    floor, upper = (np.broadcast_to(side, x.shape)[held] for side in (problem.floor, problem.upper))
    worst = [np.abs(problem.E @ x - problem.f), floor - x[held], x[held] - upper]
    if problem.G is not None:
        worst.append(problem.G @ x - problem.h)
    return max(0.0, *(float(part.max(initial=0.0)) for part in worst))


def _negative(x: Vector) -> float:
    return max(0.0, -float(x.min())) if x.size else 0.0


OBJECTIVES: dict[str, Callable[[Problem, Vector], float]] = {
    "least squares": _least_squares,
    "logistic": _logistic,
    "component": _component,
    "portfolio": _portfolio,
    "rows": _portfolio,
    "penalised": _penalised,
}
VIOLATIONS: dict[str, Callable[[Problem, Vector], float]] = {
    "least squares": lambda problem, x: _negative(x[problem.nonnegative]),
    "logistic": lambda problem, x: 0.0,
    "component": lambda problem, x: max(0.0, float(np.sqrt(x @ x)) - 1.0),
    "portfolio": lambda problem, x: max(_negative(x), abs(float(x.sum()) - 1.0)),
    "rows": _rows,
    "penalised": lambda problem, x: 0.0,
}
