"""When the time is up, for the parts that no argument reaches: a mixed-integer program inside a set, the columns of an operator.

`until` sets it for all that runs within, `time_left` asks. Threads that a search starts must be told by `until` again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

GRACE = 0.1  # seconds after the deadline that may go into a first feasible point, without which there is nothing to return
_deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)


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
