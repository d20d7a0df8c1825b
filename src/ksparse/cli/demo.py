"""`ksparse demo`: three small problems of the paper, solved by every method: a table and two pictures."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path

from ksparse.cli.output import SOLVED, Output
from ksparse.cli.reproduce import check_folder, check_packages, watching
from ksparse.datasets import factor_model
from ksparse.experiments.readings import claims, is_best, reading
from ksparse.experiments.row import Row, frame
from ksparse.experiments.run import METHODS, Instance, sparse_job
from ksparse.experiments.run import run as run_jobs
from ksparse.experiments.tables import SMALL, TABLE4_ALPHA, TABLE4_K, load_pitprops, load_table4, load_table5
from ksparse.losses import MeanVariance
from ksparse.sets import Hyperplane
from ksparse.solve.minimize import minimize
from ksparse.util.files import write_atomically

HELP = "solve three small problems of the paper by every method, in under a minute"
EXAMPLES = ("ksparse demo --out demo",)
SECONDS = 15.0  # per method and problem
WEIGHTS = (0.01, 0.1, 1.0, 10.0, 100.0)  # the middle of the grid of the paper
PROBLEMS: dict[str, Callable[[], Instance]] = {
    "sparse component: 5 of 13 pit props": load_pitprops,
    "portfolio: 10 of 300 assets": partial(load_table4, SMALL, 0),
    "regression: 20 of 640, signs known": partial(load_table5, 1, 0),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    text = "folder for two pictures (default: ksparse-demo)"
    parser.add_argument("--out", type=Path, default=Path("ksparse-demo"), metavar="DIR", help=text)


def run(options: argparse.Namespace, output: Output) -> int:
    """Solve the problems, print a table and draw the pictures."""
    check_packages()
    check_folder(options.out)
    pictures = [options.out / "quality_and_time.png", options.out / "portfolio.png"]
    if options.out.is_dir():
        output.check_destinations(*pictures)
    pairs = product(PROBLEMS.items(), METHODS)
    jobs = [sparse_job("demo", problem, load, method, rho=WEIGHTS) for (problem, load), method in pairs]
    with watching(output.errors, len(jobs), all_weights=True) as watch:
        rows = run_jobs(jobs, limit=SECONDS, watch=watch)
    _print(rows, output)
    options.out.mkdir(parents=True, exist_ok=True)
    for picture, content in zip(pictures, _draw(rows), strict=True):
        write_atomically(picture, content)
    output.print(f"Pictures: {pictures[0]} (objective against time), {pictures[1]} (the portfolio of auto)")
    records = frame(rows).to_dict("records")
    output.json({"command": "demo", "pictures": [str(picture) for picture in pictures], "rows": records})
    return SOLVED


def _print(rows: list[Row], output: Output) -> None:
    table, above, lines = frame(rows), "", []
    for row, best in zip(rows, is_best(table), strict=True):
        cells = ("", "", "", row.note[:60])
        if row.status:
            mark = " *" if best else ""
            cells = (f"{row.objective:.5g}{mark}", f"{row.cardinality:g}", f"{row.time_all:.2f}", row.note)
        lines.append(("" if row.instance == above else row.instance, row.method, *cells))
        above = row.instance
    title = "min f(x) with at most k nonzeros: the methods of the paper, each with five weights, and auto (* best)"
    headings = ("problem", "method", "objective", "nonzeros", "time for\nall weights (s)", "note")
    output.table(title, headings, lines, text=2)
    for line in (reading("demo", table, "time_all"), *claims("demo", table)):
        output.print(str(line))


def _draw(rows: list[Row]) -> Iterator[bytes]:
    from ksparse.experiments.report import to_png
    from ksparse.plotting import plot_objective_time, plot_weights

    ax = plot_objective_time(frame(rows), time="time_all")
    ax.set_title("Three problems, five methods: objective against time", pad=24, fontsize="medium")
    yield to_png(ax.figure)  # type: ignore[arg-type]
    assets = factor_model(300, 600, 0)
    ax = plot_weights(assets.names, minimize(MeanVariance(assets.V, assets.r, TABLE4_ALPHA), TABLE4_K, Hyperplane()).x)
    ax.set_title("The best 10 of 300 assets (negative: sold short)", fontsize="medium")
    yield to_png(ax.figure)  # type: ignore[arg-type]
