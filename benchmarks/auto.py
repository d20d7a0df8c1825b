"""`auto` compared with the paper's ℓ2-APDCA and its grid of weights, all rows in one run.

Prints the objective of both, recomputed from the raw data, and the ratio of their times: below 1 `auto` is faster. Rows
on real data need the folder named by KSPARSE_DATA.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
from rich.console import Console
from rich.table import Table

import ksparse as ks
from ksparse.datasets import MissingDataError, colon, table5, tokyo

REPEATS = 3
Row = tuple[str, ks.losses.Loss, int, ks.sets.ConvexSet, Callable[[np.ndarray], float]]


def problems(console: Console) -> Iterator[Row]:
    for i in range(1, 6):
        data = table5(i, seed=0)
        C = ks.Nonnegative(data.nonnegative)
        value = lambda x, data=data: 0.5 * float(np.sum((data.A @ x - data.b) ** 2))  # noqa: E731
        yield (
            f"Table 5, i = {i} ({data.A.shape[0]} x {data.A.shape[1]}, k = {data.k})",
            ks.LeastSquares(data.A, data.b),
            data.k,
            C,
            value,
        )
    try:
        X, _ = colon()
        R = np.corrcoef(X.T)
        yield (
            "colon (62 x 2000, k = 100)",
            ks.PrincipalComponent.from_data(X),
            100,
            ks.L2Ball(),
            lambda x: -float(x @ R @ x),
        )
        assets = tokyo()
        V, r = assets.V, assets.r
        yield (
            "Tokyo (1338 stocks, k = 10)",
            ks.MeanVariance(V, r, 10),
            10,
            ks.Hyperplane(),
            lambda x: float(10 * x @ V @ x - r @ x),
        )
    except MissingDataError as error:
        console.print(f"left out: {error}")


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
            name, f"{value(paper.x):.6g}", f"{value(ours.x):.6g}", str(ours.swaps),
            ours.status.name.lower().replace("_", "-"), f"{seconds:.2f}", f"{our_seconds:.2f}",
            f"{our_seconds / seconds:.2f}",
        )  # fmt: skip
    console.print(table)


if __name__ == "__main__":
    main()
