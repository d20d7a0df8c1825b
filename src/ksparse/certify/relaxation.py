"""Lower bounds of many nodes at once: steps of the relaxation, its dual points, and what they decide of variables.

With the charges c sorted, the absence of one of the t largest raises the bound by cᵢ − c₍ₜ₊₁₎, the presence of another by c₍ₜ₎ − cⱼ. Where
that reaches the cut, no better point is there, and the variable is decided for the whole subtree. Under limits per label what would come
or go is another for each label, and a group is decided as a whole.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from ksparse.certify.diagonal import COMPILED
from ksparse.certify.dual_bound import Bounds, DualBound
from ksparse.certify.program import Program
from ksparse.numerics.relaxation import NodeBatch, Perspective
from ksparse.numerics.relaxation_kernels import FREE, IN, OUT
from ksparse.util.arrays import Vector
from ksparse.util.resources import report_pause

GAIN = 1e-3  # of the way to the cut: a bound that rises less does not rise
FEW = 0.7  # of the nodes of a batch are left: the others are put aside


class Relaxation:
    """The relaxation of a program, and a bound at its dual points."""

    def __init__(self, program: Program, dual: DualBound) -> None:
        self.program, self.dual = program, dual
        self.method = Perspective(
            program.H,
            program.r,
            dual.d,
            program.linear,
            program.sizes,
            program.k,
            limits=program.limits,
            fixed_values=program.held,
        )
        self.method.many_steps = program.n >= COMPILED

    def root(self) -> NodeBatch:
        """The node where nothing is decided but what the problem decides."""
        return self.method.start(self.program.state[None].copy())

    def bound(self, nodes: NodeBatch, cut: float, steps: int, patience: int, deadline: float = np.inf) -> Vector:
        """Bounds of the nodes, each as far as it rises below the cut; the nodes move, and what is decided on the way stays so.

        What was decided against is known not to fall below the cut, and no more: a node where that happened has no higher bound.
        """
        best, before_all = np.full(len(nodes), -np.inf), nodes.state.copy()
        every = self.method.steps_per_bound
        places, now, last = np.arange(len(nodes)), nodes.gather(np.arange(len(nodes))), np.zeros(len(nodes), dtype=int)
        for step in range(1, steps + 1):
            self.method.step(now)
            if step % every:
                continue
            report_pause()
            sizes = replace(self.program.sizes, max_above=now.max_above, max_below=now.max_below)
            found = self.dual.at(now.x, now.equation_multipliers, self.method.row_multipliers(now), now.state, sizes)
            before = best[places]
            best[places] = np.maximum(before, found.value)
            rises = (
                best[places] > before + GAIN * np.maximum(cut - before, 0.0)
                if step > every
                else np.ones(len(now), dtype=bool)
            )
            last[rises | screen(now.state, found, self.program.k, cut)] = step
            over = (best[places] >= cut) | (step - last > patience) | ~(now.state == FREE).any(axis=1)
            if over.all() or time.perf_counter() >= deadline:
                break
            if (~over).mean() < FEW:
                nodes.scatter(places[over], now.gather(over))
                places, now, last = places[~over], now.gather(~over), last[~over]
        nodes.scatter(places, now)
        return np.where((nodes.state != before_all).any(axis=1), np.minimum(best, cut), best)


def screen(state: Vector, found: Bounds, k: int, cut: float) -> Vector:
    """Decide, in place, what the bounds alone decide; which nodes that changed."""
    free, value, charge = state == FREE, found.value[:, None], found.charge
    last_in, first_out = found.last_in, found.first_out
    room = k - (state == IN).sum(axis=1)
    many = (free.sum(axis=1) > room) & np.isfinite(found.value)
    with np.errstate(invalid="ignore"):
        enter = free & many[:, None] & (charge >= last_in) & (charge > first_out) & (value + charge - first_out >= cut)
        leave = free & many[:, None] & (charge < last_in) & (value + last_in - charge >= cut)
    full = (room - enter.sum(axis=1) <= 0) & many
    leave |= free & full[:, None] & ~enter
    state[enter], state[leave] = IN, OUT
    return np.asarray((enter | leave).any(axis=1))
