"""What `make demo` runs: the paper's methods on embedded data, a table on the screen and two pictures in the folder demo/."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from rich.console import Console
from rich.table import Table

import ksparse as ks
from ksparse.datasets import pit_props, table2

mpl.use("Agg")
import matplotlib.pyplot as plt  # after the backend is chosen

OUT = Path("demo")
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"]  # Okabe and Ito: safe for colour-blind eyes


def first_order_methods(console: Console) -> None:
    """Table 2 of the paper, smallest size: the l1-2 penalised regression, every first-order method."""
    data = table2(1, seed=0)
    loss, penalty = ks.LeastSquares(data.A, data.b), ks.L1MinusL2(5e-4)
    rows = [("pdca", "backtracking"), ("gist", "backtracking"), ("nmapg", "fixed"), ("apdca", "fixed"), ("apdca", "backtracking")]
    results = {f"{method} ({step})": ks.minimize_penalized(loss, penalty, method=method, step=step) for method, step in rows}
    results["pdcae (fixed)"] = ks.minimize_penalized(loss, penalty, method="pdcae")
    table = Table(title="Penalised regression, 720 x 2560 (the paper's Table 2, i = 1)")
    for column in ("method", "objective", "iterations", "products with A", "seconds"):
        table.add_column(column, justify="left" if column == "method" else "right")
    for name, result in results.items():
        products = str(result.trace.products[-1])
        table.add_row(name, f"{result.fun:.4e}", str(result.nit), products, f"{result.elapsed:.2f}")
    console.print(table)
    best = min(result.trace.F.min() for result in results.values())
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for (name, result), colour in zip(results.items(), COLOURS, strict=True):
        axes.semilogy(result.trace.products, np.maximum(result.trace.F - best, 1e-8), label=name, color=colour)
    axes.set(xlabel="products with A", ylabel="F minus the best F", title="Six methods on one penalised regression", xlim=(0, 2500))
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(OUT / "convergence.png", dpi=150)


def sparse_components(console: Console) -> None:
    """Sparse PCA of the pit props for every k: how much variance k measurements can carry."""
    R, names = pit_props()
    results = [ks.minimize(ks.PrincipalComponent(R), k, ks.L2Ball()) for k in range(1, 14)]
    papers = [ks.minimize(ks.PrincipalComponent(R), k, ks.L2Ball(), method="apdca") for k in range(1, 14)]
    table = Table(title="Variance of the first component of the pit props with at most k measurements")
    for column, justify in (("k", "right"), ("l2-APDCA", "right"), ("auto", "right"), ("auto ended", "left"), ("measurements", "left")):
        table.add_column(column, justify=justify)  # type: ignore[arg-type]
    for paper, result in zip(papers, results, strict=True):
        chosen = ", ".join(names[i] for i in result.support)
        table.add_row(str(result.k), f"{-paper.fun:.4f}", f"{-result.fun:.4f}", result.message, chosen)
    console.print(table)
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    axes.bar(range(1, 14), [-result.fun for result in results], color=COLOURS[0])
    axes.axhline(np.linalg.eigvalsh(R)[-1], color=COLOURS[1], linestyle="--", label="all 13 measurements")
    axes.set(
        xlabel="k, measurements allowed", ylabel="variance of the component", title="Pit props: variance against sparsity", ylim=(0, 5)
    )
    axes.set_xticks(range(1, 14))
    axes.legend(frameon=False, loc="upper left")
    figure.savefig(OUT / "pit_props.png", dpi=150)


def main() -> None:
    """Both, then where the pictures lie."""
    console = Console(width=120)
    OUT.mkdir(exist_ok=True)
    first_order_methods(console)
    sparse_components(console)
    console.print(f"Pictures: {OUT / 'convergence.png'}, {OUT / 'pit_props.png'}")


if __name__ == "__main__":
    main()
