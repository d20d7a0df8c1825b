"""Convex quadratics over polyhedra: nodes of the perspective relaxation, with a diagonal D chosen at the root."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace

import numpy as np

from ksparse.certify.bound import QuadraticBound, Relaxation
from ksparse.certify.diagonal import DiagonalSplit
from ksparse.certify.program import ScaledProblem, Supports
from ksparse.certify.tree import Family
from ksparse.numerics.relaxation import NodeBatch
from ksparse.numerics.relaxation_kernels import FREE, OUT
from ksparse.util.arrays import Vector
from ksparse.util.resources import OutOfTimeError, parallel_map, pause

FIRST = np.array([0])
NODES_PER_TASK = 64  # nodes that one thread bounds together, so that its steps are matrix products
# steps at a node, which starts where its parent ended; steps without a better bound before it stops
STEPS, PATIENCE = 60, 24
ROOT_STEPS, ROOT_PATIENCE = 60, 36  # the same at the root, for each D
ROOT_STEPS_LARGE, ROOT_PATIENCE_LARGE = 300, 100  # the same for large n: there they decide how good D is (gaps.py)
LARGE = 300  # number of variables above which n is large
ROUNDS, ROUNDS_LARGE = 20, 8  # minimum numbers of D tried
LARGE_ROUND = 600  # number of variables above which a round takes seconds
PROGRESS_WINDOW = 10  # number of last D considered
MIN_PROGRESS = 0.05  # another D is tried while these have closed this fraction of the distance to the cutoff
RESPLIT = 0.8  # D is chosen again once no more than this fraction of the variables is left
# number of variables up to which each node gets bounds of its own, unless C already bounds all variables (gaps.py)
BOXED = 300
ZERO_WEIGHT = 1e-3  # added to |y|, so that variables with y = 0 can also be chosen to branch on


class QuadraticFamily(Family):
    """Quadratics; a node is one row of `NodeBatch`."""

    def __init__(self, problem: ScaledProblem) -> None:
        self.problem, self.scale = problem, problem.scale
        bounded = bool(np.isfinite(problem.linear.lower).all() and np.isfinite(problem.linear.upper).all())
        self.boxes = problem.min_eigenvalue > 0 and problem.n <= BOXED and not bounded

    @property
    def supports(self) -> Supports:  # type: ignore[override]
        """The supports among the variables that are left."""
        return self.problem.supports

    def root(self, cutoff: float, deadline: float) -> tuple[float, NodeBatch]:
        """Bound the root with D chosen for it, and again on the variables that are left if these are few."""
        given = self.problem.state
        self.problem = self.problem.with_implied_fixings()
        self.relaxation, root, bound = self._solve_root(cutoff, deadline)
        while time.perf_counter() < deadline and bound < cutoff:
            if not self.supports.propagate(root.state[0]):
                bound = cutoff  # no support below the cutoff satisfies the rules
                break
            kept = np.flatnonzero(root.state[0] != OUT)
            if not kept.size or kept.size > RESPLIT * self.problem.n:
                break
            whole, self.problem = self.problem, replace(self.problem, state=root.state[0]).on(kept)
            try:
                self.relaxation, root, again = self._solve_root(cutoff, deadline)
            except OutOfTimeError:
                self.problem = whole
                break
            bound = max(bound, again)
        fixed = root.state.shape[1] != given.size or bool((root.state[0] != given).any())
        return min(bound, cutoff) if fixed else bound, root

    def _solve_root(self, cutoff: float, deadline: float) -> tuple[Relaxation, NodeBatch, float]:
        """Return the relaxation whose D gives the best bound, the root with all fixings on the way, and that bound."""
        n, split, node, best, found = self.problem.n, DiagonalSplit(self.problem), None, -np.inf, None
        steps, patience = (ROOT_STEPS_LARGE, ROOT_PATIENCE_LARGE) if n > LARGE else (ROOT_STEPS, ROOT_PATIENCE)
        rounds = ROUNDS if n <= LARGE_ROUND else ROUNDS_LARGE
        history = [-np.inf] * PROGRESS_WINDOW
        for turn in itertools.count():
            if turn >= rounds and not best > history[-PROGRESS_WINDOW] + MIN_PROGRESS * (cutoff - best):
                break
            try:
                pause()
                d = split.solve()
                pause()
                relaxation = Relaxation(QuadraticBound(self.problem, d))
                pause()
            except OutOfTimeError:
                if found is None:
                    raise
                break
            node = relaxation.root() if node is None else node.gather(FIRST)  # from where the last D led
            bound = float(relaxation.bound(node, cutoff, steps, patience, deadline)[0])
            if found is None or bound > best:
                best, found = bound, (relaxation, node)
            history.append(best)
            state = node.state
            if best >= cutoff or time.perf_counter() >= deadline or (node.state != OUT).sum() < RESPLIT * n:
                break
            split.update_weights(node.y[0], node.z[0])
        assert found is not None
        found[1].state = state
        return *found, best

    def children(self, node: NodeBatch) -> list[NodeBatch]:
        """Fix one more variable: the one that the relaxation leaves most undecided."""
        state, y, z = node.state[0], node.y[0], node.z[0]
        free = np.flatnonzero(state == FREE)
        doubt = np.minimum(z[free], 1.0 - z[free]) * (ZERO_WEIGHT + np.abs(y[free]))
        i = free[doubt.argmax()] if doubt.max() > 0 else free[z[free].argmax()]
        return [replace(node.gather(FIRST), state=branch[None]) for branch in self.supports.branches(state, i)]

    def bounds(self, nodes: list[NodeBatch], cutoff: float, deadline: float) -> Vector:
        """Bound nodes in tasks of a fixed size, so that the bounds do not depend on n_jobs."""
        tasks = [nodes[begin : begin + NODES_PER_TASK] for begin in range(0, len(nodes), NODES_PER_TASK)]
        return np.concatenate(parallel_map(lambda task: self._bounds(task, cutoff, deadline), tasks, self.n_jobs))

    def _bounds(self, nodes: list[NodeBatch], cutoff: float, deadline: float) -> Vector:
        batch = NodeBatch(**{name: np.concatenate([getattr(node, name) for node in nodes]) for name in vars(nodes[0])})
        if self.boxes:
            self.problem.tighten_nodes(batch, cutoff)
        found = self.relaxation.bound(batch, cutoff, STEPS, PATIENCE, deadline)
        if self.boxes:
            found = np.minimum(found, cutoff)  # the tightened sizes hold below the cutoff only
        # fixings by bound may contradict the rules: then no support below the cutoff satisfies them
        satisfiable = np.array([self.supports.propagate(state) for state in batch.state])
        for i, node in enumerate(nodes):
            node.scatter(FIRST, batch.gather(np.array([i])))
        return np.where(satisfiable, found, np.maximum(found, cutoff))

    def leaf(self, node: NodeBatch, all_fixed: bool) -> Vector | None:
        """Return the support of a node.

        With minimum sizes a larger support can have a higher value, so a leaf has no free variable.
        """
        return super().leaf(node, all_fixed or bool(self.problem.sizes.min_abs.any()))
