"""How much variance k measurements can carry: sparse PCA of the pit props for every k, a table and a picture."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

import ksparse as ks
from ksparse.datasets import pit_props
from ksparse.plotting import COLOURS

OUT = Path("pit_props.png")


def main() -> None:
    """Solve for k = 1…13, print, draw."""
    R, names = pit_props()
    results = [ks.minimize(ks.PrincipalComponent(R), k, ks.L2Ball()) for k in range(1, 14)]
    papers = [ks.minimize(ks.PrincipalComponent(R), k, ks.L2Ball(), method="apdca") for k in range(1, 14)]
    table = Table(title="Variance of the first component of the pit props with at most k measurements")
    for column, justify in (("k", "right"), ("l2-APDCA", "right"), ("auto", "right"), ("auto ended", "left"), ("measurements", "left")):
        table.add_column(column, justify=justify)  # type: ignore[arg-type]
    for paper, result in zip(papers, results, strict=True):
        chosen = ", ".join(names[i] for i in result.support)
        table.add_row(str(result.k), f"{-paper.fun:.4f}", f"{-result.fun:.4f}", result.message, chosen)
    Console(width=120).print(table)

    figure = Figure(figsize=(7, 4.2), layout="constrained", facecolor="white")
    axes = figure.subplots()
    axes.bar(range(1, 14), [-result.fun for result in results], color=COLOURS[0])
    axes.axhline(np.linalg.eigvalsh(R)[-1], color=COLOURS[1], linestyle="--", label="all 13 measurements")
    axes.set(xlabel="k, measurements allowed", ylabel="variance of the component", title="Pit props: variance against sparsity")
    axes.set_ylim(0, 5)
    axes.set_xticks(range(1, 14))
    axes.legend(frameon=False, loc="upper left")
    figure.savefig(OUT, dpi=150)
    print(f"Picture: {OUT}")


if __name__ == "__main__":
    main()
