"""The table that `verbose` prints: banner, one line per so many iterations, footer.

Lines go to the logger "ksparse" at level INFO. Where nobody has configured logging they are printed to standard output.
"""

from __future__ import annotations

import logging
import sys
from types import TracebackType
from typing import Self

from ksparse.checks import check_integer
from ksparse.problem import Problem

logger = logging.getLogger("ksparse")
HEADER = f"{'it':>7} {'F':>16} {'1/step':>10} {'residual':>10} {'products':>9} {'time':>8}"


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


class Report(Lines):
    """Prints a run of the driver; silent for verbose = 0. verbose = 1 prints every 100th iteration, 2 every 10th, 3 each."""

    @property
    def every(self) -> int:
        """How many iterations to a line, 0 for none."""
        return {0: 0, 1: 100, 2: 10}.get(self.verbose, 1)

    def banner(self, problem: Problem, method: str) -> None:
        """What is solved, and the head of the table."""
        if self.every:
            logger.info(
                "ksparse %s: %s + %s over %s, %d variables", method, type(problem.loss).__name__, problem.penalty, problem.C, problem.n
            )
            logger.info(HEADER)

    def line(self, t: int, F: float, l: float, residual: float, products: int, elapsed: float) -> None:  # noqa: E741
        """One iteration, if it is its turn."""
        if self.every and t % self.every == 0:
            logger.info("%s", f"{t:>7} {F:>16.9e} {l:>10.3e} {residual:>10.2e} {products:>9} {elapsed:>7.2f}s")

    def footer(self, message: str, t: int, F: float, elapsed: float) -> None:
        """How it ended."""
        if self.every:
            logger.info("%s", f"{message}: F = {F:.9e} after {t} iterations, {elapsed:.2f} s")
