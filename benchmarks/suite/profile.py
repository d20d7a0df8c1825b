"""Performance profiles (Dolan and Moré 2002): share of problems solved within a multiple of the fastest time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from suite.contenders import OURS
from suite.row import Row, best_of, problems_of

GAP = 1e-3  # within 0.1 % of the best feasible objective counts as solved
COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
)  # Okabe and Ito: distinct for colour-blind readers
STYLES = ("-", "--", ":", "-.")
Ratios = dict[str, list[float]]  # by contender: time over the fastest, for each problem it solved


def ratios(rows: Sequence[Row], gap: float = GAP) -> tuple[Ratios, int]:
    """Return the ratios of all contenders, and the number of problems solved by at least one of them."""
    found: Ratios = {row.contender: [] for row in rows if not row.missing}
    solved_problems = 0
    for several in problems_of(list(rows)).values():
        best = best_of(several)
        solved = {
            row.contender: row.time
            for row in several
            if row.solved and row.feasible and row.objective <= best + gap * abs(best)
        }
        solved_problems += bool(solved)
        fastest = min(solved.values(), default=math.nan)
        for name, seconds in solved.items():
            found[name].append(seconds / fastest)
    return found, solved_problems


def draw(rows: Sequence[Row], path: Path, gap: float = GAP) -> None:
    """Draw one panel per kind of problem, so that a library is compared only on kinds that it supports."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # no display, no global state
    from matplotlib.figure import Figure

    kinds = list(dict.fromkeys(row.kind for row in rows if row.solved))
    figure = Figure(figsize=(9.0, 3.2 * max(1, len(kinds))), layout="constrained")
    FigureCanvasAgg(figure)
    for panel, kind in enumerate(kinds, start=1):
        _panel(figure.add_subplot(len(kinds), 1, panel), kind, *ratios([row for row in rows if row.kind == kind], gap))
    figure.suptitle(
        f"Share of problems solved (feasible, within {100 * gap:g} % of the best) in a multiple of the fastest time"
    )
    figure.savefig(path, dpi=150)


def _panel(axes, kind: str, found: Ratios, problems: int) -> None:
    longest = 2.0 * max((max(values) for values in found.values() if values), default=1.0)
    order = sorted(found, key=lambda name: (name != OURS, -len(found[name]), sorted(found[name])))
    for position, name in enumerate(order):
        at = sorted(found[name])
        heights = [(i + 1) / problems for i in range(len(at))]
        axes.step(
            [1.0, *at, longest], [0.0, *heights, heights[-1] if heights else 0.0], where="post",
            label=f"{name} ({len(at)} of {problems})", color=COLOURS[position % len(COLOURS)],
            linestyle=STYLES[position // len(COLOURS) % len(STYLES)], linewidth=2.6 if name == OURS else 1.6,
            zorder=3 if name == OURS else 2,
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_xlim(1.0, longest)
    axes.set_ylim(-0.02, 1.05)
    axes.set_title(f"{kind}, {problems} problem{'s' if problems != 1 else ''}", loc="left", fontsize=10)
    axes.set_xlabel("time over the fastest", fontsize=8)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
