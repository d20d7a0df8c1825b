"""tables.md: the same tables for a page that is read as text; docs/paper.md is made of it."""

from __future__ import annotations

from collections.abc import Sequence

from ksparse.experiments.catalogue import EXPERIMENTS
from ksparse.experiments.layout import AT_PAPERS_WEIGHTS, Layout, at_papers_weights, compact, lay_out, starts_layout
from ksparse.experiments.readings import claims, reading
from ksparse.experiments.row import Row, frame


def markdown(rows_of: dict[str, list[Row]]) -> str:
    """A section per experiment that was run."""
    return "\n".join(_section(name, rows) for name, rows in rows_of.items())


def _section(name: str, rows: list[Row]) -> str:
    experiment, table = EXPERIMENTS[name], frame(rows)
    layout = starts_layout(table) if name == "pitprops" else compact(lay_out(table))
    weights = compact(at_papers_weights(rows))
    notes = dict.fromkeys(f"{line.method}: {line.note}" for line in layout.lines if line.note)
    parts = [f"## {experiment.title}", experiment.about, f"**{reading(name, table)}**"]
    parts += ["\n".join(f"- {claim}" for claim in claims(name, table)), _table(layout)]
    parts += [f"{AT_PAPERS_WEIGHTS}:", _table(weights)] if weights.lines else []
    parts += [f"Not as in the paper: {experiment.differs}", f"Notes: {'; '.join(notes)}." if notes else ""]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(layout: Layout) -> str:
    """The best of each instance in bold, figures to the right."""
    lines = [["instance", "method", *layout.headings], ["---", "---", *("--:" for _ in layout.headings)]]
    for line in layout.lines:
        cells = [
            f"**{cell}**" if line.best and heading.split(" (")[0] in ("objective", "median") else cell
            for heading, cell in zip(layout.headings, line.cells, strict=True)
        ]
        lines.append([line.instance, line.method, *cells])
    return "\n".join(_line(line) for line in lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
