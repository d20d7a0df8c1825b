"""Where numbers on a device wait to be read, and where questions about them are answered.

To read a number from a GPU is to wait for all that it was told to do before. So who asks whether one is less than another must wait, or
guess: a `Desk` answers as the last time that this line of the program asked, keeps the question, and says afterwards, by one read for all,
whether the guesses were right.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import array_api_compat as compat

from ksparse.base.norms import Norm, taken

SEEN = 8  # answers after which a habit is judged
CALLERS = 5  # that tell two questions of one line apart


class UnforeseenError(RuntimeError):
    """Somebody must know a number now, where nothing may be read."""


class Condition:
    """A comparison of numbers of which one is not known, or was not before."""

    __slots__ = ("a", "act", "b")

    def __init__(self, act: Callable[[Any, Any], bool], a: Any, b: Any) -> None:
        self.act, self.a, self.b = act, a, b

    def holds(self) -> bool:
        """Whether it does: the numbers are read."""
        return self.act(float(self.a), float(self.b))

    def __bool__(self) -> bool:
        desk = _desk.get()
        return self.holds() if desk is None else desk.answer(self)


@dataclass
class Habit:
    """How a line of the program was answered."""

    last: bool
    times: int = 0
    wrong: int = 0  # guesses

    @property
    def doubtful(self) -> bool:
        """Whether it is guessed wrong so often that to read is cheaper than to begin again."""
        return self.times >= SEEN and 3 * self.wrong > self.times


class Desk:
    """Where numbers wait to be read, and where questions are answered: as `expected` as far as that goes, else by habit.

    A careful one guesses nothing that was guessed wrong before. A blind one reads nothing.
    """

    def __init__(
        self, expected: tuple[bool, ...] = (), habits: dict[Any, Habit] | None = None, *, careful: bool = False, blind: bool = False
    ) -> None:
        self.expected, self.habits, self.careful, self.blind = expected, {} if habits is None else habits, careful, blind
        self.token = object()
        self.waiting: list[weakref.ref[Any]] = []
        self.asked: list[tuple[Any, Condition, bool]] = []

    @property
    def answers(self) -> tuple[bool, ...]:
        """What was answered, in the order of the questions."""
        return tuple(answer for _, _, answer in self.asked)

    def answer(self, condition: Condition) -> bool:
        """As expected, or as usual, else by a read."""
        place, line = len(self.asked), _line() if not self.blind else None
        habit = self.habits.get(line)
        if place < len(self.expected):
            answer = self.expected[place]
        elif self.blind:
            raise UnforeseenError("a question that was not expected")
        elif habit is None or habit.doubtful or (self.careful and habit.wrong):
            answer = condition.holds()
        else:
            answer = habit.last
        self.asked.append((line, condition, answer))
        return answer

    def learn(self) -> bool:
        """Whether what was answered is so; the next time it will be."""
        right = True
        for line, condition, answer in self.asked:
            truth = condition.holds()
            habit = self.habits.setdefault(line, Habit(truth))
            habit.times += 1
            habit.wrong += truth != answer
            habit.last = truth
            if truth != answer:
                right = False
                break  # what came after was asked of another course of things
        return right

    def read(self) -> None:
        """Know all numbers that wait and that somebody still holds."""
        if self.blind:
            raise UnforeseenError("a number that must be known")
        held = [one for reference in self.waiting if (one := reference()) is not None and one.value is None]
        self.waiting.clear()
        for one, value in zip(held, bring(places(held)), strict=True):
            one.value = value


def _line() -> Any:
    """Which line of the program asks, and from where it was called."""
    frame, found = sys._getframe(3), list[Any]()
    while frame is not None and len(found) < CALLERS:
        found.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back  # type: ignore[assignment]
    return tuple(found)


_desk: ContextVar[Desk | None] = ContextVar("desk", default=None)


@contextmanager
def deferred(desk: Desk) -> Iterator[Desk]:
    """Within it numbers on devices wait at a desk."""
    token = _desk.set(desk)
    try:
        yield desk
    finally:
        _desk.reset(token)


def present() -> Desk | None:
    """The desk that numbers wait at now."""
    return _desk.get()


def deferring() -> bool:
    """Whether numbers of arrays on a device should stay there."""
    return _desk.get() is not None


def places(numbers: list[Any]) -> list[Any]:
    """Where numbers lie, the norms among them taken at once."""
    norms = [one for one in numbers if one._there is None and isinstance(one.made, Norm)]
    for one, there in zip(norms, taken([one.made for one in norms if isinstance(one.made, Norm)]), strict=True):
        one._there = there
    return [one.there for one in numbers]


def bring(there: list[Any]) -> list[float]:
    """Numbers from a device, by one read."""
    return compat.array_namespace(there[0]).stack(there).tolist() if there else []
