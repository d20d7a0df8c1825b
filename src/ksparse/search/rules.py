"""Rules about which supports are allowed: so many of each label, a variable only with its parents, groups that enter whole.

A support S obeys where every label has as many members in it as it may and must have, and every member's parents are members. Members may
be 0, as those that are forced in may: so the nonzeros T of a point are allowed where some S that obeys holds them. What S needs beside T
is its closure (parents of parents, the rest of a group) and the members that labels still lack, whoever they are; all of them count. A
subset of what fits is allowed, and a search has only to ask who may enter. Above a floor members are not 0, and T must obey by itself: a
search goes by what fits all the same, and lets those enter in the end who are missing (`strict`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from ksparse.numerics.relaxation import Limits
from ksparse.numerics.relaxation_kernels import FREE, IN, OUT
from ksparse.util.arrays import Vector


@dataclass(frozen=True, eq=False)
class Rules:
    """What a support must obey, in numbers of variables, or of groups where those enter whole."""

    label: Vector  # of each variable, as a number; those without limits share one
    names: tuple[Any, ...]  # what the user calls the labels
    least: Vector  # of each label
    most: Vector
    weight: Vector  # what a variable counts: 1, of a group one member 1 and the others 0
    brings: csr_array | None  # row i: i itself and all that it needs, directly or not; None where nobody needs anybody
    group: Vector | None = None  # of each variable, as a number, where k counts groups
    strict: bool = False  # whether nonzeros must obey by themselves

    @property
    def n(self) -> int:
        """The number of variables."""
        return int(self.label.size)

    @property
    def grouped(self) -> bool:
        """Whether k counts groups."""
        return self.group is not None

    @property
    def asking(self) -> bool:
        """Whether they ask for members, and not only forbid some."""
        return self.brings is not None or bool(self.least.any())

    @property
    def members(self) -> int:
        """How many members there are: variables, or groups."""
        return int(self.weight.sum())

    @cached_property
    def _counted(self) -> Vector:
        """What each variable (row) counts for each label (column)."""
        table = np.zeros((self.n, self.least.size))
        table[np.arange(self.n), self.label] = self.weight
        return table

    def closure(self, support: Vector) -> Vector:
        """The support with all that its members need, sorted."""
        if self.brings is None:
            return np.unique(support).astype(np.intp)
        rows = [self._rows[i] for i in np.asarray(support).tolist()]
        return np.unique(np.concatenate(rows)).astype(np.intp) if rows else np.zeros(0, dtype=np.intp)

    @cached_property
    def _rows(self) -> list[Vector]:
        """What each variable brings."""
        assert self.brings is not None
        return np.split(self.brings.indices, self.brings.indptr[1:-1])

    def _per_label(self, members: Vector) -> Vector:
        return np.bincount(self.label[members], self.weight[members], self.least.size)

    def needs(self, support: Vector) -> int:
        """How many members a support that obeys and holds this one has at least; more than there are where a label has too many."""
        inside = self._per_label(self.closure(support))
        return self.n + 1 if (inside > self.most).any() else int(np.maximum(inside, self.least).sum())

    def fits(self, support: Vector, k: int) -> bool:
        """Whether some support that obeys, of at most k, holds this one."""
        return self.needs(support) <= k

    def allows(self, support: Vector, k: int) -> bool:
        """Whether the nonzeros of a point may be these."""
        return self.fits(support, k) and (not self.strict or self.obeys(support))

    def missing(self, support: Vector, k: int) -> Vector:
        """Who must join a support that is to obey by itself: all that its members need, then anyone of a label that lacks some."""
        found = np.zeros(self.n, dtype=bool)
        inside = self.closure(support)
        found[inside] = True
        found[support] = False
        if not found.any():
            lacking = self._per_label(inside) < self.least
            found = lacking[self.label] & self.entering(support, k)
        return found

    def completed(self, support: Vector, k: int, allowed: Vector) -> Vector:
        """A support with whom it takes to obey, the first that may, as far as there are any."""
        while True:
            missing = np.flatnonzero(self.missing(support, k) & allowed)
            if not missing.size:
                return support
            support = np.append(support, missing[:1])

    def obeys(self, support: Vector) -> bool:
        """Whether a support obeys by itself."""
        inside = self._per_label(support)
        return bool((inside >= self.least).all() and (inside <= self.most).all()) and self.closure(support).size == support.size

    def holds(self, support: Vector, k: int) -> bool:
        """Whether a support obeys by itself, and counts at most k: with groups that is not the number of its variables."""
        return self.obeys(support) and self.fits(support, k)

    def entering(self, support: Vector, k: int) -> Vector:
        """Which variables a support may be joined by, one of them."""
        inside = self.closure(support)
        per = self._per_label(inside)
        if self.brings is None:
            lacking = per < self.least
            found = (per < self.most) & (np.maximum(per, self.least).sum() + ~lacking <= k)
            found = found[self.label]
        else:
            counted = self._counted.copy()
            counted[inside] = 0.0
            after = per + self.brings @ counted
            found = (after <= self.most).all(axis=1) & (np.maximum(after, self.least).sum(axis=1) <= k)
        found[inside] = (per <= self.most).all() and np.maximum(per, self.least).sum() <= k  # their place is kept
        found[support] = False
        return np.asarray(found)

    def exchanges(self, support: Vector, k: int) -> Exchanges:
        """Which variables may enter in whose place."""
        known: dict[int, Vector] = {}
        found: dict[int, Vector] = {}
        for place, j in enumerate(int(j) for j in support):
            kind = int(self.label[j]) if self.brings is None else -1 - j  # where nobody needs anybody only its label counts
            if kind not in known:
                known[kind] = self.entering(np.delete(support, place), k)
                known[kind][support] = False
            found[j] = known[kind]
        some = np.any(list(known.values()), axis=0) if known else np.zeros(self.n, dtype=bool)
        return Exchanges(found, np.asarray(some))

    def kept(self, ranked: Vector, k: int) -> Vector:
        """As much of a ranking as is allowed, the first first."""
        chosen: list[int] = []
        for i in (int(i) for i in ranked):
            if self.fits(np.array([*chosen, i]), k):
                chosen.append(i)
        return np.array(chosen, dtype=np.intp)

    def blocks(self, support: Vector) -> list[Vector]:
        """For each member those that leave with it, itself among them: whoever needs it."""
        if self.brings is None:
            return [np.array([i]) for i in support]
        needing = self.brings[support][:, support].toarray() > 0
        return [support[needing[:, place]] for place in range(support.size)]

    def widest(self, k: int) -> int:
        """How many variables k members can be."""
        if not self.grouped or self.brings is None:
            return k
        sizes = np.diff(self.brings.indptr)[self.weight > 0]
        return int(min(np.sort(sizes)[::-1][:k].sum(), self.n))

    def usable(self, allowed: Vector) -> Vector:
        """Which variables may be in a support where only some are: those that need no other."""
        return allowed if self.brings is None else np.asarray(allowed & ~(self.brings @ (~allowed).astype(float) > 0))

    def propagate(self, state: Vector, k: int) -> bool:
        """Decide, in place, what follows from what is decided; False where that contradicts itself, or leaves too few."""
        while True:
            inside = self.closure(np.flatnonzero(state == IN))
            if (state[inside] == OUT).any() or self.needs(inside) > k:
                return False
            before = state.copy()
            state[inside] = IN
            open_ = self.usable(state != OUT)
            open_ &= (state == IN) | self.entering(inside, k)
            state[~open_] = OUT
            left = self._per_label(np.flatnonzero(open_))
            if (left < self.least).any():
                return False
            needed = (left == self.least)[self.label] & (state == FREE) & (self.weight > 0)
            state[needed] = IN
            if (state == before).all():
                return True

    def on(self, shown: Vector) -> Rules:
        """The rules among some variables, to which all belong that those need."""
        brings = None if self.brings is None else csr_array(self.brings[shown][:, shown])
        group = None if self.group is None else self.group[shown]
        return replace(self, label=self.label[shown], weight=self.weight[shown], brings=brings, group=group)

    def limits(self, k: int) -> Limits | None:
        """What they say of numbers alone, of k members in all; None where that is no more than k variables."""
        if self.group is not None:
            first, member = np.unique(self.group, return_index=True, return_inverse=True)[1:]
        elif self.least.any() or (self.most < min(self.n, k)).any():
            first = member = np.arange(self.n)
        else:
            return None
        known, label = np.unique(self.label[first], return_inverse=True)
        return Limits(k, label, self.least[known], self.most[known], member)

    def rows(self, allowed: Vector) -> tuple[csr_array, Vector, Vector]:
        """The rules as low ≤ M·u ≤ high of indicators u, those that are not allowed being 0."""
        labels = csr_array(self._counted.T)
        M, low, high = [labels, csr_array((~allowed).astype(float)[None])], [self.least, np.zeros(1)], [self.most, np.zeros(1)]
        if self.brings is not None:
            child, parent = self.brings.nonzero()
            pairs = np.flatnonzero(child != parent)
            entries = np.repeat([1.0, -1.0], pairs.size)
            places = np.tile(np.arange(pairs.size), 2), np.concatenate([child[pairs], parent[pairs]])
            M.append(csr_array((entries, places), shape=(pairs.size, self.n)))
            low.append(np.full(pairs.size, -np.inf))
            high.append(np.zeros(pairs.size))
        from scipy.sparse import vstack

        return csr_array(vstack(M)), np.concatenate(low), np.concatenate(high)


@dataclass(frozen=True)
class Exchanges:
    """Who may enter in whose place."""

    of: dict[int, Vector]  # for each member of a support a mask of all variables
    some: Vector  # who may enter in anybody's

    def table(self, leaving: Vector, entering: Vector) -> Vector:
        """The same for some of them: leaving (rows), entering (columns)."""
        return np.array([self.of[int(j)][entering] for j in leaving], dtype=bool).reshape(len(leaving), len(entering))


def closed_rows(n: int, pairs: Iterable[tuple[int, int]]) -> csr_array:
    """Row i: i itself and all that it needs by (child, parent) pairs, directly or not."""
    links = np.array([*pairs, *((i, i) for i in range(n))], dtype=np.intp)
    found = csr_array((np.ones(len(links)), (links[:, 0], links[:, 1])), shape=(n, n))
    while True:
        found.data[:] = 1.0
        further = csr_array(found @ found)
        if further.nnz == found.nnz:
            further.data[:] = 1.0
            further.sort_indices()
            return further
        found = further
