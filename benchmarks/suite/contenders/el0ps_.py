"""El0ps: branch and bound on the ℓ0-penalised problem, with a weight for which at most k variables enter."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from suite.contenders.base import Answer, Contender, ignores_signs, joined, quietly
from suite.contenders.refit import along_weights, least_squares_on
from suite.problem import Problem

LONGEST = 30.0  # seconds for all weights: it would take any time it gets
TRIALS = 8  # weights that this time is divided by; it looks at its clock between nodes only
ROOM = 2.0  # |x| may be as large as this multiple of the largest single-variable fit


def _without_mpi() -> None:
    """Without an MPI library, run branch and bound in this process alone (comm=None of pybnb)."""
    try:
        import mpi4py.MPI  # noqa: F401
    except (ImportError, RuntimeError):
        sys.modules["mpi4py"] = None  # else half an import stays behind, and fails again
        from el0ps.solver import bnb

        if not isinstance(bnb.pb.Solver, partial):
            bnb.pb.Solver = partial(bnb.pb.Solver, comm=None)


@dataclass(frozen=True)
class El0ps(Contender):
    """Least squares with a big M, the best node within the time, refitted on its support."""

    name: str = "El0ps"
    kinds = ("least squares",)
    needs = ("el0ps",)

    def load(self) -> None:
        import el0ps  # noqa: F401

        _without_mpi()

    def solve(self, problem: Problem, seconds: float) -> Answer:
        self.load()
        from el0ps.compilation import compiled_clone
        from el0ps.datafit import Leastsquares
        from el0ps.penalty import Bigm
        from el0ps.solver import BnbSolver
        from el0ps.utils import compute_lmbd_max

        A = np.asfortranarray(problem.A)
        bound = ROOM * float(np.max(np.abs(A.T @ problem.b) / np.square(A).sum(axis=0)))
        datafit, penalty = compiled_clone(Leastsquares(np.ascontiguousarray(problem.b))), compiled_clone(Bigm(bound))
        each, statuses = min(seconds, LONGEST) / TRIALS, []

        def fit(weight: float) -> Any:
            found = quietly(BnbSolver(time_limit=each).solve, datafit, penalty, A, weight)
            statuses.append(str(found.status).lower())
            return np.asarray(found.x)

        start = float(compute_lmbd_max(datafit, penalty, A))
        below, _ = along_weights(fit, start, problem.k, factor=0.3, steps=TRIALS - 3, halvings=2)
        cut = "" if all("optimal" in status for status in statuses) else f"weights cut off after {each:.1f} s each"
        return Answer(
            least_squares_on(problem, below), joined("ℓ0 weight by bisection, refitted", cut, ignores_signs(problem))
        )


CONTENDERS: list[Contender] = [El0ps()]
