"""`--report page.html`: the answer, its proof, pictures, what lies around it and the exact command on one page that needs nothing else."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

import numpy as np

import ksparse
from ksparse.errors import InfeasibleError
from ksparse.result import Result
from ksparse.util import display
from ksparse.util.arrays import Vector

AROUND = 4  # k to either side of the one asked for
ALIKE = 0.9999  # a correlation from which on two columns say the same
COMPARED = 1_000  # columns up to which all pairs are compared
LISTED = 5  # names in a warning
_STYLE = """
:root { color-scheme: light dark; --line: #d0d0d0; --soft: #f4f4f4; --quiet: #555; }
@media (prefers-color-scheme: dark) { :root { --line: #444; --soft: #222; --quiet: #aaa; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.2; }
h2 { font-size: 1.2rem; margin-top: 2rem; border-top: 1px solid var(--line); padding-top: .8rem; }
table { border-collapse: collapse; font-size: .9rem; } th, td { padding: .2rem .8rem .2rem 0; text-align: left; vertical-align: top; }
thead th { border-bottom: 1px solid var(--line); } tbody tr { border-bottom: 1px solid var(--line); }
.scroll { overflow-x: auto; } .pair { display: flex; flex-wrap: wrap; gap: 1.5rem; align-items: flex-start; }
code { background: var(--soft); padding: .1rem .3rem; } pre { background: var(--soft); padding: .6rem; white-space: pre-wrap; }
.quiet { color: var(--quiet); font-size: .9rem; } svg { max-width: 100%; height: auto; } li { margin: .2rem 0; }
@media print { body { max-width: none; } h2 { break-after: avoid; } table, svg { break-inside: avoid; } }
"""


@dataclass(frozen=True)
class Part:
    """One answer on the page: a model, a component, a portfolio."""

    title: str
    result: Result
    values: Mapping[str, float]  # what it consists of, the largest first
    unit: str  # what they are
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """All that a page says."""

    title: str
    command: str
    parts: Sequence[Part]
    around: Mapping[int, float]  # the objective by k
    k: int
    warnings: Sequence[str]

    def html(self) -> str:
        """The page."""
        today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
        told = "".join(f"<li>{escape(line)}</li>" for line in self.warnings) or "<li>Nothing out of the ordinary was seen in the data.</li>"
        return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(self.title)}</title><link rel="icon" href="data:,"><style>{_STYLE}</style></head><body>
<h1>{escape(self.title)}</h1>
{"".join(map(_part, self.parts))}
{self._around()}
<h2>What the data warn of</h2><ul>{told}</ul>
<h2>How it was made</h2><pre>{escape(self.command)}</pre>
<p class="quiet">ksparse {escape(ksparse.__version__)}, {today}. Every value is recomputed from the raw data after the search.</p>
</body></html>
"""

    def _around(self) -> str:
        if len(self.around) < 2:
            return ""
        rows = [(f"{k} (asked for)" if k == self.k else str(k), f"{value:.8g}") for k, value in self.around.items()]
        chart = display.curve([float(k) for k in self.around], list(self.around.values()), "objective against k")
        about = "The best objective that was found for every k around the one asked for: what one more would buy, and one fewer cost."
        table = f'<div class="scroll">{display.grid(("k", "objective"), rows)}</div>'
        return f'<h2>Around it</h2><p>{about}</p><div class="pair">{chart}{table}</div>'


def _part(part: Part) -> str:
    result, shown = part.result, dict(list(part.values.items())[:20])
    more = len(part.values) - len(shown)
    bound = result.lower_bound > -math.inf
    proof = display.share(result.gap, f"gap {100 * result.gap:.3g} %") if bound else ""
    said = {"status": result.message, "objective": f"{result.fun:.10g}"}
    proved = {"nothing is below": f"{result.lower_bound:.10g}", "nodes": str(result.nodes)}
    said |= proved if bound else {"proof": "no lower bound; --gap 1% asks for one"}
    said |= {"outside the constraints by": f"{result.maxcv:.3g}", "seconds": f"{result.elapsed:.3g}", **part.facts}
    rows = [(name, f"{value:.8g}") for name, value in part.values.items()]
    return (
        f'<h2>{escape(part.title)}</h2><div class="pair"><div>{display.facts(said)}{proof}</div>'
        f"<div>{display.bars(shown, part.unit)}{f'<p class=quiet>and {more} smaller ones in the table</p>' if more else ''}</div></div>"
        f'<div class="scroll">{display.grid(("name", part.unit), rows)}</div>'
    )


def around(k: int, most: int, solve: Callable[[int], float]) -> dict[int, float]:
    """The objective for every k near the one asked for; those without an answer are left out."""
    found = {}
    for near in range(max(1, k - AROUND), min(most, k + AROUND) + 1):
        try:
            value = solve(near)
        except InfeasibleError:
            continue
        if math.isfinite(value):
            found[near] = value
    return found


def warnings_of(X: Vector, names: Sequence[str]) -> list[str]:
    """What in a table may make a choice of columns less sure than it looks."""
    rows, columns = X.shape
    told = []
    if rows < columns:
        told.append(f"There are fewer rows ({rows}) than columns ({columns}): many choices of columns may fit about as well.")
    spread = X.std(axis=0)
    flat = np.flatnonzero(np.ptp(X, axis=0) == 0)
    if flat.size:
        told.append(f"Constant columns, which say nothing: {_listed(names[int(j)] for j in flat)}.")
    moving = np.flatnonzero(np.ptp(X, axis=0) > 0)
    if 1 < moving.size <= COMPARED:
        Z = (X[:, moving] - X[:, moving].mean(axis=0)) / spread[moving]
        same = np.argwhere(np.triu(np.abs(Z.T @ Z / rows) > ALIKE, 1))
        if len(same):
            pairs = _listed(f"{names[int(moving[i])]} and {names[int(moving[j])]}" for i, j in same)
            told.append(f"Columns that are nearly the same, of which either may be chosen: {pairs}.")
    return told


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    return ", ".join(every[:LISTED]) + (f" and {len(every) - LISTED} more" if len(every) > LISTED else "")
