"""When the time is up, for the parts that no argument reaches: a mixed-integer program inside a set, the columns of an operator.

`until` sets it for all that runs within, `time_left` asks. Long computations call `pause` between their steps: it tells whoever listens
(`heard_by`), and ends them when the time is up. Threads that a search starts must be told by `until` again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

GRACE = 0.1  # seconds after the deadline that may go into a first feasible point, without which there is nothing to return, or into an end
_deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)
_listener: ContextVar[Callable[[], None] | None] = ContextVar("listener", default=None)


@contextmanager
def until(deadline: float) -> Iterator[None]:
    """All within is to end by then (a reading of `time.perf_counter`), or sooner where an outer one says so."""
    token = _deadline.set(min(deadline, _deadline.get()))
    try:
        yield
    finally:
        _deadline.reset(token)


class OutOfTimeError(Exception):
    """The time was up before a number that nothing can begin without was known."""


def time_left() -> float:
    """Seconds, 0 where the time is up."""
    return max(0.0, _deadline.get() - time.perf_counter())


class StoppedError(Exception):
    """The StopIteration of a callback, under a name that no generator on the way takes for its own end."""


@contextmanager
def heard_by(listener: Callable[[], None]) -> Iterator[None]:
    """Call the listener at every pause within; its StopIteration becomes a `StoppedError`."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def report_pause() -> None:
    """Call the listener, if there is one."""
    listener = _listener.get()
    if listener is not None:
        try:
            listener()
        except StopIteration as stop:
            raise StoppedError from stop


def require_time() -> None:
    """Raise `OutOfTimeError` where the time is up."""
    if time_left() <= 0:
        raise OutOfTimeError


def pause() -> None:
    """Call the listener between two long steps; raise `OutOfTimeError` where the time is up."""
    report_pause()
    require_time()
