"""Rules about supports: limits per label, variables that require others, and groups that enter as a whole.

A support S satisfies the rules if each label has an admissible number of members in S and S holds all variables that
its members require. Members may have value 0, for example those that are forced in. So the nonzeros T of a point are
admissible if some satisfying S holds them. Such an S holds at least the closure of T (parents of parents, the rest of
a group), and the members that labels still lack; all of them count towards k. A subset of an extendable support is
extendable, so a search only has to know which variables may enter. With minimum sizes no member is 0, and T itself
must satisfy the rules (`strict`): a search then adds what is missing at the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from ksparse.numerics.relaxation import GroupLimits
from ksparse.numerics.relaxation_kernels import FREE, IN, OUT
from ksparse.util.arrays import Vector


@dataclass(frozen=True, eq=False)
class Rules:
    """What a support must satisfy; sizes are numbers of variables, or of groups if those enter as a whole."""

    label: Vector  # of each variable, as a number; variables without limits share one
    names: tuple[Any, ...]  # of the labels, as the user gave them
    least: Vector  # members of each label
    most: Vector
    weight: Vector  # what a variable counts: 1; in a group one member counts 1 and the others 0
    brings: csr_array | None  # row i: i and all variables it requires, directly or not; None without requirements
    group: Vector | None = None  # of each variable, as a number, if k counts groups
    strict: bool = False  # whether the nonzeros themselves must satisfy the rules

    any: ClassVar[bool] = True  # whether there are rules

    @property
    def n(self) -> int:
        """The number of variables."""
        return int(self.label.size)

    @cached_property
    def _counted(self) -> Vector:
        """What each variable (row) counts for each label (column)."""
        table = np.zeros((self.n, self.least.size))
        table[np.arange(self.n), self.label] = self.weight
        return table

    def closure(self, support: Vector) -> Vector:
        """Return the support with all variables that its members require, sorted."""
        if self.brings is None:
            return np.unique(support).astype(np.intp)
        of = self.brings.indptr
        rows = [self.brings.indices[of[i] : of[i + 1]] for i in np.asarray(support).tolist()]
        return np.unique(np.concatenate(rows)).astype(np.intp) if rows else np.zeros(0, dtype=np.intp)

    def _per_label(self, members: Vector) -> Vector:
        return np.bincount(self.label[members], self.weight[members], self.least.size)

    def min_cardinality(self, support: Vector) -> int:
        """Return the least size of a satisfying support that contains this one; n + 1 if there is none."""
        inside = self._per_label(self.closure(support))
        return self.n + 1 if (inside > self.most).any() else int(np.maximum(inside, self.least).sum())

    def is_extendable(self, support: Vector, k: int) -> bool:
        """Return whether some satisfying support of at most k members holds this one."""
        return self.min_cardinality(support) <= k

    def allows(self, support: Vector, k: int) -> bool:
        """Return whether a point may have these nonzeros."""
        return self.is_extendable(support, k) and (not self.strict or self.is_satisfied(support))

    def required_additions(self, support: Vector, k: int) -> Vector:
        """Return which variables a support lacks: those that its members require, else any of a label with too few."""
        found = np.zeros(self.n, dtype=bool)
        inside = self.closure(support)
        found[inside] = True
        found[support] = False
        if not found.any():
            found = (self._per_label(inside) < self.least)[self.label] & self.enterable(support, k)
        return found

    def completed(self, support: Vector, k: int, allowed: Vector) -> Vector:
        """Return the support with what it lacks, the lowest indices first, as far as they are allowed."""
        while (missing := np.flatnonzero(self.required_additions(support, k) & allowed)).size:
            support = np.append(support, missing[:1])
        return support

    def is_satisfied(self, support: Vector) -> bool:
        """Return whether the support itself satisfies the rules."""
        inside = self._per_label(support)
        within = bool((inside >= self.least).all() and (inside <= self.most).all())
        return within and self.closure(support).size == support.size

    def barred(self, support: Vector, k: int, others: Vector | None) -> Vector | None:
        """Return a mask of the variables that may not enter a support of at most k, with `others` (mask or indices)."""
        closed = ~self.enterable(support, k)
        if others is not None:
            closed[others] = True
        return closed

    def enterable(self, support: Vector, k: int) -> Vector:
        """Return a mask of the variables that may enter the support."""
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
        """Return the variables that may replace each member of a support."""
        known: dict[int, Vector] = {}
        found: dict[int, Vector] = {}
        for place, j in enumerate(int(j) for j in support):
            kind = int(self.label[j]) if self.brings is None else -1 - j  # without requirements only its label matters
            if kind not in known:
                known[kind] = self.enterable(np.delete(support, place), k)
                known[kind][support] = False
            found[j] = known[kind]
        some = np.any(list(known.values()), axis=0) if known else np.zeros(self.n, dtype=bool)
        return RuledExchanges(found, np.asarray(some))

    def longest_extendable(self, ranked: Vector, k: int) -> Vector:
        """Return the variables of a ranking, best first, without those that do not fit the ones before them."""
        chosen: list[int] = []
        for i in (int(i) for i in ranked):
            if self.is_extendable(np.array([*chosen, i]), k):
                chosen.append(i)
        return np.array(chosen, dtype=np.intp)

    def blocks(self, support: Vector) -> list[Vector]:
        """Return for each member the variables that leave with it: itself and those that require it."""
        needing = np.array([np.isin(support, self.closure(np.array([i]))) for i in support])
        return [support[needing[:, place]] for place in range(support.size)]

    def widest(self, k: int) -> int:
        """Return how many variables a support of size k may have: more than k if k counts groups."""
        if self.group is None or self.brings is None:
            return k
        sizes = np.diff(self.brings.indptr)[self.weight > 0]
        return int(min(np.sort(sizes)[::-1][:k].sum(), self.n))

    def usable_within(self, allowed: Vector) -> Vector:
        """Return the allowed variables that require only allowed ones (masks)."""
        return allowed if self.brings is None else np.asarray(allowed & ~(self.brings @ (~allowed).astype(float) > 0))

    def propagate(self, state: Vector, k: int) -> bool:
        """Fix, in place, the variables that the fixed ones decide; return False if no satisfying support is left."""
        while True:
            inside = self.closure(np.flatnonzero(state == IN))
            if (state[inside] == OUT).any() or self.min_cardinality(inside) > k:
                return False
            before = state.copy()
            state[inside] = IN
            open_ = self.usable_within(state != OUT)
            open_ &= (state == IN) | self.enterable(inside, k)
            state[~open_] = OUT
            left = self._per_label(np.flatnonzero(open_))
            if (left < self.least).any():
                return False
            state[(left == self.least)[self.label] & (state == FREE) & (self.weight > 0)] = IN
            if (state == before).all():
                return True

    def on(self, shown: Vector) -> Rules:
        """Return the rules restricted to some variables, which must include all variables that they require."""
        brings = None if self.brings is None else csr_array(self.brings[shown][:, shown])
        group = None if self.group is None else self.group[shown]
        return replace(self, label=self.label[shown], weight=self.weight[shown], brings=brings, group=group)

    def limits(self, k: int) -> GroupLimits | None:
        """Return the limits on numbers of members, k in all; None if there is none but k."""
        if self.group is not None:
            first, member = np.unique(self.group, return_index=True, return_inverse=True)[1:]
        elif self.least.any() or (self.most < min(self.n, k)).any():
            first = member = np.arange(self.n)
        else:
            return None
        known, label = np.unique(self.label[first], return_inverse=True)
        return GroupLimits(k, label, self.least[known], self.most[known], member)

    def rows(self, allowed: Vector) -> tuple[csr_array, Vector, Vector] | None:
        """Return the rules as low ≤ M·u ≤ high for 0/1 indicators u, 0 for variables that are not allowed."""
        M = [csr_array(self._counted.T), csr_array((~allowed).astype(float)[None])]
        low, high = [self.least, np.zeros(1)], [self.most, np.zeros(1)]
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


class Exchanges:
    """The variables that may replace each member of a support: without rules, any variables."""

    def enterable(self, variables: Vector) -> Vector:
        """Return the variables that may replace some member."""
        return variables

    def bar(self, gains: Vector) -> None:
        """Set to 0 the gains (one per variable) of the variables that may replace no member."""

    def forbid(self, table: Vector, leaving: Vector, entering: Vector, value: float = 0.0) -> None:
        """Set the entries of forbidden swaps to a value: leaving (rows), entering (columns)."""


@dataclass(frozen=True)
class RuledExchanges(Exchanges):
    """The swaps that rules allow."""

    of: dict[int, Vector]  # for each member of a support, a mask of the variables that may replace it
    some: Vector  # mask of the variables that may replace some member

    def enterable(self, variables: Vector) -> Vector:
        return np.asarray(variables[self.some[variables]])

    def bar(self, gains: Vector) -> None:
        gains[~self.some] = 0.0

    def forbid(self, table: Vector, leaving: Vector, entering: Vector, value: float = 0.0) -> None:
        for row, j in zip(table, leaving.tolist(), strict=True):
            row[~self.of[j][entering]] = value


class NoRules(Rules):
    """No rules: every support of at most k variables is admissible."""

    any = False

    @classmethod
    def of(cls, n: int) -> NoRules:
        """Return the null object for n variables without rules."""
        zeros = np.broadcast_to(np.intp(0), n)
        return cls(zeros, (None,), np.zeros(1), np.full(1, float(n)), np.broadcast_to(1.0, n), None)

    def min_cardinality(self, support: Vector) -> int:
        return int(support.size)

    def allows(self, support: Vector, k: int) -> bool:
        return bool(support.size <= k)

    def barred(self, support: Vector, k: int, others: Vector | None) -> Vector | None:
        return others

    def enterable(self, support: Vector, k: int) -> Vector:
        found = np.full(self.n, support.size < k)
        found[support] = False
        return found

    def exchanges(self, support: Vector, k: int) -> Exchanges:
        return Exchanges()

    def longest_extendable(self, ranked: Vector, k: int) -> Vector:
        return ranked[:k]

    def propagate(self, state: Vector, k: int) -> bool:
        return True

    def rows(self, allowed: Vector) -> tuple[csr_array, Vector, Vector] | None:
        return None


def closed_rows(n: int, pairs: Iterable[tuple[int, int]]) -> csr_array:
    """Return a matrix whose row i marks i and all variables it requires by (child, parent) pairs, directly or not."""
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
