"""Small problems beside abess and orthogonal matching pursuit, and the first calls of a fresh install.

    python benchmarks/small.py [--quick]

CPU time on one thread, the shortest of many calls, by turns. A first call runs in a process of its own, with an empty
cache of compiled loops; its time less that of a second call is the time of compiling.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import ksparse as ks

SHAPES = ((20, 5, 1), (50, 10, 3), (50, 30, 5), (200, 500, 3), (442, 64, 10), (100, 100, 10), (200, 30, 5))
SETUP = """
import time
import numpy as np
import ksparse as ks
rng = np.random.default_rng(0)
A, X = rng.uniform(size=(100, 120)), np.zeros((120, 300))
for column in X.T:
    column[rng.choice(120, 5, replace=False)] = rng.dirichlet(np.ones(5))
B = A @ X + 0.02 * rng.standard_normal((100, 300))
R = (rng.standard_normal((250, 8)) @ rng.standard_normal((8, 60)) + 2 * rng.standard_normal((250, 60))) / 100
labels = np.sign(A[:, 0] - A[:, 1] + 0.3 * rng.standard_normal(100))
for turn in range(2):
    began = time.process_time()
    CALL
    print(time.process_time() - began)
"""
FIRST = {
    "minimize_many, 300 right-hand sides": "ks.minimize_many(A, B, 5, ks.Nonnegative())",
    "SparsePortfolio, gap=0.01": "ks.SparsePortfolio(8, gap=0.01).fit(R)",
    "logistic with a ridge, gap=0.01": "ks.minimize(ks.Logistic(A[:, :20], labels, ridge=1.0), 4, gap=0.01)",
}


def data(m: int, n: int, k: int) -> tuple[Any, Any]:
    """Return a regression with k relevant columns."""
    rng = np.random.default_rng(0)
    A, x = rng.standard_normal((m, n)), np.zeros(n)
    x[rng.choice(n, k, replace=False)] = 2.0 * rng.standard_normal(k)
    return A, A @ x + 0.5 * rng.standard_normal(m)


def contenders(A: Any, b: Any, k: int) -> dict[str, Callable[[], Any]]:
    """Return the calls that are compared."""
    loss = ks.LeastSquares(A, b)
    calls: dict[str, Callable[[], Any]] = {
        "minimize": lambda: ks.minimize(loss, k),
        "nonnegative": lambda: ks.minimize(loss, k, ks.Nonnegative()),
        "SparseRegressor": lambda: ks.SparseRegressor(k).fit(A, b),
        "logistic": lambda: ks.minimize(ks.Logistic(A, np.sign(b)), k),
    }
    try:
        from abess import LinearRegression

        calls["abess"] = lambda: LinearRegression(support_size=k, fit_intercept=False).fit(A, b, is_normal=False)
    except ImportError:
        pass
    from sklearn.linear_model import OrthogonalMatchingPursuit

    calls["OMP"] = lambda: OrthogonalMatchingPursuit(n_nonzero_coefs=k, fit_intercept=False).fit(A, b)
    return calls


def shortest(calls: dict[str, Callable[[], Any]], turns: int) -> dict[str, float]:
    """Return the shortest CPU time of each call, in milliseconds."""
    best = dict.fromkeys(calls, np.inf)
    for _ in range(turns):
        for name, call in calls.items():
            began = time.process_time()
            call()
            best[name] = min(best[name], 1e3 * (time.process_time() - began))
    return best


def first_call(call: str) -> tuple[float, float]:
    """Return the CPU seconds of a first and of a second call, with nothing compiled before."""
    with tempfile.TemporaryDirectory() as cache:
        env = os.environ | {"NUMBA_CACHE_DIR": cache, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        code = [sys.executable, "-W", "ignore", "-c", SETUP.replace("CALL", call)]
        printed = subprocess.run(code, env=env, capture_output=True, text=True, check=True).stdout
    first, second = (float(line) for line in printed.split())
    return first, second


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="two turns, and one first call")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore")
    shapes = SHAPES[:2] if quick else SHAPES
    for place, (m, n, k) in enumerate(shapes):
        with threadpool_limits(1):
            found = shortest(contenders(*data(m, n, k), k), 2 if quick else 40)
        if not place:
            print(f"{'CPU time (ms)':<18}" + "".join(f"{name:>17}" for name in found))
        print(f"{f'{m} x {n}, k = {k}':<18}" + "".join(f"{value:>17.2f}" for value in found.values()), flush=True)
    print(f"\n{'first calls':<40}{'first (s)':>10}{'second (s)':>11}{'compiling (s)':>14}")
    for name, call in list(FIRST.items())[: 1 if quick else None]:
        first, second = first_call(call)
        print(f"{name:<40}{first:>10.2f}{second:>11.3f}{first - second:>14.2f}", flush=True)


if __name__ == "__main__":
    main()
