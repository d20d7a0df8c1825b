"""The inverse of a support's KKT matrix, updated at each change: a change costs one product with k rows of H, not a new inverse.

The support is split in two: variables that are free, and variables that are held at a bound. K has the equations, then in any order the
free variables and the rows of G that are active, as *elements*; the symbols are otherwise those of `gains`. With w = K⁻¹b, σ the
element's own entry less bᵀw (h_i for a variable) and c = its row − wᵀB, an entering element takes c²/σ from h, t·c from s and t·w from u,
t being what is left of its own equation over σ; with v = K⁻¹e_q, t = (u_q − level)/v_q and z = vᵀB, a leaving one gives z²/v_q to h, t·z
to s and −t·v to u. A variable that is held and moved by δ takes δ·c from s and δ·w from u. A swap is a leave and an enter in one product,
which reads B once. Rounding adds up slowly: every REFRESH changes the inverse is computed anew.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ksparse.data.device import both, forms, rest
from ksparse.data.model import QuadraticModel
from ksparse.numerics.constraints import Linear, unit_rows, unit_scales
from ksparse.search.gains import add_gains
from ksparse.search.neighbourhoods.base import DependentError
from ksparse.util.arrays import Vector, largest_places

REFRESH = 256  # changes between inverses from scratch
DEPENDENT = 1e-8  # h_i, of at most 1, below which i lies in the span of the support
SINGULAR = 1e8  # the largest entry of K⁻¹ that updates are trusted with
NONE = np.zeros(0, dtype=np.intp)


@dataclass(frozen=True)
class Snapshot:
    """A basis to come back to."""

    element: Vector
    held: Vector
    level: Vector
    inverse: Vector
    u: Vector
    s: Vector
    h: Vector
    value: float
    changes: int
    key: int


class Basis:
    """A support with the constraints that are active on it, K⁻¹, u, and s and h of every variable."""

    def __init__(self, model: QuadraticModel, linear: Linear, room: int) -> None:
        from scipy.linalg.blas import dger  # here: scipy.linalg takes half as long to import as all of ours

        self.model, self.n, self.r, self.diagonal = model, model.n, model.r, model.diagonal
        E, self.f, _ = unit_rows(linear.E, linear.f)
        self.G, self.right, _ = unit_rows(linear.G, linear.h)
        self.e, slots = self.f.size, room + min(self.right.size, room)
        self.B = model.table(self.e + slots)  # [E; H_i· and G_g·], where the rows of H lie
        self.B[: self.e] = E
        self.inverse = np.zeros((self.e + slots, self.e + slots))
        self._pair = np.zeros((2, self.e + slots))  # room for what is added to K⁻¹ by outer products
        self._element = np.empty(slots, dtype=np.intp)  # i ≥ 0: the variable i; < 0: the row ~g of G
        self._u = np.empty(self.e + slots)
        self.held, self.level = NONE, np.zeros(0)  # variables of the support at a bound, and where
        self.size, self.room, self.active = 0, room, 0  # elements; variables that a support may have; rows of G among the elements
        self.wanted = 0  # variables that are about to enter: so many columns of H will be asked for
        self.dependence_tol = DEPENDENT * np.maximum(model.diagonal, 1e-300)  # h_i up to this is rounding
        self._add_outer = dger
        self._keys = _names(self.n)
        self.key = 0  # the keys of the support's variables by exclusive or: its name, whatever the order

    @property
    def element(self) -> Vector:
        """The elements, in the order of the rows of B after the equations."""
        return self._element[: self.size]

    @property
    def free(self) -> Vector | slice:
        """The places of the free variables among the elements: all of them where no row is active."""
        return np.flatnonzero(self.element >= 0) if self.active else slice(0, self.size)

    @property
    def free_rows(self) -> Vector | slice:
        """Their rows of K."""
        return self.e + np.flatnonzero(self.element >= 0) if self.active else slice(self.e, self.e + self.size)

    @property
    def support(self) -> Vector:
        """The variables: free ones in the order of the rows, then those that are held."""
        free = self.element[self.free]
        return np.concatenate([free, self.held]) if self.held.size else free

    @property
    def x(self) -> Vector:
        """x of the elements; of a row its multiplier."""
        return self._u[self.e : self.e + self.size]

    @property
    def kappa(self) -> Vector:
        """κ of the elements: (K⁻¹)_qq, below 0 for rows."""
        return self.inverse.diagonal()[self.e : self.e + self.size]

    def stand_on(self, support: Vector, held: Vector = NONE, level: Vector | None = None, rows: Vector = NONE) -> bool:
        """Factorise a support from scratch, some of it held, some rows active; False where that is dependent, or nearly so."""
        self.held, self.level = held, np.zeros(held.size) if level is None else level
        element = np.concatenate([np.setdiff1d(support, held, assume_unique=True) if held.size else support, ~rows])
        self.size, self.active = element.size, rows.size
        if self.size > self._element.size:
            return False
        self._element[: self.size] = element
        self._fill_rows(np.arange(self.size))
        self.key = self._key(support)
        return self.refresh()

    def _fill_rows(self, places: Vector) -> None:
        """Copy the rows of some elements into B."""
        element = self._element[places]
        variables = element >= 0
        if variables.any():
            self.B[self.e + places[variables]] = self.model.rows_there(element[variables])
        if not variables.all():
            self.B[self.e + places[~variables]] = self.G[~element[~variables]]

    def _key(self, support: Vector) -> int:
        return int(np.bitwise_xor.reduce(self._keys[support], initial=0))

    def refresh(self) -> bool:
        """K⁻¹, u, s and h from scratch, K in variables scaled to a unit diagonal, its rows to largest entry 1."""
        e, p, element = self.e, self.e + self.size, self.element
        B, unit, K, d = self.B[:p], np.ones(p), np.zeros((p, p)), np.empty(p)
        free = np.arange(p)[self.free_rows]
        constraints = np.setdiff1d(np.arange(p), free) if self.active else np.arange(e)
        S, r = element[free - e], self.r
        unit[free] = unit_scales(self.diagonal[S])
        K[:, free] = B[:, S]
        K[np.ix_(free, constraints)] = B[np.ix_(constraints, S)].T
        if constraints.size and S.size:
            largest = np.abs(B[np.ix_(constraints, S)] / unit[free]).max(axis=1)
            unit[constraints] = np.where(largest > 0, largest, 1.0)
        d[:e] = self.f
        if constraints.size > e:
            d[constraints[e:]] = self.right[~element[constraints[e:] - e]]
        if self.held.size:
            d[constraints] -= B[np.ix_(constraints, self.held)] @ self.level
            r = r - self.level @ self.model.rows(self.held)
        d[free] = r[S]
        self.changes = 0
        try:
            inverse = np.linalg.inv(K / unit / unit[:, None])
        except np.linalg.LinAlgError:
            return False
        if p and not float(np.abs(inverse).max()) < SINGULAR:
            return False
        inverse /= unit
        inverse /= unit[:, None]
        u = inverse @ d
        self.inverse[:p, :p], self._u[:p] = inverse, u
        self.h = self.diagonal - forms(inverse, B)
        self.s = r - u @ B
        self.h[S] = self.s[S] = 0.0
        self.value = -0.5 * float(d @ u) if not self.held.size else self._value(S, u[free], free)
        return True

    def _value(self, S: Vector, x: Vector, free: Vector) -> float:
        """½xᵀHx − rᵀx, some variables held."""
        support, x = np.concatenate([S, self.held]), np.concatenate([x, self.level])
        H = np.vstack([self.B[np.ix_(free, support)], self.model.rows(self.held)[:, support]])
        return float(0.5 * x @ H @ x - self.r[support] @ x)

    def add(self, i: int) -> None:
        """Let i enter, or free it where it is held."""
        start = self._release(i)
        p = self.e + self.size
        self._enter(i, self._row(i), self.inverse[:p, :p] @ self.B[:p, i], float(self.h[i]), float(self.s[i]), start)
        self.h[i] = self.s[i] = 0.0

    def activate(self, g: int, slack: float) -> bool:
        """Let a row of G hold as an equation; `slack` is what is left of it now. False where it depends on those that do."""
        b, row = self.column(g), self.G[g]
        p = self.e + self.size
        w = self.inverse[:p, :p] @ b
        sigma = -float(b @ w)
        most = float(np.sum(b[self.free_rows] ** 2 / np.maximum(self.diagonal[self.element[self.free]], 1e-300)))  # what it would be alone
        if -sigma <= DEPENDENT * most or self.size == self._element.size:
            return False
        self._enter(~g, row, w, sigma, slack, 0.0)
        self.active += 1
        return True

    def column(self, g: int) -> Vector:
        """The column of a row of G in K."""
        b = np.zeros(self.e + self.size)
        b[self.free_rows] = self.G[g, self.element[self.free]]
        return b

    def row_curvature(self, rows: Vector) -> Vector:
        """−σ of rows of G: what it costs to move them, as 1/κ of variables."""
        free, M = self.free_rows, self.G[np.ix_(rows, self.element[self.free])]
        return np.asarray(((M @ self.inverse[free][:, free]) * M).sum(axis=1))

    def _enter(self, element: int, row: Any, w: Vector, sigma: float, left: float, start: float) -> None:
        """An element enters; `left` of its equation, of which t = left/σ disposes."""
        p, t = self.e + self.size, left / sigma
        c = rest(row, w, self.B[:p])
        self.s -= t * c
        c /= math.sqrt(abs(sigma))  # first: squares of H may be beyond the range of numbers
        c *= c
        self.h -= math.copysign(1.0, sigma) * c
        self._update(w, 1.0 / sigma)
        self.inverse[p, :p] = self.inverse[:p, p] = w / -sigma
        self.inverse[p, p] = 1.0 / sigma
        self._u[:p] -= t * w
        self._u[p] = start + t
        self.B[p] = row
        self._element[self.size] = element
        self.size += 1
        self.value -= 0.5 * left * t
        self.changes += 1

    def _release(self, i: int) -> float:
        """Where i is held, no longer so; else it is new."""
        if self.held.size:
            at = np.flatnonzero(self.held == i)
            if at.size:
                level = float(self.level[at[0]])
                self.held, self.level = np.delete(self.held, at[0]), np.delete(self.level, at[0])
                return level
        self.key ^= int(self._keys[i])
        return 0.0

    def _update(self, w: Vector, a: float) -> None:
        """Add a·wwᵀ to K⁻¹ in place."""
        self._pair[0, : w.size] = w
        self._pair[0, w.size :] = 0.0
        self._outer(a, self._pair[0])

    def _outer(self, a: float, w: Vector) -> None:
        """The same with zeros at the end of w: BLAS wants the whole array, whose unused part it leaves alone."""
        self._add_outer(a, w, w, a=self.inverse.T, overwrite_a=True)

    def _row(self, i: int) -> Any:
        """H_i·; where it is not known yet, those that are likely to be asked for next come with it."""
        if not self.model.knows(i) and (count := min(max(self.model.ahead, min(self.wanted, self.room)), self.n)) > 1:
            likely = add_gains(self.s, self.h, self.dependence_tol)
            likely[self.model.known] = 0.0
            likely[i] = np.inf
            self.model.fetch(largest_places(likely, count))
        return self.model.row(i)

    def drop(self, j: int, level: float | None = None) -> None:
        """Let the element at place j leave: a variable to be held at a level, or out of the support (None); a row to be active no more.

        The last element takes its place.
        """
        p, q = self.e + self.size, self.e + j
        last = p - 1
        B, K = self.B[:p], self.inverse[:p, :p]
        v = K[:, q].copy()
        if not abs(v[q]) > 0.0:  # nothing holds the rest without it
            raise DependentError
        off = float(self._u[q]) - (level or 0.0)
        t = off / float(v[q])
        self._forget(int(self._element[j]), level)
        z = v @ B
        self.s += t * z
        z /= math.sqrt(abs(float(v[q])))
        z *= z
        self.h += math.copysign(1.0, float(v[q])) * z
        self._update(v, -1.0 / float(v[q]))
        self._u[:p] -= t * v
        if q != last:
            K[q, :], self._u[q] = K[last, :], self._u[last]
            K[:, q] = K[:, last]
            self.B[q] = self.B[last]
            self._element[j] = self._element[self.size - 1]
        self.size -= 1
        self.value += 0.5 * off * t
        self.changes += 1

    def _forget(self, element: int, level: float | None) -> None:
        """A variable that was free is held, or gone."""
        if element < 0:
            self.active -= 1
            return
        if level is not None:
            self.held, self.level = np.append(self.held, element), np.append(self.level, level)
        else:
            self.key ^= int(self._keys[element])

    def leave(self, i: int) -> None:
        """Let a variable that is held leave the support."""
        p = self.e + self.size
        delta, s = -self._release(i), float(self.s[i])
        row = self._row(i)
        w = self.inverse[:p, :p] @ self.B[:p, i]
        c = rest(row, w, self.B[:p])
        self.s -= delta * c
        self._u[:p] -= delta * w
        self.value += delta * (0.5 * delta * float(self.h[i]) - s)
        self._forget(i, None)
        self.changes += 1

    def leave_at_zero(self, forced: Vector) -> None:
        """Let those leave the support that are held at 0, where nothing changes by it, but for those that are forced in."""
        gone = (self.level == 0.0) & ~forced[self.held]
        if gone.any():
            self.key ^= self._key(self.held[gone])
            self.held, self.level = self.held[~gone], self.level[~gone]

    def coupling(self, held: Vector, others: Vector) -> Vector:
        """What a unit of a held variable (row) takes from s of others (columns)."""
        p = self.e + self.size
        W = self.inverse[:p, :p] @ self.B[:p, held]
        return np.asarray(self.model.rows(held)[:, others] - W.T @ self.B[:p, others])

    def swap(self, j: int, i: int) -> None:
        """Let the free variable at place j leave and i enter in its place: a drop and an add, the products of both at once."""
        p, q = self.e + self.size, self.e + j
        B, K, V = self.B[:p], self.inverse[:p, :p], self._pair[:, :p]
        self._pair[:, p:] = 0.0
        row, b, (v, w) = self._row(i), B[:, i], V
        v[:] = K[:, q]
        kappa = v.item(q)
        if not kappa > 0.0:
            raise DependentError
        v /= math.sqrt(kappa)  # first: squares of H may be beyond the range of numbers
        back, z = self._u.item(q) / math.sqrt(kappa), float(v @ b)
        h, s = self.h.item(i) + z * z, self.s.item(i) + back * z
        if not h > 0.0:
            raise DependentError
        unit = math.sqrt(h)
        np.matmul(K, b, out=w)
        w -= z * v  # K⁻¹b of the others
        w[q] = 0.0
        w /= -unit
        steps, products = np.array((back, -s / unit)), both(row, 1.0 / unit, V, B)
        self.s += steps @ products
        products *= products
        self.h += products[0]
        self.h -= products[1]
        self._u[:p] -= steps @ V
        self._u[q] = s / h
        self._outer(-1.0, self._pair[0])
        self._outer(1.0, self._pair[1])
        w /= unit
        w[q] = 1.0 / h
        K[q, :] = K[:, q] = w  # what cancels there would do so but for rounding, in the units of the one that left
        B[q] = row
        self.key ^= self._keys.item(self._element.item(j)) ^ self._keys.item(i)
        self._element[j] = i
        self.h[i] = self.s[i] = 0.0
        self.value += 0.5 * (back * back - s / h * s)
        self.changes += 2

    def snapshot(self) -> Snapshot:
        """The basis as it is."""
        p = self.e + self.size
        return Snapshot(
            self.element.copy(), self.held, self.level, self.inverse[:p, :p].copy(), self._u[:p].copy(), self.s.copy(), self.h.copy(),
            self.value, self.changes, self.key,
        )  # fmt: skip

    def restore(self, saved: Snapshot) -> None:
        """Back to a snapshot: only the rows of elements that differ are copied again."""
        size = saved.element.size
        common, p = min(size, self.size), self.e + size
        differs = np.ones(size, dtype=bool)
        differs[:common] = self._element[:common] != saved.element[:common]
        self.size, self.value, self.changes = size, saved.value, saved.changes
        self._element[:size], self.inverse[:p, :p], self._u[:p] = saved.element, saved.inverse, saved.u
        self.held, self.level = saved.held, saved.level
        self.active = int((self.element < 0).sum()) if self.right.size else 0
        places = np.flatnonzero(differs)
        if places.size:
            self._fill_rows(places)
        self.key = saved.key
        self.s, self.h = saved.s.copy(), saved.h.copy()


@lru_cache(maxsize=1)
def _names(n: int) -> Vector:
    """A random number for each variable, always the same."""
    names = np.random.default_rng(0).integers(2**63, size=n)
    names.setflags(write=False)  # they are everybody's
    return names
