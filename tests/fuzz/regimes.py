"""Data tables that are hard in a named way."""

from __future__ import annotations

import numpy as np

from .layouts import as_given


def table(case, rng, collinear=1e-7):
    """Return A, m × n, in the regime and scale of the case, rounded to its layout."""
    m, n = case.m, case.n
    A = rng.standard_normal((m, n))
    if case.layout == "int":
        A = np.rint(3 * A)
    j, i = (int(rng.integers(n)) for _ in range(2))
    if case.regime == "duplicate":
        A[:, j] = rng.choice([1.0, -1.0]) * A[:, i]
    elif case.regime == "collinear":
        A[:, j] = A[:, i] * rng.choice([1.0, -0.5, 2.0]) + (1e-3 if case.single else collinear) * rng.standard_normal(m)
    elif case.regime == "zero":
        A[:, rng.uniform(size=n) < 0.4] = 0.0
    elif case.regime == "constant":
        A[:, j] = rng.choice([1.0, -3.0, 0.1])
    elif case.regime == "deficient":
        rank = int(rng.integers(1, max(2, min(m, n))))
        A = np.rint(2 * rng.standard_normal((m, rank))) @ np.rint(2 * rng.standard_normal((rank, n)))
    elif case.regime == "columns scaled":
        wide = 2.0 if case.single or case.loss.split()[0] in ("Logistic", "Poisson") else 6.0  # exp has a narrow range
        A = A * 10.0 ** rng.uniform(-wide, wide, n)
    elif case.regime == "ties":
        A = rng.choice([-1.0, 0.0, 1.0], (m, n)) if rng.uniform() < 0.5 else np.eye(m, n) * rng.choice([1.0, 2.0])
    return as_given(A * case.scale[0], case.layout)


def target(case, rng, A):
    """Return b for a table: an exact fit, no signal, ties, or noise."""
    if case.regime == "perfect":
        sparse = np.zeros(case.n)
        chosen = rng.choice(case.n, size=min(case.k, case.n), replace=False)
        sparse[chosen] = np.rint(3 * rng.standard_normal(len(chosen))) * (case.scale[1] / case.scale[0])
        return as_given(A @ sparse, case.layout)
    b = rng.standard_normal(case.m)
    if case.layout == "int":
        b = np.rint(4 * b)
    if case.regime == "no signal":
        b = np.zeros(case.m)
    elif case.regime == "ties":
        b = np.full(case.m, 1.0)
    return as_given(b * case.scale[1], case.layout)


def form(case, rng, indefinite=False):
    """Return a symmetric n × n matrix, positive semidefinite unless `indefinite`."""
    A = table(case, rng, collinear=1e-4)
    if indefinite:
        S = rng.standard_normal((case.n, case.n))
        Q = (S + S.T) / 2.0 * case.scale[0]
        if case.regime == "ties":
            Q = np.diag(rng.choice([-1.0, 0.0, 1.0], case.n)) * case.scale[0]
    else:
        A = A / case.scale[0]
        Q = A.T @ A * (1.0 if case.layout == "int" else 1.0 / case.m)
        Q = (Q + Q.T) / 2.0 * case.scale[0]
    Q = as_given(Q, case.layout)
    return (Q + Q.T) / 2.0 if case.layout != "int" else Q + Q.T
