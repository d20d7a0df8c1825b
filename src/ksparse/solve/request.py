"""What every way of solving the k-sparse problem is told: the pieces, and how the user wants it run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ksparse.base.arrays import Array
from ksparse.firstorder.drive import Stopping
from ksparse.losses import Loss
from ksparse.sets import ConvexSet


@dataclass(frozen=True)
class Call:
    """min φ(x) s.t. ‖x‖₀ ≤ k, x ∈ C, checked, and the manners of the run."""

    loss: Loss
    C: ConvexSet
    n: int
    k: int
    x0: Array | None  # the user's start, in the loss's kind of array
    stopping: Stopping  # max_time is for everything together
    callback: Callable[..., Any] | None = None
    verbose: int = 0
    started: float = field(default_factory=time.perf_counter)
    interrupted: bool = False  # whether that happened before anything was done
    before: tuple[int, int] = (0, 0)  # evaluations of φ and ∇φ that the loss had counted itself

    @property
    def elapsed(self) -> float:
        """Seconds since the call."""
        return time.perf_counter() - self.started

    @property
    def deadline(self) -> float:
        """When the time is up."""
        return np.inf if self.stopping.max_time is None else self.started + self.stopping.max_time

    def stopping_now(self) -> Stopping:
        """The stopping rule with the time that is left."""
        if self.stopping.max_time is None:
            return self.stopping
        return replace(self.stopping, max_time=max(0.0, self.deadline - time.perf_counter()))
