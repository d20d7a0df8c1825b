"""Table 4: portfolios of at most 10 assets, min αxᵀVx − rᵀx s.t. ‖x‖₀ ≤ k, 1ᵀx = 1; x⁰ = 1/n."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ksparse import datasets
from ksparse.datasets import Assets
from ksparse.experiments.paper import TOKYO
from ksparse.experiments.row import frame
from ksparse.experiments.run import LIMIT, METHODS, Instance, Job, Watch, run, sparse_job
from ksparse.losses import MeanVariance
from ksparse.sets import Hyperplane

if TYPE_CHECKING:
    import pandas as pd

TITLE = "Table 4: portfolio of at most 10 assets"
ALPHA, K = 10.0, 10
FULL, SMALL = "generated, 2148 x 1338", "generated, 600 x 300"
DATA: dict[str, Callable[[int], Assets]] = {
    TOKYO: lambda seed: datasets.tokyo(),
    FULL: lambda seed: datasets.factor_model(seed=seed),  # so that the table runs without any file
    SMALL: lambda seed: datasets.factor_model(300, 600, seed),
}


def _load(name: str, seed: int) -> Instance:
    assets = DATA[name](seed)
    V, r = assets.V, assets.r
    return Instance(
        lambda: MeanVariance(V, r, ALPHA), Hyperplane(), K, lambda x: float(ALPHA * (x @ V @ x) - r @ x), lambda x: float(r @ x)
    )


def jobs(
    instances: Sequence[str] = (TOKYO, FULL), methods: Sequence[str] = tuple(METHODS), repeats: int = 1, seed: int = 0
) -> Iterator[Job]:
    """One job per instance, method and repetition; the seed is that of the generated returns."""
    for name in instances:
        if name not in DATA:
            raise ValueError(f"instances must be among {'; '.join(DATA)}, got {name!r}")
        for method in methods:
            for repetition in range(repeats):
                yield sparse_job("table4", name, lambda name=name: _load(name, seed), method, seed=seed, repetition=repetition)


def table4(
    instances: Sequence[str] = (TOKYO, FULL),
    methods: Sequence[str] = tuple(METHODS),
    repeats: int = 1,
    seed: int = 0,
    *,
    limit: float = LIMIT,
    out: str | Path | None = None,
    watch: Watch | None = None,
) -> pd.DataFrame:
    """Table 4; an instance whose file is missing has rows that say so."""
    return frame(run(jobs(instances, methods, repeats, seed), limit=limit, out=out, watch=watch))
