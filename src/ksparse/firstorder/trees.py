"""A method's state taken apart into arrays and numbers, and put together of others: states of one shape differ by those alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

from ksparse.base.arrays import Array, is_array
from ksparse.base.scalars import Number
from ksparse.firstorder.problem import Point

KNOWN = ("x", "_image", "_phi", "_gradient", "_g", "_slope", "F_value")  # what a point holds


class Leaves(NamedTuple):
    """Arrays, each once, and numbers."""

    arrays: list[Array]
    numbers: list[Any]


def taken_apart(tree: Any) -> tuple[Any, Leaves]:
    """The shape of a state, which can be compared, and its leaves."""
    leaves, met = Leaves([], []), dict[int, Any]()

    def apart(node: Any) -> Any:
        if id(node) in met:
            return met[id(node)]
        if isinstance(node, Number | float | int) and not isinstance(node, bool):
            leaves.numbers.append(node)
            return "number", len(leaves.numbers) - 1
        if is_array(node):
            leaves.arrays.append(node)
            met[id(node)] = "array", len(leaves.arrays) - 1
            return met[id(node)]
        if isinstance(node, Point):
            place = len(met)
            met[id(node)] = "again", place
            return "point", place, node.problem, tuple(apart(getattr(node, name)) for name in KNOWN)
        if is_dataclass(node):
            return "record", type(node), tuple(apart(getattr(node, field.name)) for field in fields(node))
        return "as it is", node

    return apart(tree), leaves


def remembered(tree: Any) -> Callable[[], None]:
    """What the points of a state know now, to be brought back: what they learn under a wrong guess is not true."""
    known: list[tuple[Point, list[Any]]] = []

    def look(node: Any) -> None:
        if isinstance(node, Point):
            known.append((node, [getattr(node, name) for name in KNOWN]))
        elif is_dataclass(node):
            for field in fields(node):
                look(getattr(node, field.name))

    def bring_back() -> None:
        for point, values in known:
            for name, value in zip(KNOWN, values, strict=True):
                setattr(point, name, value)

    look(tree)
    return bring_back


def put_together(shape: Any, leaves: Leaves, into: Any = None) -> Any:
    """A state of a shape; `into` one that is there its points are written."""
    points: dict[int, Point] = {}

    def together(node: Any, there: Any) -> Any:
        match node:
            case "number", place:
                return leaves.numbers[place]
            case "array", place:
                return leaves.arrays[place]
            case "again", place:
                return points[place]
            case "point", place, problem, parts:
                point = points[place] = Point(problem, None) if there is None else there
                for name, part in zip(KNOWN, parts, strict=True):
                    setattr(point, name, together(part, None))
                return point
            case "record", kind, parts:
                named = [(field.name, part) for field, part in zip(fields(kind), parts, strict=True)]
                made = {name: together(part, None if there is None else getattr(there, name)) for name, part in named}
                return there if there is not None else kind(**made)
            case _, one:
                return one

    return together(shape, into)
