"""ksparse, called as a user would."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from suite.contenders.base import BUDGETS, Answer, Contender
from suite.problem import KINDS, Problem

OURS = "ksparse"
PROOF, GAP = f"{OURS}, proof", f"{OURS}, gap"
EFFORTS = (16, 100)


def pieces(problem: Problem) -> tuple[Any, Any]:
    """Build the loss and the set of a problem from the raw data."""
    import ksparse as ks

    match problem.kind:
        case "least squares":
            C = (
                None
                if problem.signs == "none"
                else ks.Nonnegative(None if problem.signs == "all" else problem.nonnegative)
            )
            return ks.LeastSquares(problem.A, problem.b, ridge=problem.ridge), C
        case "logistic":
            return ks.Logistic(problem.A, problem.b, ridge=problem.ridge), None
        case "component":
            return ks.PrincipalComponent.from_data(problem.A), ks.L2Ball()
        case "portfolio":
            return ks.Quadratic(2.0 * problem.V), ks.Simplex()
        case "rows":
            return ks.Quadratic(2.0 * problem.V), ks.Polyhedron(
                problem.G, problem.h, problem.E, problem.f, 0.0, problem.upper
            )
        case _:
            return ks.LeastSquares(problem.A, problem.b), None


def ended(result: Any) -> str:
    """Return how a run ended, where this matters to the reader."""
    return result.status.name.lower().replace("_", " ")


@dataclass(frozen=True)
class Ours(Contender):
    """`minimize` and `minimize_penalized`."""

    name: str = OURS
    options: Mapping[str, Any] = field(default_factory=dict)  # of `minimize`
    invited: bool = False
    kinds = KINDS
    needs = ("ksparse",)
    takes_sparse = True

    def solve(self, problem: Problem, seconds: float) -> Answer:
        import ksparse as ks
        from ksparse.experiments.tables import OURS as PENALISED

        loss, C = pieces(problem)
        if problem.kind == "penalised":
            result = ks.minimize_penalized(loss, ks.L1MinusL2(problem.lam), **PENALISED)
        else:
            result = ks.minimize(loss, problem.k, C, min_nonzero=problem.floor, **self.options)
        told = (
            ended(result)
            if result.lower_bound == -np.inf
            else f"gap {100 * result.gap:.2g} % after {result.nodes} nodes"
        )
        return Answer(np.asarray(result.x), told, result.status.name == "OPTIMAL", result.lower_bound)


@dataclass(frozen=True)
class OursInSkfolio(Contender):
    """`SparseMeanRisk`, the estimator for users of skfolio."""

    name: str = "ksparse in skfolio"
    kinds = ("portfolio",)
    needs = ("ksparse", "skfolio")

    def solve(self, problem: Problem, seconds: float) -> Answer:
        from ksparse.skfolio import SparseMeanRisk

        return Answer(np.asarray(SparseMeanRisk(problem.k).fit(problem.returns).weights_))


CONTENDERS: list[Contender] = [
    Ours(),
    OursInSkfolio(),
    *(Ours(f"{OURS}, effort {units}", {"effort": units}, invited=True) for units in EFFORTS),
    Ours(PROOF, {"gap": 1e-4, "max_time": 100.0}, invited=True),
    Ours(GAP, {"gap": 1e-3, "max_time": 60.0}, invited=True),
    *(Ours(f"{OURS}, {seconds:g} s", {"max_time": seconds}, invited=True) for seconds in BUDGETS),
]
