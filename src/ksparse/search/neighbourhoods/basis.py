"""A factorisation that is kept up to date: an add or a drop costs one product with k rows of H, not a new inverse.

The symbols are those of `gains`, with the equations before the support in K. With w = K⁻¹b_i, t = s_i/h_i and c = H_i· − wᵀB, an entering i
takes c²/h_i from h, t·c from s and t·w from u; with v = K⁻¹e_j, t = u_j/v_j and z = vᵀB, a leaving j gives z²/v_j to h, t·z to s and −t·v
to u. A swap is both in one product, which reads B once. Rounding adds up slowly; every so many changes the factorisation is made anew.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dger

from ksparse.base.arrays import Vector
from ksparse.linalg.constraints import Linear
from ksparse.linalg.model import QuadraticModel
from ksparse.linalg.scaling import unit_rows, unit_scales
from ksparse.search.gains import add_gains

REFRESH = 128  # changes between factorisations from scratch
DEPENDENT = 1e-8  # h_i, of at most 1, below which i lies in the span of the support
SINGULAR = 1e8  # the largest entry of K⁻¹ that updates are trusted with


@dataclass(frozen=True)
class Snapshot:
    """A basis to come back to."""

    support: Vector
    inverse: Vector
    u: Vector
    s: Vector
    h: Vector
    value: float
    changes: int


class Basis:
    """A support, K⁻¹, u, and s and h of every variable."""

    def __init__(self, model: QuadraticModel, linear: Linear, room: int) -> None:
        self.model, self.n, self.r, self.diagonal = model, model.n, model.r, model.diagonal
        E, self.f, _ = unit_rows(linear.E, linear.f)
        self.e = self.f.size
        self.B = np.empty((self.e + room, self.n))  # [E; H_S·]
        self.B[: self.e] = E
        self.inverse = np.zeros((self.e + room, self.e + room))
        self._w = np.zeros(self.e + room)
        self._support = np.empty(room, dtype=np.intp)
        self._u = np.empty(self.e + room)
        self.size, self.room = 0, room
        self.wanted = 0  # variables that are about to enter: so many columns of H will be asked for
        self.dependent = DEPENDENT * np.maximum(model.diagonal, 1e-300)  # h_i up to this is rounding
        self._keys = np.random.default_rng(0).integers(2**63, size=self.n)
        self.key = 0  # the variables' keys by exclusive or: a name of the support, whatever its order

    @property
    def support(self) -> Vector:
        """The variables, in the order of the rows."""
        return self._support[: self.size]

    @property
    def x(self) -> Vector:
        """x_S."""
        return self._u[self.e : self.e + self.size]

    @property
    def kappa(self) -> Vector:
        """κ_j of the support."""
        return self.inverse.diagonal()[self.e : self.e + self.size]

    def stand_on(self, support: Vector) -> bool:
        """Factorise a support from scratch; False where its variables are dependent, or nearly so."""
        self.size = support.size
        self._support[: self.size] = support
        self.B[self.e : self.e + self.size] = self.model.rows(support)
        self.key = self._key(support)
        return self.refresh()

    def _key(self, support: Vector) -> int:
        return int(np.bitwise_xor.reduce(self._keys[support], initial=0))

    def refresh(self) -> bool:
        """K⁻¹, u, s and h from scratch, K in variables scaled to a unit diagonal, its equations to largest entry 1."""
        p, S = self.e + self.size, self.support
        B, unit = self.B[:p], np.ones(self.e + self.size)
        unit[self.e :] = unit_scales(self.diagonal[S])
        if self.e and self.size:
            largest = np.abs(B[: self.e, S] / unit[self.e :]).max(axis=1)
            unit[: self.e] = np.where(largest > 0, largest, 1.0)
        K = np.zeros((p, p))
        K[:, self.e :] = B[:, S]
        K[self.e :, : self.e] = B[: self.e, S].T
        self.changes = 0
        try:
            inverse = np.linalg.inv(K / unit / unit[:, None])
        except np.linalg.LinAlgError:
            return False
        if p and not float(np.abs(inverse).max()) < SINGULAR:
            return False
        inverse /= unit
        inverse /= unit[:, None]
        d = np.concatenate([self.f, self.r[S]])
        u = inverse @ d
        self.inverse[:p, :p], self._u[:p] = inverse, u
        self.h = self.diagonal - np.einsum("ij,ij->j", B, inverse @ B)
        self.s = self.r - u @ B
        self.h[S] = self.s[S] = 0.0
        self.value = -0.5 * float(d @ u)
        return True

    def add(self, i: int) -> None:
        """Let i enter."""
        p = self.e + self.size
        B, K = self.B[:p], self.inverse[:p, :p]
        row = self._row(i)
        h, s = float(self.h[i]), float(self.s[i])
        t = s / h
        w = K @ B[:, i]
        c = row - w @ B
        self.s -= t * c
        c *= c
        c /= h
        self.h -= c
        self._update(w, 1.0 / h)
        self.inverse[p, :p] = self.inverse[:p, p] = w / -h
        self.inverse[p, p] = 1.0 / h
        self._u[:p] -= t * w
        self._u[p] = t
        self.B[p] = row
        self._support[self.size] = i
        self.size += 1
        self.h[i] = self.s[i] = 0.0
        self.value -= 0.5 * s * t
        self.key ^= int(self._keys[i])
        self.changes += 1

    def _update(self, w: Vector, a: float) -> None:
        """Add a·wwᵀ to K⁻¹ in place; BLAS wants the whole array, whose unused part it leaves alone."""
        self._w[: w.size] = w
        self._w[w.size :] = 0.0
        dger(a, self._w, self._w, a=self.inverse.T, overwrite_a=True)

    def _row(self, i: int) -> Vector:
        """H_i·; where it is not known yet, those that are likely to be asked for next come with it."""
        if not self.model.knows(i):
            likely = add_gains(self.s, self.h, self.dependent)
            likely[self.model.known] = 0.0
            likely[i] = np.inf
            count = min(max(self.model.ahead, min(self.wanted, self.room)), self.n)
            self.model.fetch(np.argpartition(-likely, count - 1)[:count])
        return self.model.row(i)

    def drop(self, j: int) -> None:
        """Let the variable at place j leave; the last one takes its place."""
        p, q = self.e + self.size, self.e + j
        last = p - 1
        B, K = self.B[:p], self.inverse[:p, :p]
        v = K[:, q].copy()
        u, t = float(self._u[q]), float(self._u[q] / v[q])
        self.key ^= int(self._keys[self._support[j]])
        z = v @ B
        self.s += t * z
        z *= z
        z /= v[q]
        self.h += z
        self._update(v, -1.0 / float(v[q]))
        self._u[:p] -= t * v
        if q != last:
            K[q, :], self._u[q] = K[last, :], self._u[last]
            K[:, q] = K[:, last]
            self.B[q] = self.B[last]
            self._support[j] = self._support[self.size - 1]
        self.size -= 1
        self.value += 0.5 * u * t
        self.changes += 1

    def swap(self, j: int, i: int) -> None:
        """Let the variable at place j leave and i enter in its place: a drop and an add, the products of both at once."""
        p, q = self.e + self.size, self.e + j
        B, K = self.B[:p], self.inverse[:p, :p]
        row, b = self._row(i), B[:, i]
        v = K[:, q].copy()
        kappa, u = float(v[q]), float(self._u[q])
        back = u / kappa
        z_i = float(v @ b)
        h, s = float(self.h[i]) + z_i * z_i / kappa, float(self.s[i]) + back * z_i
        t = s / h
        self._update(v, -1.0 / kappa)
        K[q, :] = K[:, q] = 0.0
        w = K @ b
        products: Vector = np.array((v, w)) @ B
        z, c = products
        np.subtract(row, c, out=c)
        self.s += back * z
        self.s -= t * c
        z *= z
        z /= kappa
        c *= c
        c /= h
        z -= c
        self.h += z
        self._update(w, 1.0 / h)
        K[q, :] = K[:, q] = w / -h
        K[q, q] = 1.0 / h
        self._u[:p] -= back * v + t * w
        self._u[q] = t
        B[q] = row
        self.key ^= int(self._keys[self._support[j]] ^ self._keys[i])
        self._support[j] = i
        self.h[i] = self.s[i] = 0.0
        self.value += 0.5 * (u * back - s * t)
        self.changes += 2

    def snapshot(self) -> Snapshot:
        """The basis as it is."""
        p = self.e + self.size
        return Snapshot(
            self.support.copy(), self.inverse[:p, :p].copy(), self._u[:p].copy(), self.s.copy(), self.h.copy(), self.value, self.changes
        )

    def restore(self, saved: Snapshot) -> None:
        """Back to a snapshot: only the rows of variables that differ are copied again."""
        size = saved.support.size
        common, p = min(size, self.size), self.e + size
        differs = np.ones(size, dtype=bool)
        differs[:common] = self._support[:common] != saved.support[:common]
        places = np.flatnonzero(differs)
        if places.size:
            self.B[self.e + places] = self.model.rows(saved.support[places])
        self.size, self.value, self.changes = size, saved.value, saved.changes
        self.key = self._key(saved.support)
        self._support[:size], self.inverse[:p, :p], self._u[:p] = saved.support, saved.inverse, saved.u
        self.s, self.h = saved.s.copy(), saved.h.copy()
