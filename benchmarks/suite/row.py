"""Row of results: one contender on one problem, as measured and as checked; stored as a line of JSON."""

from __future__ import annotations

import json
import math
import statistics
from dataclasses import asdict, dataclass, field
from pathlib import Path

NAN = float("nan")


@dataclass(frozen=True)
class Row:
    """Results of one run for the tables."""

    group: str
    problem: str
    contender: str
    kind: str = ""
    size: str = ""
    k: int = 0
    objective: float = NAN
    violation: float = NAN
    nonzeros: int = -1
    feasible: bool = False
    proved: bool = False
    bound: float = -math.inf  # that the contender gives for the objective
    seconds: list[float] = field(default_factory=list)  # of each repetition
    warm_up: float = NAN  # import, and first calls on the tiny twin
    before: float = NAN  # MiB of the process before the solve
    peak: float = NAN  # MiB, the most during the solve
    note: str = ""
    reason: str = ""  # why there is no answer
    missing: bool = False  # the library, or the data, is not there
    limit: float = NAN

    @property
    def solved(self) -> bool:
        """Whether there is an answer, good or bad."""
        return not self.reason and math.isfinite(self.objective)

    @property
    def time(self) -> float:
        """Return the median time of the repetitions."""
        return statistics.median(self.seconds) if self.seconds else NAN


def append(path: Path, row: Row) -> None:
    """Append a line to the file; lines before it survive an interruption."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(row)) + "\n")


def read(path: Path) -> list[Row]:
    """Read the rows of a file; none if the file does not exist."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [Row(**json.loads(line)) for line in lines]


def problems_of(rows: list[Row]) -> dict[tuple[str, str], list[Row]]:
    """Group rows by group and problem, in order of appearance."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row.group, row.problem), []).append(row)
    return found


def best_of(rows: list[Row]) -> float:
    """Return the best feasible objective; inf if there is none."""
    return min((row.objective for row in rows if row.solved and row.feasible), default=math.inf)
