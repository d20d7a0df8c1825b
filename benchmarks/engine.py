"""Cost of a step of each method compared with one product with A and one with its transpose, in one run.

Steps and products are measured in turn, pairs before and after every run, so that both run under the same load. The
ratio is the median over the runs of the median time of a step, from the trace, over that of the pairs around it: 1.0 is
the cost of two passes over A, and less is possible where one pass gives both products (large A, numba installed).
`whole` is the time of the call, with its start and its final check, over the number of steps.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from rich.console import Console
from rich.table import Table

import ksparse as ks

REPEATS, STEPS, PAIRS = 9, 60, 10
SIZES = ((720, 2560), (1440, 5120), (3600, 12800))
METHODS = (
    ("pdca", "fixed"),
    ("apdca", "fixed"),
    ("pdcae", "fixed"),
    ("pdca", "backtracking"),
    ("apdca", "backtracking"),
)


def pair_seconds(A: np.ndarray, x: np.ndarray, r: np.ndarray) -> list[float]:
    times = []
    for _ in range(PAIRS):
        start = time.perf_counter()
        A @ x
        A.T @ r
        times.append(time.perf_counter() - start)
    return times


def by_blocks(A: np.ndarray, x: np.ndarray, rows: int = 16) -> np.ndarray:
    """Compute AᵀAx by a plain loop over blocks of rows that stay in the cache: one pass over A."""
    g, part = np.zeros(A.shape[1]), np.empty(A.shape[1])
    for begin in range(0, A.shape[0], rows):
        block = A[begin : begin + rows]
        np.dot(block @ x, block, out=part)
        g += part
    return g


def measure_blocks(m: int, n: int, A: np.ndarray, rng: np.random.Generator) -> list[str]:
    """Time the same single pass without a compiler, in turn with the two products."""
    x, r = rng.standard_normal(n), rng.standard_normal(m)
    pairs, loops = [], []
    for _ in range(2 * REPEATS):
        pairs += pair_seconds(A, x, r)
        start = time.perf_counter()
        by_blocks(A, x)
        loops.append(time.perf_counter() - start)
    pair, loop = float(np.median(pairs)), float(np.median(loops))
    return [
        f"{m} x {n}",
        "NumPy loop, 16 rows",
        "",
        "one",
        f"{1e3 * pair:.2f}",
        f"{1e3 * loop:.2f}",
        "1.00",
        f"{loop / pair:.2f}",
        "",
    ]


def measure(
    m: int, n: int, method: str, step: str, loss: ks.LeastSquares, A: np.ndarray, rng: np.random.Generator
) -> list[str]:
    x, r = rng.standard_normal(n), rng.standard_normal(m)
    runs = []  # of each: seconds of a pair, of a step, and of the call over its steps
    for _ in range(REPEATS):
        before = pair_seconds(A, x, r)
        start = time.perf_counter()
        result = ks.minimize_penalized(loss, ks.L1MinusL2(1.0), method=method, step=step, tol=0.0, max_iter=STEPS)
        whole = (time.perf_counter() - start) / STEPS
        runs.append((np.median(before + pair_seconds(A, x, r)), np.median(np.diff(result.trace.elapsed)), whole))
    pairs, steps, wholes = np.array(runs).T
    products = (result.trace.products[-1] - result.trace.products[0]) / STEPS
    form = "one" if loss.one_pass else "two"
    times = [f"{1e3 * np.median(seconds):.2f}" for seconds in (pairs, steps)]
    ratios = [f"{np.median(seconds / pairs):.2f}" for seconds in (steps, wholes)]
    return [f"{m} x {n}", method, step, form, *times, f"{products:.2f}", *ratios]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the smallest size only")
    options = parser.parse_args()
    table = Table(title=f"A step beside A @ x and A.T @ r ({REPEATS} runs of {STEPS} steps)")
    for column in ("size", "method", "step", "passes", "ms, pair", "ms, step", "products per step", "ratio", "whole"):
        table.add_column(column, justify="right")
    for m, n in SIZES[:1] if options.quick else SIZES:
        rng = np.random.default_rng(0)
        A, b = rng.standard_normal((m, n)), rng.standard_normal(m)
        loss = ks.LeastSquares(A, b)
        loss.lipschitz()  # the fixed steps' own cost is paid once, apart
        ks.minimize_penalized(loss, ks.L1MinusL2(1.0), max_iter=2)  # and so is the compiler's
        table.add_row(*measure_blocks(m, n, A, rng))
        for method, step in METHODS:
            table.add_row(*measure(m, n, method, step, loss, A, rng))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
