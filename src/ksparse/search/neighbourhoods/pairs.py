"""Two variables for two at once, where variables are held at their floors: what swaps one by one do not reach.

Buy-ins that nearly fill a budget let few single swaps in. With the free variables following, φ is a quadratic in the sizes of all others:
a change Δ of some of them lowers it by sᵀΔ − ½ΔᵀQΔ, Q being H less what the free variables take up. Leaving means Δⱼ = −xⱼ, entering Δᵢ at
the floor. What the free variables and the rows have left afterwards is linear in Δ, so that moves which break them are left out unseen.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from ksparse.search.neighbourhoods.base import Move
from ksparse.search.neighbourhoods.basis import Basis
from ksparse.search.neighbourhoods.working_set import WorkingSet
from ksparse.util.arrays import Vector

FITS = 1e-9  # of the size of x, or of a row's terms: beyond a bound by less is rounding


def pair_moves(basis: Basis, working: WorkingSet, outside: Vector, leaving: Vector, entering: int, least: float) -> list[Move]:
    """Swaps of two held variables for two from outside, at their floors, that gain more than `least`, the best first.

    `leaving` says which of the held ones may go; of those outside so many are looked at as have the best single swaps.
    """
    held, at = basis.held[leaving], basis.level[leaving]
    if held.size < 2 or outside.size < 2:
        return []
    parts = held.size
    others = np.concatenate([held, outside])
    delta = np.concatenate([-at, working.low[outside]])
    alone = delta * (basis.s[others] - 0.5 * basis.h[others] * delta)
    between = delta[:parts, None] * basis.coupling(held, outside) * delta[parts:]
    best = (alone[:parts, None] + alone[parts:] - between).max(axis=0)
    kept = np.sort(np.argsort(-best, kind="stable")[:entering])
    chosen, between = outside[kept], between[:, kept]
    gain, delta = alone[parts:][kept], delta[np.concatenate([np.arange(parts), parts + kept])]
    among = delta[parts:, None] * basis.coupling(chosen, chosen) * delta[parts:]
    both = delta[:parts, None] * basis.coupling(held, held) * delta[:parts]
    room, taken = _left(basis, working, np.concatenate([held, chosen]), delta)
    first, second = np.triu_indices(kept.size, 1)
    found: list[tuple[float, Move]] = []
    for i, j in combinations(range(parts), 2):
        gains = alone[i] + alone[j] - both[i, j] + (gain - between[i] - between[j])[first]
        gains += (gain - between[i] - between[j])[second] - among[first, second]
        promising = np.flatnonzero(gains > least)
        pairs = taken[:, parts + first[promising]] + taken[:, parts + second[promising]]
        fits = (pairs <= (room - taken[:, i] - taken[:, j])[:, None]).all(axis=0)
        found += [
            (float(gains[pair]), Move((int(held[i]), int(held[j])), (int(chosen[first[pair]]), int(chosen[second[pair]]))))
            for pair in promising[fits]
        ]
    return [move for _, move in sorted(found, key=lambda one: (-one[0], one[1].leaving, one[1].entering))]


def _left(basis: Basis, working: WorkingSet, others: Vector, delta: Vector) -> tuple[Vector, Vector]:
    """What is left to the bounds of the free variables and to the rows of G, and what each change takes of it."""
    p, free = basis.e + basis.size, basis.free
    variables, x = basis.element[free], basis.x[free]
    moved = -(basis.inverse[basis.free_rows, :p] @ basis.B[:p, others]) * delta  # the free variables follow
    slack, terms = working.slack()
    slack[~basis.element[basis.element < 0]] = np.inf  # active rows stay so
    size = np.abs(x) + FITS
    room = np.concatenate([x - working.low[variables] + FITS * size, working.high[variables] - x + FITS * size, slack + FITS * terms])
    return room, np.vstack([-moved, moved, basis.G[:, others] * delta + basis.G[:, variables] @ moved])
