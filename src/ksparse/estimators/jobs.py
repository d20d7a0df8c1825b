"""Jobs that joblib runs beside each other, counted on a bar as they end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from joblib import Parallel
from joblib.parallel import get_active_backend

from ksparse.util.progress import NOWHERE, bar


def beside_each_other(jobs: Sequence[Any], n_jobs: int | None, what: str) -> list[Any]:
    """What comes of each, in their order; `what` they are called on the bar."""
    with bar(what, len(jobs)) as one:
        # not every backend gives answers before all are there
        told = one is not NOWHERE and get_active_backend()[0].supports_return_generator
        together = Parallel(n_jobs=n_jobs, return_as="generator" if told else "list")
        found = []
        for result in together(jobs):
            found.append(result)
            one.at(len(found))
    return found
