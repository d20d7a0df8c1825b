"""Table 3: sparse PCA of gene expression, min −xᵀRx s.t. ‖x‖₀ ≤ k, ‖x‖₂ ≤ 1, with R the correlation matrix; x⁰ = 1/n."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ksparse import datasets
from ksparse.experiments.paper import COLON
from ksparse.experiments.row import frame
from ksparse.experiments.run import LIMIT, METHODS, Instance, Job, Watch, run, sparse_job
from ksparse.losses import PrincipalComponent
from ksparse.sets import L2Ball

if TYPE_CHECKING:
    import pandas as pd

TITLE = "Table 3: sparse principal component"
DATA: dict[str, tuple[Callable[[], Any], int]] = {  # name: data matrix, k
    COLON: (lambda: datasets.colon()[0], 100),
    "digits, 1797 x 61": (lambda: datasets.digits()[0], 10),  # comes with scikit-learn, so that there is a row on every machine
    "leukemia, 72 x 7129": (lambda: datasets.leukemia()[0], 100),
}
DEFAULT = (COLON, "digits, 1797 x 61")


def _load(name: str) -> Instance:
    make, k = DATA[name]
    X = make()
    Z = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1) / np.sqrt(len(X) - 1)  # R = ZᵀZ, which is not formed
    return Instance(lambda: PrincipalComponent.from_data(X), L2Ball(), k, lambda x: -float(np.sum((Z @ x) ** 2)))


def jobs(instances: Sequence[str] = DEFAULT, methods: Sequence[str] = tuple(METHODS), repeats: int = 1) -> Iterator[Job]:
    """One job per instance, method and repetition."""
    for name in instances:
        if name not in DATA:
            raise ValueError(f"instances must be among {'; '.join(DATA)}, got {name!r}")
        for method in methods:
            for repetition in range(repeats):
                yield sparse_job("table3", name, lambda name=name: _load(name), method, repetition=repetition)


def table3(
    instances: Sequence[str] = DEFAULT,
    methods: Sequence[str] = tuple(METHODS),
    repeats: int = 1,
    *,
    limit: float = LIMIT,
    out: str | Path | None = None,
    watch: Watch | None = None,
) -> pd.DataFrame:
    """Table 3; an instance whose file is missing has rows that say so."""
    return frame(run(jobs(instances, methods, repeats), limit=limit, out=out, watch=watch))
