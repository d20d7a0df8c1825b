"""The paper's methods with the steps, stopping rules and grid of weights of its experiments, by this library."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ksparse.experiments.tables import TABLE2_METHODS
from suite.contenders.base import Answer, Contender
from suite.contenders.ours import ended, pieces
from suite.problem import Problem

GRID = "the best of the paper's nine weights"


def _cut(status: str) -> str:
    return "stopped by its time limit" if status == "time limit" else ""


@dataclass(frozen=True)
class Penalised(Contender):
    """Table 2: one run on the penalised problem; a fixed step pays for its Lipschitz constant."""

    name: str
    method: str
    step: str
    kinds = ("penalised",)
    needs = ("ksparse",)

    def solve(self, problem: Problem, seconds: float) -> Answer:
        import ksparse as ks

        loss, _ = pieces(problem)
        if self.step == "fixed":
            loss.lipschitz()
        result = ks.minimize_penalized(
            loss, ks.L1MinusL2(problem.lam), method=self.method, step=self.step, max_time=seconds
        )
        return Answer(np.asarray(result.x), _cut(ended(result)))


@dataclass(frozen=True)
class Constrained(Contender):
    """Tables 3–5: the penalised problem for each weight, rounded to k entries; IHT has no weights."""

    name: str
    method: str
    kinds: tuple[str, ...]
    needs = ("ksparse",)
    takes_sparse = True

    def solve(self, problem: Problem, seconds: float) -> Answer:
        import ksparse as ks

        loss, C = pieces(problem)
        result = ks.minimize(loss, problem.k, C, method=self.method, max_time=seconds)
        return Answer(np.asarray(result.x), _cut(ended(result)) or ("" if self.method == "iht" else GRID))


CONTENDERS: list[Contender] = [
    *(Penalised(f"paper {label}", method, step) for label, (method, step) in TABLE2_METHODS.items() if label != "ours"),
    Constrained("paper l2-APDCA", "apdca", ("least squares", "logistic", "component", "portfolio")),
    Constrained("paper l2-PDCA", "pdca", ("least squares", "component")),
    Constrained("paper IHT", "iht", ("least squares",)),
]
