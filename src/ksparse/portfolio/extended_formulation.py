"""Portfolios that pay for their trades, or limit them or their short side, as quadratic programs in more variables.

x = p − q with a long part p ≥ 0 and a short part q ≥ 0, of which an asset needs one. On its own side of 0 an asset that was held with
size a trades |p − a| = p − a + 2s, s ≥ a − p, s ≥ 0: what is sold, s, costs no seat, being always there, and only p and q count for
k. Every other asset trades p + q, which needs no more variables. So costs are linear, the turnover and the short side are rows, floors
lie on one side of 0, and the search is that of any quadratic over a polyhedron, with its bounds and proofs.

A variable without curvature has no place in a factorisation that is kept up to date. So the search sees φ + ½εs(s − a): the same where
nothing or all is sold, less by at most εa²/8 between. What it finds is solved once more on its support without that, and what bounds the
smaller value from below bounds φ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ksparse.data.products import check_symmetric
from ksparse.errors import InfeasibleError, UnboundedError
from ksparse.losses import Quadratic
from ksparse.losses.quadratic import QuadraticForm
from ksparse.numerics.qp import Objective, solve_qp
from ksparse.sets import Polyhedron
from ksparse.util.arrays import Vector

if TYPE_CHECKING:
    from ksparse.portfolio.problem import Portfolio

SOFT = 1e-6  # ε, of the largest curvature


@dataclass(frozen=True)
class Lifted:
    """A portfolio problem in z = (p, q, s)."""

    wanted: Portfolio

    @cached_property
    def short(self) -> Vector:
        """The assets that may be short, each with its q."""
        return np.flatnonzero(self.wanted.lower < 0)

    @cached_property
    def kinked(self) -> Vector:
        """The assets whose cost of trading has a kink within their bounds, each with its s."""
        held = self.wanted.before
        priced = (self.wanted.cost > 0) | (self.wanted.max_turnover is not None)
        return np.flatnonzero(priced & ((held > 0) | ((held < 0) & (self.wanted.lower < 0))))

    @property
    def n(self) -> int:
        """Assets."""
        return int(self.wanted.lower.size)

    @property
    def sold(self) -> Vector:
        """The places of s in z."""
        return self.n + self.short.size + np.arange(self.kinked.size)

    @cached_property
    def to_weights(self) -> Vector:
        """M of x = Mz."""
        M = np.zeros((self.n, self.n + self.short.size + self.kinked.size))
        M[:, : self.n] = np.eye(self.n)
        M[self.short, self.n + np.arange(self.short.size)] = -1.0
        return M

    @cached_property
    def traded(self) -> tuple[Vector, Vector]:
        """What each asset trades, Tz + t."""
        T, t = np.abs(self.to_weights), np.abs(self.wanted.before)
        T[self.kinked, self.sold] = 2.0
        return T, np.where(np.isin(np.arange(self.n), self.kinked), -t, t)

    @cached_property
    def curvature(self) -> Vector:
        """2αV, symmetric."""
        V: Vector = check_symmetric(2.0 * self.wanted.alpha * np.asarray(self.wanted.V, dtype=float), "V")
        return V

    @cached_property
    def quadratic(self) -> tuple[Vector, Vector]:
        """H and c of φ with the trading cost, less `constant`."""
        M, wanted, n, short = self.to_weights, self.wanted, self.n, self.short
        V, q = self.curvature, slice(n, n + short.size)
        H = np.zeros((M.shape[1], M.shape[1]))  # MᵀVM, whose entries are those of V
        H[:n, :n], H[:n, q], H[q, :n], H[q, q] = V, -V[:, short], -V[short], V[np.ix_(short, short)]
        return H, wanted.cost @ self.traded[0] - wanted.r @ M

    @property
    def loss(self) -> Quadratic:
        """φ as the search sees it: convex exactly where φ is, which V shows in an eighth of the time of a factorisation of H."""
        H, c = self.quadratic
        size = SOFT * (float(np.diag(H).max()) or 1.0)
        bent, pulled = H.copy(), c.copy()
        bent[self.sold, self.sold] += size
        pulled[self.sold] -= 0.5 * size * np.abs(self.wanted.before[self.kinked])
        loss = Quadratic.__new__(Quadratic)
        QuadraticForm.__init__(loss, bent, 0.5, pulled, "V", factored=False)
        loss.convex = QuadraticForm(self.curvature, 0.5, None, "V", factored=False).convex
        return loss

    def settled(self, z: Vector, C: Polyhedron, least: float) -> Vector | None:
        """The best point of φ itself with the nonzeros of z, on their sides of the floor; None where arithmetic does not find it."""
        seats = np.flatnonzero(z[: self.n + self.short.size])
        support = np.concatenate([seats, self.sold])
        linear = C.as_linear(z.size).on(support)
        if linear is None:
            return None
        H, c = self.quadratic
        floored = np.where(np.arange(support.size) < seats.size, np.maximum(linear.lower, least), linear.lower)
        try:
            found = solve_qp(Objective(H[np.ix_(support, support)], c[support]), replace(linear, lower=floored)).x
        except (InfeasibleError, UnboundedError):
            return None
        out = np.zeros(z.size)
        out[support] = found
        return out

    @property
    def constant(self) -> float:
        """What φ is above the loss of z."""
        return float(self.wanted.cost @ self.traded[1])

    @property
    def C(self) -> Polyhedron:
        """All rules, in z."""
        wanted, M, m, (T, t) = self.wanted, self.to_weights, self.kinked.size, self.traded
        rules = wanted.rules
        G, h = [rules.G @ M], [rules.h]
        if m:  # s ≥ a − p, or a − q
            side = np.where(
                wanted.before[self.kinked] > 0, self.kinked, self.n + np.searchsorted(self.short, self.kinked)
            )
            rows = np.zeros((m, M.shape[1]))
            rows[np.arange(m), side] = rows[np.arange(m), self.sold] = -1.0
            G, h = [*G, rows], [*h, -np.abs(wanted.before[self.kinked])]
        if wanted.max_turnover is not None:
            G, h = [*G, T.sum(axis=0)[None]], [*h, np.array([wanted.max_turnover - t.sum()])]
        if wanted.max_short is not None:
            row = np.zeros((1, M.shape[1]))
            row[0, self.n : self.n + self.short.size] = 1.0
            G, h = [*G, row], [*h, np.array([wanted.max_short])]
        lower = np.concatenate([np.maximum(wanted.lower, 0.0), np.maximum(-wanted.upper[self.short], 0.0), np.zeros(m)])
        most_sold = np.abs(wanted.before[self.kinked])
        upper = np.concatenate([np.maximum(wanted.upper, 0.0), -wanted.lower[self.short], most_sold])
        try:
            return Polyhedron(np.vstack(G), np.concatenate(h), rules.E @ M, rules.f, lower, upper)
        except InfeasibleError:
            limit = "" if wanted.max_turnover is None else f" within a turnover of {wanted.max_turnover:g}"
            raise InfeasibleError(
                f"no weights meet the budget, the bounds and the other rules together{limit}"
            ) from None

    def floor(self, least: float) -> Vector:
        """The least size of p and q; none for s."""
        return np.concatenate([np.full(self.n + self.short.size, least), np.zeros(self.kinked.size)])

    def forced(self) -> Vector:
        """What is always in the support: what is sold, and what the user said."""
        named = np.asarray(self.wanted.forced_in, dtype=np.intp)
        unclear = named[(self.wanted.lower[named] < 0) & (self.wanted.upper[named] > 0)]
        if unclear.size:
            raise ValueError(
                f"forced_in holds asset {unclear[0]}, which may be long or short: beside costs, turnover or max_short say which, by "
                "min_weights above 0 or max_weights below 0"
            )
        short = self.wanted.upper[named] <= 0
        sides = np.where(short, self.n + np.searchsorted(self.short, named), named)
        return np.asarray(np.concatenate([sides, self.sold]), dtype=np.intp)

    @property
    def group_limits(self) -> Any:
        """How many names of each group: p and q are of their asset's, s of none."""
        counts = self.wanted.counts
        if counts is None:
            return None
        return counts.for_core(np.concatenate([counts.group, counts.group[self.short], np.full(self.kinked.size, -1)]))

    @property
    def one_side(self) -> Any:
        """Limits by which at most one of p and q is there for every asset."""
        sides = np.where(np.isin(np.arange(self.n), self.short), np.arange(self.n), -1)
        labels = np.concatenate([sides, self.short, np.full(self.kinked.size, -1)])
        return labels.tolist(), {int(i): (0, 1) for i in self.short}

    def shut(self) -> Vector:
        """What is never in the support."""
        named = np.asarray(self.wanted.forced_out, dtype=np.intp)
        return np.asarray(np.concatenate([named, self.n + np.flatnonzero(np.isin(self.short, named))]), dtype=np.intp)

    def lift(self, x: Vector) -> Vector:
        """z of weights."""
        held = self.wanted.before[self.kinked]
        side = np.maximum(np.sign(held) * x[self.kinked], 0.0)
        return np.concatenate(
            [np.maximum(x, 0.0), np.maximum(-x[self.short], 0.0), np.maximum(np.abs(held) - side, 0.0)]
        )

    def weights(self, z: Vector) -> Vector:
        """x of z; what is as good as untraded is what was held."""
        x, held = self.to_weights @ z, self.wanted.before
        return np.where(np.abs(x - held) <= 1e-14 * np.abs(held), held, x)

    def small(self, z: Vector, least: float) -> Vector:
        """The places of z where what is left of a long and a short part is below the floor: the smaller of the two parts."""
        long, short = z[self.short], z[self.n : self.n + self.short.size]
        both = np.flatnonzero((long != 0) & (short != 0) & (long != short) & (np.abs(long - short) < least))
        return np.where(long[both] < short[both], self.short[both], self.n + both)
