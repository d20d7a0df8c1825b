"""What `verbose` prints of a search over supports, and what its callback is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ksparse.base.callback import as_scipy_callback
from ksparse.base.report import Lines, logger
from ksparse.firstorder.problem import Problem
from ksparse.result import Result
from ksparse.search.progress import Progress


class AutoReport(Lines):
    """Prints the starts of a search and tells the callback; silent for verbose = 0."""

    def __init__(self, verbose: int, callback: Callable[..., Any] | None) -> None:
        super().__init__(verbose)
        self._callback = as_scipy_callback(callback)

    def banner(self, problem: Problem) -> None:
        """What is solved, and the head of the table."""
        if self.verbose:
            k = getattr(problem.penalty, "k", problem.n)
            logger.info("ksparse auto: %s over %s, at most %d of %d variables", type(problem.loss).__name__, problem.C, k, problem.n)
            logger.info("%s", f"{'start':<28} {'found':>16} {'best':>16} {'swaps':>6} {'proved':>7} {'time':>8}")

    def tell(self, progress: Progress, n: int) -> None:
        """One start, to the table and to the callback."""
        row, best = progress.rows[-1], progress.best
        assert best is not None
        if self.verbose:
            proved = "yes" if row["proved"] else "no"
            logger.info(
                "%s", f"{row['start']:<28} {row['fun']:>16.9e} {best.value:>16.9e} {row['swaps']:>6} {proved:>7} {row['elapsed']:>7.2f}s"
            )
        self._callback(lambda: best.full(n), best.value, progress.searches, np.nan, row["elapsed"])

    def footer(self, result: Result) -> None:
        """How it ended."""
        if self.verbose:
            logger.info("%s", f"{result.message}: {result.fun:.9e} with {result.support.size} nonzeros, {result.elapsed:.2f} s")
