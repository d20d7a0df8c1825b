"""Whether no add, drop or swap improves a support: proved with the rounding of the proof's own arithmetic, or not claimed.

The gains are those of `gains`, and with inequalities bounds on them (see `search`). Here each number they are made of has an error bound:
for approximate solutions û of Ku = d and ŵ of Kw = b with residuals ρ and e, the true s_i = r_i − b_iᵀK⁻¹d differs from the computed one by
w_iᵀρ, h_i by w_iᵀe_i, and so on: the residuals are computed, and the rounding of K's entries and of the sums is added to them. A move whose
gain, with its error, does not exceed what may be left unclaimed is settled; the others are solved exactly, and theirs must be bounded too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ksparse.base.arrays import Vector
from ksparse.linalg.bound import rounding_of
from ksparse.linalg.model import QuadraticModel
from ksparse.linalg.scaling import unit_rows, unit_scales
from ksparse.search.candidate import Candidate
from ksparse.search.gains import parts
from ksparse.search.pieces import Pieces
from ksparse.search.problem import SupportProblem
from ksparse.search.spectral_proof import prove_spectral

SINGULAR = 1e12  # the largest entry of K⁻¹ that a factorisation is made for


@dataclass(frozen=True)
class Proof:
    """What came of it: proved, a better candidate met on the way, or neither."""

    proved: bool
    better: Candidate | None = None


def prove(problem: SupportProblem, at: Candidate) -> Proof:
    """Whether no support one add, drop or swap away is better, with a limited number of exact solves."""
    pieces = problem.pieces
    if pieces.spectral:
        return Proof(prove_spectral(problem, at))
    target = at.value - pieces.claimable(at.value)
    if not pieces.certifying or problem.lower_bound(at.support) < target:
        return Proof(False, _better_by_trial(problem, at))
    assert pieces.model is not None
    if pieces.rules is not None and pieces.rules.grouped:  # an exchange of groups is not one of variables
        return Proof(False)
    moves = _in_doubt(problem, pieces.model, at, pieces.settings.proved)
    if moves is None:
        return Proof(False)
    doubts = 0
    for j, i in moves:
        if problem.expired or doubts > pieces.settings.tried:
            return Proof(False)
        support = _moved(at.support, j, i)
        if pieces.rules is not None and not problem.allows(support):
            continue
        if problem.lower_bound(support) >= target:
            continue
        tried = problem.evaluate(support, at)
        if tried is not None and tried.value < at.value - pieces.tolerance(at.value):
            return Proof(False, tried)
        doubts += 1  # neither proved nor better: another may be
    return Proof(not doubts)


Moves = list[tuple[int, int]]  # the place of the variable that leaves, the one that enters; −1 for none


def _better_by_trial(problem: SupportProblem, at: Candidate) -> Candidate | None:
    """A better support one move away, where nothing can be proved but the moves are few: ranks and bounds may have passed over it."""
    pieces = problem.pieces
    for j, i in _every_move(problem, at, pieces.settings.tried if pieces.direct else pieces.settings.guessed) or []:
        if problem.expired:
            return None
        tried = problem.evaluate(_moved(at.support, j, i), at)
        if tried is not None and tried.value < at.value - pieces.tolerance(at.value):
            return tried
    return None


def _moved(support: Vector, j: int, i: int) -> Vector:
    kept = support if j < 0 else np.delete(support, j)
    return kept if i < 0 else np.append(kept, i)


def _every_move(problem: SupportProblem, at: Candidate, most: int) -> Moves | None:
    """All that may be done to a support; None where that is more than `most`.

    Without a floor a variable that leaves takes nothing but its own 0 along.
    """
    inactive, movable = problem.inactive(at), ~np.isin(at.support, problem.pieces.forced)
    places = [int(j) for j in np.flatnonzero(movable)]
    drops: Moves = [(j, -1) for j in places] if problem.pieces.floored else []
    places = places if at.support.size >= problem.k else [-1, *places]
    if len(places) * inactive.size > most:
        return None
    moves = drops + [(j, int(i)) for j in places for i in inactive]
    return moves if problem.pieces.rules is None else [(j, i) for j, i in moves if problem.allows(_moved(at.support, j, i))]


def _in_doubt(problem: SupportProblem, model: QuadraticModel, at: Candidate, most: int) -> Moves | None:
    """The moves whose gain is not bounded by what may be left unclaimed; None where they are more than `most`."""
    pieces = problem.pieces
    inactive, movable = problem.inactive(at), ~np.isin(at.support, pieces.forced)
    if model.sign > 0 and pieces.linear is not None and pieces.linear.bounds_only:  # a variable that φ does not feel helps nobody
        inactive = inactive[(model.diagonal[inactive] > 0) | (model.r[inactive] != 0)]
    free, rules = at.support.size < problem.k, pieces.rules
    exchanges = None if rules is None else rules.exchanges(at.support, problem.asked)
    factor = _Factor.of(pieces, model, at)
    if factor is None:  # nothing to reckon with
        return _every_move(problem, at, most)
    moves: Moves = [(int(j), -1) for j in np.flatnonzero(movable)] if pieces.floored else []
    least = pieces.claimable(at.value) - factor.slack
    if free:
        entering = inactive if rules is None else inactive[rules.entering(at.support, problem.asked)[inactive]]
        moves += [(-1, int(i)) for i in entering[~(factor.add_gains(pieces, entering) <= least)]]
    for chunk in (inactive[part] for part in parts(inactive.size, at.support.size)):
        open_ = movable[:, None] & ~(factor.swap_gains(pieces, chunk) <= least)
        open_ &= True if exchanges is None else exchanges.table(at.support, chunk)
        if len(moves) + int(open_.sum()) > most:
            return None
        moves += [(int(j), int(chunk[i])) for j, i in np.argwhere(open_)]
    return moves


class _Factor:
    """K⁻¹ and what follows from it, each with its error, in variables scaled to a unit diagonal of H."""

    @classmethod
    def of(cls, pieces: Pieces, model: QuadraticModel, at: Candidate) -> _Factor | None:
        """None where the variables are dependent, or nearly so."""
        try:
            factor = cls(pieces, model, at)
        except np.linalg.LinAlgError:
            return None
        return factor if np.isfinite(factor.slack) else None

    def __init__(self, pieces: Pieces, model: QuadraticModel, at: Candidate) -> None:
        S, k, shift = at.support, at.support.size, at.shift
        self.unit = unit = unit_scales(model.diagonal + shift)
        r, held = _priced(pieces, model, at)
        r = r / unit
        E, f = np.zeros((0, pieces.n)), np.zeros(0)
        if pieces.linear is not None:
            E, f, _ = unit_rows(pieces.linear.E / unit, pieces.linear.f)
        rows = model.rows(S)
        rows /= unit
        rows /= unit[S][:, None]
        rows[np.arange(k), S] += shift / unit[S] ** 2
        self.B = B = np.vstack([rows, E]) if f.size else rows
        K = np.block([[rows[:, S], E[:, S].T], [E[:, S], np.zeros((f.size, f.size))]])
        d = np.concatenate([r[S], f])
        inverse = np.linalg.inv(K)
        if not float(np.abs(inverse).max(initial=0.0)) < SINGULAR:
            raise np.linalg.LinAlgError
        entries, pull = rounding_of(len(K)) + model.noise.entries, model.noise.pull
        self.K, self.inverse, self.k, V = K, inverse, k, inverse
        u = inverse @ d
        u = u + inverse @ (d - K @ u)
        size_u, size_v = np.abs(u).sum(), np.abs(V).sum(axis=0)[:k]
        off_u = float(np.abs(d - K @ u).max(initial=0.0)) + entries * (size_u + float(np.abs(d).max(initial=0.0))) + pull
        off_v = np.abs(np.eye(len(K)) - K @ V).max(axis=0, initial=0.0)[:k] + entries * (size_v + 1.0)
        self.x, self.kappa = u[:k], np.diag(V)[:k]
        self.s, self.h = r - u @ B, (model.diagonal + shift) / unit**2
        size_w, self.off_w = np.empty(pieces.n), np.empty(pieces.n)
        for part in parts(pieces.n, len(K)):  # k × n numbers are held once
            W = self._solutions(part)
            self.h[part] -= np.einsum("ij,ij->j", B[:, part], W)
            size_w[part] = np.abs(W).sum(axis=0)
            self.off_w[part] = np.abs(B[:, part] - K @ W).max(axis=0, initial=0.0) + entries * (size_w[part] + 1.0)
        self.off_s, self.off_h = size_w * off_u + entries * (size_u + np.abs(r)) + pull, size_w * self.off_w + entries * (size_w + 1.0)
        self.off_kappa, self.off_x, self.size_v = size_v * off_v, size_v * off_u, size_v
        self.own = at.bound_price * at.x
        self.bounded, self.low, self.high = False, np.full(pieces.n, -np.inf), np.full(pieces.n, np.inf)
        if pieces.linear is not None:
            self.low, self.high = (bound * unit for bound in pieces.linear.above(pieces.floor))
            self.bounded = bool((np.isfinite(self.high) & (self.high != 0) | (self.low > 0)).any())
        value = -0.5 * float(d @ u) + held + float(self.own.sum())
        blur = size_u * off_u + entries * (abs(value) + abs(held) + float(np.abs(self.own).sum()) + abs(model.constant))
        self.slack = max(0.0, at.value + at.rounding - value) + blur  # by how much the multipliers fall short of at's value

    def _solutions(self, columns: Vector | slice) -> Vector:
        """K⁻¹B for some columns, refined once."""
        B = self.B[:, columns]
        W = self.inverse @ B
        return np.asarray(W + self.inverse @ (B - self.K @ W))

    def add_gains(self, pieces: Pieces, entering: Vector) -> Vector:
        """By how much each variable would lower the bound, at most."""
        s, off = np.abs(self.s[entering]), self.off_s[entering]
        h = self.h[entering] - self.off_h[entering]
        gains = np.where(h > 0, (s + off) ** 2 / (2.0 * np.where(h > 0, h, 1.0)), np.inf)
        gains = np.where(_wrong_way(pieces, entering, self.s[entering], off), 0.0, gains)
        if self.bounded:
            low, high = self.low[entering], self.high[entering]
            near, far = np.where(low >= 0, low, -high), np.where(low >= 0, high, -low)
            pull, h = np.where(low >= 0, 1.0, -1.0) * self.s[entering] + off, np.maximum(h, 0.0)
            t = np.clip(pull / np.maximum(h, 1e-300), near, far)
            within = np.where(np.isfinite(t), t * (pull - 0.5 * h * t), np.inf)
            gains = np.where((low >= 0) | (high <= 0), np.minimum(gains, within + 1e-12 * np.abs(within)), gains)
        return np.asarray(gains)

    def swap_gains(self, pieces: Pieces, entering: Vector) -> Vector:
        """By how much each swap of a variable (row) for another (column) would lower it, at most: numerator up, denominator down."""
        s, off_s, h, off_h = self.s[entering], self.off_s[entering], np.maximum(self.h[entering], 0.0), self.off_h[entering]
        x, off_x, kappa, off_kappa = (part[:, None] for part in (self.x, self.off_x, self.kappa, self.off_kappa))
        W, off_w = self._solutions(entering)[: self.k], np.outer(self.size_v, self.off_w[entering])
        top = (np.abs(s) + off_s) ** 2 * (np.maximum(kappa, 0.0) + off_kappa)
        top += 2.0 * (s * W * x + off_s * np.abs(W * x) + (np.abs(s) + off_s) * (off_w * (np.abs(x) + off_x) + np.abs(W) * off_x))
        top -= np.maximum(np.abs(x) - off_x, 0.0) ** 2 * np.maximum(h - off_h, 0.0)
        bottom = 2.0 * (np.maximum(h - off_h, 0.0) * np.maximum(kappa - off_kappa, 0.0) + np.maximum(np.abs(W) - off_w, 0.0) ** 2)
        gains = np.where(bottom > 0, top / np.where(bottom > 0, bottom, 1.0), np.inf)
        gains = np.where(top <= 0, 0.0, gains)  # it gains nothing
        pull = kappa * s + W * x
        blur = off_kappa * np.abs(s) + (np.abs(kappa) + off_kappa) * off_s + off_w * np.abs(x) + (np.abs(W) + off_w) * off_x
        gains = np.where(_wrong_way(pieces, entering, pull, blur), 0.0, gains)
        if self.bounded:
            gains = np.minimum(gains, self._within_bounds(entering, W, pull, blur))
        return np.asarray(gains + self.own[:, None])

    def _within_bounds(self, entering: Vector, W: Vector, pull: Vector, blur: Vector) -> Vector:
        """The same where the entering variable keeps within its bounds, and above its floor: the largest t·pull − ½h·t² of such a t.

        Of a variable that may lie on either side of 0 nothing is said, nor where an equation needs the one that leaves.
        """
        low, high = self.low[entering], self.high[entering]
        side = np.where(low >= 0, 1.0, -1.0)
        near, far = np.where(low >= 0, low, -high), np.where(low >= 0, high, -low)
        kappa, x = np.maximum(self.kappa - self.off_kappa, 0.0)[:, None], np.maximum(np.abs(self.x) - self.off_x, 0.0)[:, None]
        W = np.maximum(np.abs(W) - np.outer(self.size_v, self.off_w[entering]), 0.0)
        known = (kappa > 0) & ((low >= 0) | (high <= 0))
        kappa = np.where(kappa > 0, kappa, 1.0)
        most = (self.kappa + self.off_kappa)[:, None]
        pull = np.maximum((side * pull + blur) / kappa, (side * pull + blur) / np.maximum(most, 1e-300))  # s once j has left, at most
        h = np.maximum(self.h[entering] - self.off_h[entering], 0.0) + W * W / np.maximum(most, 1e-300)  # at least
        t = np.clip(pull / np.maximum(h, 1e-300), near, far)
        gains = np.where(np.isfinite(t), t * (pull - 0.5 * h * t), np.inf) - x * x / (2.0 * np.maximum(most, 1e-300))
        return np.asarray(np.where(known, gains + 1e-12 * np.abs(gains), np.inf))


def _wrong_way(pieces: Pieces, entering: Vector, pull: Vector, blur: Vector) -> Vector:
    """Where an entering variable would certainly get the sign its bounds forbid: it stays at 0 and gains nothing."""
    if pieces.linear is None:
        return np.zeros(np.shape(pull), dtype=bool)
    up, down = pieces.linear.lower[entering] >= 0, pieces.linear.upper[entering] <= 0
    return np.asarray((up & (pull + blur <= 0)) | (down & (pull - blur >= 0)))


def _priced(pieces: Pieces, model: QuadraticModel, at: Candidate) -> tuple[Vector, float]:
    """r with the multipliers of rows and bounds in it, of the right sign each, and what they pay whatever the support."""
    r = model.r.copy()
    if pieces.linear is None:
        return r, model.constant - 0.5 * at.shift * at.radius**2
    price = np.maximum(at.row_price, 0.0)
    if price.size:
        r -= pieces.linear.G.T @ price
    r[at.support] += at.bound_price
    return r, model.constant - float(price @ pieces.linear.h)
