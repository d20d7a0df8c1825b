"""The constraints that are active on a support, and how they follow its changes.

A variable beyond a bound is held there, and at 0 leaves the support; a row of G that is broken holds as an equation; what is held by a
multiplier of the wrong sign is let go: one change of the factorisation each, the worst first, until all is right. That is the optimum over
C on the support.
"""

from __future__ import annotations

import time
from functools import cached_property

import numpy as np

from ksparse.numerics.constraints import Linear, Reach, unit_scales
from ksparse.search.gains import add_gains
from ksparse.search.neighbourhoods.base import DependentError
from ksparse.search.neighbourhoods.basis import NONE, REFRESH, Basis
from ksparse.util.arrays import Vector
from ksparse.util.resources import GRACE, require_time

KEPT = 1e-8  # of an equation's terms: broken by more, a factorisation is made anew
BROKEN = 1e-11  # of the size of x: beyond a bound by less is rounding
NEEDED = 1e-9  # κ·H_jj up to this: the equations alone decide x_j


class BlockedError(Exception):
    """No point of C has this support, as far as is seen."""


class WorkingSet:
    """Changes of a support that keep it at its optimum over C."""

    def __init__(self, basis: Basis, linear: Linear, low: Vector, high: Vector, forced: Vector) -> None:
        self.basis, self.low, self.high, self.forced = basis, low, high, forced
        self.changes = 0  # variables and constraints that entered or left so far
        self.capped = bool(np.isfinite(high).any())
        self.signed = bool(np.isfinite(low).any()) or self.capped
        self.bounded = bool(((low != 0) & np.isfinite(low) | (high != 0) & np.isfinite(high)).any())
        self.bend = unit_scales(basis.diagonal) ** 2  # one without curvature is needed no more than the others for that
        self._within = Linear(low, high, linear.G, linear.h, linear.E, linear.f)

    @cached_property
    def _reach(self) -> Reach:
        return Reach(self._within)

    def fits(self, leaving: tuple[int, ...], entering: tuple[int, ...]) -> bool:
        """Whether each row alone, and each beside one equation, can be met within the bounds by other variables: a look first."""
        if not self.bounded:
            return True
        support = self.basis.support
        for i in leaving:
            support = support[support != i]
        return not self._reach.misses(np.concatenate([support, np.asarray(entering, dtype=np.intp)]))

    def enter(self, i: int) -> None:
        if self.basis.size == self.basis.room or self.basis.h[i] <= self.basis.dependence_tol[i]:
            raise BlockedError
        self.basis.add(i)
        self.after_update(1)

    def let_go(self, i: int) -> None:
        """A variable leaves the support."""
        if self.is_free(i):
            self.hold(i, None)
        else:
            self.basis.leave(i)
            self.after_update(1)

    def hold(self, i: int, level: float | None) -> None:
        """Hold a free variable at a level, or let it leave the support (None).

        Where the equations alone decide it, something else is let go for it.
        """
        place = self.place(i)
        if self.is_decided(place):
            unit = np.zeros(self.basis.e + self.basis.size)
            unit[self.basis.e + place] = 1.0
            self._free_another(unit, np.zeros(self.basis.held.size), float(np.sign((level or 0.0) - unit[self.basis.e :] @ self.basis.x)))
            place = self.place(i)
            if self.is_decided(place):
                raise BlockedError
        self.basis.drop(place, level)
        self.after_update(1)

    def is_free(self, i: int) -> bool:
        return not self.basis.held.size or not (self.basis.held == i).any()

    def place(self, i: int) -> int:
        return int((self.basis.element == i).argmax())

    def decided(self, free: Vector | slice) -> Vector:
        """Which free variables the equations alone decide."""
        return np.asarray(self.basis.kappa[free] * self.bend[self.basis.element[free]] <= NEEDED)

    def is_decided(self, place: int) -> bool:
        """Whether the equations alone decide the free variable at a place."""
        q = self.basis.e + place
        return bool(self.basis.inverse[q, q] * self.bend[self.basis.element[place]] <= NEEDED)

    def after_update(self, changes: int) -> None:
        """Count changes, and compute the inverse anew when there were many; DependentError if it is singular."""
        self.changes += changes
        if self.basis.changes >= REFRESH and not self.basis.refresh():
            raise DependentError

    def obey(self) -> None:
        """Let the active constraints follow: what is broken most holds, what is held against its will is let go, until all is right."""
        if not self.broken and not self._release_worst():
            return
        began = time.perf_counter()
        for _ in range(4 * self.basis.size + 4 * self.basis.held.size + 8):
            if time.perf_counter() - began > GRACE:  # what takes less ends by itself, and is not lost
                require_time()
            if not (self._hold_worst() or self._release_worst()):
                self.basis.leave_at_zero(self.forced)
                if self._keeps_equations() or (self.basis.refresh() and self._keeps_equations()):
                    return
                break
        raise BlockedError

    @property
    def broken(self) -> bool:
        """Whether a free variable lies beyond its bounds, or a row is broken: a cheap look."""
        basis = self.basis
        if self.signed:
            x, variables = basis.x[basis.free], basis.element[basis.free]
            if (x < self.low[variables]).any() or (self.capped and (x > self.high[variables]).any()):
                return True
        return bool(basis.right.size) and self._worst_row()[0] is not None

    def _keeps_equations(self) -> bool:
        """Whether updates through nearly dependent constraints have left the equations whole."""
        basis, free = self.basis, self.basis.free
        support, x = basis.support, np.concatenate([basis.x[free], basis.level])
        E = basis.B[: basis.e, support]
        return bool((np.abs(E @ x - basis.f) <= KEPT * (np.abs(E) @ np.abs(x) + np.abs(basis.f))).all())

    def _hold_worst(self) -> bool:
        """Hold the constraint that is broken worst: the more that costs, the more it strains the others."""
        basis, free = self.basis, self.basis.free
        variables, x = basis.element[free], basis.x[free]
        target = np.clip(x, self.low[variables], self.high[variables])
        off = np.abs(x - target)
        beyond = off > BROKEN * max(float(np.abs(x).max(initial=0.0)), float(np.abs(basis.level).max(initial=0.0)))
        row, row_cost, slack = self._worst_row()
        if not beyond.any() and row is None:
            return False
        stiff = self.decided(free)
        cost = np.where(beyond, np.where(stiff, np.inf, off**2 / np.where(stiff, 1.0, basis.kappa[free])), 0.0)
        at = int(cost.argmax()) if cost.size else 0
        if row is not None and not (cost.size and cost[at] >= row_cost):
            self._activate(row, slack)
            return True
        i, level = int(variables[at]), float(target[at])
        self.hold(i, level)
        return True

    def _activate(self, row: int, slack: float) -> None:
        """Let a row hold as an equation; where those that hold decide it, something else is let go for it."""
        if not self.basis.activate(row, slack):
            self._free_another(self.basis.column(row), self.basis.G[row, self.basis.held], -1.0)
            if not self.basis.activate(row, self.slack()[0][row]):
                raise BlockedError
        self.after_update(1)

    def slack(self) -> tuple[Vector, Vector]:
        """What is left of every row of G, and the size of its terms."""
        basis, free = self.basis, self.basis.free
        support, x = basis.support, np.concatenate([basis.x[free], basis.level])
        return basis.right - basis.G[:, support] @ x, np.abs(basis.G[:, support]) @ np.abs(x) + np.abs(basis.right)

    def _worst_row(self) -> tuple[int | None, float, float]:
        """The inactive row of G that is broken worst, what it costs to hold it, and its slack."""
        basis = self.basis
        if not basis.right.size:
            return None, 0.0, 0.0
        slack, terms = self.slack()
        slack[~basis.element[basis.element < 0]] = 0.0
        rows = np.flatnonzero(slack < -BROKEN * terms)
        if not rows.size:
            return None, 0.0, 0.0
        curvature = basis.row_curvature(rows)
        cost = np.where(curvature > 1e-300, slack[rows] ** 2 / np.maximum(curvature, 1e-300), np.inf)
        worst = int(cost.argmax())
        return int(rows[worst]), float(cost[worst]), float(slack[rows[worst]])

    def _free_another(self, a: Vector, of_held: Vector, towards: float) -> None:
        """Let something go that is held and would move aᵀu + of_heldᵀlevel, which all that is held decides, at the least cost."""
        basis = self.basis
        p, rows = basis.e + basis.size, np.flatnonzero(basis.element < 0)
        way = np.where(basis.level == self.low[basis.held], 1.0, -1.0)  # where a held variable may go
        along = a @ basis.inverse[:p, :p]
        by_variables = towards * way * (of_held - along @ basis.B[:p, basis.held])
        by_variables[basis.h[basis.held] <= basis.dependence_tol[basis.held]] = 0.0
        rate = np.concatenate([by_variables, np.where(self._spared(rows), -towards * along[basis.e + rows], 0.0)])
        price = np.concatenate([-way * basis.s[basis.held], basis.x[rows]])
        moving = rate > 1e-9 * float(np.abs(rate).max(initial=0.0))
        if not moving.any():
            raise BlockedError
        best = int(np.where(moving, np.maximum(price, 0.0) / np.where(moving, rate, 1.0), np.inf).argmin())
        if best < basis.held.size:
            basis.add(int(basis.held[best]))
        else:
            basis.drop(int(rows[best - basis.held.size]))
        self.after_update(1)

    def _spared(self, rows: Vector) -> Vector:
        """Which active rows, at places among the elements, can be let go: some alone hold a variable without curvature."""
        basis = self.basis
        G, variables = basis.G[~basis.element[rows]], basis.element[basis.free]
        alone = np.sum(G[:, variables] ** 2 / self.bend[variables], axis=1)  # 1/−κ where it is the only constraint
        return np.asarray(-basis.kappa[rows] * alone > NEEDED)

    def _release_worst(self) -> bool:
        """Let the constraint go that gains most by it: a variable pulled away from its bound, a row whose multiplier is below 0."""
        basis = self.basis
        if not (basis.held.size or basis.active):
            return False
        gain, found = 0.0, None
        if basis.held.size:
            s, h = basis.s[basis.held], basis.h[basis.held]
            pulled = (basis.level == self.low[basis.held]) & (s > 0) | (basis.level == self.high[basis.held]) & (s < 0)
            gains = np.where(pulled, add_gains(s, h, basis.dependence_tol[basis.held]), 0.0)
            at = int(gains.argmax())
            gain, found = float(gains[at]), ("variable", int(basis.held[at]))
        rows = np.flatnonzero(basis.element < 0) if basis.active else NONE
        if rows.size:
            price, kappa = basis.x[rows], basis.kappa[rows]
            spared = (price < 0) & self._spared(rows)
            gains = np.where(spared, price**2 / np.where(spared, -2.0 * kappa, 1.0), 0.0)
            at = int(gains.argmax())
            if gains[at] > gain:
                gain, found = float(gains[at]), ("row", int(rows[at]))
        if found is None or gain <= 1e-12 * abs(basis.value):
            return False
        kind, which = found
        if kind == "row":
            basis.drop(which)
        else:
            basis.add(which)
        self.after_update(1)
        return True
