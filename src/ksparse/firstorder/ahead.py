"""How a step is made: at once, or on a device by guesses that one read confirms.

A step asks a few questions of its numbers: is F lower, does the momentum point uphill, are there ties among the largest entries? The
answers are nearly always those of the step before. So on a device they are guessed, and the step, with all that the loop wants to know of
it, goes there without a stop; then all its numbers are read at once, and where a guess was wrong the step is made again, answer by answer.
What repeats itself is recorded (`recorded`), and costs one call from then on.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from ksparse.base.arrays import on_device
from ksparse.base.desk import Desk, Habit, deferred
from ksparse.firstorder.methods.base import State
from ksparse.firstorder.problem import Point, Problem
from ksparse.firstorder.recorded import Graph, Recording, graph_for, rehearse
from ksparse.firstorder.trees import remembered

ALIKE = 12  # steps with the same answers after which such a step is recorded: that costs about as much as some
TRIED = 16  # replays after which it counts how many were right
RECORDINGS = 4  # that are tried in a run


class Seen(NamedTuple):
    """A step's state, and what the loop asks of it."""

    s: Any
    F: float
    size: float  # max |xᵢ|
    change: float  # ‖x⁽ᵗ⁺¹⁾ − x⁽ᵗ⁾‖, where that decides
    length: float  # ‖x⁽ᵗ⁺¹⁾‖, likewise


Step = Callable[[Any], Seen]


class Ahead(Protocol):
    """Makes steps."""

    def __call__(self, s: State) -> Seen:
        """The step from a state."""

    def keep(self, point: Point) -> Point:
        """The same point, where later steps will not write."""


def look_ahead(step: Step, problem: Problem) -> Ahead:
    """By guesses where x lies on a device, else at once."""
    return ByGuesses(step, problem) if on_device(problem.loss.kind) else AtOnce(step)


def settled(point: Point) -> Point:
    """The same point, what it knows as Python floats."""
    for name in ("F_value", "_phi", "_g"):
        known = getattr(point, name)
        if known is not None:
            setattr(point, name, float(known))
    return point


class AtOnce:
    """The step as it is written."""

    def __init__(self, step: Step) -> None:
        self._step = step

    def __call__(self, s: State) -> Seen:
        return self._step(s)

    def keep(self, point: Point) -> Point:
        return point


class ByGuesses:
    """Steps with one read each, as long as answers repeat themselves."""

    def __init__(self, step: Step, problem: Problem) -> None:
        self._step, self._problem = step, problem
        self._habits: dict[Any, Habit] = {}
        self._met: Counter[tuple[bool, ...]] = Counter()  # answers
        self._right = self._wrong = 0
        self._recording: Recording | None = None
        self._tries = RECORDINGS

    def __call__(self, s: State) -> Seen:
        if self._recording is None or not self._recording.fits(s):
            return self._guessed(s)
        F = float(self._problem.F(s.x))
        seen: Seen | None = self._recording.replay(s, lambda seen: self._lasts(seen, F))
        self._right, self._wrong = self._right + (seen is not None), self._wrong + (seen is None)
        if self._right + self._wrong >= TRIED and self._wrong > self._right:  # a wrong guess costs a step
            self._recording, self._right = None, 0
        return self._guessed(s, careful=True) if seen is None else seen

    def keep(self, point: Point) -> Point:
        return point if self._recording is None else self._recording.keep(point)

    def _lasts(self, seen: Seen, F: float) -> bool:
        """Whether the loop is sure to go on, and by the new point: else it may keep the one before, which the next step writes over."""
        return self._problem.loss.least > -math.inf and seen.F < F and math.isfinite(seen.size)

    def _guessed(self, s: State, careful: bool = False) -> Seen:
        """The step by habit, and where that was wrong again, with care."""
        as_it_was = remembered(s)
        while True:
            with deferred(Desk((), self._habits, careful=careful)) as desk:
                try:
                    seen = self._step(s)
                except ArithmeticError:  # a wrong answer may lead anywhere
                    if desk.learn():
                        raise
                else:
                    desk.read()
                    if desk.learn():
                        break
            as_it_was()
            careful = True
        self._met[desk.answers] += 1
        graph = graph_for(self._problem.loss.kind) if self._tries and self._met[desk.answers] >= ALIKE + self._right else None
        if graph is None:
            return seen
        as_it_was()
        return self._rehearsed(s, graph)

    def _rehearsed(self, s: State, graph: Graph) -> Seen:
        """The step once more with all numbers on the device, and from then on its recording, where it can be recorded.

        It takes the place of one that was right less often than such steps were met beside it: the first may have been of a rare kind.
        """
        self._tries -= 1
        self._met.clear()
        self._right = self._wrong = 0
        seen: Seen
        seen, self._recording = rehearse(self._step, s, self._problem.products, graph)
        return seen
