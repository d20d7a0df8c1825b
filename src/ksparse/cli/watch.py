"""Progress of a run of experiments: a bar on a terminal, a line per row elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from ksparse.experiments.row import Row
from ksparse.experiments.run import Job, Watch


@contextmanager
def watching(console: Console, total: int, *, all_weights: bool = False) -> Iterator[Watch]:
    """A watch for `run` that shows the current instance and method; its seconds are those of the chosen weight, or of all weights."""
    if not console.is_terminal:
        yield _lines(console, total, all_weights)
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=total)

        def tell(job: Job, row: Row | None) -> None:
            if row is None:
                progress.update(task, description=f"{job.table} · {job.instance} · {job.method}")
            else:
                progress.advance(task)

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
