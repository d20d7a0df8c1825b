"""Losses that have no model to rank by: custom functions, and nonconvex ones off the ball. A guess, from the gradient.

Entering variables are ranked by the size of their gradient (less what the equations of C explain), leaving ones by the size of their
entry; the most promising pairs are tried.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ksparse.numerics.qp import shortest
from ksparse.search.neighbourhoods.base import Move
from ksparse.search.neighbourhoods.solved import Solved
from ksparse.util.arrays import Vector

PAIRED = (4, 6)  # leaving and entering variables that are paired


class Gradient(Solved):
    """Moves ranked by slopes and sizes."""

    def add_ranks(self) -> Vector:
        problem = self.problem
        pull = np.where(problem.allowed, np.abs(self.reduced_gradient()), 0.0)
        pull[self.at.support] = 0.0
        return pull

    def drop_ranks(self) -> Vector:
        return np.where(self.movable, np.abs(self.at.x), np.inf)

    def moves(self, least: float, full: bool) -> Iterator[Move]:
        ranks, (out, into) = self.add_ranks(), PAIRED
        inactive, rules = self.problem.inactive(self.at), self.problem.rules
        if rules.any:  # where few exchanges are allowed any member may be the one to leave
            inactive, out = rules.exchanges(self.at.support, self.problem.asked).enterable(inactive), self.size
        entering = inactive[np.argsort(-ranks[inactive], kind="stable")][:into]
        leaving = [move.leaving for move, _ in zip(self.drops(), range(out), strict=False)]
        pairs = sorted((a + b, a, b) for a in range(len(leaving)) for b in range(entering.size))
        yield from (Move(leaving[a], (int(entering[b]),)) for _, a, b in pairs)

    def reduced_gradient(self) -> Vector:
        """∇φ less the part that the equations of C, priced on the support, account for."""
        problem, at = self.problem, self.at
        gradient = np.asarray(problem.loss.gradient(at.full(problem.n)))
        if problem.linear is None or not problem.linear.f.size or not at.support.size:
            return gradient
        E = problem.linear.E
        price = shortest(E[:, at.support].T, gradient[at.support])
        return np.asarray(gradient - E.T @ price)
