"""Losses of the user's own in JAX, `ks.autodiff` beside skscope's ScopeSolver: least squares, Cox, a smoothed quantile; 100 × 200, k = 5.

Each twice in one process: the first call compiles, the second has a loss that is compiled (skscope compiles again at every call). Both
libraries are loaded before. Objectives from the raw data, by NumPy in double precision. Cox is there by a cumulative sum, and by
`cumlogsumexp`, of which JAX makes a hundred operations.

Claims: an objective as good as skscope's or better everywhere; a loss that is compiled solved in no more time than skscope takes.
Needs jax and skscope.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import ksparse as ks

M, N, K, TAU, WIDTH = 100, 200, 5, 0.7, 0.5


def problems() -> dict[str, tuple[Callable[[Any], Any], Callable[[np.ndarray], float]]]:
    """By name: the function in JAX, and its value in NumPy."""
    import jax
    import jax.numpy as jnp

    rng = np.random.default_rng(0)
    A, x = rng.standard_normal((M, N)), np.zeros(N)
    x[:K] = 2.0, -1.5, 1.0, 1.2, -0.8
    b = A @ x + 0.5 * rng.standard_normal(M)
    life, cut = rng.exponential(np.exp(-A @ x)), rng.exponential(1.0, M)
    order = np.argsort(-np.minimum(life, cut))
    rows, died = A[order], (life <= cut).astype(float)[order]

    def cox(x: Any) -> Any:
        score = rows @ x
        return jnp.sum(died * (jnp.log(jnp.cumsum(jnp.exp(score))) - score))

    def scanned(x: Any) -> Any:
        score = rows @ x
        return jnp.sum(died * (jax.lax.cumlogsumexp(score) - score))

    def quantile(x: Any) -> Any:
        rest = b - A @ x
        return jnp.sum(TAU * rest + WIDTH * jnp.logaddexp(0.0, -rest / WIDTH))

    def risk(x: np.ndarray) -> float:
        return float(np.sum(died * (np.logaddexp.accumulate(rows @ x) - rows @ x)))

    def check(x: np.ndarray) -> float:
        rest = b - A @ x
        return float(np.sum(TAU * rest + WIDTH * np.logaddexp(0.0, -rest / WIDTH)))

    return {
        "least squares": (lambda x: 0.5 * jnp.sum((A @ x - b) ** 2), lambda x: float(0.5 * np.sum((A @ x - b) ** 2))),
        "Cox": (cox, risk),
        "Cox by cumlogsumexp": (scanned, risk),
        "smoothed quantile": (quantile, check),
    }


def main() -> None:
    import jax
    from skscope import ScopeSolver

    jax.config.update("jax_enable_x64", True)  # for skscope, which takes what JAX is told
    ScopeSolver(4, 1).solve(lambda x: ((x - 1.0) ** 2).sum(), jit=True)  # loaded, as we are
    ks.minimize(ks.autodiff(lambda x: ((x - 1.0) ** 2).sum(), n=4, backend="jax"), 1)

    def ours(loss: ks.Loss) -> np.ndarray:
        return np.asarray(ks.minimize(loss, K).x)

    def theirs(fn: Callable[[Any], Any]) -> np.ndarray:
        solver = ScopeSolver(N, K)
        solver.solve(fn, jit=True)
        return np.asarray(solver.params)

    table = Table(title=f"Own losses in JAX, {M} × {N}, k = {K}: seconds, of the processor in brackets")
    for column in ("loss", "contender", "first call", "second call", "objective"):
        table.add_column(column, justify="left" if column in ("loss", "contender") else "right")
    for name, (fn, value) in problems().items():
        loss = ks.autodiff(fn, n=N, backend="jax")
        for contender, call in (("ksparse", lambda loss=loss: ours(loss)), ("skscope", lambda fn=fn: theirs(fn))):
            spent = []
            for _ in range(2):
                began = time.perf_counter(), time.process_time()
                x = call()
                spent.append(f"{time.perf_counter() - began[0]:.2f} ({time.process_time() - began[1]:.2f})")
            table.add_row(name, contender, *spent, f"{value(x):.10g}")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
