"""`auto` beside the paper's ℓ2-APDCA with its grid of weights, all rows in one run.

Prints the objective of both, recomputed from the raw data, and the ratio of their times: below 1 `auto` is faster. Rows on real data need
the folder named by KSPARSE_DATA and say so where it is missing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import ksparse as ks
from ksparse.datasets import table5

REPEATS = 3
Row = tuple[str, ks.losses.Loss, int, ks.sets.ConvexSet, Callable[[np.ndarray], float]]


def problems(console: Console) -> Iterator[Row]:
    for i in range(1, 6):
        data = table5(i, seed=0)
        C = ks.Nonnegative(data.nonnegative)
        value = lambda x, data=data: 0.5 * float(np.sum((data.A @ x - data.b) ** 2))  # noqa: E731
        yield f"Table 5, i = {i} ({data.A.shape[0]} x {data.A.shape[1]}, k = {data.k})", ks.LeastSquares(data.A, data.b), data.k, C, value
    colon = real("colon_alon1999.npz", console)
    if colon is not None:
        R = np.corrcoef(colon["X"].T)
        loss = ks.PrincipalComponent.from_data(colon["X"])
        yield "colon (62 x 2000, k = 100)", loss, 100, ks.L2Ball(), lambda x: -float(x @ R @ x)
    tokyo = real("tokyo_daily_returns_2148x1338.npz", console)
    if tokyo is not None:
        returns = tokyo["returns"].astype(float)
        V, r = np.cov(returns.T), returns.mean(axis=0)
        loss = ks.MeanVariance(V, r, 10)
        yield "Tokyo (1338 stocks, k = 10)", loss, 10, ks.Hyperplane(), lambda x: float(10 * x @ V @ x - r @ x)


def real(name: str, console: Console) -> dict[str, np.ndarray] | None:
    path = Path(os.environ.get("KSPARSE_DATA", "")) / name
    if "KSPARSE_DATA" not in os.environ or not path.exists():
        console.print(f"left out: {name} is not in the folder named by KSPARSE_DATA")
        return None
    return dict(np.load(path, allow_pickle=False))


def median_run(call: Callable[[], ks.Result]) -> tuple[ks.Result, float]:
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - start)
    return result, float(np.median(times))


def main() -> None:
    console = Console(width=140)
    table = Table(title=f"auto beside l2-APDCA with the paper's nine weights (medians of {REPEATS} runs)")
    for column in ("problem", "APDCA", "auto", "swaps", "auto ended", "s, APDCA", "s, auto", "time ratio"):
        table.add_column(column, justify="left" if column in ("problem", "auto ended") else "right")
    for name, loss, k, C, value in problems(console):
        paper, seconds = median_run(lambda loss=loss, k=k, C=C: ks.minimize(loss, k, C, method="apdca"))
        ours, our_seconds = median_run(lambda loss=loss, k=k, C=C: ks.minimize(loss, k, C))
        for result in (paper, ours):
            assert np.count_nonzero(result.x) <= k
            assert C.violation(result.x) <= 1e-9
        table.add_row(
            name, f"{value(paper.x):.6g}", f"{value(ours.x):.6g}", str(ours.swaps), ours.status.name.lower().replace("_", "-"),
            f"{seconds:.2f}", f"{our_seconds:.2f}", f"{our_seconds / seconds:.2f}",
        )  # fmt: skip
    console.print(table)


if __name__ == "__main__":
    main()
