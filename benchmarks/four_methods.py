"""`auto` beside the paper's four methods of Table 5, each with the paper's grid of weights, over sizes and seeds.

`python benchmarks/four_methods.py --sizes 1 2 --seeds 0 1 2 3 4 --methods pdca apdca l1dca mipdca`; the last two methods take
minutes beyond size 2.
"""

from __future__ import annotations

import argparse

from rich.console import Console
from rich.table import Table

import ksparse as ks
from ksparse.datasets import table5


def main() -> None:
    parser = argparse.ArgumentParser(description="auto beside the paper's methods on Table 5")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--methods", nargs="+", default=["pdca", "apdca", "l1dca", "mipdca"])
    options = parser.parse_args()
    console = Console(width=120)
    table = Table(title="Table 5: objective by method (smaller is better), seconds in brackets")
    for column in ("i", "seed", *options.methods, "auto", "best"):
        table.add_column(column, justify="right")
    for i in options.sizes:
        for seed in options.seeds:
            data = table5(i, seed)
            loss, C = ks.LeastSquares(data.A, data.b), ks.Nonnegative(data.nonnegative)
            results = {method: ks.minimize(loss, data.k, C, method=method) for method in [*options.methods, "auto"]}
            best = min(results, key=lambda method: results[method].fun)
            cells = [f"{results[method].fun:.4f} ({results[method].elapsed:.1f})" for method in [*options.methods, "auto"]]
            table.add_row(str(i), str(seed), *cells, best)
    console.print(table)


if __name__ == "__main__":
    main()
