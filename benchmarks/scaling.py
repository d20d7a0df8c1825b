"""Seconds and memory against m, n, k and the number of nonzeros: one varies by factors of 2, with fitted slopes.

Planted least squares, dense and CSR: a step of pdca, apdca and pdcae (fixed step, its Lipschitz constant computed
separately), and a complete call of `auto`. Prints a Markdown table, writes it and one plot per variable to `--out`, and
reports whether the first-order methods stay within twice the memory of their input. Each sweep runs in its own process
with `--threads` threads. Plots need `pip install 'ksparse[plot]'`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rich.console import Console

from scaling_measure import Job, Row, Shape
from scaling_report import Measured, draw, report

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "BLIS_NUM_THREADS",
)


@dataclass(frozen=True)
class Sweep:
    """Sizes of a sweep over one variable."""

    variable: str  # m, n, k or nnz: names the picture
    shapes: list[Shape]


def doubling(base: Shape, field: str, first: int, count: int) -> list[Shape]:
    return [replace(base, **{field: first * 2**i}) for i in range(count)]


def sweeps(quick: bool) -> list[Sweep]:
    """Dense m, n and k; the nonzeros a row and n of a CSR matrix."""
    dense = Shape(100, 400, 4) if quick else Shape(1000, 4000, 40)
    csr = Shape(400, 400, 4, row_nonzeros=10) if quick else Shape(10_000, 10_000, 40, row_nonzeros=20)
    count, part = (3, 2) if quick else (6, 8)  # sizes, and how small a part of the base the first is
    return [
        Sweep("m", doubling(dense, "m", dense.m // part, count)),
        Sweep("n", doubling(dense, "n", dense.n // part, count)),
        Sweep("n", doubling(csr, "n", csr.n // part, count)),
        Sweep("k", doubling(dense, "k", dense.k // part, count)),
        Sweep("nnz", doubling(csr, "row_nonzeros", 5, count)),
    ]


def measured(sweep: Sweep, options: argparse.Namespace, seconds: float, console: Console) -> Measured:
    """Return the rows of a sweep run in its own process, and what is missing."""
    shapes = [shape for shape in sweep.shapes if shape.bytes <= options.max_bytes]
    job = Job(shapes, options.steps, options.repeats, seconds, top_k=sweep.variable == "k")
    environment = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(options.threads))}
    command = [sys.executable, str(Path(__file__).with_name("scaling_measure.py")), json.dumps(asdict(job))]
    rows = []
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for line in child.stdout:
            fields = json.loads(line)
            rows.append(Row(**{**fields, "shape": Shape(**fields["shape"])}))
            console.print(f"measured {len(rows)} of {len(shapes)} sizes of {sweep.variable}", highlight=False)
    notes, every = [], f"{len(sweep.shapes)} {'dense' if sweep.shapes[0].row_nonzeros is None else 'CSR'} sizes"
    if len(shapes) < len(sweep.shapes):
        notes.append(
            f"{len(sweep.shapes) - len(shapes)} of {every}, the input above --max-bytes {options.max_bytes:.3g}"
        )
    if len(rows) < len(shapes):
        why = (
            f"the measuring process failed with exit code {child.returncode}"
            if child.returncode
            else f"--seconds {options.seconds:g} too few"
        )
        notes.append(f"{len(shapes) - len(rows)} of {every}, {why}")
    return Measured(sweep.variable, rows, notes)


def run(options: argparse.Namespace, console: Console) -> list[Measured]:
    """Run all sweeps, each with at most twice its share of the time left."""
    plan, began, found = sweeps(options.quick), time.perf_counter(), []
    for i, sweep in enumerate(plan):
        left = options.seconds - (time.perf_counter() - began)
        found.append(measured(sweep, options, min(left, 2.0 * left / (len(plan) - i)), console))
    return found


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, few steps: to see that it runs")
    parser.add_argument("--repeats", type=int, help="medians of so many runs (default 3; 1 with --quick)")
    parser.add_argument("--steps", type=int, help="steps of a first-order run (default 50; 10 with --quick)")
    parser.add_argument(
        "--threads", type=int, default=cores(), help="threads of the linear algebra (default: the number of cores)"
    )
    parser.add_argument("--out", type=Path, default=Path("results/bench"), help="folder for the table and the pictures")
    parser.add_argument(
        "--max-bytes", type=float, default=2.0**30, help="leave out sizes with a larger input (default 2^30)"
    )
    parser.add_argument(
        "--seconds", type=float, default=330.0, help="leave out the largest sizes where all would take longer"
    )
    options = parser.parse_args(arguments)
    options.repeats = options.repeats if options.repeats is not None else 1 if options.quick else 3
    options.steps = options.steps if options.steps is not None else 10 if options.quick else 50
    for name in ("repeats", "steps", "threads", "max_bytes", "seconds"):
        if not getattr(options, name) > 0:
            parser.error(f"--{name.replace('_', '-')} must be positive, got {getattr(options, name):g}")
    return options


def main(arguments: list[str] | None = None) -> None:
    options, console = parse(arguments), Console(stderr=True)
    pictures = importlib.util.find_spec("matplotlib") is not None
    if not pictures:
        console.print("no pictures: they need matplotlib, pip install 'ksparse[plot]'", markup=False)
    options.out.mkdir(parents=True, exist_ok=True)  # before the work, where it may fail
    found = run(options, console)
    text = report(found, steps=options.steps, repeats=options.repeats, threads=options.threads)
    print(text)
    (options.out / "scaling.md").write_text(text, encoding="utf-8")
    for variable in dict.fromkeys(part.variable for part in found if part.rows) if pictures else ():
        path = options.out / f"scaling_{variable}.png"
        draw([part for part in found if part.variable == variable and part.rows]).savefig(path, dpi=110)
        console.print(f"wrote {path}", highlight=False)


if __name__ == "__main__":
    main()
