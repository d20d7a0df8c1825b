"""What an experiment is: its jobs, and the words that go with them in the report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ksparse.experiments.row import frame
from ksparse.experiments.run import LIMIT, Job, Watch, run

if TYPE_CHECKING:
    import pandas as pd

SOLVERS = "The subproblems of l1-DCA and MIP-DCA are solved by PIQP and Clarabel instead of CPLEX."


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper. Call it for its tidy table: `table5(sizes=(1, 2), seeds=(0, 1), methods=("l2-APDCA", "auto"))`.

    The options are those of `jobs`. With a folder `out` rows are saved as they come and taken up again, unless `force`.
    """

    name: str
    title: str
    jobs: Callable[..., Iterator[Job]]
    about: str  # the problem, for the report
    differs: str  # what is not as in the paper
    quick: dict[str, Any] = field(default_factory=dict)  # options for a quick run

    def __call__(
        self, *, out: str | Path | None = None, limit: float = LIMIT, force: bool = False, watch: Watch | None = None, **options: Any
    ) -> pd.DataFrame:
        """The table: one row per instance, seed, repetition and method."""
        return frame(run(self.jobs(**options), out=out, limit=limit, force=force, watch=watch))
