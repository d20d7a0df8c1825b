"""A step recorded on a GPU: a CUDA graph of all its kernels, replayed by one call.

A recorded step reads a state from places of its own and writes the next one to others. A replay begins by moving what was written last to
where it is read, so that the state before is still there when its successor is known: a wrong guess is made good from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, replace
from typing import Any, Protocol

import array_api_compat as compat
import numpy as np

from ksparse.base.arrays import Array, namespace
from ksparse.base.scalars import Desk, Number, UnforeseenError, deferred
from ksparse.firstorder.problem import Point, Products
from ksparse.firstorder.trees import Leaves, put_together, taken_apart

Step = Callable[[Any], Any]


class Graph(Protocol):
    """Work that can be done again by one call, reading and writing the same places."""

    def record(self, work: Callable[[], Array]) -> Array:
        """The place that the work gives its numbers in; UnforeseenError where it cannot be recorded."""

    def replay(self) -> None:
        """Do it again."""


def graph_for(kind: Array) -> Graph | None:
    """What records steps on arrays of a kind; None where nothing does."""
    if compat.is_torch_array(kind) and kind.device.type == "cuda":
        from ksparse.firstorder.cuda import CudaGraph  # here: torch takes long to import

        return CudaGraph()
    return None


def rehearse(step: Step, s: Any, products: Products, graph: Graph) -> tuple[Any, Recording | None]:
    """The step with all numbers of its state on the device, and its recording; None where it must know one on the way."""
    shape, leaves = taken_apart(s)
    before = astuple(products)
    with deferred(Desk()) as desk:
        seen = step(put_together(shape, Leaves(leaves.arrays, [Number(one) for one in _numbers_there(leaves)])))
        desk.read()
    spent = tuple(after - begin for after, begin in zip(astuple(products), before, strict=True))
    if taken_apart(seen.s)[0] != shape:
        return seen, None
    after = replace(products)
    try:
        return seen, Recording(step, shape, leaves, desk.answers, graph, products, spent)
    except UnforeseenError:
        return seen, None
    finally:
        vars(products).update(vars(after))  # what recording counted was no step


class Recording:
    """A step that answers its questions as they were answered once."""

    def __init__(
        self, step: Step, shape: Any, leaves: Leaves, answers: tuple[bool, ...], graph: Graph, products: Products, spent: tuple[int, ...]
    ) -> None:
        self._step, self._shape, self._answers, self._graph, self._products, self._spent = step, shape, answers, graph, products, spent
        numbers = _numbers_there(leaves)
        self._in, self._out = ([one + 0.0 for one in leaves.arrays] for _ in range(2))  # arrays, where they are read and written
        self._in_numbers, self._out_numbers = numbers + 0.0, numbers + 0.0
        self._state: Any = None  # what was written last
        self._known: list[Any] = []  # its numbers
        self._given = graph.record(self._work)

    def _work(self) -> Array:
        """The step from the state that was written last; its numbers, and those that its questions were about."""
        _copy(self._in, self._out)
        _copy([self._in_numbers], [self._out_numbers])
        with deferred(Desk(self._answers, blind=True)) as desk:
            numbers = [Number(self._in_numbers[i]) for i in range(self._in_numbers.shape[0])]
            seen = self._step(put_together(self._shape, Leaves(self._in, numbers)))
        shape, leaves = taken_apart(seen.s)
        if shape != self._shape or len(desk.asked) != len(self._answers):
            raise UnforeseenError("a step that leads elsewhere")
        self._asked = [condition.act for _, condition, _ in desk.asked]
        sides = [side for _, condition, _ in desk.asked for side in (condition.a, condition.b)]
        self._kind, self._states = type(seen), len(leaves.numbers)
        given = self._stacked([*leaves.numbers, *seen[1:], *sides])
        _copy(self._out, leaves.arrays)
        _copy([self._out_numbers], [given[: self._states]])
        return given

    def _stacked(self, numbers: list[Any]) -> Array:
        xp, like = namespace(self._in_numbers), {"dtype": self._in_numbers.dtype, "device": compat.device(self._in_numbers)}
        return xp.stack([one.there if isinstance(one, Number) else xp.full((), float(one), **like) for one in numbers])

    def fits(self, s: Any) -> bool:
        """Whether a state is of the kind that was recorded."""
        return s is self._state or taken_apart(s)[0] == self._shape

    def replay(self, s: Any) -> Any:
        """The step from s, or None where its questions have other answers; s stays what it is."""
        if s is not self._state:  # somebody else made it, maybe of what lies where the graph writes
            shape, leaves = taken_apart(s)
            leaves = Leaves([array + 0.0 for array in leaves.arrays], leaves.numbers)
            put_together(shape, leaves, into=s)
            _copy(self._out, leaves.arrays)
            _copy([self._out_numbers], [_numbers_there(leaves)])
        self._graph.replay()
        if s is self._state:  # what it was lies where it was read now
            put_together(self._shape, Leaves(self._in, self._known), into=s)
        self._state, values = None, self._given.tolist()
        for name, count in zip(vars(self._products), self._spent, strict=True):
            setattr(self._products, name, getattr(self._products, name) + count)
        more, sides = self._states + len(self._kind._fields) - 1, iter(values[self._states + len(self._kind._fields) - 1 :])
        if any(act(next(sides), next(sides)) != answer for act, answer in zip(self._asked, self._answers, strict=True)):
            return None
        self._known = [Number(None, value) for value in values[: self._states]]
        self._state = put_together(self._shape, Leaves(self._out, self._known))
        return self._kind(self._state, *values[self._states : more])

    def keep(self, point: Point) -> Point:
        """The same point where no replay writes."""
        if not any(point.x is place for place in (*self._in, *self._out)):
            return point
        twin = Point(point.problem, point.x + 0.0, None if point._image is None else point._image + 0.0)
        twin._phi, twin._g, twin.F_value = point._phi, point._g, point.F_value
        return twin


def _numbers_there(leaves: Leaves) -> Array:
    """The numbers of a state as one vector beside its arrays."""
    beside = leaves.arrays[0]
    xp = namespace(beside)
    return xp.asarray(np.array([float(one) for one in leaves.numbers]), dtype=xp.float64, device=compat.device(beside))


def _copy(into: list[Array], of: list[Array]) -> None:
    """Arrays to the places of others."""
    if compat.is_torch_array(into[0]):
        import torch

        torch._foreach_copy_(into, of)  # all at once
        return
    for place, one in zip(into, of, strict=True):
        place[...] = one
