"""Memory of a process, current and peak, in MiB."""

from __future__ import annotations

import contextlib
import sys
import threading
from pathlib import Path

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def _line(name: str) -> float | None:
    if not STATUS.exists():
        return None
    found = next(
        (line.split()[1] for line in STATUS.read_text(encoding="utf-8").splitlines() if line.startswith(name + ":")),
        None,
    )
    return None if found is None else int(found) / 1024


def now() -> float:
    """Return the current memory, or the peak if the system does not report it."""
    return _line("VmRSS") or peak()


def peak() -> float:
    """Return the peak since `reset_peak` where the system supports it, else since the process began.

    Linux keeps ru_maxrss across exec, so that it starts at what the parent held: VmHWM does not.
    """
    found = _line("VmHWM")
    if found is not None:
        return found
    try:
        import resource  # not on Windows
    except ImportError:
        return float("nan")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def reset_peak() -> None:
    """Reset the peak after imports and warm-up, where the system supports it."""
    with contextlib.suppress(OSError):
        RESET.write_text("5", encoding="ascii")


class Anonymous:
    """Most memory that the process holds during a block, beyond the memory held before, in MiB, without mapped files.

    A thread reads the number every few milliseconds, because the system keeps no peak of it. NaN where it is unknown.
    """

    def __init__(self, every: float = 0.002) -> None:
        self._every, self._done = every, threading.Event()
        self._before = self._most = _line("RssAnon") or float("nan")
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._done.wait(self._every):
            self._most = max(self._most, _line("RssAnon") or float("nan"))

    def __enter__(self) -> Anonymous:
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._watcher.join()

    @property
    def peak(self) -> float:
        """MiB."""
        return self._most - self._before
