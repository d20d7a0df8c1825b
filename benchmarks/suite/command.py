"""The command line that the scripts share, and the run of a group of problems."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from ksparse.datasets import MissingDataError
from suite import row as rows_file
from suite.contenders import Contender, contenders
from suite.harness import Settings, cores, run
from suite.problems import GROUPS, build, names
from suite.profile import draw
from suite.row import Row
from suite.tables import report

QUICK_LIMIT = 20.0


def parser(about: str | None) -> argparse.ArgumentParser:
    """Return the parser of the options shared by all scripts."""
    options = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="small sizes, a few minutes in all")
    options.add_argument("--only", metavar="NAME", help="only problems with this in their name")
    options.add_argument(
        "--contender", metavar="NAME", action="append", help="only contenders with this in their name; may be repeated"
    )
    options.add_argument(
        "--without", metavar="NAME", action="append", help="no contenders with this in their name; may be repeated"
    )
    options.add_argument("--repeats", type=int, default=3, help="solves of which the median time is taken (default 3)")
    options.add_argument("--limit", type=float, help=f"seconds for one solve (default 120, quick {QUICK_LIMIT:g})")
    options.add_argument("--threads", type=int, default=cores(), help="threads of every contender (default: all cores)")
    options.add_argument(
        "--processor", action="store_true", help="times by the processor's clock, for a machine that is not idle"
    )
    options.add_argument(
        "--out", type=Path, default=Path("results/bench"), help="folder of the results (default results/bench)"
    )
    return options


def settings_of(given: argparse.Namespace) -> Settings:
    limit = given.limit or (QUICK_LIMIT if given.quick else Settings.limit)
    return Settings(given.repeats, limit, given.threads, given.quick, given.processor)


def run_group(
    group: str, given: argparse.Namespace, console: Console, field: list[Contender] | None = None
) -> list[Row]:
    """Run all problems of a group with all contenders; write rows and tables as they are made."""
    settings, lines = settings_of(given), given.out / f"{group}.jsonl"
    given.out.mkdir(parents=True, exist_ok=True)
    lines.unlink(missing_ok=True)
    rows: list[Row] = []
    for name in names(group, settings.quick):
        if given.only and given.only not in name:
            continue
        for one in _run_problem(group, name, settings, _chosen(field or _of(group), given.contender, given.without)):
            rows.append(one)
            rows_file.append(lines, one)
            console.print(_line(one), highlight=False, markup=False, soft_wrap=True)
        write(rows, settings, given.out / f"{group}.md")
    return rows


def _of(group: str) -> list[Contender]:
    only = GROUPS[group].contenders
    return [one for one in contenders() if (one.name in only if only else not one.invited)]


def _chosen(field: list[Contender], wanted: list[str] | None, unwanted: list[str] | None) -> list[Contender]:
    chosen = [one for one in field if not wanted or any(part in one.name for part in wanted)]
    return [one for one in chosen if not any(part in one.name for part in unwanted or ())]


def _run_problem(group: str, name: str, settings: Settings, field: list[Contender]):
    try:
        problem = build(group, name, settings.quick)
    except (MissingDataError, ImportError) as error:
        yield Row(group, name, "", reason=str(error), missing=True)
        return
    for contender in field:
        if contender.takes(problem):
            yield run(group, name, problem, contender, settings)


def _line(row: Row) -> str:
    what = f"{row.group}, {row.problem}: {row.contender}".rstrip(": ")
    if not row.solved:
        return f"{what}: {row.reason}"
    return f"{what}: {row.objective:.6g}{'' if row.feasible else ' (infeasible)'} in {row.time:.3g} s"


def write(rows: list[Row], settings: Settings, path: Path) -> None:
    path.write_text(report(rows, settings), encoding="utf-8")


def main(group: str, about: str | None) -> None:
    """Run one script with one group."""
    given = parser(about).parse_args()
    console = Console()
    rows = run_group(group, given, console)
    if any(row.solved for row in rows):
        draw(rows, given.out / f"{group}.png")
    console.print(f"tables: {given.out / group}.md", highlight=False)
