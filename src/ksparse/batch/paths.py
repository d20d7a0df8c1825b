"""Supports for every k of several least-squares problems at once, such as the folds of a cross-validation.

One step for all problems costs a few products of small matrices. These paths have no proofs and no constraints;
`solve.path` has a single path with both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ksparse.batch.kernel import INDEPENDENCE_TOL, MIN_RELATIVE_GAIN, ROUNDING_TOL
from ksparse.util.arrays import Vector
from ksparse.util.progress import track

MAX_SWAPS = 100  # maximum number of swaps for one k
BEYOND = 5  # by how much k exceeds the largest before it shrinks again: supports found on the way down differ


@dataclass(frozen=True)
class BatchState:
    """A support S of one size per problem (row) with M = G_SS⁻¹, x = M r_S, and P, q and d as in `kernel`."""

    S: Vector
    M: Vector
    x: Vector
    P: Vector
    q: Vector
    d: Vector
    value: Vector  # ½xᵀGx − rᵀx


def evaluate_supports(G: Vector, R: Vector, S: Vector) -> BatchState:
    """Solve every problem on its support."""
    rows = np.arange(len(S))[:, None]
    G_S = G[rows, S]  # (count, k, n)
    M = np.linalg.inv(np.take_along_axis(G_S, S[:, None, :], axis=2)) if S.shape[1] else np.zeros((len(S), 0, 0))
    r = np.take_along_axis(R, S, axis=1)
    x = (M @ r[:, :, None])[:, :, 0]
    P = M @ G_S
    q = R - (x[:, None, :] @ G_S)[:, 0]
    d = np.einsum("bjj->bj", G) - np.einsum("bsj,bsj->bj", G_S, P)
    return BatchState(S, M, x, P, q, d, -0.5 * np.einsum("bs,bs->b", r, x))


def add_best(G: Vector, R: Vector, at: BatchState) -> BatchState:
    """Add the variable that gains most; `LinAlgError` if a problem has none left that is independent of its support."""
    gain = np.where(at.d > INDEPENDENCE_TOL, at.q**2 / np.maximum(at.d, INDEPENDENCE_TOL), -1.0)
    np.put_along_axis(gain, at.S, -1.0, axis=1)
    if gain.max(axis=1).min() < 0.0:
        raise np.linalg.LinAlgError("the columns depend on each other")
    return evaluate_supports(G, R, np.column_stack([at.S, gain.argmax(axis=1)]))


def drop_cheapest(G: Vector, R: Vector, at: BatchState) -> BatchState:
    """Drop the variable that costs least."""
    cost = at.x**2 / np.einsum("bss->bs", at.M)
    kept = np.argsort(cost == cost.min(axis=1, keepdims=True), axis=1, kind="stable")[:, : at.S.shape[1] - 1]
    return evaluate_supports(G, R, np.take_along_axis(at.S, kept, axis=1))


def swap_to_local_optimum(G: Vector, R: Vector, half: Vector, at: BatchState) -> BatchState:
    """Make the best swap of each problem until none gains."""
    every, n = np.arange(len(R)), R.shape[1]
    for _ in range(MAX_SWAPS):
        m = 1.0 / np.einsum("bss->bs", at.M)[:, :, None]
        x = at.x[:, :, None]
        slope, curvature = at.q[:, None] + at.P * (x * m), at.d[:, None] + at.P**2 * m
        independent = curvature > INDEPENDENCE_TOL
        gain = np.where(independent, 0.5 * slope**2 / np.maximum(curvature, INDEPENDENCE_TOL), -1.0) - 0.5 * x**2 * m
        gain[every[:, None], :, at.S] = -1.0
        flat = gain.reshape(len(R), -1)
        move = flat.argmax(axis=1)
        better = flat[every, move] > MIN_RELATIVE_GAIN * (half + at.value) + ROUNDING_TOL * half
        if not better.any():
            break
        S = at.S.copy()
        leaving, entering = np.divmod(move[better], n)
        S[every[better], leaving] = entering
        at = evaluate_supports(G, R, S)
    return at


def batched_k_paths(G: Vector, R: Vector, half: Vector, largest: int) -> list[BatchState]:
    """Return the best supports found for every k up to `largest`: grow, shrink, grow again, with swaps at every k."""
    at = evaluate_supports(G, R, np.zeros((len(R), 0), dtype=np.intp))
    best: list[BatchState] = []
    for k in track(range(1, min(largest + BEYOND, R.shape[1]) + 1), "paths, growing"):
        try:
            at = swap_to_local_optimum(G, R, half, add_best(G, R, at))
        except np.linalg.LinAlgError:
            if k <= largest:
                raise
            break
        best.append(at)
    for k in track(range(len(best) - 1, 0, -1), "paths, shrinking"):
        best[k - 1] = _better(G, R, best[k - 1], swap_to_local_optimum(G, R, half, drop_cheapest(G, R, best[k])))
    for k in track(range(1, largest), "paths, growing again"):
        best[k] = _better(G, R, best[k], swap_to_local_optimum(G, R, half, add_best(G, R, best[k - 1])))
    return best[:largest]


def _better(G: Vector, R: Vector, one: BatchState, other: BatchState) -> BatchState:
    """Return the better of two states, problem by problem."""
    wins = other.value < one.value
    return one if not wins.any() else evaluate_supports(G, R, np.where(wins[:, None], other.S, one.S))
