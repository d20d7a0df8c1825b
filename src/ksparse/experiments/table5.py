"""Table 5: least squares with at most k nonzeros, a tenth of them with a known sign; x⁰ = 1/n."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ksparse import datasets
from ksparse.experiments.row import frame
from ksparse.experiments.run import LIMIT, METHODS, Instance, Job, Watch, run, sparse_job
from ksparse.losses import LeastSquares
from ksparse.sets import Nonnegative

if TYPE_CHECKING:
    import pandas as pd

TITLE = "Table 5: sparse least squares with signs"


def _load(i: int, seed: int) -> Instance:
    data = datasets.table5(i, seed)
    return Instance(
        lambda: LeastSquares(data.A, data.b), Nonnegative(data.nonnegative), data.k,
        lambda x: 0.5 * float(np.sum((data.A @ x - data.b) ** 2)),
    )  # fmt: skip


def jobs(
    sizes: Sequence[int] = (1, 2, 3, 4, 5), seeds: Sequence[int] = (0,), methods: Sequence[str] = tuple(METHODS), repeats: int = 1
) -> Iterator[Job]:
    """One job per size, seed, method and repetition."""
    for i in sizes:
        for seed in seeds:
            for method in methods:
                for repetition in range(repeats):
                    name = f"{180 * i} x {640 * i}"
                    yield sparse_job("table5", name, lambda i=i, seed=seed: _load(i, seed), method, seed=seed, repetition=repetition)


def table5(
    sizes: Sequence[int] = (1, 2, 3, 4, 5),
    seeds: Sequence[int] = (0,),
    methods: Sequence[str] = tuple(METHODS),
    repeats: int = 1,
    *,
    limit: float = LIMIT,
    out: str | Path | None = None,
    watch: Watch | None = None,
) -> pd.DataFrame:
    """Table 5 for sizes i: (m, n, k) = (180i, 640i, 20i). With a folder `out` rows are saved as they come, and taken up again."""
    return frame(run(jobs(sizes, seeds, methods, repeats), limit=limit, out=out, watch=watch))
