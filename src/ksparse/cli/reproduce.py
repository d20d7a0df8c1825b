"""`ksparse reproduce`: the tables and the figure of the paper, as CSV files, pictures and a report."""

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

from ksparse.cli.output import INTERRUPTED, LIMIT, SOLVED, InputError, Output
from ksparse.experiments.report import AT_PAPERS_WEIGHTS, Layout, Section, compact
from ksparse.experiments.row import Row, frame, weights_frame
from ksparse.experiments.run import LIMIT as SECONDS
from ksparse.experiments.run import Job, Store, Watch, environment
from ksparse.experiments.run import run as run_jobs
from ksparse.experiments.tables import EXPERIMENTS, jobs_of
from ksparse.util.files import sweep, write_atomically
from ksparse.util.progress import NULL_BAR, bar

HELP = "reproduce Tables 2-5 and the box plot of the paper, with a report"
EXAMPLES = ("ksparse reproduce table5 pitprops --quick --out results", "ksparse reproduce all --limit 60")
MARK = "run.json"  # marks a folder as the output of this command


@contextmanager
def watching(console: Console, total: int, *, all_weights: bool = False) -> Iterator[Watch]:
    """Yield a watch for `run` that shows a progress bar, or lines where there is no terminal.

    all_weights : whether the lines show the seconds for all weights, or for the chosen weight.
    """
    with bar("experiments", total) as progress:
        if progress is NULL_BAR or not console.is_terminal:
            yield _lines(console, total, all_weights)
            return

        def watch(job: Job, row: Row | None) -> None:
            progress.update(progress.done + (row is not None), f"{job.table} · {job.instance} · {job.method}")

        yield watch


def _lines(console: Console, total: int, all_weights: bool) -> Watch:
    done, began = 0, time.perf_counter()

    def watch(job: Job, row: Row | None) -> None:
        nonlocal done
        if row is None:
            return
        done += 1
        if job.table == "pitprops" and done % 50 and done < total:  # hundreds of rows of a few milliseconds
            return
        seconds = row.time_all if all_weights else row.time
        several = len(row.details.get("weights", ())) > 1
        which = "" if not several else " for all weights" if all_weights else " for the chosen weight"
        text = row.note or f"objective {row.objective:.5g}, {seconds:.2f} s{which}"
        elapsed = f"[{done}/{total}, {time.perf_counter() - began:.0f} s]"
        line = f"{elapsed} {job.table} · {job.instance} · {job.method}: {text}"
        console.print(line, markup=False, highlight=False, soft_wrap=True)

    return watch


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    add, names = parser.add_argument, [*EXPERIMENTS, "all"]
    text = f"{', '.join(EXPERIMENTS)} or all (default: all)"
    add("tables", nargs="*", choices=names, default="all", metavar="TABLE", help=text)
    add("--quick", action="store_true", help="small problem sizes only: about 3 minutes instead of about 8")
    text = "folder for CSV, PNG, tables.md and report.html; an interrupted run is continued there (default: results)"
    add("--out", type=Path, default=Path("results"), metavar="DIR", help=text)
    text = f"time limit per method and instance (default: {SECONDS:g})"
    add("--limit", type=float, default=SECONDS, metavar="SECONDS", help=text)


def run(options: argparse.Namespace, output: Output) -> int:
    """Run the jobs that are not done yet, and write all files."""
    if not 0 < options.limit < math.inf:
        raise InputError(f"--limit must be > 0 and finite, got {options.limit:g}")
    check_packages()
    names = list(EXPERIMENTS) if "all" in options.tables else [name for name in EXPERIMENTS if name in options.tables]
    _open(options.out, output.force)
    jobs = jobs_of(names, options.quick)
    book = Book(options.out, jobs)
    with watching(output.errors, len(jobs)) as show:

        def watch(job: Job, row: Row | None) -> None:
            show(job, row)
            if row is not None:
                book.enter(job, row)

        try:
            run_jobs(jobs, out=options.out, limit=options.limit, force=output.force, watch=watch)
        except KeyboardInterrupt:
            book.recover()
            book.close()
            again = "the same command, without --force," if output.force else "the same command"
            message = f"ksparse: interrupted after {book.done} of {len(jobs)} rows; {again} continues from there"
            print(message, file=sys.stderr)
            return INTERRUPTED
    book.close()
    rows_of = book.all_rows()
    _write_report(options, names, rows_of)
    for name in names:
        _print(output, Section.of(name, rows_of[name]))
    output.print(f"written: {options.out / 'report.html'}, tables.md, and a CSV file and a picture per table")
    records = [record for name in names for record in frame(rows_of[name]).to_dict("records")]
    output.json({"command": "reproduce", "out": str(options.out), "rows": records})
    return LIMIT if any(row.limited for name in names for row in rows_of[name]) else SOLVED


class Book:
    """The rows in a folder during a run, those of this run first, with CSV files that are kept up to date."""

    def __init__(self, out: Path, jobs: list[Job]) -> None:
        self.out, self.store, self.done = out, Store(out), 0
        self.rows: dict[tuple[Any, ...], Row | None] = {_key(job): None for job in jobs}
        self._awaited, self._tables = set(self.rows), sorted({job.table for job in jobs})
        for name in EXPERIMENTS:
            for row in self.store.rows(name):
                self.rows[_key(row)] = row  # replaced by that of this run

    def enter(self, job: Job, row: Row) -> None:
        """Add a row and write its CSV file; that of the pit props, with hundreds of fast rows, only at the end."""
        self.rows[_key(job)] = row
        self._awaited.discard(_key(job))
        self.done += 1
        if job.table != "pitprops":
            self._write(job.table)

    def recover(self) -> None:
        """Add rows that were stored but not entered before an interrupt."""
        found = {_key(row): row for name in self._tables for row in self.store.rows(name)}
        self.rows |= {key: row for key, row in found.items() if key in self._awaited}

    def close(self) -> None:
        """Write the CSV files of this run."""
        for name in self._tables:
            self._write(name)

    def all_rows(self) -> dict[str, list[Row]]:
        """Return the rows by experiment."""
        finished = [row for row in self.rows.values() if row is not None]
        found = {name: [row for row in finished if row.table == name] for name in EXPERIMENTS}
        return {name: rows for name, rows in found.items() if rows}

    def _write(self, name: str) -> None:
        rows = self.all_rows().get(name, [])
        for suffix, table in (("", frame(rows)), ("_weights", weights_frame(rows))):
            if not table.empty:
                write_atomically(self.out / f"{name}{suffix}.csv", table.drop(columns="table").to_csv(index=False))


def _key(of: Job | Row) -> tuple[Any, ...]:
    return of.table, of.instance, of.seed, of.repetition, of.method


def check_packages() -> None:
    """Raise an error at the start if an optional package is missing."""
    try:
        import matplotlib  # noqa: F401
        import pandas  # noqa: F401
    except ImportError as error:
        raise InputError(f"the experiments need {error.name}: pip install 'ksparse[experiments]'") from error


def check_folder(out: Path) -> None:
    """Raise an error if --out names a file."""
    if (out.exists() or out.is_symlink()) and not out.is_dir():
        raise InputError(f"{out} is a file; --out must name a folder")


def _open(out: Path, force: bool) -> None:
    """Create the folder, or accept that of an earlier run, or with --force any folder."""
    check_folder(out)
    if out.is_dir() and any(out.iterdir()) and not (out / MARK).exists() and not force:
        raise InputError(f"{out} is not empty and not from an earlier run: choose another folder, or use --force")
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
    quick = ["--quick"] if options.quick else []
    command = shlex.join(["ksparse", "reproduce", *tables, *quick, "--limit", f"{options.limit:g}"])
    made = Made(command, environment())
    write_atomically(options.out / "report.html", html(rows_of, pictures, made))
    write_atomically(options.out / "tables.md", markdown(rows_of))
    mark = {"by": "ksparse reproduce", "command": command, "environment": made.environment}
    write_atomically(options.out / MARK, json.dumps(mark, indent=2))


def _print(output: Output, section: Section) -> None:
    _print_table(output, section.experiment.title, section.layout)
    if section.at_papers_weights.lines:
        _print_table(output, AT_PAPERS_WEIGHTS, section.at_papers_weights)
    output.print(section.reading)
    for line in (*section.claims, *(f"note: {note}" for note in section.layout.notes)):
        output.print(f"  {line}")


def _print_table(output: Output, title: str, layout: Layout) -> None:
    layout = compact(layout)
    headings = ["instance", "method", *(heading.replace(" (paper)", "\n(paper)") for heading in layout.headings)]
    output.table(title, headings, [(line.instance, line.method, *line.cells) for line in layout.lines], text=2)
