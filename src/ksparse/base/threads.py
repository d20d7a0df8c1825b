"""Threads: BLAS runs on one thread during a solve, and large products are split over our own threads.

After each product the threads of BLAS wait in a busy loop. Many small or medium products then cost several times their CPU time, and more
wall time than one thread where another process holds the second core. Our own threads sleep between products.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

_limits: list[Any] = []  # those in force, the outermost first; of the main thread only: what others set, libraries take differently


@cache
def _controller() -> Any:
    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """One BLAS thread within, where this is the main thread."""
    if _limits or threading.current_thread() is not threading.main_thread():
        yield
        return
    with _controller().limit(limits=1, user_api="blas") as limit:
        _limits.append(limit)
        try:
            yield
        finally:
            _limits.pop()


@contextmanager
def all_threads() -> Iterator[None]:
    """As many as there were before `one_thread`, within."""
    if not _limits or threading.current_thread() is not threading.main_thread():
        yield
        return
    _limits[0].restore_original_limits()
    try:
        yield
    finally:
        for library in _blas():
            library.set_num_threads(1)


def _blas() -> list[Any]:
    return [library for library in _controller().lib_controllers if library.user_api == "blas"]


def available_threads() -> int:
    """How many threads the user lets the linear algebra have: those before `one_thread`, within it too."""
    if _limits:
        return int(_limits[0].get_original_num_threads()["blas"] or 1)
    return max((library.num_threads for library in _blas()), default=1)


def in_threads(work: Callable[[slice], Any], rows: int) -> list[Any]:
    """Return `work(part)` for equal parts of `rows` rows, one part for each thread that BLAS may use outside of a solve."""
    nested = threading.current_thread().name.startswith("ksparse-rows")  # a thread of the pool must not wait for the pool
    parts = 1 if nested else max(1, min(available_threads(), rows))
    edges = np.linspace(0, rows, parts + 1).astype(int)
    slices = [slice(begin, end) for begin, end in pairwise(edges)]
    with one_thread():
        others = [_pool(parts - 1, "rows").submit(work, part) for part in slices[1:]]
        return [work(slices[0]), *(other.result() for other in others)]


def side_by_side(work: Callable[[Any], Any], parts: Sequence[Any], n_jobs: int | None) -> list[Any]:
    """`work` on each part, in as many threads as n_jobs says in joblib's way; what comes of it is in the order of the parts."""
    if n_jobs in (None, 1) or len(parts) < 2:
        return [work(part) for part in parts]
    from joblib import effective_n_jobs

    pool = _pool(effective_n_jobs(n_jobs), "parts")
    others = [pool.submit(copy_context().run, work, part) for part in parts]  # with the caller's np.errstate
    return [other.result() for other in others]


@cache
def _pool(threads: int, use: str) -> ThreadPoolExecutor:
    """One for each use: work that waits for other work must not hold the threads which that needs."""
    return ThreadPoolExecutor(threads, thread_name_prefix=f"ksparse-{use}")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a pool's threads do not come along
