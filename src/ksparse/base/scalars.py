"""Numbers on a device: computed there, and read, all that wait at once, where somebody must know one.

Within `deferred()` the sums and norms of arrays that lie on a device are `Number`s: arithmetic with them is put off (`formulas`), or goes
on there where a vector is among it; comparing them is a question to the `desk`.
"""

from __future__ import annotations

import math
import operator
import weakref
from collections.abc import Callable
from typing import Any, Protocol

import array_api_compat as compat

from ksparse.base import formulas
from ksparse.base.desk import Condition, present
from ksparse.base.formulas import Formula, sources, worked_out
from ksparse.base.norms import Norm, taken


class Number:
    """A number on a device, and its value once that is read; or a formula of such, or a norm that nobody has taken yet.

    Arithmetic with numbers that were known before the present desk gives Python floats; what was first seen at it stays a Number, so that
    the same questions are asked whether numbers were read meanwhile or not.
    """

    __slots__ = ("__weakref__", "_there", "_value", "born", "made")
    __array_ufunc__ = None  # arrays leave arithmetic with it to it

    def __init__(self, there: Any = None, value: float | None = None, made: Formula | Norm | None = None) -> None:
        self._there, self._value, self.made = there, value, made  # an array without axes, double precision
        desk = present()
        self.born = None if desk is None else desk.token
        if value is None and desk is not None and not isinstance(made, Formula):
            desk.waiting.append(weakref.ref(self))

    @property
    def value(self) -> float | None:
        """Where it is known."""
        if self._value is None and isinstance(self.made, Formula):
            known = [_known(one) for one in self.made.of]
            self._value = None if None in known else worked_out(self.made.act, *known)
        return self._value

    @value.setter
    def value(self, value: float) -> None:
        self._value = value

    @property
    def there(self) -> Any:
        """Where it lies; what was put off is done."""
        if self._there is None and self.made is not None:
            self._there = self._done(self.made)
        return self._there

    def _done(self, made: Formula | Norm) -> Any:
        if isinstance(made, Norm):
            return taken([made])[0]
        leaves = sources([self], _unknown)
        if leaves and all(isinstance(one, Given) for one in leaves):
            return leaves[0].slots.place(self)
        return made.act(*(_bare(one) for one in made.of))

    @property
    def fresh(self) -> bool:
        """Whether it was first seen at the present desk."""
        desk = present()
        return desk is not None and self.born is desk.token

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return function(*(_bare(one) for one in args), **{name: _bare(one) for name, one in (kwargs or {}).items()})

    def __float__(self) -> float:
        if self.value is None:
            desk = present()
            if desk is not None:
                desk.read()
            if self.value is None:  # it is from before the desk
                self.value = float(self.there)
        assert self.value is not None
        return self.value

    def __bool__(self) -> bool:
        differs: Any = Number.__ne__(self, 0.0)
        return bool(differs)

    def __abs__(self) -> Any:
        return _made(abs, self)

    def __neg__(self) -> Any:
        return _made(operator.neg, self)

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
        return _made(act, a, b)

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


def _made(act: Callable[..., Any], *of: Any) -> Any:
    """What comes of numbers: another one, or a formula where one of them is not known."""
    known = [_known(one) for one in of]
    if None in known:
        return Number(made=Formula(act, of))
    value = worked_out(act, *known)
    return Number(None, value) if _fresh(*of) else value


def _unknown(one: Any) -> bool:
    return isinstance(one, Number) and one.value is None


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


class Slots(Protocol):
    """Where a recorded step finds what it is given."""

    def place(self, number: Number) -> Any:
        """A place for a number, which is filled before each replay."""


class Given(Number):
    """A number that a recorded step is given: before a replay the host knows it, and all that is made of such alone."""

    __slots__ = ("slots",)

    def __init__(self, slots: Slots) -> None:
        super().__init__()
        self.slots = slots

    @property
    def there(self) -> Any:
        if self._there is None:
            self._there = self.slots.place(self)
        return self._there


def root(a: float) -> float:
    """√a."""
    return _made(formulas.root, a) if isinstance(a, Number) else math.sqrt(a)


def larger(a: float, b: float) -> float:
    """The larger of two numbers."""
    return _made(formulas.larger, a, b) if isinstance(a, Number) or isinstance(b, Number) else max(a, b)


def smaller(a: float, b: float) -> float:
    """The smaller of two numbers."""
    return _made(formulas.smaller, a, b) if isinstance(a, Number) or isinstance(b, Number) else min(a, b)
