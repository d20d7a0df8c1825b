"""SCIP, called directly: mixed-integer quadratic programs, one binary per asset, V scaled to unit variances, gap 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from suite.contenders.base import Answer, Contender
from suite.problem import Problem

DUST = 1e-6  # its tolerance on integers: what is below is a zero
ENDLESS = 1e19  # a gap that SCIP calls infinite
RANK = 1e-10  # eigenvalues below this share of the largest are zeros


def clean(x: Any, unit: bool = True) -> Any:
    """Set rounding noise to 0; with `unit`, scale the weights to sum to 1."""
    x = np.where(np.abs(x) > DUST, x, 0.0)
    return x / x.sum() if unit else x


@dataclass(frozen=True)
class Scip(Contender):
    """Mixed-integer program min t s.t. xᵀVx ≤ t, Σx = 1 (or the rows), floor·z ≤ x ≤ upper·z, Σz ≤ k, z binary.

    Or with the perspective of the part of xᵀVx that is diagonal (Frangioni and Gentile 2006): V = δI + LᵀL, δΣs + ‖Lx‖²
    ≤ t, xᵢ² ≤ sᵢzᵢ, whose relaxation is tighter the larger the least eigenvalue δ of V.
    """

    name: str = "SCIP"
    perspective: bool = False
    kinds = ("portfolio", "rows")
    needs = ("pyscipopt",)

    def solve(self, problem: Problem, seconds: float) -> Answer:
        from pyscipopt import Model, quicksum

        V = problem.V / np.median(np.diag(problem.V))  # its tolerances are absolute
        model = Model()
        model.hideOutput()
        for name, value in (("limits/time", seconds), ("limits/gap", 0.0)):
            model.setParam(name, value)
        x = [model.addVar(lb=0.0, ub=1.0) for _ in range(problem.n)]
        z = [model.addVar(vtype="B") for _ in range(problem.n)]
        _constrain(model, problem, x)
        model.addCons(quicksum(z) <= problem.k)
        floor, upper = (np.broadcast_to(side, problem.n) for side in (problem.floor, np.minimum(problem.upper, 1.0)))
        for held, chosen, low, high in zip(x, z, floor, upper, strict=True):
            model.addCons(held <= float(high) * chosen)
            if low > 0:
                model.addCons(held >= float(low) * chosen)
        risk = model.addVar(lb=0.0)
        model.addCons((_split(model, V, x, z) if self.perspective else _form(V, x)) <= risk)
        model.setObjective(risk, "minimize")
        model.optimize()
        if model.getNSols() == 0:
            raise RuntimeError(f"no solution in {seconds:.0f} s ({model.getStatus()})")
        proved, gap = model.getStatus() == "optimal", model.getGap()
        far = f"gap {100 * gap:.2g} %" if gap < ENDLESS else "no lower bound"
        note = "proved optimal" if proved else f"not proved: {far} at its time limit"
        bound = float(model.getDualbound()) * np.median(np.diag(problem.V))
        return Answer(
            clean(np.array([model.getVal(held) for held in x]), problem.kind == "portfolio"), note, proved, bound
        )


def _constrain(model: Any, problem: Problem, x: list[Any]) -> None:
    """Add Σx = 1, or Ex = f and Gx ≤ h."""
    from pyscipopt import quicksum

    if problem.kind == "portfolio":
        model.addCons(quicksum(x) == 1.0)
        return
    for row, right in zip(problem.E, problem.f, strict=True):
        model.addCons(quicksum(float(a) * held for a, held in zip(row, x, strict=True)) == float(right))
    for row, right in zip(problem.G, problem.h, strict=True) if problem.G is not None else ():
        model.addCons(quicksum(float(a) * held for a, held in zip(row, x, strict=True)) <= float(right))


def _form(V: Any, x: list[Any]) -> Any:
    """xᵀVx."""
    from pyscipopt import quicksum

    n = len(x)
    return quicksum(float(V[i, j]) * (1.0 if i == j else 2.0) * x[i] * x[j] for i in range(n) for j in range(i, n))


def _split(model: Any, V: Any, x: list[Any], z: list[Any]) -> Any:
    """δΣs + ‖y‖² with y = Lx and xᵢ² ≤ sᵢzᵢ."""
    from pyscipopt import quicksum

    values, vectors = np.linalg.eigh(V)
    delta = max(0.0, 0.999 * float(values[0]))  # a little less, so that the rest stays positive semidefinite
    rest = np.maximum(values - delta, 0.0)
    kept = rest > RANK * rest[-1]
    terms = []
    for row in (vectors[:, kept] * np.sqrt(rest[kept])).T:
        y = model.addVar(lb=None)
        model.addCons(quicksum(float(weight) * held for weight, held in zip(row, x, strict=True)) == y)
        terms.append(y * y)
    if delta > RANK * values[-1]:
        for held, chosen in zip(x, z, strict=True):
            s = model.addVar(lb=0.0)
            model.addCons(held * held <= s * chosen)
            terms.append(delta * s)
    return quicksum(terms)


CONTENDERS: list[Contender] = [Scip(), Scip("SCIP, perspective", perspective=True)]
