"""Moves for convex quadratics over a polyhedron, on a KKT inverse that is updated at each change of the support.

Write the symbols as in `numerics.kkt_inverse`. The variables of a support are free or held at a bound. K has the
equations, then in any order the free variables and the active rows of G: its *elements*. With w = K⁻¹b, σ the element's
own entry less bᵀw (h_i for a variable) and c = its row − wᵀB, an entering element takes c²/σ from h, t·c from s and t·w
from u, where t is the residual of its own equation over σ. With v = K⁻¹e_q, t = (u_q − level)/v_q and z = vᵀB, a
leaving element adds z²/v_q to h, t·z to s and −t·v to u. Moving a held variable by δ takes δ·c from s and δ·w from u. A
pivot is a drop and an add in one product, which reads B once. So a change costs one product with k rows of H. Rounding
adds up slowly: after RECOMPUTED changes the inverse is computed from scratch.

After each change the active constraints follow. A variable beyond a bound is held there, and leaves the support if the
bound is 0. A violated row of G becomes an equation. A constraint whose multiplier has the wrong sign is released. Each
of these is one change, the worst violation first, until none is left: the optimum over C on the support.

Under equations and signs the gains of moves are exact. Under bounds, minimum sizes and rows they are those under the
constraints that are active now, each entering variable within its own bounds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Any

import numpy as np

from ksparse.data.model import QuadraticModel, products_with_row, quadratic_forms, schur_row
from ksparse.numerics.constraints import ActivityBounds, Linear, unit_rows, unit_scales
from ksparse.numerics.kkt_inverse import add_gains, bounded_gains, drop_losses, swap_gains, swap_terms
from ksparse.numerics.qp import PULL
from ksparse.search.candidate import NONE, Candidate
from ksparse.search.neighbourhoods import DependentError, Move, Neighbourhood, RankQuality, ScoredMove, Undo
from ksparse.search.problem import SupportProblem
from ksparse.util.arrays import Vector, top_k_indices
from ksparse.util.resources import GRACE, require_time, scipy_linalg

RECOMPUTED = 256  # changes between inverses from scratch
DEPENDENT = 1e-8  # h_i, of at most 1, below which i lies in the span of the support
SINGULAR = 1e8  # the largest entry of K⁻¹ at which updates are still accurate
WALK_CANDIDATES = 16  # variables considered for a step of a walk (chosen on benchmarks/table5.py)
EQUATION_TOL = 1e-8  # relative residual of an equation above which the inverse is computed from scratch
VIOLATION_TOL = 1e-11  # relative to the size of x: a smaller violation of a bound or row is rounding
PAIR_TOL = 1e-9  # the same for the predicted point after a pair swap
DECIDED = 1e-9  # κ·H_jj up to this: the equations alone decide x_j


class NoFeasiblePointError(Exception):
    """Raised if C has no point on the support."""


Snapshot = tuple[Any, ...]  # the state of an inverse, to return to


class UpdatedInverse:
    """K⁻¹, u, s and h for a support and the constraints that are active on it.

    `q` is ½xᵀHx − rᵀx, `value` φ. Fields that follow from the elements (see `_index`): `element`, i ≥ 0 for the
    variable i and < 0 for the row ~i of G, in the order of the rows of B after the equations; `x` and `kappa` of the
    elements, for a row its multiplier and a κ below 0; `free`, the places of the free variables among the elements, and
    `free_rows`, their rows of K; `support`, the free variables, then the held ones.
    """

    key: int
    value: float

    def __init__(self, model: QuadraticModel, linear: Linear, capacity: int) -> None:
        self.model, self.n, self.r, self.diagonal = model, model.n, model.r, model.diagonal
        E, self.f, _ = unit_rows(linear.E, linear.f)
        self.G, self.right, _ = unit_rows(linear.G, linear.h)
        self.e, slots = self.f.size, capacity + min(self.right.size, capacity)
        self.B = model.table(self.e + slots)  # [E; H_i· and G_g·], where the rows of H lie
        self.B[: self.e] = E
        self.inverse = np.zeros((self.e + slots, self.e + slots))
        self._diagonal = self.inverse.diagonal()  # a view
        self._pair = np.zeros((2, self.e + slots))  # room for what is added to K⁻¹ by outer products
        self._element = np.empty(slots, dtype=np.intp)
        self._u = np.empty(self.e + slots)
        self.held, self.level = NONE, np.zeros(0)  # variables of the support at a bound, and that bound
        self.capacity = capacity  # variables that a support may have
        self.n_elements = self.n_active = 0  # elements; rows of G among them
        self.prefetch_size = 0  # variables that are about to enter: so many columns of H are fetched at once
        self.dependence_tol = DEPENDENT * np.maximum(model.diagonal, 1e-300)  # h_i up to this is rounding
        self._add_outer = scipy_linalg().blas.dger
        self._keys = _hash_keys(self.n)
        self.key = 0  # Zobrist hash of the support: the keys of its variables by exclusive or
        self.constant = model.constant
        self.q = 0.0
        self._index()

    def _index(self) -> None:
        """Set the fields that follow from the elements, after these or the held variables have changed."""
        rows = slice(self.e, self.e + self.n_elements)
        self.element, self.x, self.kappa = self._element[: self.n_elements], self._u[rows], self._diagonal[rows]
        self.free: Vector | slice = slice(0, self.n_elements)
        self.free_rows: Vector | slice = rows
        if self.n_active:
            self.free = np.flatnonzero(self.element >= 0)
            self.free_rows = self.e + self.free
        free: Vector = self.element[self.free]
        self.support = np.concatenate([free, self.held]) if self.held.size else free
        self.size, self.value = self.support.size, self.q + self.constant

    def rebuild(self, support: Vector, held: Vector = NONE, level: Vector | None = None, rows: Vector = NONE) -> bool:
        """Compute the inverse from scratch, with held variables and active rows; False if it is nearly singular."""
        self.held, self.level = held, np.zeros(held.size) if level is None else level
        element = np.concatenate([np.setdiff1d(support, held, assume_unique=True) if held.size else support, ~rows])
        self.n_elements, self.n_active = element.size, rows.size
        if self.n_elements > self._element.size:
            return False
        self._element[: self.n_elements] = element
        self._index()
        self._fill_rows(np.arange(self.n_elements))
        self.key = int(np.bitwise_xor.reduce(self._keys[support], initial=0))
        return self.recompute()

    def _fill_rows(self, places: Vector) -> None:
        """Copy the rows of some elements into B."""
        element = self._element[places]
        variables = element >= 0
        if variables.any():
            self.B[self.e + places[variables]] = self.model.rows_in_place(element[variables])
        if not variables.all():
            self.B[self.e + places[~variables]] = self.G[~element[~variables]]

    def recompute(self) -> bool:
        """Compute K⁻¹, u, s and h from scratch, in variables of unit curvature and rows with largest entry 1."""
        e, p, element = self.e, self.e + self.n_elements, self.element
        B, unit, K, d = self.B[:p], np.ones(p), np.zeros((p, p)), np.empty(p)
        free = np.arange(p)[self.free_rows]
        constraints = np.setdiff1d(np.arange(p), free) if self.n_active else np.arange(e)
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
        self.updates = 0
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
        self.h = self.diagonal - quadratic_forms(inverse, B)
        self.s = r - u @ B
        self.h[S] = self.s[S] = 0.0
        self.q = self._q_of(S, u[free], free) if self.held.size else -0.5 * float(d @ u)
        self.value = self.q + self.constant
        return True

    def _q_of(self, S: Vector, x: Vector, free: Vector) -> float:
        """Return ½xᵀHx − rᵀx where some variables are held."""
        support, x = np.concatenate([S, self.held]), np.concatenate([x, self.level])
        H = np.vstack([self.B[np.ix_(free, support)], self.model.rows(self.held)[:, support]])
        return float(0.5 * x @ H @ x - self.r[support] @ x)

    def add(self, i: int) -> None:
        """Let the variable i enter, or free it if it is held."""
        start = self._release(i)
        p = self.e + self.n_elements
        row, w = self.model.row(i, self._likely_rows), self.inverse[:p, :p] @ self.B[:p, i]
        self._enter(i, row, w, float(self.h[i]), float(self.s[i]), start)
        self.h[i] = self.s[i] = 0.0

    def add_row(self, g: int, slack: float) -> bool:
        """Let row g of G, whose slack is given, hold as an equation; False if it depends on the present equations."""
        b, row = self._column(g), self.G[g]
        p = self.e + self.n_elements
        w = self.inverse[:p, :p] @ b
        sigma = -float(b @ w)
        alone = float(np.sum(b[self.free_rows] ** 2 / np.maximum(self.diagonal[self.element[self.free]], 1e-300)))
        if -sigma <= DEPENDENT * alone or self.n_elements == self._element.size:  # alone: −σ without other equations
            return False
        self._enter(~g, row, w, sigma, slack, 0.0)
        return True

    def _column(self, g: int) -> Vector:
        """Return the column of row g of G in K."""
        b = np.zeros(self.e + self.n_elements)
        b[self.free_rows] = self.G[g, self.element[self.free]]
        return b

    def _enter(self, element: int, row: Any, w: Vector, sigma: float, left: float, start: float) -> None:
        """Let an element enter; `left` is the residual of its equation, `start` its x until now."""
        p, t = self.e + self.n_elements, left / sigma
        c = schur_row(row, w, self.B[:p])
        self.s -= t * c
        c /= math.sqrt(abs(sigma))  # first: squares of H may overflow
        c *= c
        self.h -= math.copysign(1.0, sigma) * c
        self._update(w, 1.0 / sigma)
        self.inverse[p, :p] = self.inverse[:p, p] = w / -sigma
        self.inverse[p, p] = 1.0 / sigma
        self._u[:p] -= t * w
        self._u[p] = start + t
        self.B[p] = row
        self._element[self.n_elements] = element
        self.n_elements += 1
        self.n_active += element < 0
        self.q -= 0.5 * left * t
        self.updates += 1
        self._index()

    def _release(self, i: int) -> float:
        """Return x_i, which is its bound if i is held, and hold it no longer; otherwise 0, and i joins the support."""
        if self.held.size:
            at = np.flatnonzero(self.held == i)
            if at.size:
                level = float(self.level[at[0]])
                self.held, self.level = np.delete(self.held, at[0]), np.delete(self.level, at[0])
                return level
        self.key ^= int(self._keys[i])
        return 0.0

    def _update(self, w: Vector, a: float) -> None:
        """Add a·wwᵀ to K⁻¹ in place, with w padded with zeros: BLAS updates in place only a whole array."""
        padded = self._pair[0]
        padded[: w.size], padded[w.size :] = w, 0.0
        self._add_outer(a, padded, padded, a=self.inverse.T, overwrite_a=True)

    def _likely_rows(self, i: int) -> Vector:
        """Return the rows of H to fetch with row i: those that are likely to be needed next."""
        count = min(max(self.model.prefetch_size, min(self.prefetch_size, self.capacity)), self.n)
        if count == 1:
            return np.array([i])
        likely = add_gains(self.s, self.h, self.dependence_tol)
        likely[self.model.known] = 0.0
        likely[i] = np.inf
        return top_k_indices(likely, count)

    def drop(self, j: int, level: float | None = None) -> None:
        """Let the element at place j leave; the last element takes its place.

        A variable is held at `level`, or leaves the support (None). A row is active no longer.
        """
        p, q = self.e + self.n_elements, self.e + j
        last = p - 1
        B, K = self.B[:p], self.inverse[:p, :p]
        v = K[:, q].copy()
        if not abs(v[q]) > 0.0:  # without it K is singular
            raise DependentError
        off = float(self._u[q]) - (level or 0.0)
        t = off / float(v[q])
        element = self._element.item(j)
        if element < 0:
            self.n_active -= 1
        elif level is None:
            self.key ^= self._keys.item(element)
        else:
            self.held, self.level = np.append(self.held, element), np.append(self.level, level)
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
            self._element[j] = self._element[self.n_elements - 1]
        self.n_elements -= 1
        self.q += 0.5 * off * t
        self.updates += 1
        self._index()

    def remove_held(self, i: int) -> None:
        """Let a held variable leave the support."""
        p = self.e + self.n_elements
        delta, s = -self._release(i), float(self.s[i])
        row = self.model.row(i, self._likely_rows)
        w = self.inverse[:p, :p] @ self.B[:p, i]
        c = schur_row(row, w, self.B[:p])
        self.s -= delta * c
        self._u[:p] -= delta * w
        self.q += delta * (0.5 * delta * float(self.h[i]) - s)
        self.key ^= self._keys.item(i)
        self.updates += 1
        self._index()

    def coupling(self, held: Vector, others: Vector) -> Vector:
        """Return by how much moving each held variable (row) by 1 lowers s of others (columns)."""
        p = self.e + self.n_elements
        W = self.inverse[:p, :p] @ self.B[:p, held]
        return np.asarray(self.model.rows(held)[:, others] - W.T @ self.B[:p, others])

    def pivot(self, j: int, i: int) -> None:
        """Let the free variable at place j leave and i enter in its place: a drop and an add with one product."""
        p, q = self.e + self.n_elements, self.e + j
        B, K, V = self.B[:p], self.inverse[:p, :p], self._pair[:, :p]
        self._pair[:, p:] = 0.0
        row, b, (v, w) = self.model.row(i, self._likely_rows), B[:, i], V
        v[:] = K[:, q]
        kappa = v.item(q)
        if not kappa > 0.0:
            raise DependentError
        v /= math.sqrt(kappa)  # first: squares of H may overflow
        back, z = self._u.item(q) / math.sqrt(kappa), float(v @ b)
        h, s = self.h.item(i) + z * z, self.s.item(i) + back * z
        if not h > 0.0:
            raise DependentError
        unit = math.sqrt(h)
        np.matmul(K, b, out=w)
        w -= z * v  # K⁻¹b of the others
        w[q] = 0.0
        w /= -unit
        steps, products = np.array((back, -s / unit)), products_with_row(row, 1.0 / unit, V, B)
        self.s += steps @ products
        products *= products
        self.h += products[0]
        self.h -= products[1]
        self._u[:p] -= steps @ V
        self._u[q] = s / h
        for a, padded in zip((-1.0, 1.0), self._pair, strict=True):
            self._add_outer(a, padded, padded, a=self.inverse.T, overwrite_a=True)
        w /= unit
        w[q] = 1.0 / h
        K[q, :] = K[:, q] = w  # what is left there is rounding in the units of the variable that left
        B[q] = row
        self.key ^= self._keys.item(self._element.item(j)) ^ self._keys.item(i)
        self._element[j] = i
        self.h[i] = self.s[i] = 0.0
        self.q += 0.5 * (back * back - s / h * s)
        self.value = self.q + self.constant
        self.updates += 2
        if self.n_active or self.held.size:  # otherwise all fields are views
            self._index()

    def snapshot(self) -> Snapshot:
        """Return a copy of the state."""
        p = self.e + self.n_elements
        copied = [part.copy() for part in (self.element, self.inverse[:p, :p], self._u[:p], self.s, self.h)]
        return (*copied, self.held, self.level, self.q, self.updates, self.key)

    def restore(self, saved: Snapshot) -> None:
        """Return to a snapshot; only the rows of elements that differ are copied again."""
        element, inverse, u, s, h, self.held, self.level, self.q, self.updates, self.key = saved
        size = element.size
        common, p = min(size, self.n_elements), self.e + size
        differs = np.ones(size, dtype=bool)
        differs[:common] = self._element[:common] != element[:common]
        self.n_elements = size
        self._element[:size], self.inverse[:p, :p], self._u[:p] = element, inverse, u
        self.n_active = int((element < 0).sum()) if self.right.size else 0
        places = np.flatnonzero(differs)
        if places.size:
            self._fill_rows(places)
        self.s, self.h = s.copy(), h.copy()
        self._index()


@lru_cache(maxsize=1)
def _hash_keys(n: int) -> Vector:
    """Return a random number for each variable, always the same."""
    keys = np.random.default_rng(0).integers(2**63, size=n)
    keys.setflags(write=False)  # the array is shared
    return keys


class ActiveSet(UpdatedInverse):
    """A support at its optimum over C, the gains of changing it, and changes that keep it optimal."""

    def __init__(self, problem: SupportProblem, capacity: int) -> None:
        linear = problem.polyhedron
        super().__init__(problem.quadratic, linear, capacity)
        self.low, self.high = low, high = problem.floors.bounds(linear)
        self.forced, self.forbidden = np.zeros(self.n, dtype=bool), np.flatnonzero(~problem.allowed)
        self.forced[problem.forced] = True
        self.changes = 0  # variables and constraints that entered or left so far
        self.capped = bool(np.isfinite(high).any())
        self.signed = bool(np.isfinite(low).any()) or self.capped
        self.bounded = bool(((low != 0) & np.isfinite(low) | (high != 0) & np.isfinite(high)).any())
        sides = ((np.greater, high <= 0), (np.less, low >= 0))  # variables that may not go up, or not down
        self.sign_blocked = [(beyond, blocked) for beyond, blocked in sides if blocked.any()]
        self._all_removable = not (self.f.size or self.right.size or problem.forced.size)
        self._curvature = unit_scales(self.diagonal) ** 2  # 1 for a variable without curvature
        self._within = Linear(low, high, linear.G, linear.h, linear.E, linear.f)

    # gains

    def add_gains(self, within: bool = True) -> Vector:
        """Return by how much each variable would lower φ; 0 if it is in the support, forbidden, or gets a wrong sign.

        `within` its bounds, or without them: no swap gains more than its entering variable alone without bounds.
        """
        if self.bounded and within:
            gains = bounded_gains(self.s, self.h, self.dependence_tol, self.low, self.high)
        else:  # where i lies in the span of the support s_i is rounding, or φ is unbounded, which the proof finds
            gains = add_gains(self.s, self.h, self.dependence_tol)
            for beyond, blocked in self.sign_blocked:
                np.putmask(gains, blocked & beyond(self.s, 0.0), 0.0)
        gains[self.support] = 0.0  # their h and s are 0 except for rounding
        if self.forbidden.size:
            gains[self.forbidden] = 0.0
        return gains

    def drop_losses(self) -> Vector:
        """Return what each variable of the support costs to leave; ∞ if an equation needs it or it is forced in."""
        losses = drop_losses(self.x[self.free], self.kappa[self.free], None if self._all_removable else self._needed())
        return np.concatenate([losses, self._held_losses()]) if self.held.size else losses

    def _held_losses(self) -> Vector:
        losses = self.level * (self.s[self.held] + 0.5 * self.level * self.h[self.held])
        return np.where(self.forced[self.held], np.inf, losses)

    def _needed(self) -> Vector:
        """Return which free variables an equation needs or are forced in."""
        return np.asarray(self._decided() | self.forced[self.element[self.free]])

    def swap_gains(self, entering: Vector) -> tuple[Vector, Vector]:
        """Return variables of the support, and the gains of swapping them (rows) for others (columns) within bounds.

        None of the others may lie in the span of the support.
        """
        p = self.e + self.n_elements
        W = self.inverse[self.free_rows, :p] @ self.B[:p, entering]
        x, kappa, needed = self.x[self.free], self.kappa[self.free], None if self._all_removable else self._needed()
        s, h = self.s[entering], self.h[entering]
        if not self.bounded:
            gains, pull = swap_gains(x, kappa, W, s, h, needed)
            for beyond, blocked in self.sign_blocked:
                np.putmask(gains, blocked[entering] & beyond(pull, 0.0), -np.inf)
            return self.element[self.free], gains
        low, high, least = self.low[entering], self.high[entering], self.dependence_tol[entering]
        pull, curvature, losses = swap_terms(x, kappa, W, s, h, needed)
        gains = bounded_gains(pull, curvature, least, low, high) - losses[:, None]
        if self.held.size:
            pull = s + self.level[:, None] * self.coupling(self.held, entering)
            of_held = bounded_gains(pull, np.broadcast_to(h, pull.shape), least, low, high)
            gains = np.vstack([gains, of_held - self._held_losses()[:, None]])
        return self.support, gains

    def pair_moves(self, outside: Vector, most: int, least: float) -> list[Move]:
        """Return swaps of two held variables for two of `outside`, at their bounds, gaining above `least`, best first.

        Minimum positions that nearly fill a budget leave room for few single swaps. The free variables follow, so φ is
        a quadratic in all others: a change Δ of some of them lowers φ by sᵀΔ − ½ΔᵀQΔ, where Q is H less what the free
        variables take up. Leaving means Δⱼ = −xⱼ, entering means Δᵢ at the bound. The new slacks are linear in Δ, so
        pairs that violate a bound or a row are left out here. `most` variables of `outside` with the best single swaps
        are paired.
        """
        removable = ~self.forced[self.held]
        held, at = self.held[removable], self.level[removable]
        if held.size < 2 or outside.size < 2:
            return []
        k = held.size
        others = np.concatenate([held, outside])
        delta = np.concatenate([-at, self.low[outside]])
        alone = delta * (self.s[others] - 0.5 * self.h[others] * delta)
        between = delta[:k, None] * self.coupling(held, outside) * delta[k:]
        best = (alone[:k, None] + alone[k:] - between).max(axis=0)
        kept = np.sort(np.argsort(-best, kind="stable")[:most])
        chosen, between = outside[kept], between[:, kept]
        gain, delta = alone[k:][kept], delta[np.concatenate([np.arange(k), k + kept])]
        among = delta[k:, None] * self.coupling(chosen, chosen) * delta[k:]
        both_held = delta[:k, None] * self.coupling(held, held) * delta[:k]
        # the slack of the free variables' bounds and of the rows of G, and what each change δ takes of it
        p, variables, x = self.e + self.n_elements, self.element[self.free], self.x[self.free]
        others = np.concatenate([held, chosen])
        moved = -(self.inverse[self.free_rows, :p] @ self.B[:p, others]) * delta  # the free variables follow
        slack, terms = self._slack()
        slack[~self.element[self.element < 0]] = np.inf  # active rows stay active
        tol = PAIR_TOL * (np.abs(x) + PAIR_TOL)
        room = np.concatenate([x - self.low[variables] + tol, self.high[variables] - x + tol, slack + PAIR_TOL * terms])
        taken = np.vstack([-moved, moved, self.G[:, others] * delta + self.G[:, variables] @ moved])
        first, second = np.triu_indices(kept.size, 1)
        found: list[tuple[float, Move]] = []
        for i, j in combinations(range(k), 2):
            gains = alone[i] + alone[j] - both_held[i, j] + (gain - between[i] - between[j])[first]
            gains += (gain - between[i] - between[j])[second] - among[first, second]
            promising = np.flatnonzero(gains > least)
            pairs = taken[:, k + first[promising]] + taken[:, k + second[promising]]
            fits = (pairs <= (room - taken[:, i] - taken[:, j])[:, None]).all(axis=0)
            for pair in promising[fits]:
                move = Move((int(held[i]), int(held[j])), (int(chosen[first[pair]]), int(chosen[second[pair]])))
                found.append((float(gains[pair]), move))
        return [move for _, move in sorted(found, key=lambda one: (-one[0], one[1].leaving, one[1].entering))]

    # changes of the support

    def apply_exactly(self, move: Move) -> Undo:
        """Make a move under signs and equations only: a swap is undone by a swap, which costs less than a snapshot."""
        after = None
        try:
            self._make(move)
            if move.leaving and move.entering and self._is_violated():
                after = self.snapshot()  # signs remove further variables: the undo returns to this first
            self.restore_optimality()
        except NoFeasiblePointError as error:
            raise DependentError from error
        return lambda: self._swap_back(move, after)

    def apply_within_bounds(self, move: Move) -> Undo | None:
        """Make a move; None, and nothing changed, if C has no point there."""
        if self.bounded:  # whether a row alone, or with one equation, can be met within the bounds
            after = self.support[~np.isin(self.support, move.leaving)] if move.leaving else self.support
            if self._reach.proves_infeasible(np.concatenate([after, np.asarray(move.entering, dtype=np.intp)])):
                self.changes += 2  # the cost of the check
                return None
        before = self.snapshot()
        try:
            self._make(move)
            self.restore_optimality()
        except NoFeasiblePointError:
            self.restore(before)
            return None
        return lambda: self.restore(before)

    def _swap_back(self, move: Move, after: Snapshot | None) -> None:
        (leaving,), (entering,) = move.leaving, move.entering
        if after is not None:
            self.restore(after)
        self.pivot(self._place(entering), leaving)
        self._after_update(2)

    def _make(self, move: Move) -> None:
        swap = len(move.leaving) == len(move.entering) == 1
        place = self._place(move.leaving[0]) if swap else -1
        if place >= 0 and self.kappa.item(place) * self._curvature.item(move.leaving[0]) > DECIDED:
            self.pivot(place, move.entering[0])
            self._after_update(2)
            return
        for i in move.entering:  # first: they may allow the others to leave
            self._insert(i)
        for i in move.leaving:
            self._remove(i)

    def remove_one(self, i: int, others: Vector, rng: np.random.Generator) -> None:
        """Let i leave; if an equation needs it, one of the `others` enters at random first. A forced variable stays.

        The active constraints do not follow.
        """
        if self.is_decided(i):
            others = others[self.h[others] > self.dependence_tol[others]]
            if others.size and self.n_elements < self.capacity:
                self._insert(int(rng.choice(others)))
            if self.is_decided(i):
                return
        if not self.forced[i]:
            self._remove(i)

    @cached_property
    def _reach(self) -> ActivityBounds:
        return ActivityBounds(self._within)

    def _insert(self, i: int) -> None:
        if self.n_elements == self.capacity or self.h[i] <= self.dependence_tol[i]:
            raise NoFeasiblePointError
        self.add(i)
        self._after_update(1)

    def _remove(self, i: int) -> None:
        if self._place(i) >= 0:
            self._hold(i, None)
        else:
            self.remove_held(i)
            self._after_update(1)

    def _hold(self, i: int, level: float | None) -> None:
        """Hold a free variable at a level, or let it leave the support (None).

        If the equations alone decide it, another constraint is released for it.
        """
        if self.is_decided(i):
            unit = np.zeros(self.e + self.n_elements)
            unit[self.e + self._place(i)] = 1.0
            towards = float(np.sign((level or 0.0) - unit[self.e :] @ self.x))
            self._release_another(unit, np.zeros(self.held.size), towards)
            if self.is_decided(i):
                raise NoFeasiblePointError
        self.drop(self._place(i), level)
        self._after_update(1)

    def _place(self, i: int) -> int:
        """Return the place of a variable of the support among the elements; −1 if it is held."""
        return -1 if self.held.size and (self.held == i).any() else int((self.element == i).argmax())

    def _decided(self) -> Vector:
        """Return which free variables the equations alone decide."""
        return np.asarray(self.kappa[self.free] * self._curvature[self.element[self.free]] <= DECIDED)

    def is_decided(self, i: int) -> bool:
        """Return whether i is free and the equations alone decide x_i."""
        place = self._place(i)
        return place >= 0 and self.kappa.item(place) * self._curvature.item(i) <= DECIDED

    def _after_update(self, changes: int) -> None:
        """Count changes, and recompute the inverse after many; `DependentError` if it is singular."""
        self.changes += changes
        if self.updates >= RECOMPUTED and not self.recompute():
            raise DependentError

    # the active constraints

    def restore_optimality(self) -> None:
        """Change the active constraints, the worst violation first, until x is optimal over C."""
        if not self._is_violated() and not self._release_worst():
            return
        began = time.perf_counter()
        for _ in range(4 * self.n_elements + 4 * self.held.size + 8):
            if time.perf_counter() - began > GRACE:  # a shorter run ends by itself, and its work is not lost
                require_time()
            if not (self._hold_worst() or self._release_worst()):
                gone = (self.level == 0.0) & ~self.forced[self.held]
                if gone.any():  # variables held at 0 leave the support; nothing else changes
                    self.key ^= int(np.bitwise_xor.reduce(self._keys[self.held[gone]], initial=0))
                    self.held, self.level = self.held[~gone], self.level[~gone]
                    self._index()
                if self._meets_equations() or (self.recompute() and self._meets_equations()):
                    return
                break
        raise NoFeasiblePointError

    def _is_violated(self) -> bool:
        """Return whether a free variable is outside its bounds, or a row is violated."""
        if self.signed:
            x, variables = self.x[self.free], self.element[self.free]
            if (x < self.low[variables]).any() or (self.capped and (x > self.high[variables]).any()):
                return True
        return bool(self.right.size) and self._worst_row()[0] is not None

    def _meets_equations(self) -> bool:
        """Return whether the equations hold, which updates through nearly dependent constraints can spoil."""
        x, E = np.concatenate([self.x[self.free], self.level]), self.B[: self.e, self.support]
        return bool((np.abs(E @ x - self.f) <= EQUATION_TOL * (np.abs(E) @ np.abs(x) + np.abs(self.f))).all())

    def _hold_worst(self) -> bool:
        """Activate the violated constraint that costs most to meet; return whether there was one."""
        variables, x, kappa = self.element[self.free], self.x[self.free], self.kappa[self.free]
        target = np.clip(x, self.low[variables], self.high[variables])
        off = np.abs(x - target)
        size = max(float(np.abs(x).max(initial=0.0)), float(np.abs(self.level).max(initial=0.0)))
        beyond = off > VIOLATION_TOL * size
        row, row_cost, slack = self._worst_row()
        if not beyond.any() and row is None:
            return False
        decided = self._decided()
        cost = np.where(beyond, np.where(decided, np.inf, off**2 / np.where(decided, 1.0, kappa)), 0.0)
        at = int(cost.argmax()) if cost.size else 0
        if row is not None and not (cost.size and cost[at] >= row_cost):
            self._activate(row, slack)
        else:
            self._hold(int(variables[at]), float(target[at]))
        return True

    def _activate(self, row: int, slack: float) -> None:
        """Make a row an equation; if the present equations decide it, another constraint is released for it."""
        if not self.add_row(row, slack):
            self._release_another(self._column(row), self.G[row, self.held], -1.0)
            if not self.add_row(row, self._slack()[0][row]):
                raise NoFeasiblePointError
        self._after_update(1)

    def _slack(self) -> tuple[Vector, Vector]:
        """Return the slack of every row of G, and the size of its terms."""
        x, G = np.concatenate([self.x[self.free], self.level]), self.G[:, self.support]
        return self.right - G @ x, np.abs(G) @ np.abs(x) + np.abs(self.right)

    def _worst_row(self) -> tuple[int | None, float, float]:
        """Return the inactive row of G whose violation costs most to remove, that cost, and its slack."""
        if not self.right.size:
            return None, 0.0, 0.0
        slack, terms = self._slack()
        slack[~self.element[self.element < 0]] = 0.0
        rows = np.flatnonzero(slack < -VIOLATION_TOL * terms)
        if not rows.size:
            return None, 0.0, 0.0
        M = self.G[np.ix_(rows, self.element[self.free])]
        curvature = ((M @ self.inverse[self.free_rows][:, self.free_rows]) * M).sum(axis=1)  # −σ of the rows
        cost = np.where(curvature > 1e-300, slack[rows] ** 2 / np.maximum(curvature, 1e-300), np.inf)
        worst = int(cost.argmax())
        return int(rows[worst]), float(cost[worst]), float(slack[rows[worst]])

    def _release_another(self, a: Vector, of_held: Vector, towards: float) -> None:
        """Release the constraint that moves aᵀu + of_heldᵀlevel, which the active ones decide, at the least cost."""
        p, rows = self.e + self.n_elements, np.flatnonzero(self.element < 0)
        inward = np.where(self.level == self.low[self.held], 1.0, -1.0)  # in which a held variable may move
        along = a @ self.inverse[:p, :p]
        by_variables = towards * inward * (of_held - along @ self.B[:p, self.held])
        by_variables[self.h[self.held] <= self.dependence_tol[self.held]] = 0.0
        rate = np.concatenate([by_variables, np.where(self._removable(rows), -towards * along[self.e + rows], 0.0)])
        multiplier = np.concatenate([-inward * self.s[self.held], self.x[rows]])
        moving = rate > 1e-9 * float(np.abs(rate).max(initial=0.0))
        if not moving.any():
            raise NoFeasiblePointError
        best = int(np.where(moving, np.maximum(multiplier, 0.0) / np.where(moving, rate, 1.0), np.inf).argmin())
        if best < self.held.size:
            self.add(int(self.held[best]))
        else:
            self.drop(int(rows[best - self.held.size]))
        self._after_update(1)

    def _removable(self, rows: Vector) -> Vector:
        """Return which active rows, at places among the elements, K stays regular without."""
        G, variables = self.G[~self.element[rows]], self.element[self.free]
        alone = np.sum(G[:, variables] ** 2 / self._curvature[variables], axis=1)  # 1/−κ of a row by itself
        return np.asarray(-self.kappa[rows] * alone > DECIDED)

    def _release_worst(self) -> bool:
        """Release the constraint with a multiplier of the wrong sign that gains most; return whether there was one."""
        if not (self.held.size or self.n_active):
            return False
        gain, variable, row = 0.0, -1, -1
        if self.held.size:
            s, h = self.s[self.held], self.h[self.held]
            wrong = (self.level == self.low[self.held]) & (s > 0) | (self.level == self.high[self.held]) & (s < 0)
            gains = np.where(wrong, add_gains(s, h, self.dependence_tol[self.held]), 0.0)
            at = int(gains.argmax())
            gain, variable = float(gains[at]), int(self.held[at])
        rows = np.flatnonzero(self.element < 0) if self.n_active else NONE
        if rows.size:
            multiplier, kappa = self.x[rows], self.kappa[rows]
            wrong = (multiplier < 0) & self._removable(rows)
            gains = np.where(wrong, multiplier**2 / np.where(wrong, -2.0 * kappa, 1.0), 0.0)
            at = int(gains.argmax())
            if gains[at] > gain:
                gain, row = float(gains[at]), int(rows[at])
        if not gain > 1e-12 * abs(self.q):
            return False
        if row >= 0:
            self.drop(row)
        else:
            self.add(variable)
        self._after_update(1)
        return True


class ActiveSetNeighbourhood(ActiveSet, Neighbourhood):
    """Moves of an active set, ranked by their gains there."""

    monotone = True

    def __init__(self, problem: SupportProblem, capacity: int | None = None) -> None:
        if capacity is None:  # room for an oscillation in k
            capacity = min(problem.max_held_rows, problem.k + max(3, int(problem.settings.depth * problem.k)))
        super().__init__(problem, capacity)
        self.problem = problem
        self.entering, self.rules, self.floored = problem.settings.entering, problem.rules, problem.floors.any
        self.may_be_unbounded, self.max_size = problem.loss.least == -np.inf, capacity
        self.linear_scale, self.promise = float(np.abs(self.r).max(initial=0.0)), np.inf
        # variables without the sign they need do not enter, so signs alone leave the gains exact
        self.trust = RankQuality.HEURISTIC if self.bounded or self.right.size else RankQuality.EXACT

    def walks(self) -> ActiveSetNeighbourhood:
        return self

    def move_to(self, candidate: Candidate) -> None:
        support = np.asarray(candidate.support, dtype=np.intp)
        places = (candidate.x != 0) & ((candidate.x == self.low[support]) | (candidate.x == self.high[support]))
        held, rows = support[places], np.flatnonzero(candidate.row_multipliers > 0)
        warm = (held.size or rows.size) and self.rebuild(support, held, candidate.x[places], rows)
        if not warm and not self.rebuild(support):
            raise DependentError
        try:
            self.restore_optimality()
        except NoFeasiblePointError as error:
            raise DependentError from error

    def move_to_support(self, support: Vector) -> bool:
        self.changes += support.size
        if support.size > self.max_size:
            return False
        try:
            if self.rebuild(support):
                self.restore_optimality()
                return True
            found = self.problem.evaluate(support)  # too nearly dependent, unless constraints hold some of it
            if found is not None:
                self.move_to(found)
        except (NoFeasiblePointError, DependentError):
            return False
        return found is not None

    def ranked_adds(self, min_gain: float, expected: int, tabu: Vector | None = None) -> Iterator[Move]:
        self.prefetch_size = expected
        gains = self.add_gains()
        if tabu is not None:
            gains[tabu] = 0.0
        while not gains[i := int(gains.argmax())] <= min_gain:
            yield Move((), (i,))
            gains[i] = 0.0

    def ranked_drops(self) -> Iterator[Move]:
        variables, losses = self.support, self.drop_losses()
        while losses.size and losses[j := int(losses.argmin())] < np.inf:
            yield Move((int(variables[j]),), ())
            losses[j] = np.inf

    def ranked_moves(self, min_gain: float, full: bool) -> Iterator[Move]:
        """Yield the best swap, then the next best with another entering variable; with floors drops before them."""
        if self.floored:
            variables, losses = self.support, self.drop_losses()
            for j in np.argsort(losses, kind="stable"):
                if not losses[j] < -min_gain or self.size < 2:
                    break
                yield Move((int(variables[j]),), ())
        tried: list[int] = []  # variables that entered and were taken back
        exchanges = self.rules.exchanges(self.support.copy(), self.problem.asked)
        while True:
            alone = self.add_gains(within=False)
            exchanges.bar(alone)
            if tried:
                alone[tried] = 0.0
            count = min(self.entering, int(np.count_nonzero(alone > min_gain)))
            if not count or not self.size:
                return
            entering = top_k_indices(alone, count)
            variables, gains = self.swap_gains(entering)
            if not gains.size:  # all of the support is forced in, and held at 0
                return
            exchanges.forbid(gains, variables, entering, -np.inf)
            before = len(tried)
            while True:  # a swap that was taken back leaves the gains of the others as they were
                j, i = divmod(int(gains.argmax()), count)
                if not gains[j, i] > min_gain:
                    break
                yield Move((int(variables[j]),), (int(entering[i]),))
                tried.append(int(entering[i]))
                gains[:, i] = -np.inf
            if len(tried) == before:
                return

    def ranked_pair_swaps(self, min_gain: float) -> Iterator[Move]:
        if not self.floored:
            return
        outside = np.isfinite(self.low) & (self.low > 0)
        outside[self.forbidden] = outside[self.support] = False
        yield from self.pair_moves(np.flatnonzero(outside), self.entering, min_gain)

    def prefetch(self, changes: int) -> None:
        """Fetch all columns of H at once if so many changes need most of them: in one product each costs a third."""
        model = self.model
        if model.n <= 3 * changes and model.n**2 * 8 <= model.memory:
            model.prefetch(np.arange(model.n))

    def best_swap(self, tabu: Vector, locked: Vector, aspiration: float = np.inf) -> ScoredMove | None:
        alone, out = self.add_gains(within=False), np.flatnonzero(tabu)
        alone[out[alone[out] <= aspiration]] = 0.0  # no swap gains more than its entering variable would alone
        entering = self._promising(alone)
        variables, gains = self.swap_gains(entering)
        if not gains.size:
            return None
        best = int(gains.argmax())
        if not gains.item(best) > aspiration:  # then no tabu swap does
            gains[locked[variables]] = -np.inf
            gains[:, tabu[entering]] = -np.inf
            best = int(gains.argmax())
        gain, (j, i) = gains.item(best), divmod(best, entering.size)
        return ScoredMove(Move((variables.item(j),), (entering.item(i),)), gain) if gain > -np.inf else None

    def _promising(self, alone: Vector) -> Vector:
        """Return about `WALK_CANDIDATES` variables of largest gains, by the last step's threshold if it still fits."""
        entering = np.flatnonzero(alone >= self.promise)
        if not WALK_CANDIDATES <= 2 * entering.size <= 4 * WALK_CANDIDATES:
            count = min(WALK_CANDIDATES, int(np.count_nonzero(alone)))
            entering = top_k_indices(alone, count) if count else entering[:0]
            self.promise = float(alone[entering].min(initial=np.inf))
        return entering

    def apply(self, move: Move) -> Undo | None:
        # under rules others may enter after a move, before its undo
        if self.trust is RankQuality.EXACT and not self.rules.any:
            return self.apply_exactly(move)
        return self.apply_within_bounds(move)

    def remove_many(self, leaving: Vector, rng: np.random.Generator) -> bool:
        try:
            for i in (int(i) for i in leaving):
                if i in self.support:
                    others = NONE
                    if self.is_decided(i):  # the variables that may enter for i
                        others = self.problem.inactive(np.concatenate([self.support, leaving]))
                        may_enter = self.rules.enterable(np.setdiff1d(self.support, [i]), self.problem.asked)
                        others = others[may_enter[others]]
                    self.remove_one(i, others, rng)
            self.restore_optimality()
        except NoFeasiblePointError:
            return False
        return True

    def min_loss_and_max_gain(self) -> tuple[float, float]:
        least = float(self.drop_losses().min(initial=np.inf))
        sloped = (self.h <= self.dependence_tol) & (np.abs(self.s) > PULL * self.linear_scale)  # without curvature
        sloped &= ((self.s > 0) & np.isposinf(self.high)) | ((self.s < 0) & np.isneginf(self.low))
        sloped[np.concatenate([self.forbidden, self.support])] = False
        unbounded = self.may_be_unbounded and bool(sloped.any())
        return least, np.inf if unbounded else float(self.add_gains().max(initial=0.0))
