"""All benchmarks in one run (`make bench`): every group of the suite, then the scripts that measure ksparse alone.

Writes results.md, profile.png and the rows (one JSON-lines file per group) to the folder `--out`. An interrupted run
leaves its rows and tables; `--report` writes the report of all rows found there, also of single scripts, and measures
nothing. `--also SCRIPT …` chooses the scripts run at the end, `--also none` leaves all of them out.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from rich.console import Console

from suite.command import parser, run_group, settings_of
from suite.problems import ALL, GROUPS
from suite.profile import draw
from suite.row import Row, read
from suite.tables import report

HERE = Path(__file__).parent
ALSO = ("engine", "auto", "batches", "own_losses", "choosing_k", "common_features")


def alone(script: str, console: Console) -> str:
    """Return the output of a script in its own process as a section of the report."""
    console.print(f"{script}.py ...", highlight=False)
    done = subprocess.run(
        [sys.executable, str(HERE / f"{script}.py")], capture_output=True, text=True, encoding="utf-8", check=False
    )
    said = done.stdout if done.returncode == 0 else f"ended with code {done.returncode}\n{done.stderr.strip()[-2000:]}"
    return f"## {script}.py\n\n```\n{said.rstrip()}\n```\n"


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--groups", nargs="+", choices=ALL, default=ALL, help="only these groups")
    options.add_argument(
        "--also", nargs="+", default=ALSO, metavar="SCRIPT", help=f"scripts run at the end (default {' '.join(ALSO)})"
    )
    options.add_argument("--report", action="store_true", help="tables and profile of the rows that are there")
    given = options.parse_args()
    console, rows, result = Console(), list[Row](), given.out / "results.md"
    for group in given.groups:
        rows += read(given.out / f"{group}.jsonl") if given.report else run_group(group, given, console)
        result.write_text(report(rows, settings_of(given)), encoding="utf-8")
        # groups with all contenders: a profile of contenders that did not run would mislead
        open_to_all = [row for row in rows if not GROUPS[row.group].contenders]
        if any(row.solved for row in open_to_all):
            draw(open_to_all, given.out / "profile.png")
    for script in () if given.report else given.also:
        if script != "none":
            with result.open("a", encoding="utf-8") as file:
                file.write("\n" + alone(script, console))
    console.print(f"results: {result}", highlight=False)


if __name__ == "__main__":
    main()
