"""Rounds of a batch search: each right-hand side from x = 0, then from supports found for other right-hand sides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ksparse.batch.kernel import search_each
from ksparse.batch.problem import BatchProblem, Incumbents
from ksparse.util.arrays import Vector
from ksparse.util.compiled import compiled
from ksparse.util.resources import parallel_map

POOL = 500  # most frequent supports of other right-hand sides that are considered (chosen on benchmarks/batches.py)
SHARED = 12  # number of them that a right-hand side is searched from (batches.py)
NEAR = 3.0  # largest objective of a shared start, as a multiple of that of the incumbent (batches.py)


class Round(NamedTuple):
    """One pass over all right-hand sides."""

    shared: bool  # whether it starts from supports of other right-hand sides, or from x = 0
    perturbations: Vector
    perturb_known: bool  # whether every incumbent is perturbed, or only one that this round has improved


def rounds_of(problem: BatchProblem, effort: int, seed: int) -> list[Round]:
    """Return greedy starts with perturbations, then shared starts; further units of effort perturb the incumbents."""
    usual = problem.perturbations(0, seed)
    more = [problem.perturbations(unit, seed) for unit in range(1, effort)]
    return [Round(False, usual, True), Round(True, usual, False), *(Round(True, each, True) for each in more)]


def search_batch(
    problem: BatchProblem, terms: Callable[[slice], tuple[Vector, Vector]], parts: Sequence[slice],
    rounds: list[Round], best: Incumbents, n_jobs: int | None, done: Callable[[slice], bool],
) -> None:  # fmt: skip
    """Improve `best` in place, part by part in threads.

    `terms` gives r and ½‖b‖² of a part; `done` is called after each part and returns whether to go on.
    """
    search = compiled(search_each)
    going = True
    for round_ in rounds:
        pool = frequent_supports(problem, best.support) if round_.shared else problem.empty_supports(0)

        def work(part: slice, round_: Round = round_, pool: Vector = pool) -> None:
            nonlocal going
            if not going:
                return
            R, half = terms(part)
            known = best.rows(part)
            empty = problem.empty_supports(len(R))[:, None]
            starts = shared_starts(problem, R, half, pool, known) if round_.shared else empty
            if starts.shape[1]:
                search(
                    problem.G, R, half, problem.signed, starts, round_.perturbations, problem.hash_keys,
                    round_.perturb_known, known.support, known.x, known.value, known.share,
                )  # fmt: skip
            going = done(part) and going

        parallel_map(work, parts, n_jobs)


def frequent_supports(problem: BatchProblem, supports: Vector) -> Vector:
    """Return the distinct full supports, the most frequent first."""
    full = np.sort(supports[(supports < problem.n).all(axis=1)], axis=1)
    each, counts = np.unique(full, axis=0, return_counts=True)
    return np.asarray(each[np.argsort(-counts, kind="stable")[:POOL]])


def shared_starts(problem: BatchProblem, R: Vector, half: Vector, pool: Vector, known: Incumbents) -> Vector:
    """Return the supports of the pool that fit each right-hand side best.

    A support that violates a sign, or whose objective exceeds NEAR times that of the incumbent, is replaced by the
    incumbent's support; a search from there ends at once.
    """
    few = min(SHARED, len(pool))
    if not few:
        return problem.empty_supports(len(R))[:, None][:, :0]
    M = np.linalg.inv(problem.G[pool[:, :, None], pool[:, None, :]])
    r = np.ascontiguousarray(R.T)[pool]  # (pool, k, count)
    x = M @ r
    violated = (problem.signed[pool][:, :, None] & (x <= 0.0)).any(axis=1)
    value = np.where(violated, np.inf, -0.5 * np.einsum("psb,psb->pb", r, x)).T
    chosen = np.argpartition(value, few - 1, axis=1)[:, :few]
    near = half[:, None] + np.take_along_axis(value, chosen, axis=1) <= (NEAR * (half + known.value))[:, None]
    return np.asarray(np.where(near[:, :, None], pool[chosen], known.support[:, None]))
