"""A table as people read it: the columns that carry something, ours beside the paper's, the best in each instance marked."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ksparse.experiments.readings import summary
from ksparse.experiments.row import Row

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = (  # name in the frame, heading, format
    ("rho", "ρ", "g"),
    ("cardinality", "nonzeros", "g"),
    ("objective", "objective", ".4g"),
    ("return", "return", ".3g"),
    ("time", "time (s)", ".3g"),
    ("iterations", "iterations", "g"),
)
_EXTRA = (("time_all", "all ρ (s)", ".3g"), ("time_lipschitz", "t_L (s)", ".2g"))
_AT_WEIGHT = (  # name in an outcome, heading, format
    ("rho", "ρ", "g"),
    ("F", "penalised F", ".4g"),
    ("fun", "objective", ".4g"),
    ("nonzeros", "nonzeros", "g"),
    ("elapsed", "time (s)", ".3g"),
    ("nit", "iterations", "g"),
)
_PAPERS = (("objective", "objective", ".4g"), ("time", "time (s)", ".3g"), ("iterations", "iterations", "g"))  # of `Figures`
AT_PAPERS_WEIGHTS = "At the paper's own ρ: the penalised F, and the objective once the point is made k-sparse"
PAPER = "paper: "  # before the heading of a column of the paper's figures


@dataclass(frozen=True)
class Line:
    """One line of the table on the page."""

    instance: str  # empty where it is that of the line above
    method: str
    cells: tuple[str, ...]
    best: bool  # in its instance, by objective
    note: str


@dataclass(frozen=True)
class Layout:
    """Headings and lines."""

    headings: tuple[str, ...]
    lines: tuple[Line, ...]


def compact(layout: Layout) -> Layout:
    """The same with the paper's figures in brackets behind ours, for a narrow screen."""
    ours = [heading for heading in layout.headings if not heading.startswith(PAPER)]
    theirs = {heading.removeprefix(PAPER): place for place, heading in enumerate(layout.headings) if heading.startswith(PAPER)}

    def merged(line: Line) -> Line:
        behind = [line.cells[theirs[heading]] if heading in theirs else "" for heading in ours]
        cells = tuple(f"{cell} ({paper})" if paper else cell for cell, paper in zip(line.cells, behind, strict=False))
        return replace(line, cells=cells)

    return Layout(tuple(f"{heading} (paper)" if heading in theirs else heading for heading in ours), tuple(map(merged, layout.lines)))


def lay_out(table: pd.DataFrame) -> Layout:
    """The table of Tables 2–5 on a page."""
    rows = summary(table)
    shown = [column for column in _COLUMNS if rows[column[0]].notna().any() or rows[f"paper_{column[0]}"].notna().any()]
    extra = [column for column in _EXTRA if rows[column[0]].notna().any() and (column[0] != "time_all" or rows["rho"].notna().any())]
    paper = [column for column in [*shown, *extra] if f"paper_{column[0]}" in rows and rows[f"paper_{column[0]}"].notna().any()]
    headings = [heading for _, heading, _ in [*shown, *extra]] + [f"{PAPER}{heading}" for _, heading, _ in paper]
    lines, above = [], None
    for _, row in rows.iterrows():
        name = row["instance"] if rows["seed"].nunique() == 1 else f"{row['instance']}, seed {row['seed']}"
        group = rows[(rows["instance"] == row["instance"]) & (rows["seed"] == row["seed"])]
        cells = [_number(row[column], form) for column, _, form in [*shown, *extra]]
        cells += [_number(row[f"paper_{column}"], form) for column, _, form in paper]
        best = bool(row["objective"] <= group["objective"].min() * (1.0 + math.copysign(1e-9, group["objective"].min())))
        lines.append(Line("" if name == above else name, row["method"], tuple(cells), best, row["note"]))
        above = name
    return Layout(tuple(headings), tuple(lines))


def at_papers_weights(rows: list[Row]) -> Layout:
    """Each method at the weight that the paper chose for it: the penalised F where it ended, and φ of that point made k-sparse.

    No line is the best: F of one penalty and F of another cannot be compared.
    """
    headings = [heading for _, heading, _ in _AT_WEIGHT] + [f"{PAPER}{heading}" for _, heading, _ in _PAPERS]
    lines, above = [], None
    for row in rows:
        name = row.instance if len({other.seed for other in rows}) == 1 else f"{row.instance}, seed {row.seed}"
        tried = [entry for entry in row.details.get("weights", []) if entry["rho"] == row.paper.rho and entry.get("F") is not None]
        for entry in tried if row.repetition == 0 else []:
            cells = [_number(entry[key], form) for key, _, form in _AT_WEIGHT]
            cells += [_number(getattr(row.paper, key), form) for key, _, form in _PAPERS]
            lines.append(Line("" if name == above else name, row.method, tuple(cells), False, ""))
            above = name
    return Layout(tuple(headings), tuple(lines))


def starts_layout(table: pd.DataFrame) -> Layout:
    """The box plot's five numbers per method."""
    lines: list[Line] = []
    best = table["objective"].min()
    for method, rows in table.groupby("method", sort=False):
        values = rows["objective"]
        cells = [_number(values.quantile(q) + 0.0, ".4f") for q in (0.0, 0.25, 0.5, 0.75, 1.0)] + [_number(rows["time"].median(), ".2g")]
        note = next((note for note in rows["note"] if note), "")
        lines.append(
            Line("" if lines else str(rows["instance"].iloc[0]), str(method), tuple(cells), bool(values.median() <= best + 1e-9), note)
        )
    return Layout(("least", "quarter", "median", "three quarters", "most", "median time (s)"), tuple(lines))


def _number(value: Any, form: str) -> str:
    return "" if value is None or math.isnan(value) else format(value, form)
