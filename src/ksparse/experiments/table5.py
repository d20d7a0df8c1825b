"""Table 5: least squares with at most k nonzeros, a tenth of them with a known sign; x⁰ = 1/n."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from ksparse import datasets
from ksparse.experiments.experiment import SOLVERS, Experiment
from ksparse.experiments.run import METHODS, Instance, Job, sparse_job
from ksparse.losses import LeastSquares
from ksparse.sets import Nonnegative


def load(i: int, seed: int) -> Instance:
    """The instance of size i."""
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
                    yield sparse_job("table5", name, partial(load, i, seed), method, seed=seed, repetition=repetition)


table5 = Experiment(
    "table5",
    "Table 5: sparse least squares with signs",
    jobs,
    "min ½‖Ax − b‖² s.t. ‖x‖₀ ≤ k, the first tenth of x nonnegative, from x⁰ = 1/n, ρ the best of 10⁻⁴…10⁴.",
    f"Our draws of A and b, with b scaled to unit norm. {SOLVERS} With few rows they are posed in the dual, which is many times smaller.",
    {"sizes": (1, 2)},
)
