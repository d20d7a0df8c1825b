"""The box plot: sparse PCA of the pit props from 100 random starts, k = 5 and ρ = 1 for every method."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ksparse.datasets import pit_props
from ksparse.experiments.experiment import SOLVERS, Experiment
from ksparse.experiments.run import METHODS, Instance, Job, sparse_job
from ksparse.losses import PrincipalComponent
from ksparse.sets import L2Ball

K, RHO, STARTS = 5, 1.0, 100


def load() -> Instance:
    """Sparse PCA of the pit props."""
    R, _ = pit_props()
    return Instance(lambda: PrincipalComponent(R), L2Ball(), K, lambda x: -float(x @ R @ x))


def jobs(starts: int = STARTS, methods: Sequence[str] = tuple(METHODS), seed: int = 0) -> Iterator[Job]:
    """One job per method and start; start s has x⁰ ~ N(0, I), by the generator seeded with (seed, s)."""
    for method in methods:
        for s in range(starts):
            x0 = lambda s=s: np.random.default_rng((seed, s)).standard_normal(13)  # noqa: E731
            yield sparse_job("pitprops", "pit props, 13 x 13", load, method, seed=seed, repetition=s, x0=x0, rho=RHO)


pitprops = Experiment(
    "pitprops",
    "Pit props: objective from random starts",
    jobs,
    "min −xᵀRx s.t. ‖x‖₀ ≤ 5, ‖x‖₂ ≤ 1, R the 13 × 13 correlations of the pit props, ρ = 1, from x⁰ ~ N(0, I).",
    f"Our draws of the starts. {SOLVERS}",
    {"starts": 30},
)
