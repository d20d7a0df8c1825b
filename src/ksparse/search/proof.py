"""Whether no add, drop or swap improves a support: proved with the rounding of the proof's own arithmetic, or not claimed.

The gains are those of `gains`, and with inequalities bounds on them (see `search`). Here each number they are made of has an error bound:
for approximate solutions û of Ku = d and ŵ of Kw = b with residuals ρ and e, the true s_i = r_i − b_iᵀK⁻¹d differs from the computed one by
w_iᵀρ, h_i by w_iᵀe_i, and so on: the residuals are computed, and the rounding of K's entries and of the sums is added to them. A move whose
gain, with its error, does not exceed what may be left unclaimed is settled; the others are solved exactly, and theirs must be bounded too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ksparse.data.device import bare, placed, room_for
from ksparse.data.model import QuadraticModel
from ksparse.numerics.bound import rounding_of
from ksparse.numerics.constraints import unit_rows, unit_scales
from ksparse.numerics.kkt_inverse import parts
from ksparse.search.candidate import Candidate
from ksparse.search.neighbourhoods import HEURISTIC_TRIALS
from ksparse.search.principal_components import is_swap_optimal
from ksparse.search.problem import SupportProblem
from ksparse.util.arrays import Array, Vector, at_least, column_dots, namespace, to_numpy

SINGULAR = 1e12  # the largest entry of K⁻¹ that a factorisation is made for


@dataclass(frozen=True)
class Proof:
    """What came of it: proved, a better candidate met on the way, or neither."""

    proved: bool
    better: Candidate | None = None


def prove(problem: SupportProblem, at: Candidate) -> Proof:
    """Whether no support one add, drop or swap away is better, with a limited number of exact solves."""
    if problem.can.spectral:
        return Proof(is_swap_optimal(problem, at))
    target = at.value - problem.claim_tol(at.value)
    if not problem.can.gains_are_bounds or problem.lower_bound(at.support) < target:
        return Proof(False, _better_by_trial(problem, at))
    if problem.rules.grouped:  # an exchange of groups is not one of variables
        return Proof(False)
    moves = _in_doubt(problem, problem.quadratic, at, problem.settings.proved)
    if moves is None:
        return Proof(False)
    doubts = 0
    for j, i in moves:
        if problem.expired or doubts > problem.settings.tried:
            return Proof(False)
        support = _moved(at.support, j, i)
        if not problem.allows(support):
            continue
        if problem.lower_bound(support) >= target:
            continue
        tried = problem.evaluate(support, at)
        if tried is not None and tried.value < at.value - problem.gain_tol(at.value):
            return Proof(False, tried)
        doubts += 1  # neither proved nor better: another may be
    return Proof(not doubts)


Moves = list[tuple[int, int]]  # the place of the variable that leaves, the one that enters; −1 for none


def _better_by_trial(problem: SupportProblem, at: Candidate) -> Candidate | None:
    """A better support one move away, where nothing can be proved but the moves are few: ranks and bounds may have passed over it."""
    for j, i in (
        _every_move(
            problem,
            at,
            problem.settings.tried if problem.can.exact_evaluation else min(HEURISTIC_TRIALS, problem.settings.tried),
        )
        or []
    ):
        if problem.expired:
            return None
        tried = problem.evaluate(_moved(at.support, j, i), at)
        if tried is not None and tried.value < at.value - problem.gain_tol(at.value):
            return tried
    return None


def _moved(support: Vector, j: int, i: int) -> Vector:
    kept = support if j < 0 else np.delete(support, j)
    return kept if i < 0 else np.append(kept, i)


def _every_move(problem: SupportProblem, at: Candidate, most: int) -> Moves | None:
    """All that may be done to a support; None where that is more than `most`.

    Without a floor a variable that leaves takes nothing but its own 0 along.
    """
    inactive, movable = problem.inactive(at), ~np.isin(at.support, problem.forced)
    places = [int(j) for j in np.flatnonzero(movable)]
    drops: Moves = [(j, -1) for j in places] if problem.floors.any else []
    places = places if at.support.size >= problem.k else [-1, *places]
    if len(places) * inactive.size > most:
        return None
    moves = drops + [(j, int(i)) for j in places for i in inactive]
    return [(j, i) for j, i in moves if problem.allows(_moved(at.support, j, i))]


def _in_doubt(problem: SupportProblem, model: QuadraticModel, at: Candidate, most: int) -> Moves | None:
    """The moves whose gain is not bounded by what may be left unclaimed; None where they are more than `most`."""
    inactive, movable = problem.inactive(at), ~np.isin(at.support, problem.forced)
    if (
        model.sign > 0 and problem.linear is not None and problem.linear.bounds_only
    ):  # a variable that φ does not feel helps nobody
        inactive = inactive[(model.diagonal[inactive] > 0) | (model.r[inactive] != 0)]
    free, rules = at.support.size < problem.k, problem.rules
    exchanges = rules.exchanges(at.support, problem.asked)
    factor = _KKTInverse.of(problem, model, at)
    if factor is None:  # nothing to reckon with
        return _every_move(problem, at, most)
    moves: Moves = [(int(j), -1) for j in np.flatnonzero(movable)] if problem.floors.any else []
    least = problem.claim_tol(at.value) - factor.slack
    if free:
        entering = inactive[rules.enterable(at.support, problem.asked)[inactive]]
        moves += [(-1, int(i)) for i in factor.open_adds(entering, least)]
    for chunk in (inactive[part] for part in parts(inactive.size, at.support.size, factor.room)):
        open_ = factor.open_swaps(chunk, movable, least)
        if open_ is None:
            continue
        exchanges.forbid(open_, at.support, chunk)
        if len(moves) + int(open_.sum()) > most:
            return None
        moves += [(int(j), int(chunk[i])) for j, i in np.argwhere(open_)]
    return moves


class _KKTInverse:
    """K⁻¹ and what follows from it, each with its error, in variables scaled to a unit diagonal of H.

    What has n entries or more lies where the rows of H lie, on a device where the data are there; K and what it holds are on the host.
    """

    @classmethod
    def of(cls, problem: SupportProblem, model: QuadraticModel, at: Candidate) -> _KKTInverse | None:
        """None where the variables are dependent, or nearly so."""
        try:
            factor = cls(problem, model, at)
        except np.linalg.LinAlgError:
            return None
        return factor if np.isfinite(factor.slack) else None

    def __init__(self, problem: SupportProblem, model: QuadraticModel, at: Candidate) -> None:
        S, k, shift = at.support, at.support.size, at.shift
        unit = unit_scales(model.diagonal + shift)
        r, held = _priced(problem, model, at)
        r = r / unit
        E, f = np.zeros((0, problem.n)), np.zeros(0)
        if problem.linear is not None:
            E, f, _ = unit_rows(problem.linear.E / unit, problem.linear.f)
        rows = model.rows_in_place(S)
        self.room, (self.index, there) = room_for(rows), placed(rows)
        table = bare(rows)
        table /= there(unit)
        table /= there(unit[S])[:, None]
        table[self.index(np.arange(k)), self.index(S)] += there(shift / unit[S] ** 2)
        self.xp = xp = namespace(table)
        self.B = B = xp.concat([table, there(E)]) if f.size else table
        K = np.block([[rows[:, S], E[:, S].T], [E[:, S], np.zeros((f.size, f.size))]])
        d = np.concatenate([r[S], f])
        inverse = np.linalg.inv(K)
        if not float(np.abs(inverse).max(initial=0.0)) < SINGULAR:
            raise np.linalg.LinAlgError
        entries, pull = rounding_of(len(K)) + model.noise.entry_error, model.noise.linear_error
        self.K, self.inverse, self.k, V = there(K), there(inverse), k, inverse
        u = inverse @ d
        u = u + inverse @ (d - K @ u)
        size_u, size_v = float(np.abs(u).sum()), np.abs(V).sum(axis=0)[:k]
        off_u = (
            float(np.abs(d - K @ u).max(initial=0.0)) + entries * (size_u + float(np.abs(d).max(initial=0.0))) + pull
        )
        off_v = np.abs(np.eye(len(K)) - K @ V).max(axis=0, initial=0.0)[:k] + entries * (size_v + 1.0)
        self.x, self.kappa = there(u[:k]), there(np.diag(V)[:k])
        self.s, self.h = there(r) - there(u) @ B, there((model.diagonal + shift) / unit**2)
        size_w, self.off_w = xp.empty_like(self.s), xp.empty_like(self.s)
        for part in parts(problem.n, len(K), self.room):  # k × n numbers are held once
            W = self._solutions(part)
            self.h[part] -= column_dots(B[:, part], W)
            size_w[part] = xp.sum(xp.abs(W), axis=0)
            self.off_w[part] = (xp.max(xp.abs(B[:, part] - self.K @ W), axis=0) if len(K) else 0.0) + entries * (
                size_w[part] + 1.0
            )
        self.off_s = size_w * off_u + entries * (size_u + xp.abs(there(r))) + pull
        self.off_h = size_w * self.off_w + entries * (size_w + 1.0)
        self.off_kappa, self.off_x, self.size_v = there(size_v * off_v), there(size_v * off_u), there(size_v)
        own = at.bound_multipliers * at.x
        self.own, self.bounded, self.up = there(own), False, None
        if problem.linear is not None:
            low, high = (bound * unit for bound in problem.floors.bounds(problem.linear))
            self.bounded = bool((np.isfinite(high) & (high != 0) | (low > 0)).any())
            self.low, self.high = there(low), there(high)
            self.up, self.down = there(problem.linear.lower) >= 0, there(problem.linear.upper) <= 0
        value = -0.5 * float(d @ u) + held + float(own.sum())
        blur = size_u * off_u + entries * (abs(value) + abs(held) + float(np.abs(own).sum()) + abs(model.constant))
        self.slack = (
            max(0.0, at.value + at.rounding - value) + blur
        )  # by how much the multipliers fall short of at's value

    def _solutions(self, columns: Any) -> Array:
        """K⁻¹B for some columns, refined once."""
        B = self.B[:, columns]
        W = self.inverse @ B
        return W + self.inverse @ (B - self.K @ W)

    def open_adds(self, entering: Vector, least: float) -> Vector:
        """Those that may gain more than `least`."""
        return np.asarray(entering[to_numpy(~(self.add_gains(self.index(entering)) <= least))])

    def open_swaps(self, entering: Vector, movable: Vector, least: float) -> Vector | None:
        """Which swaps may gain more than `least`; None where none does."""
        open_ = self.index(movable)[:, None] & ~(self.swap_gains(self.index(entering)) <= least)
        return to_numpy(open_) if bool(self.xp.any(open_)) else None

    def add_gains(self, entering: Array) -> Array:
        """By how much each variable would lower the bound, at most."""
        xp, pull, off = self.xp, self.s[entering], self.off_s[entering]
        h = self.h[entering] - self.off_h[entering]
        gains = xp.where(h > 0, (xp.abs(pull) + off) ** 2 / (2.0 * xp.where(h > 0, h, 1.0)), np.inf)
        gains = self._on_its_side(gains, entering, pull, off)
        if self.bounded:
            low, high = self.low[entering], self.high[entering]
            near, away = xp.where(low >= 0, low, -high), xp.where(low >= 0, high, -low)
            pull, h = xp.where(low >= 0, 1.0, -1.0) * pull + off, at_least(h, 0.0)
            t = xp.clip(pull / at_least(h, 1e-300), near, away)
            within = xp.where(xp.isfinite(t), t * (pull - 0.5 * h * t), np.inf)
            gains = xp.where((low >= 0) | (high <= 0), xp.minimum(gains, within + 1e-12 * xp.abs(within)), gains)
        return gains

    def swap_gains(self, entering: Array) -> Array:
        """By how much each swap of a variable (row) for another (column) would lower it, at most: numerator up, denominator down."""
        xp, s, off_s, off_h = self.xp, self.s[entering], self.off_s[entering], self.off_h[entering]
        h = at_least(self.h[entering], 0.0)
        x, off_x, kappa, off_kappa = (part[:, None] for part in (self.x, self.off_x, self.kappa, self.off_kappa))
        W, off_w = self._solutions(entering)[: self.k], self.size_v[:, None] * self.off_w[entering]
        top = (xp.abs(s) + off_s) ** 2 * (at_least(kappa, 0.0) + off_kappa)
        top += 2.0 * (
            s * W * x + off_s * xp.abs(W * x) + (xp.abs(s) + off_s) * (off_w * (xp.abs(x) + off_x) + xp.abs(W) * off_x)
        )
        top -= at_least(xp.abs(x) - off_x, 0.0) ** 2 * at_least(h - off_h, 0.0)
        bottom = 2.0 * (
            at_least(h - off_h, 0.0) * at_least(kappa - off_kappa, 0.0) + at_least(xp.abs(W) - off_w, 0.0) ** 2
        )
        gains = xp.where(bottom > 0, top / xp.where(bottom > 0, bottom, 1.0), np.inf)
        gains = xp.where(top <= 0, 0.0, gains)  # it gains nothing
        pull = kappa * s + W * x
        blur = (
            off_kappa * xp.abs(s)
            + (xp.abs(kappa) + off_kappa) * off_s
            + off_w * xp.abs(x)
            + (xp.abs(W) + off_w) * off_x
        )
        gains = self._on_its_side(gains, entering, pull, blur)
        if self.bounded:
            gains = xp.minimum(gains, self._within_bounds(entering, W, pull, blur))
        return gains + self.own[:, None]

    def _within_bounds(self, entering: Array, W: Array, pull: Array, blur: Array) -> Array:
        """The same where the entering variable keeps within its bounds, and above its floor: the largest t·pull − ½h·t² of such a t.

        Of a variable that may lie on either side of 0 nothing is said, nor where an equation needs the one that leaves.
        """
        xp, low, high = self.xp, self.low[entering], self.high[entering]
        side = xp.where(low >= 0, 1.0, -1.0)
        near, away = xp.where(low >= 0, low, -high), xp.where(low >= 0, high, -low)
        kappa, x = (
            at_least(self.kappa - self.off_kappa, 0.0)[:, None],
            at_least(xp.abs(self.x) - self.off_x, 0.0)[:, None],
        )
        W = at_least(xp.abs(W) - self.size_v[:, None] * self.off_w[entering], 0.0)
        known = (kappa > 0) & ((low >= 0) | (high <= 0))
        kappa = xp.where(kappa > 0, kappa, 1.0)
        most = (self.kappa + self.off_kappa)[:, None]
        pull = xp.maximum(
            (side * pull + blur) / kappa, (side * pull + blur) / at_least(most, 1e-300)
        )  # s once j has left, at most
        h = at_least(self.h[entering] - self.off_h[entering], 0.0) + W * W / at_least(most, 1e-300)  # at least
        t = xp.clip(pull / at_least(h, 1e-300), near, away)
        gains = xp.where(xp.isfinite(t), t * (pull - 0.5 * h * t), np.inf) - x * x / (2.0 * at_least(most, 1e-300))
        return xp.where(known, gains + 1e-12 * xp.abs(gains), np.inf)

    def _on_its_side(self, gains: Array, entering: Array, pull: Array, blur: Array) -> Array:
        """Nothing where an entering variable would certainly get the sign its bounds forbid: it stays at 0."""
        if self.up is None:
            return gains
        wrong = (self.up[entering] & (pull + blur <= 0)) | (self.down[entering] & (pull - blur >= 0))
        return self.xp.where(wrong, 0.0, gains)


def _priced(problem: SupportProblem, model: QuadraticModel, at: Candidate) -> tuple[Vector, float]:
    """r with the multipliers of rows and bounds in it, of the right sign each, and what they pay whatever the support."""
    r = model.r.copy()
    if problem.linear is None:
        return r, model.constant - 0.5 * at.shift * at.radius**2
    price = np.maximum(at.row_multipliers, 0.0)
    if price.size:
        r -= problem.linear.G.T @ price
    r[at.support] += at.bound_multipliers
    return r, model.constant - float(price @ problem.linear.h)
