"""Benchmark problems: raw data and constraints on x, independent of any library."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse

KINDS = ("least squares", "logistic", "component", "portfolio", "rows", "penalised")


def _none() -> np.ndarray[Any, Any]:
    return np.zeros(0, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Problem:
    """Minimisation problem of one of six kinds.

    least squares   ½‖Ax − b‖² + ½ridge‖x‖²    s.t. ‖x‖₀ ≤ k, x ≥ 0 on `nonnegative`
    logistic        Σ log(1 + exp(−bᵢ(Ax)ᵢ)) + ½ridge‖x‖²   s.t. ‖x‖₀ ≤ k, labels b in {−1, 1}
    component       −xᵀRx                      s.t. ‖x‖₀ ≤ k, ‖x‖₂ ≤ 1, R the correlations of the columns of A
    portfolio       xᵀVx                       s.t. ‖x‖₀ ≤ k, Σx = 1, x ≥ 0
    rows            xᵀVx                       s.t. ‖x‖₀ ≤ k, Ex = f, Gx ≤ h, each xᵢ 0 or in floorᵢ…upperᵢ
    penalised       ½‖Ax − b‖² + λ(‖x‖₁ − ‖x‖₂)
    """

    kind: str
    k: int
    A: Any = None  # dense, or scipy.sparse
    b: Any = None
    V: Any = None
    nonnegative: np.ndarray[Any, Any] = field(default_factory=_none)
    lam: float = 0.0
    ridge: float = 0.0
    E: Any = None
    f: Any = None
    G: Any = None
    h: Any = None
    floor: Any = 0.0
    upper: Any = np.inf
    returns: Any = None  # of a portfolio, with covariance V: for libraries that take returns

    @property
    def n(self) -> int:
        return int((self.V if self.A is None else self.A).shape[1])

    @property
    def sparse(self) -> bool:
        return scipy.sparse.issparse(self.A)

    @property
    def signs(self) -> str:
        """Return how many signs are constrained: none, some or all."""
        return "none" if not self.nonnegative.size else "all" if self.nonnegative.size == self.n else "some"

    @property
    def size(self) -> str:
        """Return a description for the head of a table."""
        data = self.V if self.A is None else self.A
        limit = f"λ = {self.lam:g}" if self.kind == "penalised" else f"k = {self.k}"
        return f"{data.shape[0]} × {data.shape[1]}, {limit}"


def tiny(kind: str, signs: str = "none", sparse: bool = False) -> Problem:
    """Return a tiny problem of a kind, for warm-ups and tests."""
    rng = np.random.default_rng(0)
    if kind == "portfolio":
        returns = 0.01 * (rng.standard_normal((80, 12)) * rng.uniform(0.5, 1.5, 12) + rng.standard_normal((80, 1)))
        return Problem(kind, 3, V=np.cov(returns.T), returns=returns)
    if kind == "rows":
        returns = 0.01 * (rng.standard_normal((80, 12)) * rng.uniform(0.5, 1.5, 12) + rng.standard_normal((80, 1)))
        mu = np.linspace(0.0, 1.0, 12)
        return Problem(
            kind,
            4,
            V=np.cov(returns.T),
            E=np.ones((1, 12)),
            f=np.ones(1),
            G=-mu[None],
            h=np.array([-0.5]),
            floor=0.1,
            upper=0.6,
        )
    if kind == "component":
        return Problem(
            kind, 4, A=rng.standard_normal((30, 4)) @ rng.standard_normal((4, 15)) + rng.standard_normal((30, 15))
        )
    m, n, k = 90, 24, 3
    A = rng.standard_normal((m, n))
    x = np.zeros(n)
    x[[2, 7, 11]] = 2.0, 1.5, 1.0 if signs != "none" else -1.0
    if kind == "logistic":
        return Problem(kind, k, A=A, b=np.where(rng.uniform(size=m) < 1 / (1 + np.exp(-A @ x)), 1.0, -1.0))
    b = A @ x + 0.3 * rng.standard_normal(m)
    if kind == "penalised":
        return Problem(kind, k, A=A, b=b, lam=0.1)
    nonnegative = {"none": _none(), "some": np.arange(n // 3), "all": np.arange(n)}[signs]
    if sparse:
        A = np.where(rng.uniform(size=A.shape) < 0.5, A, 0.0)
        return Problem(
            kind, k, A=scipy.sparse.csr_array(A), b=A @ x + 0.3 * rng.standard_normal(m), nonnegative=nonnegative
        )
    return Problem(kind, k, A=A, b=b, nonnegative=nonnegative)


def twin(problem: Problem) -> Problem:
    """Return the tiny problem of the same kind, signs and storage."""
    return tiny(problem.kind, problem.signs, problem.sparse)
