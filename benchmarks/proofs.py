"""Proofs for OR-Library's portfolios: budget, required return, ridge and minimum weights; compared with SCIP.

Claims: proved to within 0.01 %, the lower bound below the best answer of all, in at most a hundredth of the time of
SCIP with perspective cuts. Ends with a picture of the gap closing, `proofs.png`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from suite.command import main, parser
from suite.contenders.ours import pieces
from suite.problems import build, names

SHOWN = ("port2, budget, k = 10", "port4, budget, k = 5", "port4, ridge + return, k = 10", "pard200_c, k = none")


def closing(name: str, quick: bool) -> tuple[list[float], list[float]]:
    """Return the times of a proof in seconds, and the gap at each."""
    import ksparse as ks

    problem = build("proofs", name, quick)
    loss, C = pieces(problem)
    seconds: list[float] = []
    gaps: list[float] = []

    def callback(intermediate_result) -> None:
        if "gap" in intermediate_result:
            seconds.append(intermediate_result.elapsed)
            gaps.append(100 * intermediate_result.gap)

    ks.minimize(loss, problem.k, C, min_nonzero=problem.floor, gap=1e-4, max_time=60.0, callback=callback)
    return seconds, gaps


def draw(path: Path, quick: bool) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from suite.profile import COLOURS

    figure = Figure(figsize=(8.0, 4.2), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for colour, name in zip(COLOURS, names("proofs", quick) if quick else SHOWN, strict=False):
        axes.step(*closing(name, quick), where="post", label=name, color=colour)
    axes.axhline(0.01, color="0.4", linewidth=0.8, linestyle=":")
    axes.set(xlabel="seconds", ylabel="gap, %", xscale="log", yscale="log")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main("proofs", __doc__)
    given = parser(__doc__).parse_args(sys.argv[1:])
    draw(given.out / "proofs.png", given.quick)
