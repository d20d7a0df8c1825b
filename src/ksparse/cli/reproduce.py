"""`ksparse reproduce`: the paper's tables and figure, as CSV, pictures and a report."""

from __future__ import annotations

import argparse
import json
import math
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from ksparse.cli.output import INTERRUPTED, LIMIT, SOLVED, InputError, Output, plain
from ksparse.experiments.readings import claims, reading
from ksparse.experiments.report import AT_PAPERS_WEIGHTS, Layout, at_papers_weights, compact, lay_out, starts_layout
from ksparse.experiments.row import Row, frame, weights_frame
from ksparse.experiments.run import LIMIT as SECONDS
from ksparse.experiments.run import Job, Store, Watch, environment
from ksparse.experiments.run import run as run_jobs
from ksparse.experiments.tables import EXPERIMENTS, jobs_of
from ksparse.util.files import sweep, write_atomically
from ksparse.util.progress import NULL_BAR, bar


@contextmanager
def watching(console: Console, total: int, *, all_weights: bool = False) -> Iterator[Watch]:
    """A watch for `run` that shows the current instance and method; its seconds are those of the chosen weight, or of all weights."""
    with bar("experiments", total) as one:
        if one is NULL_BAR or not console.is_terminal:
            yield _lines(console, total, all_weights)
            return

        def tell(job: Job, row: Row | None) -> None:
            one.update(one.done + (row is not None), f"{job.table} · {job.instance} · {job.method}")

        yield tell


def _lines(console: Console, total: int, all_weights: bool) -> Watch:
    done, began = 0, time.perf_counter()

    def tell(job: Job, row: Row | None) -> None:
        nonlocal done
        if row is None:
            return
        done += 1
        if job.table == "pitprops" and done % 50 and done < total:  # hundreds of rows of a few milliseconds
            return
        seconds = row.time_all if all_weights else row.time
        several = len(row.details.get("weights", ())) > 1
        which = "" if not several else " for all weights" if all_weights else " for the chosen weight"
        said = row.note or f"objective {row.objective:.5g}, {seconds:.2f} s{which}"
        console.print(
            f"[{done}/{total}, {time.perf_counter() - began:.0f} s] {job.table} · {job.instance} · {job.method}: {said}",
            markup=False, highlight=False, soft_wrap=True,
        )  # fmt: skip

    return tell


HELP = "the paper's Tables 2-5 and box plot, with a report"
EXAMPLES = (
    "ksparse reproduce table5 pitprops --quick --out results",
    "ksparse reproduce all --limit 60",
)
MARK = "run.json"  # a folder with this file is one of ours


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument(
        "tables",
        nargs="*",
        choices=[*EXPERIMENTS, "all"],
        default="all",
        metavar="TABLE",
        help=f"{', '.join(EXPERIMENTS)} or all (default: all)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="small problem sizes only: about 3 minutes instead of about 8"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("results"),
        metavar="DIR",
        help="folder for CSV, PNG, tables.md and report.html; a run that was stopped goes on there (default: results)",
    )
    parser.add_argument(
        "--limit",
        type=float,
        default=SECONDS,
        metavar="SECONDS",
        help=f"per method and instance (default: {SECONDS:g})",
    )


def run(options: argparse.Namespace, output: Output) -> int:
    """Do what is not done yet, write everything."""
    if not 0 < options.limit < math.inf:
        raise InputError(f"--limit must be > 0 and finite, got {options.limit:g}")
    require_extras()
    names = list(EXPERIMENTS) if "all" in options.tables else [name for name in EXPERIMENTS if name in options.tables]
    _open(options.out, output.force)
    jobs = jobs_of(names, options.quick)
    book = Book(options.out, jobs)
    with watching(output.aside, len(jobs)) as show:

        def tell(job: Job, row: Row | None) -> None:
            show(job, row)
            if row is not None:
                book.enter(job, row)

        try:
            run_jobs(jobs, out=options.out, limit=options.limit, force=output.force, watch=tell)
        except KeyboardInterrupt:
            book.recover()
            book.close()
            again = "the same command, without --force," if output.force else "the same command"
            print(
                f"ksparse: interrupted after {book.done} of {len(jobs)} rows; {again} goes on from there",
                file=sys.stderr,
            )
            return INTERRUPTED
    book.close()
    rows_of = book.all_rows()
    _write_report(options, names, rows_of)
    for name in names:
        show_table(output, name, rows_of[name])
    output.say(f"written: {options.out / 'report.html'}, with tables.md, a CSV file and a picture per table beside it")
    records = [record for name in names for record in frame(rows_of[name]).to_dict("records")]
    output.json({"command": "reproduce", "out": str(options.out), "rows": records})
    return LIMIT if any(row.limited for name in names for row in rows_of[name]) else SOLVED


class Book:
    """The rows of a folder while a run goes on: those of this run in its order, then any others that lie there."""

    def __init__(self, out: Path, jobs: list[Job]) -> None:
        self.out, self.store, self.done = out, Store(out), 0
        self.rows: dict[tuple[Any, ...], Row | None] = {_key(job): None for job in jobs}
        self._awaited = set(self.rows)
        for name in EXPERIMENTS:
            for row in self.store.rows(name):
                self.rows[_key(row)] = row  # until this run has its own
        self._behind: set[str] = set()

    def enter(self, job: Job, row: Row) -> None:
        """A row is there: the CSV files follow, for hundreds of rows a second at the end only."""
        self._behind.add(job.table)
        self.rows[_key(job)] = row
        self._awaited.discard(_key(job))
        self.done += 1
        if job.table != "pitprops":
            self._write(job.table)

    def recover(self) -> None:
        """After an interrupt: a row may have been stored, and the book not told."""
        for name in {key[0] for key in self._awaited}:
            for row in self.store.rows(name):
                if _key(row) in self._awaited:
                    self.rows[_key(row)] = row
                    self._behind.add(name)

    def close(self) -> None:
        """Write what is not written yet."""
        for name in sorted(self._behind):
            self._write(name)

    def all_rows(self) -> dict[str, list[Row]]:
        """By experiment."""
        found = {
            name: [row for row in self.rows.values() if row is not None and row.table == name] for name in EXPERIMENTS
        }
        return {name: rows for name, rows in found.items() if rows}

    def _write(self, name: str) -> None:
        rows = self.all_rows()[name]
        write_atomically(self.out / f"{name}.csv", frame(rows).drop(columns="table").to_csv(index=False))
        weights = weights_frame(rows)
        if not weights.empty:
            write_atomically(self.out / f"{name}_weights.csv", weights.drop(columns="table").to_csv(index=False))
        self._behind.discard(name)


def _key(of: Job | Row) -> tuple[Any, ...]:
    return of.table, of.instance, of.seed, of.repetition, of.method


def require_extras() -> None:
    """Say at the start, not after an hour, that a package is missing."""
    try:
        import matplotlib  # noqa: F401
        import pandas  # noqa: F401
    except ImportError as error:
        raise InputError(f"the experiments need {error.name}: pip install 'ksparse[experiments]'") from error


def _open(out: Path, force: bool) -> None:
    """A new folder, one of an earlier run, or with --force any."""
    if (out.exists() or out.is_symlink()) and not out.is_dir():
        raise InputError(f"{out} is a file; --out must name a folder")
    if out.is_dir() and any(out.iterdir()) and not (out / MARK).exists() and not force:
        raise InputError(
            f"{out} is not empty and not from an earlier run: give another folder with --out, or --force to write into it"
        )
    out.mkdir(parents=True, exist_ok=True)
    sweep(out)
    if not (out / MARK).exists():
        write_atomically(out / MARK, json.dumps({"by": "ksparse reproduce"}))


def _write_report(options: argparse.Namespace, names: list[str], rows_of: dict[str, list[Row]]) -> None:
    from ksparse.experiments.report import Made, draw, html, markdown, to_png

    pictures = {}
    for name, rows in rows_of.items():
        figure = draw(name, rows)
        if figure is not None:
            pictures[name] = to_png(figure)
            write_atomically(options.out / f"{name}.png", pictures[name])
    tables = ["all"] if names == list(EXPERIMENTS) else names
    command = shlex.join(
        ["ksparse", "reproduce", *tables, *(["--quick"] if options.quick else []), "--limit", f"{options.limit:g}"]
    )
    made = Made(command, environment())
    write_atomically(options.out / "report.html", html(rows_of, pictures, made))
    write_atomically(options.out / "tables.md", markdown(rows_of))
    mark = {"by": "ksparse reproduce", "command": command, "environment": made.environment}
    write_atomically(options.out / MARK, json.dumps(plain(mark), indent=2))


def show_table(output: Output, name: str, rows: list[Row]) -> None:
    """A table and its reading on the screen."""
    table = frame(rows)
    layout = starts_layout(table) if name == "pitprops" else compact(lay_out(table))
    _show(output, EXPERIMENTS[name].title, layout)
    weights = compact(at_papers_weights(rows))
    if weights.lines:
        _show(output, AT_PAPERS_WEIGHTS, weights)
    output.say(reading(name, table))
    for claim in claims(name, table):
        output.say(f"  {claim}")
    for note in dict.fromkeys(
        f"{line.method}: {line.note}" if not line.note.startswith("left out") else line.note
        for line in layout.lines
        if line.note
    ):
        output.say(f"  note: {note}")


def _show(output: Output, title: str, layout: Layout) -> None:
    headings = ["instance", "method", *(heading.replace(" (paper)", "\n(paper)") for heading in layout.headings)]
    output.table(title, headings, [(line.instance, line.method, *line.cells) for line in layout.lines], text=2)
