"""Branch and bound: nodes decide of some variables whether they are in the support, the best bound first, many at a time.

What a node is and how it is bounded is a family's business. A round takes a fixed number of open nodes, so that the
tree does not depend on how its nodes are shared among threads.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ksparse.util.arrays import Vector

Node = Any  # what a family makes of it


@dataclass(frozen=True)
class TreeSettings:
    """How the tree grows."""

    largest: int = 6_000  # variables: H is held as a whole, and factorised
    together: int = 64  # nodes branched on in a round
    share: int = 64  # nodes that one thread bounds: enough to make matrix products of the steps
    steps: int = 60  # of the relaxation at a node, which begins where its parent ended
    patience: int = 24  # steps without a better bound, after which a node is left
    root_steps: int = 60  # the same for each round of weights, which begins where the last one ended
    root_patience: int = 36
    root_steps_large: int = (
        300  # the same where there are many variables: there the steps decide how good D is (gaps.py)
    )
    root_patience_large: int = 100
    rounds: int = 20  # of weights for D, at least
    watched: int = 10  # of the last of them: another comes while these
    risen: float = 0.05  # have closed so much of what is left to the cut
    rounds_large: int = 8  # the same where each takes seconds
    small: int = 300  # variables that are not many
    medium: int = 600  # variables up to which a round takes no seconds
    shrunk: float = 0.8  # of the variables are left: D is chosen anew for them
    boxed: int = 300  # variables up to which every node has a box of its own, where C does not bound them all (gaps.py)
    looks: int = 8  # rounds between two descents from where the tree is most open
    doubt: float = 1e-3  # what an entry of size 0 counts beside others, where one is chosen to branch on
    models: int = 10  # of a loss that is not quadratic, at the root
    rises: float = 0.01  # of the way to the cut: what another model must bring
    together_component: int = 16  # nodes of a component branched on in a round
    thresholds: int = 40  # values of ρ at the root of a component
    nearby: tuple[float, ...] = (1.0, 0.9, 1.1)  # of the parent's, at the other nodes


class Family(Protocol):
    """Problems that are bounded in one way. Values are in units of its own."""

    scale: float  # of a value in them
    together: int  # nodes that are branched on in a round
    looks: int  # rounds between two looks for a better answer where the tree is most open

    def root(self, cut: float, deadline: float) -> tuple[float, Node]:
        """The node where nothing is decided but what the problem decides, and its bound; the cut is what a bound is to reach."""
        ...

    def children(self, node: Node) -> list[Node]:
        """Nodes that hold all supports of this one, each once."""
        ...

    def bounds(self, nodes: list[Node], cut: float, deadline: float) -> Vector:
        """What no support of each node falls below; on the way variables may be decided whose other choice does not lead below the cut."""
        ...

    def leaf(self, node: Node, every: bool) -> Vector | None:
        """The variables that hold the best support of a node, or with `every` its only one; None where it is to be branched on."""
        ...

    def leaf_bound(self, support: Vector, x: Vector) -> float:
        """What nothing on a support falls below, from the best point there; −∞ where the search's own bound is as good."""
        ...

    def promising(self, node: Node) -> Vector:
        """The variables that a node's relaxation has most of, at most k."""
        ...


@dataclass(frozen=True)
class Leaf:
    """What is known of a support: a value that is reached on it, and one that nothing on it falls below."""

    value: float
    bound: float


@dataclass
class Tree:
    """The tree of one problem, while it grows."""

    family: Family
    solve: Callable[[Vector], Leaf]  # on the variables of a support
    best: float  # a value that is reached
    gap: float  # of |best|: where the bound comes so close it is good enough
    deadline: float = np.inf
    least_gap: float = (
        -np.inf
    )  # in units of values: what arithmetic cannot tell apart, where that is more than the share
    every: bool = False  # whether all supports below the cut are wanted, one by one, and not only the best
    nodes: int = 0
    closed: float = np.inf  # the least bound of what needs no more branching
    open: list[tuple[float, int, Node]] = field(default_factory=list)  # bound, number, node: the least bound first
    count: int = 0  # of nodes that were put there

    @property
    def cut(self) -> float:
        """Nodes whose bound reaches this need no more branching."""
        return self.best - max(self.gap * abs(self.best), self.least_gap)

    @property
    def bound(self) -> float:
        """What no point of the problem falls below; −∞ before there is a root."""
        if not self.nodes:
            return -np.inf
        return min(self.closed, self.open[0][0] if self.open else np.inf)

    @property
    def done(self) -> bool:
        """Whether the bound has come close enough."""
        return self.bound >= self.cut

    @property
    def hopeless(self) -> bool:
        """Whether not even the root has a bound."""
        return self.nodes > 0 and self.bound == -np.inf

    @property
    def late(self) -> bool:
        """Whether the time is up."""
        return time.perf_counter() >= self.deadline

    def offer(self, value: float) -> None:
        """A value that is reached."""
        self.best = min(self.best, value)

    def plant(self) -> None:
        """The root."""
        bound, root = self.family.root(self.cut, self.deadline)
        self.nodes = 1
        self._put(bound, root)

    def grow(self) -> Iterator[None]:
        """Round after round until the bound is close enough, the time is up, or nothing is open."""
        while self.open and not self.done and not self.late and not self.hopeless:
            self._round()
            yield

    def _round(self) -> None:
        children: list[tuple[float, Node]] = []
        while self.open and len(children) < 2 * self.family.together:
            bound, _, node = heapq.heappop(self.open)
            leaf = None if bound >= self.cut else self.family.leaf(node, self.every)
            if bound >= self.cut:
                self.closed = min(self.closed, bound)
            elif leaf is not None:
                found = self.solve(leaf)
                self.best, self.closed = min(self.best, found.value), min(self.closed, max(bound, found.bound))
            else:
                children += [(bound, child) for child in self.family.children(node)]
        if not children:
            return
        bounds = self.family.bounds([child for _, child in children], self.cut, self.deadline)
        self.nodes += len(children)
        for (parent, child), bound in zip(children, bounds, strict=True):
            self._put(max(parent, float(bound)), child)

    def _put(self, bound: float, node: Node) -> None:
        """Keep a node for later; what was decided in it was decided by the cut."""
        if bound >= self.cut:
            self.closed = min(self.closed, bound)
            return
        self.closed = min(self.closed, self.cut)
        self.count += 1
        heapq.heappush(self.open, (bound, self.count, node))
