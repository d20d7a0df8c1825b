"""CPU and wall time with the default number of threads, relative to one thread.

    python benchmarks/threads.py [CASE …] [--repeats 3]

Each case runs in separate processes in turn, with OPENBLAS_NUM_THREADS and OMP_NUM_THREADS set to 1 or unset. The
shortest times count.
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

import ksparse as ks

M, N, K = 20_000, 500, 20


def classifier() -> Callable[[], Any]:
    X, y = labels(M, N)
    return lambda: ks.SparseClassifier(k=K).fit(X, y)


def classifier_cv() -> Callable[[], Any]:
    X, y = labels(M // 4, N // 2)
    return lambda: ks.SparseClassifierCV(range(5, 16, 5)).fit(X, y)


def regressor_cv() -> Callable[[], Any]:
    X, score = table(M, N)
    return lambda: ks.SparseRegressorCV(range(5, 31, 5)).fit(X, score)


def huber() -> Callable[[], Any]:
    X, score = table(M, N)
    return lambda: ks.SparseRegressor(K, loss="huber").fit(X, score)


def least_squares() -> Callable[[], Any]:
    A, b = table(2_000, 10_000)
    return lambda: ks.minimize(ks.LeastSquares(A, b), K)


def paper() -> Callable[[], Any]:
    A, b = table(2_000, 5_000)
    return lambda: ks.minimize(ks.LeastSquares(A, b), K, method="apdca", rho=1.0, max_iter=100)


def quadratic() -> Callable[[], Any]:
    R = table(600, 2_200)[0]
    return lambda: ks.minimize(ks.MeanVariance.from_returns(R, 0.5), 10, ks.BudgetBox(1.0, 0.0, 0.4))


CASES = {
    make.__name__: make for make in (classifier, classifier_cv, regressor_cv, huber, least_squares, paper, quadratic)
}


def table(m: int, n: int) -> tuple[Any, Any]:
    """Return a matrix, and a noisy combination of K of its columns."""
    rng = np.random.default_rng(0)
    A, x = rng.standard_normal((m, n)), np.zeros(n)
    x[rng.choice(n, K, replace=False)] = rng.standard_normal(K)
    return A, A @ x + rng.logistic(size=m)


def labels(m: int, n: int) -> tuple[Any, Any]:
    A, score = table(m, n)
    return A, (score > 0).astype(int)


def measured(case: str, threads: str | None) -> tuple[float, float]:
    """Return CPU and wall time of one case in its own process; "1" thread, or None for the default."""
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    if threads is not None:
        environment |= dict.fromkeys(names, threads)
    done = subprocess.run(
        [sys.executable, __file__, "--child", case], env=environment, capture_output=True, text=True, check=True
    )
    cpu, wall = map(float, done.stdout.split())
    return cpu, wall


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cases", nargs="*", help=f"of {', '.join(CASES)}; default all")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--child", choices=CASES, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        run = CASES[given.child]()
        time.sleep(0.5)  # threads spin for a while after the product that made the data
        cpu, wall = time.process_time(), time.perf_counter()
        run()
        print(time.process_time() - cpu, time.perf_counter() - wall)
        return
    print(f"{'case':16} {'one thread':>20} {'default':>20} {'CPU ratio':>10} {'wall ratio':>10}")
    for case in given.cases or CASES:
        times: dict[str | None, list[tuple[float, float]]] = {"1": [], None: []}
        for _ in range(given.repeats):
            for threads, found in times.items():
                found.append(measured(case, threads))
        (cpu_one, wall_one), (cpu, wall) = (
            [min(part) for part in zip(*found, strict=True)] for found in times.values()
        )
        left, right = f"{cpu_one:.2f} s, {wall_one:.2f} s", f"{cpu:.2f} s, {wall:.2f} s"
        print(f"{case:16} {left:>20} {right:>20} {cpu / cpu_one:>10.2f} {wall / wall_one:>10.2f}", flush=True)


if __name__ == "__main__":
    main()
