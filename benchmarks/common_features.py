"""Common features of several targets or classes: `MultiResponse` and `Multinomial` against abess, skscope and groups.

Least squares of t correlated targets on n correlated columns, and the digits of scikit-learn by k of 64 pixels. Every
contender's features are compared by the objective of the best model on them, from an independent solver. Excess is
relative to the best of the run.

Claims: no contender has a better objective, and groups of entries take longer for an equal objective. Needs abess and
skscope (with jax) for their rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax
from sklearn.datasets import load_digits

import ksparse as ks

RIDGE = 1e-4  # per row, of the multinomial model: where features separate classes there is no minimum without

Chooser = Callable[[], np.ndarray]


def squares(A: np.ndarray, B: np.ndarray, S: np.ndarray) -> float:
    """Return the least ½‖AX − B‖² on the columns S."""
    return 0.5 * float(np.sum((A[:, S] @ np.linalg.lstsq(A[:, S], B, rcond=None)[0] - B) ** 2))


def deviance(A: np.ndarray, Y: np.ndarray, S: np.ndarray) -> float:
    """Return the least multinomial loss with ridge on the columns S and an intercept, by L-BFGS on the definition."""
    Z, (m, t) = np.column_stack([A[:, S], np.ones(len(A))]), Y.shape
    rho = np.append(np.full(S.size, RIDGE * m), 0.0)[:, None]

    def value(flat: np.ndarray) -> tuple[float, np.ndarray]:
        X = flat.reshape(-1, t)
        scores = Z @ X
        fun = logsumexp(scores, axis=1).sum() - (Y * scores).sum() + 0.5 * (rho * X**2).sum()
        return fun, (Z.T @ (softmax(scores, axis=1) - Y) + rho * X).ravel()

    return float(
        minimize(
            value, np.zeros(Z.shape[1] * t), jac=True, method="L-BFGS-B", options={"maxiter": 5_000, "maxfun": 10_000}
        ).fun
    )


def rows_of(loss: ks.Loss, k: int, **options: object) -> np.ndarray:
    """Return the features that `minimize` selects."""
    return np.flatnonzero(loss.matrix(ks.minimize(loss, k, **options).x).any(axis=1))


def targets(
    m: int, n: int, t: int, k: int, near: float = 0.0
) -> tuple[str, dict[str, Chooser], Callable[[np.ndarray], float]]:
    """Least squares with neighbouring columns correlated by `near`: title, solvers, objective of a selection."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((m, n)) @ (
        np.eye(n) + 0.5 * rng.standard_normal((n, n)) / np.sqrt(n)
    ) + 0.5 * rng.standard_normal((m, 1))
    for j in range(1, n):
        A[:, j] = near * A[:, j - 1] + np.sqrt(1 - near**2) * A[:, j]
    X = np.zeros((n, t))
    X[rng.choice(n, k, replace=False)] = 0.3 * rng.standard_normal((k, t))
    B = A @ X + 2.0 * rng.standard_normal((m, t))
    A, B = A - A.mean(axis=0), B - B.mean(axis=0)
    loss = ks.MultiResponse(A, B)
    found: dict[str, Chooser] = {
        "ksparse": lambda: rows_of(loss, k),
        "ksparse, effort=4": lambda: rows_of(loss, k, effort=4),
    }
    if n * t <= 1_000:
        entries, labels = ks.Quadratic(np.kron(A.T @ A, np.eye(t)), -(A.T @ B).ravel()), np.repeat(np.arange(n), t)
        found["ksparse, groups of entries"] = lambda: np.unique(ks.minimize(entries, k, groups=labels).support // t)
    try:
        from abess import MultiTaskRegression
    except ImportError:
        pass
    else:
        found["abess"] = lambda: np.flatnonzero(
            MultiTaskRegression(support_size=k, fit_intercept=False).fit(A, B).coef_.any(axis=1)
        )
    try:
        import jax.numpy as jnp
        from skscope import ScopeSolver
    except ImportError:
        pass
    else:

        def scope() -> np.ndarray:
            groups = [i for i in range(n) for _ in range(t)]
            solver = ScopeSolver(n * t, k, group=groups)
            return np.unique(
                np.flatnonzero(solver.solve(lambda x: jnp.sum((A @ x.reshape(n, t) - B) ** 2), jit=True)) // t
            )

        found["skscope"] = scope
    return f"squares, {m} × {n}, {t} targets, k = {k}, neighbours {near:g}", found, lambda S: squares(A, B, S)


def classes(k: int) -> tuple[str, dict[str, Chooser], Callable[[np.ndarray], float]]:
    """Return the digits without the pixels that are always blank."""
    X, y = load_digits(return_X_y=True)
    X = X[:, X.std(axis=0) > 0]
    A, Y = (X - X.mean(axis=0)) / X.std(axis=0), (y[:, None] == np.arange(10)).astype(float)
    found: dict[str, Chooser] = {
        "ksparse": lambda: np.flatnonzero(ks.SparseClassifier(k, alpha=RIDGE).fit(A, y).get_support()),
    }
    try:
        from abess import MultinomialRegression
    except ImportError:
        pass
    else:
        found["abess"] = lambda: np.flatnonzero(MultinomialRegression(support_size=k).fit(A, Y).coef_.any(axis=1))
    try:
        import jax.numpy as jnp
        from jax.scipy.special import logsumexp as log_sum
        from skscope import ScopeSolver
    except ImportError:
        pass
    else:
        m, n = A.shape
        Z, rho = np.column_stack([A, np.ones(m)]), np.append(np.full(n, RIDGE * m), 0.0)[:, None]

        def loss(x: np.ndarray) -> np.ndarray:
            W = x.reshape(n + 1, 10)
            scores = Z @ W
            return jnp.sum(log_sum(scores, axis=1)) - jnp.sum(Y * scores) + 0.5 * jnp.sum(rho * W**2)

        def scope() -> np.ndarray:
            solver = ScopeSolver(10 * (n + 1), k + 1, group=[i for i in range(n + 1) for _ in range(10)], preselect=[n])
            S = np.unique(np.flatnonzero(solver.solve(loss, jit=True)) // 10)
            return S[S < n]

        found["skscope"] = scope
    return f"digits, {A.shape[0]} × {A.shape[1]}, 10 classes, k = {k}", found, lambda S: deviance(A, Y, S)


def main() -> None:
    for title, contenders, worth in (
        targets(300, 200, 5, 10), targets(500, 1_000, 20, 20), targets(100, 300, 3, 15, 0.9), classes(5), classes(10),
        classes(20),
    ):  # fmt: skip
        table = Table(title=title)
        for column in ("contender", "seconds", "CPU seconds", "features", "objective", "excess"):
            table.add_column(column, justify="left" if column == "contender" else "right")
        rows = []
        for name, choose in contenders.items():
            began = time.perf_counter(), time.process_time()
            S = choose()
            spent = time.perf_counter() - began[0], time.process_time() - began[1]
            rows.append((name, *spent, S.size, worth(S)))
        best = min(row[4] for row in rows)
        for name, seconds, busy, size, value in rows:
            table.add_row(
                name, f"{seconds:.2f}", f"{busy:.2f}", str(size), f"{value:.6g}", f"{100 * (value / best - 1):.3f} %"
            )
        Console(width=110).print(table)


if __name__ == "__main__":
    main()
