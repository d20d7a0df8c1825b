"""The loop that runs a method: stopping, best point, trace, time limit, callback and verbose output."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ksparse.errors import NotFiniteError, UndecidedError
from ksparse.firstorder.methods.base import Method, State
from ksparse.firstorder.problem import Point, Problem, Stopping
from ksparse.losses import Loss
from ksparse.result import Status, Trace
from ksparse.util.arrays import Array, epsilon, largest_safe_entry, norm, norm_inf, on_device, read, to_float64
from ksparse.util.progress import ProgressCallback, VerboseLogging, as_scipy_callback, bar, logger
from ksparse.util.resources import OutOfTimeError

RUNAWAY = 1e20  # entries larger than the start's by this factor, at a lower F, are a sign of an unbounded F
DRIFT_CHECK = 1_000  # iterations between two checks for a linear decrease of F without end


@dataclass(frozen=True)
class Run:
    """Result of a run."""

    point: Point  # the best point
    last: Array  # x of the last iteration; may be closer to a stationary point if F of both is equal to rounding
    status: Status
    nit: int
    l: float  # noqa: E741  # of the last step
    trace: Trace

    @property
    def x(self) -> Array:
        """x of the best point."""
        return self.point.x

    @property
    def F(self) -> float:
        """F of the best point; nan if the run did not start."""
        return math.nan if self.point.F_value is None else self.point.F_value


class _Mark(NamedTuple):
    """An earlier iterate: only x and F, since images are large."""

    x: Array
    F: float


def _trace(rows: list[tuple[float, ...]]) -> Trace:
    """Return rows of F, step, residual, seconds and products as a trace."""
    F, step, residual, elapsed, products = np.array(rows).reshape(-1, 5).T
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
    """Run a method from x0.

    An array x0 is first projected to the domain of g1 + I_C. A `Point` is used as it is, with its stored image and ∇φ.
    """
    method.require(problem)
    driver = _Driver(method, problem, stopping, as_scipy_callback(callback))
    quiet = np.errstate(over="ignore", invalid="ignore", divide="ignore")
    with _RunReporter(verbose) as report, quiet, bar(method.name, stopping.max_iter) as steps:
        status: Status | None = None
        try:
            driver.begin(x0)
            report.banner(problem, method.name)
            while status is None:
                status = driver.iterate(report)
                steps.update(driver.t)
        except StopIteration:
            status = Status.CALLBACK_STOP
        except KeyboardInterrupt:
            if not catch_interrupt or driver.best is None:
                raise
            status = Status.INTERRUPTED
        except (FloatingPointError, NotFiniteError, UndecidedError):  # NaN, or no point of C is found
            if driver.best is None:
                raise
            status = Status.NUMERICAL_TROUBLE
        except OutOfTimeError:  # before the first step
            status = Status.TIME_LIMIT
        assert driver.best is not None
        problem.read(driver.best)
        report.footer(status.message, driver.t, problem.F(driver.best), driver.elapsed)
    best, s = driver.best, driver.s
    last, l = (best, 1.0) if s is None else (s.x, float(s.l))  # noqa: E741
    return Run(best, last.x, status, driver.t, l, _trace(driver.rows))


def not_begun(problem: Problem, x0: Array) -> Run:
    """Return a run that was interrupted before its first step."""
    point = problem.project_to_domain(x0)
    return Run(point, point.x, Status.INTERRUPTED, 0, 1.0, _trace([]))


class _Driver:
    """A run in progress."""

    def __init__(self, method: Method, problem: Problem, stopping: Stopping, tell: ProgressCallback) -> None:
        self.method, self.problem, self.stopping, self.tell = method, problem, stopping, tell
        self.started = time.perf_counter()
        self.rows: list[tuple[float, ...]] = []  # of the trace
        self.t = self.n_small_changes = 0  # iterations; consecutive small changes
        self.best: Point | None = None
        self.s: Any = None

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.started

    def _record(self, F: float) -> None:
        s: State = self.s
        self.rows.append((F, 1.0 / float(s.l), float(s.residual), self.elapsed, self.problem.products.total))

    def begin(self, x0: Array | Point) -> None:
        """Set up the state at t = 0."""
        start = self.best = self.problem.point_from(x0) if isinstance(x0, Point) else self.problem.project_to_domain(x0)
        self.problem.measure_scale(start)
        self.problem.read(start)
        self.s = self.method.init(self.problem, start)
        self.mark = self.first = _Mark(start.x, self.problem.F(start))
        self.F_start, self.runaway_size = self.mark.F, RUNAWAY * max(1.0, start.size)
        self.rounding = epsilon(start.x)
        self.may_be_unbounded = self.problem.loss.least == -math.inf
        self._record(self.F_start)

    def iterate(self, report: _RunReporter) -> Status | None:
        """Take one step; return the reason to stop, or None."""
        stopping, problem = self.stopping, self.problem
        if self.t >= stopping.max_iter:
            return Status.UNBOUNDED if _decreases_linearly(problem, self.mark, self.s.x) else Status.ITERATION_LIMIT
        if stopping.max_time is not None and self.elapsed >= stopping.max_time:
            return Status.TIME_LIMIT
        before = self.s
        s = self.s = self.method.step(problem, before)
        self.t += 1
        problem.read(s.x)
        F = problem.F(s.x)
        self._record(F)
        report.line(self.t, F, float(s.l), float(s.residual), problem.products.total, self.elapsed)
        # do not read the size from a device if φ is bounded below: reading waits for the device
        size = 0.0 if on_device(s.x.x) and not self.may_be_unbounded else s.x.size
        if (diverged := self._divergence_status(F, size)) is not None:
            return diverged
        assert self.best is not None
        if F < problem.F(self.best):
            self.best = s.x
        self.tell(lambda: s.x.x + 0.0, F, self.t, float(s.residual), self.elapsed)  # a copy
        if self.t % DRIFT_CHECK == 0:
            if _decreases_linearly(problem, self.mark, s.x):
                return Status.UNBOUNDED
            self.mark = _Mark(s.x.x + 0.0, F)
        self.n_small_changes = self.n_small_changes + 1 if self._small_change(F, problem.F(before.x), before) else 0
        settled = self.n_small_changes >= (stopping.patience or self.method.patience)
        return Status.SETTLED if settled or float(s.residual) <= stopping.tol_residual else None

    def _small_change(self, F: float, F_before: float, before: Any) -> bool:
        """Return whether the last step changed F (or x) by no more than the tolerance."""
        tol = self.stopping.tol
        if (self.stopping.rule or self.method.stop) == "step":
            change, length = getattr(self.s, "change", None), getattr(self.s, "length", None)
            if change is None or length is None:
                change, length = read(norm(self.s.x.x - before.x.x), norm(self.s.x.x))
            return change < tol * max(1.0, length)
        floor = self.rounding**2 * abs(self.F_start)  # for an F that falls to 0, whose relative change stays large
        return abs(F_before - F) <= tol * max(abs(F), 0.0 if math.isinf(floor) else floor)

    def _divergence_status(self, F: float, size: float) -> Status | None:
        """Return UNBOUNDED if F tends to −∞, NUMERICAL_TROUBLE for NaN or overflow, else None; `size` is max |xᵢ|."""
        if self.may_be_unbounded:
            ran_away = not size <= self.runaway_size and not F >= self.F_start
            if ran_away and (not math.isfinite(size) or _decreases_linearly(self.problem, self.first, self.s.x)):
                return Status.UNBOUNDED
            if F == -math.inf:  # over a bounded C that is an overflow
                recedes = _is_recession_direction(self.problem, self.first.x, self.s.x.x)
                return Status.UNBOUNDED if recedes else Status.NUMERICAL_TROUBLE
        return Status.NUMERICAL_TROUBLE if math.isnan(F) or not math.isfinite(size) else None


def _decreases_linearly(problem: Problem, mark: _Mark, x: Point) -> bool:
    """Return whether F falls at half its rate from `mark` to x or faster up to 10², 10⁴ and 10⁶ times that move.

    C must also contain points far in this direction. An F that is bounded below rarely passes this test. It detects a
    linear decrease without end if the curvature of a penalty keeps the steps from growing geometrically.
    """
    d, drop = x.x - mark.x, mark.F - problem.F(x)
    if problem.loss.least > -math.inf or not drop > 1e-12 * abs(problem.F(x)):
        return False
    if problem.loss.curvature_gradients == 0:  # with positive curvature along d, F turns eventually
        along = problem.point(d / norm(d))
        curvature = problem.loss.curvature_at(x.x, x.image, along.x, along.image)
        largest = min(problem.loss.lipschitz(), _curvature_terms(problem.loss, along.x))
        if math.isfinite(largest) and curvature > 1e-12 * largest:
            return False
    for factor in (1e2, 1e4, 1e6):
        probe = problem.project_to_domain(x.x + factor * d)
        if not problem.F(probe) <= problem.F(x) - 0.5 * factor * drop:
            return False
    return _is_recession_direction(problem, mark.x, x.x)


def _curvature_terms(loss: Loss, d: Array) -> float:
    """Return (Σ|dᵢ|√Hᵢᵢ)², a bound on the terms of dᵀHd of a quadratic: their rounding error is relative to it."""
    model = loss.quadratic() if loss.is_quadratic and not loss.hides_columns else None
    return math.inf if model is None else float(np.abs(to_float64(d)) @ np.sqrt(np.abs(model.diagonal))) ** 2


def _is_recession_direction(problem: Problem, begin: Array, x: Array) -> bool:
    """Return whether C contains points almost arbitrarily far from `begin` in the direction of x."""
    end, d = largest_safe_entry(x), x - begin
    return norm_inf(problem.project_to_domain(x + end * (d / norm(d))).x) >= 1e-3 * end


class _RunReporter(VerboseLogging):
    """Table of a run in the log: for verbose = 1 every 100th iteration, for 2 every 10th, for 3 each one."""

    @property
    def every(self) -> int:
        return {0: 0, 1: 100, 2: 10}.get(self.verbose, 1)

    def banner(self, problem: Problem, method: str) -> None:
        if self.every:
            parts = method, type(problem.loss).__name__, problem.penalty, problem.C, problem.n
            logger.info("ksparse %s: %s + %s over %s, %d variables", *parts)
            logger.info(f"{'it':>7} {'F':>16} {'1/step':>10} {'residual':>10} {'products':>9} {'time':>8}")

    def line(self, t: int, F: float, l: float, residual: float, products: int, elapsed: float) -> None:  # noqa: E741
        if self.every and t % self.every == 0:
            logger.info("%s", f"{t:>7} {F:>16.9e} {l:>10.3e} {residual:>10.2e} {products:>9} {elapsed:>7.2f}s")

    def footer(self, message: str, t: int, F: float, elapsed: float) -> None:
        if self.every:
            logger.info("%s", f"{message}: F = {F:.9e} after {t} iterations, {elapsed:.2f} s")
