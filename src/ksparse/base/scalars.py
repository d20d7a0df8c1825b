"""Numbers on a device: computed there, and read, all that wait at once, where somebody must know one.

To read a number from a GPU is to wait for all that it was told to do before. So within `deferred()` the sums and norms of arrays that lie
on a device are `Number`s: arithmetic with them goes on there. Who asks whether one is less than another must wait, or guess: a `Desk`
answers as the last time that this line of the program asked, keeps the question, and says afterwards, by one read for all, whether the
guesses were right.
"""

from __future__ import annotations

import math
import operator
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import array_api_compat as compat

SEEN = 8  # answers after which a habit is judged
CALLERS = 5  # that tell two questions of one line apart


class UnforeseenError(RuntimeError):
    """Somebody must know a number now, where nothing may be read."""


class Number:
    """A number on a device, and its value once that is read.

    Arithmetic with numbers that were known before the present desk gives Python floats; what was first seen at it stays a Number, so that
    the same questions are asked whether numbers were read meanwhile or not.
    """

    __slots__ = ("__weakref__", "born", "there", "value")
    __array_ufunc__ = None  # arrays leave arithmetic with it to it

    def __init__(self, there: Any, value: float | None = None) -> None:
        self.there, self.value = there, value  # an array without axes, double precision
        desk = _desk.get()
        self.born = None if desk is None else desk.token
        if value is None and desk is not None:
            desk.waiting.append(weakref.ref(self))

    @property
    def fresh(self) -> bool:
        """Whether it was first seen at the present desk."""
        desk = _desk.get()
        return desk is not None and self.born is desk.token

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return function(*(_bare(one) for one in args), **{name: _bare(one) for name, one in (kwargs or {}).items()})

    def __float__(self) -> float:
        if self.value is None:
            desk = _desk.get()
            if desk is not None:
                desk.read()
            if self.value is None:  # it is from before the desk
                self.value = float(self.there)
        return self.value

    def __bool__(self) -> bool:
        differs: Any = Number.__ne__(self, 0.0)
        return bool(differs)

    def __abs__(self) -> Number | float:
        return Number(abs(self.there)) if self.value is None else _result(abs(self.value), self)

    def __neg__(self) -> Number | float:
        return Number(-self.there) if self.value is None else _result(-self.value, self)

    def __repr__(self) -> str:
        return f"Number({'there' if self.value is None else self.value})"

    def __format__(self, form: str) -> str:
        return format(float(self), form)

    __hash__ = None  # type: ignore[assignment]  # it may not be known


def _arithmetic(name: str, act: Callable[[Any, Any], Any], reflected: bool) -> None:
    def method(self: Number, other: Any) -> Any:
        a, b = (other, self) if reflected else (self, other)
        if not _scalar(other):
            return act(_beside(a, other), _beside(b, other)) if hasattr(other, "shape") else NotImplemented  # an array's arithmetic
        known = _known(a), _known(b)
        return _result(act(*known), self, other) if None not in known else Number(act(_bare(a), _bare(b)))

    setattr(Number, f"__{'r' if reflected else ''}{name}__", method)


def _comparison(name: str, act: Callable[[Any, Any], bool]) -> None:
    def method(self: Number, other: Any) -> Any:
        if not _scalar(other):
            return NotImplemented
        known = _known(self), _known(other)
        return Condition(act, self, other) if None in known or _fresh(self, other) else act(*known)

    setattr(Number, f"__{name}__", method)


def _scalar(one: Any) -> bool:
    return isinstance(one, Number | float | int)


def _known(one: Any) -> Any:
    return one.value if isinstance(one, Number) else one


def _fresh(*several: Any) -> bool:
    return any(isinstance(one, Number) and one.fresh for one in several)


def _result(value: float, *of: Any) -> Any:
    """What came of numbers that are known."""
    return Number(None, value) if _fresh(*of) else value


def _bare(one: Any) -> Any:
    """A number as arrays take it: its value where that is known, else what lies there."""
    if not isinstance(one, Number):
        return one
    return one.there if one.value is None else one.value


def _beside(one: Any, array: Any) -> Any:
    """A number that leaves the array its precision; PyTorch sees to that itself."""
    bare = _bare(one)
    if one is array or not hasattr(bare, "shape") or compat.is_torch_array(array):
        return bare
    return compat.array_namespace(array).astype(bare, array.dtype)


for _name in ("add", "sub", "mul", "truediv", "pow", "mod"):
    for _reflected in (False, True):
        _arithmetic(_name, getattr(operator, _name), _reflected)
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    _comparison(_name, getattr(operator, _name))


class Condition:
    """A comparison of numbers of which one is not known, or was not before."""

    __slots__ = ("a", "act", "b")

    def __init__(self, act: Callable[[Any, Any], bool], a: Number | float, b: Number | float) -> None:
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
        self.waiting: list[weakref.ref[Number]] = []
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
        for one, value in zip(held, bring([one.there for one in held]), strict=True):
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


def deferring() -> bool:
    """Whether numbers of arrays on a device should stay there."""
    return _desk.get() is not None


def bring(there: list[Any]) -> list[float]:
    """Numbers from a device, by one read."""
    return compat.array_namespace(there[0]).stack(there).tolist() if there else []


def root(a: float) -> float:
    """√a."""
    if not isinstance(a, Number):
        return math.sqrt(a)
    found: Any = _result(math.sqrt(a.value), a) if a.value is not None else Number(compat.array_namespace(a.there).sqrt(a.there))
    return found


def larger(a: float, b: float) -> float:
    """The larger of two numbers."""
    return _chosen(a, b, "maximum") if isinstance(a, Number) or isinstance(b, Number) else max(a, b)


def smaller(a: float, b: float) -> float:
    """The smaller of two numbers."""
    return _chosen(a, b, "minimum") if isinstance(a, Number) or isinstance(b, Number) else min(a, b)


def _chosen(a: Any, b: Any, name: str) -> Any:
    known = _known(a), _known(b)
    if None not in known:
        return _result((max if name == "maximum" else min)(*known), a, b)
    a, b = (_bare(one) for one in (a, b))
    if hasattr(a, "shape") and hasattr(b, "shape"):
        return Number(getattr(compat.array_namespace(a), name)(a, b))
    there, bound = (a, b) if hasattr(a, "shape") else (b, a)
    return Number(compat.array_namespace(there).clip(there, *((bound, None) if name == "maximum" else (None, bound))))
