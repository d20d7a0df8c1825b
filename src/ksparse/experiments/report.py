"""report.html: one file with everything in it, readable on a desk and on a phone."""

from __future__ import annotations

import base64
import datetime
from collections import Counter
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from ksparse.experiments.catalogue import EXPERIMENTS
from ksparse.experiments.layout import AT_PAPERS_WEIGHTS, PAPER, Layout, Line, at_papers_weights, lay_out, starts_layout
from ksparse.experiments.readings import claims, reading
from ksparse.experiments.row import Row, frame

if TYPE_CHECKING:
    import pandas as pd

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
    facts |= {f"{count} rows measured on": where for where, count in Counter(row.machine for row in rows if row.status).items()}
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
    said = "".join(f"<li{' class=fails' if claim.fails else ''}>{escape(str(claim))}</li>" for claim in claims(name, table))
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
        kind = "paper" if heading.startswith(PAPER) else "best" if line.best and heading in ("objective", "median") else ""
        cells += f"<td{f' class={kind}' if kind else ''}>{escape(cell)}</td>"
    mark = f" <sup>{notes.index(line.note) + 1}</sup>" if line.note else ""
    first = " class=first" if line.instance else ""
    return f'<tr{first}><td class="text">{escape(line.instance)}</td><td class="text">{escape(line.method)}{mark}</td>{cells}</tr>'
