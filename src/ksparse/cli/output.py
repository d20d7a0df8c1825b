"""Where answers go: a table for people or JSON for machines on standard output, the rest on standard error, files whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ksparse.cli.exits import InputError
from ksparse.result import Result
from ksparse.util.files import probe, write_atomically

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
        shown = Table(title=Text(visible(title)), title_justify="left")
        for position, heading in enumerate(headings):
            shown.add_column(Text(visible(heading)), justify="left" if position < text else "right", no_wrap=position == 0)
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


def visible(text: str) -> str:
    """Return the text with its control characters spelt out: ESC in a name would command the terminal."""
    if text.isprintable():
        return text
    return "".join(repr(char)[1:-1] if unicodedata.category(char) == "Cc" and char not in "\n\t" else char for char in text)


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
