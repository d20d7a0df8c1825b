"""Where answers go: a table for people or JSON for machines on standard output, the rest on standard error, files whole or not at all."""

from __future__ import annotations

import csv
import datetime
import io
import json
import math
import os
import sys
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

import ksparse
from ksparse.errors import InfeasibleError
from ksparse.result import Result, Status
from ksparse.util import display
from ksparse.util.arrays import Vector
from ksparse.util.files import probe, write_atomically

SOLVED, FAILED, BAD_INPUT, NO_SOLUTION, LIMIT, INTERRUPTED = 0, 1, 2, 3, 4, 130
TEXT = """Exit codes:
  0    solved
  1    numerical trouble, or output cut off
  2    bad input
  3    infeasible or unbounded
  4    limit reached; the best answer is still written
  130  interrupted"""


class InputError(ValueError):
    """What the user gave cannot be used; the message says why and what to do."""


def worst(codes: Iterable[int]) -> int:
    """How a command with several answers exits: as the worst of them would."""
    return max(codes, key=(SOLVED, LIMIT, NO_SOLUTION, FAILED, INTERRUPTED).index)


def exit_code(status: Status) -> int:
    """How a command that ended with this status exits."""
    if status.good:
        return SOLVED
    codes = {
        Status.TIME_LIMIT: LIMIT,
        Status.ITERATION_LIMIT: LIMIT,
        Status.INTERRUPTED: INTERRUPTED,
        Status.UNBOUNDED: NO_SOLUTION,
    }
    return codes.get(status, FAILED)


STANDARD = Path("-")  # standard input, or output
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")  # how a text begins that a spreadsheet would run


def prepare_streams() -> None:
    """Streams that can take any text: a closed one swallows it, a narrow encoding gets '?' for what it lacks."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115  # open to the end
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


class Output:
    """The manners of one command."""

    def __init__(self, *, as_json: bool, quiet: bool, force: bool, progress: bool = False) -> None:
        self.as_json, self.quiet, self.force, self.progress = as_json, quiet, force, progress
        wide = None if sys.stdout.isatty() else 140  # in a file or a log nothing is cut
        self.screen = Console(quiet=quiet or as_json, width=wide)
        self.aside = Console(stderr=True, quiet=quiet)

    def claim(self, path: Path | None) -> None:
        """Refuse, before any work, a file that could not be written after it."""
        if path is None:
            return
        if path == STANDARD:
            if self.as_json:
                raise InputError(
                    "a file to - and --json both want standard output: give the file a name, or leave --json out"
                )
            if self.screen.quiet and not self.quiet:
                raise InputError("--out - and --report - both want standard output: give one of them a name")
            self.screen.quiet = True  # the file is what is printed
            return
        try:
            if path.is_dir():
                raise InputError(f"{path} is a folder, not a file to write to")
            if (path.exists() or path.is_symlink()) and not self.force:
                raise InputError(f"{path} exists: give another name, or --force to replace it")
            if path.exists() and not path.is_file():
                raise InputError(f"{path} is not a regular file")
            if not path.parent.is_dir():
                raise InputError(f"the folder {path.parent} does not exist")
            probe(path)
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror}") from error

    def table(self, title: str, headings: Sequence[str], rows: Iterable[Sequence[str]], *, text: int = 1) -> None:
        """A table; the first `text` columns are words. Nothing in it is markup."""
        shown = Table(title=Text(visible(title)), title_justify="left")
        for position, heading in enumerate(headings):
            shown.add_column(
                Text(visible(heading)), justify="left" if position < text else "right", no_wrap=position == 0
            )
        for row in rows:
            shown.add_row(*(Text(visible(cell)) for cell in row))
        self.screen.print(shown)

    @property
    def shows_progress(self) -> bool:
        """Whether standard error is someone's screen, or bars were asked for all the same."""
        return not self.quiet and (self.progress or sys.stderr.isatty())

    def say(self, line: str) -> None:
        """A line under the table."""
        self.screen.print(visible(line), highlight=False, markup=False, soft_wrap=True)

    def note(self, line: str) -> None:
        """Say on standard error what the user should know, whatever is printed on standard output."""
        self.aside.print(f"ksparse: note: {visible(line)}", highlight=False, markup=False, soft_wrap=True)

    def written(self, *paths: Path | None) -> None:
        """Say which files there are now."""
        for path in paths:
            if path is not None:
                self.say(f"written: {path}")

    def json(self, answer: dict[str, Any]) -> None:
        """The answer for machines, where asked for."""
        if self.as_json and not self.quiet:
            print(json.dumps(plain(answer), indent=2))

    def write_csv(self, path: Path, headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """A CSV file, whole or not at all; numbers in full, and no text that a spreadsheet would take for a formula."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([harmless(heading) for heading in headings])
        writer.writerows(
            [[repr(float(cell)) if isinstance(cell, float) else harmless(cell) for cell in row] for row in rows]
        )
        self.write(path, text.getvalue())

    def write(self, path: Path, content: str) -> None:
        """A file, whole or not at all; one that came in the meantime stays unless forced. Standard output takes it as it is."""
        if path == STANDARD:
            sys.stdout.write(content)
            return
        try:
            write_atomically(path, content, replace=self.force)
        except FileExistsError:
            raise InputError(
                f"{path} came into being while the command ran: it is left alone, give another name or --force"
            ) from None


def harmless(cell: Any) -> Any:
    """A cell whose text, such as `=cmd()`, would run in a spreadsheet, behind an apostrophe; numbers, also as text, stay as they are."""
    if not isinstance(cell, str) or not cell.startswith(FORMULA):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def visible(text: str) -> str:
    """Return the text with its control characters spelt out: ESC in a name would command the terminal."""
    if text.isprintable():
        return text
    return "".join(
        repr(char)[1:-1] if unicodedata.category(char) == "Cc" and char not in "\n\t" else char for char in text
    )


def bare(cell: str) -> str:
    """What `harmless` made this text of, so that a file that was written can be read again."""
    return cell[1:] if cell.startswith("'") and harmless(cell[1:]) == cell else cell


def facts(result: Result) -> dict[str, Any]:
    """What every command says of its result."""
    return (
        {
            "status": result.status.name.lower(),
            "message": result.message,
            "success": result.success,
            "nonzeros": int(result.support.size),
            "objective": result.fun,
            "violation": result.maxcv,
            "seconds": result.elapsed,
        }
        | ({"passes": result.passes} if result.passes else {})
        | (
            {"lower_bound": result.lower_bound, "gap": result.gap, "nodes": result.nodes}
            if result.lower_bound > -math.inf
            else {}
        )
    )


def plain(value: Any) -> Any:
    """Types that JSON knows, null for what is not a number."""
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if hasattr(value, "item") and not isinstance(value, str):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


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
        told = (
            "".join(f"<li>{escape(line)}</li>" for line in self.warnings)
            or "<li>Nothing out of the ordinary was seen in the data.</li>"
        )
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
        told.append(
            f"There are fewer rows ({rows}) than columns ({columns}): many choices of columns may fit about as well."
        )
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
