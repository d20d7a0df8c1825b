"""Rows on disk, one file per job, so that a run that was stopped, however rudely, goes on where it was."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ksparse.experiments.paper import figures
from ksparse.experiments.row import Row
from ksparse.util.files import sweep, write_atomically

if TYPE_CHECKING:
    from ksparse.experiments.run import Job


class Store:
    """The folder `rows` of a run."""

    def __init__(self, out: Path) -> None:
        self.folder = out / "rows"
        self.folder.mkdir(parents=True, exist_ok=True)
        sweep(self.folder)

    def path(self, job: Job) -> Path:
        name = f"{job.table} {job.instance} seed {job.seed} run {job.repetition} {job.method}"
        return self.folder / (re.sub(r"[^\w.-]+", "_", name) + ".json")

    def get(self, job: Job, limit: float) -> Row | None:
        """The row of a job that was done before under the same settings, unless a shorter limit had cut it off."""
        try:
            stored = json.loads(self.path(job).read_text(encoding="utf-8"))
            if stored["settings"] != json.loads(json.dumps(job.settings)) or (stored["limited"] and stored["limit"] < limit):
                return None
            return _with_paper(Row.from_json(stored["row"]))
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError):  # a file of another version, or not ours: do the job again
            return None

    def rows(self, table: str) -> list[Row]:
        """All rows of a table that lie here, whatever the settings of the run that made them."""
        found = []
        for path in sorted(self.folder.glob("*.json")):
            try:
                row = _with_paper(Row.from_json(json.loads(path.read_text(encoding="utf-8"))["row"]))
            except (OSError, ValueError, KeyError, TypeError, AttributeError):
                continue
            if row.table == table:
                found.append(row)
        return found

    def put(self, job: Job, limit: float, row: Row) -> None:
        stored = {"settings": job.settings, "limit": limit, "limited": row.limited, "row": row.to_json()}
        write_atomically(self.path(job), json.dumps(stored))


def _with_paper(row: Row) -> Row:
    """The row beside the paper's figures, which are looked up and not stored."""
    return replace(row, paper=figures(row.table, row.instance, row.method))
