"""Table 4: portfolios of at most 10 assets, min αxᵀVx − rᵀx s.t. ‖x‖₀ ≤ k, 1ᵀx = 1; x⁰ = 1/n."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from ksparse import datasets
from ksparse.datasets import Assets
from ksparse.experiments.experiment import SOLVERS, Experiment
from ksparse.experiments.paper import TOKYO
from ksparse.experiments.run import METHODS, Instance, Job, sparse_job
from ksparse.losses import MeanVariance
from ksparse.sets import Hyperplane

ALPHA, K = 10.0, 10
FULL, SMALL = "generated, 2148 x 1338", "generated, 600 x 300"
DATA: dict[str, Callable[[int], Assets]] = {
    TOKYO: lambda seed: datasets.tokyo(),
    FULL: lambda seed: datasets.factor_model(seed=seed),  # so that the table runs without any file
    SMALL: lambda seed: datasets.factor_model(300, 600, seed),
}


def load(name: str, seed: int) -> Instance:
    """The portfolio problem of one of DATA."""
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
                yield sparse_job("table4", name, partial(load, name, seed), method, seed=seed, repetition=repetition)


table4 = Experiment(
    "table4",
    "Table 4: portfolio of at most 10 assets",
    jobs,
    "min 10xᵀVx − rᵀx s.t. ‖x‖₀ ≤ 10, 1ᵀx = 1, V and r of daily returns, from x⁰ = 1/n, ρ the best of 10⁻⁴…10⁴.",
    f"The paper's period is 2008–2016, that of our Tokyo data 2013–2022. {SOLVERS} The generated returns are not in the paper.",
    {"instances": (TOKYO, SMALL)},
)
