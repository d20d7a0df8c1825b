"""How many of each label may and must be nonzero, as bounds see it: the most that members can sum to under such limits.

A member is a variable, or a group of them that enters whole and counts once. With charges c of the members, those that are in and the
others that may be, the largest Σc over k members with leastₗ to mostₗ of every label l is found by sorting: of each label the first leastₗ
have their place, those beyond mostₗ have none, and of what is between the largest of all labels fill the places that are left. That is
exact, since a label's further members are worth less and less.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from ksparse.base.arrays import Vector
from ksparse.linalg.states import FREE, IN, OUT


@dataclass(frozen=True)
class Largest:
    """The largest sum for each node (row), and what one variable's absence or presence would change (columns)."""

    total: Vector
    charge: Vector  # of each variable's member
    last_in: Vector  # what would have to go for a variable that does not count; ∞ where there is no place for it at all
    first_out: Vector  # what would come for one that does
    counted: Vector  # who is in the sum


@dataclass(frozen=True, eq=False)
class Limits:
    """At most k members, and so many of each label."""

    k: int
    label: Vector  # of each member; every label has some
    least: Vector  # of each label
    most: Vector
    member: Vector  # of each variable: itself, or its group

    @cached_property
    def single(self) -> bool:
        """Whether every member is one variable, in their order."""
        return bool((self.member == np.arange(self.member.size)).all())

    @cached_property
    def order(self) -> Vector:
        """The members, one label after the other."""
        return np.argsort(self.label, kind="stable")

    @cached_property
    def ends(self) -> Vector:
        """Where each label begins among those, and the last one ends."""
        return np.searchsorted(self.label[self.order], np.arange(self.least.size + 1))

    @cached_property
    def variables(self) -> Vector:
        """The variables, one member after the other."""
        return np.argsort(self.member, kind="stable")

    @cached_property
    def starts(self) -> Vector:
        """Where each member's variables begin among those."""
        return np.searchsorted(self.member[self.variables], np.arange(self.label.size))

    def sums(self, values: Vector) -> Vector:
        """The sum of every member's variables, for each row."""
        return values if self.single else np.add.reduceat(values[:, self.variables], self.starts, axis=1)

    def states(self, state: Vector) -> Vector:
        """What is decided of the members: what one of its variables decides it decides for all of a group."""
        if self.single:
            return state
        out, inside = (np.logical_or.reduceat(state[:, self.variables] == side, self.starts, axis=1) for side in (OUT, IN))
        return np.where(out, OUT, np.where(inside, IN, FREE))

    def counts(self, members: Vector) -> Vector:
        """How many of each label (column) are in a mask of members, for each row."""
        return np.add.reduceat(members[:, self.order], self.ends[:-1], axis=1, dtype=np.intp)

    def largest(self, charge: Vector, state: Vector, exactly: bool = False) -> Largest:
        """The largest sum of charges, exact but for rounding.

        Those of the free are not below 0, unless there must be exactly k; then the sum is −∞ where there are fewer.
        """
        worth, state = self.sums(charge), self.states(state)
        nothing = -np.inf if exactly else 0.0
        inside, many = self.counts(state == IN), self.counts(state == FREE)
        kept = np.clip(self.least - inside, 0, many).astype(np.intp)  # places that a label's first have
        cap = np.maximum(np.clip(self.most - inside, 0, many).astype(np.intp), kept)
        falling = np.where(state == FREE, -worth, np.inf)[:, self.order]
        for begin, end in pairwise(self.ends):
            falling[:, begin:end].sort(axis=1)
        falling = -falling
        own = self.label[self.order]
        place = np.arange(own.size) - self.ends[own]
        first = place < kept[:, own]
        between = np.where(~first & (place < cap[:, own]), falling, -np.inf)
        room = np.maximum(self.k - inside.sum(axis=1) - kept.sum(axis=1), 0)
        enters = np.zeros(between.shape, dtype=bool)
        np.put_along_axis(enters, np.argsort(-between, axis=1, kind="stable"), np.arange(own.size) < room[:, None], axis=1)
        enters &= between > -np.inf
        chosen = kept + np.add.reduceat(enters, self.ends[:-1], axis=1, dtype=np.intp)
        total = np.where(state == IN, worth, 0.0).sum(axis=1) + np.where(enters | first, falling, 0.0).sum(axis=1)
        if exactly:
            total = np.where(enters.sum(axis=1) < room, -np.inf, total)
        begin = self.ends[:-1]
        last = np.where(chosen > 0, np.take_along_axis(falling, np.maximum(begin + chosen - 1, 0), axis=1), np.inf)
        after = np.take_along_axis(falling, np.minimum(begin + chosen, own.size - 1), axis=1)
        following = np.where(chosen < many, np.maximum(after, nothing), nothing)
        comes = np.where(chosen < cap, following, nothing).max(axis=1)  # wherever there is room
        goes = np.where(chosen > kept, last, np.inf).min(axis=1)  # wherever it can be spared
        first_out = np.where(chosen > kept, np.maximum(following, comes[:, None]), following)
        last_in = np.where(chosen < cap, np.minimum(last, goes[:, None]), last)
        counted = (state == IN) | ((state == FREE) & (worth >= last[:, self.label]))
        label = self.label[self.member]
        return Largest(total, worth[:, self.member], last_in[:, label], first_out[:, label], counted[:, self.member])
