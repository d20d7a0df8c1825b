"""The paper's Tables 2 to 5 and its box plot (pit props) as experiments, and the list of all five."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import ksparse
from ksparse import datasets
from ksparse.datasets import Assets
from ksparse.experiments.paper import COLON, TOKYO
from ksparse.experiments.row import frame
from ksparse.experiments.run import LIMIT, METHODS, Answer, Instance, Job, Watch, run, sparse_job
from ksparse.losses import LeastSquares, MeanVariance, PrincipalComponent
from ksparse.penalties import L1MinusL2
from ksparse.sets import Hyperplane, L2Ball, Nonnegative, WholeSpace
from ksparse.solve.minimize import minimize_penalized

if TYPE_CHECKING:
    import pandas as pd

SOLVERS = "The subproblems of l1-DCA and MIP-DCA are solved by PIQP and Clarabel instead of CPLEX."


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper. Call it for its tidy table: `table5(sizes=(1, 2), seeds=(0, 1), methods=("l2-APDCA", "auto"))`.

    The options are those of `jobs`. With a folder `out` rows are saved as they come and taken up again, unless `force`.
    """

    name: str
    title: str
    jobs: Callable[..., Iterator[Job]]
    about: str  # the problem, for the report
    differs: str  # what is not as in the paper
    quick: dict[str, Any] = field(default_factory=dict)  # options for a quick run

    def __call__(
        self,
        *,
        out: str | Path | None = None,
        limit: float = LIMIT,
        force: bool = False,
        watch: Watch | None = None,
        **options: Any,
    ) -> pd.DataFrame:
        """The table: one row per instance, seed, repetition and method."""
        return frame(run(self.jobs(**options), out=out, limit=limit, force=force, watch=watch))


LAM = 5e-4
OURS = {"continuation": True, "tol": 1e-6}  # a tighter stop than the paper's: from a good start each step brings little
TABLE2_DEFAULT = ("APDCA fix", "APDCA bt", "pDCAe", "ours")  # the paper's three, and ours
TABLE2_METHODS = {
    "ours": ("apdca", "backtracking"),
    "APDCA fix": ("apdca", "fixed"),
    "APDCA bt": ("apdca", "backtracking"),
    "pDCAe": ("pdcae", "fixed"),
    "PDCA": ("pdca", "backtracking"),
    "GIST": ("gist", "backtracking"),
    "nmAPG": ("nmapg", "fixed"),
}


def load_table2(i: int, seed: int) -> Instance:
    """The instance of size i, penalised: the value is F."""
    data = datasets.table2(i, seed)

    def value(x: Any) -> float:
        return 0.5 * float(np.sum((data.A @ x - data.b) ** 2)) + LAM * float(np.abs(x).sum() - np.linalg.norm(x))

    return Instance(lambda: LeastSquares(data.A, data.b), WholeSpace(), data.k, value)


def table2_jobs(
    sizes: Sequence[int] = (1, 2, 3, 4, 5),
    seeds: Sequence[int] = (0,),
    methods: Sequence[str] = TABLE2_DEFAULT,
    repeats: int = 1,
) -> Iterator[Job]:
    """One job per size, seed, method and repetition."""
    for method in methods:
        if method not in TABLE2_METHODS:
            raise ValueError(f"methods must be among {', '.join(TABLE2_METHODS)}, got {method!r}")
    for i in sizes:
        for seed in seeds:
            for method in methods:
                for repetition in range(repeats):
                    yield _table2_job(i, seed, method, repetition)


def _table2_job(i: int, seed: int, label: str, repetition: int) -> Job:
    method, step = TABLE2_METHODS[label]

    def solve(problem: Instance, limit: float) -> Answer:
        loss, time_lipschitz = problem.loss(), float("nan")
        began = time.perf_counter()
        if step == "fixed":
            loss.lipschitz()
            time_lipschitz = time.perf_counter() - began
        left = max(0.0, limit - (time.perf_counter() - began))
        options: dict[str, Any] = OURS if label == "ours" else {}
        result = minimize_penalized(loss, L1MinusL2(LAM), method=method, step=step, max_time=left, **options)
        seconds = time.perf_counter() - began
        return Answer(result, seconds, seconds, time_lipschitz)

    name = f"{720 * i} x {2560 * i}"
    return Job(
        "table2",
        name,
        seed,
        repetition,
        label,
        lambda: load_table2(i, seed),
        solve,
        {"version": ksparse.__version__, "lam": LAM},
    )


table2 = Experiment(
    "table2",
    "Table 2: accelerations of PDCA on penalised regression",
    table2_jobs,
    "min ½‖Ax − b‖² + λ(‖x‖₁ − ‖x‖₂), λ = 5e-4, from x⁰ = 0. APDCA stops by the relative change of F, pDCAe by that of x.",
    'Our draws of A and b. "ours" is APDCA with backtracking, by continuation in λ. auto has no row: it solves the constrained problem.',
    {"sizes": (1,)},
)

K, RHO, STARTS = 5, 1.0, 100


def load_pitprops() -> Instance:
    """Sparse PCA of the pit props."""
    R, _ = datasets.pit_props()
    return Instance(lambda: PrincipalComponent(R), L2Ball(), K, lambda x: -float(x @ R @ x))


def pitprops_jobs(starts: int = STARTS, methods: Sequence[str] = tuple(METHODS), seed: int = 0) -> Iterator[Job]:
    """One job per method and start; start s has x⁰ ~ N(0, I), by the generator seeded with (seed, s)."""
    for method in methods:
        for s in range(starts):
            x0 = lambda s=s: np.random.default_rng((seed, s)).standard_normal(13)  # noqa: E731
            yield sparse_job(
                "pitprops", "pit props, 13 x 13", load_pitprops, method, seed=seed, repetition=s, x0=x0, rho=RHO
            )


pitprops = Experiment(
    "pitprops",
    "Pit props: objective from random starts",
    pitprops_jobs,
    "min −xᵀRx s.t. ‖x‖₀ ≤ 5, ‖x‖₂ ≤ 1, R the 13 × 13 correlations of the pit props, ρ = 1, from x⁰ ~ N(0, I).",
    f"Our draws of the starts. {SOLVERS}",
    {"starts": 30},
)

TABLE3_DATA: dict[str, tuple[Callable[[], Any], int]] = {  # name: data matrix, k
    COLON: (lambda: datasets.colon()[0], 100),
    "digits, 1797 x 61": (
        lambda: datasets.digits()[0],
        10,
    ),  # comes with scikit-learn, so that there is a row on every machine
    "leukemia, 72 x 7129": (lambda: datasets.leukemia()[0], 100),
}
TABLE3_DEFAULT = (COLON, "digits, 1797 x 61")


def load_table3(name: str) -> Instance:
    """The sparse PCA problem of one of TABLE3_DATA."""
    make, k = TABLE3_DATA[name]
    X = make()
    Z = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1) / np.sqrt(len(X) - 1)  # R = ZᵀZ, which is not formed
    return Instance(lambda: PrincipalComponent.from_data(X), L2Ball(), k, lambda x: -float(np.sum((Z @ x) ** 2)))


def table3_jobs(
    instances: Sequence[str] = TABLE3_DEFAULT, methods: Sequence[str] = tuple(METHODS), repeats: int = 1
) -> Iterator[Job]:
    """One job per instance, method and repetition."""
    for name in instances:
        if name not in TABLE3_DATA:
            raise ValueError(f"instances must be among {'; '.join(TABLE3_DATA)}, got {name!r}")
        for method in methods:
            for repetition in range(repeats):
                yield sparse_job("table3", name, partial(load_table3, name), method, repetition=repetition)


table3 = Experiment(
    "table3",
    "Table 3: sparse principal component",
    table3_jobs,
    "min −xᵀRx s.t. ‖x‖₀ ≤ k, ‖x‖₂ ≤ 1, R the correlation matrix, from x⁰ = 1/n, ρ the best of 10⁻⁴…10⁴.",
    f"The paper does not say how it prepared the colon data; ours are the raw intensities. {SOLVERS} The digits are not in the paper.",
)

TABLE4_ALPHA, TABLE4_K = 10.0, 10
FULL, SMALL = "generated, 2148 x 1338", "generated, 600 x 300"
TABLE4_DATA: dict[str, Callable[[int], Assets]] = {
    TOKYO: lambda seed: datasets.tokyo(),
    FULL: lambda seed: datasets.factor_model(seed=seed),  # so that the table runs without any file
    SMALL: lambda seed: datasets.factor_model(300, 600, seed),
}


def load_table4(name: str, seed: int) -> Instance:
    """The portfolio problem of one of TABLE4_DATA."""
    assets = TABLE4_DATA[name](seed)
    V, r = assets.V, assets.r
    return Instance(
        lambda: MeanVariance(V, r, TABLE4_ALPHA),
        Hyperplane(),
        TABLE4_K,
        lambda x: float(TABLE4_ALPHA * (x @ V @ x) - r @ x),
        lambda x: float(r @ x),
    )


def table4_jobs(
    instances: Sequence[str] = (TOKYO, FULL), methods: Sequence[str] = tuple(METHODS), repeats: int = 1, seed: int = 0
) -> Iterator[Job]:
    """One job per instance, method and repetition; the seed is that of the generated returns."""
    for name in instances:
        if name not in TABLE4_DATA:
            raise ValueError(f"instances must be among {'; '.join(TABLE4_DATA)}, got {name!r}")
        for method in methods:
            for repetition in range(repeats):
                yield sparse_job(
                    "table4", name, partial(load_table4, name, seed), method, seed=seed, repetition=repetition
                )


table4 = Experiment(
    "table4",
    "Table 4: portfolio of at most 10 assets",
    table4_jobs,
    "min 10xᵀVx − rᵀx s.t. ‖x‖₀ ≤ 10, 1ᵀx = 1, V and r of daily returns, from x⁰ = 1/n, ρ the best of 10⁻⁴…10⁴.",
    f"The paper's period is 2008–2016, that of our Tokyo data 2013–2022. {SOLVERS} The generated returns are not in the paper.",
    {"instances": (TOKYO, SMALL)},
)


def load_table5(i: int, seed: int) -> Instance:
    """The instance of size i."""
    data = datasets.table5(i, seed)
    return Instance(
        lambda: LeastSquares(data.A, data.b), Nonnegative(data.nonnegative), data.k,
        lambda x: 0.5 * float(np.sum((data.A @ x - data.b) ** 2)),
    )  # fmt: skip


def table5_jobs(
    sizes: Sequence[int] = (1, 2, 3, 4, 5),
    seeds: Sequence[int] = (0,),
    methods: Sequence[str] = tuple(METHODS),
    repeats: int = 1,
) -> Iterator[Job]:
    """One job per size, seed, method and repetition."""
    for i in sizes:
        for seed in seeds:
            for method in methods:
                for repetition in range(repeats):
                    name = f"{180 * i} x {640 * i}"
                    yield sparse_job(
                        "table5", name, partial(load_table5, i, seed), method, seed=seed, repetition=repetition
                    )


table5 = Experiment(
    "table5",
    "Table 5: sparse least squares with signs",
    table5_jobs,
    "min ½‖Ax − b‖² s.t. ‖x‖₀ ≤ k, the first tenth of x nonnegative, from x⁰ = 1/n, ρ the best of 10⁻⁴…10⁴.",
    f"Our draws of A and b, with b scaled to unit norm. {SOLVERS} With few rows they are posed in the dual, which is many times smaller.",
    {"sizes": (1, 2)},
)

EXPERIMENTS = {experiment.name: experiment for experiment in (table2, pitprops, table3, table4, table5)}


def jobs_of(names: list[str], quick: bool) -> list[Job]:
    """The jobs of some experiments, in the catalogue's order."""
    chosen = [experiment for name, experiment in EXPERIMENTS.items() if name in names]
    return [job for experiment in chosen for job in experiment.jobs(**experiment.quick if quick else {})]
