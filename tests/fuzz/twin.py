"""Brute-force twin: every support is solved by code that shares nothing with the library.

The twin returns feasible points with their true values: each is an upper bound on the optimum, even if a solve failed.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np

from .on_support import solve_on
from .qp import Answer
from .region import Region


@dataclass
class Twin:
    """Best feasible points of min φ over C with at most k nonzeros, for every support, cached."""

    phi: object
    region: Region
    k: int
    forced_in: tuple[int, ...] = ()
    forced_out: tuple[int, ...] = ()
    floor: float = 0.0
    groups: tuple[int, ...] = ()  # a label for each variable: k counts labels, which enter whole
    seen: dict = field(default_factory=dict)

    @property
    def must(self):
        return sorted({*self.forced_in, *self.region.forced.tolist()})

    @property
    def may(self):
        return [j for j in range(self.phi.n) if j not in self.forced_out]

    def supports(self):
        """Return the supports of full size, which cover smaller ones; all sizes if a floor keeps nonzeros off 0."""
        if self.groups:
            return self._grouped_supports()
        must = self.must
        if len(must) > self.k or not set(must) <= set(self.may):
            return []
        others = [j for j in self.may if j not in must]
        room = min(self.k - len(must), len(others))
        sizes = range(room + 1) if self.floor else [room]
        return [tuple(sorted((*must, *more))) for size in sizes for more in itertools.combinations(others, size)]

    def _grouped_supports(self):
        """Return unions of whole groups; a group with a forced-out member is excluded."""
        label = np.array(self.groups)
        out = {self.groups[j] for j in self.forced_out}
        must = {self.groups[j] for j in self.must}
        if len(must) > self.k or must & out:
            return []
        others = sorted(set(self.groups) - out - must)
        sets = itertools.combinations(others, min(self.k - len(must), len(others)))
        return [tuple(np.flatnonzero(np.isin(label, [*must, *more])).tolist()) for more in sets]

    def best(self):
        """Return the best answer, and the answers on all supports."""
        answers = [self.on(support) for support in self.supports()]
        return best_of(answers, self.phi), answers

    def neighbours(self, support):
        """Return a support and the supports one add, drop or swap away."""
        here, must = set(support) | set(self.must), set(self.must)
        outside = [j for j in self.may if j not in here]
        moves = [here]
        if len(here) < self.k:
            moves += [here | {j} for j in outside]
        moves += [here - {i} | {j} for i in here - must for j in outside]
        if self.floor:
            moves += [here - {i} for i in here - must]
        return [tuple(sorted(move)) for move in moves]

    def on(self, support):
        """Return the answer on one support, as a vector of length n."""
        if support not in self.seen:
            try:
                with np.errstate(all="ignore"):
                    self.seen[support] = self._solve(np.array(support, dtype=int))
            except np.linalg.LinAlgError:  # numbers out of range: nothing is known here
                self.seen[support] = Answer("unclear", None)
        return self.seen[support]

    def _solve(self, support):
        cut = self.region.on(support)
        if cut is None:
            return Answer("infeasible", None)
        if not support.size:
            zero = np.zeros(self.phi.n)
            return Answer("optimal", zero) if self.region.holds(zero) else Answer("infeasible", None)
        if not self.floor:
            return self._checked(support, solve_on(self.phi, cut, support))
        signs = itertools.product((1, -1), repeat=len(support))
        regions = [cut.floored(np.array(sign), self.floor) for sign in signs]
        answers = [
            self._checked(support, solve_on(self.phi, r, support)) for r in regions if (r.lower <= r.upper).all()
        ]
        return best_of(answers, self.phi) or Answer("infeasible", None)

    def _checked(self, support, answer):
        """Return the answer with its point in all variables, if it is certainly feasible."""
        if answer.x is None:
            return answer
        x = np.zeros(self.phi.n)
        x[support] = answer.x
        return Answer(answer.status, x) if self.region.holds(x) else Answer("unclear", None)


def best_of(answers, phi):
    """Return an unbounded answer, else the answer of least value; None without any."""
    for answer in answers:
        if answer.status == "unbounded":
            return answer
    points = [answer for answer in answers if answer.x is not None]
    return min(points, key=lambda answer: phi.value(answer.x)) if points else None
