"""All k of several least-squares problems at once, by whole arrays: the folds of a cross-validation walk up and down k together.

One step for all of them costs a few products of small matrices; what `solve.walk` does for one path with proofs, and with every kind of
constraint, this does for many without.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ksparse.util.arrays import Vector
from ksparse.util.progress import track

INDEPENDENT = 1e-9  # of a column's squares: what must be left of it beside those of the support
WORTH = 1e-9  # of what is left of ½‖b‖²: a gain that is worth an exchange
EXCHANGES = 100  # for one k at most
BEYOND = 5  # the largest k that is asked for the walk goes before it turns: what is shrunk from there ends elsewhere


@dataclass(frozen=True)
class Standing:
    """At supports S of one size, one row per problem: M = G_SS⁻¹, x = M r_S, and what `by_arrays` calls P, q and d."""

    S: Vector
    M: Vector
    x: Vector
    P: Vector
    q: Vector
    d: Vector
    value: Vector  # ½xᵀGx − rᵀx


def stand(G: Vector, R: Vector, S: Vector) -> Standing:
    """Factorise there."""
    rows = np.arange(len(S))[:, None]
    G_S = G[rows, S]  # (count, k, n)
    M = np.linalg.inv(np.take_along_axis(G_S, S[:, None, :], axis=2)) if S.shape[1] else np.zeros((len(S), 0, 0))
    r = np.take_along_axis(R, S, axis=1)
    x = (M @ r[:, :, None])[:, :, 0]
    P = M @ G_S
    q = R - (x[:, None, :] @ G_S)[:, 0]
    d = np.einsum("bjj->bj", G) - np.einsum("bsj,bsj->bj", G_S, P)
    return Standing(S, M, x, P, q, d, -0.5 * np.einsum("bs,bs->b", r, x))


def grown(G: Vector, R: Vector, at: Standing) -> Standing:
    """With the variable that gains most; `LinAlgError` where one problem has none left that is independent of its support."""
    gain = np.where(at.d > INDEPENDENT, at.q**2 / np.maximum(at.d, INDEPENDENT), -1.0)
    np.put_along_axis(gain, at.S, -1.0, axis=1)
    if gain.max(axis=1).min() < 0.0:
        raise np.linalg.LinAlgError("the columns depend on each other")
    return stand(G, R, np.column_stack([at.S, gain.argmax(axis=1)]))


def shrunk(G: Vector, R: Vector, at: Standing) -> Standing:
    """Without the variable that costs least."""
    cost = at.x**2 / np.einsum("bss->bs", at.M)
    kept = np.argsort(cost == cost.min(axis=1, keepdims=True), axis=1, kind="stable")[:, : at.S.shape[1] - 1]
    return stand(G, R, np.take_along_axis(at.S, kept, axis=1))


def exchanged(G: Vector, R: Vector, half: Vector, at: Standing) -> Standing:
    """After exchanges of one variable for another, the best first, until none gains."""
    every, n = np.arange(len(R)), R.shape[1]
    for _ in range(EXCHANGES):
        m = 1.0 / np.einsum("bss->bs", at.M)[:, :, None]
        x = at.x[:, :, None]
        pull, bend = at.q[:, None] + at.P * (x * m), at.d[:, None] + at.P**2 * m
        gain = np.where(bend > INDEPENDENT, 0.5 * pull**2 / np.maximum(bend, INDEPENDENT), -1.0) - 0.5 * x**2 * m
        gain[every[:, None], :, at.S] = -1.0
        flat = gain.reshape(len(R), -1)
        move = flat.argmax(axis=1)
        better = flat[every, move] > WORTH * (half + at.value) + 1e-14 * half
        if not better.any():
            break
        S = at.S.copy()
        leaving, entering = np.divmod(move[better], n)
        S[every[better], leaving] = entering
        at = stand(G, R, S)
    return at


def walk_paths(G: Vector, R: Vector, half: Vector, most: int) -> list[Standing]:
    """The best supports that are found for every k up to `most`: grown, then shrunk, then grown again, exchanged at every k."""
    at = stand(G, R, np.zeros((len(R), 0), dtype=np.intp))
    best: list[Standing] = []
    for k in track(range(1, min(most + BEYOND, R.shape[1]) + 1), "paths, growing"):
        try:
            at = exchanged(G, R, half, grown(G, R, at))
        except np.linalg.LinAlgError:
            if k <= most:
                raise
            break
        best.append(at)
    for k in track(range(len(best) - 1, 0, -1), "paths, shrinking"):
        best[k - 1] = _better(G, R, best[k - 1], exchanged(G, R, half, shrunk(G, R, best[k])))
    for k in track(range(1, most), "paths, growing again"):
        best[k] = _better(G, R, best[k], exchanged(G, R, half, grown(G, R, best[k - 1])))
    return best[:most]


def _better(G: Vector, R: Vector, one: Standing, other: Standing) -> Standing:
    """Of two standings the better one, problem by problem."""
    wins = other.value < one.value
    return one if not wins.any() else stand(G, R, np.where(wins[:, None], other.S, one.S))
