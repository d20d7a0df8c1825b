"""Sparse principal components, for the tree: how much variance k of the variables that are left can explain at most.

For any symmetric U, xᵀVx = xᵀ(V − U)x + xᵀUx ≤ λ_max(V − U) + maxᵢ(Uᵢᵢ + the k − 1 largest |Uᵢⱼ|) for unit x with at
most k nonzeros: the second term bounds the largest eigenvalue of every k × k block of U (Gershgorin); under rules the
largest sum that they allow beside i does. U = V clipped to ±ρ makes it a search in one number; ρ = 0 is the component
without a limit, the largest |Vᵢⱼ| leaves Gershgorin's bound alone. Only variables that are out make a node's bound
smaller; so a node is branched on those that its component has most of.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from ksparse.certify.tree import TreeSettings
from ksparse.numerics.bound import EPS, rounding_of
from ksparse.numerics.relaxation_kernels import FREE, IN, OUT
from ksparse.search.problem import SupportProblem
from ksparse.util.arrays import Vector
from ksparse.util.resources import report_pause

SECONDS = 1e-10  # that a decomposition takes, about, for each cube of the variables
LARGE = 100  # variables from which a single eigenvector is found sooner than all


@dataclass
class ComponentNode:
    """What is decided, and the leading eigenvector that its bound was found at."""

    state: Vector
    rho: float
    weight: Vector  # its squared entries


class ComponentFamily:
    """−xᵀVx on a ball of some radius, in units of the best value."""

    def __init__(self, problem: SupportProblem, best: float, settings: TreeSettings) -> None:
        model = problem.model
        assert model is not None
        assert problem.can.radius is not None
        self.k, self.names, self.settings = problem.k, np.flatnonzero(problem.allowed), settings
        self.scale, self.together, self.looks = abs(best) or 1.0, settings.together_component, settings.looks
        self.V = -0.5 * model.block(self.names) * (problem.can.radius**2 / self.scale)
        self.rules, self.asked = problem.rules.on(self.names), problem.asked
        self.constant, self.forced = model.constant / self.scale, np.isin(self.names, problem.forced)
        self.blur = rounding_of(len(self.V)) + model.noise.entry_error

    def root(self, cut: float, deadline: float) -> tuple[float, ComponentNode]:
        others = FREE if self.forced.sum() < self.k else OUT
        node = ComponentNode(np.where(self.forced, IN, others).astype(np.int8), 0.0, np.zeros(len(self.V)))
        self.rules.propagate(node.state, self.asked)
        largest = float(np.abs(self.V - np.diag(np.diag(self.V))).max(initial=0.0))
        thresholds = np.linspace(0.0, largest, self.settings.thresholds)
        return self._best_of(node, thresholds[_coarse_first(len(thresholds))], np.inf, deadline), node

    def _best_of(self, node: ComponentNode, thresholds: Vector, cut: float, deadline: float) -> float:
        """The best bound over some ρ until the time is up, which the node keeps; −∞ where there is no time for one.

        xᵀ(V − U)x is a lower bound of λ_max(V − U) for every unit x: where one of the eigenvectors found so far shows
        that another ρ gives no better bound, its decomposition is left out.
        """
        kept = np.flatnonzero(node.state != OUT)
        V, best, vectors = self.V[np.ix_(kept, kept)], -np.inf, list[Vector]()
        rounding = self.blur * len(V) * float(np.abs(V).max(initial=0.0)) + 8.0 * EPS * abs(self.constant)
        for rho in thresholds.tolist():
            report_pause()
            if time.perf_counter() >= deadline:
                break
            U = np.clip(V, -rho, rho)
            rest, most = V - U, self._most(U, kept)
            if any(self.constant - (float(x @ rest @ x) + most) <= best for x in vectors):
                continue
            if not self._fits(rest, deadline):
                break
            value, x = _leading(rest)
            vectors.append(x)
            bound = self.constant - max(0.0, value + most + rounding) - rounding
            if bound > best:
                best, node.rho, node.weight = bound, rho, np.zeros(len(self.V))
                node.weight[kept] = x * x
            if best >= cut:
                break
        return best

    def _fits(self, M: Vector, deadline: float) -> bool:
        """Whether there is time for half of a decomposition at least, about; for that of a diagonal matrix there always is."""
        return _diagonal(M) or time.perf_counter() + 0.5 * SECONDS * len(M) ** 3 < deadline

    def _most(self, U: Vector, kept: Vector) -> float:
        """A bound on the largest eigenvalue of every k × k block of U."""
        size = np.abs(U)
        np.fill_diagonal(size, 0.0)
        return float((np.diag(U) + self._others(size, kept)).max())

    def _others(self, size: Vector, kept: Vector) -> Vector:
        """What the k − 1 largest of each row sum to; under limits the largest sum that they allow beside the row's own variable."""
        limits = self.rules.on(kept).limits(self.asked if self.rules.grouped else self.k)
        if limits is None:
            least = max(0, len(size) - self.k + 1)  # how many of each row are left out
            return np.asarray(np.partition(size, min(least, len(size) - 1), axis=1)[:, least:].sum(axis=1))
        together = limits.member[:, None] == limits.member
        return limits.top_sum(size, np.where(together, IN, FREE)).total

    def children(self, node: ComponentNode) -> list[ComponentNode]:
        free = np.flatnonzero(node.state == FREE)
        i = int(free[np.argmax(node.weight[free])])
        found = []
        for side in (IN, OUT):
            state = node.state.copy()
            state[i] = side
            if (state == IN).sum() >= self.k:
                state[state == FREE] = OUT
            if self.rules.propagate(state, self.asked):
                found.append(ComponentNode(state, node.rho, node.weight))
        return found

    def bounds(self, nodes: list[ComponentNode], cut: float, deadline: float) -> Vector:
        """At the parent's ρ and some beside it."""
        return np.array(
            [self._best_of(node, node.rho * np.array(self.settings.nearby), cut, deadline) for node in nodes]
        )

    def leaf(self, node: ComponentNode, every: bool) -> Vector | None:
        free, room = int((node.state == FREE).sum()), self.k - int((node.state == IN).sum())
        whole = free == 0 or (free <= room and not every)
        if whole and free:
            whole = self.rules.is_satisfied_within(np.flatnonzero(node.state != OUT), self.asked)
        return self.names[node.state != OUT] if whole else None

    def leaf_bound(self, support: Vector, x: Vector) -> float:
        """None of its own: on a support the search proves its value."""
        return -np.inf

    def promising(self, node: ComponentNode) -> Vector:
        rank = np.where(node.state == IN, 2.0, np.where(node.state == OUT, -1.0, node.weight))
        order = np.argsort(-rank, kind="stable")
        return np.asarray(self.names[order[rank[order] > 0][: self.k]])


def _leading(M: Vector) -> tuple[float, Vector]:
    """Return the largest eigenvalue of a symmetric matrix and its eigenvector."""
    if _diagonal(M):
        i = int(M.diagonal().argmax())
        return float(M[i, i]), np.eye(1, len(M), i)[0]
    if len(M) < LARGE:
        values, vectors = np.linalg.eigh(M)
        return float(values[-1]), vectors[:, -1]
    from scipy.linalg import eigh  # here: scipy.linalg takes half as long to import as all of ours

    values, vectors = eigh(M, subset_by_index=[len(M) - 1, len(M) - 1])
    return float(values[0]), np.asarray(vectors[:, 0])


def _diagonal(M: Vector) -> bool:
    return bool(np.count_nonzero(M) == np.count_nonzero(M.diagonal()))


def _coarse_first(count: int) -> Vector:
    """Order 0 … count − 1, the last first, which needs no decomposition, and then so that those tried first are far apart."""
    order, step = [count - 1, 0], 1 << (count - 1).bit_length()
    while step > 1:
        order += range(step // 2, count, step)
        step //= 2
    return np.array(list(dict.fromkeys(order)))
