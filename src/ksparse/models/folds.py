"""Paths over k of several linear models of the same features at once: the folds of a cross-validation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ksparse.data import design_of
from ksparse.models.linear import LinearProblem
from ksparse.search.batch.paths import walk_paths
from ksparse.util.arrays import Vector
from ksparse.util.resources import one_thread

GRAMS = 2**24  # entries of all Gram matrices together
LONGEST = 64  # nonzeros: beyond, factorisations are better updated than made anew


def walks_together(problems: Sequence[LinearProblem], most: int) -> bool:
    """Whether paths can be walked together: dense squares with nothing asked of the coefficients."""
    plain = all(p.width == 1 and p.C.whole_space and not p.free and not p.forced_in.size and not p.forced_out.size for p in problems)
    squares = [p.loss.squares() for p in problems] if plain else [None]
    n = problems[0].n
    shown = all(s is not None and design_of(s.A).shown and most < s.A.shape[0] for s in squares)
    return shown and most <= LONGEST and len(problems) * n * n <= GRAMS


def paths_together(problems: Sequence[LinearProblem], ks: Vector) -> list[list[tuple[Vector, float, Vector]]]:
    """For each problem and k the coefficients and the intercept in the units of the data, and the coefficients of the scaled columns."""
    grams, pulls, halves, sizes = [], [], [], []
    with one_thread():
        for problem in problems:
            model = problem.loss.quadratic()
            assert model is not None
            unit = np.where(model.diagonal > 0, np.sqrt(model.diagonal), 1.0)
            grams.append(model.block(np.arange(model.n)) / np.outer(unit, unit))
            pulls.append(model.r / unit)
            halves.append(model.constant)
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
