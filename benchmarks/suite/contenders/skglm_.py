"""skglm: coordinate descent on MCP and SCAD with warm starts along falling weights, then a refit on the support."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from suite.contenders.base import Answer, Contender, ignores_signs, joined, quietly
from suite.contenders.refit import along_weights, least_squares_on, logistic_on
from suite.problem import Problem

GAMMA = {"MCPenalty": 3.0, "SCAD": 3.7}  # the customary ones, for columns of mean square 1


def _scaled(A: Any) -> Any:
    """Scale columns of A to mean square 1, as the penalties expect, in the layout that skglm reads without a copy."""
    if scipy.sparse.issparse(A):
        A = scipy.sparse.csc_matrix(A, dtype=np.float64)
        size = np.sqrt(np.asarray(A.multiply(A).mean(axis=0)).ravel())
        return (A @ scipy.sparse.diags(1.0 / np.where(size > 0, size, 1.0))).tocsc()
    size = np.sqrt(np.square(A).mean(axis=0))
    return np.asfortranarray(A / np.where(size > 0, size, 1.0))


@dataclass(frozen=True)
class Skglm(Contender):
    """MCP or SCAD by AndersonCD."""

    name: str
    penalty: str
    kinds: tuple[str, ...]
    needs = ("skglm",)
    takes_sparse = True

    def solve(self, problem: Problem, seconds: float) -> Answer:
        from skglm import datafits, penalties, solvers

        A, logistic = _scaled(problem.A), problem.kind == "logistic"
        y = problem.b if logistic else problem.b / np.sqrt(np.mean(problem.b**2))
        datafit, curvature = (datafits.Logistic(), 0.25) if logistic else (datafits.Quadratic(), 1.0)
        positive = problem.signs == "all" and self.penalty == "MCPenalty"
        solver = solvers.AndersonCD(fit_intercept=False, warm_start=True)
        w = np.zeros(problem.n)

        def fit(alpha: float) -> Any:
            nonlocal w
            options = {"positive": True} if positive else {}
            penalty = getattr(penalties, self.penalty)(alpha, GAMMA[self.penalty] / curvature, **options)
            w = quietly(solver.solve, A, y, datafit, penalty, w.copy(), A @ w)[0]
            return w.copy()

        start = (0.5 if logistic else 1.0) * float(np.abs(A.T @ y).max()) / len(y)
        below, _ = along_weights(fit, start, problem.k, factor=0.85)
        x = logistic_on(problem, below) if logistic else least_squares_on(problem, below, nonnegative=positive)
        return Answer(x, joined("weight by bisection, refitted", "" if positive else ignores_signs(problem)))


CONTENDERS: list[Contender] = [
    Skglm("skglm MCP", "MCPenalty", ("least squares", "logistic")),
    Skglm("skglm SCAD", "SCAD", ("least squares",)),
]
