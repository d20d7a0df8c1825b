"""Paths over k of several linear models of the same features at once: the folds of a cross-validation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ksparse.base.arrays import Vector
from ksparse.base.threads import one_thread
from ksparse.models.linear import LinearProblem
from ksparse.search.batch.paths import walk_paths

GRAMS = 2**24  # entries of all Gram matrices together
LONGEST = 64  # nonzeros: beyond, factorisations are better updated than made anew


def walks_together(problems: Sequence[LinearProblem], most: int) -> bool:
    """Whether paths can be walked together: dense squares with nothing asked of the coefficients."""
    plain = all(p.C.whole_space and not p.free and not p.forced_in.size and not p.forced_out.size for p in problems)
    squares = [p.loss.squares() for p in problems] if plain else [None]
    n = problems[0].n
    dense = all(s is not None and isinstance(s.A, np.ndarray) and s.A.dtype == np.float64 for s in squares)
    return dense and most <= LONGEST and len(problems) * n * n <= GRAMS and all(s is not None and most < len(s.A) for s in squares)


def paths_together(problems: Sequence[LinearProblem], ks: Vector) -> list[list[tuple[Vector, float, Vector]]]:
    """For each problem and k the coefficients and the intercept in the units of the data, and the coefficients of the scaled columns."""
    grams, pulls, halves, sizes = [], [], [], []
    with one_thread():
        for problem in problems:
            squares = problem.loss.squares()
            assert squares is not None
            A, b = np.asarray(squares.A), np.asarray(squares.b, dtype=float)
            weighted = A if squares.weight is None else squares.weight[:, None] * A
            gram = A.T @ weighted
            if squares.ridge is not None:
                gram[np.diag_indices(len(gram))] += squares.ridge
            size = np.sqrt(np.diag(gram))
            unit = np.where(size > 0, size, 1.0)
            grams.append(gram / np.outer(unit, unit))
            pulls.append(weighted.T @ b / unit)
            halves.append(0.5 * float(b @ (b if squares.weight is None else squares.weight * b)))
            sizes.append(unit)
        found = walk_paths(np.array(grams), np.array(pulls), np.array(halves), int(ks[-1]))
    paths = []
    for place, (problem, size) in enumerate(zip(problems, sizes, strict=True)):
        path = []
        for k in ks:
            z, at = np.zeros(problem.n), found[int(k) - 1]
            z[at.S[place]] = at.x[place] / size[at.S[place]]
            path.append((*problem.coefficients(z), z))
        paths.append(path)
    return paths
