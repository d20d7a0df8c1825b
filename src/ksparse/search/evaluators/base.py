"""What an evaluator is: the best point on a support, and what no point there falls below."""

from __future__ import annotations

from typing import Protocol

from ksparse.search.candidate import Candidate
from ksparse.util.arrays import Vector


class Evaluator(Protocol):
    """One way to answer for a support."""

    direct: bool  # whether it is a direct solve, cheap and exact

    def solve(self, support: Vector, hint: Candidate | None) -> Candidate | None:
        """The best point on a nonempty sorted support; `hint` is one of a neighbouring support.

        None or `InfeasibleError` where C has no point there, `UndecidedError` where arithmetic cannot tell, `UnboundedError`.
        """

    def distinct(self, support: Vector) -> Vector:
        """The support without variables that are another one once more, where that is seen."""

    def lower_bound(self, support: Vector, found: Candidate) -> float:
        """What φ over C on the support is proved not to fall below; −∞ where nothing is proved."""
