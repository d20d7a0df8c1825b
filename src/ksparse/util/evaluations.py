"""Count the evaluations of φ and ∇φ during a call, in all of its threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class Evaluations:
    """Numbers of evaluations of φ and of ∇φ so far."""

    def __init__(self) -> None:
        self.values = self.gradients = 0
        self._lock = threading.Lock()

    def add(self, values: int, gradients: int) -> None:
        """Add to the counts; safe to call from several threads."""
        with self._lock:
            self.values += values
            self.gradients += gradients


_current: ContextVar[Evaluations | None] = ContextVar("evaluations", default=None)


@contextmanager
def counting() -> Iterator[None]:
    """Count from zero within the block, threads started by `parallel_map` included."""
    token = _current.set(Evaluations())
    try:
        yield
    finally:
        _current.reset(token)


def count(values: int = 0, gradients: int = 0) -> None:
    """Add evaluations of φ and ∇φ to the counts of the current call, if there is one."""
    current = _current.get()
    if current is not None:
        current.add(values, gradients)


def counted() -> tuple[int, int]:
    """Return the evaluations of φ and ∇φ so far in the current call."""
    current = _current.get()
    return (0, 0) if current is None else (current.values, current.gradients)
