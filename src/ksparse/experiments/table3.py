"""Table 3: sparse PCA of gene expression, min −xᵀRx s.t. ‖x‖₀ ≤ k, ‖x‖₂ ≤ 1, with R the correlation matrix; x⁰ = 1/n."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from ksparse import datasets
from ksparse.experiments.experiment import SOLVERS, Experiment
from ksparse.experiments.paper import COLON
from ksparse.experiments.run import METHODS, Instance, Job, sparse_job
from ksparse.losses import PrincipalComponent
from ksparse.sets import L2Ball

DATA: dict[str, tuple[Callable[[], Any], int]] = {  # name: data matrix, k
    COLON: (lambda: datasets.colon()[0], 100),
    "digits, 1797 x 61": (lambda: datasets.digits()[0], 10),  # comes with scikit-learn, so that there is a row on every machine
    "leukemia, 72 x 7129": (lambda: datasets.leukemia()[0], 100),
}
DEFAULT = (COLON, "digits, 1797 x 61")


def load(name: str) -> Instance:
    """The sparse PCA problem of one of DATA."""
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
                yield sparse_job("table3", name, partial(load, name), method, repetition=repetition)


table3 = Experiment(
    "table3",
    "Table 3: sparse principal component",
    jobs,
    "min −xᵀRx s.t. ‖x‖₀ ≤ k, ‖x‖₂ ≤ 1, R the correlation matrix, from x⁰ = 1/n, ρ the best of 10⁻⁴…10⁴.",
    f"The paper does not say how it prepared the colon data; ours are the raw intensities. {SOLVERS} The digits are not in the paper.",
)
