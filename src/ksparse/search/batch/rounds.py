"""How a batch is searched: each right-hand side alone, then from supports that served others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ksparse.search.batch.by_arrays import descend_all
from ksparse.search.batch.loop import descend_each
from ksparse.search.batch.problem import BatchProblem, Best
from ksparse.util.arrays import Vector
from ksparse.util.compiled import compiled, compiler_is_there
from ksparse.util.resources import parallel_map

MANY = 64  # right-hand sides from which compiling is worth its while


class Round(NamedTuple):
    """One pass over all right-hand sides."""

    shared: bool  # whether it starts from supports that served others, or from nothing
    kicks: Vector
    kicked: bool  # whether what is known is kicked too, or only what is better


def rounds_of(problem: BatchProblem, effort: int, seed: int) -> list[Round]:
    """Greedy starts and kicks, then the supports of others; each further unit of effort other kicks of what was found: never worse."""
    usual = problem.kicks(0, seed)
    more = [problem.kicks(unit, seed) for unit in range(1, effort)]
    return [Round(False, usual, True), Round(True, usual, False), *(Round(True, kicks, True) for kicks in more)]


def search_batch(
    problem: BatchProblem, pulls: Callable[[slice], tuple[Vector, Vector]], parts: Sequence[slice], rounds: list[Round], best: Best,
    n_jobs: int | None, done: Callable[[slice], bool],
) -> None:  # fmt: skip
    """`best` improved in place, part by part in threads; `pulls` gives r and ½‖b‖² of a part, `done` whether to go on after it."""
    quick = len(best.value) >= MANY and compiler_is_there()
    going = True
    for turn in rounds:
        pool = distinct(problem, best.support) if turn.shared else problem.nothing(0)

        def work(part: slice, turn: Round = turn, pool: Vector = pool) -> None:
            nonlocal going
            if not going:
                return
            R, half = pulls(part)
            known = best.rows(part)
            starts = served(problem, R, half, pool, known) if turn.shared else problem.nothing(len(R))[:, None]
            if starts.shape[1]:
                _descend(problem, R, half, starts, turn, known, quick)
            going = done(part) and going

        parallel_map(work, parts, n_jobs)


def _descend(
    problem: BatchProblem, R: Vector, half: Vector, starts: Vector, turn: Round, known: Best, quick: bool
) -> None:
    if not quick:
        descend_all(problem, R, half, starts, turn.kicks, turn.kicked, known)
        return
    compiled(descend_each)(
        problem.G, R, half, problem.signed, starts, turn.kicks, problem.keys, turn.kicked, problem.settings.batch_looked, problem.least,
        problem.rounding, problem.independent, known.support, known.x, known.value, known.share,
    )  # fmt: skip


def distinct(problem: BatchProblem, supports: Vector) -> Vector:
    """The full supports that were found, the most frequent first."""
    full = np.sort(supports[(supports < problem.n).all(axis=1)], axis=1)
    each, counts = np.unique(full, axis=0, return_counts=True)
    return np.asarray(each[np.argsort(-counts, kind="stable")[: problem.settings.batch_pool]])


def served(problem: BatchProblem, R: Vector, half: Vector, pool: Vector, known: Best) -> Vector:
    """Of the pool's supports those that serve each right-hand side best: no sign broken, and not much more left of ½‖b‖² than is now.

    Where there are fewer than that the support that is known fills their place, from which nobody goes anywhere.
    """
    few = min(problem.settings.batch_shared, len(pool))
    if not few:
        return problem.nothing(len(R))[:, None][:, :0]
    M = np.linalg.inv(problem.G[pool[:, :, None], pool[:, None, :]])
    r = np.ascontiguousarray(R.T)[pool]  # (pool, k, count)
    x = M @ r
    value = np.where(
        (problem.signed[pool][:, :, None] & (x <= 0.0)).any(axis=1), np.inf, -0.5 * np.einsum("psb,psb->pb", r, x)
    ).T
    chosen = np.argpartition(value, few - 1, axis=1)[:, :few]
    good = (
        half[:, None] + np.take_along_axis(value, chosen, axis=1)
        <= (problem.settings.batch_near * (half + known.value))[:, None]
    )
    return np.asarray(np.where(good[:, :, None], pool[chosen], known.support[:, None]))
