"""Output of the commands: tables or JSON on standard output, notes on standard error, files and HTML reports."""

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
from contextlib import suppress
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
from ksparse.experiments.row import plain
from ksparse.result import Result, Status
from ksparse.util import display
from ksparse.util.arrays import Vector
from ksparse.util.files import probe, write_atomically

SOLVED, FAILED, BAD_INPUT, NO_SOLUTION, LIMIT, INTERRUPTED = 0, 1, 2, 3, 4, 130
TEXT = """Exit codes:
  0    solved
  1    numerical failure or broken output pipe
  2    bad input
  3    infeasible or unbounded
  4    time or iteration limit reached (the best result so far is written)
  130  interrupted"""
STANDARD = Path("-")  # standard input or output
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")  # first characters of text that a spreadsheet would run
CODES = {"TIME_LIMIT": LIMIT, "ITERATION_LIMIT": LIMIT, "INTERRUPTED": INTERRUPTED, "UNBOUNDED": NO_SOLUTION}


class InputError(ValueError):
    """An error in the user's input; the message says why and what to do."""


def worst(codes: Iterable[int]) -> int:
    """Return the exit code of a command with several results."""
    return max(codes, key=(SOLVED, LIMIT, NO_SOLUTION, FAILED, INTERRUPTED).index)


def exit_code(status: Status) -> int:
    """Return the exit code of a status."""
    return SOLVED if status.good else CODES.get(status.name, FAILED)


def prepare_streams() -> None:
    """Make standard output and error accept any text: replace closed streams, and print '?' for missing characters."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115  # open to the end
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


class Output:
    """The output of one command, under its options --json, --quiet, --force and --progress."""

    def __init__(self, *, as_json: bool, quiet: bool, force: bool, progress: bool = False) -> None:
        self.as_json, self.quiet, self.force = as_json, quiet, force
        self.screen = Console(quiet=quiet or as_json, width=None if sys.stdout.isatty() else 140)  # files are not cut
        self.errors = Console(stderr=True, quiet=quiet)
        self.shows_progress = not quiet and (progress or sys.stderr.isatty())

    def check_destinations(self, *paths: Path | None) -> None:
        """Raise an error, before any work, if a file cannot be written."""
        for path in filter(None, paths):
            self._check_destination(path)

    def _check_destination(self, path: Path) -> None:
        if path == STANDARD:
            if self.as_json:
                raise InputError("a file to - and --json both want standard output: name the file, or leave --json out")
            if self.screen.quiet and not self.quiet:
                raise InputError("--out - and --report - both want standard output: give one of them a name")
            self.screen.quiet = True
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
        """Print a table without interpreting markup; the first `text` columns are aligned left."""
        shown = Table(title=Text(visible(title)), title_justify="left")
        for place, heading in enumerate(headings):
            shown.add_column(Text(visible(heading)), justify="left" if place < text else "right", no_wrap=place == 0)
        for row in rows:
            shown.add_row(*(Text(visible(cell)) for cell in row))
        self.screen.print(shown)

    def print(self, line: str) -> None:
        """Print a line."""
        self.screen.print(visible(line), highlight=False, markup=False, soft_wrap=True)

    def note(self, line: str) -> None:
        """Print a note on standard error."""
        self.errors.print(f"ksparse: note: {visible(line)}", highlight=False, markup=False, soft_wrap=True)

    def written(self, *paths: Path | None) -> None:
        """Print the names of written files."""
        for path in filter(None, paths):
            self.print(f"written: {path}")

    def json(self, answer: dict[str, Any]) -> None:
        """Print the result as JSON if requested."""
        if self.as_json and not self.quiet:
            print(json.dumps(plain(answer), indent=2))

    def write_csv(self, path: Path, headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Write a CSV file with all digits and without text that a spreadsheet would run as a formula."""
        text = io.StringIO()
        for row in (headings, *rows):
            cells = [repr(float(cell)) if isinstance(cell, float) else harmless(cell) for cell in row]
            csv.writer(text, lineterminator="\n").writerow(cells)
        self.write(path, text.getvalue())

    def write(self, path: Path, content: str) -> None:
        """Write a file completely or not at all, or standard output."""
        if path == STANDARD:
            sys.stdout.write(visible(content) if sys.stdout.isatty() else content)
            return
        try:
            write_atomically(path, content, replace=self.force)
        except FileExistsError:
            raise InputError(f"{path} was created meanwhile and not replaced: give another name, or --force") from None


def harmless(cell: Any) -> Any:
    """Return a cell with an apostrophe before text that a spreadsheet would run.

    Numbers, also numbers given as text, are unchanged.
    """
    if not isinstance(cell, str) or not cell.startswith(FORMULA):
        return cell
    with suppress(ValueError):
        float(cell)
        return cell
    return f"'{cell}"


def bare(cell: str) -> str:
    """Return the text from which `harmless` made a cell."""
    return cell[1:] if cell.startswith("'") and harmless(cell[1:]) == cell else cell


def visible(text: str) -> str:
    """Return the text with control characters escaped, since a terminal would obey them."""
    return "".join(repr(c)[1:-1] if unicodedata.category(c) == "Cc" and c not in "\n\t" else c for c in text)


def by_name(names: Sequence[str], x: Vector) -> dict[str, float]:
    """Return the nonzeros by name, the largest in absolute value first."""
    return {names[j]: float(x[j]) for j in np.argsort(-np.abs(x), kind="stable") if x[j] != 0}


def facts(result: Result) -> dict[str, Any]:
    """Return the facts about a result that every command prints as JSON."""
    found = {
        "status": result.status.name.lower(), "message": result.message, "success": result.success,
        "nonzeros": int(result.support.size), "objective": result.fun, "violation": result.maxcv,
        "seconds": result.elapsed,
    }  # fmt: skip
    if result.passes:
        found["passes"] = result.passes
    if result.lower_bound > -math.inf:
        found |= {"lower_bound": result.lower_bound, "gap": result.gap, "nodes": result.nodes}
    return found


NEIGHBOURS = 4  # values of k on either side of the value of the option -k
EQUAL_CORRELATION = 0.9999
MAX_COMPARED = 1_000  # columns of which all pairs are compared
MAX_BARS = 20
MAX_NAMES = 5  # in a warning


@dataclass(frozen=True)
class Part:
    """One result on the page: a model, a component, a portfolio."""

    title: str
    result: Result
    values: Mapping[str, float]  # the nonzeros by name, the largest first
    unit: str  # what the values are
    facts: Mapping[str, str] = field(default_factory=dict)

    def html(self) -> str:
        """Return the section of the page."""
        result, shown = self.result, dict(list(self.values.items())[:MAX_BARS])
        rows, proof, more = {"status": result.message, "objective": f"{result.fun:.10g}"}, "", ""
        if result.lower_bound > -math.inf:
            rows |= {"lower bound": f"{result.lower_bound:.10g}", "nodes": str(result.nodes)}
            proof = display.share(result.gap, f"gap {100 * result.gap:.3g} %")
        else:
            rows["optimality gap"] = "not computed (use --gap 1%)"
        rows |= {"constraint violation": f"{result.maxcv:.3g}", "time (s)": f"{result.elapsed:.3g}", **self.facts}
        if len(self.values) > len(shown):
            more = f"<p class=quiet>{len(self.values) - len(shown)} smaller values are in the table</p>"
        table = display.grid(("name", self.unit), [(name, f"{value:.8g}") for name, value in self.values.items()])
        return (
            f'<h2>{escape(self.title)}</h2><div class="pair"><div>{display.facts(rows)}{proof}</div>'
            f'<div>{display.bars(shown, self.unit)}{more}</div></div><div class="scroll">{table}</div>'
        )


def report(
    title: str,
    command: str,
    parts: Sequence[Part],
    objective_by_k: Mapping[int, float],
    k: int,
    warnings: Sequence[str],
) -> str:
    """Return a self-contained HTML page about the results of a command."""
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    listed = "".join(f"<li>{escape(line)}</li>" for line in warnings) or "<li>No warnings.</li>"
    near = ""
    if len(objective_by_k) > 1:
        rows = [(f"{at} (selected)" if at == k else str(at), f"{value:.8g}") for at, value in objective_by_k.items()]
        chart = display.curve(list(map(float, objective_by_k)), list(objective_by_k.values()), "objective against k")
        table = f'<div class="scroll">{display.grid(("k", "objective"), rows)}</div>'
        about = "<p>The best objective found for neighbouring values of k.</p>"
        near = f'<h2>Objective for neighbouring k</h2>{about}<div class="pair">{chart}{table}</div>'
    body = f"""{"".join(part.html() for part in parts)}
{near}
<h2>Data warnings</h2><ul>{listed}</ul>
<h2>Command</h2><pre>{escape(command)}</pre>
<p class="quiet">ksparse {escape(ksparse.__version__)}, {today}. All values are recomputed from the raw data.</p>"""
    return display.page(title, body)


def objectives_by_k(k: int, most: int, solve: Callable[[int], float]) -> dict[int, float]:
    """Return the objective for every k near the selected one; infeasible k are left out."""
    found = {}
    for near in range(max(1, k - NEIGHBOURS), min(most, k + NEIGHBOURS) + 1):
        with suppress(InfeasibleError):
            found[near] = solve(near)
    return {near: value for near, value in found.items() if math.isfinite(value)}


def warnings_of(X: Vector, names: Sequence[str]) -> list[str]:
    """Return warnings about data that make a choice of columns uncertain."""
    rows, columns = X.shape
    found = []
    if rows < columns:
        found.append(f"Fewer rows ({rows}) than columns ({columns}): many choices of columns may fit equally well.")
    constant = np.ptp(X, axis=0) == 0
    if constant.any():
        fixed = _listed(names[j] for j in np.flatnonzero(constant).tolist())
        found.append(f"Constant columns, which carry no information: {fixed}.")
    moving = np.flatnonzero(~constant)
    if 1 < moving.size <= MAX_COMPARED:
        Z = (X[:, moving] - X[:, moving].mean(axis=0)) / X[:, moving].std(axis=0)
        equal = np.argwhere(np.triu(np.abs(Z.T @ Z / rows) > EQUAL_CORRELATION, 1))
        if len(equal):
            pairs = _listed(f"{names[i]} and {names[j]}" for i, j in moving[equal].tolist())
            found.append(f"Almost perfectly correlated columns, of which either may be chosen: {pairs}.")
    return found


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    return ", ".join(every[:MAX_NAMES]) + (f" and {len(every) - MAX_NAMES} more" if len(every) > MAX_NAMES else "")
