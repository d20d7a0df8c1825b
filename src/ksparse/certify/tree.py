"""Branch and bound: nodes decide of some variables whether they are in the support, the best bound first, many at a time.

A round takes a fixed number of open nodes, so that the tree does not depend on how its nodes are shared among threads. Bounds are in the
units of the program.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from ksparse.base.arrays import Vector
from ksparse.certify.diagonal import Diagonals
from ksparse.certify.program import Program
from ksparse.certify.relaxation import Relaxation
from ksparse.certify.settings import TreeSettings
from ksparse.linalg.perspective import FREE, IN, OUT, Nodes


@dataclass(frozen=True)
class Leaf:
    """What is known of a support: a value that is reached on it, and one that nothing on it falls below."""

    value: float
    bound: float


Solve = Callable[[Vector], Leaf]


@dataclass
class Tree:
    """The tree of one program, while it grows."""

    program: Program
    solve: Solve  # on the variables of a support, by their names in the whole problem
    best: float  # a value that is reached
    gap: float  # of |best|: where the bound comes so close it is good enough
    settings: TreeSettings
    deadline: float = np.inf
    every: bool = False  # whether all supports below the cut are wanted, one by one, and not only the best
    nodes: int = 0
    closed: float = np.inf  # the least bound of what needs no more branching
    open: list[tuple[float, int, Nodes]] = field(default_factory=list)  # bound, number, node: the least bound first
    count: int = 0  # of nodes that were put there

    @property
    def cut(self) -> float:
        """Nodes whose bound reaches this need no more branching."""
        return self.best - self.gap * abs(self.best)

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
        """The root: D for it, and again on the variables that are left where few are."""
        relaxation, root, bound = self._rooted()
        while not self.late and bound < self.cut:
            kept = np.flatnonzero(root.state[0] != OUT)
            if kept.size > self.settings.shrunk * self.program.n:
                break
            self.program = self.program.decided(root.state[0]).on(kept)
            relaxation, root, again = self._rooted()
            bound = max(bound, again)
        self.relaxation, self.nodes = relaxation, 1
        self._put(bound, root)

    def _rooted(self) -> tuple[Relaxation, Nodes, float]:
        """The relaxation whose D gives the best bound of the root, of some rounds; the root with all that was decided on the way."""
        settings, program = self.settings, self.program
        diagonals, best, found = Diagonals(program), -np.inf, None
        rounds = settings.rounds if program.n <= settings.small else settings.rounds_large
        node: Nodes | None = None
        for _ in range(rounds):
            relaxation = Relaxation(program, diagonals.best())
            node = relaxation.root() if node is None else node.of(np.array([0]))  # from where the last D led
            bound = float(relaxation.bound(node, self.cut, settings.root_steps, settings.root_patience, self.deadline)[0])
            if found is None or bound > best:
                best, found = bound, (relaxation, node)
            if best >= self.cut or self.late or (node.state != OUT).sum() < settings.shrunk * program.n:
                break
            diagonals.weigh(node.y[0], node.z[0])
        assert found is not None
        assert node is not None
        found[1].state = node.state
        return *found, best

    def grow(self) -> Iterator[None]:
        """Round after round until the bound is close enough, the time is up, or nothing is open."""
        while self.open and not self.done and not self.late and not self.hopeless:
            self._round()
            yield

    def _round(self) -> None:
        children: list[tuple[float, Nodes]] = []
        while self.open and len(children) < 2 * self.settings.together:
            bound, _, node = heapq.heappop(self.open)
            if bound >= self.cut:
                self.closed = min(self.closed, bound)
            elif self._is_leaf(node.state[0]):
                self._close(bound, node.state[0])
            else:
                children += [(bound, child) for child in self._children(node)]
        if not children:
            return
        whole = stacked([child for _, child in children])
        settings = self.settings
        bounds = self.relaxation.bound(whole, self.cut, settings.steps, settings.patience, self.deadline)
        self.nodes += len(children)
        for i, (parent, _) in enumerate(children):
            self._put(max(parent, float(bounds[i])), whole.of(np.array([i])))

    def _put(self, bound: float, node: Nodes) -> None:
        """Keep a node for later; what was decided in it was decided by the cut."""
        if bound >= self.cut:
            self.closed = min(self.closed, bound)
            return
        self.closed = min(self.closed, self.cut)
        self.count += 1
        heapq.heappush(self.open, (bound, self.count, node))

    def _is_leaf(self, state: Vector) -> bool:
        free, room = int((state == FREE).sum()), self.program.k - int((state == IN).sum())
        return free == 0 or (free <= room and not self.program.floored and not self.every)

    def _close(self, bound: float, state: Vector) -> None:
        leaf = self.solve(self.program.names[state != OUT])
        self.best = min(self.best, leaf.value)
        self.closed = min(self.closed, max(bound, leaf.bound))

    def _children(self, node: Nodes) -> Iterator[Nodes]:
        """The node with one variable more decided: the one of which the relaxation says least."""
        state, y, z = node.state[0], node.y[0], node.z[0]
        free = np.flatnonzero(state == FREE)
        doubt = np.minimum(z[free], 1.0 - z[free]) * (self.settings.doubt + np.abs(y[free]))
        i = free[doubt.argmax()] if doubt.max() > 0 else free[z[free].argmax()]
        for side in (IN, OUT):
            child = node.of(np.array([0]))
            child.state[0, i] = side
            if (child.state == IN).sum() >= self.program.k:
                child.state[child.state == FREE] = OUT
            yield child


def stacked(nodes: list[Nodes]) -> Nodes:
    """Many nodes as one batch."""
    return Nodes(**{name: np.concatenate([getattr(node, name) for node in nodes]) for name in vars(nodes[0])})
