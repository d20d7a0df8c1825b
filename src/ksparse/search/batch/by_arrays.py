"""The batch search by whole arrays: all right-hand sides of a block take their next step together.

On a support S the best x is M r_S with M = G_SS⁻¹. With P = M G_S, q = r − G_Sᵀx and d = diag(G) − diag(G_SᵀP), variable j in the seat of
member s gives ½(q_j + P_sj x_s/M_ss)²/(d_j + P_sj²/M_ss) − ½x_s²/M_ss: exactly without signs, at most that much with them. The first that
keeps what it says is taken. An empty seat s holds the variable n + s, which G knows as one of its own with no pull: so to add is to
exchange.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ksparse.search.batch.problem import BatchProblem, Best
from ksparse.util.arrays import Vector


@dataclass
class _Walkers:
    """Where each right-hand side stands."""

    R: Vector  # (count, n + k): the pulls Aᵀb, 0 for empty seats
    half: Vector  # ½‖b‖²
    T: Vector  # the supports that are tried next
    S: Vector  # those where they stand
    M: Vector
    x: Vector
    value: Vector
    gain: Vector
    barred: Vector  # who may not come back before all seats are taken
    tries: Vector
    start: Vector  # of how many starts and kicks they are at
    failed: Vector  # kicks in a row that brought nothing
    along: Vector  # whether they go on from where a descent has ended
    before: Vector  # the value there
    known: Vector  # whether they have come to where they were before
    seen: list[set[int]]


def descend_all(
    problem: BatchProblem, R: Vector, half: Vector, starts: Vector, kicks: Vector, kicked: bool, best: Best
) -> None:
    """`best` (in place) improved for each row of R: from its starts, then by kicks until each of them in a row brought nothing.

    A kick empties some seats of the best support, fills them with others, or more seats than there are and takes leave of the least
    useful, and descends. A place that it has not seen is left by way of more seats once again, and again while that helps: the best may be
    two steps away. `kicked` is whether the best so far is kicked too, or only what is better.
    """
    count, k, n = len(R), problem.k, problem.n
    w = _Walkers(
        R, half, starts[:, 0].copy(), np.empty((count, k), np.int64), np.empty((count, k, k)), np.empty((count, k)), np.full(count, np.inf),
        np.empty((count, k, n)), np.full((count, kicks.shape[1] - 1), -1), np.zeros(count, int), np.zeros(count, int),
        np.full(count, 0 if kicked else len(kicks)), np.zeros(count, bool), np.full(count, np.inf), np.zeros(count, bool),
        [{key} for key in problem.keys_of(best.support)],
    )  # fmt: skip
    going = np.arange(count)
    while going.size:
        ended = _step(problem, w, going)
        over = _next(problem, w, going[ended], starts, kicks, best)
        going = np.setdiff1d(going, over, assume_unique=True)


def _step(problem: BatchProblem, w: _Walkers, rows: Vector) -> Vector:
    """Each stands at what it tries, takes it where it is better, and chooses what to try next; which of them have come to an end."""
    M, x, T, value = _solved(problem, w.R[rows], w.T[rows])
    worth = _worth(problem, w.half[rows], w.value[rows])
    better = value < w.value[rows] - worth
    ended = np.zeros(len(rows), dtype=bool)
    taken = rows[better]
    w.M[taken], w.x[taken], w.S[taken], w.value[taken], w.tries[taken] = (
        M[better],
        x[better],
        T[better],
        value[better],
        0,
    )
    full = np.asarray((w.S[taken] < problem.n).all(axis=1))
    w.barred[taken[full]] = -1
    known = np.zeros(len(rows), dtype=bool)
    known[better] = [
        _known(w, b, key, whole) for b, key, whole in zip(taken, problem.keys_of(w.S[taken]), full, strict=True)
    ]
    w.known[rows] = known
    fresh = rows[better & ~known]
    w.gain[fresh] = _gains(problem, w, fresh)
    w.tries[rows[~better]] += 1
    ended |= known | (w.tries[rows] > problem.settings.batch_looked)
    flat = w.gain[rows].reshape(len(rows), -1)
    move = flat.argmax(axis=1)
    ended |= flat[np.arange(len(rows)), move] <= _worth(problem, w.half[rows], w.value[rows])
    leaving, entering = np.divmod(move[~ended], problem.n)
    on = rows[~ended]
    w.gain[on, leaving, entering] = -1.0
    w.T[on] = w.S[on]
    w.T[on, leaving] = entering
    return ended


def _known(w: _Walkers, b: int, key: int, full: bool) -> bool:
    """Whether it has been at a full support before; noted."""
    if not full or key not in w.seen[b]:
        if full:
            w.seen[b].add(key)
        return False
    return True


def _worth(problem: BatchProblem, half: Vector, value: Vector) -> Vector:
    """What an improvement is at least: a part of what is left of ½‖b‖², and more than rounding."""
    left = np.where(np.isinf(value), 0.0, half + value)
    return np.asarray(problem.least * left + problem.rounding * half)


def _solved(problem: BatchProblem, R: Vector, T: Vector) -> tuple[Vector, Vector, Vector, Vector]:
    """M, x, the support and the value, after those with the wrong sign have left one by one, who costs least first."""
    T = T.copy()
    M = np.linalg.inv(problem.G[T[:, :, None], T[:, None, :]])
    x = np.einsum("bst,bt->bs", M, np.take_along_axis(R, T, axis=1))
    _drop_wrong(problem, T, M, x)
    return M, x, T, -0.5 * np.einsum("bs,bs->b", np.take_along_axis(R, T, axis=1), x)


def _drop_wrong(problem: BatchProblem, T: Vector, M: Vector, x: Vector) -> None:
    """Who has the wrong sign leaves, in place: the one that costs least first, after whom another's may be right again."""
    every = np.arange(len(T))
    while True:
        cost = np.where(problem.signed[T] & (x <= 0.0), x**2 / np.einsum("bss->bs", M), np.inf)
        wrong = cost.argmin(axis=1)
        rows = every[cost[every, wrong] < np.inf]
        if not rows.size:
            return
        _leave(problem, rows, wrong[rows], T, M, x)


def _leave(problem: BatchProblem, rows: Vector, s: Vector, T: Vector, M: Vector, x: Vector) -> None:
    """In some rows M, x and T without the member of a seat, in place."""
    factor = M[rows, :, s] / M[rows, s, s][:, None]
    x[rows] -= factor * x[rows, s][:, None]
    M[rows] -= factor[:, :, None] * M[rows, s][:, None, :]
    M[rows, s] = M[rows, :, s] = x[rows, s] = 0.0
    M[rows, s, s], T[rows, s] = 1.0, problem.n + s


def _widened(problem: BatchProblem, R: Vector, T: Vector, barred: Vector) -> Vector:
    """To 2k members, each the one that gains most, by the rows W of a Cholesky factor; then back to k, the cheapest first."""
    n, k, every = problem.n, problem.k, np.arange(len(T))
    q, d = R[:, :n].copy(), np.ones((len(T), n))
    b, e = np.nonzero((barred >= 0) & (barred < n))
    d[b, barred[b, e]] = 0.0
    W, wide = np.zeros((len(T), 2 * k, n)), np.tile(np.arange(n, n + 2 * k), (len(T), 1))
    for c in range(2 * k):
        if c < k:
            rows = every[T[:, c] < n]
            pick = T[rows, c]
        else:
            allowed = (d > problem.independent) & ~(problem.signed[:n] & (q <= 0.0))
            worth = np.where(allowed, q**2 / np.where(allowed, d, 1.0), 0.0)
            rows = every[worth.max(axis=1) > 0.0]
            pick = worth[rows].argmax(axis=1)
        root, pull = np.sqrt(d[rows, pick])[:, None], q[rows, pick][:, None]
        W[rows, c] = (problem.G[pick, :n] - np.einsum("bs,bsj->bj", W[rows, :c, pick], W[rows, :c])) / root
        d[rows] -= W[rows, c] ** 2
        q[rows] -= pull / root * W[rows, c]
        d[rows, pick], wide[rows, c] = 0.0, pick
    M, x, wide, _ = _solved(problem, R, wide)
    while (many := (wide < n).sum(axis=1) > k).any():
        rows = every[many]
        cost = np.where(wide < n, x**2 / np.einsum("bss->bs", M), np.inf)
        _leave(problem, rows, cost[rows].argmin(axis=1), wide, M, x)
        _drop_wrong(problem, wide, M, x)
    order = np.argsort(wide >= n, axis=1, kind="stable")[:, :k]
    kept = np.take_along_axis(wide, order, axis=1)
    return np.where(kept < n, kept, n + np.arange(k))


def _gains(problem: BatchProblem, w: _Walkers, rows: Vector) -> Vector:
    """What each exchange would gain without signs, −1 where it is not allowed."""
    n, S, x = problem.n, w.S[rows], w.x[rows]
    G_S = problem.G[S, :n]
    P = w.M[rows] @ G_S
    q = w.R[rows, :n] - np.einsum("bs,bsj->bj", x, G_S)
    d = 1.0 - np.einsum("bsj,bsj->bj", G_S, P)
    m = 1.0 / np.einsum("bss->bs", w.M[rows])[:, :, None]
    pull, bend = q[:, None] + P * (x[:, :, None] * m), d[:, None] + P**2 * m
    allowed = (bend > problem.independent) & ~(problem.signed[:n] & (pull <= 0.0))
    gain = np.where(allowed, 0.5 * pull**2 / np.where(allowed, bend, 1.0) - 0.5 * x[:, :, None] ** 2 * m, -1.0)
    empty = S >= n
    seat = (
        S.shape[1] - 1 - empty[:, ::-1].argmax(axis=1)
    )  # the last empty one; while there is one the others keep theirs
    gain[np.asarray(empty.any(axis=1))[:, None] & (np.arange(S.shape[1]) != seat[:, None])] = -1.0
    for held in (S, w.barred[rows]):
        b, s = np.nonzero((held >= 0) & (held < n))
        gain[b, :, held[b, s]] = -1.0
    return gain


def _next(problem: BatchProblem, w: _Walkers, rows: Vector, starts: Vector, kicks: Vector, best: Best) -> Vector:
    """Note what those at an end have found and send them to their next start or kick; who has none left is over."""
    better = w.value[rows] < best.value[rows] - _worth(problem, w.half[rows], best.value[rows])
    won, along = rows[better], w.along[rows]
    best.support[won], best.x[won], best.value[won], w.failed[won] = w.S[won], w.x[won], w.value[won], 0
    w.failed[rows[~better & ~along & (w.start[rows] >= starts.shape[1])]] += 1
    w.start[rows[~along]] += 1
    gained = w.value[rows] < w.before[rows] - _worth(problem, w.half[rows], w.before[rows])
    along = w.along[rows] = ~w.known[rows] & (~along | gained)
    w.before[rows] = w.value[rows]
    w.value[rows], w.tries[rows], w.barred[rows] = np.inf, 0, -1
    perfect = w.half[rows] + best.value[rows] <= problem.rounding * w.half[rows]
    left = w.start[rows] < starts.shape[1]
    over = ~left & (perfect | ~along & (w.failed[rows] >= len(kicks)))
    begun = rows[left & ~along]
    w.T[begun] = starts[begun, w.start[begun]]
    kicked, on = rows[~left & ~over & ~along], rows[along & ~over]
    w.T[on] = w.S[on]
    kick = kicks[(w.start[kicked] - starts.shape[1]) % len(kicks)]
    b, e = np.nonzero(kick[:, 1:] >= 0)
    seats = kick[b, 1 + e]
    w.T[kicked] = best.support[kicked]
    w.barred[kicked[b], e] = w.T[kicked[b], seats]
    w.T[kicked[b], seats] = problem.n + seats
    wide = np.append(on, kicked[kick[:, 0] > 0])
    if wide.size:
        w.T[wide] = _widened(problem, w.R[wide], w.T[wide], w.barred[wide])
    return np.asarray(rows[over])
