"""The box plot: sparse PCA of the pit props from 100 random starts, k = 5 and ρ = 1 for every method."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ksparse.datasets import pit_props
from ksparse.experiments.row import frame
from ksparse.experiments.run import LIMIT, METHODS, Instance, Job, Watch, run, sparse_job
from ksparse.losses import PrincipalComponent
from ksparse.sets import L2Ball

if TYPE_CHECKING:
    import pandas as pd

TITLE = "Pit props: objective from random starts"
K, RHO, STARTS = 5, 1.0, 100


def _load() -> Instance:
    R, _ = pit_props()
    return Instance(lambda: PrincipalComponent(R), L2Ball(), K, lambda x: -float(x @ R @ x))


def jobs(starts: int = STARTS, methods: Sequence[str] = tuple(METHODS), seed: int = 0) -> Iterator[Job]:
    """One job per method and start; start s has x⁰ ~ N(0, I), by the generator seeded with (seed, s)."""
    for method in methods:
        for s in range(starts):
            x0 = lambda s=s: np.random.default_rng((seed, s)).standard_normal(13)  # noqa: E731
            yield sparse_job("pitprops", "pit props, 13 x 13", _load, method, seed=seed, repetition=s, x0=x0, rho=RHO)


def pitprops(
    starts: int = STARTS,
    methods: Sequence[str] = tuple(METHODS),
    seed: int = 0,
    *,
    limit: float = LIMIT,
    out: str | Path | None = None,
    watch: Watch | None = None,
) -> pd.DataFrame:
    """The objective each method reaches from each start (column repetition)."""
    return frame(run(jobs(starts, methods, seed), limit=limit, out=out, watch=watch))
