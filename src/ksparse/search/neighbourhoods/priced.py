"""Convex losses with a second-order model: gains from one factorisation, with the multipliers of the current optimum in it.

Under equations alone these are the gains themselves. With inequalities the model carries the multipliers, and by weak duality its gains
bound the true ones from above. Of losses that are not quadratic, whose model is theirs only near the point, they are a guess, and
rule no exchange out.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ksparse.data.model import QuadraticModel
from ksparse.numerics.kkt_inverse import PART, KKTInverse, factor, parts
from ksparse.search.candidate import NONE, Candidate
from ksparse.search.neighbourhoods.base import Move, Trust
from ksparse.search.neighbourhoods.solved import Solved, falling
from ksparse.search.problem import SupportProblem
from ksparse.util.arrays import Vector


def priced_factor(problem: SupportProblem, model: QuadraticModel, at: Candidate) -> tuple[KKTInverse, Vector]:
    """The factorisation with the multipliers in r, and the constant that each variable's own bound contributes."""
    r, own = model.r.copy(), np.zeros(at.support.size)
    E, f = np.zeros((0, problem.n)), np.zeros(0)
    if problem.linear is not None:
        E, f = problem.linear.E, problem.linear.f
        if problem.linear.h.size:
            r -= problem.linear.G.T @ at.row_multipliers
        r[at.support] += at.bound_multipliers
        own = at.bound_multipliers * at.x  # a multiplier is paid only at the bound, where x is the bound
    return factor(model.rows(at.support), at.support, E, f, r, model.diagonal, at.shift), own


class Priced(Solved):
    """Moves ranked by their gain on the model, and solved exactly."""

    def __init__(self, problem: SupportProblem) -> None:
        super().__init__(problem)
        self.trust = Trust.UPPER_BOUND if problem.can.gains_are_bounds else Trust.GUESS
        self._known: tuple[Candidate, KKTInverse, Vector] | None = None

    def _factor(self) -> tuple[KKTInverse, Vector] | None:
        """At where it stands, made once; None where there is no model."""
        if self._known is None or self._known[0] is not self.at:
            problem = self.problem
            model = problem.model_at(self.at.full(problem.n))
            if model is None:
                return None
            self._known = (self.at, *priced_factor(problem, model, self.at))
        return self._known[1:]

    def add_ranks(self) -> Vector:
        problem, found = self.problem, self._factor()
        if found is None:
            return np.zeros(problem.n)
        gains = np.where(problem.allowed, found[0].adds(), 0.0)
        gains[self.at.support] = 0.0
        if (
            problem.linear is not None
        ):  # one that the model would give the sign its bounds forbid stays at 0 and gains nothing
            s = found[0].s
            gains[((problem.linear.lower >= 0) & (s <= 0)) | ((problem.linear.upper <= 0) & (s >= 0))] = 0.0
        return gains

    def drop_ranks(self) -> Vector:
        found = self._factor()
        if found is None:
            return np.where(self.movable, np.abs(self.at.x), np.inf)
        return np.where(self.movable, found[0].drops() - found[1], np.inf)

    def moves(self, least: float, full: bool) -> Iterator[Move]:
        found, problem, support = self._factor(), self.problem, self.at.support
        entering = self.problem.inactive(self.at)
        if found is None or not (support.size and entering.size):
            return
        # the model knows nothing of what holds x, or is φ near x only: its ranks order the moves, but exclude none
        if not problem.can.has_multipliers or self.trust is Trust.GUESS:
            least = -np.inf
        leaving, coming, swaps = self._swaps(*found, entering, least)
        yield from _several(swaps, support[leaving], coming, least, most=max(1, support.size // 8))
        drops = -self.drop_ranks() if problem.floors.any and support.size > 1 else np.full(support.size, -np.inf)
        adds = np.full(entering.size, -np.inf) if full else self.add_ranks()[entering]
        for place in falling(np.concatenate([adds, drops, swaps]), least):
            if place < adds.size:
                yield Move((), (int(entering[place]),))
            elif place < adds.size + drops.size:
                yield Move((int(support[place - adds.size]),), ())
            else:
                at = place - adds.size - drops.size
                yield Move((int(support[leaving[at]]),), (int(coming[at]),))

    def _swaps(self, found: KKTInverse, own: Vector, entering: Vector, least: float) -> tuple[Vector, Vector, Vector]:
        """The places of variables that leave, those that enter in their stead, and what that gains, where it is above `least`.

        A table is made for some entering variables at a time; where too many swaps are left to be looked at ever, the best of them stay.
        """
        leaving, coming, gains = NONE, NONE, np.zeros(0)
        for part in parts(entering.size, found.k):
            table = self._swap_ranks(found, own, entering[part])
            rows, columns = np.nonzero(table > least)
            leaving, coming = np.append(leaving, rows), np.append(coming, entering[part][columns])
            gains = np.append(gains, table[rows, columns])
            if gains.size > 2 * PART:
                best = np.argpartition(-gains, PART)[:PART]
                leaving, coming, gains = leaving[best], coming[best], gains[best]
        order = np.lexsort((coming, leaving))  # equal gains in the order of the whole table
        return leaving[order], coming[order], gains[order]

    def _swap_ranks(self, found: KKTInverse, own: Vector, entering: Vector) -> Vector:
        """The table of swaps; −∞ for forced variables, and for entering ones that would get the wrong sign."""
        table, pull = found.swaps(entering)
        table += own[:, None]
        table[~self.movable] = -np.inf
        linear = self.problem.linear
        if linear is not None:
            up, down = linear.lower[entering] >= 0, linear.upper[entering] <= 0
            table[(up & (pull <= 0)) | (down & ~up & (pull >= 0))] = -np.inf
        return table


def _several(gains: Vector, leaving: Vector, entering: Vector, least: float, most: int) -> Iterator[Move]:
    """The best swap and further ones of at least half its gain that share no variable with those before, as one move."""
    best = float(gains.max(initial=-np.inf))
    if not best > least or most < 2:
        return
    near = np.flatnonzero(gains >= max(0.5 * best, least))
    gone: list[int] = []
    coming: list[int] = []
    for at in near[np.argsort(-gains[near], kind="stable")]:
        j, i = int(leaving[at]), int(entering[at])
        if j not in gone and i not in coming:
            gone.append(j)
            coming.append(i)
            if len(gone) == most:
                break
    if len(gone) > 1:
        yield Move(tuple(gone), tuple(coming), needed=0.999 * best if np.isfinite(best) else 0.0)
