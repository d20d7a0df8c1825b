"""Threads, memory and the time limit of the current call.

BLAS runs on one thread during a solve, and large products are split over our own threads. After each product, idle BLAS
threads spin: with many small or medium products that costs several times their CPU time, and more wall time than one
thread if another process uses the second core. Our own threads sleep between products.

`deadline_scope` sets a deadline for the code within, `time_left` returns the seconds left. Long computations call
`pause` between their steps: it calls the listener (`heard_by`), and raises OutOfTimeError after the deadline. Threads
do not inherit the deadline: each opens a `deadline_scope` again.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar, copy_context
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

T = TypeVar("T")
GIB = 2**30
# seconds after the deadline allowed for a first feasible point, and for an end
GRACE = 0.1

_limits: list[Any] = []  # thread limits in force in the main thread; a later one is of a library that came later
_deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)
_listener: ContextVar[Callable[[], None] | None] = ContextVar("listener", default=None)


@cache
def _controller() -> Any:
    return ThreadpoolController()


@cache
def imported(load: Callable[[], Any]) -> Future[Any]:
    """Run a function that imports something, in another thread.

    Ctrl-C during an import leaves half of a module behind, which no later import mends. Only the main thread receives
    Ctrl-C, and later calls wait for the same import.
    """
    other = ThreadPoolExecutor(1)
    found = other.submit(load)
    other.shutdown(wait=False)
    return found


def _import_scipy_linalg() -> Any:
    return [import_module(f"scipy.linalg{part}") for part in (".blas", ".lapack", "")][-1]


@cache
def scipy_linalg() -> Any:
    """Return scipy.linalg, whose import takes half as long as that of all of ksparse.

    It loads a BLAS of its own, which `one_thread` limits from here on.
    """
    module = imported(_import_scipy_linalg).result()
    _controller.cache_clear()
    if _limits:
        _limits.append(_controller().limit(limits=1, user_api="blas"))
    return module


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS to one thread within the block, if called from the main thread."""
    if _limits or threading.current_thread() is not threading.main_thread():
        yield
        return
    try:
        _limits.append(_controller().limit(limits=1, user_api="blas"))
        yield
    finally:
        while _limits:
            _limits.pop().restore_original_limits()


@contextmanager
def all_threads() -> Iterator[None]:
    """Restore the number of BLAS threads from before `one_thread` within the block."""
    if not _limits or threading.current_thread() is not threading.main_thread():
        yield
        return
    for limit in reversed(_limits):
        limit.restore_original_limits()
    try:
        yield
    finally:
        for library in _blas():
            library.set_num_threads(1)


def _blas() -> list[Any]:
    return [library for library in _controller().lib_controllers if library.user_api == "blas"]


def available_threads() -> int:
    """Return the number of BLAS threads outside of `one_thread`."""
    if _limits:
        return int(_limits[0].get_original_num_threads()["blas"] or 1)
    return max((library.num_threads for library in _blas()), default=1)


def map_row_chunks(work: Callable[[slice], Any], rows: int) -> list[Any]:
    """Return `work(chunk)` for equal chunks of the rows, one for each thread that BLAS may use outside of a solve."""
    nested = threading.current_thread().name.startswith("ksparse-rows")  # a pool's thread must not wait for the pool
    parts = 1 if nested else max(1, min(available_threads(), rows))
    edges = np.linspace(0, rows, parts + 1).astype(int)
    slices = [slice(begin, end) for begin, end in pairwise(edges)]
    with one_thread():
        others = [_pool(parts - 1, "rows").submit(work, part) for part in slices[1:]]
        return [work(slices[0]), *(other.result() for other in others)]


def parallel_map(work: Callable[[Any], Any], parts: Sequence[Any], n_jobs: int | None) -> list[Any]:
    """Return `work(part)` for each part, in order, computed in `n_jobs` threads (counted as in joblib)."""
    if n_jobs in (None, 1) or len(parts) < 2:
        return [work(part) for part in parts]
    from joblib import effective_n_jobs

    pool = _pool(effective_n_jobs(n_jobs), "parts")
    others = [pool.submit(copy_context().run, work, part) for part in parts]  # with the caller's np.errstate
    return [other.result() for other in others]


@cache
def _pool(threads: int, use: str) -> ThreadPoolExecutor:
    """Return the thread pool for one use: work that waits for other work must not hold its threads."""
    return ThreadPoolExecutor(threads, thread_name_prefix=f"ksparse-{use}")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork


def available_memory() -> float:
    """Return the bytes available without swapping, or less if this process has a limit; inf if unknown."""
    try:
        import resource

        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        words = Path("/proc/self/statm").read_text(encoding="ascii").split()
    except (ImportError, OSError):  # not Linux
        return math.inf
    page = resource.getpagesize()
    left = min((1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")), default=math.inf)
    for limit, used in ((resource.RLIMIT_AS, words[0]), (resource.RLIMIT_DATA, words[5])):
        most = resource.getrlimit(limit)[0]
        if most != resource.RLIM_INFINITY:
            left = min(left, most - page * int(used))
    return max(0.0, left)


@contextmanager
def set_within(variable: ContextVar[T], value: T) -> Iterator[None]:
    """Give a context variable a value within the block."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def deadline_scope(deadline: float) -> AbstractContextManager[None]:
    """End the code within at `deadline` (a reading of `time.perf_counter`), or at an earlier outer deadline."""
    return set_within(_deadline, min(deadline, _deadline.get()))


class OutOfTimeError(Exception):
    """The time limit was reached before a necessary quantity was known."""


def time_left() -> float:
    """Return the seconds left, at least 0."""
    return max(0.0, _deadline.get() - time.perf_counter())


class StoppedError(Exception):
    """A callback raised StopIteration; renamed, because a generator would take StopIteration for its own end."""


def heard_by(listener: Callable[[], None]) -> AbstractContextManager[None]:
    """Call the listener at every pause within the block; its StopIteration becomes a `StoppedError`."""
    return set_within(_listener, listener)


def report_pause() -> None:
    """Call the listener, if there is one."""
    listener = _listener.get()
    if listener is not None:
        try:
            listener()
        except StopIteration as stop:
            raise StoppedError from stop


def require_time(seconds: float = 0.0) -> None:
    """Raise `OutOfTimeError` if no more than so many seconds are left."""
    if time_left() <= seconds:
        raise OutOfTimeError


def pause() -> None:
    """Call the listener between two long steps; raise `OutOfTimeError` if no time is left."""
    report_pause()
    require_time()
