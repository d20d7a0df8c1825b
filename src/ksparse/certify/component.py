"""Sparse principal components, for the tree: how much variance k of the variables that are left can explain at most.

For any symmetric U, xᵀVx = xᵀ(V − U)x + xᵀUx ≤ λ_max(V − U) + maxᵢ(Uᵢᵢ + the k − 1 largest |Uᵢⱼ|) for unit x with at most k nonzeros: the
second term bounds the largest eigenvalue of every k × k block of U (Gershgorin); under rules the largest sum that they
allow beside i does. U = V clipped to ±ρ makes it a search in one number; ρ = 0
is the component without a limit, the largest |Vᵢⱼ| leaves Gershgorin's bound alone. Only variables that are out make a node's bound
smaller; so a node is branched on those that its component has most of.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ksparse.base.arrays import Vector
from ksparse.certify.settings import TreeSettings
from ksparse.linalg.bound import EPS, rounding_of
from ksparse.linalg.states import FREE, IN, OUT
from ksparse.search.problem import SupportProblem


@dataclass
class ComponentNode:
    """What is decided, and the leading eigenvector that its bound was found at."""

    state: Vector
    rho: float
    weight: Vector  # its squared entries


class ComponentFamily:
    """−xᵀVx on a ball of some radius, in units of the best value."""

    def __init__(self, problem: SupportProblem, best: float, settings: TreeSettings) -> None:
        pieces, model = problem.pieces, problem.pieces.model
        assert model is not None
        assert pieces.radius is not None
        self.k, self.names, self.settings = problem.k, np.flatnonzero(pieces.allowed), settings
        self.scale, self.together, self.looks = abs(best) or 1.0, settings.together_component, settings.looks
        self.V = -0.5 * model.block(self.names) * (pieces.radius**2 / self.scale)
        self.rules, self.asked = None if pieces.rules is None else pieces.rules.on(self.names), problem.asked
        self.constant, self.forced = model.constant / self.scale, np.isin(self.names, pieces.forced)
        self.blur = rounding_of(len(self.V)) + model.noise.entries

    def root(self, cut: float, deadline: float) -> tuple[float, ComponentNode]:
        others = FREE if self.forced.sum() < self.k else OUT
        node = ComponentNode(np.where(self.forced, IN, others).astype(np.int8), 0.0, np.zeros(len(self.V)))
        if self.rules is not None:
            self.rules.propagate(node.state, self.asked)
        largest = float(np.abs(self.V - np.diag(np.diag(self.V))).max(initial=0.0))
        return self._best_of(node, np.linspace(0.0, largest, self.settings.thresholds), np.inf), node

    def _best_of(self, node: ComponentNode, thresholds: Vector, cut: float) -> float:
        """The best bound over some ρ, which the node keeps."""
        kept = np.flatnonzero(node.state != OUT)
        V, best = self.V[np.ix_(kept, kept)], -np.inf
        for rho in thresholds:
            bound, x = self._at(V, float(rho), kept)
            if bound > best:
                best, node.rho, node.weight = bound, float(rho), np.zeros(len(self.V))
                node.weight[kept] = x * x
            if best >= cut:
                break
        return best

    def _at(self, V: Vector, rho: float, kept: Vector) -> tuple[float, Vector]:
        U = np.clip(V, -rho, rho)
        values, vectors = np.linalg.eigh(V - U)
        size = np.abs(U)
        np.fill_diagonal(size, 0.0)
        most = np.diag(U) + self._others(size, kept)
        rounding = self.blur * len(V) * float(np.abs(V).max(initial=0.0)) + 8.0 * EPS * abs(self.constant)
        explained = max(0.0, float(values[-1]) + float(most.max()) + rounding)
        return self.constant - explained - rounding, vectors[:, -1]

    def _others(self, size: Vector, kept: Vector) -> Vector:
        """What the k − 1 largest of each row sum to; under limits the largest sum that they allow beside the row's own variable."""
        limits = None if self.rules is None else self.rules.on(kept).limits(self.asked if self.rules.grouped else self.k)
        if limits is None:
            return np.asarray((-np.sort(-size, axis=1)[:, : self.k - 1]).sum(axis=1))
        together = limits.member[:, None] == limits.member
        return limits.largest(size, np.where(together, IN, FREE)).total

    def children(self, node: ComponentNode) -> list[ComponentNode]:
        free = np.flatnonzero(node.state == FREE)
        i = int(free[np.argmax(node.weight[free])])
        found = []
        for side in (IN, OUT):
            state = node.state.copy()
            state[i] = side
            if (state == IN).sum() >= self.k:
                state[state == FREE] = OUT
            if self.rules is None or self.rules.propagate(state, self.asked):
                found.append(ComponentNode(state, node.rho, node.weight))
        return found

    def bounds(self, nodes: list[ComponentNode], cut: float, deadline: float) -> Vector:
        """At the parent's ρ and some beside it."""
        return np.array([self._best_of(node, node.rho * np.array(self.settings.nearby), cut) for node in nodes])

    def leaf(self, node: ComponentNode, every: bool) -> Vector | None:
        free, room = int((node.state == FREE).sum()), self.k - int((node.state == IN).sum())
        whole = free == 0 or (free <= room and not every)
        if whole and free and self.rules is not None:
            whole = self.rules.holds(np.flatnonzero(node.state != OUT), self.asked)
        return self.names[node.state != OUT] if whole else None

    def leaf_bound(self, support: Vector, x: Vector) -> float:
        """None of its own: on a support the search proves its value."""
        return -np.inf

    def promising(self, node: ComponentNode) -> Vector:
        rank = np.where(node.state == IN, 2.0, np.where(node.state == OUT, -1.0, node.weight))
        order = np.argsort(-rank, kind="stable")
        return np.asarray(self.names[order[rank[order] > 0][: self.k]])
