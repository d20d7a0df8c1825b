"""The pictures of a run: one per table."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING, Any

from ksparse.experiments.row import Row, frame
from ksparse.plotting import plot_convergence, plot_objective_time, plot_starts

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(name: str, rows: list[Row]) -> Figure | None:
    """The picture of an experiment, or None where no row came out."""
    solved = [row for row in rows if row.cardinality == row.cardinality]  # not nan
    if not solved:
        return None
    if name == "table2":
        return _convergence(solved)
    table = frame(solved)
    if name == "pitprops":
        ax: Any = plot_starts(table, reference=float(table["objective"].min()), label="best of all")
        ax.set_title(f"Pit props, k = {solved[0].k}: {table['repetition'].nunique()} random starts", pad=24, fontsize="medium")
    else:
        ax = plot_objective_time(table)
        ax.set_title(f"{name.replace('table', 'Table ')}: how good against how long", pad=24, fontsize="medium")
    return ax.figure  # type: ignore[no-any-return]


def _convergence(rows: list[Row]) -> Figure:
    """Both ways to look at the largest instance of Table 2."""
    from matplotlib.figure import Figure

    last = rows[-1].instance
    traces = {row.method: _with_lipschitz(row) for row in rows if row.instance == last and row.seed == rows[-1].seed}
    figure = Figure(figsize=(10, 4.2), layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2, sharey=True)
    plot_convergence(traces, "iterations", ax=left)
    plot_convergence(traces, "time", ax=right)
    right.set_ylabel("")
    figure.suptitle(f"Table 2, {last}: convergence", fontsize="medium")
    return figure


def _with_lipschitz(row: Row) -> dict[str, Any]:
    """The trace of a row, its clock started where the work for L began, as the paper counts."""
    trace: dict[str, Any] = row.details["trace"]
    return trace if math.isnan(row.time_lipschitz) else trace | {"elapsed": [t + row.time_lipschitz for t in trace["elapsed"]]}


def to_png(figure: Figure) -> bytes:
    """The picture as a PNG file; pyplot, where it is pyplot's, may forget it."""
    import matplotlib.pyplot as plt

    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=140, facecolor="white")
    plt.close(figure)
    return buffer.getvalue()
