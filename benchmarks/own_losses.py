"""Losses written in JAX: `ks.autodiff` and skscope on least squares, Cox and a smoothed quantile; 100 × 200, k = 5.

Each contender solves each loss twice in its own process, on one thread, after a warm-up on a small function: the first
call compiles, the second has a compiled loss (skscope compiles again at every call). Times are medians of the CPU time
over `--times` processes, in turn. Objectives are recomputed from the raw data by NumPy in double precision. Cox is
tested with a cumulative sum, and with `cumlogsumexp`, which JAX turns into hundreds of operations.

Claims: an objective as good as skscope's or better everywhere, in no more time at the first call, in two thirds of it
at the second. Needs jax and skscope.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import ksparse as ks

M, N, K, TAU, WIDTH = 100, 200, 5, 0.7, 0.5


def problems() -> dict[str, tuple[Callable[[Any], Any], Callable[[np.ndarray], float]]]:
    """Return the functions in JAX and their values in NumPy, by name."""
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


def ours(fn: Callable[[Any], Any]) -> Callable[[], np.ndarray]:
    """Load JAX and return a call that solves."""
    ks.minimize(ks.autodiff(lambda x: ((x - 1.0) ** 2).sum(), n=40, backend="jax"), 3)
    loss = ks.autodiff(fn, n=N, backend="jax")
    return lambda: np.asarray(ks.minimize(loss, K).x)


def theirs(fn: Callable[[Any], Any]) -> Callable[[], np.ndarray]:
    import jax
    from skscope import ScopeSolver

    jax.config.update("jax_enable_x64", True)  # skscope uses JAX's setting
    ScopeSolver(40, 3).solve(lambda x: ((x - 1.0) ** 2).sum(), jit=True)

    def call() -> np.ndarray:
        solver = ScopeSolver(N, K)
        solver.solve(fn, jit=True)
        return np.asarray(solver.params)

    return call


CONTENDERS = {"ksparse": ours, "skscope": theirs}


def measure(name: str, contender: str) -> tuple[float, float, float]:
    """Return the seconds of the first and of the second call, and the objective."""
    fn, value = problems()[name]
    call, spent = CONTENDERS[contender](fn), []
    for _ in range(2):
        began = time.process_time()
        x = call()
        spent.append(time.process_time() - began)
    return spent[0], spent[1], value(x)


def alone(name: str, contender: str) -> tuple[float, float, float]:
    """Measure in a separate process, on one thread."""
    command = [sys.executable, __file__, "--only", name, contender]
    one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | one)
    first, second, value = (float(number) for number in done.stdout.split()[-3:])
    return first, second, value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=3, help="processes for each contender and loss")
    parser.add_argument("--only", nargs=2, metavar=("LOSS", "CONTENDER"), help="a single measurement, in this process")
    options = parser.parse_args()
    if options.only:
        print(*measure(*options.only))
        return
    table = Table(title=f"Own losses in JAX, {M} × {N}, k = {K}: CPU seconds")
    for column in ("loss", "contender", "first call", "second call", "objective"):
        table.add_column(column, justify="left" if column in ("loss", "contender") else "right")
    for name in problems():
        runs = [{contender: alone(name, contender) for contender in CONTENDERS} for _ in range(options.times)]
        for contender in CONTENDERS:
            first, second, value = np.median([run[contender] for run in runs], axis=0)
            table.add_row(name, contender, f"{first:.2f}", f"{second:.2f}", f"{value:.10g}")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
