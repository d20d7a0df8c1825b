"""The loop of the paper's methods: it runs a method, decides when to stop, keeps the best point, the trace, the clock and the callback."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ksparse.errors import NotFiniteError, UndecidedError
from ksparse.firstorder.methods.base import Method, State
from ksparse.firstorder.problem import Point, Problem
from ksparse.firstorder.report import Report
from ksparse.losses import Loss
from ksparse.result import Status, Trace
from ksparse.util.arrays import Array, epsilon, farthest, norm, norm_inf, on_device, read, to_float64
from ksparse.util.checks import check_integer, check_number
from ksparse.util.progress import Tell, as_scipy_callback, bar
from ksparse.util.resources import OutOfTimeError

RUNAWAY = 1e20  # entries this much larger than the start's, at a lower F: nothing holds x
DRIFT_CHECK = 1_000  # every so many steps: is x drifting along a direction in which F falls without end?


@dataclass(frozen=True)
class Stopping:
    """When to stop: the first of these that holds."""

    tol: float = 1e-5  # relative change of F (or of x, by the method's own rule)
    tol_residual: float = -1.0  # relative stationarity residual; below 0 for never
    max_iter: int = 10_000
    max_time: float | None = None  # seconds
    rule: str | None = None  # "objective" or "step"; None: the method's own
    patience: int | None = None  # how many small changes in a row; None: the method's own

    def __post_init__(self) -> None:
        check_number(self.tol, "tol", at_least=0)
        check_number(self.tol_residual, "tol_residual")
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

    point: Point  # the best point
    last: Array  # the last point: where F no longer tells points apart, the one nearest to stationary
    status: Status
    nit: int
    l: float  # noqa: E741  # the last l
    trace: Trace

    @property
    def x(self) -> Array:
        """The best point's x."""
        return self.point.x

    @property
    def F(self) -> float:
        """The best point's F; nan where the run did not begin."""
        return math.nan if self.point.F_value is None else self.point.F_value


@dataclass(frozen=True)
class _Mark:
    """Where a run was, without what a point knows: vectors that live as long as the run."""

    x: Array
    F: float


class _Log:
    """The trace while it grows."""

    def __init__(self) -> None:
        self.start = time.perf_counter()
        self.rows: list[tuple[float, float, float, float, int]] = []

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self.start

    def add(self, F: float, s: State, products: int) -> None:
        self.rows.append((F, 1.0 / float(s.l), float(s.residual), self.elapsed, products))

    def trace(self) -> Trace:
        columns = np.array(self.rows).reshape(-1, 5).T
        F, step, residual, elapsed, products = columns
        return Trace(F, step, residual, elapsed, products.astype(np.int64))


def drive(
    method: Method,
    problem: Problem,
    x0: Array | Point,
    stopping: Stopping,
    *,
    callback: Callable[..., Any] | None = None,
    verbose: int = 0,
    catch_interrupt: bool = True,
) -> Run:
    """Run a method from x0, which is first moved into the domain of g1; a point is there already, and keeps what it knows of φ."""
    method.require(problem)
    loop = _Loop(method, problem, stopping, as_scipy_callback(callback))
    quiet = np.errstate(over="ignore", invalid="ignore", divide="ignore")
    with Report(verbose) as report, quiet, bar(method.name, stopping.max_iter) as steps:
        status: Status | None = None
        try:
            loop.begin(x0)
            report.banner(problem, method.name)
            while status is None:
                status = loop.turn(report)
                steps.at(loop.t)
        except StopIteration:
            status = Status.CALLBACK_STOP
        except KeyboardInterrupt:
            if not catch_interrupt or loop.best is None:
                raise
            status = Status.INTERRUPTED
        except (FloatingPointError, NotFiniteError, UndecidedError):  # top-k met NaN, the user's function gave it, or C cannot be reached
            if loop.best is None:
                raise
            status = Status.NUMERICAL_TROUBLE
        except OutOfTimeError:  # before the first step
            status = Status.TIME_LIMIT
        assert loop.best is not None
        problem.read(loop.best)
        report.footer(status.message, loop.t, problem.F(loop.best), loop.log.elapsed)
    s = loop.s
    last = loop.best if s is None else s.x
    return Run(loop.best, last.x, status, loop.t, 1.0 if s is None else float(s.l), loop.log.trace())


def not_begun(problem: Problem, x0: Array) -> Run:
    """A run that was interrupted before its first step."""
    point = problem.enter(x0)
    return Run(point, point.x, Status.INTERRUPTED, 0, 1.0, _Log().trace())


class _Loop:
    """The run while it lasts."""

    def __init__(self, method: Method, problem: Problem, stopping: Stopping, tell: Tell) -> None:
        self.method, self.problem, self.stopping, self.tell = method, problem, stopping, tell
        self.log = _Log()
        self.t = self.quiet = 0  # steps taken; small changes in a row
        self.best: Point | None = None
        self.s: Any = None

    def begin(self, x0: Array | Point) -> None:
        """The state at t = 0."""
        start = self.best = self.problem.adopt(x0) if isinstance(x0, Point) else self.problem.enter(x0)
        self.problem.measure_scale(start)
        self.problem.read(start)
        self.s = self.method.init(self.problem, start)
        self.mark = self.first = _Mark(start.x, self.problem.F(start))
        self.F_start, self.far = self.mark.F, RUNAWAY * max(1.0, start.size)
        self.rounding = epsilon(start.x)
        self.endless = self.problem.loss.least == -math.inf
        self.log.add(self.F_start, self.s, self.problem.products.total)

    def turn(self, report: Report) -> Status | None:
        """One step, and why to stop after it, if so."""
        stopping, problem = self.stopping, self.problem
        if self.t >= stopping.max_iter:
            return Status.UNBOUNDED if _drifts(problem, self.mark, self.s.x) else Status.ITERATION_LIMIT
        if stopping.max_time is not None and self.log.elapsed >= stopping.max_time:
            return Status.TIME_LIMIT
        before = self.s
        s = self.s = self.method.step(problem, before)
        self.t += 1
        problem.read(s.x)
        F = problem.F(s.x)
        self.log.add(F, s, problem.products.total)
        report.line(self.t, F, float(s.l), float(s.residual), problem.products.total, self.log.elapsed)
        lost = self._lost(F, 0.0 if on_device(s.x.x) and not self.endless else s.x.size)  # F shows it too where φ is bounded below
        if lost is not None:
            return lost
        assert self.best is not None
        if F < problem.F(self.best):
            self.best = s.x
        self.tell(lambda: s.x.x + 0.0, F, self.t, float(s.residual), self.log.elapsed)  # a copy: nothing done to it reaches the run
        if self.t % DRIFT_CHECK == 0:
            if _drifts(problem, self.mark, s.x):
                return Status.UNBOUNDED
            self.mark = _Mark(s.x.x + 0.0, F)
        self.quiet = self.quiet + 1 if self._small_change(F, problem.F(before.x), before) else 0
        settled = self.quiet >= (stopping.patience or self.method.patience)
        return Status.SETTLED if settled or float(s.residual) <= stopping.tol_residual else None

    def _small_change(self, F: float, F_before: float, before: Any) -> bool:
        """Whether the last step changed F (or x) by no more than the tolerance."""
        tol = self.stopping.tol
        if (self.stopping.rule or self.method.stop) == "step":
            change, length = getattr(self.s, "change", None), getattr(self.s, "length", None)  # where the method has them
            if change is None or length is None:
                change, length = read(norm(self.s.x.x - before.x.x), norm(self.s.x.x))
            return change < tol * max(1.0, length)
        floor = self.rounding**2 * abs(self.F_start)  # an F that falls to 0 never changes little relative to itself
        return abs(F_before - F) <= tol * max(abs(F), 0.0 if math.isinf(floor) else floor)

    def _lost(self, F: float, size: float) -> Status | None:
        """Whether F ran off to −∞, or arithmetic to NaN."""
        if self.endless:
            far = not size <= self.far and not F >= self.F_start
            if far and (not math.isfinite(size) or _drifts(self.problem, self.first, self.s.x)):
                return Status.UNBOUNDED
            if F == -math.inf:  # on a C that ends that is an overflow
                return Status.UNBOUNDED if _lets_go(self.problem, self.first.x, self.s.x.x) else Status.NUMERICAL_TROUBLE
        return Status.NUMERICAL_TROUBLE if math.isnan(F) or not math.isfinite(size) else None


def _drifts(problem: Problem, mark: _Mark, x: Point) -> bool:
    """Whether F keeps falling at the rate seen from `mark` to x when that move is repeated a hundred to a million times.

    A bounded F cannot: this finds the linear drift that a penalty's curvature keeps from running off geometrically.
    """
    d, drop = x.x - mark.x, mark.F - problem.F(x)
    if problem.loss.least > -math.inf or not drop > 1e-12 * abs(problem.F(x)):
        return False
    if problem.loss.curvature_gradients == 0:  # it shows its curvature: where there is some along d, F turns sooner or later
        along = problem.point(d / norm(d))
        bend = problem.loss.curvature_at(x.x, x.image, along.x, along.image)
        most = min(problem.loss.lipschitz(), _curvature_terms(problem.loss, along.x))
        if math.isfinite(most) and bend > 1e-12 * most:
            return False
    for factor in (1e2, 1e4, 1e6):
        far = problem.enter(x.x + factor * d)
        if not problem.F(far) <= problem.F(x) - 0.5 * factor * drop:
            return False
    return _lets_go(problem, mark.x, x.x)


def _curvature_terms(loss: Loss, d: Array) -> float:
    """What the terms of dᵀHd are at most, (Σ|dᵢ|√Hᵢᵢ)² of a quadratic: beside that, not beside others' curvature, it is rounding."""
    model = loss.quadratic() if loss.is_quadratic and not loss.opaque else None
    return math.inf if model is None else float(np.abs(to_float64(d)) @ np.sqrt(np.abs(model.diagonal))) ** 2


def _lets_go(problem: Problem, begin: Array, x: Array) -> bool:
    """Whether C lets x go on as it went from `begin` nearly for ever: no bounded C does, however large it is."""
    end, d = farthest(x), x - begin
    return norm_inf(problem.enter(x + end * (d / norm(d))).x) >= 1e-3 * end
