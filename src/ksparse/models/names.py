"""The best weights of given names whose tracking error is limited: a convex problem with one multiplier."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ksparse.models.lifting import Lifted
from ksparse.models.portfolio import Portfolio
from ksparse.models.rules import Rows
from ksparse.numerics.qp import Objective, solve_qp
from ksparse.util.arrays import Vector

NARROW = 1e-7  # of θ: what lies between two multipliers as near as this is taken from the line between their weights
SAME = 1e-9  # of a value: less is no difference


class Names:
    """The convex problem among the names of some weights, each on its side of 0 and beyond the floor."""

    def __init__(self, wanted: Portfolio, x: Vector, floor: float, sizes: tuple[float, float]) -> None:
        index = wanted.index
        assert index is not None
        self.index, self.n, self.held = index, x.size, np.flatnonzero((x != 0) | wanted.inside)
        S, rows = self.held, wanted.rows
        short = (x[S] < 0) | (wanted.upper[S] < 0)
        away = np.abs(np.delete(wanted.before, S)).sum()
        few = replace(
            wanted, V=np.asarray(wanted.V, dtype=float)[np.ix_(S, S)], r=wanted.r[S], cost=wanted.cost[S], index=None, counts=None,
            lower=np.where(short, wanted.lower[S], np.maximum(wanted.lower[S], floor)),
            upper=np.where(short, np.minimum(wanted.upper[S], -floor), wanted.upper[S]),
            rows=Rows(rows.G[:, S], rows.h, rows.E[:, S], rows.f), held=None if wanted.held is None else wanted.held[S],
            max_turnover=None if wanted.max_turnover is None else wanted.max_turnover - away, forced_in=(), forced_out=(),
        )  # fmt: skip
        self.lifted = Lifted(few)
        M = self.lifted.to_weights
        self.own, self.other = (
            self.lifted.quadratic,
            (2.0 * (M.T @ index.gram[np.ix_(S, S)] @ M), -2.0 * index.pull[S] @ M),
        )
        self.sizes, self.linear = sizes, self.lifted.C.as_linear(M.shape[1])

    def at(self, theta: float) -> Vector:
        """The best weights at θ."""
        a, b = (1.0 - theta) / self.sizes[0], theta / self.sizes[1]
        z = solve_qp(Objective(a * self.own[0] + b * self.other[0], a * self.own[1] + b * self.other[1]), self.linear).x
        x = np.zeros(self.n)
        x[self.held] = self.lifted.weights(z)
        return x

    def best(self) -> tuple[Vector, float] | None:
        """The best weights within the limit, and their θ; None where there are none.

        The error falls as θ grows: a bracket of θ is cut where a line through its ends says, the weight of an end that stays being halved
        (the Illinois rule), until the weights at its ends are as good as alike.
        """
        limit, index = self.index.limit, self.index
        far, near = self.at(0.0), self.at(1.0)
        if index.kept(far):
            return far, 0.0
        if not index.kept(near):
            return None
        low, high, theta = 0.0, 1.0, 1.0
        over, under, side = index.error(far) ** 2 - limit**2, index.error(near) ** 2 - limit**2, 0
        while high - low > NARROW and over > under:
            theta = low + (high - low) * float(np.clip(over / (over - under), NARROW, 1.0 - NARROW))
            x = self.at(theta)
            off = index.error(x) ** 2 - limit**2
            if not index.kept(x):
                low, far, over, under, side = theta, x, off, under * (0.5 if side == 1 else 1.0), 1
            else:
                high, near, under, over, side = theta, x, off, over * (0.5 if side == -1 else 1.0), -1
            if abs(off) <= SAME * limit**2:
                break
        return index.between(far, near), theta
