"""Progress of a run of experiments: a bar on a terminal, a line per row elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from ksparse.experiments.row import Row
from ksparse.experiments.run import Job, Watch
from ksparse.util.progress import NOWHERE, bar


@contextmanager
def watching(console: Console, total: int, *, all_weights: bool = False) -> Iterator[Watch]:
    """A watch for `run` that shows the current instance and method; its seconds are those of the chosen weight, or of all weights."""
    with bar("experiments", total) as one:
        if one is NOWHERE or not console.is_terminal:
            yield _lines(console, total, all_weights)
            return

        def tell(job: Job, row: Row | None) -> None:
            one.at(one.done + (row is not None), f"{job.table} · {job.instance} · {job.method}")

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
