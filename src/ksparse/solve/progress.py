"""How far a batch has come: told to the callback and shown as a bar, from whatever thread; and when it is to end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ksparse.result import Status
from ksparse.util.checks import check_callable
from ksparse.util.progress import NULL_BAR, Bar, bar


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
