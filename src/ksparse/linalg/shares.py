"""The share z of each member in the y-step of the perspective relaxation, as a function of σ = ν^−½, and the σ at which they fill k.

A member with share z has y = sz, s being the size that |y|/z has: of least ½ds²z + ½weight(sz − |v|)². That falls with z, by
h(z) = Σ weight·s|v| − ½ds² − weight·s²z over its variables, and z is where h(z) = ν, or 0 or 1 beyond. For a single variable this is
closed: z is linear in σ where s meets no bound. For groups it is Newton's method, on h(z)^−½ = σ, which is nearly linear, or
beyond, where h may be nearly 0, on h itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from ksparse.base.arrays import Vector
from ksparse.linalg.limits import Limits
from ksparse.linalg.states import FREE, IN

NEWTON = 10  # steps for σ, at most: z is piecewise linear in it where no bound is reached
SETTLED = 1e-6  # of Σz
FLATTEST = 1e5  # the largest σ, beside the one that lets nobody in: ν is 0 there
INNER = 30  # steps for the share of a group, at most: where bounds are met it is halving
CLOSE = 1e-8  # of a share


class Shares(Protocol):
    """What z is at σ, for nodes (rows) and members (columns)."""

    def at(self, sigma: Vector) -> tuple[Vector, Vector]:
        """z before it is cut to 0…1, and dz/dσ."""
        ...

    def of(self, rows: Vector) -> Shares:
        """Those of some nodes."""
        ...

    def on(self, members: Vector) -> Shares:
        """Those of some members."""
        ...

    @property
    def least(self) -> Vector:
        """The σ that lets nobody in, for each node."""
        ...


@dataclass(frozen=True)
class SingleShares:
    """Those of variables, each by itself."""

    size: Vector  # |v|, 0 for those that are not free
    flat: Vector  # 1 over the largest size
    d: Vector
    half: Vector  # √(d/2)
    steepest: Vector  # 1 over the least size
    weight: float

    def at(self, sigma: Vector) -> tuple[Vector, Vector]:
        """Piecewise linear, up to bounds."""
        z, tau, paid = self.slopes(sigma)
        return z, np.where(tau == sigma * self.half, self.half * self.size, 2.0 * paid / (sigma * self.weight))

    def slopes(self, sigma: Vector) -> tuple[Vector, Vector, Vector]:
        """z, τ = z/|y|, and ντ²."""
        tau = np.minimum(np.maximum(sigma * self.half, self.flat), self.steepest)
        paid = (tau / sigma) ** 2
        return tau * self.size - (0.5 * self.d + paid) / self.weight, tau, paid

    def of(self, rows: Vector) -> SingleShares:
        """Those of some nodes."""
        return replace(self, size=self.size[rows], flat=self.flat[rows])

    def on(self, members: Vector) -> SingleShares:
        """Those of some variables."""
        return SingleShares(
            self.size[:, members], self.flat[:, members], self.d[members], self.half[members], self.steepest[members], self.weight
        )

    @property
    def least(self) -> Vector:
        """From the ν that lets a variable in."""
        pulled = self.weight * self.size
        with np.errstate(divide="ignore", invalid="ignore"):
            most = np.where(self.flat + self.d > 0, pulled * np.minimum(1.0 / self.flat, 0.5 * pulled / np.maximum(self.d, 1e-300)), 0.0)
        return np.asarray(1.0 / np.sqrt(np.clip(most.max(axis=1, initial=0.0), 1e-300, 1e200)))


@dataclass(frozen=True)
class GroupShares:
    """Those of groups: their variables have one share."""

    size: Vector
    near: Vector  # the sizes that a variable may have; 0 and 0 for those that are not free
    far: Vector
    d: Vector
    weight: float
    starts: Vector  # where each group begins; the variables are in the order of their groups

    def sizes(self, z: Vector) -> tuple[Vector, Vector]:
        """s of each variable, where it would be without bounds too, for shares of the variables."""
        with np.errstate(divide="ignore", invalid="ignore"):
            loose = np.where(self.size > 0, self.weight * self.size / (self.weight * z + self.d), 0.0)
        return np.minimum(np.maximum(loose, self.near), self.far), loose

    def fall(self, z: Vector) -> tuple[Vector, Vector]:
        """h of every group, and −h'."""
        z = np.repeat(z, np.diff([*self.starts, self.size.shape[1]]), axis=1)
        s, loose = self.sizes(z)
        with np.errstate(invalid="ignore"):
            inner = s == loose
            h = np.where(
                inner, np.where(self.d > 0, 0.5 * self.d * s * s, 0.0), self.weight * s * (self.size - s * z) - 0.5 * self.d * s * s
            )
            bend = self.weight * s * s * np.where(inner, self.d / (self.weight * z + self.d), 1.0)
        return tuple(np.add.reduceat(np.where(np.isnan(part), 0.0, part), self.starts, axis=1) for part in (h, bend))  # type: ignore[return-value]

    def at(self, sigma: Vector) -> tuple[Vector, Vector]:
        """Newton's method on h^−½ = σ, between 0 and 1."""
        shape = (len(self.size), self.starts.size)
        sigma = np.broadcast_to(sigma, shape)
        nu, low, high = sigma**-2.0, np.zeros(shape), np.ones(shape)
        none, all_ = self.fall(low)[0] <= nu, self.fall(high)[0] >= nu
        z, bend = np.full(shape, 0.5), np.ones(shape)
        for _ in range(INNER):
            h, bend = self.fall(z)
            low, high = np.where(h > nu, z, low), np.where(h > nu, high, z)
            with np.errstate(divide="ignore", invalid="ignore"):
                new = z + np.where(h > nu, (sigma - h**-0.5) * 2.0 * h**1.5, h - nu) / bend
            new = np.where((new > low) & (new < high), new, 0.5 * (low + high))
            still = (none | all_ | (np.abs(new - z) <= CLOSE)).all()
            z = new
            if still:
                break
        z = np.where(none, 0.0, np.where(all_, 1.0, z))
        with np.errstate(divide="ignore"):
            return z, np.where(none | all_, 0.0, 2.0 * nu / (sigma * np.maximum(bend, 1e-300)))

    def of(self, rows: Vector) -> GroupShares:
        """Those of some nodes."""
        return replace(self, size=self.size[rows], near=self.near[rows], far=self.far[rows])

    def on(self, members: Vector) -> GroupShares:
        """Those of some groups."""
        ends = np.append(self.starts, self.size.shape[1])
        chosen = [np.arange(ends[g], ends[g + 1]) for g in members]
        variables = np.concatenate(chosen)
        starts = np.cumsum([0, *(len(some) for some in chosen[:-1])])
        return GroupShares(self.size[:, variables], self.near[:, variables], self.far[:, variables], self.d[variables], self.weight, starts)

    @property
    def least(self) -> Vector:
        """From h(0)."""
        most = self.fall(np.zeros((len(self.size), self.starts.size)))[0]
        return np.asarray(1.0 / np.sqrt(np.clip(most.max(axis=1, initial=0.0), 1e-300, 1e200)))


def filling(shares: Shares, room: Vector, sigma: Vector, ends: tuple[Vector, Vector] | None = None) -> Vector:
    """σ with Σz = room for every node, by Newton's method between bounds that close in; the flattest where all fit.

    `ends`: what σ is cut to for each member.
    """
    least = shares.least
    most = FLATTEST * least
    sigma, under, over = np.clip(sigma, least, most), least.copy(), np.full(sigma.size, np.inf)
    open_ = np.arange(sigma.size)
    for _ in range(NEWTON):
        at = sigma[open_]
        own = at[:, None] if ends is None else np.clip(at[:, None], ends[0][open_], ends[1][open_])
        z, slope = (shares if open_.size == sigma.size else shares.of(open_)).at(own)
        off = room[open_] - np.clip(z, 0.0, 1.0).sum(axis=1)
        rise = np.where((z > 0) & (z < 1) & (own == at[:, None]), slope, 0.0).sum(axis=1)
        under[open_], over[open_] = np.where(off > 0, at, under[open_]), np.where(off < 0, at, over[open_])
        unsettled = (np.abs(off) > SETTLED * np.maximum(room[open_], 1)) & ~((off > 0) & (at >= most[open_]))
        if not unsettled.any():
            break
        new = at + off / np.where(rise > 0, rise, np.inf)
        inside = (rise > 0) & (new > under[open_]) & (new < over[open_])
        half = np.where(np.isinf(over[open_]), 4.0 * at, 0.5 * (under[open_] + over[open_]))
        open_, new = open_[unsettled], np.where(inside, new, half)[unsettled]
        sigma[open_] = np.minimum(new, most[open_])
    return sigma


def filling_limits(shares: Shares, limits: Limits, state: Vector, sigma: Vector) -> tuple[Vector, Vector]:
    """The same where labels have limits, and each member's σ: not above where its label is full, nor below where it has its least.

    In each row of `sigma` that of all, then those at which each label is full, then those at which it has its least.
    """
    taken, free, count = limits.counts(state == IN), limits.counts(state == FREE), limits.least.size
    found, low, high = sigma.copy(), np.zeros((len(state), count)), np.full((len(state), count), np.inf)
    for label in range(count):
        most, least = limits.most[label] - taken[:, label], limits.least[label] - taken[:, label]
        of = limits.order[limits.ends[label] : limits.ends[label + 1]]
        cases = ((np.flatnonzero(free[:, label] > most), most, high, 1), (np.flatnonzero(least > 0), least, low, 1 + count))
        for rows, room, ends, place in cases:
            if rows.size:
                found[rows, place + label] = ends[rows, label] = filling(shares.of(rows).on(of), room[rows], sigma[rows, place + label])
    low, high = low[:, limits.label], high[:, limits.label]
    found[:, 0] = filling(shares, limits.k - taken.sum(axis=1), sigma[:, 0], (low, high))
    return found, np.clip(found[:, [0]], low, high)
