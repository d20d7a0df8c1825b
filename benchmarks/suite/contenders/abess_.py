"""abess: splicing on a fixed support size, in C++."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from suite.contenders.base import BUDGETS, Answer, Contender, ignores_signs, joined, quietly, restarted, standardised
from suite.judge import judge
from suite.problem import Problem

SCALE = 1e3  # splicing stops below an absolute gain, 0.01·k·log p·log log n / n: scaled up, no gain is too small
SHIFT = 1e-9  # sparse PCA of abess refuses negative eigenvalues, even by rounding
WIDE = 128  # inactive variables that it looks at by default; 0 is all


@dataclass(frozen=True)
class Abess(Contender):
    """Linear and logistic regression on raw columns, no intercept; with a budget, restarts from random supports."""

    name: str = "abess"
    search: int = WIDE
    budget: float = 0.0  # seconds
    invited: bool = False
    kinds = ("least squares", "logistic")
    needs = ("abess",)
    takes_sparse = True

    def solve(self, problem: Problem, seconds: float) -> Answer:
        if not self.budget:
            return self._searched(problem)
        return Answer(
            restarted(lambda start: self._valued(problem, start), problem, self.budget), "the best of its restarts"
        )

    def _searched(self, problem: Problem, start: Any = None) -> Answer:
        from abess import LinearRegression, LogisticRegression

        options = {"support_size": problem.k, "fit_intercept": False, "important_search": self.search, "A_init": start}
        if problem.kind == "logistic":
            model = LogisticRegression(**options, alpha=0.5 * problem.ridge)
            quietly(lambda: model.fit(problem.A, (problem.b > 0).astype(float), is_normal=False))
            return Answer(model.coef_)
        model, scale = LinearRegression(**options), SCALE * np.sqrt(len(problem.b)) / np.linalg.norm(problem.b)
        lowest = 0.0 if problem.signs == "all" else None  # one bound for all coefficients: no signs for some
        quietly(lambda: model.fit(problem.A, scale * problem.b, is_normal=False, beta_low=lowest))
        return Answer(model.coef_ / scale, ignores_signs(problem) if problem.signs == "some" else "")

    def _valued(self, problem: Problem, start: Any) -> tuple[Any, float]:
        x = self._searched(problem, start).x
        return x, judge(problem, x).objective


@dataclass(frozen=True)
class AbessComponent(Contender):
    """Sparse PCA from the correlation matrix: from data with fewer rows than columns abess returns ones."""

    name: str = "abess"
    kinds = ("component",)
    needs = ("abess",)

    def solve(self, problem: Problem, seconds: float) -> Answer:
        from abess.decomposition import SparsePCA

        Z = standardised(problem.A)
        R = Z.T @ Z
        R[np.diag_indices_from(R)] += SHIFT
        model = quietly(lambda: SparsePCA(support_size=problem.k).fit(Sigma=SCALE * 0.5 * (R + R.T)))
        return Answer(
            np.asarray(model.coef_).ravel(), joined("from the correlation matrix", "checks all its eigenvalues first")
        )


CONTENDERS: list[Contender] = [
    Abess(),
    Abess("abess, wide search", 0),
    AbessComponent(),
    *(Abess(f"abess, {seconds:g} s", budget=seconds, invited=True) for seconds in BUDGETS),
    *(Abess(f"abess, wide search, {seconds:g} s", 0, seconds, invited=True) for seconds in BUDGETS),
]
