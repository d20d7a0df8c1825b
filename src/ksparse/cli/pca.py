"""`ksparse pca`: sparse principal components of a table."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from ksparse.cli.input_tables import at_most, dropped, numbers, read_table, refuse_unnamed
from ksparse.cli.output import InputError, Output, Part, by_name, exit_code, facts, objectives_by_k, report, warnings_of
from ksparse.components.problem import sparse_components

HELP = "principal components with at most k nonzero loadings each"
EXAMPLES = (
    "ksparse pca genes.csv -k 100 --components 3 --out loadings.csv",
    "ksparse pca genes.parquet -k 20 --gap 1% --report page.html",
    "zcat genes.csv.gz | ksparse pca - -k 50 --json",
)
MAX_ROWS = 20  # per component on the screen; the file has all


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    add = parser.add_argument
    add("file", type=Path, metavar="FILE", help="table with a header, one row per sample: CSV, Parquet or NPZ")
    add("-k", type=int, required=True, help="maximum number of nonzero loadings per component")
    add("--components", type=int, default=1, metavar="N", help="number of components (default: 1)")
    add("--no-scale", action="store_true", help="covariances instead of correlations")
    add("--drop", default="", metavar="COL,COL", help="columns to leave out, such as labels")
    add("--out", type=Path, metavar="FILE.csv", help="write the loadings here")


def run(options: argparse.Namespace, output: Output) -> int:
    """Compute the components; write and print them."""
    output.check_destinations(options.out, options.report)
    table = refuse_unnamed(dropped(read_table(options.file), options.drop, options.file))
    names, X = list(table.columns), numbers(table)
    if len(X) < 3:
        raise InputError(f"{options.file} has {len(X)} rows, too few for components: at least 3 are needed")
    k = at_most(options.k, len(names), "column", output.note)
    most = min(len(X) - 1, len(names))
    if not 1 <= options.components <= most:
        raise InputError(f"--components must be between 1 and {most}, got {options.components}")
    constant = np.ptp(X, axis=0) == 0
    if constant.all():
        raise InputError(f"every column of {options.file} is constant: there is no variance to explain")
    if constant.any() and not options.no_scale:
        name = names[int(constant.argmax())]
        raise InputError(f"column {name!r} is constant and has no correlation: leave it out (--drop) or use --no-scale")
    how: dict[str, Any] = {"scale": not options.no_scale, "max_time": options.limit, "random_state": options.seed}
    found = sparse_components(X, k, options.components, effort=options.effort, gap=options.gap, **how)
    shares = found.variance / found.total
    parts = []
    for c, (loadings, result) in enumerate(zip(found.loadings, found.results, strict=True)):
        about = {"fraction of the variance": f"{100 * shares[c]:.2f} %"}
        parts.append(Part(f"Component {c + 1}", result, by_name(names, loadings), "loading", about))
    if options.out is not None:  # before printing, which may fail
        rows = [(c, name, loading) for c, part in enumerate(parts, 1) for name, loading in part.values.items()]
        output.write_csv(options.out, ("component", "column", "loading"), rows)
    if options.report is not None:

        def solve(near: int) -> float:
            return (found if near == k else sparse_components(X, near, 1, **how)).results[0].fun

        title = f"{len(parts)} components of at most {k} of {len(names)} columns"
        near = objectives_by_k(k, len(names), solve)
        output.write(options.report, report(title, options.command_line, parts, near, k, warnings_of(X, names)))
    for part, share in zip(parts, shares, strict=True):
        title = f"{len(part.values)} of {len(names)} columns, {100 * share:.2f} % of the variance"
        shown = [(name, f"{loading:.4f}") for name, loading in part.values.items()][:MAX_ROWS]
        output.table(f"{part.title.lower()}: {title}", ("column", "loading"), shown)
        if len(part.values) > MAX_ROWS:
            more = "" if options.out else " (write them all with --out)"
            output.print(f"... and {len(part.values) - MAX_ROWS} smaller ones{more}")
        output.print(f"{part.result.message}; {part.result.elapsed:.2f} s")
    status = found.results[-1].status
    if len(parts) < options.components:
        why = "no variance is left" if status.good else status.message
        output.print(f"{len(parts)} of {options.components} components: {why}")
    output.written(options.out, options.report)
    extra = [{"variance_share": share, "loadings": part.values} for part, share in zip(parts, shares, strict=True)]
    described = [facts(part.result) | about for part, about in zip(parts, extra, strict=True)]
    output.json({"command": "pca", "k": options.k, "rows": len(X), "components": described})
    return exit_code(status)
