"""Convex quadratics over polyhedra, for the tree: nodes of the perspective relaxation, with a D that is chosen at the root."""

from __future__ import annotations

import itertools
import time

import numpy as np

from ksparse.certify.bound import QuadraticBound, Relaxation
from ksparse.certify.diagonal import Diagonals
from ksparse.certify.program import Program, narrow
from ksparse.certify.tree import TreeSettings
from ksparse.numerics.relaxation import NodeBatch
from ksparse.numerics.relaxation_kernels import FREE, IN, OUT
from ksparse.util.arrays import Vector
from ksparse.util.resources import OutOfTimeError, parallel_map, pause

FIRST = np.array([0])


class QuadraticFamily:
    """One node is one row of `NodeBatch`."""

    def __init__(self, program: Program, settings: TreeSettings, n_jobs: int | None = None) -> None:
        self.program, self.settings, self.n_jobs = program, settings, n_jobs
        bounded = bool(np.isfinite(program.linear.lower).all() and np.isfinite(program.linear.upper).all())
        self.boxes = program.least > 0 and program.n <= settings.boxed and not bounded
        self.scale, self.together, self.looks = program.scale, settings.together, settings.looks

    def root(self, cut: float, deadline: float) -> tuple[float, NodeBatch]:
        """With D chosen for it, and again on the variables that are left where few are."""
        given = self.program.state
        self.program = self.program.followed()
        relaxation, root, bound = self._rooted(cut, deadline)
        while time.perf_counter() < deadline and bound < cut:
            if not self.program.propagate(root.state[0]):
                bound = max(bound, cut)  # nothing below the cut obeys
                break
            kept = np.flatnonzero(root.state[0] != OUT)
            if not kept.size or kept.size > self.settings.shrunk * self.program.n:
                break
            whole, self.program = self.program, self.program.decided(root.state[0]).on(kept)
            try:
                relaxation, root, again = self._rooted(cut, deadline)
            except OutOfTimeError:
                self.program = whole
                break
            bound = max(bound, again)
        self.relaxation = relaxation
        decided = root.state.shape[1] != given.size or bool((root.state[0] != given).any())
        return min(bound, cut) if decided else bound, root

    def _rooted(self, cut: float, deadline: float) -> tuple[Relaxation, NodeBatch, float]:
        """The relaxation whose D gives the best bound of the root, of some rounds; the root with all that was decided on the way."""
        settings, program = self.settings, self.program
        diagonals, best, found = Diagonals(program), -np.inf, None
        rounds = settings.rounds if program.n <= settings.medium else settings.rounds_large
        steps, patience = settings.root_steps, settings.root_patience
        if program.n > settings.small:
            steps, patience = settings.root_steps_large, settings.root_patience_large
        node: NodeBatch | None = None
        before = [-np.inf] * settings.watched  # the best of the last rounds: while they rise, more may
        for turn in itertools.count():
            if turn >= rounds and not best > before[-settings.watched] + settings.risen * (cut - best):
                break
            try:
                pause()
                d = diagonals.best()
                pause()
                relaxation = Relaxation(program, QuadraticBound(program, d))
                pause()
            except OutOfTimeError:
                if found is None:
                    raise
                break
            node = relaxation.root() if node is None else node.gather(FIRST)  # from where the last D led
            bound = float(relaxation.bound(node, cut, steps, patience, deadline)[0])
            if found is None or bound > best:
                best, found = bound, (relaxation, node)
            before.append(best)
            late = time.perf_counter() >= deadline
            if best >= cut or late or (node.state != OUT).sum() < settings.shrunk * program.n:
                break
            diagonals.weigh(node.y[0], node.z[0])
        assert found is not None
        assert node is not None
        found[1].state = node.state
        return *found, best

    def children(self, node: NodeBatch) -> list[NodeBatch]:
        """One variable more is decided: the one of which the relaxation says least."""
        state, y, z = node.state[0], node.y[0], node.z[0]
        free = np.flatnonzero(state == FREE)
        doubt = np.minimum(z[free], 1.0 - z[free]) * (self.settings.doubt + np.abs(y[free]))
        i = free[doubt.argmax()] if doubt.max() > 0 else free[z[free].argmax()]
        both = [self._decided(node, i, side) for side in (IN, OUT)]
        return [child for child in both if self.program.propagate(child.state[0])]

    def _decided(self, node: NodeBatch, i: int, side: int) -> NodeBatch:
        child = node.gather(FIRST)
        child.state[0, i] = side
        if (child.state == IN).sum() >= self.program.k:
            child.state[child.state == FREE] = OUT
        return child

    def bounds(self, nodes: list[NodeBatch], cut: float, deadline: float) -> Vector:
        """So many of them side by side that it does not depend on n_jobs."""
        share = self.settings.share
        shares = [nodes[begin : begin + share] for begin in range(0, len(nodes), share)]
        return np.concatenate(parallel_map(lambda part: self._bounds(part, cut, deadline), shares, self.n_jobs))

    def _bounds(self, nodes: list[NodeBatch], cut: float, deadline: float) -> Vector:
        whole = stacked(nodes)
        if self.boxes:
            narrow(self.program, whole, cut)
        found = self.relaxation.bound(whole, cut, self.settings.steps, self.settings.patience, deadline)
        if self.boxes:
            found = np.minimum(found, cut)  # beyond its box a node has nothing below the cut, and no more is known
        # what the bounds decided may contradict the rules: then nothing below the cut obeys
        obeyed = np.array([self.program.propagate(state) for state in whole.state])
        found = np.where(obeyed, found, np.maximum(found, cut))
        for i, node in enumerate(nodes):
            node.scatter(FIRST, whole.gather(np.array([i])))
        return found

    def leaf(self, node: NodeBatch, every: bool) -> Vector | None:
        """What is decided, or where all that is free fits and nothing is lost by it, with that."""
        state = node.state[0]
        free, room = int((state == FREE).sum()), self.program.k - int((state == IN).sum())
        whole = free == 0 or (free <= room and not self.program.floored and not every)
        if whole and free:
            whole = self.program.rules.is_satisfied_within(np.flatnonzero(state != OUT), self.program.asked)
        return self.program.names[state != OUT] if whole else None

    def leaf_bound(self, support: Vector, x: Vector) -> float:
        """None of its own: on a support the search proves its value."""
        return -np.inf

    def promising(self, node: NodeBatch) -> Vector:
        """Those decided, then those with the largest z."""
        state = node.state[0]
        rank = np.where(state == IN, 2.0, np.where(state == OUT, -1.0, node.z[0]))
        order = np.argsort(-rank, kind="stable")
        return np.asarray(self.program.names[order[rank[order] > 0][: self.program.k]])


def stacked(nodes: list[NodeBatch]) -> NodeBatch:
    """Many nodes as one batch."""
    return NodeBatch(**{name: np.concatenate([getattr(node, name) for node in nodes]) for name in vars(nodes[0])})
