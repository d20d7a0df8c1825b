"""Sparse principal components: how much variance k of the variables can explain at most.

For any symmetric U, xᵀVx = xᵀ(V − U)x + xᵀUx ≤ λ_max(V − U) + maxᵢ(Uᵢᵢ + the k − 1 largest |Uᵢⱼ|) for unit x with at
most k nonzeros: the second term bounds the largest eigenvalue of every k × k block of U (Gershgorin). Under rules it is
the largest sum that they allow next to i. U = V clipped to ±ρ makes it a search in one number; ρ = 0 is the component
without a limit, the largest |Vᵢⱼ| leaves Gershgorin's bound alone. Only fixing variables out lowers a node's bound, so
a node is branched on the variables of largest weight in its component.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from ksparse.certify.program import Supports
from ksparse.certify.tree import Family
from ksparse.numerics.bound import EPS, rounding_of
from ksparse.numerics.eigen import DECOMPOSITION_SECONDS
from ksparse.numerics.relaxation_kernels import FREE, IN, OUT
from ksparse.search.problem import SupportProblem
from ksparse.util.arrays import Vector
from ksparse.util.resources import report_pause, scipy_linalg

LARGE = 100  # variables from which one eigenvector is faster than all
THRESHOLDS = 40  # values of ρ at the root
NEARBY = (1.0, 0.9, 1.1)  # times the parent's ρ, at the other nodes


@dataclass
class ComponentNode:
    """The fixings, and the leading eigenvector of the bound; one row each, as in `NodeBatch`."""

    state: Vector
    rho: float
    z: Vector  # squared entries of the eigenvector


class ComponentFamily(Family):
    """−xᵀVx on a ball of some radius, in units of the best value."""

    nodes_per_round = 16

    def __init__(self, problem: SupportProblem, best: float) -> None:
        model, radius = problem.quadratic, problem.can.radius
        self.supports, self.scale = Supports.of(problem), abs(best) or 1.0
        variables = self.supports.variables
        self.V = -0.5 * model.block(variables) * (radius**2 / self.scale)
        self.constant, self.forced = model.constant / self.scale, np.isin(variables, problem.forced)
        self.rounding = rounding_of(len(self.V)) + model.noise.entry_error

    def root(self, cutoff: float, deadline: float) -> tuple[float, ComponentNode]:
        """Bound the root with all ρ."""
        state = np.where(self.forced, IN, FREE if self.forced.sum() < self.supports.k else OUT).astype(np.int8)
        self.supports.propagate(state)
        node = ComponentNode(state[None], 0.0, np.zeros((1, state.size)))
        largest = float(np.abs(self.V - np.diag(np.diag(self.V))).max(initial=0.0))
        thresholds = np.linspace(0.0, largest, THRESHOLDS)[_coarse_first(THRESHOLDS)]
        return self._best_of(node, thresholds, np.inf, deadline), node

    def _best_of(self, node: ComponentNode, thresholds: Vector, cutoff: float, deadline: float) -> float:
        """Return the best bound over some ρ, which the node keeps; −∞ if there is no time for one.

        xᵀ(V − U)x is a lower bound of λ_max(V − U) for every unit x: if one of the eigenvectors found so far shows that
        another ρ gives no better bound, its decomposition is left out.
        """
        kept = np.flatnonzero(node.state[0] != OUT)
        V, best, vectors = self.V[np.ix_(kept, kept)], -np.inf, list[Vector]()
        rounding = self.rounding * len(V) * float(np.abs(V).max(initial=0.0)) + 8.0 * EPS * abs(self.constant)
        for rho in thresholds.tolist():
            report_pause()
            if time.perf_counter() >= deadline:
                break
            U = np.clip(V, -rho, rho)
            rest, most = V - U, self._block_bound(U, kept)
            if any(self.constant - (float(x @ rest @ x) + most) <= best for x in vectors):
                continue
            if not _diagonal(rest) and time.perf_counter() + 0.5 * DECOMPOSITION_SECONDS * len(rest) ** 3 >= deadline:
                break  # there is not even time for half of a decomposition
            value, x = _leading(rest)
            vectors.append(x)
            bound = self.constant - max(0.0, value + most + rounding) - rounding
            if bound > best:
                best, node.rho, node.z = bound, rho, np.zeros((1, len(self.V)))
                node.z[0, kept] = x * x
            if best >= cutoff:
                break
        return best

    def _block_bound(self, U: Vector, kept: Vector) -> float:
        """Return a bound on the largest eigenvalue of every admissible block of U."""
        size, limits, k = np.abs(U), self.supports.on(kept).limits, self.supports.k
        np.fill_diagonal(size, 0.0)
        if limits is None:
            n_left_out = max(0, len(size) - k + 1)  # of each row
            others = np.partition(size, min(n_left_out, len(size) - 1), axis=1)[:, n_left_out:].sum(axis=1)
        else:
            others = limits.top_sum(size, np.where(limits.member[:, None] == limits.member, IN, FREE)).total
        return float((np.diag(U) + others).max())

    def children(self, node: ComponentNode) -> list[ComponentNode]:
        """Fix the free variable of largest weight."""
        free = np.flatnonzero(node.state[0] == FREE)
        i = int(free[np.argmax(node.z[0, free])])
        return [ComponentNode(state[None], node.rho, node.z) for state in self.supports.branches(node.state[0], i)]

    def bounds(self, nodes: list[ComponentNode], cutoff: float, deadline: float) -> Vector:
        """Bound nodes at the parent's ρ and some near it."""
        return np.array([self._best_of(node, node.rho * np.array(NEARBY), cutoff, deadline) for node in nodes])


def _leading(M: Vector) -> tuple[float, Vector]:
    """Return the largest eigenvalue of a symmetric matrix and its eigenvector."""
    if _diagonal(M):
        i = int(M.diagonal().argmax())
        return float(M[i, i]), np.eye(1, len(M), i)[0]
    if len(M) < LARGE:
        values, vectors = np.linalg.eigh(M)
        return float(values[-1]), vectors[:, -1]
    values, vectors = scipy_linalg().eigh(M, subset_by_index=[len(M) - 1, len(M) - 1])
    return float(values[0]), np.asarray(vectors[:, 0])


def _diagonal(M: Vector) -> bool:
    return bool(np.count_nonzero(M) == np.count_nonzero(M.diagonal()))


def _coarse_first(count: int) -> Vector:
    """Return 0 … count − 1: the last, which needs no decomposition, then distant ones before those between them."""
    order, step = [count - 1, 0], 1 << (count - 1).bit_length()
    while step > 1:
        order += range(step // 2, count, step)
        step //= 2
    return np.array(list(dict.fromkeys(order)))
