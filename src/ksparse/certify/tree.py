"""Branch and bound: nodes fix variables in or out of the support, the lowest bound first, many at a time.

A family of problems defines what a node is and how it is bounded. A round takes a fixed number of open nodes, so that
the tree does not depend on how its nodes are shared among threads.
"""

from __future__ import annotations

import heapq
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ksparse.certify.program import Supports
from ksparse.search.candidate import Incumbent
from ksparse.search.local_search import descend_from
from ksparse.search.problem import SupportProblem
from ksparse.search.starts import Start, feasible_candidate
from ksparse.search.strategy import choose_strategy
from ksparse.util.arrays import Vector

Node = Any  # has `state` and `z`, the fixings and relaxed indicators, one row each


class Family(ABC):
    """Problems that are bounded in one way; values are in units of `scale`."""

    supports: Supports
    scale: float
    nodes_per_round = 64
    n_jobs: int | None = None  # threads that bound nodes; the bounds do not depend on it
    heuristic_interval = 8  # rounds between two descents from the node of the lowest bound

    @abstractmethod
    def root(self, cutoff: float, deadline: float) -> tuple[float, Node]:
        """Return the bound of the whole problem, which is to reach the cutoff, and its node."""

    @abstractmethod
    def children(self, node: Node) -> list[Node]:
        """Return nodes that hold all supports of this one, each once."""

    @abstractmethod
    def bounds(self, nodes: list[Node], cutoff: float, deadline: float) -> Vector:
        """Return a lower bound for each node; fix variables whose other choice does not lead below the cutoff."""

    def leaf(self, node: Node, all_fixed: bool) -> Vector | None:
        """Return the best support of a node, with `all_fixed` its only one; None if it is to be branched on."""
        return self.supports.leaf(node.state[0], all_fixed)

    def leaf_bound(self, support: Vector, x: Vector) -> float:
        """Return a lower bound on a support, given its best point; −∞ if the evaluator's own bound is as good."""
        return -np.inf


@dataclass
class LeafSolver:
    """Solver of single supports of a tree, and search from them; better candidates go into the incumbent."""

    problem: SupportProblem
    incumbent: Incumbent
    family: Family
    _tried: set[bytes] = field(default_factory=set)

    def solve(self, support: Vector) -> tuple[float, float]:
        """Return the best value found on a support, ∞ if there is none, and a lower bound."""
        problem, scale = self.problem, self.family.scale
        if not problem.allows(support):  # the only one of its node
            return np.inf, np.inf
        candidate = problem.evaluate(support)
        if candidate is not None and candidate.value < self.incumbent.found.value:
            self.incumbent.best, self.incumbent.proved = candidate, False
        bound = problem.lower_bound(support) / scale
        if candidate is None:
            return np.inf, bound
        return candidate.value / scale, max(bound, self.family.leaf_bound(support, candidate.full(problem.n)[support]))

    def descend(self, support: Vector) -> float:
        """Return the value that a descent from a support ends at; ∞ if it has no start, or was tried before."""
        key, strategy = np.sort(support).tobytes(), choose_strategy(self.problem)
        if key in self._tried or not support.size or strategy.neighbourhood is None:
            return np.inf
        self._tried.add(key)
        start = feasible_candidate(self.problem, Start("tree", support))
        if start is None:
            return np.inf
        found = descend_from(strategy.search(self.problem), start)
        if found.value < self.incumbent.found.value:
            self.incumbent.best, self.incumbent.proved = found, False
        return found.value / self.family.scale


@dataclass
class Tree:
    """The branch-and-bound tree of one problem."""

    family: Family
    leaves: LeafSolver
    incumbent_value: float
    gap: float  # relative to the incumbent's value, at which the bound is close enough
    deadline: float = np.inf
    min_gap: float = -np.inf  # absolute gap that rounding cannot resolve
    enumerate_all: bool = False  # whether to find all supports below the cutoff, and not only the best
    nodes: int = 0
    closed_bound: float = np.inf  # the lowest bound of nodes that need no more branching
    queue: list[tuple[float, int, Node]] = field(default_factory=list)  # bound, number and node, lowest bound first
    _n_queued: int = 0

    @property
    def cutoff(self) -> float:
        """The bound from which a node needs no more branching."""
        return self.incumbent_value - max(self.gap * abs(self.incumbent_value), self.min_gap)

    @property
    def bound(self) -> float:
        """A lower bound of the whole problem; −∞ before the root is solved."""
        return min(self.closed_bound, self.queue[0][0] if self.queue else np.inf) if self.nodes else -np.inf

    @property
    def done(self) -> bool:
        """Whether the bound is close enough."""
        return self.bound >= self.cutoff

    @property
    def has_no_bound(self) -> bool:
        """Whether not even the root has a bound."""
        return self.nodes > 0 and self.bound == -np.inf

    def update_incumbent(self, value: float) -> None:
        """Take note of a value that is attained."""
        self.incumbent_value = min(self.incumbent_value, value)

    def solve_root(self) -> None:
        """Bound the root."""
        bound, root = self.family.root(self.cutoff, self.deadline)
        self.nodes = 1
        self._put(bound, root)

    def improve_incumbent(self) -> None:
        """Descend from the support that the node of the lowest bound prefers."""
        if self.queue:
            node = self.queue[0][2]
            self.update_incumbent(self.leaves.descend(self.family.supports.rounded(node.state[0], node.z[0])))

    def run(self) -> Iterator[None]:
        """Branch round after round until the bound is close enough, the time is up, or no node is open."""
        while self.queue and not self.done and not self.has_no_bound and time.perf_counter() < self.deadline:
            self._round()
            yield

    def _round(self) -> None:
        children: list[tuple[float, Node]] = []
        while self.queue and len(children) < 2 * self.family.nodes_per_round:
            bound, _, node = heapq.heappop(self.queue)
            if bound >= self.cutoff:
                self.closed_bound = min(self.closed_bound, bound)
                continue
            leaf = self.family.leaf(node, self.enumerate_all)
            if leaf is None:
                children += [(bound, child) for child in self.family.children(node)]
                continue
            value, leaf_bound = self.leaves.solve(leaf)
            self.update_incumbent(value)
            self.closed_bound = min(self.closed_bound, max(bound, leaf_bound))
        if children:
            bounds = self.family.bounds([child for _, child in children], self.cutoff, self.deadline)
            self.nodes += len(children)
            for (parent, child), bound in zip(children, bounds, strict=True):
                self._put(max(parent, float(bound)), child)

    def _put(self, bound: float, node: Node) -> None:
        """Queue a node; choices that it excludes were excluded by the cutoff."""
        self.closed_bound = min(self.closed_bound, max(bound, self.cutoff))
        if bound < self.cutoff:
            self._n_queued += 1
            heapq.heappush(self.queue, (bound, self._n_queued, node))
