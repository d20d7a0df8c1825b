"""`ksparse demo`: the paper's three problems at small size, every method, a table and two pictures."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from ksparse.cli.output import SOLVED, InputError, Output, plain
from ksparse.cli.reproduce import require_extras, watching
from ksparse.datasets import factor_model
from ksparse.experiments.readings import claims, reading
from ksparse.experiments.row import Row, frame
from ksparse.experiments.run import METHODS, Instance, Job, sparse_job
from ksparse.experiments.run import run as run_jobs
from ksparse.experiments.tables import SMALL, TABLE4_ALPHA, TABLE4_K, load_pitprops, load_table4, load_table5
from ksparse.losses import MeanVariance
from ksparse.sets import Hyperplane
from ksparse.solve.minimize import minimize
from ksparse.util.files import write_atomically

HELP = "the paper's three problems at small size, in under a minute"
EXAMPLES = ("ksparse demo --out demo",)
SECONDS = 15.0  # per method and problem
WEIGHTS = (0.01, 0.1, 1.0, 10.0, 100.0)  # the middle of the paper's grid
PROBLEMS: dict[str, Callable[[], Instance]] = {
    "sparse component: 5 of 13 pit props": load_pitprops,
    "portfolio: 10 of 300 assets": partial(load_table4, SMALL, 0),
    "regression: 20 of 640, signs known": partial(load_table5, 1, 0),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("ksparse-demo"),
        metavar="DIR",
        help="folder for two pictures (default: ksparse-demo)",
    )


def run(options: argparse.Namespace, output: Output) -> int:
    """Solve, show, draw."""
    require_extras()
    if (options.out.exists() or options.out.is_symlink()) and not options.out.is_dir():
        raise InputError(f"{options.out} is a file; --out must name a folder")
    pictures = [options.out / "quality_and_time.png", options.out / "portfolio.png"]
    if options.out.is_dir():
        for picture in pictures:
            output.claim(picture)
    jobs = list(_jobs())
    with watching(output.aside, len(jobs), all_weights=True) as tell:
        rows = run_jobs(jobs, limit=SECONDS, watch=tell)
    _show(rows, output)
    options.out.mkdir(parents=True, exist_ok=True)
    for picture, content in zip(pictures, _draw(rows), strict=True):
        write_atomically(picture, content)
    output.say(f"Pictures: {pictures[0]} (how good against how long), {pictures[1]} (the portfolio that auto found)")
    output.json(
        {
            "command": "demo",
            "pictures": [str(picture) for picture in pictures],
            "rows": plain(frame(rows).to_dict("records")),
        }
    )
    return SOLVED


def _jobs() -> Iterator[Job]:
    for problem, load in PROBLEMS.items():
        for method in METHODS:
            yield sparse_job("demo", problem, load, method, rho=WEIGHTS)


def _show(rows: list[Row], output: Output) -> None:
    table, above, lines = frame(rows), "", []
    best = table.groupby("instance")["objective"].min()
    for row in rows:
        mark = " *" if row.objective <= best[row.instance] + 1e-9 * abs(best[row.instance]) else ""
        cells = (
            ("", "", "", row.note[:60])
            if not row.status
            else (f"{row.objective:.5g}{mark}", f"{row.cardinality:g}", f"{row.time_all:.2f}", row.note)
        )
        lines.append((row.instance if row.instance != above else "", row.method, *cells))
        above = row.instance
    output.table(
        "min f(x) with at most k nonzeros: the paper's methods, each with five weights, and auto (* best; smaller is better)",
        ("problem", "method", "objective", "nonzeros", "seconds for\nall weights", "note"), lines, text=2,
    )  # fmt: skip
    output.say(reading("demo", table, "time_all"))
    for claim in claims("demo", table):
        output.say(str(claim))


def _draw(rows: list[Row]) -> Iterator[bytes]:
    from ksparse.experiments.report import to_png
    from ksparse.plotting import plot_objective_time, plot_weights

    ax = plot_objective_time(frame(rows), time="time_all")
    ax.set_title("Three problems, five methods: how good against how long", pad=24, fontsize="medium")
    yield to_png(ax.figure)  # type: ignore[arg-type]
    assets = factor_model(300, 600, 0)
    ax = plot_weights(assets.names, minimize(MeanVariance(assets.V, assets.r, TABLE4_ALPHA), TABLE4_K, Hyperplane()).x)
    ax.set_title("The best 10 of 300 assets (negative: sold short)", fontsize="medium")
    yield to_png(ax.figure)  # type: ignore[arg-type]
