"""Linear models of many targets by the columns of one X, each with at most k features of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ksparse.data import root_mean_square
from ksparse.models.linear import LinearProblem
from ksparse.models.scaling import shares
from ksparse.result import Result, Status
from ksparse.solve.batch import Batch
from ksparse.solve.judge import uninterrupted
from ksparse.solve.many import minimize_many
from ksparse.util.arrays import Vector
from ksparse.util.progress import over


@dataclass(frozen=True)
class ManyFits:
    """One row of coefficients and one intercept per target."""

    coef: Vector
    intercept: Vector
    results: Batch | list[Result]  # in scaled variables

    @property
    def failure(self) -> Status | None:
        """A status that is not good, where a target has one; of several the one with the smallest number."""
        numbers = self.results.status if isinstance(self.results, Batch) else [result.status for result in self.results]
        return next((status for status in Status if not status.good and status in numbers), None)


def shareable(problem: LinearProblem) -> bool:
    """Whether targets can share what is known of X: squares, the mean as intercept, and no bounds but signs, whatever the units of y."""
    linear = problem.C.as_linear(problem.n) if not problem.free else None
    if linear is None or linear.h.size or linear.f.size or problem.forced_in.size or problem.forced_out.size:
        return False
    signs = np.isin(linear.lower, (0.0, -np.inf)).all() and np.isin(linear.upper, (0.0, np.inf)).all()
    return bool(signs and problem.loss.squares() is not None)


def fit_together(first: LinearProblem, Y: Vector, sample_weight: Any, k: int, **options: Any) -> ManyFits:
    """All targets on one Gram matrix; `first` is the problem of the first, and `shareable`. The options are those of `minimize_many`."""
    squares = first.loss.squares()
    assert squares is not None
    levels = np.average(Y, axis=0, weights=sample_weight) if first.intercept else np.zeros(Y.shape[1])
    units = root_mean_square(Y - levels, shares(len(Y), sample_weight))
    units = np.where(units > 0, units, 1.0)
    batch = minimize_many(
        squares.A, (Y - levels) / units, k, first.C, sample_weight=squares.weight, ridge=0.0 if squares.ridge is None else squares.ridge,
        **options,
    )  # fmt: skip
    Z = batch.x.toarray().T
    fits = [replace(first, level=float(level), unit=float(unit)).coefficients(z) for level, unit, z in zip(levels, units, Z, strict=True)]
    return ManyFits(np.array([coef for coef, _ in fits]), np.array([shift for _, shift in fits]), batch)


def fit_singly(problem_of: Callable[[Vector], LinearProblem], Y: Vector, k: int, **options: Any) -> ManyFits:
    """One target after the other; the options are those of `minimize`."""
    fits = []
    for y in over(Y.T, "targets"):
        fits.append(problem_of(y).minimize(k, **options))
        uninterrupted(fits[-1].result)
    return ManyFits(np.array([fit.coef for fit in fits]), np.array([fit.intercept for fit in fits]), [fit.result for fit in fits])
