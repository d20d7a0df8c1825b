"""skfolio: MeanRisk with a cardinality constraint, a mixed-integer program for SCIP by way of CVXPY."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from suite.contenders.base import Answer, Contender, joined, quietly
from suite.contenders.scip import clean
from suite.problem import Problem


@dataclass(frozen=True)
class Skfolio(Contender):
    """Scale returns to variances near 1, because SCIP's tolerances are absolute."""

    name: str = "skfolio with SCIP"
    kinds = ("portfolio",)
    needs = ("skfolio", "pyscipopt")

    def solve(self, problem: Problem, seconds: float) -> Answer:
        from skfolio.optimization import MeanRisk

        began = time.perf_counter()
        scale = 1.0 / float(np.sqrt(np.median(np.diag(problem.V))))
        limit = {"scip_params": {"limits/time": seconds}}
        model = MeanRisk(cardinality=problem.k, solver="SCIP", solver_params=limit)
        quietly(model.fit, scale * problem.returns)
        proved = time.perf_counter() - began < 0.98 * seconds  # skfolio does not tell how its solver ended
        return Answer(
            clean(np.asarray(model.weights_)),
            joined("proved optimal" if proved else "not proved at its time limit"),
            proved,
        )


CONTENDERS: list[Contender] = [Skfolio()]
