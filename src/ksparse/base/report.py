"""Where the lines go that `verbose` prints.

They go to the logger "ksparse" at level INFO. Where nobody has configured logging they are printed to standard output.
"""

from __future__ import annotations

import logging
import sys
from types import TracebackType
from typing import Self

from ksparse.base.checks import check_integer

logger = logging.getLogger("ksparse")


class _Stdout(logging.Handler):
    """print, as a handler: looks up sys.stdout at the time of printing."""

    def emit(self, record: logging.LogRecord) -> None:
        print(record.getMessage(), file=sys.stdout)


class Lines:
    """Sends lines to the logger while it is open, and sees to it that they are shown somewhere."""

    def __init__(self, verbose: int) -> None:
        self.verbose = check_integer(verbose, "verbose", 0)
        self._handler: logging.Handler | None = None
        self._level = logger.level

    def __enter__(self) -> Self:
        if self.verbose and not logger.hasHandlers():
            self._handler = _Stdout()
            logger.addHandler(self._handler)
        if self.verbose and not logger.isEnabledFor(logging.INFO):
            logger.setLevel(logging.INFO)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._handler is not None:
            logger.removeHandler(self._handler)
        logger.setLevel(self._level)
