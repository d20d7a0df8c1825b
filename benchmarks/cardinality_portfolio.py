"""Least variance with at most 10 assets, long only: `SparseMeanRisk` beside skfolio's `MeanRisk(cardinality=10)` with SCIP, in one run.

20 assets of skfolio's S&P data, then 98 assets of OR-Library (port4, simulated returns with its mean and covariance). Variances are
recomputed from the covariance. `--seconds` limits SCIP (default 300); needs `pip install 'ksparse[skfolio]' pyscipopt`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from skfolio.datasets import load_sp500_dataset
from skfolio.optimization import MeanRisk
from skfolio.preprocessing import prices_to_returns

from ksparse.datasets import MissingDataError, orlib_portfolio
from ksparse.skfolio import SparseMeanRisk

K = 10


def problems(console: Console) -> Iterator[tuple[str, pd.DataFrame]]:
    yield "S&P, 20 assets", prices_to_returns(load_sp500_dataset())
    try:
        assets = orlib_portfolio(4)
    except MissingDataError as error:
        console.print(f"left out: {error}")
        return
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((1000, len(assets.r)))
    draws -= draws.mean(axis=0)
    draws = draws @ np.linalg.inv(np.linalg.cholesky(np.cov(draws.T))).T  # exactly the identity as sample covariance
    values, vectors = np.linalg.eigh(assets.V)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    yield "OR-Library port4, 98 assets", pd.DataFrame(draws @ root.T + assets.r, columns=assets.names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0)
    options = parser.parse_args()
    console = Console(width=130)
    table = Table(title=f"Least variance, at most {K} assets, long only")
    for column in ("problem", "SCIP: variance", "names", "s", "ours: variance", "names", "s", "variance ratio", "time ratio", "ours ended"):
        table.add_column(column, justify="left" if column in ("problem", "ours ended") else "right")
    for name, returns in problems(console):
        V = np.cov(returns.to_numpy().T)
        scale = 1.0 / float(np.sqrt(np.median(np.diag(V))))  # SCIP's tolerances are absolute: variances around 1
        began = time.perf_counter()
        limit = {"scip_params": {"limits/time": options.seconds}}
        theirs = MeanRisk(cardinality=K, solver="SCIP", solver_params=limit).fit(scale * returns)
        their_seconds = time.perf_counter() - began
        began = time.perf_counter()
        ours = SparseMeanRisk(K).fit(returns)
        our_seconds = time.perf_counter() - began
        w = np.where(np.abs(theirs.weights_) > 1e-6, theirs.weights_, 0.0)
        w, x = w / w.sum(), ours.weights_
        table.add_row(
            name, f"{w @ V @ w:.6e}", str(np.count_nonzero(w)), f"{their_seconds:.1f}", f"{x @ V @ x:.6e}", str(np.count_nonzero(x)),
            f"{our_seconds:.2f}", f"{(x @ V @ x) / (w @ V @ w):.6f}", f"1/{their_seconds / our_seconds:.0f}",
            ours.result_.status.name.lower(),
        )  # fmt: skip
    console.print(table)


if __name__ == "__main__":
    main()
