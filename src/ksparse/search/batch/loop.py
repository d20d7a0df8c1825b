"""The batch search as one compiled loop, one right-hand side after the other: what `by_arrays` does by whole arrays.

It remembers at most 900 supports per right-hand side, `by_arrays` all of them; default settings do not reach as many.

Functions within the loop are part of it when it is compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def descend_each(
    G: Any, R: Any, half: Any, signed: Any, starts: Any, kicks: Any, keys: Any, kicked: bool, looked: int, least: float, rounding: float,
    independent: float, supports: Any, x_best: Any, value_best: Any, share_best: Any,
) -> None:  # fmt: skip
    """`supports`, `x_best` and `value_best` (in place) improved for each row r of R, as in `by_arrays.descend_all`.

    `share_best` is the `Best.share` of each, 0 where it would have to be computed.
    """
    count, k, n = R.shape[0], supports.shape[1], G.shape[0] - 2 * supports.shape[1]
    S, T, x, x_T = np.empty(k, np.int64), np.empty(k, np.int64), np.empty(k), np.empty(k)
    M, M_T, P, gain = np.empty((k, k)), np.empty((k, k)), np.empty((k, n)), np.empty((k, n))
    q, d, barred = np.empty(n), np.empty(n), np.empty(kicks.shape[1] - 1, np.int64)
    W, wide, x_wide, M_wide = np.empty((2 * k, n)), np.empty(2 * k, np.int64), np.empty(2 * k), np.empty((2 * k, 2 * k))
    bar, score = (
        np.empty(1),
        np.empty(n),
    )  # what an exchange must gain; what each would gain in a support that is widened
    # positive numbers are in the order of their bits, whose largest is found faster
    ranks, floor, score_ranks = gain.view(np.int64), bar.view(np.int64), score.view(np.int64)
    table = np.zeros(1024, np.int64)  # keys of the supports where it has been

    def stand(
        r: Any, size: int, T: Any, M: Any, x: Any
    ) -> None:  # M = G_TT⁻¹ by Gauss–Jordan steps, x = M r_T, of the first seats
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

    def leave(seat: int, size: int, T: Any, M: Any, x: Any) -> None:  # M, x and T without the member in a seat
        for s in range(size):
            if s != seat:
                factor = M[s, seat] / M[seat, seat]
                x[s] -= factor * x[seat]
                for t in range(size):
                    if t != seat:
                        M[s, t] -= factor * M[seat, t]
        for s in range(size):
            M[s, seat] = M[seat, s] = 0.0
        M[seat, seat], x[seat], T[seat] = 1.0, 0.0, n + seat

    def drop_wrong(
        size: int, T: Any, M: Any, x: Any
    ) -> None:  # who has the wrong sign leaves, the one that costs least first
        while True:
            wrong, lost = -1, np.inf
            for s in range(size):
                if signed[T[s]] and x[s] <= 0.0 and x[s] * x[s] / M[s, s] < lost:
                    wrong, lost = s, x[s] * x[s] / M[s, s]
            if wrong < 0:
                break
            leave(wrong, size, T, M, x)

    def slot(key: int) -> int:  # where a key is in the table, or would be
        at = key & 1023
        while table[at] != 0 and table[at] != key:
            at = (at + 1) & 1023
        return at

    for b in range(count):
        r = R[b]
        table[:] = 0
        held, start, failed = 1, 0, 0 if kicked else len(kicks)
        along, before, key = False, np.inf, 0  # whether it goes on from where a descent has ended, and from which value
        for s in range(k):
            key ^= keys[supports[b, s]]
        table[slot(key)] = key
        while start < starts.shape[1] or (
            (along or failed < len(kicks)) and half[b] + value_best[b] > rounding * half[b]
        ):
            barred[:] = -1
            widened, known = along, False
            for s in range(k):
                T[s] = S[s] if along else starts[b, start, s] if start < starts.shape[1] else supports[b, s]
            if not along and start >= starts.shape[1]:
                kick = kicks[(start - starts.shape[1]) % len(kicks)]
                widened = kick[0] > 0
                for e in range(len(barred)):
                    if kick[1 + e] >= 0:
                        barred[e], T[kick[1 + e]] = T[kick[1 + e]], n + kick[1 + e]
            if widened:
                # to 2k members, each the one that gains most, by the rows W of a Cholesky factor; then back to k
                for j in range(n):
                    q[j], d[j] = r[j], 1.0
                for e in range(len(barred)):
                    if 0 <= barred[e] < n:
                        d[barred[e]] = 0.0
                size = 0
                for c in range(2 * k):
                    pick = -1
                    if c < k:
                        pick = T[c] if T[c] < n else -1
                    else:
                        for j in range(n):
                            allowed = d[j] > independent and not (signed[j] and q[j] <= 0.0)
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
                    for j in range(n):
                        w[j] = g[j]
                    for s in range(size):
                        v, factor = W[s], W[s, pick]
                        for j in range(n):
                            w[j] -= factor * v[j]
                    scale = 1.0 / np.sqrt(d[pick])
                    pull = scale * q[pick]
                    for j in range(n):
                        w[j] *= scale
                        d[j] -= w[j] * w[j]
                        q[j] -= pull * w[j]
                    d[pick], wide[size] = 0.0, pick
                    size += 1
                stand(r, size, wide, M_wide, x_wide)
                while True:
                    drop_wrong(size, wide, M_wide, x_wide)
                    cheapest, lost, members = -1, np.inf, 0
                    for s in range(size):
                        if wide[s] < n:
                            members += 1
                            if x_wide[s] * x_wide[s] / M_wide[s, s] < lost:
                                cheapest, lost = s, x_wide[s] * x_wide[s] / M_wide[s, s]
                    if members <= k:
                        break
                    leave(cheapest, size, wide, M_wide, x_wide)
                seat = 0
                for s in range(size):
                    if wide[s] < n:
                        T[seat] = wide[s]
                        seat += 1
                for s in range(seat, k):
                    T[s] = n + s
            value, tries, empty = np.inf, 0, -1
            while True:
                stand(r, k, T, M_T, x_T)
                drop_wrong(k, T, M_T, x_T)
                value_T = 0.0
                for s in range(k):
                    value_T -= 0.5 * r[T[s]] * x_T[s]
                worth = 0.0 if value == np.inf else least * (half[b] + value) + rounding * half[b]
                if value_T < value - worth:
                    value, tries, empty, key = value_T, 0, -1, 0
                    for s in range(k):
                        S[s], x[s] = T[s], x_T[s]
                        if S[s] >= n:
                            empty = s
                        key ^= keys[S[s]]
                        for t in range(k):
                            M[s, t] = M_T[s, t]
                    if empty < 0:
                        barred[:] = -1
                        known = table[slot(key)] == key
                        if known:
                            break
                        if held < 900:
                            table[slot(key)] = key
                            held += 1
                    # P = M G_S, q = r − G_Sᵀx, d = diag(G) − diag(G_SᵀP); then what each exchange would gain without signs
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
                            pull, bend = q[j] + P[s, j] * x[s] * m, d[j] + P[s, j] * P[s, j] * m
                            allowed = bend > independent and not (signed[j] and pull <= 0.0)
                            gain[s, j] = 0.5 * pull * pull / bend - lost if allowed else -1.0
                        for t in range(k):
                            if S[t] < n:
                                gain[s, S[t]] = -1.0
                        for e in range(len(barred)):
                            if 0 <= barred[e] < n:
                                gain[s, barred[e]] = -1.0
                    bar[0] = least * (half[b] + value) + rounding * half[b]
                else:
                    tries += 1
                    if tries > looked:
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
                for s in range(k):
                    T[s] = S[s]
                T[leaving] = entering
            if value < value_best[b] - least * (half[b] + value_best[b]) - rounding * half[b]:
                value_best[b], failed, share = value, 0, 1.0
                for s in range(k):
                    supports[b, s], x_best[b, s] = S[s], x[s]
                    share = min(share, 1.0 / M[s, s])
                    if S[s] < n:
                        d[S[s]] = 1.0
                for j in range(n):
                    share = min(share, d[j])
                share_best[b] = 0.0 if known else share  # at a known support d is of another one
            elif not along and start >= starts.shape[1]:
                failed += 1
            start += not along
            along = not known and (not along or value < before - least * (half[b] + before) - rounding * half[b])
            before = value
