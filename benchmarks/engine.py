"""What a step of each method costs beside one product with A and one with its transpose, all in one run.

Run by `make bench`. Prints a ratio per method: 1.0 would be no cost beyond the two products.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table

import ksparse as ks

REPEATS = 3
STEPS = 30


def median_seconds(call: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def main() -> None:
    console = Console(width=120)
    table = Table(title=f"Seconds per step over seconds for A @ x and A.T @ r (medians of {REPEATS} runs of {STEPS} steps)")
    for column in ("size", "method", "step", "ms per step", "ms per pair of products", "products per step", "ratio"):
        table.add_column(column, justify="right")
    for m, n in ((720, 2560), (3600, 12800)):
        rng = np.random.default_rng(0)
        A, b = rng.standard_normal((m, n)), rng.standard_normal(m)
        x, r = rng.standard_normal(n), rng.standard_normal(m)
        pair = median_seconds(lambda A=A, x=x, r=r: [(A @ x, A.T @ r) for _ in range(STEPS)]) / STEPS
        loss = ks.LeastSquares(A, b)
        loss.lipschitz()  # the fixed steps' own cost is paid once, apart
        for method, step in (
            ("pdca", "fixed"),
            ("apdca", "fixed"),
            ("pdcae", "fixed"),
            ("pdca", "backtracking"),
            ("apdca", "backtracking"),
        ):
            runs: list[ks.Result] = []

            def call(loss=loss, method=method, step=step, runs=runs) -> None:
                runs.append(ks.minimize_penalized(loss, ks.L1MinusL2(1.0), method=method, step=step, tol=0.0, max_iter=STEPS))

            per_step = median_seconds(call) / STEPS
            products = runs[-1].trace.products[-1] / STEPS
            table.add_row(
                f"{m} x {n}", method, step, f"{1e3 * per_step:.2f}", f"{1e3 * pair:.2f}", f"{products:.2f}", f"{per_step / pair:.2f}"
            )
    console.print(table)


if __name__ == "__main__":
    main()
