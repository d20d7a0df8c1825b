"""What a contender is: a name, the kinds of problems it takes, and one call of its library."""

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

BUDGETS = (0.3, 1.0, 3.0)  # seconds, the same for all who search again while there is time
WARM_UP = 10.0  # seconds that a solver with a clock may spend on the tiny twin


@dataclass(frozen=True)
class Answer:
    """Answer of a library: x, a note for the reader, whether x is proved optimal, and a lower bound."""

    x: Any
    note: str = ""
    proved: bool = False
    bound: float = -math.inf  # of the objective


class Contender:
    """One way of one library. `solve` does all that the library needs, from the raw data: that is what is timed."""

    name: str
    kinds: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[tuple[str, ...]] = ()  # modules
    takes_sparse: ClassVar[bool] = False
    invited: ClassVar[bool] = False  # runs only in groups that name it

    def missing(self) -> str | None:
        """Why it cannot run here, without importing anything."""
        absent = [module for module in self.needs if find_spec(module) is None]
        return f"not installed: {', '.join(absent)}" if absent else None

    def takes(self, problem: Problem) -> bool:
        return problem.kind in self.kinds and (self.takes_sparse or not problem.sparse)

    def load(self) -> None:
        """Import the library."""
        for module in self.needs:
            import_module(module)

    def warm_up(self, problem: Problem) -> None:
        """Whatever is compiled on first use, compiled before the clock runs: a solve of the tiny twin."""
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
    """A call whose warnings do not matter: the judge looks at the answer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(*arguments)


def ignores_signs(problem: Problem) -> str:
    """The note of a contender that cannot be told of signs."""
    return "" if problem.signs == "none" else "ignores the signs"


def joined(*notes: str) -> str:
    return "; ".join(note for note in notes if note)


def standardised(A: Any) -> Any:
    """Z with ZᵀZ the correlations of the columns of A."""
    Z = A - A.mean(axis=0)
    return Z / np.sqrt((Z * Z).sum(axis=0))


def keep_largest(x: Any, k: int) -> Any:
    """x with its k largest entries only."""
    kept = np.zeros_like(x)
    order = np.argsort(-np.abs(x), kind="stable")[:k]
    kept[order] = x[order]
    return kept


def unit(x: Any) -> Any:
    """x on the unit sphere."""
    length = float(np.linalg.norm(x))
    return x if length == 0 else x / length
