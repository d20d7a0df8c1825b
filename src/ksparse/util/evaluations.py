"""Count the evaluations of φ and ∇φ during a call, in all of its threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_current: ContextVar[list[int] | None] = ContextVar("evaluations", default=None)  # of φ and of ∇φ, so far
_lock = threading.Lock()


@contextmanager
def counting() -> Iterator[None]:
    """Count from zero within the block, threads started by `parallel_map` included."""
    token = _current.set([0, 0])
    try:
        yield
    finally:
        _current.reset(token)


def count(values: int = 0, gradients: int = 0) -> None:
    """Add evaluations of φ and ∇φ to the counts of the current call, if there is one."""
    current = _current.get()
    if current is not None:
        with _lock:
            current[:] = current[0] + values, current[1] + gradients


def counted(own: tuple[int, int] | None) -> tuple[int, int]:
    """Return the evaluations of φ and ∇φ so far: a loss's `own` counts if given, else those of the current call."""
    current = _current.get()
    return own or ((0, 0) if current is None else (current[0], current[1]))
