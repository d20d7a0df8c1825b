"""`ksparse pca`: sparse principal components of a table."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from ksparse.cli.output import InputError, Output, Part, Report, around, exit_code, facts, warnings_of
from ksparse.cli.tables import at_most, dropped, numbers, read_table, refuse_unnamed
from ksparse.components.problem import Components, sparse_components

HELP = "principal components with at most k nonzero loadings each"
EXAMPLES = (
    "ksparse pca genes.csv -k 100 --components 3 --out loadings.csv",
    "ksparse pca genes.parquet -k 20 --gap 1% --report page.html",
    "zcat genes.csv.gz | ksparse pca - -k 50 --json",
)
SHOWN = 20  # rows per component on the screen; the file has all


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="table with a header, one row per sample: CSV, Parquet or NPZ"
    )
    parser.add_argument("-k", type=int, required=True, help="how many nonzero loadings per component at most")
    parser.add_argument("--components", type=int, default=1, metavar="N", help="how many components (default: 1)")
    parser.add_argument("--no-scale", action="store_true", help="covariances instead of correlations")
    parser.add_argument("--drop", default="", metavar="COL,COL", help="columns to leave out, such as labels")
    parser.add_argument("--out", type=Path, metavar="FILE.csv", help="write the loadings here")


def run(options: argparse.Namespace, output: Output) -> int:
    """Read, solve, show, write."""
    output.claim(options.out)
    output.claim(options.report)
    table = read_table(options.file)
    table = refuse_unnamed(dropped(table, options.drop, options.file))
    names, X = list(table.columns), numbers(table)
    if len(X) < 3:
        raise InputError(f"{options.file} has {len(X)} rows, too few for components: at least 3 are needed")
    k = at_most(options.k, len(names), "column", output.note)
    most = min(len(X) - 1, len(names))
    if not 1 <= options.components <= most:
        raise InputError(f"--components must be between 1 and {most}, got {options.components}")
    flat = np.flatnonzero(np.ptp(X, axis=0) == 0)
    if flat.size == len(names):
        raise InputError(f"every column of {options.file} is constant: there is no variance to explain")
    if flat.size and not options.no_scale:
        raise InputError(
            f"column {names[flat[0]]!r} is constant and has no correlation: leave it out with --drop, or use --no-scale"
        )
    found = sparse_components(
        X,
        k,
        options.components,
        scale=not options.no_scale,
        max_time=options.limit,
        effort=options.effort,
        random_state=options.seed,
        gap=options.gap,
    )
    shares = found.variance / found.total
    orders = [[int(j) for j in np.argsort(-np.abs(row), kind="stable") if row[j] != 0] for row in found.loadings]
    if options.out is not None:  # before anything is printed: trouble on the screen does not lose the answer
        rows = [(c + 1, names[j], float(found.loadings[c][j])) for c, order in enumerate(orders) for j in order]
        output.write_csv(options.out, ("component", "column", "loading"), rows)
    if options.report is not None:
        output.write(options.report, _report(found, X, names, k, options).html())
    described = []
    for c, (loadings, order, result) in enumerate(zip(found.loadings, orders, found.results, strict=True)):
        output.table(
            f"component {c + 1}: {len(order)} of {len(names)} columns, {100 * shares[c]:.2f} % of the variance",
            ("column", "loading"), [(names[j], f"{loadings[j]:.4f}") for j in order[:SHOWN]],
        )  # fmt: skip
        if len(order) > SHOWN:
            output.say(
                f"... and {len(order) - SHOWN} smaller ones{'' if options.out else ' (write them all with --out)'}"
            )
        output.say(f"{result.message}; {result.elapsed:.2f} s")
        described.append(
            facts(result) | {"variance_share": shares[c], "loadings": {names[j]: loadings[j] for j in order}}
        )
    status = found.results[-1].status
    if len(orders) < options.components:
        why = "the variance is used up" if status.good else status.message
        output.say(f"{len(orders)} of {options.components} components: {why}")
    output.written(options.out, options.report)
    output.json({"command": "pca", "k": options.k, "rows": len(X), "components": described})
    return exit_code(status)


def _report(found: Components, X: Any, names: list[str], k: int, options: argparse.Namespace) -> Report:
    parts = []
    for c, (loadings, result) in enumerate(zip(found.loadings, found.results, strict=True)):
        order = [int(j) for j in np.argsort(-np.abs(loadings), kind="stable") if loadings[j] != 0]
        share = {"share of the variance": f"{100 * found.variance[c] / found.total:.2f} %"}
        parts.append(
            Part(f"Component {c + 1}", result, {names[j]: float(loadings[j]) for j in order}, "loading", share)
        )

    def solve(near: int) -> float:
        if near == k:
            return found.results[0].fun
        return (
            sparse_components(X, near, 1, scale=not options.no_scale, max_time=options.limit, random_state=options.seed)
            .results[0]
            .fun
        )

    title = f"{len(parts)} components of at most {k} of {len(names)} columns"
    return Report(title, options.command_line, parts, around(k, len(names), solve), k, warnings_of(X, names))
