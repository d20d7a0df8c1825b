"""Local search for the supports of many right-hand sides, one after the other, as one loop to be compiled.

A support is left by the best swap until none gains (formulas in `vectorised`). A perturbation empties some slots of the
best support and fills them with other variables, or adds variables to 2k and drops the cheapest, then descends. From a
support that it has not visited the search widens once more, and again while that helps. It ends when each perturbation
in a row has failed. At most 900 supports per right-hand side are remembered, which the default settings do not reach.

Inner functions are compiled with the loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np

MIN_RELATIVE_GAIN = 1e-9  # least gain of a move, relative to the objective
ROUNDING_TOL = 1e-14  # rounding of arithmetic on the Gram matrix, relative to ½‖b‖²
INDEPENDENCE_TOL = 1e-9  # least share of a column's squares that is independent of the support
MAX_FAILED = 16  # swaps in a row that promise a gain, violate a sign and fail


def search_each(
    G: Any, R: Any, half: Any, signed: Any, starts: Any, perturbations: Any, hash_keys: Any, perturb_known: bool,
    supports: Any, x_best: Any, value_best: Any, share_best: Any,
) -> None:  # fmt: skip
    """Improve the incumbents in place for each row r of R: from its starts, then by perturbations.

    `perturb_known` is whether every incumbent is perturbed, or only one that this round has improved.
    """
    count, k, n = R.shape[0], supports.shape[1], G.shape[0] - 2 * supports.shape[1]
    S, T, x, x_T = np.empty(k, np.int64), np.empty(k, np.int64), np.empty(k), np.empty(k)
    M, M_T, P, gain = np.empty((k, k)), np.empty((k, k)), np.empty((k, n)), np.empty((k, n))
    q, d, tabu = np.empty(n), np.empty(n), np.empty(perturbations.shape[1] - 1, np.int64)
    W, wide, x_wide, M_wide = np.empty((2 * k, n)), np.empty(2 * k, np.int64), np.empty(2 * k), np.empty((2 * k, 2 * k))
    bar, score = np.empty(1), np.empty(n)  # least gain of a swap; gains of adding to a widened support
    # positive numbers are in the order of their bits, and the largest integer is found faster
    ranks, floor, score_ranks = gain.view(np.int64), bar.view(np.int64), score.view(np.int64)
    table = np.zeros(1024, np.int64)  # hashes of the visited supports

    def solve(r: Any, size: int, T: Any, M: Any, x: Any) -> None:
        # M = G_TT⁻¹ by Gauss–Jordan steps and x = M r_T, of the first slots
        for s in range(size):
            for t in range(size):
                M[s, t] = G[T[s], T[t]]
        for s in range(size):
            pivot = M[s, s]
            M[s, s] = 1.0
            for t in range(size):
                M[s, t] /= pivot
            for u in range(size):
                if u != s:
                    factor = M[u, s]
                    M[u, s] = 0.0
                    for t in range(size):
                        M[u, t] -= factor * M[s, t]
        for s in range(size):
            x[s] = 0.0
            for t in range(size):
                x[s] += M[s, t] * r[T[t]]

    def drop(slot: int, size: int, T: Any, M: Any, x: Any) -> None:  # empties a slot of M, x and T
        for s in range(size):
            if s != slot:
                factor = M[s, slot] / M[slot, slot]
                x[s] -= factor * x[slot]
                for t in range(size):
                    if t != slot:
                        M[s, t] -= factor * M[slot, t]
        for s in range(size):
            M[s, slot] = M[slot, s] = 0.0
        M[slot, slot], x[slot], T[slot] = 1.0, 0.0, n + slot

    def drop_wrong_signs(size: int, T: Any, M: Any, x: Any) -> None:  # the cheapest first
        while True:
            wrong, lost = -1, np.inf
            for s in range(size):
                if signed[T[s]] and x[s] <= 0.0 and x[s] * x[s] / M[s, s] < lost:
                    wrong, lost = s, x[s] * x[s] / M[s, s]
            if wrong < 0:
                break
            drop(wrong, size, T, M, x)

    def place_of(key: int) -> int:  # where a hash is in the table, or would be
        at = key & 1023
        while table[at] != 0 and table[at] != key:
            at = (at + 1) & 1023
        return at

    for b in range(count):
        r = R[b]
        table[:] = 0
        held, start, failed = 1, 0, 0 if perturb_known else len(perturbations)
        widen, before, key = False, np.inf, 0  # whether to continue from the end of a descent, and its value
        for s in range(k):
            key ^= hash_keys[supports[b, s]]
        table[place_of(key)] = key
        while start < starts.shape[1] or (
            (widen or failed < len(perturbations)) and half[b] + value_best[b] > ROUNDING_TOL * half[b]
        ):
            tabu[:] = -1
            widened, known = widen, False
            for s in range(k):
                T[s] = S[s] if widen else starts[b, start, s] if start < starts.shape[1] else supports[b, s]
            if not widen and start >= starts.shape[1]:
                turn = perturbations[(start - starts.shape[1]) % len(perturbations)]
                widened = turn[0] > 0
                for e in range(len(tabu)):
                    if turn[1 + e] >= 0:
                        tabu[e], T[turn[1 + e]] = T[turn[1 + e]], n + turn[1 + e]
            if widened:
                # add variables to 2k, each the one that gains most, by the rows W of a Cholesky factor; then drop to k
                for j in range(n):
                    q[j], d[j] = r[j], 1.0
                for e in range(len(tabu)):
                    if 0 <= tabu[e] < n:
                        d[tabu[e]] = 0.0
                size = 0
                for c in range(2 * k):
                    pick = -1
                    if c < k:
                        pick = T[c] if T[c] < n else -1
                    else:
                        for j in range(n):
                            allowed = d[j] > INDEPENDENCE_TOL and not (signed[j] and q[j] <= 0.0)
                            score[j] = q[j] * q[j] / d[j] if allowed else 0.0
                        most = np.int64(0)
                        for j in range(n):
                            most = max(most, score_ranks[j])
                        if most > 0:
                            pick = 0
                            while score_ranks[pick] != most:
                                pick += 1
                    if pick < 0:
                        continue
                    w, g = W[size], G[pick]
                    w[:] = g[:n]
                    for s in range(size):
                        v, factor = W[s], W[s, pick]
                        for j in range(n):
                            w[j] -= factor * v[j]
                    scale = 1.0 / np.sqrt(d[pick])
                    slope = scale * q[pick]
                    for j in range(n):
                        w[j] *= scale
                        d[j] -= w[j] * w[j]
                        q[j] -= slope * w[j]
                    d[pick], wide[size] = 0.0, pick
                    size += 1
                solve(r, size, wide, M_wide, x_wide)
                while True:
                    drop_wrong_signs(size, wide, M_wide, x_wide)
                    cheapest, lost, held_slots = -1, np.inf, 0
                    for s in range(size):
                        if wide[s] < n:
                            held_slots += 1
                            if x_wide[s] * x_wide[s] / M_wide[s, s] < lost:
                                cheapest, lost = s, x_wide[s] * x_wide[s] / M_wide[s, s]
                    if held_slots <= k:
                        break
                    drop(cheapest, size, wide, M_wide, x_wide)
                slot = 0
                for s in range(size):
                    if wide[s] < n:
                        T[slot] = wide[s]
                        slot += 1
                for s in range(slot, k):
                    T[s] = n + s
            value, tries, empty = np.inf, 0, -1
            while True:
                solve(r, k, T, M_T, x_T)
                drop_wrong_signs(k, T, M_T, x_T)
                value_T = 0.0
                for s in range(k):
                    value_T -= 0.5 * r[T[s]] * x_T[s]
                min_gain = 0.0 if value == np.inf else MIN_RELATIVE_GAIN * (half[b] + value) + ROUNDING_TOL * half[b]
                if value_T < value - min_gain:
                    value, tries, empty, key = value_T, 0, -1, 0
                    S[:], x[:], M[:] = T, x_T, M_T
                    for s in range(k):
                        if S[s] >= n:
                            empty = s
                        key ^= hash_keys[S[s]]
                    if empty < 0:
                        tabu[:] = -1
                        known = table[place_of(key)] == key
                        if known:
                            break
                        if held < 900:
                            table[place_of(key)] = key
                            held += 1
                    # P = M G_S, q = r − G_Sᵀx, d = diag(G) − diag(G_SᵀP); then what each exchange would gain without
                    # signs
                    for j in range(n):
                        q[j], d[j] = r[j], 1.0
                    P[:] = 0.0
                    for s in range(k):
                        g = G[S[s]]
                        for j in range(n):
                            q[j] -= x[s] * g[j]
                        for t in range(k):
                            for j in range(n):
                                P[t, j] += M[t, s] * g[j]
                    for s in range(k):
                        g = G[S[s]]
                        for j in range(n):
                            d[j] -= g[j] * P[s, j]
                    for s in range(k):
                        if empty >= 0 and s != empty:
                            gain[s] = -1.0
                            continue
                        m = 1.0 / M[s, s]
                        lost = 0.5 * x[s] * x[s] * m
                        for j in range(n):
                            slope, curvature = q[j] + P[s, j] * x[s] * m, d[j] + P[s, j] * P[s, j] * m
                            allowed = curvature > INDEPENDENCE_TOL and not (signed[j] and slope <= 0.0)
                            gain[s, j] = 0.5 * slope * slope / curvature - lost if allowed else -1.0
                        for t in range(k):
                            if S[t] < n:
                                gain[s, S[t]] = -1.0
                        for e in range(len(tabu)):
                            if 0 <= tabu[e] < n:
                                gain[s, tabu[e]] = -1.0
                    bar[0] = MIN_RELATIVE_GAIN * (half[b] + value) + ROUNDING_TOL * half[b]
                else:
                    tries += 1
                    if tries > MAX_FAILED:
                        break
                leaving, highest = -1, floor[0]
                for s in range(k):
                    if empty < 0 or s == empty:
                        row = highest
                        for j in range(n):
                            row = max(row, ranks[s, j])
                        if row > highest:
                            leaving, highest = s, row
                if leaving < 0:
                    break
                entering = 0
                while ranks[leaving, entering] != highest:
                    entering += 1
                gain[leaving, entering] = -1.0
                T[:] = S
                T[leaving] = entering
            if value < value_best[b] - MIN_RELATIVE_GAIN * (half[b] + value_best[b]) - ROUNDING_TOL * half[b]:
                value_best[b], failed, share = value, 0, 1.0
                for s in range(k):
                    supports[b, s], x_best[b, s] = S[s], x[s]
                    share = min(share, 1.0 / M[s, s])
                    if S[s] < n:
                        d[S[s]] = 1.0
                for j in range(n):
                    share = min(share, d[j])
                share_best[b] = 0.0 if known else share  # at a known support d is of another one
            elif not widen and start >= starts.shape[1]:
                failed += 1
            start += not widen
            widen = not known and (
                not widen or value < before - MIN_RELATIVE_GAIN * (half[b] + before) - ROUNDING_TOL * half[b]
            )
            before = value
