"""Many right-hand sides on one A: share the Gram matrix and search blocks of right-hand sides together."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from ksparse.batch.problem import BatchData, Incumbents
from ksparse.batch.rounds import rounds_of, search_batch
from ksparse.data import design_of
from ksparse.data.products import Squares
from ksparse.losses import LeastSquares
from ksparse.result import Result, Status
from ksparse.search.settings import DEFAULTS, SearchSettings
from ksparse.sets import ConvexSet, WholeSpace, require_length, require_sparse_member
from ksparse.solve.judge import STATIONARY, judge_given
from ksparse.solve.minimize import make_plan, minimize
from ksparse.util.arrays import Vector, to_float64, to_numpy
from ksparse.util.checks import (
    check_array,
    check_callable,
    check_flag,
    check_integer,
    check_n_jobs,
    check_number,
    check_piece,
    check_squares,
)
from ksparse.util.progress import NULL_BAR, Bar, bar, show_progress
from ksparse.util.resources import one_thread, parallel_map

if TYPE_CHECKING:
    import pandas as pd

BLOCK = 2**21  # entries that one array of a block may have: exchanges of all its right-hand sides
LONGEST = 256  # right-hand sides in a block
GRAM = 2**26  # entries of a Gram matrix that is kept; for more variables each right-hand side is searched alone


def status_of(number: int) -> Status:
    """The status with that number."""
    return list(Status)[int(number)]


@dataclass(frozen=True)
class Batch:
    """One answer per right-hand side: what `minimize_many` returns.

    `batch[i]` is that of column i as a `Result`, judged like any other when it is asked for; its `elapsed` is that of
    the whole batch.

    Attributes
    ----------
    x : scipy.sparse.csc_array
        The answers, one column per right-hand side.
    fun : ndarray
        φ at each, from the raw data.
    success : ndarray of bool
        In C, at most k nonzeros, stationary on its support, and ended well.
    status : ndarray of int
        A number of `Status` for each.
    residual : ndarray
        Relative stationarity residual on the support.
    k : int
        Nonzeros at most.
    elapsed : float
        Seconds for all columns together.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 20))
    >>> batch = ks.minimize_many(A, A[:, :4] + A[:, 10:14], 2)
    >>> len(batch), batch.supports[3].tolist(), batch[3].support.tolist()
    (4, [3, 13], [3, 13])
    """

    x: Any  # scipy.sparse, one column per right-hand side
    fun: Vector  # φ at each, from the raw data
    success: Vector  # in C, at most k nonzeros, stationary on its support, and ended well
    status: Vector  # a number of `Status` for each
    residual: Vector  # relative stationarity residual on the support
    k: int
    elapsed: float  # seconds for all
    _judge: Callable[[int], Result] = field(repr=False)

    def __len__(self) -> int:
        return len(self.fun)

    def __getitem__(self, i: int) -> Result:
        """The answer for column i."""
        place = check_integer(i, "i", -len(self), len(self) - 1)
        return self._judge(place % len(self))

    def __iter__(self) -> Iterator[Result]:
        return (self[i] for i in range(len(self)))

    @property
    def supports(self) -> list[Vector]:
        """The nonzeros of each answer."""
        return [np.sort(part) for part in np.split(self.x.indices, self.x.indptr[1:-1])]

    def counts(self) -> Vector:
        """In how many answers each variable is."""
        return np.bincount(self.x.indices, minlength=self.x.shape[0])

    def messages(self) -> dict[str, int]:
        """How many ended in which way."""
        numbers, counts = np.unique(self.status, return_counts=True)
        return {status_of(number).message: int(count) for number, count in zip(numbers, counts, strict=True)}

    def to_frame(self) -> pd.DataFrame:
        """One row per right-hand side."""
        import pandas as pd

        columns = {
            "objective": self.fun,
            "nonzeros": np.diff(self.x.indptr),
            "status": [status_of(s).name for s in self.status],
        }
        return pd.DataFrame(columns | {"success": self.success, "residual": self.residual, "support": self.supports})

    def __repr__(self) -> str:
        ways = "; ".join(f"{count} {message}" for message, count in self.messages().items())
        return f"{len(self)} answers with at most {self.k} nonzeros, {int(self.success.sum())} successes, {self.elapsed:.3g} s: {ways}"


class Progress:
    """Counts columns that are done, and knows why no more shall follow."""

    def __init__(self, total: int, rounds: int, deadline: float, callback: Callable[[int, int], Any] | None) -> None:
        self.total, self.rounds, self.deadline = total, rounds, deadline
        self.callback = None if callback is None else check_callable(callback, "callback")
        self.stopped: Status | None = None
        self._units, self._lock = 0, threading.Lock()
        self._bar: Bar = NULL_BAR

    def advance(self, columns: int) -> bool:
        """Another round of so many columns is done; whether to go on."""
        with self._lock:
            self._units += columns
            done = self._units // self.rounds
            self._bar.update(done)
            if self.callback is not None and self.stopped is None:
                try:
                    self.callback(done, self.total)
                except StopIteration:
                    self.stopped = Status.CALLBACK_STOP
            if self.stopped is None and time.perf_counter() > self.deadline:
                self.stopped = Status.TIME_LIMIT
            return self.stopped is None

    @contextmanager
    def shown(self, what: str) -> Iterator[None]:
        """A bar while it lasts, where one is wanted."""
        with bar(what, self.total) as self._bar:
            yield


def minimize_many(
    A: Any,
    B: Any,
    k: int,
    C: ConvexSet | None = None,
    *,
    sample_weight: Any = None,
    ridge: Any = 0.0,
    effort: int = 1,
    n_jobs: int | None = None,
    random_state: int | np.random.Generator | None = None,
    max_time: float | None = None,
    settings: SearchSettings | None = None,
    callback: Callable[[int, int], Any] | None = None,
    verbose: int = 0,
    progress: bool = False,
) -> Batch:
    """For each column b of B the best x with at most k nonzeros in C: min ½ Σ wᵢ((Ax)ᵢ − bᵢ)² + ½ Σ ρⱼxⱼ².

    Under no constraint or signs (`Nonnegative`, a `Box` with bounds 0 and ∞) the columns share the Gram matrix AᵀA, and
    start from the supports that served others: 40 to 50 times faster than single calls of `minimize`. Nothing is proved
    of them. Where columns of A are so nearly dependent that AᵀA may have lost a better answer to a right-hand side,
    `minimize` solves that one alone; on other sets, and where A does not show its columns or has too many, all of them.

    Parameters
    ----------
    A : array, scipy.sparse, data by blocks, or any object with shape, @ and .T
        The data, one row per observation.
    B : array-like of shape (n_rows, n_right_hand_sides)
        One right-hand side per column.
    k : int
        Nonzeros at most, of each answer; 0 for x = 0.
    C : ConvexSet or None, default=None
        The set that each answer is in; None for all of space.
    sample_weight : array-like or None, default=None
        w, one weight per row, at or above 0.
    ridge : float or array-like, default=0.0
        ρ, one number or one per variable.
    effort : int, default=1
        More than 1 for further kicks of what was found: never worse.
    n_jobs : int or None, default=None
        Threads; the answers do not depend on it.
    random_state : int, numpy.random.Generator or None, default=None
        Seeds the kicks.
    max_time : float or None, default=None
        Seconds. Columns that were not reached are 0, or the best so far, and their status says why.
    settings : SearchSettings or None, default=None
        The numbers that steer the search.
    callback : callable or None, default=None
        Called as callback(done, total) from time to time; StopIteration ends the search.
    verbose : int, default=0
        Whether to show a progress bar: the older name of `progress`.
    progress : bool, default=False
        Whether to show bars while it runs, as `show_progress` does.

    Returns
    -------
    Batch
        One answer per column of B.

    Raises
    ------
    ValueError, TypeError
        If the data are not finite, do not fit each other, or are no numbers; the message names the argument.
    InfeasibleError
        If C holds no point with at most k nonzeros.

    See Also
    --------
    minimize : A single right-hand side, and any loss.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> A = rng.random((60, 20))
    >>> B = A[:, [3, 8]] @ rng.random((2, 100)) + 1e-3 * rng.standard_normal((60, 100))
    >>> batch = ks.minimize_many(A, B, 2, ks.Nonnegative())
    >>> batch.x.shape, np.argsort(-batch.counts())[:2].tolist()
    ((20, 100), [3, 8])
    """
    started = time.perf_counter()
    C = WholeSpace() if C is None else C
    check_piece(C, ConvexSet, "C")
    B = _right_sides(B, A)
    loss = LeastSquares(A, np.asarray(B[:, 0], dtype=np.float64), sample_weight, ridge)
    n = int(loss.A.shape[1])
    require_length(C, n)
    k, C = check_integer(k, "k", 0, n), C.for_length(n)
    require_sparse_member(C, n, k)
    effort, n_jobs = check_integer(effort, "effort", 1), check_n_jobs(n_jobs)
    deadline = math.inf if max_time is None else started + check_number(max_time, "max_time", at_least=0)
    seed = make_plan(effort, n_jobs, random_state, "auto").seed
    if settings is not None and not isinstance(settings, SearchSettings):
        raise TypeError(f"settings must be a ksparse.SearchSettings, got {type(settings).__name__}")
    task = _Task(loss.squares(), B, k, C, effort, n_jobs, seed, deadline, settings or DEFAULTS, callback, started)
    signs = _signs(C, n)
    with show_progress(check_flag(progress, "progress") or check_integer(verbose, "verbose", 0) > 0):
        return task.singly() if k == 0 or signs is None or not _shared(loss.A, n) else task.together(*signs)


def _right_sides(B: Any, A: Any) -> Vector:
    """One per column, with a row for each of A's."""
    given = to_numpy(B) if hasattr(B, "ndim") else np.asarray(B)
    if given.ndim == 1:
        raise ValueError(
            f"B must have one column per right-hand side, got shape {given.shape}: for a single one use ks.minimize"
        )
    given = to_numpy(check_array(B, "B", 2))
    check_squares(given, "B")
    rows = np.shape(A)[0] if np.ndim(A) else A.shape[0]
    if len(given) != rows:
        raise ValueError(f"B must have as many rows as A, {rows}, got {len(given)}")
    return given


def _signs(C: ConvexSet, n: int) -> tuple[Vector, Vector] | None:
    """The bounds of C, where it has no others than 0 and ∞ and nothing but bounds."""
    linear = C.as_linear(n)
    if linear is None or linear.h.size or linear.f.size:
        return None
    plain = np.isin(linear.lower, (0.0, -np.inf)).all() and np.isin(linear.upper, (0.0, np.inf)).all()
    return (linear.lower, linear.upper) if plain else None


def _shared(A: Any, n: int) -> bool:
    """Whether A shows its columns, and few enough for a Gram matrix."""
    return n * n <= GRAM and design_of(A).entries_in_memory


@dataclass
class _Task:
    """What is to be done for all columns."""

    squares: Squares
    B: Vector
    k: int
    C: ConvexSet
    effort: int
    n_jobs: int | None
    seed: int
    deadline: float
    settings: SearchSettings
    callback: Callable[[int, int], Any] | None
    started: float

    def loss(self, i: int) -> LeastSquares:
        """φ of column i."""
        A, _, weight, ridge = self.squares
        return LeastSquares(A, self.B[:, i], weight, 0.0 if ridge is None else ridge)

    def _progress(self, rounds: int) -> Progress:
        return Progress(self.B.shape[1], rounds, self.deadline, self.callback)

    def together(self, lower: Vector, upper: Vector) -> Batch:
        """All columns on one Gram matrix."""
        A, _, weight, ridge = self.squares
        n, count = int(A.shape[1]), self.B.shape[1]
        rho = np.zeros(n) if ridge is None else to_float64(ridge)
        with one_thread():
            data = BatchData.of(
                to_float64(A), None if weight is None else to_float64(weight), rho, lower, upper, self.k
            )
            if data is None:
                return self._batch(np.zeros((count, 0), int), np.zeros((count, 0)), np.zeros(count), None)
            best, rounds = Incumbents.zero(data.problem, count), rounds_of(data.problem, self.effort, self.seed)
            progress = self._progress(len(rounds))
            length = int(np.clip(BLOCK // (data.problem.k * n), 8, LONGEST))
            parts = [slice(begin, min(begin + length, count)) for begin in range(0, count, length)]
            x, residual, doubt = np.zeros(best.x.shape), np.zeros(count), np.zeros(count, dtype=bool)

            def refine(part: slice) -> None:
                x[part], residual[part] = data.refine(self.B[:, part], best.rows(part))
                doubt[part] = data.doubtful(self.B[:, part], best.rows(part), x[part])

            try:
                with progress.shown(f"{count} right-hand sides"):
                    search_batch(
                        data.problem, lambda part: data.linear_terms(self.B[:, part]), parts, rounds, best, self.n_jobs,
                        lambda part: progress.advance(part.stop - part.start),
                    )  # fmt: skip
            except KeyboardInterrupt:
                progress.stopped = Status.INTERRUPTED
            parallel_map(refine, parts, self.n_jobs)
        alone = self._alone(np.flatnonzero(doubt).tolist(), progress)
        return self._batch(
            data.columns[np.minimum(best.support, data.problem.n - 1)], x, residual, progress.stopped, alone
        )

    def _alone(self, columns: list[int], progress: Progress) -> dict[int, Result]:
        """Solve some columns by `minimize`, as far as nothing stops that."""
        found: dict[int, Result] = {}

        def solve(i: int) -> None:
            if progress.stopped is None and progress.advance(0):
                found[i] = self._solve(i, progress)

        try:
            parallel_map(solve, columns, self.n_jobs)
        except KeyboardInterrupt:
            progress.stopped = Status.INTERRUPTED
        return found

    def _batch(
        self,
        support: Vector,
        x: Vector,
        residual: Vector,
        stopped: Status | None,
        alone: dict[int, Result] | None = None,
    ) -> Batch:
        """What was found by seats, or better by a single solve, as a matrix with one column each, judged from the raw data."""
        n, count = int(self.squares.A.shape[1]), self.B.shape[1]
        held = x != 0
        X = scipy.sparse.csc_array((x[held], (support[held], np.nonzero(held)[0])), shape=(n, count))
        X.sort_indices()
        fun = self._values(X)
        usual = np.where(residual <= STATIONARY, int(Status.STATIONARY), int(Status.SETTLED))
        usual[~np.isfinite(fun)] = int(Status.NUMERICAL_TROUBLE)
        status = usual if stopped is None else np.full(count, int(stopped))
        good = (residual <= STATIONARY) & np.isfinite(fun) & (stopped is None) & self._feasible(X)
        better = {i: result for i, result in (alone or {}).items() if result.fun < fun[i]}
        if better:
            X = scipy.sparse.lil_array(X)
            for i, result in better.items():
                X[:, [i]] = to_float64(result.x)[:, None]
                fun[i], good[i], status[i], residual[i] = (
                    result.fun,
                    result.success,
                    int(result.status),
                    result.residual,
                )
            X = scipy.sparse.csc_array(X)
        elapsed = time.perf_counter() - self.started

        def judge(i: int) -> Result:
            if i in better:
                return better[i]
            return judge_given(self.loss(i), self.C, self.k, X[:, [i]].toarray().ravel(), status_of(status[i]), elapsed)

        return Batch(X, fun, good, status, residual, self.k, elapsed, judge)

    def _feasible(self, X: Any) -> Vector:
        """Whether each column has at most k nonzeros, all of a sign that C allows."""
        signs = _signs(self.C, X.shape[0])
        assert signs is not None
        wrong = (X.data < signs[0][X.indices]) | (X.data > signs[1][X.indices])
        broken = np.bincount(np.repeat(np.arange(X.shape[1]), np.diff(X.indptr)), wrong, X.shape[1])
        return np.asarray((np.diff(X.indptr) <= self.k) & (broken == 0))

    def _values(self, X: Any) -> Vector:
        """φ of each column, by blocks."""
        A, _, weight, ridge = self.squares
        A, fun = to_float64(A), np.empty(X.shape[1])
        for begin in range(0, X.shape[1], LONGEST):
            part = slice(begin, begin + LONGEST)
            x = X[:, part].toarray()
            rest = A @ x - self.B[:, part]
            fun[part] = 0.5 * (np.ones(len(rest)) if weight is None else to_float64(weight)) @ rest**2
            fun[part] += 0.0 if ridge is None else 0.5 * to_float64(ridge) @ x**2
        return fun

    def singly(self) -> Batch:
        """Each column by `minimize`."""
        count, progress = self.B.shape[1], self._progress(1)
        results: list[Result | None] = [None] * count

        def solve(i: int) -> None:
            if progress.stopped is not None or (time.perf_counter() >= self.deadline and i > 0):
                return
            results[i] = self._solve(i, progress)
            progress.advance(1)

        try:
            with progress.shown(f"{count} right-hand sides"):
                parallel_map(solve, range(count), self.n_jobs)
        except KeyboardInterrupt:
            progress.stopped = Status.INTERRUPTED
        stopped = progress.stopped or Status.TIME_LIMIT
        first = next((result for result in results if result is not None), None)
        if first is None:  # there is no point to return
            raise KeyboardInterrupt
        found = [self._unreached(i, first, stopped) if result is None else result for i, result in enumerate(results)]
        X = scipy.sparse.csc_array(np.column_stack([to_float64(result.x) for result in found]))
        columns = {
            name: np.array([getattr(result, name) for result in found]) for name in ("fun", "success", "residual")
        }
        status = np.array([int(result.status) for result in found])
        return Batch(
            X, status=status, k=self.k, elapsed=time.perf_counter() - self.started, _judge=found.__getitem__, **columns
        )

    def _solve(self, i: int, progress: Progress) -> Result:
        """Solve one column by `minimize`; where that is interrupted the others are not begun."""
        left = self.deadline - time.perf_counter()
        found = minimize(
            self.loss(i), self.k, self.C, effort=self.effort, random_state=self.seed, settings=self.settings,
            max_time=None if math.isinf(left) else max(left, 0.0),
        )  # fmt: skip
        if found.status is Status.INTERRUPTED:
            progress.stopped = Status.INTERRUPTED
        return found

    def _unreached(self, i: int, first: Result, status: Status) -> Result:
        """A point of C for a column that was not come to: that of the first, which is as good as any."""
        return judge_given(
            self.loss(i), self.C, self.k, to_float64(first.x), status, time.perf_counter() - self.started
        )
