"""Time and quality of a path over k = 1…50 compared with one fit at k = 50, on real data (riboflavin, communities).

Needs the data files in the folder named by KSPARSE_DATA. Prints the ratio of the times: 50 is the cost of fifty fits.
"""

from __future__ import annotations

import time

import numpy as np
from rich.console import Console
from rich.table import Table

import ksparse as ks
from ksparse.datasets import MissingDataError, communities, riboflavin

K = 50


def main() -> None:
    console = Console(width=120)
    table = Table(title=f"Path over k = 1...{K} beside one fit at k = {K}")
    for column in (
        "data",
        "s, one fit",
        "s, path",
        "time ratio",
        "rises",
        "fit at k = 50",
        "path at k = 50",
        "k where the path is worse than a fit of its own",
    ):
        table.add_column(column, justify="left" if column == "data" else "right")
    for name, load in (("communities (1993 x 100)", communities), ("riboflavin (71 x 4088)", riboflavin)):
        try:
            X, y = load()
        except MissingDataError as error:
            console.print(f"left out: {error}")
            continue
        Z = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
        loss = ks.LeastSquares(Z, (y - y.mean()) / y.std())
        began = time.perf_counter()
        fit = ks.minimize(loss, K)
        one = time.perf_counter() - began
        began = time.perf_counter()
        path = ks.k_path(loss, range(1, K + 1))
        whole = time.perf_counter() - began
        value = [0.5 * float(np.sum((Z @ x - (y - y.mean()) / y.std()) ** 2)) for x in path.x]
        worse = [k for k in (5, 10, 20, 30, 40) if value[k - 1] > ks.minimize(loss, k).fun * (1 + 1e-6)]
        rises = int(np.sum(np.diff(value) > 1e-9 * np.array(value[:-1])))
        table.add_row(
            name, f"{one:.2f}", f"{whole:.2f}", f"{whole / one:.1f}", str(rises), f"{fit.fun:.5g}", f"{value[-1]:.5g}",
            str(worse or "none of 5, 10, 20, 30, 40"),
        )  # fmt: skip
    console.print(table)


if __name__ == "__main__":
    main()
