"""Local search over supports: add, drop and swap until nothing improves, for convex losses.

Every move has a gain from the model's factorisation (see `gains`). Under equations alone these are the gains themselves.
With inequalities the model carries the multipliers of the current optimum, and by weak duality its gains bound the true ones
from above: candidates are walked in falling order and re-solved exactly, the first that improves is taken, and when none is
left above 0 the support is likely to be swap-optimal: `proof` decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ksparse.base.arrays import Vector
from ksparse.linalg.model import QuadraticModel
from ksparse.search.gains import Factor, add_gains, drop_losses, factor, swap_gains
from ksparse.search.proof import prove
from ksparse.search.task import Candidate, Task, tolerance

EVALUATIONS = 3_000  # exact re-solves in one search, where the model certifies
GUESSES = 12  # exact re-solves per sweep, where it only ranks
CHUNK = 256  # candidates sorted at a time


@dataclass(frozen=True)
class Found:
    """Where a search ended."""

    best: Candidate
    swaps: int  # moves made
    proved: bool  # whether no add, drop or swap improves, by proof


def search(task: Task, start: Candidate) -> Found:
    """Improve a candidate by add, drop and swap moves until none helps or the budget is spent."""
    best, moves, budget = start, 0, EVALUATIONS
    while not task.expired:
        model = task.ranking_model(best)
        if model is None:
            break
        better, tried = _exact_sweep(task, model, best) if task.exact_gains else _walk(task, model, best, budget)
        budget -= tried
        if better is None:
            break
        best, moves = better, moves + 1
    return Found(best, moves, False)


def settle(task: Task, start: Candidate) -> Found:
    """A search, and a proof that nothing is left to exchange; where that meets something better all over again from there."""
    found = search(task, start)
    moves = found.swaps
    while task.certifying and not task.expired:
        assert task.model is not None
        proof = prove(task, task.model, found.best, EVALUATIONS)
        if proof.better is None:
            return Found(found.best, moves, proof.proved)
        found = search(task, proof.better)
        moves += 1 + found.swaps
    return Found(found.best, moves, False)


def certified_factor(task: Task, model: QuadraticModel, at: Candidate) -> tuple[Factor, Vector]:
    """The factorisation with the multipliers in r, and the constant that each member's own bound contributes."""
    r = model.r.copy()
    own: Vector = np.zeros(at.support.size)
    E, f = np.zeros((0, task.n)), np.zeros(0)
    if task.linear is not None:
        E, f = task.linear.E, task.linear.f
        if task.linear.h.size:
            r -= task.linear.G.T @ at.row_price
        r[at.support] += at.bound_price
        own = at.bound_price * at.x  # a price is paid only at the bound, where x is the bound
    return factor(model.rows(at.support), at.support, E, f, r, model.diagonal, at.shift), own


# --- equations alone: the gains are the gains -----------------------------------------------------------------------------


Sweep = tuple[Candidate | None, int]  # a better candidate, supports tried


def _exact_sweep(task: Task, model: QuadraticModel, at: Candidate) -> Sweep:
    """The best add while a seat is free, else the best swap, several at once where they do not hinder each other."""
    found, _ = certified_factor(task, model, at)
    if found.singular:  # the gains only rank
        return _walk(task, model, at, GUESSES)
    outsiders, tiny = task.outsiders(at), tolerance(task, at.value)
    if at.support.size < task.k and outsiders.size:
        gains = add_gains(found)[outsiders]
        i = int(np.argmax(gains))
        if gains[i] > tiny:
            return _accept(task, at, np.append(at.support, outsiders[i]), tiny)
    if not outsiders.size or not at.support.size:
        return None, 0
    table = swap_gains(found, outsiders)
    table[np.isin(at.support, task.forced)] = -np.inf
    pairs = _disjoint(table, tiny, most=max(1, at.support.size // 8))
    if not pairs:
        return None, 0
    support = at.support.copy()
    for j, i in pairs:
        support[j] = outsiders[i]
    several = task.evaluate(support, at)
    if several is not None and several.value < at.value - max(tiny, 0.999 * table[pairs[0]]):
        return several, 1
    support = at.support.copy()
    support[pairs[0][0]] = outsiders[pairs[0][1]]
    return _accept(task, at, support, tiny)


def _accept(task: Task, at: Candidate, support: Vector, tiny: float) -> Sweep:
    """The candidate on a support if it is better; where rounding spoiled a promised gain the search ends."""
    tried = task.evaluate(support, at)
    return (tried if tried is not None and tried.value < at.value - 0.1 * tiny else None), 1


def _disjoint(table: Vector, tiny: float, most: int) -> list[tuple[int, int]]:
    """The best swap, and further ones of at least half its gain that share no variable with those before."""
    best = float(table.max(initial=-np.inf))
    if best <= tiny:
        return []
    rows, columns = np.nonzero(table >= max(0.5 * best, tiny))
    order = np.argsort(-table[rows, columns], kind="stable")
    pairs: list[tuple[int, int]] = []
    used_rows: set[int] = set()
    used_columns: set[int] = set()
    for at in order:
        j, i = int(rows[at]), int(columns[at])
        if j not in used_rows and i not in used_columns:
            pairs.append((j, i))
            used_rows.add(j)
            used_columns.add(i)
            if len(pairs) == most:
                break
    return pairs


# --- inequalities, or a loss that is not quadratic: rank by the bound, decide by the exact re-solve ---------------------------


def _walk(task: Task, model: QuadraticModel, at: Candidate, budget: int) -> Sweep:
    """The first candidate in falling order of its bound that truly improves."""
    tiny = tolerance(task, at.value)
    limit = budget if task.certifying else min(budget, GUESSES)
    best = at
    found, own = certified_factor(task, model, at)
    for tries, support in enumerate(_candidates(task, at, tiny, found, own)):
        if tries >= limit or task.expired:
            return None, tries
        tried = task.evaluate(support, at)
        if tried is not None and tried.value < best.value - tiny:
            best = tried
        if best is not at and tries:  # several exchanges at once, which come first, must also beat the best single one
            return best, tries + 1
    return (None if best is at else best), 0


def _candidates(task: Task, at: Candidate, tiny: float, found: Factor, own: Vector) -> Iterator[Vector]:
    """Supports one add, drop or swap away, in falling order of the bound on their gain, while that is above 0."""
    outsiders = task.outsiders(at)
    forced = np.isin(at.support, task.forced)
    swaps = swap_gains(found, outsiders) + own[:, None]
    swaps[forced] = -np.inf
    adds = add_gains(found)[outsiders] if at.support.size < task.k else np.full(outsiders.size, -np.inf)
    drops = np.where(forced, -np.inf, own - drop_losses(found)) if task.floor and at.support.size > 1 else np.full(at.support.size, -np.inf)
    if task.linear is not None:
        _mask_wrong_signs(task, found, outsiders, swaps, adds)
    bounds = np.concatenate([adds, drops, swaps.ravel()])
    several = _disjoint(swaps, tiny, most=max(1, at.support.size // 8))
    if len(several) > 1:  # one support with several exchanges at once, before the single ones
        support = at.support.copy()
        for j, i in several:
            support[j] = outsiders[i]
        yield support
    for place in _falling(bounds, tiny):
        if place < adds.size:
            yield np.append(at.support, outsiders[place])
        elif place < adds.size + drops.size:
            yield np.delete(at.support, place - adds.size)
        else:
            j, i = divmod(place - adds.size - drops.size, outsiders.size)
            yield np.append(np.delete(at.support, j), outsiders[i])


def _mask_wrong_signs(task: Task, found: Factor, outsiders: Vector, swaps: Vector, adds: Vector) -> None:
    """A newcomer that the model would give the sign its bounds forbid stays at 0 and gains nothing."""
    assert task.linear is not None
    only_positive = task.linear.lower[outsiders] >= 0
    only_negative = task.linear.upper[outsiders] <= 0
    s = found.s[outsiders]
    adds[(only_positive & (s <= 0)) | (only_negative & (s >= 0))] = -np.inf
    for signed, sign in ((only_positive, 1.0), (only_negative & ~only_positive, -1.0)):
        columns = np.flatnonzero(signed)
        if columns.size:
            pull = np.outer(found.kappa, s[columns]) + found.W[: found.k, outsiders[columns]] * found.x[:, None]
            swaps[:, columns] = np.where(sign * pull > 0, swaps[:, columns], -np.inf)


def _falling(bounds: Vector, tiny: float) -> Iterator[int]:
    """The places of the bounds above `tiny`, largest first, sorted a chunk at a time."""
    left = np.flatnonzero(bounds > tiny)
    while left.size:
        if left.size > CHUNK:
            split = np.argpartition(-bounds[left], CHUNK)
            chunk, left = left[split[:CHUNK]], left[split[CHUNK:]]
        else:
            chunk, left = left, left[:0]
        yield from (int(place) for place in chunk[np.argsort(-bounds[chunk], kind="stable")])
