"""A search over supports while it lasts: the best candidate so far, and a record of each stage."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ksparse.search.candidate import Candidate, Found


@dataclass
class Incumbent:
    """The best candidate so far, and records of the stages that led to it."""

    best: Candidate | None = None
    proved: bool = False
    swaps: int = 0
    searches: int = 0  # records so far; a start may leave several
    iterations: int = 0
    products: int = 0
    bound: float = -math.inf  # what no support's value falls below, where all were tried
    rows: list[dict[str, Any]] = field(
        default_factory=list
    )  # one for each stage that ended with a candidate: a start, perturbations, a proof

    def take(self, name: str, found: Found, elapsed: float) -> None:
        """Note where a search ended, and keep it if it is better."""
        self.searches += 1
        self.swaps += found.swaps
        if self.best is not None and np.array_equal(found.best.support, self.best.support):
            self.proved |= found.proved  # the same answer, if not to the last digit
        elif self.best is None or found.best.value < self.best.value:
            self.best, self.proved = found.best, found.proved
        self.rows.append(
            {"start": name, "fun": found.best.value, "swaps": found.swaps, "proved": found.proved, "elapsed": elapsed}
        )
