"""Where answers go: a table for people or JSON for machines on standard output, the rest on standard error, files whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from ksparse.base.atomic import probe, write_atomically
from ksparse.cli.exits import InputError
from ksparse.result import Result
from ksparse.solve.by_search import tree_line

STANDARD = Path("-")  # standard input, or output
LIVE, SELDOM = 0.5, 5.0  # seconds between two lines of a proof, on a terminal and elsewhere
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

    def __init__(self, *, as_json: bool, quiet: bool, force: bool) -> None:
        self.as_json, self.quiet, self.force = as_json, quiet, force
        wide = None if sys.stdout.isatty() else 140  # in a file or a log nothing is cut
        self.screen = Console(quiet=quiet or as_json, width=wide)
        self.aside = Console(stderr=True, quiet=quiet)

    def claim(self, path: Path | None) -> None:
        """Refuse, before any work, a file that could not be written after it."""
        if path is None:
            return
        if path == STANDARD:
            if self.as_json:
                raise InputError("a file to - and --json both want standard output: give the file a name, or leave --json out")
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
        shown = Table(title=Text(title), title_justify="left")
        for position, heading in enumerate(headings):
            shown.add_column(Text(heading), justify="left" if position < text else "right", no_wrap=position == 0)
        for row in rows:
            shown.add_row(*(Text(cell) for cell in row))
        self.screen.print(shown)

    def watch(self, gap: float | None) -> Callable[..., None] | None:
        """A callback that shows where a proof stands, on standard error: a line that changes on a terminal, elsewhere one now and then."""
        if gap is None:
            return None
        live, shown = self.aside.is_terminal, -math.inf

        def tell(intermediate_result: Any) -> None:
            nonlocal shown
            at = intermediate_result
            if "nodes" not in at or at.elapsed - shown < (LIVE if live else SELDOM):
                return
            shown = at.elapsed
            line = tree_line(at.nodes, at.open, at.fun, at.lower_bound, at.gap, at.elapsed)
            self.aside.print(line, end="\r" if live else "\n", markup=False, highlight=False, soft_wrap=True)

        return tell

    @contextmanager
    def passes(self) -> Iterator[Callable[[int, float], None]]:
        """A way to show how far data are read, on standard error: a bar for each pass on a terminal, elsewhere a line now and then."""
        if self.quiet:
            yield lambda number, share: None
        elif self.aside.is_terminal:
            columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
            with Progress(*columns, console=self.aside, transient=True) as progress:
                task = progress.add_task("", total=1.0, visible=False)
                yield lambda at, share: progress.update(task, description=f"pass {at} over the data", completed=share, visible=True)
        else:
            yield self._pass_lines()

    def _pass_lines(self) -> Callable[[int, float], None]:
        began = shown = time.perf_counter()

        def tell(number: int, share: float) -> None:
            nonlocal shown
            now = time.perf_counter()
            if now - shown >= SELDOM:
                shown = now
                line = f"pass {number} over the data, {100 * share:.0f} % read, {now - began:.0f} s"
                self.aside.print(line, markup=False, highlight=False, soft_wrap=True)

        return tell

    def say(self, line: str) -> None:
        """A line under the table."""
        self.screen.print(line, highlight=False, markup=False, soft_wrap=True)

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
        writer.writerow(headings)
        writer.writerows([[repr(float(cell)) if isinstance(cell, float) else harmless(cell) for cell in row] for row in rows])
        self.write(path, text.getvalue())

    def write(self, path: Path, content: str) -> None:
        """A file, whole or not at all; one that came in the meantime stays unless forced. Standard output takes it as it is."""
        if path == STANDARD:
            sys.stdout.write(content)
            return
        try:
            write_atomically(path, content, replace=self.force)
        except FileExistsError:
            raise InputError(f"{path} came into being while the command ran: it is left alone, give another name or --force") from None


def harmless(cell: Any) -> Any:
    """A cell whose text, such as `=cmd()`, would run in a spreadsheet, behind an apostrophe; numbers, also as text, stay as they are."""
    if not isinstance(cell, str) or not cell.startswith(FORMULA):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


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
        | ({"lower_bound": result.lower_bound, "gap": result.gap, "nodes": result.nodes} if result.lower_bound > -math.inf else {})
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
