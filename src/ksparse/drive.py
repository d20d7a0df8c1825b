"""The only loop: it runs a method, decides when to stop, keeps the best point, the trace, the clock and the callback."""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult

from ksparse.arrays import Array, epsilon, norm, norm_inf
from ksparse.checks import check_callable, check_integer, check_number
from ksparse.methods.base import Method, State
from ksparse.problem import Point, Problem
from ksparse.report import Report
from ksparse.result import Status, Trace

RUNAWAY = 1e20  # entries this much larger than the start's, at a lower F: nothing holds x


@dataclass(frozen=True)
class Stopping:
    """When to stop: the first of these that holds."""

    tol: float = 1e-5  # relative change of F (or of x, by the method's own rule)
    tol_residual: float = 0.0  # relative stationarity residual
    max_iter: int = 10_000
    max_time: float | None = None  # seconds
    rule: str | None = None  # "objective" or "step"; None: the method's own
    patience: int | None = None  # how many small changes in a row; None: the method's own

    def __post_init__(self) -> None:
        check_number(self.tol, "tol", at_least=0)
        check_number(self.tol_residual, "tol_residual", at_least=0)
        check_integer(self.max_iter, "max_iter", 0)
        if self.max_time is not None:
            check_number(self.max_time, "max_time", at_least=0)
        if self.patience is not None:
            check_integer(self.patience, "patience", 1)
        if self.rule not in (None, "objective", "step"):
            raise ValueError(f"stop must be 'objective' or 'step', got {self.rule!r}")


@dataclass(frozen=True)
class Run:
    """How a run ended."""

    x: Array  # the best point
    last: Array  # the last point: where F no longer tells points apart, the one nearest to stationary
    status: Status
    nit: int
    l: float  # noqa: E741  # the last l
    trace: Trace


class _Log:
    """The trace while it grows."""

    def __init__(self) -> None:
        self.start = time.perf_counter()
        self.rows: list[tuple[float, float, float, float, int]] = []

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self.start

    def add(self, F: float, s: State, products: int) -> None:
        self.rows.append((F, 1.0 / s.l, s.residual, self.elapsed, products))

    def trace(self) -> Trace:
        columns = np.array(self.rows).reshape(-1, 5).T
        F, step, residual, elapsed, products = columns
        return Trace(F, step, residual, elapsed, products.astype(np.int64))


def drive(
    method: Method, problem: Problem, x0: Array, stopping: Stopping, *, callback: Callable[..., Any] | None = None, verbose: int = 0
) -> Run:
    """Run a method from x0, which is first moved into the domain of g1."""
    method.require(problem)
    tell = _teller(callback)
    log = _Log()
    with Report(verbose) as report, np.errstate(over="ignore", invalid="ignore"):
        x = problem.point(problem.prox_g1(x0, RUNAWAY))  # a prox with next to no weight: the projection onto the domain
        problem.measure_scale(x)
        best, t, quiet, status, s = x, 0, 0, Status.ITERATION_LIMIT, None
        try:
            s = method.init(problem, x)
            log.add(problem.F(x), s, problem.products.total)
            report.banner(problem, method.name)
            while t < stopping.max_iter:
                if stopping.max_time is not None and log.elapsed >= stopping.max_time:
                    status = Status.TIME_LIMIT
                    break
                before, s = s, method.step(problem, s)
                t += 1
                F = problem.F(s.x)
                log.add(F, s, problem.products.total)
                report.line(t, F, s.l, s.residual, problem.products.total, log.elapsed)
                lost = _lost(problem, s, x)
                if lost is not None:
                    status = lost
                    break
                best = min(best, s.x, key=problem.F)
                tell(s, F, t, log.elapsed)
                if stopping.tol_residual and s.residual <= stopping.tol_residual:
                    status = Status.SETTLED
                    break
                quiet = quiet + 1 if _small_change(stopping, method, problem, before, s, x) else 0
                if quiet >= (stopping.patience or method.patience):
                    status = Status.SETTLED
                    break
        except StopIteration:
            status = Status.CALLBACK_STOP
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        except FloatingPointError:  # top-k met NaN
            status = Status.NUMERICAL_TROUBLE
        report.footer(status.message, t, problem.F(best), log.elapsed)
    return Run(best.x, best.x if s is None else s.x.x, status, t, 1.0 if s is None else s.l, log.trace())


def _small_change(stopping: Stopping, method: Method, problem: Problem, before: State, s: State, start: Point) -> bool:
    """Whether the last step changed F (or x) by no more than the tolerance."""
    if (stopping.rule or method.stop) == "step":
        return norm(s.x.x - before.x.x) < stopping.tol * max(1.0, norm(s.x.x))
    F, F_before = problem.F(s.x), problem.F(before.x)
    floor = epsilon(s.x.x) * abs(problem.F(start))  # an F that falls to 0 never changes little relative to itself
    if math.isinf(floor):
        floor = 0.0
    return abs(F_before - F) <= stopping.tol * max(abs(F), floor)


def _lost(problem: Problem, s: State, start: Point) -> Status | None:
    """Whether F ran off to −∞, or arithmetic to NaN."""
    F, size = problem.F(s.x), norm_inf(s.x.x)
    far = not size <= RUNAWAY * max(1.0, norm_inf(start.x))
    if F == -math.inf or (far and not F >= problem.F(start)):
        return Status.UNBOUNDED
    return Status.NUMERICAL_TROUBLE if math.isnan(F) or not math.isfinite(size) else None


def _teller(callback: Callable[..., Any] | None) -> Callable[[State, float, int, float], None]:
    """The callback as scipy calls it: with an `intermediate_result` if that is its parameter's name, else with x alone."""
    if callback is None:
        return lambda s, F, t, elapsed: None
    check_callable(callback, "callback")
    by_result = list(inspect.signature(callback).parameters) == ["intermediate_result"]

    def tell(s: State, F: float, t: int, elapsed: float) -> None:
        x = s.x.x + 0.0  # a copy: nothing the callback does to it reaches the run
        if by_result:
            callback(intermediate_result=OptimizeResult(x=x, fun=F, nit=t, residual=s.residual, elapsed=elapsed))
        else:
            callback(x)

    return tell
