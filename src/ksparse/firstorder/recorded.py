"""A step recorded on a GPU: a CUDA graph of all its kernels, replayed by one call.

A recorded step reads a state from places of its own and writes the next one to others. A replay begins by moving what was written last to
where it is read, so that the state before is still there when its successor is known: a wrong guess is made good from it. Numbers are the
host's: it reads what the step has measured, works out all that is made of it, and gives the next replay what vectors are multiplied by.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, replace
from typing import Any, Protocol

import array_api_compat as compat
import numpy as np

from ksparse.base.arrays import Array, namespace
from ksparse.base.desk import Desk, UnforeseenError, deferred, places
from ksparse.base.formulas import Recipe, sources
from ksparse.base.scalars import Given, Number
from ksparse.firstorder.problem import Point, Products
from ksparse.firstorder.slots import Slots
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
    if taken_apart(seen.s)[0] != shape or len({namespace(one) for one in leaves.arrays}) > 1:  # it leads elsewhere, or some is the host's
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
        self._in, self._out = ([one + 0.0 for one in leaves.arrays] for _ in range(2))  # where they are read and written
        self._count = len(leaves.numbers)
        self._slots = Slots(leaves.arrays[0])
        self._state: Any = None  # what was written last
        self._known: list[float] = []  # its numbers
        self._begun: Any = None  # the state from which a replay is under way
        self._given = graph.record(self._work)
        self._inputs = Recipe(self._slots.wanted, self._numbers)
        self._outcome = Recipe(self._results, [*self._numbers, *self._measured])
        del self._numbers, self._measured, self._results  # and the vectors that they hold

    def _work(self) -> Array:
        """The step from the state that was written last; what it measures."""
        _copy(self._in, self._out)
        self._slots.begin()
        with deferred(Desk(self._answers, blind=True)) as desk:
            self._numbers = [Given(self._slots) for _ in range(self._count)]
            seen = self._step(put_together(self._shape, Leaves(self._in, list(self._numbers))))
            shape, leaves = taken_apart(seen.s)
            if shape != self._shape or len(desk.asked) != len(self._answers):
                raise UnforeseenError("a step that leads elsewhere")
            self._asked = [condition.act for _, condition, _ in desk.asked]
            sides = [side for _, condition, _ in desk.asked for side in (condition.a, condition.b)]
            self._kind, self._results = type(seen), [*leaves.numbers, *seen[1:], *sides]
            self._measured = sources(self._results, lambda one: isinstance(one, Number) and not isinstance(one, Given))
            given = namespace(self._in[0]).stack(places(self._measured))
        _copy(self._out, leaves.arrays)
        return given

    def fits(self, s: Any) -> bool:
        """Whether a state is of the kind that was recorded."""
        return s is self._state or s is self._begun or taken_apart(s)[0] == self._shape

    def begin(self, s: Any) -> None:
        """Tell the device to make the step from s; s stays what it is."""
        if s is not self._state:  # somebody else made it, maybe of what lies where the graph writes
            shape, leaves = taken_apart(s)
            leaves = Leaves([array + 0.0 for array in leaves.arrays], leaves.numbers)
            put_together(shape, leaves, into=s)
            _copy(self._out, leaves.arrays)
            self._known = [float(one) for one in leaves.numbers]
        self._launch()
        if s is self._state:  # what it was lies where it was read now
            put_together(self._shape, Leaves(self._in, self._known), into=s)
        self._begun, self._state = s, None

    def _launch(self) -> None:
        self._slots.fill(self._inputs(self._known))
        self._graph.replay()

    def replay(self, s: Any, go_on: Callable[[Any], bool]) -> Any:
        """The step from s, or None where its questions have other answers; s stays what it is.

        Where `go_on` says of what is seen that nobody will ask for s again, the next step is begun: what the host does meanwhile is free.
        """
        if s is not self._begun:
            self.begin(s)
        self._begun = None
        results = self._outcome([*self._known, *self._given.tolist()])
        for name, count in zip(vars(self._products), self._spent, strict=True):
            setattr(self._products, name, getattr(self._products, name) + count)
        more = self._count + len(self._kind._fields) - 1
        sides = iter(results[more:])
        if any(act(next(sides), next(sides)) != answer for act, answer in zip(self._asked, self._answers, strict=True)):
            return None
        self._known = results[: self._count]
        if not go_on(self._kind(None, *results[self._count : more])):
            s = self._state = put_together(self._shape, Leaves(self._out, self._known))
            return self._kind(s, *results[self._count : more])
        self._launch()
        s = self._begun = put_together(self._shape, Leaves(self._in, self._known))  # moved there
        return self._kind(s, *results[self._count : more])

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
