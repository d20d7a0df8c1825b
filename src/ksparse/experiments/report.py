"""Tables and pictures of the experiments, and the report of a run as one HTML page or as Markdown."""

from __future__ import annotations

import base64
import datetime
import io
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any

from ksparse.experiments.readings import Claim, claims, is_best, reading, summary
from ksparse.experiments.row import Row, frame
from ksparse.experiments.tables import EXPERIMENTS, Experiment
from ksparse.plotting import plot_convergence, plot_objective_time, plot_starts
from ksparse.util import display

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def draw(name: str, rows: list[Row]) -> Figure | None:
    """Return the picture of an experiment, or None if no row has a result."""
    solved = [row for row in rows if not math.isnan(row.cardinality)]
    if not solved:
        return None
    if name == "table2":
        return _convergence(solved)
    table = frame(solved)
    if name == "pitprops":
        ax: Any = plot_starts(table, reference=float(table["objective"].min()), label="best known value")
        title = f"Pit props, k = {solved[0].k}: {table['repetition'].nunique()} random starts"
    else:
        ax = plot_objective_time(table)
        title = f"{name.replace('table', 'Table ')}: objective against time"
    ax.set_title(title, pad=24, fontsize="medium")
    return ax.figure  # type: ignore[no-any-return]


def _convergence(rows: list[Row]) -> Figure:
    """Return the convergence on the largest instance of Table 2, against iterations and against time."""
    from matplotlib.figure import Figure

    last = rows[-1]
    traces = {}
    for row in rows:
        if (row.instance, row.seed) == (last.instance, last.seed):
            trace = row.details["trace"]
            before = 0.0 if math.isnan(row.time_lipschitz) else row.time_lipschitz  # included, as in the paper
            traces[row.method] = trace | {"elapsed": [t + before for t in trace["elapsed"]]}
    figure = Figure(figsize=(10, 4.2), layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2, sharey=True)
    plot_convergence(traces, "iterations", ax=left)
    plot_convergence(traces, "time", ax=right)
    right.set_ylabel("")
    figure.suptitle(f"Table 2, {last.instance}: convergence", fontsize="medium")
    return figure


def to_png(figure: Figure) -> bytes:
    """Return the picture as a PNG file, and close it in pyplot."""
    import matplotlib.pyplot as plt

    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=140, facecolor="white")
    plt.close(figure)
    return buffer.getvalue()


Columns = tuple[tuple[str, str, str], ...]  # name, heading, format
_OF_ROWS: Columns = (
    ("rho", "ρ", "g"), ("cardinality", "nonzeros", "g"), ("objective", "objective", ".4g"), ("return", "return", ".3g"),
    ("time", "time (s)", ".3g"), ("iterations", "iterations", "g"), ("time_all", "time for all ρ (s)", ".3g"),
    ("time_lipschitz", "t_L (s)", ".2g"),
)  # fmt: skip
_OF_WEIGHTS: Columns = (
    ("rho", "ρ", "g"), ("F", "penalised F", ".4g"), ("fun", "objective", ".4g"), ("nonzeros", "nonzeros", "g"),
    ("elapsed", "time (s)", ".3g"), ("nit", "iterations", "g"),
)  # fmt: skip
_OF_PAPER: Columns = tuple(column for column in _OF_ROWS if column[0] in ("objective", "time", "iterations"))
AT_PAPERS_WEIGHTS = "At the paper's ρ: penalised F, and objective of the point after rounding to k nonzeros"
PAPER = "paper: "  # prefix of the headings of the paper's columns


@dataclass(frozen=True)
class Line:
    """One line of a table."""

    instance: str  # empty if it is that of the line above
    method: str
    cells: tuple[str, ...]
    best: bool = False  # whether it has the best objective of its instance
    note: str = ""


@dataclass(frozen=True)
class Layout:
    """Headings and lines of a table."""

    headings: tuple[str, ...]
    lines: tuple[Line, ...]

    @classmethod
    def of(cls, headings: Iterable[str], lines: list[Line]) -> Layout:
        """Return the layout with repeated instances left blank."""
        above = [None, *(line.instance for line in lines)]
        shown = [replace(row, instance="") if row.instance == a else row for a, row in zip(above, lines, strict=False)]
        return cls(tuple(headings), tuple(shown))

    @property
    def notes(self) -> list[str]:
        """The distinct notes, with their method unless all methods were left out."""
        notes = [(line.method, line.note) for line in self.lines if line.note]
        return list(dict.fromkeys(note if note.startswith("left out") else f"{name}: {note}" for name, note in notes))


def compact(layout: Layout) -> Layout:
    """Return a narrower layout, with the paper's figures in brackets after ours."""
    paper = {h.removeprefix(PAPER): place for place, h in enumerate(layout.headings) if h.startswith(PAPER)}
    ours = [heading for heading in layout.headings if not heading.startswith(PAPER)]

    def merged(cells: tuple[str, ...]) -> tuple[str, ...]:
        printed = [cells[paper[heading]] if heading in paper else "" for heading in ours]
        return tuple(f"{cell} ({other})" if other else cell for cell, other in zip(cells, printed, strict=False))

    headings = tuple(f"{heading} (paper)" if heading in paper else heading for heading in ours)
    return Layout(headings, tuple(replace(line, cells=merged(line.cells)) for line in layout.lines))


def _cells(values: Any, columns: Iterable[tuple[str, str, str]], prefix: str = "") -> list[str]:
    return [_number(values[f"{prefix}{name}"], form) for name, _, form in columns]


def _number(value: Any, form: str) -> str:
    return "" if value is None or math.isnan(value) else format(value, form)


def _instance(row: Any, several_seeds: bool) -> str:
    return f"{row['instance']}, seed {row['seed']}" if several_seeds else str(row["instance"])


def lay_out(table: pd.DataFrame) -> Layout:
    """Return the layout of Tables 2-5, without empty columns."""
    rows = summary(table)
    full = {name for name in rows.columns if rows[name].notna().any()}
    if "rho" not in full:
        full.discard("time_all")
    shown = [column for column in _OF_ROWS if {column[0], f"paper_{column[0]}"} & full]
    paper = [column for column in shown if f"paper_{column[0]}" in full]
    headings = [heading for _, heading, _ in shown] + [f"{PAPER}{heading}" for _, heading, _ in paper]
    several = rows["seed"].nunique() > 1
    lines = []
    for row, best in zip(rows.to_dict("records"), is_best(rows), strict=True):
        cells = _cells(row, shown) + _cells(row, paper, "paper_")
        lines.append(Line(_instance(row, several), row["method"], tuple(cells), bool(best), row["note"]))
    return Layout.of(headings, lines)


def at_papers_weights(rows: list[Row]) -> Layout:
    """Return each method at the weight chosen in the paper: the penalised F, and φ after rounding to k nonzeros.

    No line is marked as best, since F of different penalties cannot be compared.
    """
    headings = [heading for _, heading, _ in _OF_WEIGHTS] + [f"{PAPER}{heading}" for _, heading, _ in _OF_PAPER]
    several = len({row.seed for row in rows}) > 1
    lines = []
    for row in rows:
        for entry in row.details.get("weights", []) if row.repetition == 0 else []:
            if entry["rho"] == row.paper.rho and entry.get("F") is not None:
                cells = _cells(entry, _OF_WEIGHTS) + _cells(vars(row.paper), _OF_PAPER)
                lines.append(Line(_instance(vars(row), several), row.method, tuple(cells)))
    return Layout.of(headings, lines)


def starts_layout(table: pd.DataFrame) -> Layout:
    """Return the quartiles of the objective over the starts of each method."""
    lines: list[Line] = []
    best = table["objective"].min()
    for method, rows in table.groupby("method", sort=False):
        quartiles = rows["objective"].quantile([0.0, 0.25, 0.5, 0.75, 1.0]) + 0.0
        cells = [*(_number(value, ".4f") for value in quartiles), _number(rows["time"].median(), ".2g")]
        note = next((note for note in rows["note"] if note), "")
        instance, is_best = str(rows["instance"].iloc[0]), bool(quartiles[0.5] <= best + 1e-9)
        lines.append(Line(instance, str(method), tuple(cells), is_best, note))
    return Layout.of(("min", "Q1", "median", "Q3", "max", "median time (s)"), lines)


@dataclass(frozen=True)
class Section:
    """What a report shows of one experiment."""

    name: str
    experiment: Experiment
    layout: Layout
    at_papers_weights: Layout
    reading: str
    claims: list[Claim]
    violation: float  # the largest of all rows

    @classmethod
    def of(cls, name: str, rows: list[Row]) -> Section:
        """Return the section of an experiment."""
        table = frame(rows)
        layout = starts_layout(table) if name == "pitprops" else lay_out(table)
        weights, violation = at_papers_weights(rows), float(table["violation"].max())
        return cls(name, EXPERIMENTS[name], layout, weights, reading(name, table), claims(name, table), violation)


def markdown(rows_of: dict[str, list[Row]]) -> str:
    """Return the report as Markdown, one section per experiment."""
    return "\n".join(_markdown_section(Section.of(name, rows)) for name, rows in rows_of.items())


def _markdown_section(section: Section) -> str:
    experiment, notes = section.experiment, "; ".join(section.layout.notes)
    parts = [f"## {experiment.title}", experiment.about, f"**{section.reading}**"]
    parts += ["\n".join(f"- {claim}" for claim in section.claims), _markdown_table(compact(section.layout))]
    if section.at_papers_weights.lines:
        parts += [f"{AT_PAPERS_WEIGHTS}:", _markdown_table(compact(section.at_papers_weights))]
    parts += [f"Differences from the paper: {experiment.differs}", f"Notes: {notes}." if notes else ""]
    return "\n\n".join(part for part in parts if part) + "\n"


def _markdown_table(layout: Layout) -> str:
    """Return a table with the best objective of each instance in bold."""
    lines = [["instance", "method", *layout.headings], ["---", "---", *("--:" for _ in layout.headings)]]
    for line in layout.lines:
        marked = [
            f"**{cell}**" if line.best and heading.split(" (")[0] in ("objective", "median") else cell
            for heading, cell in zip(layout.headings, line.cells, strict=True)
        ]
        lines.append([line.instance, line.method, *marked])
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


@dataclass(frozen=True)
class Made:
    """The command and the machine of a run."""

    command: str
    environment: dict[str, str]


def html(rows_of: dict[str, list[Row]], pictures: dict[str, bytes], made: Made) -> str:
    """Return the report as one HTML page."""
    sections = "".join(_section(Section.of(name, rows), pictures.get(name)) for name, rows in rows_of.items())
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    rows = [row for table in rows_of.values() for row in table]
    limits = " and ".join(f"{limit:g}" for limit in sorted({row.limit for row in rows if row.limit > 0}))
    facts = {
        "command": made.command,
        "seeds": ", ".join(str(seed) for seed in sorted({row.seed for row in rows})),
        "limit": f"{limits or 'no'} s per method and instance",
        "time of all rows": f"{sum(row.time_all for row in rows if row.status):.0f} s",
        **made.environment,
    }
    machines = Counter(row.machine for row in rows if row.status)
    facts |= {f"{count} rows measured on": machine for machine, count in machines.items()}
    listed = "".join(f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in facts.items())
    body = f"""<p>Tono, Takeda and Gotoh (2017), run with ksparse on {today} by <code>{escape(made.command)}</code>.
Objective, nonzeros and constraint violation are recomputed from the raw data. For a method with a grid of weights ρ,
the time is that of the chosen weight, as in the paper; the time for the whole grid is in a separate column. The best
objective of each instance is bold.</p>
{sections}
<h2>Command and environment</h2><dl>{listed}</dl>"""
    return display.page("The experiments of “Efficient DC Algorithm for Constrained Sparse Optimization”", body)


def _section(section: Section, picture: bytes | None) -> str:
    experiment, image = section.experiment, ""
    title, about, differs = map(escape, (experiment.title, experiment.about, experiment.differs))
    if picture is not None:
        data = base64.b64encode(picture).decode()
        image = f'<img alt="{title}" src="data:image/png;base64,{data}">'
        image = f"<figure>{image}<figcaption>{section.name}.png</figcaption></figure>"
    listed = "".join(f"<li{' class=fails' if c.fails else ''}>{escape(str(c))}</li>" for c in section.claims)
    weights = f'<h3>{escape(AT_PAPERS_WEIGHTS)}</h3><div class="scroll">{_table(section.at_papers_weights)}</div>'
    violation = f'<p class="quiet">Largest constraint violation: {section.violation:.1e}.</p>'
    return f"""<section id="{section.name}"><h2>{title}</h2>
<p>{about}</p>
<p><strong>{escape(section.reading)}</strong></p>
{f"<ul>{listed}</ul>" if listed else ""}
{"" if math.isnan(section.violation) else violation}
<div class="scroll">{_table(section.layout)}</div>
{weights if section.at_papers_weights.lines else ""}{image}
<p class="quiet">Differences from the paper: {differs}</p></section>
"""


def _table(layout: Layout) -> str:
    """Return a table, with its notes numbered below it."""
    ours = sum(not heading.startswith(PAPER) for heading in layout.headings)
    kinds = ["" if place < ours else " class=paper" for place in range(len(layout.headings))]
    heads = "".join(f"<th{k}>{escape(h.removeprefix(PAPER))}</th>" for k, h in zip(kinds, layout.headings, strict=True))
    notes = list(dict.fromkeys(line.note for line in layout.lines if line.note))
    body = ""
    for line in layout.lines:
        cells = "".join(
            f"<td{' class=best' if line.best and heading in ('objective', 'median') else kind}>{escape(cell)}</td>"
            for kind, heading, cell in zip(kinds, layout.headings, line.cells, strict=True)
        )
        mark = f" <sup>{notes.index(line.note) + 1}</sup>" if line.note else ""
        texts = f'<td class="text">{escape(line.instance)}</td><td class="text">{escape(line.method)}{mark}</td>'
        body += f"<tr{' class=first' if line.instance else ''}>{texts}{cells}</tr>"
    paper = f"<th colspan={len(kinds) - ours} class=paper>paper</th>"
    above = f"<tr class=above><th colspan=2></th><th colspan={ours}>ksparse</th>{paper}</tr>" if kinds[ours:] else ""
    heads = f'{above}<tr><th class="text">instance</th><th class="text">method</th>{heads}</tr>'
    listed = "".join(f"<li>{escape(note)}</li>" for note in notes)
    below = f'<ol class="quiet">{listed}</ol>' if notes else ""
    return f"<table class=numbers><thead>{heads}</thead><tbody>{body}</tbody></table>{below}"
