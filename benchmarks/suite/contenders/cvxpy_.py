"""CVXPY with Clarabel: the convex problem without the limit on k, solved again on the k largest entries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from suite.contenders.base import Answer, Contender, keep_largest, quietly
from suite.contenders.scip import clean
from suite.problem import Problem


def _least_variance(V: Any) -> Any:
    import cvxpy as cp

    x = cp.Variable(len(V))
    problem = cp.Problem(cp.Minimize(cp.quad_form(x, cp.psd_wrap(V / np.median(np.diag(V))))), [cp.sum(x) == 1, x >= 0])
    quietly(lambda: problem.solve(solver="CLARABEL"))
    return np.maximum(x.value, 0.0)


@dataclass(frozen=True)
class RelaxAndRound(Contender):
    """Relax and round."""

    name: str = "CVXPY relax and round"
    kinds = ("portfolio",)
    needs = ("cvxpy", "clarabel")

    def solve(self, problem: Problem, seconds: float) -> Answer:
        S = np.flatnonzero(keep_largest(_least_variance(problem.V), problem.k))
        x = np.zeros(problem.n)
        x[S] = _least_variance(problem.V[np.ix_(S, S)])
        return Answer(clean(x))


CONTENDERS: list[Contender] = [RelaxAndRound()]
