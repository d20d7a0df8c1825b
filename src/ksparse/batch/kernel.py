"""Local search for the supports of many right-hand sides, one after the other, as loops to be compiled.

On a support S the best x is M r_S with M = G_SS⁻¹. With P = M G_S, q = r − G_Sᵀx and d = diag(G) − diag(G_SᵀP),
variable j in the slot of s gains ½(q_j + P_sj x_s/M_ss)²/(d_j + P_sj²/M_ss) − ½x_s²/M_ss: exactly without signs, at
most that with them. The first swap whose gain is confirmed is taken. An empty slot s holds the variable n + s of the
identity with r = 0, so that adding a variable is a swap.

A support is left by the best swap until none gains. A perturbation empties some slots of the
best support and fills them with other variables, or adds variables to 2k and drops the cheapest, then descends. From a
support that it has not visited the search widens once more, and again while that helps. It ends when each perturbation
in a row has failed. The default settings do not reach the number of supports that are remembered.

Loops are written out, because copies and products of slices take long to compile.
"""

from __future__ import annotations

import numpy as np

from ksparse.util.compiled import Mask, Numbers, PlaceCube, Places, PlaceTable, Problem, Solved, Swaps, Table, inlined

MIN_RELATIVE_GAIN = 1e-9  # of what is left of ½‖b‖²: least gain of a move
ROUNDING_TOL = 1e-14  # of ½‖b‖²: rounding of arithmetic on the Gram matrix
INDEPENDENCE_TOL = 1e-9  # of a column's squares: least share that is independent of the support
VISITED, MAX_VISITED = 1024, 900  # places for hashes of the supports visited, and how many are remembered
MAX_FAILED = 16  # swaps in a row that promise a gain, violate a sign and fail


def search_each(
    G: Table, R: Table, half: Numbers, signed: Mask, starts: PlaceCube, perturbations: PlaceTable, hash_keys: Places,
    perturb_known: bool, supports: PlaceTable, x_best: Table, value_best: Numbers, share_best: Numbers,
) -> None:  # fmt: skip
    """Improve the incumbents in place for each row r of R: from its starts, then by perturbations.

    `perturb_known` is whether every incumbent is perturbed, or only one that this round has improved.
    """
    count, k, n = R.shape[0], supports.shape[1], G.shape[0] - 2 * supports.shape[1]
    best = S, M, x = np.empty(k, np.int64), np.empty((k, k)), np.empty(k)
    trial = np.empty(k, np.int64), np.empty((k, k)), np.empty(k)  # the support to try
    wider = np.empty(2 * k, np.int64), np.empty((2 * k, 2 * k)), np.empty(2 * k)  # the widened one
    T, W, q, d, score = trial[0], np.empty((2 * k, n)), np.empty(n), np.empty(n), np.empty(n)  # scores of adds
    swaps = np.empty((k, n)), q, d, np.empty((k, n))
    tabu, visited = np.empty(perturbations.shape[1] - 1, np.int64), np.empty(VISITED + 1, np.int64)
    for b in range(count):
        problem = G, R[b], signed, half[b]
        for at in range(len(visited)):
            visited[at] = 0
        mark_visited(visited, hash_keys, supports[b])
        start, failed = 0, 0 if perturb_known else len(perturbations)
        widen, before = False, np.inf  # whether to continue from the end of a descent, and its value
        while start < starts.shape[1] or (
            (widen or failed < len(perturbations)) and half[b] + value_best[b] > ROUNDING_TOL * half[b]
        ):
            given = start < starts.shape[1]
            for s in range(k):
                T[s] = S[s] if widen else starts[b, start, s] if given else supports[b, s]
            for e in range(len(tabu)):
                tabu[e] = -1
            widened = widen
            if not widen and not given:
                turn = (start - starts.shape[1]) % len(perturbations)
                widened = perturbations[turn, 0] > 0
                for e in range(len(tabu)):
                    slot = perturbations[turn, 1 + e]
                    if slot >= 0:
                        tabu[e], T[slot] = T[slot], n + slot
            if widened:
                widen_support(problem, tabu, trial, wider, W, q, d, score)
            value, known = descend(problem, tabu, visited, hash_keys, best, trial, swaps)
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
            elif not widen and not given:
                failed += 1
            start += not widen
            widen = not known and (
                not widen or value < before - MIN_RELATIVE_GAIN * (half[b] + before) - ROUNDING_TOL * half[b]
            )
            before = value


def descend(
    problem: Problem, tabu: Places, visited: Places, hash_keys: Places, best: Solved, trial: Solved, swaps: Swaps
) -> tuple[float, bool]:
    """Make the best swap from T until none gains: S, x and M are then of the best support.

    Return its value, and whether the search has been there before.
    """
    (G, r, signed, half), (S, M, x), (T, M_T, x_T) = problem, best, trial
    gain, least = swaps[3], np.empty(1)  # of swaps, and the least that counts
    # positive numbers are in the order of their bits, and the largest integer is found faster
    bits, least_bits = gain.view(np.int64), least.view(np.int64)
    k, n = gain.shape
    value, tries, empty = np.inf, 0, -1
    while True:
        solve(G, r, k, T, M_T, x_T)
        drop_wrong_signs(signed, n, k, T, M_T, x_T)
        value_T = 0.0
        for s in range(k):
            value_T -= 0.5 * r[T[s]] * x_T[s]
        if value == np.inf or value_T < value - least[0]:
            value, tries, empty = value_T, 0, -1
            for s in range(k):
                S[s], x[s] = T[s], x_T[s]
                for t in range(k):
                    M[s, t] = M_T[s, t]
                if S[s] >= n:
                    empty = s
            if empty < 0:
                for e in range(len(tabu)):
                    tabu[e] = -1
                if mark_visited(visited, hash_keys, S):
                    return value, True
            rank_swaps(problem, empty, tabu, best, swaps)
            least[0] = MIN_RELATIVE_GAIN * (half + value) + ROUNDING_TOL * half
        else:
            tries += 1
            if tries > MAX_FAILED:
                return value, False
        leaving, highest = -1, least_bits[0]
        for s in range(k):
            if empty < 0 or s == empty:
                row = highest
                for j in range(n):
                    row = max(row, bits[s, j])
                if row > highest:
                    leaving, highest = s, row
        if leaving < 0:
            return value, False
        entering = 0
        while bits[leaving, entering] != highest:
            entering += 1
        gain[leaving, entering] = -1.0
        for s in range(k):
            T[s] = S[s]
        T[leaving] = entering


@inlined
def mark_visited(visited: Places, hash_keys: Places, S: Places) -> bool:
    """Mark a support, whatever the order of its slots, unless many are marked; return whether it was marked before."""
    key = 0
    for s in range(len(S)):
        key ^= hash_keys[S[s]]
    at = key & (VISITED - 1)
    while visited[at] != 0 and visited[at] != key:
        at = (at + 1) & (VISITED - 1)
    if visited[at] == key:
        return key != 0
    if visited[VISITED] < MAX_VISITED:
        visited[at] = key
        visited[VISITED] += 1
    return False


@inlined
def solve(G: Table, r: Numbers, size: int, T: Places, M: Table, x: Numbers) -> None:
    """Compute M = G_TT⁻¹ by Gauss–Jordan steps and x = M r_T, of the first slots."""
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


@inlined
def drop(slot: int, n: int, size: int, T: Places, M: Table, x: Numbers) -> None:
    """Empty a slot of M, x and T."""
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


@inlined
def drop_wrong_signs(signed: Mask, n: int, size: int, T: Places, M: Table, x: Numbers) -> None:
    """Drop the variables of the wrong sign, the cheapest first."""
    while True:
        wrong, lost = -1, np.inf
        for s in range(size):
            if signed[T[s]] and x[s] <= 0.0 and x[s] * x[s] / M[s, s] < lost:
                wrong, lost = s, x[s] * x[s] / M[s, s]
        if wrong < 0:
            break
        drop(wrong, n, size, T, M, x)


def widen_support(
    problem: Problem, tabu: Places, trial: Solved, wider: Solved, W: Table, q: Numbers, d: Numbers, score: Numbers
) -> None:
    """Add variables to T up to 2k, each the one that gains most, then drop the cheapest until k are left."""
    (G, r, signed, _), (T, _, _), (wide, M, x) = problem, trial, wider
    bits, k, n, size = score.view(np.int64), len(T), len(q), 0
    for j in range(n):
        q[j], d[j] = r[j], 1.0
    for e in range(len(tabu)):
        if 0 <= tabu[e] < n:
            d[tabu[e]] = 0.0
    for c in range(2 * k):
        pick = -1
        if c < k:
            pick = T[c] if T[c] < n else -1
        else:
            for j in range(n):
                allowed = d[j] > INDEPENDENCE_TOL and not (signed[j] and q[j] <= 0.0)
                score[j] = q[j] * q[j] / d[j] if allowed else 0.0
            highest = np.int64(0)
            for j in range(n):
                highest = max(highest, bits[j])
            if highest > 0:
                pick = 0
                while bits[pick] != highest:
                    pick += 1
        if pick < 0:
            continue
        for j in range(n):
            W[size, j] = G[pick, j]
        for s in range(size):
            factor = W[s, pick]
            for j in range(n):
                W[size, j] -= factor * W[s, j]
        scale = 1.0 / np.sqrt(d[pick])
        slope = scale * q[pick]
        for j in range(n):
            W[size, j] *= scale
            d[j] -= W[size, j] * W[size, j]
            q[j] -= slope * W[size, j]
        d[pick], wide[size] = 0.0, pick
        size += 1
    solve(G, r, size, wide, M, x)
    while True:
        drop_wrong_signs(signed, n, size, wide, M, x)
        cheapest, lost, held = -1, np.inf, 0
        for s in range(size):
            if wide[s] < n:
                held += 1
                if x[s] * x[s] / M[s, s] < lost:
                    cheapest, lost = s, x[s] * x[s] / M[s, s]
        if held <= k:
            break
        drop(cheapest, n, size, wide, M, x)
    slot = 0
    for s in range(size):
        if wide[s] < n:
            T[slot] = wide[s]
            slot += 1
    for s in range(slot, k):
        T[s] = n + s


def rank_swaps(problem: Problem, empty: int, tabu: Places, best: Solved, swaps: Swaps) -> None:
    """Compute P, q and d, then what each swap would gain without signs; −1 where it is not allowed."""
    (G, r, signed, _), (S, M, x), (P, q, d, gain) = problem, best, swaps
    k, n = P.shape
    for j in range(n):
        q[j], d[j] = r[j], 1.0
    for s in range(k):
        for j in range(n):
            P[s, j] = 0.0
    for s in range(k):
        i = S[s]
        for j in range(n):
            q[j] -= x[s] * G[i, j]
        for t in range(k):
            factor = M[t, s]
            for j in range(n):
                P[t, j] += factor * G[i, j]
    for s in range(k):
        i = S[s]
        for j in range(n):
            d[j] -= G[i, j] * P[s, j]
    for s in range(k):
        if empty >= 0 and s != empty:
            for j in range(n):
                gain[s, j] = -1.0
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
