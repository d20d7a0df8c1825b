"""report.html: one file with everything in it, readable on a desk and on a phone."""

from __future__ import annotations

import base64
import datetime
import io
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any

from ksparse.experiments.readings import claims, reading, summary
from ksparse.experiments.row import Row, frame
from ksparse.experiments.tables import EXPERIMENTS
from ksparse.plotting import plot_convergence, plot_objective_time, plot_starts

if TYPE_CHECKING:
    import pandas as pd
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
        ax.set_title(
            f"Pit props, k = {solved[0].k}: {table['repetition'].nunique()} random starts", pad=24, fontsize="medium"
        )
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
    return (
        trace
        if math.isnan(row.time_lipschitz)
        else trace | {"elapsed": [t + row.time_lipschitz for t in trace["elapsed"]]}
    )


def to_png(figure: Figure) -> bytes:
    """The picture as a PNG file; pyplot, where it is pyplot's, may forget it."""
    import matplotlib.pyplot as plt

    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=140, facecolor="white")
    plt.close(figure)
    return buffer.getvalue()


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
_PAPERS = (
    ("objective", "objective", ".4g"),
    ("time", "time (s)", ".3g"),
    ("iterations", "iterations", "g"),
)  # of `Figures`
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
    theirs = {
        heading.removeprefix(PAPER): place for place, heading in enumerate(layout.headings) if heading.startswith(PAPER)
    }

    def merged(line: Line) -> Line:
        behind = [line.cells[theirs[heading]] if heading in theirs else "" for heading in ours]
        cells = tuple(f"{cell} ({paper})" if paper else cell for cell, paper in zip(line.cells, behind, strict=False))
        return replace(line, cells=cells)

    return Layout(
        tuple(f"{heading} (paper)" if heading in theirs else heading for heading in ours),
        tuple(map(merged, layout.lines)),
    )


def lay_out(table: pd.DataFrame) -> Layout:
    """The table of Tables 2–5 on a page."""
    rows = summary(table)
    shown = [column for column in _COLUMNS if rows[column[0]].notna().any() or rows[f"paper_{column[0]}"].notna().any()]
    extra = [
        column
        for column in _EXTRA
        if rows[column[0]].notna().any() and (column[0] != "time_all" or rows["rho"].notna().any())
    ]
    paper = [
        column
        for column in [*shown, *extra]
        if f"paper_{column[0]}" in rows and rows[f"paper_{column[0]}"].notna().any()
    ]
    headings = [heading for _, heading, _ in [*shown, *extra]] + [f"{PAPER}{heading}" for _, heading, _ in paper]
    lines, above = [], None
    for _, row in rows.iterrows():
        name = row["instance"] if rows["seed"].nunique() == 1 else f"{row['instance']}, seed {row['seed']}"
        group = rows[(rows["instance"] == row["instance"]) & (rows["seed"] == row["seed"])]
        cells = [_number(row[column], form) for column, _, form in [*shown, *extra]]
        cells += [_number(row[f"paper_{column}"], form) for column, _, form in paper]
        best = bool(
            row["objective"] <= group["objective"].min() * (1.0 + math.copysign(1e-9, group["objective"].min()))
        )
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
        tried = [
            entry
            for entry in row.details.get("weights", [])
            if entry["rho"] == row.paper.rho and entry.get("F") is not None
        ]
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
        cells = [_number(values.quantile(q) + 0.0, ".4f") for q in (0.0, 0.25, 0.5, 0.75, 1.0)] + [
            _number(rows["time"].median(), ".2g")
        ]
        note = next((note for note in rows["note"] if note), "")
        lines.append(
            Line(
                "" if lines else str(rows["instance"].iloc[0]),
                str(method),
                tuple(cells),
                bool(values.median() <= best + 1e-9),
                note,
            )
        )
    return Layout(("least", "quarter", "median", "three quarters", "most", "median time (s)"), tuple(lines))


def _number(value: Any, form: str) -> str:
    return "" if value is None or math.isnan(value) else format(value, form)


def markdown(rows_of: dict[str, list[Row]]) -> str:
    """A section per experiment that was run."""
    return "\n".join(_markdown_section(name, rows) for name, rows in rows_of.items())


def _markdown_section(name: str, rows: list[Row]) -> str:
    experiment, table = EXPERIMENTS[name], frame(rows)
    layout = starts_layout(table) if name == "pitprops" else compact(lay_out(table))
    weights = compact(at_papers_weights(rows))
    notes = dict.fromkeys(f"{line.method}: {line.note}" for line in layout.lines if line.note)
    parts = [f"## {experiment.title}", experiment.about, f"**{reading(name, table)}**"]
    parts += ["\n".join(f"- {claim}" for claim in claims(name, table)), _markdown_table(layout)]
    parts += [f"{AT_PAPERS_WEIGHTS}:", _markdown_table(weights)] if weights.lines else []
    parts += [f"Not as in the paper: {experiment.differs}", f"Notes: {'; '.join(notes)}." if notes else ""]
    return "\n\n".join(part for part in parts if part) + "\n"


def _markdown_table(layout: Layout) -> str:
    """The best of each instance in bold, figures to the right."""
    lines = [["instance", "method", *layout.headings], ["---", "---", *("--:" for _ in layout.headings)]]
    for line in layout.lines:
        cells = [
            f"**{cell}**" if line.best and heading.split(" (")[0] in ("objective", "median") else cell
            for heading, cell in zip(layout.headings, line.cells, strict=True)
        ]
        lines.append([line.instance, line.method, *cells])
    return "\n".join(_markdown_line(line) for line in lines)


def _markdown_line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; max-width: 78rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.6rem; line-height: 1.2; } h2 { font-size: 1.25rem; margin-top: 2.5rem; border-top: 1px solid #ccc; padding-top: 1rem; }
h3 { font-size: 1rem; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: .85rem; width: 100%; }
th, td { padding: .25rem .5rem; text-align: right; white-space: nowrap; border-bottom: 1px solid #e3e3e3; }
th { background: #f5f5f5; font-weight: 600; } th.text, td.text { text-align: left; }
tr.above th { text-align: center; }
tr.first td { border-top: 2px solid #999; } td.best { font-weight: 700; } .paper { color: #555; background: #fafafa; }
img { max-width: min(100%, 50rem); height: auto; }
@media (max-width: 40rem) { figure { overflow-x: auto; } img { max-width: none; width: 34rem; } }
code { background: #f2f2f2; padding: .1rem .3rem; overflow-wrap: anywhere; }
.fails { color: #9a3300; } figcaption, .small { font-size: .85rem; color: #555; }
dl { display: grid; grid-template-columns: auto 1fr; gap: 0 1rem; }
dt { color: #555; } dd { margin: 0; overflow-wrap: anywhere; } figure { margin: 1rem 0; }
"""


@dataclass(frozen=True)
class Made:
    """How a run was made."""

    command: str
    environment: dict[str, str]


def html(rows_of: dict[str, list[Row]], pictures: dict[str, bytes], made: Made) -> str:
    """The report on the experiments that were run."""
    sections = "".join(_section(name, rows, pictures.get(name)) for name, rows in rows_of.items())
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    seeds = ", ".join(str(seed) for seed in sorted({row.seed for rows in rows_of.values() for row in rows}))
    rows = [row for table in rows_of.values() for row in table]
    limits = " and ".join(f"{limit:g}" for limit in sorted({row.limit for row in rows if row.limit > 0}))
    facts = {"command": made.command, "seeds": seeds, "limit": f"{limits or 'no'} s per method and instance"}
    facts |= {"time of all rows": f"{sum(row.time_all for row in rows if row.status):.0f} s", **made.environment}
    facts |= {
        f"{count} rows measured on": where
        for where, count in Counter(row.machine for row in rows if row.status).items()
    }
    listed = "".join(f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in facts.items())
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>ksparse: the paper's experiments</title><link rel="icon" href="data:,"><style>{_STYLE}</style></head><body>
<h1>The experiments of “Efficient DC Algorithm for Constrained Sparse Optimization”</h1>
<p>Tono, Takeda and Gotoh (2017), run again with ksparse on {today} by <code>{escape(made.command)}</code>. Objective, nonzeros and
feasibility are recomputed from the raw data. The time of a method with a grid of weights ρ is that of the chosen weight, as in the
paper; the time of the whole grid stands beside it. The best objective of each instance is bold.</p>
{sections}
<h2>How it was made</h2><dl>{listed}</dl>
</body></html>
"""


def _section(name: str, rows: list[Row], picture: bytes | None) -> str:
    experiment, table = EXPERIMENTS[name], frame(rows)
    layout, weights = starts_layout(table) if name == "pitprops" else lay_out(table), at_papers_weights(rows)
    image = "" if picture is None else (
        f'<figure><img alt="{escape(experiment.title)}" src="data:image/png;base64,{base64.b64encode(picture).decode()}">'
        f"<figcaption>{name}.png</figcaption></figure>"
    )  # fmt: skip
    said = "".join(
        f"<li{' class=fails' if claim.fails else ''}>{escape(str(claim))}</li>" for claim in claims(name, table)
    )
    return f"""<section id="{name}"><h2>{escape(experiment.title)}</h2>
<p>{escape(experiment.about)}</p>
<p><strong>{escape(reading(name, table))}</strong></p>
{f"<ul>{said}</ul>" if said else ""}
{_worst(table)}
<div class="scroll">{_table(layout)}</div>
{f'<h3>{escape(AT_PAPERS_WEIGHTS)}</h3><div class="scroll">{_table(weights)}</div>' if weights.lines else ""}{image}
<p class="small">Not as in the paper: {escape(experiment.differs)}</p></section>
"""


def _worst(table: pd.DataFrame) -> str:
    solved = table.dropna(subset=["objective"])
    if solved.empty:
        return ""
    return f'<p class="small">Largest distance of an answer to the set: {solved["violation"].max():.1e}.</p>'


def _table(layout: Layout) -> str:
    """The table, its notes numbered below it."""
    paper = [heading.startswith(PAPER) for heading in layout.headings]
    heads = "".join(
        f"<th{' class=paper' if theirs else ''}>{escape(heading.removeprefix(PAPER))}</th>"
        for heading, theirs in zip(layout.headings, paper, strict=True)
    )
    notes = list(dict.fromkeys(line.note for line in layout.lines if line.note))
    body = "".join(_line(line, layout.headings, notes) for line in layout.lines)
    heads = f'<th class="text">instance</th><th class="text">method</th>{heads}'
    ours, papers = paper.count(False), paper.count(True)
    above = f"<tr class=above><th colspan=2></th><th colspan={ours}>ksparse</th><th colspan={papers} class=paper>paper</th></tr>"
    listed = "".join(f"<li>{escape(note)}</li>" for note in notes)
    below = f'<ol class="small">{listed}</ol>' if notes else ""
    return f"<table><thead>{above if papers else ''}<tr>{heads}</tr></thead><tbody>{body}</tbody></table>{below}"


def _line(line: Line, headings: tuple[str, ...], notes: list[str]) -> str:
    cells = ""
    for heading, cell in zip(headings, line.cells, strict=True):
        kind = (
            "paper" if heading.startswith(PAPER) else "best" if line.best and heading in ("objective", "median") else ""
        )
        cells += f"<td{f' class={kind}' if kind else ''}>{escape(cell)}</td>"
    mark = f" <sup>{notes.index(line.note) + 1}</sup>" if line.note else ""
    first = " class=first" if line.instance else ""
    return f'<tr{first}><td class="text">{escape(line.instance)}</td><td class="text">{escape(line.method)}{mark}</td>{cells}</tr>'
