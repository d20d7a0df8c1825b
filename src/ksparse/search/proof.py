"""Proof that no add, drop or swap improves a support, with the rounding of the proof's own arithmetic.

The gains are those of `numerics.kkt_inverse`, with the multipliers of bounds and rows in r: by weak duality they bound
the true gains from above. Each number that they consist of has an error bound. For approximate solutions û of Ku = d
and ŵ of Kw = b with residuals ρ and e, the true s_i = r_i − b_iᵀK⁻¹d differs from the computed one by w_iᵀρ, h_i by
w_iᵀe_i, and so on. The residuals are computed, and the rounding of the entries of K and of the sums is added to them. A
move whose gain, with its error, does not exceed what may be left unclaimed is settled. The others are evaluated, and
their values must be bounded too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ksparse.data.model import QuadraticModel, array_of, placed
from ksparse.numerics.bound import rounding_of
from ksparse.numerics.constraints import unit_rows, unit_scales
from ksparse.numerics.kkt_inverse import parts
from ksparse.search.candidate import Candidate
from ksparse.search.neighbourhoods import HEURISTIC_TRIALS
from ksparse.search.principal_components import is_swap_optimal
from ksparse.search.problem import SupportProblem
from ksparse.util.arrays import Array, Vector, at_least, column_dots, namespace, to_numpy

SINGULAR = 1e12  # the largest entry of K⁻¹ that gains are computed from


Moves = list[tuple[int, int]]  # the place of the variable that leaves, the variable that enters; −1 for none


@dataclass(frozen=True)
class SwapProof:
    """The outcome of a proof: proved, or a better candidate found on the way, or neither."""

    proved: bool
    better: Candidate | None = None


def prove_swap_optimality(problem: SupportProblem, at: Candidate) -> SwapProof:
    """Prove that no support one add, drop or swap away is better, with a limited number of evaluations."""
    if problem.can.spectral:
        return SwapProof(is_swap_optimal(problem, at))
    target = at.value - problem.claim_tol(at.value)
    if not problem.can.gains_are_bounds or problem.lower_bound(at.support) < target:
        return SwapProof(False, _better_by_trial(problem, at))
    if problem.rules.group is not None:  # a swap of groups is not one of variables
        return SwapProof(False)
    moves = _undecided_moves(problem, problem.quadratic, at, problem.settings.proved)
    if moves is None:
        return SwapProof(False)
    undecided = 0
    for j, i in moves:
        if problem.expired or undecided > problem.settings.tried:
            return SwapProof(False)
        support = _after(at.support, j, i)
        if not problem.allows(support) or problem.lower_bound(support) >= target:
            continue
        tried = problem.evaluate(support, at)
        if tried is not None and tried.value < at.value - problem.gain_tol(at.value):
            return SwapProof(False, tried)
        undecided += 1  # neither proved nor better: another may be
    return SwapProof(not undecided)


def _better_by_trial(problem: SupportProblem, at: Candidate) -> Candidate | None:
    """Return a better support one move away if nothing can be proved but the moves are few: ranks may mislead."""
    most = problem.settings.tried if problem.can.exact_evaluation else min(HEURISTIC_TRIALS, problem.settings.tried)
    for j, i in _every_move(problem, at, most) or []:
        if problem.expired:
            return None
        tried = problem.evaluate(_after(at.support, j, i), at)
        if tried is not None and tried.value < at.value - problem.gain_tol(at.value):
            return tried
    return None


def _after(support: Vector, j: int, i: int) -> Vector:
    kept = support if j < 0 else np.delete(support, j)
    return kept if i < 0 else np.append(kept, i)


def _every_move(problem: SupportProblem, at: Candidate, most: int) -> Moves | None:
    """Return every allowed move; None if they are more than `most`. Without floors a drop never improves."""
    inactive, movable = problem.inactive(at.support), ~np.isin(at.support, problem.forced)
    places = [int(j) for j in np.flatnonzero(movable)]
    drops: Moves = [(j, -1) for j in places] if problem.floors.any else []
    places = places if at.support.size >= problem.k else [-1, *places]
    if len(places) * inactive.size > most:
        return None
    moves = drops + [(j, int(i)) for j in places for i in inactive]
    return [(j, i) for j, i in moves if problem.allows(_after(at.support, j, i))]


def _undecided_moves(problem: SupportProblem, model: QuadraticModel, at: Candidate, most: int) -> Moves | None:
    """Return the moves whose gain may exceed what is left unclaimed; None if they are more than `most`."""
    inactive, movable, rules = problem.inactive(at.support), ~np.isin(at.support, problem.forced), problem.rules
    linear = problem.linear
    if model.sign > 0 and linear is not None and not (linear.h.size or linear.f.size):  # others never improve
        inactive = inactive[(model.diagonal[inactive] > 0) | (model.r[inactive] != 0)]
    exchanges = rules.exchanges(at.support, problem.asked)
    try:
        gains = _CertifiedGains(problem, model, at)
    except np.linalg.LinAlgError:  # the variables are dependent, or nearly so
        return _every_move(problem, at, most)
    if not np.isfinite(gains.slack):
        return _every_move(problem, at, most)
    moves: Moves = [(int(j), -1) for j in np.flatnonzero(movable)] if problem.floors.any else []
    unclaimed = problem.claim_tol(at.value) - gains.slack
    if at.support.size < problem.k:
        entering = inactive[rules.enterable(at.support, problem.asked)[inactive]]
        moves += [(-1, int(i)) for i in gains.open_adds(entering, unclaimed)]
    for chunk in (inactive[part] for part in parts(inactive.size, at.support.size, gains.room)):
        open_ = gains.open_swaps(chunk, movable, unclaimed)
        if open_ is None:
            continue
        exchanges.forbid(open_, at.support, chunk)
        if len(moves) + int(open_.sum()) > most:
            return None
        moves += [(int(j), int(chunk[i])) for j, i in np.argwhere(open_)]
    return moves


class _CertifiedGains:
    """Upper bounds of gains from K⁻¹, in variables scaled to a unit diagonal of H; `off_x` is the error of x.

    Arrays of n entries or more lie where the rows of H lie, which may be a device; K and its inverse are on the host.
    """

    def __init__(self, problem: SupportProblem, model: QuadraticModel, at: Candidate) -> None:
        S, k, shift, linear = at.support, at.support.size, at.shift, problem.linear
        unit = unit_scales(model.diagonal + shift)
        r, held = at.slopes_with_multipliers(model, linear)
        r = r / unit
        E, f = np.zeros((0, problem.n)), np.zeros(0)
        if linear is not None:
            E, f, _ = unit_rows(linear.E / unit, linear.f)
        rows = model.rows_in_place(S)
        (table, self.room), (self.index, there) = array_of(rows), placed(rows)
        table /= there(unit)
        table /= there(unit[S])[:, None]
        table[self.index(np.arange(k)), self.index(S)] += there(shift / unit[S] ** 2)
        self.xp = xp = namespace(table)
        self.B = B = xp.concat([table, there(E)]) if f.size else table
        K = np.block([[rows[:, S], E[:, S].T], [E[:, S], np.zeros((f.size, f.size))]])
        d = np.concatenate([r[S], f])
        V = np.linalg.inv(K)
        if not float(np.abs(V).max(initial=0.0)) < SINGULAR:
            raise np.linalg.LinAlgError
        entry, linear_error = rounding_of(len(K)) + model.noise.entry_error, model.noise.linear_error
        self.K, self.inverse, self.k = there(K), there(V), k
        u = V @ d
        u = u + V @ (d - K @ u)
        size_u, size_v = float(np.abs(u).sum()), np.abs(V).sum(axis=0)[:k]
        residual, largest = float(np.abs(d - K @ u).max(initial=0.0)), float(np.abs(d).max(initial=0.0))
        off_u = residual + entry * (size_u + largest) + linear_error
        off_v = np.abs(np.eye(len(K)) - K @ V).max(axis=0, initial=0.0)[:k] + entry * (size_v + 1.0)
        self.x, self.kappa = there(u[:k]), there(np.diag(V)[:k])
        self.s, self.h = there(r) - there(u) @ B, there((model.diagonal + shift) / unit**2)
        size_w, self.off_w = xp.empty_like(self.s), xp.empty_like(self.s)
        for part in parts(problem.n, len(K), self.room):  # k × n numbers are held once
            W = self._solutions(part)
            self.h[part] -= column_dots(B[:, part], W)
            size_w[part] = xp.sum(xp.abs(W), axis=0)
            residuals = xp.max(xp.abs(B[:, part] - self.K @ W), axis=0) if len(K) else 0.0
            self.off_w[part] = residuals + entry * (size_w[part] + 1.0)
        self.off_s = size_w * off_u + entry * (size_u + xp.abs(there(r))) + linear_error
        self.off_h = size_w * self.off_w + entry * (size_w + 1.0)
        self.off_kappa, self.off_x, self.size_v = there(size_v * off_v), there(size_v * off_u), there(size_v)
        own = at.bound_multipliers * at.x
        self.own, self.bounded, self.signed = there(own), False, linear is not None
        if linear is not None:
            low, high = (bound * unit for bound in problem.floors.bounds(linear))
            self.bounded = bool((np.isfinite(high) & (high != 0) | (low > 0)).any())
            self.low, self.high = there(low), there(high)
            self.up, self.down = there(linear.lower) >= 0, there(linear.upper) <= 0
        value = -0.5 * float(d @ u) + held + float(own.sum())
        error = size_u * off_u + entry * (abs(value) + abs(held) + float(np.abs(own).sum()) + abs(model.constant))
        self.slack = max(0.0, at.value + at.rounding - value) + error  # by which the dual value is lower

    def _solutions(self, columns: Any) -> Array:
        """Return K⁻¹B for some columns, refined once."""
        B = self.B[:, columns]
        W = self.inverse @ B
        return W + self.inverse @ (B - self.K @ W)

    def open_adds(self, entering: Vector, least: float) -> Vector:
        """Return the variables that may gain more than `least`."""
        return np.asarray(entering[to_numpy(~(self.add_gains(self.index(entering)) <= least))])

    def open_swaps(self, entering: Vector, movable: Vector, least: float) -> Vector | None:
        """Return a mask of the swaps that may gain more than `least`; None if none may."""
        open_ = self.index(movable)[:, None] & ~(self.swap_gains(self.index(entering)) <= least)
        return to_numpy(open_) if bool(self.xp.any(open_)) else None

    def add_gains(self, entering: Array) -> Array:
        """Return by how much each variable would lower the dual value, at most."""
        xp, s, off = self.xp, self.s[entering], self.off_s[entering]
        h = self.h[entering] - self.off_h[entering]
        gains = xp.where(h > 0, (xp.abs(s) + off) ** 2 / (2.0 * xp.where(h > 0, h, 1.0)), np.inf)
        gains = self._of_right_sign(gains, entering, s, off)
        if self.bounded:
            one_sided, within = self._within_bounds(entering, s, off, at_least(h, 0.0))
            gains = xp.where(one_sided, xp.minimum(gains, within + 1e-12 * xp.abs(within)), gains)
        return gains

    def swap_gains(self, entering: Array) -> Array:
        """Return by how much each swap of a variable (row) for another (column) would lower the dual value, at most."""
        xp, s, off_s, off_h = self.xp, self.s[entering], self.off_s[entering], self.off_h[entering]
        h = at_least(self.h[entering], 0.0)
        x, off_x, kappa, off_kappa = (part[:, None] for part in (self.x, self.off_x, self.kappa, self.off_kappa))
        W, off_w = self._solutions(entering)[: self.k], self.size_v[:, None] * self.off_w[entering]
        most_kappa, least_x = kappa + off_kappa, at_least(xp.abs(x) - off_x, 0.0)
        least_kappa, least_W = at_least(kappa - off_kappa, 0.0), at_least(xp.abs(W) - off_w, 0.0)
        top = (xp.abs(s) + off_s) ** 2 * (at_least(kappa, 0.0) + off_kappa)
        off_Wx = off_w * (xp.abs(x) + off_x) + xp.abs(W) * off_x
        top += 2.0 * (s * W * x + off_s * xp.abs(W * x) + (xp.abs(s) + off_s) * off_Wx)
        top -= least_x**2 * at_least(h - off_h, 0.0)
        bottom = 2.0 * (at_least(h - off_h, 0.0) * least_kappa + least_W**2)
        gains = xp.where(bottom > 0, top / xp.where(bottom > 0, bottom, 1.0), np.inf)
        gains = xp.where(top <= 0, 0.0, gains)
        slope = kappa * s + W * x  # κ times s once j has left
        off = off_kappa * xp.abs(s) + (xp.abs(kappa) + off_kappa) * off_s
        off = off + off_w * xp.abs(x) + (xp.abs(W) + off_w) * off_x
        gains = self._of_right_sign(gains, entering, slope, off)
        if self.bounded:  # nothing is known where an equation needs the variable that leaves
            decided, most = least_kappa > 0, at_least(most_kappa, 1e-300)
            h = at_least(self.h[entering] - off_h, 0.0) + least_W**2 / most  # at least
            kappas = xp.where(decided, least_kappa, 1.0), most
            one_sided, within = self._within_bounds(entering, slope, off, h, kappas)
            within = within - least_x**2 / (2.0 * most)
            gains = xp.where(one_sided & decided, xp.minimum(gains, within + 1e-12 * xp.abs(within)), gains)
        return gains + self.own[:, None]

    def _within_bounds(
        self, entering: Array, slope: Array, off: Array, h: Array, kappa: tuple[Array, ...] = (1.0,)
    ) -> tuple[Array, Array]:
        """Return which variables have bounds on one side of 0, and an upper bound of t·slope/κ − ½h·t² within them."""
        xp, low, high = self.xp, self.low[entering], self.high[entering]
        side = xp.where(low >= 0, 1.0, -1.0)
        near, away = xp.where(low >= 0, low, -high), xp.where(low >= 0, high, -low)
        slope = side * slope + off
        slopes = [slope / one for one in kappa]
        slope = slopes[0] if len(slopes) == 1 else xp.maximum(*slopes)
        t = xp.clip(slope / at_least(h, 1e-300), near, away)
        return (low >= 0) | (high <= 0), xp.where(xp.isfinite(t), t * (slope - 0.5 * h * t), np.inf)

    def _of_right_sign(self, gains: Array, entering: Array, slope: Array, off: Array) -> Array:
        """Return the gains, 0 where a variable would certainly get the sign its bounds forbid: it stays at 0."""
        if not self.signed:
            return gains
        wrong = (self.up[entering] & (slope + off <= 0)) | (self.down[entering] & (slope - off >= 0))
        return self.xp.where(wrong, 0.0, gains)
