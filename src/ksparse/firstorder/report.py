"""The table that `verbose` prints of a run: banner, one line per so many iterations, footer."""

from __future__ import annotations

from ksparse.firstorder.problem import Problem
from ksparse.util.progress import Lines, logger

HEADER = f"{'it':>7} {'F':>16} {'1/step':>10} {'residual':>10} {'products':>9} {'time':>8}"


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
