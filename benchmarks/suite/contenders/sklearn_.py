"""scikit-learn: orthogonal matching pursuit, sparse PCA, ℓ1 logistic regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from suite.contenders.base import Answer, Contender, ignores_signs, joined, keep_largest, quietly, standardised, unit
from suite.contenders.refit import along_weights, logistic_on
from suite.problem import Problem


@dataclass(frozen=True)
class Pursuit(Contender):
    """OrthogonalMatchingPursuit."""

    name: str = "sklearn OMP"
    kinds = ("least squares",)
    needs = ("sklearn",)

    def solve(self, problem: Problem, seconds: float) -> Answer:
        from sklearn.linear_model import OrthogonalMatchingPursuit

        model = OrthogonalMatchingPursuit(n_nonzero_coefs=problem.k, fit_intercept=False)
        quietly(model.fit, problem.A, problem.b)
        return Answer(np.asarray(model.coef_, dtype=np.float64), ignores_signs(problem))


@dataclass(frozen=True)
class Component(Contender):
    """SparsePCA or MiniBatchSparsePCA with one component and a bisected weight, or the component of its support."""

    name: str
    estimator: str
    resolved: bool = False
    kinds = ("component",)
    needs = ("sklearn",)

    def solve(self, problem: Problem, seconds: float) -> Answer:
        from sklearn import decomposition

        Z = standardised(problem.A) * np.sqrt(len(problem.A) - 1)

        def fit(alpha: float) -> Any:
            model = getattr(decomposition, self.estimator)(n_components=1, alpha=alpha, random_state=0)
            return quietly(model.fit, Z).components_[0]

        # an entry can enter only while alpha is below what it correlates with unit scores
        start = float(np.abs(Z.T @ np.linalg.svd(Z, full_matrices=False)[0][:, 0]).max())
        below, above = along_weights(fit, start, problem.k, factor=0.6)
        x = below if above is None or np.count_nonzero(below) == problem.k else above  # about k, and then the k largest
        x = unit(keep_largest(np.asarray(x, dtype=np.float64), problem.k))
        if self.resolved:
            S = np.flatnonzero(x)
            x = np.zeros(problem.n)
            x[S] = np.linalg.svd(Z[:, S], full_matrices=False)[2][0]
        return Answer(x, joined("alpha by bisection, k largest", "re-solved on its support" if self.resolved else ""))


@dataclass(frozen=True)
class LogisticL1(Contender):
    """LogisticRegression with an ℓ1 penalty, its weight by bisection, the loss minimised on the support."""

    name: str = "sklearn l1-logistic"
    kinds = ("logistic",)
    needs = ("sklearn",)

    def solve(self, problem: Problem, seconds: float) -> Answer:
        from sklearn.linear_model import LogisticRegression

        # the second up to 1.7
        l1 = {"l1_ratio": 1.0} if LogisticRegression().penalty == "deprecated" else {"penalty": "l1"}

        def fit(weight: float) -> Any:
            model = LogisticRegression(C=1.0 / weight, solver="liblinear", fit_intercept=False, random_state=0, **l1)
            return quietly(model.fit, problem.A, problem.b).coef_[0]

        start = 0.5 * float(np.abs(problem.A.T @ problem.b).max())
        below, _ = along_weights(fit, start, problem.k, factor=0.8)
        return Answer(logistic_on(problem, below), "weight by bisection, refitted")


CONTENDERS: list[Contender] = [
    Pursuit(),
    Component("sklearn SparsePCA", "SparsePCA"),
    Component("sklearn SparsePCA, re-solved", "SparsePCA", resolved=True),
    Component("sklearn MiniBatchSparsePCA", "MiniBatchSparsePCA"),
    Component("sklearn MiniBatchSparsePCA, re-solved", "MiniBatchSparsePCA", resolved=True),
    LogisticL1(),
]
