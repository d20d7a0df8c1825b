"""The search of `kernel` by NumPy arrays, all right-hand sides of a part together: a second way, to compare."""

from __future__ import annotations

from typing import Any

import numpy as np

from ksparse.batch.kernel import INDEPENDENCE_TOL, MAX_FAILED, MIN_RELATIVE_GAIN, ROUNDING_TOL
from ksparse.util.arrays import Vector


def search_all(
    G: Vector, R: Vector, half: Vector, signed: Vector, starts: Vector, perturbations: Vector, hash_keys: Vector,
    perturb_known: bool, supports: Vector, x_best: Vector, value_best: Vector, share_best: Vector,
) -> None:  # fmt: skip
    """Improve the incumbents in place, as `kernel.search_each`; `share_best` is left as it is."""
    search = _Search(G, R, half, signed, starts, perturbations, hash_keys, supports, x_best, value_best)
    search.failed[:] = 0 if perturb_known else len(perturbations)
    going = np.arange(len(R))
    while going.size:
        finished = search.next(going[search.step(going)])
        going = np.setdiff1d(going, finished, assume_unique=True)


class _Search:
    """The state of each right-hand side: its support S, the support T to try next, its place in the starts."""

    def __init__(
        self, G: Vector, R: Vector, half: Vector, signed: Vector, starts: Vector, perturbations: Vector,
        hash_keys: Vector, supports: Vector, x_best: Vector, value_best: Vector,
    ) -> None:  # fmt: skip
        self.G, self.R, self.half, self.signed, self.starts = G, R, half, signed, starts
        self.perturbations, self.hash_keys = perturbations, hash_keys
        self.supports, self.x_best, self.value_best = supports, x_best, value_best
        count, self.k = supports.shape
        self.n = n = len(G) - 2 * self.k
        self.T, self.S = starts[:, 0].copy(), np.empty((count, self.k), np.int64)
        self.M, self.x = np.empty((count, self.k, self.k)), np.empty((count, self.k))
        self.value, self.gain = np.full(count, np.inf), np.empty((count, self.k, n))
        # variables that stay out until all slots are taken
        self.tabu = np.full((count, perturbations.shape[1] - 1), -1)
        self.tries, self.start, self.failed = (np.zeros(count, int) for _ in range(3))  # failed: perturbations in a row
        self.widened = np.zeros(count, dtype=bool)  # whether it continues from the end of a descent
        self.before = np.full(count, np.inf)  # the value there
        self.known = np.zeros(count, dtype=bool)  # whether it came to a support where it had been before
        self.visited = [{key} for key in self._hashes(supports)]

    def _hashes(self, supports: Vector) -> list[int]:
        return [int(key) for key in np.bitwise_xor.reduce(self.hash_keys[supports], axis=1)]

    def _min_gain(self, rows: Vector, value: Vector) -> Vector:
        """Return the least gain of an improvement: a share of what is left of ½‖b‖², and more than rounding."""
        left = np.where(np.isinf(value), 0.0, self.half[rows] + value)
        return np.asarray(MIN_RELATIVE_GAIN * left + ROUNDING_TOL * self.half[rows])

    def step(self, rows: Vector) -> Vector:
        """Evaluate each T, move there if it is better and choose the next; return which have come to an end."""
        M, x, T, value = self._solve(self.R[rows], self.T[rows])
        better = value < self.value[rows] - self._min_gain(rows, self.value[rows])
        taken = rows[better]
        self.M[taken], self.x[taken], self.S[taken], self.value[taken] = M[better], x[better], T[better], value[better]
        self.tries[taken] = 0
        full = np.asarray((self.S[taken] < self.n).all(axis=1))
        self.tabu[taken[full]] = -1
        known = np.zeros(len(rows), dtype=bool)
        for place, b, key, whole in zip(np.flatnonzero(better), taken, self._hashes(self.S[taken]), full, strict=True):
            known[place] = whole and key in self.visited[b]
            if whole:
                self.visited[b].add(key)
        self.known[rows] = known
        fresh = rows[better & ~known]
        self.gain[fresh] = self._gains(fresh)
        self.tries[rows[~better]] += 1
        ended = known | (self.tries[rows] > MAX_FAILED)
        flat = self.gain[rows].reshape(len(rows), -1)
        move = flat.argmax(axis=1)
        ended |= flat[np.arange(len(rows)), move] <= self._min_gain(rows, self.value[rows])
        leaving, entering = np.divmod(move[~ended], self.n)
        on = rows[~ended]
        self.gain[on, leaving, entering] = -1.0
        self.T[on] = self.S[on]
        self.T[on, leaving] = entering
        return ended

    def _solve(self, R: Vector, T: Vector) -> tuple[Vector, Vector, Vector, Vector]:
        """Return M, x, the support and the value after dropping variables of the wrong sign, the cheapest first."""
        T = T.copy()
        M = np.linalg.inv(self.G[T[:, :, None], T[:, None, :]])
        r = np.take_along_axis(R, T, axis=1)
        x = np.einsum("bst,bt->bs", M, r)
        self._drop_wrong_signs(T, M, x)
        return M, x, T, -0.5 * np.einsum("bs,bs->b", np.take_along_axis(R, T, axis=1), x)

    def _drop_wrong_signs(self, T: Vector, M: Vector, x: Vector) -> None:
        every = np.arange(len(T))
        while True:
            cost = np.where(self.signed[T] & (x <= 0.0), x**2 / np.einsum("bss->bs", M), np.inf)
            cheapest = cost.argmin(axis=1)
            rows = every[cost[every, cheapest] < np.inf]
            if not rows.size:
                return
            self._drop(rows, cheapest[rows], T, M, x)

    def _drop(self, rows: Vector, s: Vector, T: Vector, M: Vector, x: Vector) -> None:
        """Empty one slot of some rows, in place."""
        factor = M[rows, :, s] / M[rows, s, s][:, None]
        x[rows] -= factor * x[rows, s][:, None]
        M[rows] -= factor[:, :, None] * M[rows, s][:, None, :]
        M[rows, s] = M[rows, :, s] = x[rows, s] = 0.0
        M[rows, s, s], T[rows, s] = 1.0, self.n + s

    def _widen(self, rows: Vector) -> Vector:
        """Return supports after adding the best variables up to 2k and dropping the cheapest down to k."""
        n, k, R, T, tabu, every = self.n, self.k, self.R[rows], self.T[rows], self.tabu[rows], np.arange(len(rows))
        q, d = R[:, :n].copy(), np.ones((len(T), n))
        b, e = np.nonzero((tabu >= 0) & (tabu < n))
        d[b, tabu[b, e]] = 0.0
        # rows of a Cholesky factor
        W, wide = np.zeros((len(T), 2 * k, n)), np.tile(np.arange(n, n + 2 * k), (len(T), 1))
        for c in range(2 * k):
            if c < k:
                on = every[T[:, c] < n]
                pick = T[on, c]
            else:
                allowed = (d > INDEPENDENCE_TOL) & ~(self.signed[:n] & (q <= 0.0))
                gain = np.where(allowed, q**2 / np.where(allowed, d, 1.0), 0.0)
                on = every[gain.max(axis=1) > 0.0]
                pick = gain[on].argmax(axis=1)
            root, slope = np.sqrt(d[on, pick])[:, None], q[on, pick][:, None]
            W[on, c] = (self.G[pick, :n] - np.einsum("bs,bsj->bj", W[on, :c, pick], W[on, :c])) / root
            d[on] -= W[on, c] ** 2
            q[on] -= slope / root * W[on, c]
            d[on, pick], wide[on, c] = 0.0, pick
        M, x, wide, _ = self._solve(R, wide)
        while (many := (wide < n).sum(axis=1) > k).any():
            on = every[many]
            cost = np.where(wide < n, x**2 / np.einsum("bss->bs", M), np.inf)
            self._drop(on, cost[on].argmin(axis=1), wide, M, x)
            self._drop_wrong_signs(wide, M, x)
        order = np.argsort(wide >= n, axis=1, kind="stable")[:, :k]
        kept = np.take_along_axis(wide, order, axis=1)
        return np.where(kept < n, kept, n + np.arange(k))

    def _gains(self, rows: Vector) -> Vector:
        """Return what each swap would gain without signs, −1 if it is not allowed."""
        n, S, x, tabu = self.n, self.S[rows], self.x[rows], self.tabu[rows]
        G_S = self.G[S, :n]
        P = self.M[rows] @ G_S
        q = self.R[rows, :n] - np.einsum("bs,bsj->bj", x, G_S)
        d = 1.0 - np.einsum("bsj,bsj->bj", G_S, P)
        m = 1.0 / np.einsum("bss->bs", self.M[rows])[:, :, None]
        slope, curvature = q[:, None] + P * (x[:, :, None] * m), d[:, None] + P**2 * m
        allowed = (curvature > INDEPENDENCE_TOL) & ~(self.signed[:n] & (slope <= 0.0))
        gain = 0.5 * slope**2 / np.where(allowed, curvature, 1.0) - 0.5 * x[:, :, None] ** 2 * m
        gain[~allowed] = -1.0
        empty = S >= n
        last = self.k - 1 - empty[:, ::-1].argmax(axis=1)  # while a slot is empty, only the last empty one is filled
        gain[np.asarray(empty.any(axis=1))[:, None] & (np.arange(self.k) != last[:, None])] = -1.0
        for held in (S, tabu):
            b, s = np.nonzero((held >= 0) & (held < n))
            gain[b, :, held[b, s]] = -1.0
        return np.asarray(gain)

    def next(self, rows: Vector) -> Vector:
        """Record what each right-hand side found, start it from its next support, return those that have none."""
        best, starts = self.value_best[rows], self.starts
        better = self.value[rows] < best - self._min_gain(rows, best)
        won, widened = rows[better], self.widened[rows]
        self.supports[won], self.x_best[won], self.value_best[won] = self.S[won], self.x[won], self.value[won]
        self.failed[won] = 0
        self.failed[rows[~better & ~widened & (self.start[rows] >= starts.shape[1])]] += 1
        self.start[rows[~widened]] += 1
        gained = self.value[rows] < self.before[rows] - self._min_gain(rows, self.before[rows])
        widened = self.widened[rows] = ~self.known[rows] & (~widened | gained)
        self.before[rows] = self.value[rows]
        self.value[rows], self.tries[rows], self.tabu[rows] = np.inf, 0, -1
        perfect = self.half[rows] + self.value_best[rows] <= ROUNDING_TOL * self.half[rows]
        left = self.start[rows] < starts.shape[1]
        finished = ~left & (perfect | ~widened & (self.failed[rows] >= len(self.perturbations)))
        begun = rows[left & ~widened]
        self.T[begun] = starts[begun, self.start[begun]]
        perturbed, on = rows[~left & ~finished & ~widened], rows[widened & ~finished]
        self.T[on] = self.S[on]
        turn: Any = self.perturbations[(self.start[perturbed] - starts.shape[1]) % len(self.perturbations)]
        b, e = np.nonzero(turn[:, 1:] >= 0)
        slots = turn[b, 1 + e]
        self.T[perturbed] = self.supports[perturbed]
        self.tabu[perturbed[b], e] = self.T[perturbed[b], slots]
        self.T[perturbed[b], slots] = self.n + slots
        wide = np.append(on, perturbed[turn[:, 0] > 0])
        if wide.size:
            self.T[wide] = self._widen(wide)
        return np.asarray(rows[finished])
