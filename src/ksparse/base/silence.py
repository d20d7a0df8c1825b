"""Lines that a compiled library prints past Python, kept from the terminal."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_lock = threading.Lock()  # the terminal is that of the whole process
_within = 0  # how many ask for silence now
_terminal = -1  # where file descriptor 1 led before the first of them


@contextmanager
def silenced() -> Iterator[None]:
    """Nothing written to file descriptor 1 within is seen: HiGHS has lines that no option of its own turns off."""
    _begin()
    try:
        yield
    finally:
        _end()


def _begin() -> None:
    global _within, _terminal
    with _lock:
        _within += 1
        if _within > 1:
            return
        _terminal = -1
        with suppress(OSError, ValueError, AttributeError):  # no terminal, or one that is closed
            sys.stdout.flush()
            _terminal = os.dup(1)
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.close(nowhere)


def _end() -> None:
    global _within
    with _lock:
        _within -= 1
        if _within or _terminal < 0:
            return
        with suppress(OSError, AttributeError, TypeError):
            ctypes.CDLL(None).fflush(None)  # what the library still holds back
        os.dup2(_terminal, 1)
        os.close(_terminal)
