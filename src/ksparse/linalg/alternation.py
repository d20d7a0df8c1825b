"""The perspective relaxation without rows and bounds: x for given z by one system, z for given x by water-filling, in turn.

    min ½xᵀ(H − D)x − rᵀx + Σ ½dᵢxᵢ²/zᵢ   s.t.  Σzᵢ ≤ k,  0 ≤ z ≤ 1

is convex in (x, z) together. With S = diag(√z), x = S(S(H − D)S + D)⁻¹Sr holds at z = 0 too; then zᵢ should be √dᵢ|xᵢ| over a level, at
most 1, the level such that they add up to k. That is zᵢ times its pull |qᵢ|/√dᵢ over a level, q = r − (H − D)x. Each step costs a system
per node where ADMM costs a product, but the condition of H does not matter: on nearly dependent columns ADMM would need thousands of steps.
"""

from __future__ import annotations

import numpy as np

from ksparse.base.arrays import Vector
from ksparse.linalg.perspective import Nodes
from ksparse.linalg.states import FREE, IN, OUT

LEAST = 1e-6  # of z, of a variable that is free: from 0 there is no way back
POWER = 2.0  # of what a variable's pull differs from the others' by, z follows it: with 1 it is the minimum for x, and slower
RIDGE = 1e-13  # of the unit diagonal of H: what rounding may take from a singular system


class Alternation:
    """The relaxation for one d, of variables that may have any size, and their units of curvature."""

    every = 2  # steps between two bounds

    def __init__(self, H: Vector, r: Vector, d: Vector, k: int, far: Vector) -> None:
        self.M, self.r, self.d, self.k = H - np.diag(d), r, d, k
        self._root, self._far = np.sqrt(d), far  # the largest size of each variable

    def start(self, state: Vector) -> Nodes:
        """Nodes (rows) of which nothing is known: as if all were as likely."""
        n, count = self.r.size, len(state)
        room = np.maximum(self.k - (state == IN).sum(axis=1), 0) / np.maximum((state == FREE).sum(axis=1), 1)
        z = np.where(state == IN, 1.0, np.where(state == FREE, np.minimum(room, 1.0)[:, None], 0.0))
        zero, none = np.zeros((count, n)), np.zeros((count, 0))
        return Nodes(state, zero, zero, none, none, np.zeros(count), zero, z, none)

    def step(self, nodes: Nodes) -> None:
        """x for the z that there is, then z for it; a variable with d = 0 costs nothing, and its z says how much of its size it has."""
        state = nodes.state
        z = np.where(state == IN, 1.0, np.where(state == OUT, 0.0, nodes.z))
        kept = np.flatnonzero((state != OUT).any(axis=0))  # what is out at every node costs nothing
        root = np.where((self.d > 0) | (z > 0), np.sqrt(z), 1.0)[:, kept] * (state[:, kept] != OUT)
        K = root[:, :, None] * self.M[np.ix_(kept, kept)] * root[:, None, :]
        K[:, np.arange(kept.size), np.arange(kept.size)] += np.where(root > 0, self.d[kept] + RIDGE, 1.0)
        x = np.zeros(state.shape)
        x[:, kept] = root * np.linalg.solve(K, (root * self.r[kept])[:, :, None])[:, :, 0]
        nodes.x = nodes.y = x
        pull = np.abs(self.r - x @ self.M) / np.maximum(self._root, 1e-300)
        z = self._filled(np.where(self.d > 0, z * pull**POWER, 0.0), state)
        nodes.z = np.where((self.d > 0) | (state != FREE), z, np.minimum(np.abs(x) / np.maximum(self._far, 1e-300), 1.0))

    def row_price(self, nodes: Nodes) -> Vector:
        """There are no rows."""
        return nodes.s

    def _filled(self, size: Vector, state: Vector) -> Vector:
        """min(1, size/level) with the level at which those that are free add up to the room that is left; 1 for all where they fit."""
        free, rows, places = state == FREE, np.arange(len(size)), np.arange(size.shape[1])
        room = (self.k - (state == IN).sum(axis=1))[:, None]
        ranked = -np.sort(-np.where(free, size, 0.0), axis=1)
        rest = ranked.sum(axis=1, keepdims=True) - np.cumsum(ranked, axis=1) + ranked  # of all from each place on
        level = rest / np.maximum(room - places, 1)  # if just those before a place are whole
        first = ((ranked <= level * (1.0 + 1e-12)) & (places < room)).argmax(axis=1)
        z = np.clip(size / np.maximum(level[rows, first], 1e-300)[:, None], LEAST, 1.0)
        z = np.where(free.sum(axis=1, keepdims=True) <= room, 1.0, np.where(room > 0, z, 0.0))
        return np.where(free, z, state == IN)
