"""Extended formulation of portfolios with trading costs, limited turnover or short positions: a quadratic program.

x = p − q with a long part p ≥ 0 and a short part q ≥ 0, of which an asset needs one. On its own side of 0 an asset that
was held with size a trades |p − a| = p − a + 2s, s ≥ a − p, s ≥ 0. The sales s are always in the support, so only p and
q count for k. Every other asset trades p + q, which needs no more variables. So costs are linear, turnover and short
positions are rows, minimum weights lie on one side of 0, and the search is that of any quadratic over a polyhedron,
with its bounds and proofs.

A variable without curvature cannot enter a factorisation that is kept up to date. So the search minimises φ + ½εs(s −
a): the same where nothing or all is sold, less by at most εa²/8 between. `reoptimise` solves for φ itself on the
support that the search finds, and a lower bound of the smaller function is one of φ.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ksparse.data.products import check_symmetric
from ksparse.errors import InfeasibleError, UnboundedError
from ksparse.losses import Quadratic
from ksparse.numerics.qp import Objective, solve_qp
from ksparse.portfolio.problem import Portfolio
from ksparse.sets import Polyhedron
from ksparse.util.arrays import Vector

SOFT = 1e-6  # ε, relative to the largest curvature


@dataclass(frozen=True)
class ExtendedPortfolio:
    """A portfolio problem in z = (p, q, s)."""

    problem: Portfolio

    @property
    def n(self) -> int:
        """Number of assets."""
        return int(self.problem.lower.size)

    @cached_property
    def short(self) -> Vector:
        """The assets that may be short, each with its q."""
        return np.flatnonzero(self.problem.lower < 0)

    @cached_property
    def kinked(self) -> Vector:
        """The assets whose trading cost or turnover has a kink within their bounds, each with its s."""
        held = self.problem.held
        counted = (self.problem.cost > 0) | (self.problem.max_turnover is not None)
        return np.flatnonzero(counted & ((held > 0) | ((held < 0) & (self.problem.lower < 0))))

    @property
    def parts(self) -> int:
        """Number of long and short parts, which come before the sales."""
        return self.n + int(self.short.size)

    @property
    def _sales(self) -> Vector:
        """The places of s in z."""
        return self.parts + np.arange(self.kinked.size)

    @cached_property
    def to_weights(self) -> Vector:
        """M of x = Mz."""
        M = np.eye(self.n, self.parts + self.kinked.size)
        M[self.short, self.n + np.arange(self.short.size)] = -1.0
        return M

    @cached_property
    def traded(self) -> tuple[Vector, Vector]:
        """T and t of the trades Tz + t."""
        T, t = np.abs(self.to_weights), np.abs(self.problem.held)
        T[self.kinked, self._sales] = 2.0
        t[self.kinked] *= -1.0
        return T, t

    @cached_property
    def _curvature(self) -> Vector:
        """2αV, symmetric."""
        V: Vector = check_symmetric(2.0 * self.problem.alpha * self.problem.V, "V")
        return V

    @cached_property
    def quadratic(self) -> tuple[Vector, Vector]:
        """H and c of φ − constant."""
        M, n, short = self.to_weights, self.n, self.short
        V, q = self._curvature, slice(n, self.parts)
        H = np.zeros((M.shape[1], M.shape[1]))  # MᵀVM, whose entries are those of V
        H[:n, :n], H[:n, q], H[q, :n], H[q, q] = V, -V[:, short], -V[short], V[np.ix_(short, short)]
        return H, self.problem.cost @ self.traded[0] - self.problem.r @ M

    @property
    def constant(self) -> float:
        """φ minus the loss of z."""
        return float(self.problem.cost @ self.traded[1]) + self.problem.constant

    @property
    def loss(self) -> Quadratic:
        """What the search minimises; convex if φ is, which V shows in an eighth of the time of a factorisation of H."""
        H, c = (part.copy() for part in self.quadratic)
        size = SOFT * (float(np.diag(H).max()) or 1.0)
        H[self._sales, self._sales] += size
        c[self._sales] -= 0.5 * size * np.abs(self.problem.held[self.kinked])
        loss = Quadratic(H, c)
        loss.convex = Quadratic(self._curvature).convex
        return loss

    @property
    def C(self) -> Polyhedron:
        """All rules, in z."""
        problem, M, held, (T, t) = self.problem, self.to_weights, self.problem.held[self.kinked], self.traded
        rules = problem.rules
        side = np.where(held > 0, self.kinked, self.n + np.searchsorted(self.short, self.kinked))
        sold = np.zeros((held.size, M.shape[1]))  # s ≥ a − p, or a − q
        sold[np.arange(held.size), side] = sold[np.arange(held.size), self._sales] = -1.0
        G, h = [rules.G @ M, sold], [rules.h, -np.abs(held)]
        if problem.max_turnover is not None:
            G, h = [*G, T.sum(axis=0)[None]], [*h, np.array([problem.max_turnover - t.sum()])]
        if problem.max_short is not None:
            G, h = [*G, np.any(M < 0, axis=0, keepdims=True)], [*h, np.array([problem.max_short])]
        low, high = problem.lower, problem.upper
        lower = np.concatenate([np.maximum(low, 0.0), np.maximum(-high[self.short], 0.0), np.zeros(held.size)])
        upper = np.concatenate([np.maximum(high, 0.0), -low[self.short], np.abs(held)])
        try:
            return Polyhedron(np.vstack(G), np.concatenate(h), rules.E @ M, rules.f, lower, upper)
        except InfeasibleError:
            limit = "" if problem.max_turnover is None else f" within a turnover of {problem.max_turnover:g}"
            rules_of = "the budget, the bounds and the other rules together"
            raise InfeasibleError(f"no weights meet {rules_of}{limit}") from None

    def min_nonzero(self, min_weight: float) -> Vector:
        """Return the minimum size of p and q; 0 for s."""
        return np.where(np.arange(self.parts + self.kinked.size) < self.parts, min_weight, 0.0)

    @property
    def forced_in(self) -> Vector:
        """The variables that are always in the support: the sales, and the sides of the assets that are forced in."""
        assets = np.asarray(self.problem.forced_in, dtype=np.intp)
        low, high = self.problem.lower[assets], self.problem.upper[assets]
        unclear = assets[(low < 0) & (high > 0)]
        if unclear.size:
            hint = "with costs, turnover or max_short say which, by min_weights above 0 or max_weights below 0"
            raise ValueError(f"forced_in holds asset {unclear[0]}, which may be long or short: {hint}")
        sides = np.where(high <= 0, self.n + np.searchsorted(self.short, assets), assets)
        return np.asarray(np.concatenate([sides, self._sales]), dtype=np.intp)

    @property
    def forbidden(self) -> Vector:
        """The variables that are never in the support."""
        assets = np.asarray(self.problem.forced_out, dtype=np.intp)
        return np.asarray(np.append(assets, self.n + np.flatnonzero(np.isin(self.short, assets))), dtype=np.intp)

    @property
    def group_limits(self) -> Any:
        """Limits on the number of assets per group: p and q belong to the group of their asset, s to none."""
        group, none = self.problem.counts.group, np.full(self.kinked.size, -1)
        return self.problem.counts.as_group_limits(np.concatenate([group, group[self.short], none]))

    @property
    def one_side(self) -> Any:
        """Group limits by which every asset has at most one of p and q."""
        sides = np.where(np.isin(np.arange(self.n), self.short), np.arange(self.n), -1)
        labels = np.concatenate([sides, self.short, np.full(self.kinked.size, -1)])
        return labels.tolist(), {int(i): (0, 1) for i in self.short}

    def extend(self, x: Vector) -> Vector:
        """Return z of weights."""
        held = self.problem.held[self.kinked]
        side = np.maximum(np.sign(held) * x[self.kinked], 0.0)
        parts = np.maximum(x, 0.0), np.maximum(-x[self.short], 0.0), np.maximum(np.abs(held) - side, 0.0)
        return np.concatenate(parts)

    def weights(self, z: Vector) -> Vector:
        """Return the weights of z; those that differ from the weights held by rounding only are the weights held."""
        x, held = self.to_weights @ z, self.problem.held
        return np.where(np.abs(x - held) <= 1e-14 * np.abs(held), held, x)

    def too_small(self, z: Vector, min_weight: float) -> Vector:
        """Return the smaller part of each asset with a long and a short part that nearly cancel: places in z."""
        long, short = z[self.short], z[self.n : self.parts]
        both = np.flatnonzero((long != 0) & (short != 0) & (long != short) & (np.abs(long - short) < min_weight))
        return np.where(long[both] < short[both], self.short[both], self.n + both)

    def reoptimise(self, z: Vector, C: Polyhedron, min_weight: float) -> Vector | None:
        """Return the minimiser of φ itself with the nonzeros of z, each at least min_weight; None if none is found."""
        parts = np.flatnonzero(z[: self.parts])
        support = np.concatenate([parts, self._sales])
        linear = C.as_linear(z.size).on(support)
        if linear is None:
            return None
        H, c = self.quadratic
        lower = np.where(np.arange(support.size) < parts.size, np.maximum(linear.lower, min_weight), linear.lower)
        out = np.zeros(z.size)
        with suppress(InfeasibleError, UnboundedError):
            out[support] = solve_qp(Objective(H[np.ix_(support, support)], c[support]), replace(linear, lower=lower)).x
            return out
        return None
