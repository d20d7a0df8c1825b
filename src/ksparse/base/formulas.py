"""Arithmetic with numbers that are not known yet: kept as formulas, and worked out where that costs least.

On a device each sum of two numbers is a kernel, as dear as one of two vectors. So what is made of numbers is a formula, which the host
works out once it has read those it is made of; only where a vector meets a number must the device do so itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import array_api_compat as compat
import numpy as np


class Formula(NamedTuple):
    """What is made of numbers, and how; `act` takes Python's and those on a device."""

    act: Callable[..., Any]
    of: tuple[Any, ...]


def worked_out(act: Callable[..., Any], *values: float) -> float:
    """As a device does it: by IEEE, with no errors."""
    try:
        return act(*values)  # type: ignore[no-any-return]
    except (ArithmeticError, ValueError):
        with np.errstate(all="ignore"):
            return float(act(*(np.float64(value) for value in values)))


def root(a: Any) -> Any:
    """√a."""
    if isinstance(a, float | int):
        return math.sqrt(a) if a >= 0 else math.nan
    return compat.array_namespace(a).sqrt(a)


def larger(a: Any, b: Any) -> Any:
    """The larger; NaN where one is."""
    return (a if a >= b or a != a else b) if _here(a, b) else _there("maximum", a, b)


def smaller(a: Any, b: Any) -> Any:
    """The smaller; NaN where one is."""
    return (a if a <= b or a != a else b) if _here(a, b) else _there("minimum", a, b)


def _here(a: Any, b: Any) -> bool:
    return isinstance(a, float | int) and isinstance(b, float | int)


def _there(name: str, a: Any, b: Any) -> Any:
    if hasattr(a, "shape") and hasattr(b, "shape"):
        return getattr(compat.array_namespace(a), name)(a, b)
    there, bound = (a, b) if hasattr(a, "shape") else (b, a)
    return compat.array_namespace(there).clip(there, *((bound, None) if name == "maximum" else (None, bound)))


def formula_of(number: Any) -> Formula | None:
    """How a number is made, where it is made of others."""
    made = getattr(number, "made", None)
    return made if isinstance(made, Formula) else None


def sources(numbers: Sequence[Any], is_source: Callable[[Any], bool]) -> list[Any]:
    """The numbers on a device that others are made of, each once."""
    found: dict[int, Any] = {}

    def look(one: Any) -> None:
        formula = formula_of(one)
        if formula is not None:
            for part in formula.of:
                look(part)
        elif is_source(one):
            found.setdefault(id(one), one)

    for number in numbers:
        look(number)
    return list(found.values())


class Recipe:
    """Numbers by those that they are made of, to be worked out again and again."""

    def __init__(self, wanted: Sequence[Any], known: Sequence[Any]) -> None:
        place = {id(one): i for i, one in enumerate(known)}
        self._constants: list[float] = []
        made: list[tuple[Callable[..., Any], list[Any]]] = []

        def cell(one: Any) -> tuple[str, int]:
            if id(one) not in place:
                formula = formula_of(one)
                if formula is None:
                    self._constants.append(float(one))
                    return "constant", len(self._constants) - 1
                made.append((formula.act, [cell(part) for part in formula.of]))
                place[id(one)] = -len(made)  # counted from the end, below
            found = place[id(one)]
            return ("known", found) if found >= 0 else ("made", -found - 1)

        ends = [cell(one) for one in wanted]
        first = {"known": 0, "constant": len(known), "made": len(known) + len(self._constants)}
        self._made = [(act, *(first[kind] + i for kind, i in of)) for act, of in made]
        self._wanted = [first[kind] + i for kind, i in ends]

    def __call__(self, values: list[float]) -> list[float]:
        cells = [*values, *self._constants]
        begin = len(cells)
        try:
            for act, i, *j in self._made:  # a device waits for it
                cells.append(act(cells[i], cells[j[0]]) if j else act(cells[i]))
        except (ArithmeticError, ValueError):
            del cells[begin:]
            for act, *of in self._made:
                cells.append(worked_out(act, *(cells[i] for i in of)))
        return [cells[i] for i in self._wanted]
