"""Base class of contenders: a name, the kinds of problems it takes, and one call of its library."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np

from suite.problem import Problem, twin

BUDGETS = (0.3, 1.0, 3.0)  # seconds, the same for all contenders with restarts
WARM_UP = 10.0  # seconds that a solver with a clock may spend on the tiny twin


@dataclass(frozen=True)
class Answer:
    """Answer of a library: x, a note for the reader, whether x is proved optimal, and a lower bound."""

    x: Any
    note: str = ""
    proved: bool = False
    bound: float = -math.inf  # of the objective


class Contender:
    """One method of one library. `solve` includes all preparation of the raw data, and is timed."""

    name: str
    kinds: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[tuple[str, ...]] = ()  # modules
    takes_sparse: ClassVar[bool] = False
    invited: ClassVar[bool] = False  # runs only in groups that name it

    def missing(self) -> str | None:
        """Return why the contender cannot run here, without importing anything, or None."""
        absent = [module for module in self.needs if find_spec(module) is None]
        return f"not installed: {', '.join(absent)}" if absent else None

    def takes(self, problem: Problem) -> bool:
        return problem.kind in self.kinds and (self.takes_sparse or not problem.sparse)

    def load(self) -> None:
        """Import the library."""
        for module in self.needs:
            import_module(module)

    def warm_up(self, problem: Problem) -> None:
        """Compile whatever is compiled on first use, before timing, by a solve of a tiny problem."""
        self.solve(twin(problem), WARM_UP)

    def solve(self, problem: Problem, seconds: float) -> Answer:
        """Solve; stop after `seconds` with the best x where the library has a time limit."""
        raise NotImplementedError


def restarted(again: Callable[[Any], tuple[Any, float]], problem: Problem, seconds: float) -> Any:
    """Return the best search within the time: the first by default settings, the others from random supports."""
    rng, began = np.random.default_rng(0), time.perf_counter()
    best, value = again(None)
    longest = time.perf_counter() - began
    while time.perf_counter() - began + longest < seconds:
        started = time.perf_counter()
        x, reached = again(np.sort(rng.choice(problem.n, problem.k, replace=False)))
        longest = max(longest, time.perf_counter() - started)
        if reached < value:
            best, value = x, reached
    return best


def quietly(call: Any, *arguments: Any) -> Any:
    """Call without warnings: the answer is checked anyway."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(*arguments)


def ignores_signs(problem: Problem) -> str:
    """Return the note of a contender that cannot handle signs."""
    return "" if problem.signs == "none" else "ignores the signs"


def joined(*notes: str) -> str:
    return "; ".join(note for note in notes if note)


def standardised(A: Any) -> Any:
    """Return Z with ZᵀZ the correlations of the columns of A."""
    Z = A - A.mean(axis=0)
    return Z / np.sqrt((Z * Z).sum(axis=0))


def keep_largest(x: Any, k: int) -> Any:
    """Keep the k largest entries of x."""
    kept = np.zeros_like(x)
    order = np.argsort(-np.abs(x), kind="stable")[:k]
    kept[order] = x[order]
    return kept


def unit(x: Any) -> Any:
    """Scale x to the unit sphere."""
    length = float(np.linalg.norm(x))
    return x if length == 0 else x / length
